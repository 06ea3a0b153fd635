"""The shipped corpus (common mistakes and lessons): read and checked at start, indexed once."""

import hashlib
from importlib.resources import files

from pydantic import ValidationError

from aftercall.json_patch import same_json
from embeddings.protocol import Embedder
from embeddings.text import failure_text, terms_text
from mongo.protocol import Metadata
from retrieval.edit_effects import apply_edits
from retrieval.edits import EditDoesNotApplyError
from retrieval.index.protocol import SEED_WORKSPACE, IndexPoint, VectorIndex
from retrieval.knowledge.documents import CommonMistakes, SeedEntry, seed_signature
from retrieval.values import catalogue

_FACT = "seed_corpus"


class SeedCorpusError(ValueError):
    """The corpus file is damaged; the message names the line. Reinstall the package."""


def load_seed(text: str | None = None) -> CommonMistakes:
    """The shipped corpus, or another one of that form, checked: examples are what their edits make.

    Raises:
        SeedCorpusError: when a line is not an entry, or contradicts itself.
    """
    lines = (_shipped() if text is None else text).splitlines()
    entries = [
        _entry(number, line)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#")
    ]
    return CommonMistakes.of(entries)


async def index_seed(
    book: CommonMistakes, *, metadata: Metadata, index: VectorIndex, embedder: Embedder
) -> bool:
    """Put the corpus into the vector index; False when this very corpus is there already."""
    digest = hashlib.sha256(
        "\n".join([embedder.fingerprint, *(e.model_dump_json() for e in book.entries)]).encode()
    ).hexdigest()
    # An empty index has lost its vectors, or is being rebuilt, whatever the store remembers.
    if await metadata.get(_FACT) == digest and await index.count():
        return False
    texts = [_text(entry) for entry in book.entries]
    vectors = await embedder.embed(texts, "document")
    await index.upsert(
        [
            IndexPoint(
                document_id=entry.document_id,
                workspace=SEED_WORKSPACE,
                kind="reflection",
                server_name=entry.server_name,
                tool_name=entry.tool_name,
                vector=vector,
                terms=terms_text(text),
            )
            for entry, text, vector in zip(book.entries, texts, vectors, strict=True)
        ]
    )
    await metadata.put(_FACT, digest)
    return True


def _text(entry: SeedEntry) -> str:
    return failure_text(entry.tool_name, seed_signature(entry, entry.messages[0]))


def _entry(number: int, line: str) -> SeedEntry:
    try:
        entry = SeedEntry.model_validate_json(line)
        if entry.catalogue:
            catalogue(entry.catalogue)
        if entry.edits and not same_json(apply_edits(entry.failed, entry.edits), entry.successful):
            raise SeedCorpusError(f"line {number}: the edits do not give the successful example")
    except (ValidationError, EditDoesNotApplyError, KeyError) as error:
        raise SeedCorpusError(f"line {number} of the seed corpus: {error}") from error
    return entry


def _shipped() -> str:
    return (files("ingest") / "seed_corpus.jsonl").read_text(encoding="utf-8")
