"""Suggesting: gather what is known of a failed call, and let the pure core answer.

Most calls need no vector: what the schema, the error and what was learned say is found by its key.
One embedding and one index round trip at most; nothing is written that the caller waits for.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Protocol
from uuid import uuid4

from aftercall import models as m
from aftercall.background import ANSWERS, call_aside
from aftercall.change_classes import QUORUM, reads_only
from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, JsonValue, content_hash
from aftercall.outcomes import REFERRALS, TRANSIENT
from aftercall.redaction import Redactor
from aftercall.stages import stage
from aftercall.tables import gather_values
from embeddings.protocol import Embedder, EmbeddingError
from embeddings.text import question_text
from mongo.contents import IssuedSuggestion, StoredTool, as_named, suggestion_event
from mongo.errors import StoreError
from mongo.protocol import EventLog
from mongo.records import OWNER, Event, ToolKey
from retrieval.answers.answer import Answer, Question, answer
from retrieval.answers.judge.trust import is_contradicted, registered_schema, trusted_hints
from retrieval.answers.other_calls import _MAX_CALLED, _look_first, _other_tools, _stated_first
from retrieval.answers.proposers.case import CallContext, Case, profile_for, view_of
from retrieval.answers.proposers.faults import held_against_schema, read_by_schema, refused_by
from retrieval.answers.siblings import Sibling, may_be_siblings, sibling_of
from retrieval.answers.similar import like_calls
from retrieval.index.protocol import Hit, IndexQuery, VectorIndex, VectorIndexError
from retrieval.knowledge.memory import Memory
from retrieval.knowledge.reading.category import is_unknown_tool
from retrieval.knowledge.reading.classifier import CategoryHead, embedded_words
from retrieval.knowledge.reading.reader import ErrorReading, read_error
from retrieval.knowledge.rows.counters import ABSTAINED, ASKED, SURE, SURE_ABOVE, UNMADE
from retrieval.knowledge.rows.documents import (
    MAX_EXECUTION_IDS,
    CommonMistakes,
    Document,
    SeedEntry,
    document_id,
)
from retrieval.knowledge.rows.log import session_calls
from retrieval.knowledge.session.session_calls import EarlierCall
from retrieval.knowledge.tool.links import MAX_CALLS, Links
from retrieval.knowledge.tool.rules import ToolKnowledge, signature_id, skeleton_of, workspace_wide
from retrieval.knowledge.tool.runs import RecoveryTimes, Repeats, repeats_of, session_mark
from retrieval.knowledge.values.notations import with_arguments
from retrieval.knowledge.values.parameters import considered_part, is_large, says_something

NEAR_SUCCESSES = 20
"""Like successes asked for over all tools: some of the tools come up several times."""


_SEED_CATEGORY = 0.7
_MAX_UNSAVED = 10_000
_TOGETHER_S = 0.05
"""Answers of so long are stored at once: one alone takes a tenth of a millisecond from the next."""

log = logging.getLogger("aftercall.suggest")


class Journal(Protocol):
    """Keeps suggestions until they are in the log, for a process that is killed meanwhile."""

    def add(self, suggestion_id: str, issued: IssuedSuggestion, principal: str) -> None:
        """Keep a suggestion."""

    def clear(self) -> None:
        """Forget all: they are in the log."""


@dataclass(kw_only=True, eq=False)
class Suggester:
    """Answers `POST /suggest`; `on_stored` is called when answers were stored."""

    log: EventLog
    memory: Memory
    index: VectorIndex
    embedder: Embedder
    redactor: Redactor
    seeds: CommonMistakes
    quorum: Callable[[], int] = lambda: QUORUM
    """Principals whose own repairs a semantic change wants, when the question comes."""
    on_stored: Callable[[], None] = lambda: None
    journal: Journal | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _unsaved: dict[str, tuple[IssuedSuggestion, str]] = field(default_factory=dict, init=False)
    """By id, with their principals."""
    _saving: asyncio.Task[None] | None = field(default=None, init=False)
    _named_alike: tuple[list[ToolKey], dict[ToolKey, list[ToolKey]]] | None = field(
        default=None, init=False
    )
    """The tools that were called, and for each that was asked about which may be its siblings."""

    async def suggest(
        self,
        workspace: str,
        request: m.SuggestRequest,
        *,
        principal: str = OWNER,
        only_of: str | None = None,
    ) -> m.SuggestResponse:
        """Suggestions for a failed call, best first, or an abstention with its reason.

        Where none is sure, calls of the tool that worked stand next to them: with `only_of`, a
        principal, those that it recorded.
        """
        tool = self._tool_of(workspace, request.execution)
        with ANSWERS:
            found = await self._answered(workspace, request, principal)
            response = await self._with_like_calls(tool, request, found.response, only_of)
        self._remember(tool, found, request.execution, principal)
        return response

    async def _with_like_calls(
        self,
        tool: ToolKey,
        request: m.SuggestRequest,
        response: m.SuggestResponse,
        only_of: str | None,
    ) -> m.SuggestResponse:
        """Return the answer with calls that worked, where the agent has to decide itself."""
        call, best = request.execution, response.suggestions[:1]
        is_sure = any(each.confidence > SURE_ABOVE for each in best)
        if is_sure or not call.parameters_known or response.pattern.category in TRANSIENT:
            return response
        with stage("suggest.like_calls"):
            found = await like_calls(
                tool, call.parameters, call.context, log=self.log, memory=self.memory,
                redactor=self.redactor, agent=call.agent, only_of=only_of,
            )  # fmt: skip
        return response.model_copy(update={"similar": found})

    def _tool_of(self, workspace: str, call: m.FailedCall) -> ToolKey:
        """Return the tool under the name that its recorded calls have, without a secret in it."""
        name, server = self.redactor.identifier(call.tool_name), call.server_name
        return ToolKey(workspace, server and self.redactor.identifier(server), name)

    async def preview(
        self, workspace: str, request: m.SuggestRequest, *, principal: str = OWNER
    ) -> m.SuggestResponse:
        """Return the same answer for someone that looks.

        Nothing is remembered, so it has no outcome.
        """
        return (await self._answered(workspace, request, principal)).response

    async def gather(
        self, workspace: str, request: m.SuggestRequest, principal: str = OWNER
    ) -> Question:
        """Gather all that a failed call is answered from; nothing is remembered of it."""
        asked = considered_part(request.execution)
        call = as_named(
            await call_aside(self.redactor.call, asked, when=is_large(asked)), principal
        )
        call = with_arguments(call)
        # The store is asked for the session while text is read, embedded and looked up.
        session = asyncio.ensure_future(self._session_of(workspace, call))
        try:
            question = await self._gathered(workspace, request, principal, call, session)
            await session
        finally:
            session.cancel()  # nothing where it is done
            await asyncio.wait([session])
            if not session.cancelled():
                session.exception()  # stated by what is raised already
        return question

    async def _session_of(self, workspace: str, call: m.FailedCall) -> list[Event]:
        """Return the latest calls of the call's session, newest first."""
        if call.session_id is None:
            return []
        with stage("suggest.read_session"):
            sessions = [call.session_id]
            return await self.log.latest_events(
                workspace, "execution", MAX_CALLS, sessions=sessions
            )

    async def _gathered(
        self,
        workspace: str,
        request: m.SuggestRequest,
        principal: str,
        call: m.FailedCall,
        session: "asyncio.Future[list[Event]]",
    ) -> Question:
        """Return the question of a call whose session is still being read.

        Nothing here looks at it.
        """
        tool = ToolKey(workspace, call.server_name, call.tool_name)
        refused = cache(lambda: refused_by(call))  # once, and only where someone asks
        reading = read_by_schema(read_error(call.error, call.parameters), refused)
        seeds = self.seeds.find_entries(reading, call.tool_name)
        reading = reading if seeds else await self._classified(reading, call)
        with stage("suggest.read_tool"):
            knowledge = await self.memory.read_knowledge(tool)
            registered = await self.memory.find_tool(tool, principal)
        quorum = self.quorum()
        binds = quorum == 1 or (registered is not None and registered.is_registered_by(principal))
        annotations = trusted_hints(request.annotations, registered, binds=binds)
        if reading.category == "unknown" and seeds:  # then it is what the corpus states
            reading = replace(reading, category=seeds[0].category, confidence=_SEED_CATEGORY)
        reading = held_against_schema(call, reading, refused)
        case = case_of(
            call, reading, knowledge, registered, annotations, seeds,
            binds=binds,
            quorum=quorum,
            session=cache(lambda: session_calls(session.result()[::-1])),
        )  # fmt: skip
        if call.parameters_known and not _has_lesson(case):
            siblings = await self._siblings(tool, case)
            case = replace(case, siblings=siblings) if siblings else case
        with stage("suggest.read_context"):
            call_context = await self._call_context(
                tool, call, reading, case, knowledge, registered, annotations
            )
        scaling = await self.memory.read_scaling(workspace)
        return Question(case, call.error, annotations, call_context, scaling)

    async def _siblings(self, tool: ToolKey, case: Case) -> tuple[Sibling, ...]:
        """Return what repaired such an error on siblings of a tool."""
        called = await self.memory.list_called(tool.workspace, _MAX_CALLED)
        found = []
        if self._named_alike is None or self._named_alike[0] is not called:
            self._named_alike = called, {}
        alike = self._named_alike[1]
        if tool not in alike:
            alike[tool] = may_be_siblings(tool, called)
        for other in alike[tool]:
            known = await self.memory.read_sibling(other)
            names = case.view.parameters if case.view is not None else ()
            sibling = known and sibling_of(
                other, known, case.reading.signature, case.parameters, names
            )
            found += [sibling] if sibling else []
        return tuple(found)

    async def _call_context(
        self,
        tool: ToolKey,
        call: m.FailedCall,
        reading: ErrorReading,
        case: Case,
        knowledge: ToolKnowledge | None,
        registered: StoredTool | None,
        annotations: m.ToolAnnotations,
    ) -> CallContext:
        memory, redactor, now = self.memory, self.redactor, self.clock()

        def may_show(name: str, value: JsonValue) -> bool:
            shown = {name: value}
            return same_json(redactor.parameters(tool.tool_name, shown), shown)

        is_referral = reading.category in REFERRALS
        others = is_referral or is_unknown_tool(call.error, tool.tool_name)
        health = (await memory.read_health([tool])).get(tool) if is_referral else None
        repeats = Repeats()
        if knowledge is not None and call.parameters_known:
            repeats = repeats_of(
                knowledge.runs, call.parameters, signature_id(reading.signature), reading.category,
                session=session_mark(call.session_id, call.agent), now=now,
            )  # fmt: skip
        recoveries: tuple[RecoveryTimes, ...] = ()
        if reading.category in TRANSIENT:
            everywhere = await memory.read_knowledge(workspace_wide(tool.workspace))
            # The tool's own, then those of all tools, as the one that asks hears them.
            known = (
                each.recoveries.get(reading.category) for each in (knowledge, everywhere) if each
            )
            recoveries = tuple(times.heard_by(call.agent) for times in known if times)
        near = await self._near(tool, call, reading)
        return CallContext(
            now=now,
            tool_name=tool.tool_name,
            namespace=registered.tool.namespace if registered else None,
            server_name=tool.server_name,
            attempt=call.attempt,
            repeats=repeats,
            recoveries=recoveries,
            others=await _other_tools(tool.workspace, memory, near) if others else (),
            referrals=tuple(health.referrals) if health else (),
            may_show=may_show,
            stated_first=await _stated_first(tool, call, case, memory),
            look_first=await _look_first(tool, call, reading, annotations, memory),
            contract_changes=tuple(registered.tool.contract_changes) if registered else (),
        )

    def issued(self, workspace: str, suggestion_id: str) -> IssuedSuggestion | None:
        """Return a suggestion that was answered a moment ago and is not in the log yet."""
        found, _ = self._unsaved.get(suggestion_id, (None, OWNER))
        return found if found and found.tool.workspace == workspace else None

    def is_settled(self) -> bool:
        """Return whether all that was answered is in the log."""
        return not self._unsaved

    def count_unsaved(self, workspace: str) -> int:
        """Return how many answers of a workspace are not in the log yet."""
        return sum(issued.tool.workspace == workspace for issued, _ in self._unsaved.values())

    async def close(self) -> None:
        """Store the suggestions that are still to be stored."""
        if self._saving:
            await self._saving

    async def _answered(self, workspace: str, request: m.SuggestRequest, principal: str) -> Answer:
        started = time.perf_counter()
        question = await self.gather(workspace, request, principal)
        with stage("suggest.answer") as noted:
            found = answer(question, limit=request.limit)
            tool = self._tool_of(workspace, request.execution)
            found = await self._with_successes(tool, found)
            found = self._without_secrets(request.execution.tool_name, found)
            # Nothing of the call itself.
            response = found.response
            noted.note(
                category=response.pattern.category,
                abstained=response.abstained,
                suggestions=len(response.suggestions),
            )
            for best in response.suggestions[:1]:
                noted.note(confidence=best.confidence)
        took = {"took_ms": round((time.perf_counter() - started) * 1000, 3)}
        return replace(found, response=found.response.model_copy(update=took))

    async def _classified(self, reading: ErrorReading, call: m.FailedCall) -> ErrorReading:
        """Add the classifier's category, if it is sure and neither grammar nor corpus is."""
        if not reading.is_unsure:
            return reading
        head = CategoryHead.load(self.embedder.name)
        if head is None:
            return reading
        try:
            text = embedded_words(call.error.message)
            [vector] = await self.embedder.embed([text], "query")
        except EmbeddingError as error:
            log.warning("the error's category stays as it was read: %s", error)
            return reading
        found = head.classify_error(vector, text, reading.category)
        if found.category == "unknown":
            return reading
        return replace(
            reading,
            category=found.category,
            confidence=found.confidence,
            # A guess of another category is no ground for a retry of a call that writes.
            rejected_before_run=reading.rejected_before_run and found.category == reading.category,
        )

    async def _near(self, tool: ToolKey, call: m.FailedCall, reading: ErrorReading) -> list[Hit]:
        """Like successes of any tool, where they matter; none when the index fails."""
        if reading.category not in REFERRALS:
            return []
        text = question_text(tool.tool_name, call.parameters, call.context, reading.signature)
        try:
            with stage("suggest.embed"):
                [found] = await self.embedder.embed([text], "query")
            query = IndexQuery((tool.workspace,), "success", found, terms="", limit=NEAR_SUCCESSES)
            with stage("suggest.search") as noted:
                [hits] = await self.index.search_points([query])
                noted.note(hits=len(hits))
        except (EmbeddingError, VectorIndexError) as error:
            log.warning("answering without like calls: %s", error)
            return []
        return hits

    async def _with_successes(self, tool: ToolKey, found: Answer) -> Answer:
        """Return the answer with the successes that had a suggested call's very names and types."""
        ids = {
            each: document_id(tool.workspace, "success", *tool[1:], ranked.shape)
            for each, ranked in found.ranked.items()
            if ranked.shape is not None
        }
        if not ids:
            return found
        documents = await self.memory.read_documents(tool.workspace, list(set(ids.values())))
        kept = [
            suggestion
            if (known := documents.get(ids.get(suggestion.suggestion_id, ""))) is None
            else _beside(suggestion, known)
            for suggestion in found.response.suggestions
        ]
        return replace(found, response=found.response.model_copy(update={"suggestions": kept}))

    def _without_secrets(self, tool_name: str, found: Answer) -> Answer:
        """Return the answer without what is masked today.

        It may have been learned before it was.
        """
        redactor, response = self.redactor, found.response
        kept = [
            _redacted_words(suggestion, redactor)
            for suggestion in response.suggestions
            if (sent := suggestion.corrected_parameters) is None
            or same_json(redactor.parameters(tool_name, sent), sent)
        ]
        changes: dict[str, object] = {"suggestions": kept}
        if response.reason is not None:
            changes["reason"] = redactor.text(response.reason)
        if response.suggestions and not kept:
            changes |= {"abstained": True, "reason": "what is known of this failure is masked"}
        return replace(found, response=response.model_copy(update=changes))

    def _remember(self, tool: ToolKey, found: Answer, call: m.FailedCall, principal: str) -> None:
        response, now = found.response, self.clock()
        answer = IssuedSuggestion(
            tool=tool,
            category=response.pattern.category,
            signature=response.pattern.signature,
            issued_at=now,
            answered=_counted(response, is_watched=call.shadow is not None),
            agent=self.redactor.identifier(call.agent),
            session=call.session_id and self.redactor.session_id(call.session_id),
            failed_at=call.timestamp,
            faults=found.faults,
        )
        if len(self._unsaved) >= _MAX_UNSAVED:
            log.warning("too many suggestions wait to be stored; outcomes of some will be lost")
            return
        for suggestion in response.suggestions:
            ranked = found.ranked[suggestion.suggestion_id]
            issued = replace(
                answer, suggestion=suggestion, edit_key=ranked.edit_key, estimate=ranked.estimate
            )
            self._keep(suggestion.suggestion_id, issued, principal)
            answer = replace(answer, answered=())  # the first one counts for all
        if not response.suggestions:
            self._keep(str(uuid4()), answer, principal)
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save())

    def _keep(self, suggestion_id: str, issued: IssuedSuggestion, principal: str) -> None:
        self._unsaved[suggestion_id] = issued, principal
        if self.journal is not None:
            self.journal.add(suggestion_id, issued, principal)

    async def _save(self) -> None:
        while self._unsaved:
            await asyncio.sleep(_TOGETHER_S)
            batch = dict(self._unsaved)
            by_workspace = gather_values(
                (issued.tool.workspace, suggestion_event(key, issued, principal))
                for key, (issued, principal) in batch.items()
            )
            try:
                for workspace, events in by_workspace.items():
                    await self.log.append(workspace, events)
            except StoreError as error:
                log.warning("suggestions not stored, will be tried with the next: %s", error)
                return
            self.on_stored()
            for key in batch:
                self._unsaved.pop(key, None)
        if self.journal is not None:
            self.journal.clear()


def _counted(response: m.SuggestResponse, *, is_watched: bool) -> tuple[str, ...]:
    if not response.suggestions:
        return (ASKED, ABSTAINED, f"{ABSTAINED}:{response.pattern.category}")
    best = response.suggestions[0]
    sure = (SURE,) if best.confidence > SURE_ABOVE else ()
    unmade = (UNMADE,) if is_watched and sure and best.safe else ()
    return (ASKED, f"action:{best.action}", *sure, *unmade)


def _redacted_words(suggestion: m.Suggestion, redactor: Redactor) -> m.Suggestion:
    words = {
        "changes": [
            change.model_copy(update={"reason": redactor.text(change.reason)})
            for change in suggestion.changes
        ],
        "lesson": redactor.text(suggestion.lesson),
        "split": [redactor.text(part) for part in suggestion.split],
    }
    return suggestion.model_copy(update=words)


def _beside(suggestion: m.Suggestion, known: Document) -> m.Suggestion:
    before = suggestion.evidence
    ids = list(dict.fromkeys([*before.execution_ids, *known.execution_ids[-1:]]))
    evidence = {
        "successes": max(known.count, before.successes),
        "execution_ids": ids[:MAX_EXECUTION_IDS],
        "sources": list(dict.fromkeys([*before.sources, "similar"])),
    }
    return suggestion.model_copy(update={"evidence": before.model_copy(update=evidence)})


def _has_lesson(case: Case) -> bool:
    """Return whether something was learned of this very error, or no repair is for it."""
    known = case.signature
    if case.reading.category in TRANSIENT:
        return True
    return known is not None and any(not each.followed for each in known.examples)


def schema_for(
    call: m.Call,
    knowledge: ToolKnowledge | None,
    registered: StoredTool | None,
    *,
    binds: bool,
    writes: bool,
    quorum: int,
) -> JsonObject | None:
    """Return the schema to go by: the caller's, else the registered one if it is believed."""
    if call.input_schema:
        return call.input_schema
    schema = registered_schema(registered, binds=binds, writes=writes)
    if schema is not None and not binds:
        seen, _ = profile_for(knowledge, None, call.agent)
        if is_contradicted(schema, seen, quorum):
            return None
    return schema


def case_of(
    call: m.Call,
    reading: ErrorReading,
    knowledge: ToolKnowledge | None,
    registered: StoredTool | None,
    annotations: m.ToolAnnotations,
    seeds: tuple[SeedEntry, ...],
    *,
    binds: bool,
    quorum: int,
    session: Callable[[], Sequence[EarlierCall]] = tuple,
) -> Case:
    """Return the case of a call; `binds` states whether the asker registered the tool itself."""
    writes = not reads_only(call.tool_name, annotations)
    schema = schema_for(call, knowledge, registered, binds=binds, writes=writes, quorum=quorum)
    schema = schema if schema is not None and says_something(schema) else None
    is_foreign = not call.input_schema and schema is not None and not binds
    schema_hash = None if schema is None else content_hash(schema)
    profile, is_current = profile_for(knowledge, schema_hash, call.agent)
    return Case(
        parameters=call.parameters,
        parameters_known=call.parameters_known,
        is_text=call.arguments_text is not None,
        reading=reading,
        view=view_of(schema, profile),
        profile=profile,
        profile_is_current=is_current,
        signature=knowledge.find_signature(reading.signature) if knowledge else None,
        elsewhere=lambda: knowledge.other_repairs(reading.signature) if knowledge else None,
        like_signatures=(
            tuple(knowledge.similar_signatures(reading.signature, skeleton_of(reading)))
            if knowledge
            else ()
        ),
        session=session,
        context=call.context,
        agent=call.agent,
        seeds=seeds,
        links=knowledge.links if knowledge else Links(),
        writes=writes,
        is_foreign_schema=is_foreign,
        schema=schema,
        schema_hash=schema_hash,
        quorum=quorum,
        tool=call.tool_name,
    )
