"""Other registered tools, gathered where a failed call may belong to one of them."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from mongo.records import StoredTool, ToolKey
from retrieval.advice import Candidate
from retrieval.index.protocol import Hit
from retrieval.knowledge.documents import Document
from retrieval.knowledge.rules import ToolKnowledge
from retrieval.memory import Memory

NEAR_SUCCESSES = 20
"""Like successes asked for over all tools: some of the tools come up several times."""
_MAX_TOOLS = 2_000
_MAX_SESSIONS = 12


async def other_tools(workspace: str, memory: Memory, hits: Sequence[Hit]) -> tuple[Candidate, ...]:
    """The workspace's registered tools, with what is known of those among the like successes.

    Args:
        workspace: whose tools.
        memory: where they are known.
        hits: successes of any tool of the workspace that are near to the failed call.

    Raises:
        StoreError: when the store cannot say.
    """
    registered = (await memory.tools(workspace))[:_MAX_TOOLS]
    documents = await memory.documents(workspace, [hit.document_id for hit in hits])
    found: dict[ToolKey, list[tuple[Hit, Document]]] = {}
    for hit in hits:
        document = documents.get(hit.document_id)
        if document is not None and document.tool_name is not None:
            key = ToolKey(workspace, document.server_name, document.tool_name)
            found.setdefault(key, []).append((hit, document))
    known = {key: await memory.knowledge(key) for key in found}
    return tuple(_candidate(stored, found.get(stored.tool_key, []), known) for stored in registered)


def _candidate(
    stored: StoredTool,
    like: Sequence[tuple[Hit, Document]],
    known: Mapping[ToolKey, ToolKnowledge | None],
) -> Candidate:
    if not like:
        return Candidate(stored.tool)
    nearest, document = max(like, key=lambda pair: pair[0].similarity)
    knowledge = known.get(stored.tool_key)
    profiles = list(knowledge.profiles.values()) if knowledge else []
    agents = {agent for _, each in like for agent in each.agents}
    return Candidate(
        stored.tool,
        similarity=nearest.similarity,
        successes=sum(profile.successes for profile in profiles),
        failures=sum(profile.failures for profile in profiles),
        sessions=max(len(agents), _sessions(knowledge)),
        execution_ids=tuple(document.execution_ids[-3:]),
    )


def _sessions(knowledge: ToolKnowledge | None) -> int:
    """Distinct sessions that are remembered of a tool's values, at most a few."""
    return len(set(islice(_seen_sessions(knowledge), 10 * _MAX_SESSIONS)))


def _seen_sessions(knowledge: ToolKnowledge | None) -> Iterable[str]:
    for profile in knowledge.profiles.values() if knowledge else ():
        for parameter in profile.parameters.values():
            for value in parameter.values.values():
                yield from value.sessions
