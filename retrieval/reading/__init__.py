"""Reading an error: its category, its signature and what is wrong with which parameter."""

from retrieval.reading.faults import Fault, FaultKind
from retrieval.reading.reader import ErrorReading, read_error

__all__ = ["ErrorReading", "Fault", "FaultKind", "read_error"]
