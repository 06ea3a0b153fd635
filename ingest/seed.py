"""The shipped corpus (common mistakes and lessons): read and checked at start."""

from importlib.resources import files

from pydantic import ValidationError

from aftercall.json_patch import same_json
from retrieval.knowledge.rewrites.edit_effects import apply_edits
from retrieval.knowledge.rewrites.edits import EditDoesNotApplyError
from retrieval.knowledge.rows.documents import CommonMistakes, SeedEntry
from retrieval.knowledge.values.scalars import read_catalogue


class SeedCorpusError(ValueError):
    """The corpus file is damaged; the message names the line. Reinstall the package."""


def load_seed(text: str | None = None) -> CommonMistakes:
    """Return the shipped corpus, or one like it.

    A `SeedCorpusError` where a line is no entry or wrong.
    """
    shipped = files("ingest") / "seed_corpus.jsonl"
    lines = (shipped.read_text("utf-8") if text is None else text).splitlines()
    entries = [
        _read_entry(number, line)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    ]
    return CommonMistakes(entries)


def _read_entry(number: int, line: str) -> SeedEntry:
    try:
        entry = SeedEntry.model_validate_json(line)
        if entry.catalogue:
            read_catalogue(entry.catalogue)
        if entry.edits and not same_json(apply_edits(entry.failed, entry.edits), entry.successful):
            raise SeedCorpusError(f"line {number}: the edits do not give the successful example")
    except (ValidationError, EditDoesNotApplyError, KeyError) as error:
        raise SeedCorpusError(f"line {number} of the seed corpus: {error}") from error
    return entry
