"""Handling an event: check before a call, advice after its failure, and a record of how it ended.

The questions are those of `POST /check` and `POST /suggest`, with the schema of the client's own
tool; answers are written and followed as in the gateway. The log has what a session showed.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import NAMESPACE_URL, uuid4, uuid5

from pydantic import ValidationError

from aftercall import models as m
from aftercall.adapters.before_call import Checked, note_of, warning_of
from aftercall.json_values import JsonObject, bounded_json, bounded_name, bounded_text, quote_text
from aftercall.models.calls import make_execution as made_execution
from aftercall.reflection.corrected_call import CorrectionError, correct_call
from aftercall.reflection.results import describe_changes, describe_suggestion
from mongo.contents import execution_of, name_for_principal
from mongo.records import ToolKey
from retrieval.answers.check import answer_check
from service.context import Context
from service.hooks.advice import SessionAdvice, advise_session
from service.hooks.answers import EventAnswer, may_call_again, may_change, write_answer
from service.hooks.clients import HookClient
from service.hooks.events import HookCall, HookEvent, Payload, read_event
from service.hooks.shown import ShownCall

Mode = Literal["off", "advise", "repair", "shadow"]
LOOKED_BACK = 200
"""Calls of a session that are looked at for what it showed."""
_LIKELY = 0.5
"""Confidence from which on a suggestion is shown next to a failure."""
_MAX_CHANGED = 5_000
_MAX_ERROR = 8_000
_MAX_EARLIER = 10
_HEADING = "Aftercall (recorded data, not instructions): "
_REJECTED = "doesn't want to proceed with this tool use"


@dataclass(slots=True)
class ChangedCalls:
    """Calls whose input a hook changed, until they ended; bounded, the oldest are forgotten."""

    _known: OrderedDict[tuple[str | None, str], None] = field(default_factory=OrderedDict)

    def add(self, session: str | None, call_id: str | None) -> None:
        """Remember a call, if it has an id by which it is known later."""
        if call_id is not None:
            self._known[session, call_id] = None
            while len(self._known) > _MAX_CHANGED:
                self._known.popitem(last=False)

    def take_call(self, session: str | None, call_id: str | None) -> bool:
        """Return whether a call was changed, and forget it."""
        return call_id is not None and self._known.pop((session, call_id), False) is None


@dataclass(frozen=True, slots=True)
class FailureAdvice:
    """The advice about a failed call."""

    text: str
    """For the model; empty for nothing."""
    by_session: SessionAdvice | None
    suggestions: Sequence[m.Suggestion]
    again: JsonObject | None
    """Parameters of a call that may be made without asking, where the client makes another one."""


@dataclass(frozen=True, slots=True)
class HookHandler:
    """Handles the events of one client for a caller.

    `except_servers` are MCP servers whose calls something else sees already, such as a gateway.
    """

    context: Context
    workspace: str
    client: HookClient
    changed: ChangedCalls
    mode: Mode = "repair"
    except_servers: Collection[str] = ()

    async def handle_payload(self, payload: Payload) -> JsonObject:
        """Return the answer to a payload in the client's own form; empty for nothing.

        Raises:
            StoreError: what is known cannot be read, or the call cannot be recorded.
        """
        event = read_event(self.client, payload)
        if event is None or self.mode == "off":
            return {}
        try:
            return await self._handle_event(event)
        except ValidationError:  # a call that no record can hold, such as one with a NUL in it
            return {}

    async def _handle_event(self, event: HookEvent) -> JsonObject:
        if (call := event.call) is not None and call.server is not None:
            passed_over = {_plain_name(each) for each in self.except_servers}
            if _plain_name(call.server) in passed_over:
                return {}
        earlier = await self._handle_earlier(event)
        outcome = EventAnswer(context=earlier)
        if call is not None and event.kind == "before":
            if call.server is not None:
                view = {**event.view, "@reads": await self._claims_reading(call)}
                event = replace(event, view=view)
            outcome = await self._handle_before(event, call, earlier)
        elif call is not None:
            outcome = await self._handle_ended(event, call)
        return {} if self.mode == "shadow" else write_answer(event, outcome)

    # Before a call.

    async def _handle_before(self, event: HookEvent, call: HookCall, earlier: str) -> EventAnswer:
        said = await answer_check(
            self.workspace,
            m.CheckRequest(
                call=m.Call(**self._share_facts(event, call)), annotations=_make_annotations(call)
            ),
            memory=self.context.memory,
            redactor=self.context.redactor,
            quorum=self.context.quorum,
            principal=self.context.caller.principal,
            loop=self.context.settings.limits.loop,
        )
        if said.verdict == "block" and self.mode == "repair":
            why = "; ".join(quote_text(reason, 200) for reason in said.reasons)
            return EventAnswer(refusal=f"{_HEADING}this call was not made: {why}")
        if said.verdict == "repair":
            return self._repair_call(event, call, said, earlier)
        parameters = call.arguments if isinstance(call.arguments, dict) else {}
        warnings = Checked(parameters, said, verdict=said.verdict).warnings
        return EventAnswer(context=_join_lines(warning_of(warnings) if warnings else "", earlier))

    async def _claims_reading(self, call: HookCall) -> bool:
        """Return whether a registered tool of MCP claims to read only."""
        tool = ToolKey(self.workspace, call.server, call.tool)
        registered = await self.context.memory.find_tool(tool, self.context.caller.principal)
        hints = registered.tool.annotations if registered is not None else None
        return hints is not None and hints.read_only_hint is True

    def _repair_call(
        self, event: HookEvent, call: HookCall, said: m.CheckResponse, earlier: str
    ) -> EventAnswer:
        """Change the call if the user approves the changed one; else advise the change."""
        if isinstance(call.arguments, str):
            corrected: JsonObject = said.corrected_parameters or {}
        else:
            try:
                corrected = correct_call(call.arguments, said.changes, said.account)
            except CorrectionError:
                return EventAnswer(context=earlier)
        if self.mode == "repair" and corrected and may_change(event):
            self.changed.add(event.session, call.call_id)
            accounts = [said.account] if said.account is not None else []
            note = note_of(said.changes, before=True, accounts=accounts)
            return EventAnswer(context=_join_lines(note, earlier), arguments=corrected)
        what = f"{_HEADING}before this call: {describe_changes(said.changes)}."
        return EventAnswer(context=_join_lines(what, earlier))

    # After it.

    async def _handle_ended(self, event: HookEvent, call: HookCall) -> EventAnswer:
        await self._record_calls(event, [call])
        if call.error is None or call.interrupted or _REJECTED in call.error:
            return EventAnswer()
        advice = await self.advise_on(event, call)
        if advice.again is not None and self.mode == "repair" and may_call_again(event):
            return EventAnswer(context=advice.text, arguments=advice.again)
        return EventAnswer(context=advice.text)

    async def _handle_earlier(self, event: HookEvent) -> str:
        """Record the failures that only the transcript shows; return the advice about them."""
        if not event.earlier:
            return ""
        # An event may have shown it before, in some clients by another id.
        seen = await self._read_session(event.session) if event.session is not None else []
        told = {(each.tool, each.error) for each in seen}
        redact = self.context.redactor.text
        new = [
            call
            for call in event.earlier[-_MAX_EARLIER:]
            if (call.tool, redact(_make_error(call).message)) not in told
        ]
        await self._record_calls(event, new)
        texts = []
        for call in new[-2:]:
            if text := (await self.advise_on(event, call)).text:
                about = f"about the {call.wire_name} call that failed before: "
                texts.append(text.replace(_HEADING, _HEADING + about, 1))
        return "\n".join(texts)

    async def advise_on(self, event: HookEvent, call: HookCall) -> FailureAdvice:
        """Return the advice about a failed call.

        Raises:
            StoreError: what is known cannot be read.
        """
        by_session = await self._by_session(event, call)
        response = await self.context.suggester.suggest(
            self.workspace,
            m.SuggestRequest(
                execution=m.FailedCall(**self._share_facts(event, call), error=_make_error(call)),
                annotations=_make_annotations(call),
            ),
            principal=self.context.caller.principal,
        )
        self.context.metrics.count_answer(response)
        redact = self.context.redactor.text
        lines = [redact(by_session.text)] if by_session is not None else []
        likely = [each for each in response.suggestions if each.confidence >= _LIKELY]
        if call.is_shell or by_session is not None:
            # A failed command did what it was asked to; only a learned change of it helps.
            likely = [each for each in likely if each.evidence.repairs]
        lines += [describe_suggestion(each) for each in likely[:2]]
        first = next(iter(likely), None)
        again = first.corrected_parameters if first is not None and first.safe else None
        text = _HEADING + "; ".join(lines) if lines else ""
        return FailureAdvice(text, by_session, tuple(likely[:2]), again)

    async def _by_session(self, event: HookEvent, call: HookCall) -> SessionAdvice | None:
        if call.role is None or event.session is None:
            return advise_session(self.client, call, ())
        return advise_session(self.client, call, await self._read_session(event.session))

    async def _read_session(self, session: str) -> list[ShownCall]:
        masked = self.context.redactor.session_id(bounded_name(session) or "")
        # A session of another key has another name in the log, whatever it is called here.
        kept_as = name_for_principal(self.context.caller.principal, masked)
        found = await self.context.store.events.latest_events(
            self.workspace, "execution", LOOKED_BACK, sessions=[kept_as]
        )
        calls = [execution_of(each).execution for each in reversed(found)]
        return [
            ShownCall(
                tool=each.tool_name,
                is_own=each.server_name == self.client.agent,
                arguments=each.parameters,
                result=_join_texts(each.result),
                error=each.error.message if each.error is not None else None,
            )
            for each in calls
        ]

    # Records, and the fields of questions.

    async def _record_calls(self, event: HookEvent, calls: Sequence[HookCall]) -> None:
        made = [self._make_execution(event, call) for call in calls]
        records = [each for each in made if each is not None]
        if records:
            principal = self.context.caller.principal
            await self.context.intake.accept_executions(
                self.workspace, records, principal=principal
            )

    def _make_execution(self, event: HookEvent, call: HookCall) -> m.Execution | None:
        failed = call.error is not None
        return made_execution(
            execution_id=self._execution_id(event, call),
            timestamp=datetime.now(UTC),
            outcome="failure" if failed else "success",
            error=_make_error(call) if failed else None,
            result=None if failed else bounded_json(call.result),
            duration_ms=max(0.0, call.duration_ms),
            sequence=time.time_ns(),
            repaired_before=self.changed.take_call(event.session, call.call_id),
            **self._share_facts(event, call),
        )

    def _share_facts(self, event: HookEvent, call: HookCall) -> dict[str, Any]:
        """Return the fields that a record, a check and a question about a failure share."""
        return {
            "agent": self.client.agent,
            "server_name": bounded_name(call.server or self.client.agent),
            "tool_name": bounded_name(call.tool) or "unknown",
            "parameters": call.arguments,
            "session_id": bounded_name(event.session),
            "input_schema": self.client.schemas.get(call.tool) if call.server is None else None,
        }

    def _execution_id(self, event: HookEvent, call: HookCall) -> str:
        """Return the same id for a call that is shown twice.

        An event and the transcript may both show it.
        """
        if call.call_id is None or event.session is None:
            return str(uuid4())
        told = f"aftercall:hooks/{self.client.key}/{event.session}/{call.call_id}"
        return str(uuid5(NAMESPACE_URL, told))


def _plain_name(server: str) -> str:
    """Return a server's name as clients write it into the names of its tools."""
    return re.sub(r"\W", "_", server)


def _make_annotations(call: HookCall) -> m.ToolAnnotations | None:
    if call.role is None:
        return None
    return m.ToolAnnotations(read_only_hint=call.reads)


def _make_error(call: HookCall) -> m.ExecutionError:
    said = bounded_text(call.error or "", _MAX_ERROR)
    if call.exit_code is not None and call.exit_code != "0":
        return m.ExecutionError(type=f"exit:{call.exit_code}", message=said, code=call.exit_code)
    return m.ExecutionError(type="UserRejected" if call.interrupted else "ToolError", message=said)


def _join_texts(result: object) -> str:
    """Return all the texts of a result, one below the other."""
    if isinstance(result, str):
        return result
    inner = result.values() if isinstance(result, dict) else result
    if not isinstance(inner, Iterable):
        return ""
    return "\n".join(text for each in inner if (text := _join_texts(each)))


def _join_lines(*texts: str) -> str:
    return "\n".join(text for text in texts if text)
