"""Learning: one execution's worth of knowledge, added to what is known of its tool. Pure."""

import hashlib
from datetime import datetime

from aftercall.json_values import JsonObject, canonical_json
from aftercall.wire import Execution, Outcome
from embeddings.render import call_text, failure_text
from ingest.mining import Repair
from retrieval.documents import MAX_EXECUTION_IDS, Document, document_id, shape_of
from retrieval.edits import Edit, edit_key
from retrieval.index.protocol import Kind
from retrieval.knowledge import (
    MAX_EDITS_LENGTH,
    MAX_EXAMPLES,
    MAX_PROFILES,
    NO_SCHEMA,
    ToolKnowledge,
    remember,
)
from retrieval.reading import ErrorReading

_BLAMES_PARAMETERS = frozenset({"invalid_parameters", "not_found"})
_MAX_EXAMPLE = 2_000


def learn_success(knowledge: ToolKnowledge, execution: Execution, schema_hash: str | None) -> None:
    """Add a success to the tool's profile, in place."""
    profile = knowledge.profile_to_update(schema_hash)
    profile.observe_success(execution.parameters, session_of(execution))


def learn_failure(
    knowledge: ToolKnowledge,
    execution: Execution,
    reading: ErrorReading,
    schema_hash: str | None,
) -> None:
    """Add a failure to the tool's profile and to its signature's count, in place."""
    profile = knowledge.profile_to_update(schema_hash)
    blame = reading.category in _BLAMES_PARAMETERS
    profile.observe_failure(execution.parameters, blame_parameters=blame)
    known = knowledge.signature_to_update(reading.signature, reading.category)
    known.count += 1
    known.first_seen = _earlier(known.first_seen, execution.timestamp)
    known.last_seen = _later(known.last_seen, execution.timestamp)
    remember(known.agents, execution.agent)


def learn_repair(knowledge: ToolKnowledge, repair: Repair, schema_hash: str | None) -> None:
    """Add a mined repair to the rules of its signature, in place."""
    if len(edit_key(repair.edits)) > MAX_EDITS_LENGTH:
        return
    known = knowledge.signature_to_update(repair.reading.signature, repair.reading.category)
    rule = known.rule_to_update(repair.edits)
    rule.repairs += 1
    remember(rule.schema_hashes, schema_hash or NO_SCHEMA, MAX_PROFILES)
    remember(rule.sessions, session_of(repair.mended))
    remember(rule.execution_ids, repair.mended.execution_id, MAX_EXAMPLES)
    rule.last_seen = _later(rule.last_seen, repair.mended.timestamp)


def learn_outcome(
    knowledge: ToolKnowledge, signature: str, edits: list[Edit], outcome: Outcome
) -> None:
    """Add what became of a suggestion to its rule, in place.

    A success is weaker evidence than a repair that an agent made by itself, so the two are counted
    apart (see `retrieval.proposals.experience`).
    """
    known = knowledge.signature(signature)
    if known is None or len(edit_key(edits)) > MAX_EDITS_LENGTH:
        return  # forgotten since, or too special: such a rule would serve nobody
    rule = known.rule_to_update(edits)
    if outcome == "success":
        rule.successes += 1
    else:
        rule.failures += 1


def success_document(workspace: str, execution: Execution) -> Document:
    """The document that stands for successes of this shape, with this one as its latest."""
    shape = shape_of(execution.parameters)
    text = call_text(execution.tool_name, execution.parameters, execution.context)
    document = _document(workspace, "success", execution, shape, text)
    document.example = _small(execution.parameters)
    return document


def failure_document(workspace: str, execution: Execution, reading: ErrorReading) -> Document:
    """The document that stands for failures of this signature, with this one as its latest."""
    text = failure_text(execution.tool_name, reading.signature)
    document = _document(workspace, "reflection", execution, reading.signature, text)
    document.signature = reading.signature
    document.category = reading.category
    return document


def merge_document(known: Document | None, new: Document) -> Document:
    """One document for both: counts add up, the text first embedded stays, the latest is shown."""
    if known is None:
        return new
    merged = new.model_copy(update={"text": known.text, "count": known.count + new.count})
    merged.agents = list(known.agents)
    for agent in new.agents:
        remember(merged.agents, agent)
    merged.execution_ids = list(known.execution_ids)
    for each in new.execution_ids:
        remember(merged.execution_ids, each, MAX_EXECUTION_IDS)
    merged.last_seen = _later(known.last_seen, new.last_seen)
    merged.example = new.example or known.example
    return merged


def session_of(execution: Execution) -> str:
    """A short text that tells sessions apart and says nothing else of them.

    Without a session, the agent's day stands for one: its calls of a day are one experience.
    """
    session = execution.session_id or f"{execution.agent}\x1f{execution.timestamp:%Y-%m-%d}"
    return hashlib.sha256(session.encode()).hexdigest()[:12]


def _document(workspace: str, kind: Kind, execution: Execution, what: str, text: str) -> Document:
    return Document(
        document_id=document_id(workspace, kind, execution.server_name, execution.tool_name, what),
        kind=kind,
        server_name=execution.server_name,
        tool_name=execution.tool_name,
        text=text,
        count=1,
        agents=[execution.agent],
        execution_ids=[execution.execution_id],
        last_seen=execution.timestamp,
    )


def _small(parameters: JsonObject) -> JsonObject | None:
    return parameters if len(canonical_json(parameters)) <= _MAX_EXAMPLE else None


def _earlier(known: datetime | None, new: datetime) -> datetime:
    return new if known is None else min(known, new)


def _later(known: datetime | None, new: datetime | None) -> datetime | None:
    if known is None or new is None:
        return known or new
    return max(known, new)
