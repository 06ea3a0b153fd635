"""Documents that follow from what was registered: of tools, and of promotions.

Each is made anew from what is stored now, so that doing it twice changes nothing; one whose text is
as before is not embedded again.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from embeddings.text import MAX_TEXT, name_words
from mongo.protocol import LogStore
from mongo.records import (
    ChangedTool,
    DocumentRow,
    QueuedPromotion,
    StoredPromotion,
    StoredTool,
)
from retrieval.fitness.registry import tool_document_id
from retrieval.fitness.relevance import tool_terms, tool_text
from retrieval.knowledge.documents import Document, document_id


@dataclass(frozen=True, slots=True)
class DerivedDocuments:
    """What is to be stored, and which documents stand for nothing any more."""

    rows: list[DocumentRow] = field(default_factory=list)
    removed: list[tuple[str, str]] = field(default_factory=list)


def tool_document(stored: StoredTool) -> Document:
    """The document of a registered tool."""
    return Document(
        document_id=tool_document_id(stored.tool_key, stored.tool.tool_id),
        kind="tool",
        server_name=stored.tool.server_name,
        tool_name=stored.tool.name,
        text=tool_text(stored.tool),
        terms=tool_terms(stored.tool),
        count=1,
    )


def evolution_document(stored: StoredPromotion) -> Document:
    """The document of a promotion, that holds or held: what was evolved, why, and how.

    `tool_name` is the namespace and `version` the evolved version, so that the promotion is found
    in the namespace's history.
    """
    promotion = stored.promotion
    said = (name_words(stored.namespace), promotion.reason.strip(), promotion.mutation.strip())
    what = f"{stored.namespace}\x1f{promotion.evolved_version}"
    return Document(
        document_id=document_id(stored.workspace, "evolution", None, None, what),
        kind="evolution",
        server_name=None,
        tool_name=stored.namespace,
        text=": ".join(each for each in said if each)[:MAX_TEXT],
        count=1,
        version=promotion.evolved_version,
        last_seen=promotion.promoted_at,
    )


async def derive_documents(
    changed: Sequence[ChangedTool], promotions: Sequence[QueuedPromotion], *, store: LogStore
) -> DerivedDocuments:
    """The documents of changed tools and of promotions, as far as they differ from the store's."""
    if not changed and not promotions:
        return DerivedDocuments()
    registered = await _registered(changed, store)
    touched: dict[str, set[str]] = defaultdict(set)
    for change in changed:
        touched[change.tool.workspace].add(tool_document_id(change.tool, change.tool_id))
    wanted = await asyncio.to_thread(_wanted, changed, registered, promotions)
    for workspace, identity in wanted:
        touched[workspace].add(identity)
    known = [
        row
        for workspace, ids in touched.items()
        for row in await store.get_documents(workspace, sorted(ids))
    ]
    return await asyncio.to_thread(_compared, wanted, known)


async def _registered(
    changed: Sequence[ChangedTool], store: LogStore
) -> dict[tuple[str, str], StoredTool]:
    """The tools of these ids as they are now, by workspace and id."""
    ids: dict[str, dict[str, None]] = defaultdict(dict)
    for change in changed:
        ids[change.tool.workspace][change.tool_id] = None
    return {
        (workspace, stored.tool.tool_id): stored
        for workspace, wanted in ids.items()
        for stored in await store.get_tools(workspace, list(wanted))
    }


def _wanted(
    changed: Iterable[ChangedTool],
    registered: Mapping[tuple[str, str], StoredTool],
    promotions: Iterable[QueuedPromotion],
) -> dict[tuple[str, str], Document]:
    """The documents that there are to be, by workspace and id."""
    wanted: dict[tuple[str, str], Document] = {}
    for change in changed:
        stored = registered.get((change.tool.workspace, change.tool_id))
        if stored is not None and stored.tool_key == change.tool:
            document = tool_document(stored)
            wanted[stored.workspace, document.document_id] = document
    for queued in promotions:
        document = evolution_document(queued.promoted)
        wanted[queued.promoted.workspace, document.document_id] = document
    return wanted


def _compared(
    wanted: Mapping[tuple[str, str], Document], known: Iterable[DocumentRow]
) -> DerivedDocuments:
    derived = DerivedDocuments()
    unchanged = set()
    for row in known:
        key = (row.workspace, row.document_id)
        document = Document.model_validate_json(row.data)
        if key not in wanted:
            derived.removed.append(key)
        elif (document.text, document.terms) == (wanted[key].text, wanted[key].terms):
            unchanged.add(key)
    derived.rows.extend(
        DocumentRow(*key, document.model_dump_json().encode(), is_new=True)
        for key, document in wanted.items()
        if key not in unchanged
    )
    return derived
