"""What is counted of calls and answers, by tool and hour (`retrieval.counters`). Pure."""

from collections.abc import Mapping

from ingest.workspace import WorkspaceCache
from mongo.contents import IssuedSuggestion, StoredExecution, hour_of
from mongo.records import Counter, Event
from retrieval import counters as what
from retrieval.knowledge.documents import document_id
from retrieval.memory import AGENTS, SIGNATURES, Names, RowKind, tool_row
from retrieval.patterns import mark_of
from retrieval.reading.reader import ErrorReading


def of_execution(
    cache: WorkspaceCache, stored: StoredExecution, reading: ErrorReading | None
) -> Mapping[Counter, int]:
    """What one execution counts as, as often as it stands for; `reading` is of its error."""
    execution, tool = stored.execution, stored.tool_key
    agent = _told_apart(cache, AGENTS, "", execution.agent, what.MAX_AGENTS)
    worked = reading is None
    names = [
        what.SUCCESS if worked else what.FAILURE,
        f"{what.AGENT_SUCCESS if worked else what.AGENT_FAILURE}{agent}",
    ]
    if reading is not None:
        document = document_id(tool.workspace, "reflection", *tool[1:], reading.signature)
        mark, row = mark_of(document).hex(), tool_row(tool)
        signature = _told_apart(cache, SIGNATURES, row, mark, what.MAX_SIGNATURES)
        names += [f"{what.CATEGORY}{reading.category}", f"{what.SIGNATURE}{signature}"]
    if execution.attempt > 1:
        names.append(what.RETRY_SUCCESS if worked else what.RETRY_FAILURE)
    if execution.suggestion_id is not None:
        names.append(what.FOLLOWED_SUCCESS if worked else what.FOLLOWED_FAILURE)
    if execution.context and not execution.context.isspace():
        names.append(what.WITH_CONTEXT)
    bucket = what.bucket_of(execution.duration_ms)
    if bucket is not None:
        names.append(f"{what.DURATION}{bucket}")
    hour = hour_of(execution.timestamp)
    counters = [Counter(what.COUNTED, hour), *(Counter(name, hour, tool) for name in names)]
    return dict.fromkeys(counters, stored.stands_for)


def of_answer(event: Event, issued: IssuedSuggestion) -> Mapping[Counter, int]:
    """What an answer of `/suggest` counts as."""
    hour = hour_of(issued.issued_at)
    names = [f"{what.ANSWER}{name}" for name in issued.answered]
    counted = [Counter(name, hour, issued.tool, event.principal) for name in names]
    return dict.fromkeys([Counter(what.COUNTED, hour), *counted] if counted else (), 1)


def _told_apart(cache: WorkspaceCache, kind: RowKind[Names], key: str, name: str, most: int) -> str:
    """The name, or that of all others where so many are told apart already."""
    known = cache.made(kind, key)
    if name not in known.names:
        if len(known.names) >= most:
            return what.OTHER
        known.names.append(name)
        cache.put(kind, key)
    return name
