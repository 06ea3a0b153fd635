"""The shipped corpus as the answers use it: entries by signature and by document id."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from aftercall.models import ExecutionError
from retrieval.documents import SeedEntry
from retrieval.knowledge import signature_id
from retrieval.reading import ErrorReading, read_error


@dataclass(slots=True)
class SeedBook:
    """Corpus entries, found by the signature of an error or by what the vector index returned."""

    entries: list[SeedEntry] = field(default_factory=list)
    _by_signature: dict[str, list[SeedEntry]] = field(default_factory=dict)
    _by_document: dict[str, SeedEntry] = field(default_factory=dict)

    @classmethod
    def of(cls, entries: Iterable[SeedEntry]) -> "SeedBook":
        """A book of these entries."""
        book = cls()
        for entry in entries:
            book.entries.append(entry)
            book._by_document[entry.document_id] = entry
            for message in entry.messages:
                key = signature_id(seed_signature(entry, message))
                book._by_signature.setdefault(key, []).append(entry)
        return book

    def find(
        self, reading: ErrorReading, tool_name: str, near: Iterable[str]
    ) -> tuple[SeedEntry, ...]:
        """Entries about this error that hold for this tool, those of its very signature first.

        Args:
            reading: the error.
            tool_name: the tool that failed.
            near: ids of documents that the vector index found; they count when of one category.
        """
        exact = self._by_signature.get(signature_id(reading.signature), [])
        like = [
            entry
            for each in near
            if (entry := self._by_document.get(each)) and entry.category == reading.category
        ]
        fitting = {
            entry.document_id: entry
            for entry in [*exact, *like]
            if entry.tool_name in (None, tool_name)
        }
        return tuple(fitting.values())


def seed_signature(entry: SeedEntry, message: str) -> str:
    """The signature of one of the entry's messages, as reading a live error would give it."""
    return read_error(ExecutionError(message=message), entry.failed).signature
