"""Learning: one execution's worth of knowledge, added to what is known of its tool. Pure."""

import hashlib
from collections.abc import Mapping, Sequence

from aftercall.models import ErrorCategory, Execution, Outcome
from aftercall.outcomes import TRANSIENT
from embeddings.text import MAX_TEXT, call_text, failure_text, name_words
from ingest.mining import MinedRepair, Passed, Tried
from ingest.workspace import WorkspaceCache
from mongo.contents import (
    IssuedSuggestion,
    RuleRemoval,
    StoredExecution,
    StoredPromotion,
    StoredTool,
    hour_of,
    name_as_given,
)
from mongo.records import Counter
from retrieval.knowledge.memory import AGENTS, SIGNATURES, VERSIONS, Names, RowKind, tool_row
from retrieval.knowledge.patterns.consolidation import mark_of
from retrieval.knowledge.patterns.groups import MAX_EXAMPLES
from retrieval.knowledge.reading.reader import ErrorReading, read_error
from retrieval.knowledge.rewrites.edit_effects import apply_edits
from retrieval.knowledge.rewrites.edits import (
    Edit,
    EditDoesNotApplyError,
    ValueSources,
    changed_places,
    edit_key,
    edits_of_key,
    names_of,
)
from retrieval.knowledge.rows import counters as what
from retrieval.knowledge.rows.documents import (
    MAX_EXECUTION_IDS,
    Document,
    Kind,
    document_id,
    shape_of,
)
from retrieval.knowledge.rows.principals import agent_mark, make_mark, remember_mark
from retrieval.knowledge.rows.registry import tool_document_id
from retrieval.knowledge.rows.results import error_within, is_empty
from retrieval.knowledge.rows.tool_texts import tool_terms, tool_text
from retrieval.knowledge.tool.examples import RepairExample, add_example
from retrieval.knowledge.tool.links import MAX_FIRST_CALLS, MAX_HEARD, FirstCall
from retrieval.knowledge.tool.repairs import common_repairs, told_by
from retrieval.knowledge.tool.rules import (
    MAX_EDITS_LENGTH,
    MAX_PROFILES,
    NO_SCHEMA,
    RepairRule,
    ToolKnowledge,
    remember_name,
    signature_id,
    skeleton_of,
)
from retrieval.knowledge.tool.runs import (
    EMPTY,
    forget_repeat,
    learn_recovery,
    learn_repeat,
    session_mark,
)
from retrieval.knowledge.values.scalars import same_value

_BLAMES_PARAMETERS = frozenset({"invalid_parameters", "not_found"})
_OF_THE_MOMENT = TRANSIENT | {"contract_violation", "user_rejected"}
_LATER = 0.5
"""Weight of a repair that is one only by its likeness: other successes lie between."""


def learn_success(knowledge: ToolKnowledge, execution: Execution, schema_hash: str | None) -> None:
    """Add a success to the tool's profile, and what its result states to the loops, in place."""
    call = None
    if execution.parameters_known:
        call = knowledge.profile_to_update(schema_hash).observe_success(
            execution.parameters, session_of(execution), execution.agent, execution.timestamp
        )
    runs, session = knowledge.runs, session_mark(execution.session_id, execution.agent)
    parameters = execution.parameters if execution.parameters_known else None
    if (error := error_within(execution.result)) is not None:
        reading = read_error(error, execution.parameters)
        signature, at = reading.signature, execution.timestamp
        learn_repeat(
            runs, parameters, signature_id(signature), reading.category,
            session=session, at=at, said=signature[:MAX_TEXT],
        )  # fmt: skip
        return
    found_nothing = is_empty(execution.result)
    forget_repeat(runs, call, session, EMPTY if found_nothing else "")
    if found_nothing:
        at = execution.timestamp
        learn_repeat(runs, parameters, EMPTY, "low_utility", session=session, at=at)


def learn_failure(
    knowledge: ToolKnowledge, execution: Execution, reading: ErrorReading, schema_hash: str | None
) -> None:
    """Add a failure to the tool's profile and to its signature's count, in place."""
    if execution.parameters_known:
        profile = knowledge.profile_to_update(schema_hash)
        kinds = {reading.category, *(each.kind for each in reading.faults)}
        profile.observe_failure(
            execution.parameters,
            reading.faults,
            execution.timestamp,
            blame_parameters=reading.category in _BLAMES_PARAMETERS,
            lasting="not_found" not in kinds,
        )
    learn_repeat(
        knowledge.runs,
        execution.parameters if execution.parameters_known else None,
        signature_id(reading.signature),
        reading.category,
        session=session_mark(execution.session_id, execution.agent),
        at=execution.timestamp,
    )
    known = knowledge.signature_to_update(reading.signature, reading.category)
    known.count += 1
    at = execution.timestamp
    known.first_seen = min(known.first_seen or at, at)
    known.last_seen = max(known.last_seen or at, at)
    known.faults = skeleton_of(reading)
    remember_name(known.agents, name_as_given(execution.agent))


def learn_recoveries(repair: MinedRepair, *knowledge: ToolKnowledge) -> None:
    """Add how long a failure of the moment lasted to the tool's and the workspace's, in place."""
    if repair.edits:
        return
    for known in knowledge:
        learn_recovery(
            known.recoveries,
            repair.reading.category,
            failed_at=repair.failed.timestamp,
            worked_at=repair.mended.timestamp,
            session=session_of(repair.mended),
            agent=agent_mark(repair.mended.agent),
        )


def learn_repair(knowledge: ToolKnowledge, repair: MinedRepair, schema_hash: str | None) -> None:
    """Add a mined repair to its signature's examples and rules."""
    known = knowledge.signature_to_update(repair.reading.signature, repair.reading.category)
    known.faults = skeleton_of(repair.reading)
    if repair.all_edits:
        example = RepairExample(
            failed=repair.failed.parameters,
            mended=repair.mended.parameters,
            edits=list(repair.all_edits),
            agent=agent_mark(repair.mended.agent),
            session=session_of(repair.mended),
            execution_id=repair.mended.execution_id,
            at=repair.mended.timestamp,
            followed=repair.certainty == "followed",
        )
        add_example(known.examples, example)
    of_the_moment = repair.edits is None and repair.reading.category in TRANSIENT
    if repair.certainty == "followed" or of_the_moment:
        return  # it states what such calls may have meant, and not that a rule is right or wrong
    value_sources = ValueSources(repair.reading.faults, repair.failed.context)
    agent = repair.mended.agent
    for rule in known.rules.values():
        if _is_otherwise(repair, rule.edits, value_sources):
            rule.evidence.mended_otherwise(agent)
    if repair.edits is None or len(edit_key(repair.edits)) > MAX_EDITS_LENGTH:
        known.mends += 1
        return
    _count_repair(known.rule_to_update(repair.edits), repair, schema_hash or NO_SCHEMA)
    known.mends += 1


def learn_in_vain(knowledge: ToolKnowledge, tried: Tried) -> None:
    """Count against a change that someone made to a failed call, and that met the same error."""
    signature = tried.reading.signature
    known = knowledge.signature_to_update(signature, tried.reading.category)
    example = RepairExample(
        failed=tried.failed.parameters, mended=tried.again.parameters, edits=[],
        agent=agent_mark(tried.again.agent), session=session_of(tried.again),
        execution_id=tried.again.execution_id, at=tried.again.timestamp,
    )  # fmt: skip
    for edits in told_by([example], tried.failed.parameters)[:1]:
        if len(edit_key(edits)) <= MAX_EDITS_LENGTH:
            known.rule_to_update(edits).add_report(tried.again.agent, "failure")


def learn_removal(knowledge: ToolKnowledge, removal: RuleRemoval) -> None:
    """Forget a repair that was struck out, with the examples that taught it, in place.

    One that is switched off is kept, and not shown until it is switched on; nor is another form of
    it, since what is learned becomes more general with the next example.
    """
    if (known := knowledge.find_signature(removal.signature)) is None:
        return
    if removal.change != "remove":
        changed = changed_places(edits_of_key(removal.edit_key))
        known.off = [each for each in known.off if not changed.issuperset(each)]
        known.off += [sorted(changed)] if removal.change == "off" else []
        return
    known.rules.pop(removal.edit_key, None)
    gone = {
        each.execution_id
        for repair in common_repairs(known.examples, known.find_common_changes(), own=True)
        if edit_key(repair.edits) == removal.edit_key
        for each in repair.mended
    }
    known.examples = [each for each in known.examples if each.execution_id not in gone]


def learn_passed(knowledge: ToolKnowledge, found: Passed, reading: ErrorReading) -> None:
    """Add to a failure's signature what was called before the same call worked, in place."""
    if reading.category in _OF_THE_MOMENT:
        return
    known = knowledge.signature_to_update(reading.signature, reading.category)
    session = session_of(found.worked)
    remember_mark(known.passed, session, MAX_HEARD)
    for each in {each.tool_name: each for each in found.between}.values():
        if each.tool_name not in known.first_calls and len(known.first_calls) >= MAX_FIRST_CALLS:
            least = min(known.first_calls.values(), key=lambda first: len(first.sessions))
            del known.first_calls[least.tool_name]
        first = known.first_calls.setdefault(each.tool_name, FirstCall(tool_name=each.tool_name))
        if each.parameters_known:
            first.learn_session(
                session, each.parameters, found.failed.parameters, each.execution_id
            )


def _is_otherwise(repair: MinedRepair, edits: Sequence[Edit], value_sources: ValueSources) -> bool:
    """Return whether edits fit the failed call and are not what repaired it."""
    try:
        made = apply_edits(repair.failed.parameters, edits, value_sources)
    except EditDoesNotApplyError:
        return False
    mended = repair.mended.parameters
    return any(
        (name in made) != (name in mended) or not same_value(made.get(name), mended.get(name))
        for name in {name for edit in edits for name in names_of(edit)}
    )


def _count_repair(rule: RepairRule, repair: MinedRepair, schema_hash: str) -> None:
    weight = _LATER if repair.certainty == "later" else 1.0
    rule.add_repair(repair.mended.agent, session_of(repair.mended), weight)
    remember_name(rule.schema_hashes, schema_hash, MAX_PROFILES)
    remember_name(rule.execution_ids, repair.mended.execution_id, MAX_EXAMPLES)
    rule.last_seen = max(rule.last_seen or repair.mended.timestamp, repair.mended.timestamp)


def learn_outcome(
    knowledge: ToolKnowledge,
    signature: str,
    category: ErrorCategory,
    edits: list[Edit],
    outcome: Outcome,
    agent: str,
) -> None:
    """Add what became of a suggestion to its rule, in place, also of a failure not learned yet."""
    if len(edit_key(edits)) > MAX_EDITS_LENGTH:
        return  # too special: such a rule would serve no one
    known = knowledge.signature_to_update(signature, category)
    known.rule_to_update(edits).add_report(agent, outcome)


def success_document(workspace: str, execution: Execution) -> Document:
    """Return the document that stands for successes of this shape, with this one as its latest."""
    shape = shape_of(execution.parameters)
    text = call_text(execution.tool_name, execution.parameters, execution.context)
    return _make_document(workspace, "success", execution, shape, text)


def failure_document(workspace: str, execution: Execution, reading: ErrorReading) -> Document:
    """Return the document for failures of this signature, with this one as its latest."""
    text = failure_text(execution.tool_name, reading.signature)
    document = _make_document(workspace, "reflection", execution, reading.signature, text)
    document.signature = reading.signature
    document.category = reading.category
    return document


def tool_document_row_id(stored: StoredTool) -> str:
    """Return the id of a registered tool's document."""
    return tool_document_id(stored.tool_key, stored.tool.tool_id)


def tool_document(stored: StoredTool) -> Document:
    """Return the document of a registered tool."""
    return Document(
        document_id=tool_document_row_id(stored),
        kind="tool",
        server_name=stored.tool.server_name,
        tool_name=stored.tool.name,
        text=tool_text(stored.tool),
        terms=tool_terms(stored.tool),
        count=1,
    )


def evolution_document(stored: StoredPromotion) -> Document:
    """Return the document of a promotion.

    `tool_name` is the namespace, `version` the evolved one.
    """
    promotion = stored.promotion
    said = (name_words(stored.namespace), promotion.reason.strip(), promotion.mutation.strip())
    return Document(
        document_id=evolution_id(stored),
        kind="evolution",
        server_name=None,
        tool_name=stored.namespace,
        text=": ".join(each for each in said if each)[:MAX_TEXT],
        count=1,
        version=promotion.evolved_version,
        last_seen=promotion.promoted_at,
    )


def evolution_id(stored: StoredPromotion) -> str:
    """Return the id of a promotion's document."""
    what = f"{stored.namespace}\x1f{stored.promotion.evolved_version}"
    return document_id(stored.workspace, "evolution", None, None, what)


def add_to_document(known: Document, execution: Execution, reading: ErrorReading | None) -> None:
    """Let a document stand for one more call, in place: counts add up, the first text stays."""
    known.count += 1
    remember_name(known.agents, name_as_given(execution.agent))
    remember_name(known.execution_ids, execution.execution_id, MAX_EXECUTION_IDS)
    known.last_seen = max(known.last_seen or execution.timestamp, execution.timestamp)
    if reading is not None:
        known.category = reading.category


def session_of(execution: Execution) -> str:
    """Return a short text that distinguishes sessions; without one, an agent's days."""
    session = execution.session_id or f"{execution.agent}\x1f{execution.timestamp:%Y-%m-%d}"
    return make_mark(session, lambda name: hashlib.sha256(name.encode()).hexdigest()[:12])


def _make_document(
    workspace: str, kind: Kind, execution: Execution, what: str, text: str
) -> Document:
    return Document(
        document_id=document_id(workspace, kind, execution.server_name, execution.tool_name, what),
        kind=kind,
        server_name=execution.server_name,
        tool_name=execution.tool_name,
        text=text,
        count=1,
        agents=[name_as_given(execution.agent)],
        execution_ids=[execution.execution_id],
        last_seen=execution.timestamp,
    )


def counts_of_execution(
    cache: WorkspaceCache, stored: StoredExecution, reading: ErrorReading | None
) -> Mapping[Counter, int]:
    """Return what one execution counts as, as often as it stands for; `reading` is of its error."""
    execution, tool = stored.execution, stored.tool_key
    row = tool_row(tool)
    agent = _told_apart(cache, AGENTS, "", name_as_given(execution.agent), what.MAX_AGENTS)
    worked = reading is None
    names = [
        what.SUCCESS if worked else what.FAILURE,
        f"{what.AGENT_SUCCESS if worked else what.AGENT_FAILURE}{agent}",
    ]
    if reading is not None:
        document = document_id(tool.workspace, "reflection", *tool[1:], reading.signature)
        mark = mark_of(document).hex()
        signature = _told_apart(cache, SIGNATURES, row, mark, what.MAX_SIGNATURES)
        names += [f"{what.CATEGORY}{reading.category}", f"{what.SIGNATURE}{signature}"]
    if execution.tool_version is not None:
        version = _told_apart(
            cache, VERSIONS, row, name_as_given(execution.tool_version), what.MAX_VERSIONS
        )
        names.append(f"{what.VERSION_SUCCESS if worked else what.VERSION_FAILURE}{version}")
    if execution.attempt > 1:
        names.append(what.RETRY_SUCCESS if worked else what.RETRY_FAILURE)
    if execution.repaired_before:
        names.append(what.BEFORE_SUCCESS if worked else what.BEFORE_FAILURE)
    followed = execution.suggestion_id or execution.repair_of
    if worked and (execution.attempt > 1 or followed or execution.repaired_before):
        names.append(f"{what.AGENT_REPAIRED}{agent}")
    if execution.suggestion_id is not None:
        names.append(what.FOLLOWED_SUCCESS if worked else what.FOLLOWED_FAILURE)
    if execution.shadow is not None:
        done = (execution.shadow.before, execution.shadow.after)
        names += [f"{what.SHADOW}{each}.{execution.outcome}" for each in done if each]
    if execution.context and not execution.context.isspace():
        names.append(what.WITH_CONTEXT)
    if (bucket := what.bucket_of(execution.duration_ms)) is not None:
        names.append(f"{what.DURATION}{bucket}")
    hour = hour_of(execution.timestamp)
    counters = [Counter(what.COUNTED, hour), *(Counter(name, hour, tool) for name in names)]
    return dict.fromkeys(counters, stored.stands_for)


def counts_of_answer(issued: IssuedSuggestion) -> Mapping[Counter, int]:
    """Return what an answer of `/suggest` counts as, in the hour of its failure."""
    hour = hour_of(issued.failed_at or issued.issued_at)
    counted = [Counter(f"{what.ANSWER}{name}", hour, issued.tool) for name in issued.answered]
    return dict.fromkeys([Counter(what.COUNTED, hour), *counted] if counted else (), 1)


def _told_apart(cache: WorkspaceCache, kind: RowKind[Names], key: str, name: str, most: int) -> str:
    """Return the name, or that of all others where so many are shown apart already."""
    known = cache.get_or_make(kind, key)
    if name not in known.names:
        if len(known.names) >= most:
            return what.OTHER
        known.names.append(name)
        cache.put(kind, key)
    return name
