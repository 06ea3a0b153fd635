"""Importing calls from a file into a running service: executions, spans, transcripts, MCP logs.

    stream ─ pieces ─> lines or a document ─ readers ─> executions, or why not ─ sending ─> service

Whatever the format, one bad piece is told of with its place and loses nothing else.
"""

from service.importing.pieces import MAX_DOCUMENT, begun
from service.importing.readers import Chosen, choose, read
from service.importing.report import ImportReport, Rejections
from service.importing.sending import Importer

__all__ = [
    "MAX_DOCUMENT",
    "Chosen",
    "ImportReport",
    "Importer",
    "Rejections",
    "begun",
    "choose",
    "read",
]
