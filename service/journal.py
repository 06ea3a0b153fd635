"""Suggestions on their way to the log: those of a killed process are stored at the next start.

`/suggest` waits for no store, so an answer is out some 50 ms before its suggestions are in the log.
Until then they are in a file of this process, which the operating system has, though perhaps no
disk: the file survives a kill, but not a loss of power.
"""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from aftercall.places import try_lock, unlock_file
from mongo.contents import IssuedSuggestion, suggestion_event
from mongo.protocol import EventLog
from mongo.records import decode_json, encode_json
from service.logs import log_event

logger = logging.getLogger(__name__)
_NAMES = "suggestions-*.jsonl"


@dataclass(slots=True)
class SuggestionJournal:
    """The file of one process, open and locked; writing takes some 10 microseconds."""

    descriptor: int
    _is_empty: bool = True

    def add(self, suggestion_id: str, issued: IssuedSuggestion, principal: str) -> None:
        """Keep a suggestion until `clear`; a full disk is logged, and the answer goes out."""
        line = [suggestion_id, principal, encode_json(issued).decode()]
        try:
            os.write(self.descriptor, json.dumps(line).encode() + b"\n")
        except OSError as error:
            log_event(logger, "a suggestion is not kept for a kill", level="warning", error=error)
        self._is_empty = False

    def clear(self) -> None:
        """Empty the file, when its suggestions are in the log."""
        if not self._is_empty:
            os.ftruncate(self.descriptor, 0)
            self._is_empty = True


@asynccontextmanager
async def open_journal(folder: Path, log: EventLog) -> AsyncIterator[SuggestionJournal]:
    """Yield a journal in a folder; first store in the log what killed processes left there."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    for path, lock in await asyncio.to_thread(lambda: list(_of_killed(folder))):
        try:
            for suggestion_id, principal, issued in await asyncio.to_thread(_read_journal, path):
                event = suggestion_event(suggestion_id, issued, principal)
                await log.append(issued.tool.workspace, [event])
            path.unlink()
        finally:
            unlock_file(lock)
    path = folder / _NAMES.replace("*", uuid4().hex)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
    lock = try_lock(path, alone=True, made=False) or 0
    try:
        yield SuggestionJournal(descriptor)
    finally:
        is_empty = os.fstat(descriptor).st_size == 0
        os.close(descriptor)
        if is_empty:
            path.unlink(missing_ok=True)
        unlock_file(lock)


def _of_killed(folder: Path) -> Iterator[tuple[Path, int]]:
    for path in sorted(folder.glob(_NAMES)):
        if (lock := try_lock(path, alone=True, made=False)) is not None:  # no process has it
            yield path, lock


def _read_journal(path: Path) -> list[tuple[str, str, IssuedSuggestion]]:
    found = []
    for line in path.read_bytes().splitlines():
        try:
            suggestion_id, principal, data = json.loads(line)
            found.append((suggestion_id, principal, decode_json(IssuedSuggestion, data.encode())))
        except ValueError:
            log_event(logger, "half a suggestion of a killed process is left out", level="warning")
    return found
