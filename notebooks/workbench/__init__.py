"""What the notebooks share: a session with the service, tables, plots, worlds and measures."""

from workbench.session import NothingToShowError, Session, open_scratch, open_session
from workbench.tables import Table, percent, table

__all__ = [
    "NothingToShowError",
    "Session",
    "Table",
    "open_scratch",
    "open_session",
    "percent",
    "table",
]
