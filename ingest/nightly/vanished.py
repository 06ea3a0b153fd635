"""The step `vanished`: documents that nothing stands for any more go, and their vectors with them.

The indexer removes what a change makes void in the same commit. What is left over comes from
elsewhere: an import into a store that knew the tool already, or a version that did not remove yet.
Only those documents are looked at that a table vouches for: of registered tools, and scenarios of
the tools' statistics. What was learned from calls stays as long as it is not forgotten by rebuild.

They are removed as the indexer does it, under its lease: whoever learns could make the same
document anew at this moment. Their vectors go through its queue, so no index need be open.
"""

from collections.abc import Iterable, Sequence

from ingest.claims import learning_lease
from ingest.leasing import LeaseKeeper
from ingest.nightly.kinds import is_of
from ingest.nightly.night import Night
from mongo.records import DocumentRow, IndexCommit, ToolKey
from retrieval.fitness.registry import tool_document_id
from retrieval.fitness.statistics import ToolStatistics
from retrieval.knowledge.documents import Document

_PAGE = 500

_TTL_S = 15.0
_PATIENCE_S = 30.0
"""Whoever learns offers a workspace to others every few seconds."""


async def remove_vanished(night: Night) -> dict[str, int]:
    """Remove them from every workspace; `left` are those whose learner did not let us.

    Raises:
        NightlyLostError, StoreError: what stopped it; it can be run again.
    """
    done = {"documents": 0, "removed": 0, "left": 0}
    for workspace in await night.store.workspaces():
        after = ""
        while rows := await night.store.scan_documents(workspace, after, _PAGE):
            after = rows[-1].document_id
            done["documents"] += len(rows)
            night.on_progress("vanished", done["documents"])
            suspects = await _void(night, workspace, rows)
            if suspects:
                removed = await _remove(night, workspace, suspects)
                done["removed"] += removed or 0
                done["left"] += len(suspects) if removed is None else 0
    return done


async def _remove(night: Night, workspace: str, suspects: Sequence[str]) -> int | None:
    """Remove those that are still void once nobody else learns; None when somebody still does."""
    keeper = LeaseKeeper(night.store, learning_lease(workspace), ttl=_TTL_S)
    try:
        if not await keeper.wait(_PATIENCE_S):
            return None
        generation = await night.store.generation()
        rows = await night.store.get_documents(workspace, suspects)
        void = await _void(night, workspace, rows)
        night.check()
        lease = keeper.lease
        if lease is None:
            return None
        if void:
            gone = [(workspace, each) for each in void]
            commit = IndexCommit(
                workspace=workspace, generation=generation, lease=lease, removed=gone
            )
            await night.store.commit_index(commit)
        return len(void)
    finally:
        await keeper.close()


async def _void(night: Night, workspace: str, rows: Iterable[DocumentRow]) -> list[str]:
    """Ids of those among the documents that no table vouches for."""
    documents = [
        Document.model_validate_json(row.data) for row in rows if is_of(row, "tool", "scenario")
    ]
    if not documents:
        return []
    tools = {_tool_of(workspace, each) for each in documents if each.kind == "scenario"}
    scenarios = {
        row.tool: ToolStatistics.model_validate_json(row.data).scenarios
        for row in await night.store.get_statistics(sorted(tools, key=str))
    }
    registered: set[str] = set()
    if any(each.kind == "tool" for each in documents):
        known = await night.store.list_tools(workspace)
        registered = {tool_document_id(each.tool_key, each.tool.tool_id) for each in known}
    return [
        each.document_id
        for each in documents
        if each.document_id
        not in (registered if each.kind == "tool" else scenarios.get(_tool_of(workspace, each), {}))
    ]


def _tool_of(workspace: str, document: Document) -> ToolKey:
    return ToolKey(workspace, document.server_name, document.tool_name or "")
