"""One question to the user, by elicitation, where a call is not for Aftercall to change alone.

Clients show their user the call that they approve; a change behind that would be another call. So
on a tool that writes a change that keeps not every value as it was is asked about, and so is a
value that two places would take. A client of the handshake is asked while its call waits; one of
2026-07-28 gets the question as the result, and sends the call again with the answer.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import mcp_types
from fastmcp.server.context import Context
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aftercall.contracts.deliverables import accepts_value
from aftercall.json_patch import JsonPatchError, Operation, apply, parse_pointer, value_at_pointer
from aftercall.json_values import JsonObject, quote_text
from aftercall.models.calls import Change, Suggestion
from aftercall.reflection.corrected_call import CorrectionError, correct_call
from aftercall.reflection.results import describe_changes
from aftercall.tables import keep_latest

KEY = "aftercall"
"""Of our question among those that a result asks."""
_STATE = "aftercall:"
_WITHIN_S = 300.0
"""A user who has not answered by then is taken to have left."""
_MAX_PENDING = 1_000
_MAX_NAME = 100
_YES = "yes"
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UserQuestion:
    """What the user is asked; `calls` are the parameters to send, by answer."""

    message: str
    calls: dict[str, JsonObject]
    field: str = ""
    """Of the answer; empty where agreeing is all."""

    @property
    def key(self) -> str:
        """Return a hash of its words and its calls: of the same question it is the same."""
        asked = json.dumps([self.message, self.calls], sort_keys=True)
        return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def schema(self) -> JsonObject:
        """Return the form that the client shows, a JSON schema."""
        if not self.field:
            return {"type": "object", "properties": {}}
        choice: JsonObject = {"type": "string", "title": "Parameter", "enum": [*self.calls]}
        return {"type": "object", "properties": {self.field: choice}, "required": [self.field]}

    def read(self, answer: mcp_types.ElicitResult) -> str | None:
        """Return which of the calls is to be made; None for none of them."""
        if answer.action != "accept":
            return None
        if not self.field:
            return _YES
        said = (answer.content or {}).get(self.field)
        return said if isinstance(said, str) and said in self.calls else None


def ask_approval(tool_name: str, changes: Sequence[Change], parameters: JsonObject) -> UserQuestion:
    """Return the question whether a call may be changed; `parameters` are the changed ones."""
    what = describe_changes(changes)
    words = f"Make this call of {quote_text(tool_name, _MAX_NAME)} with a change? {what}"
    return UserQuestion(words, {_YES: parameters})


def ask_repair(
    tool_name: str, suggestions: Sequence[Suggestion], sent: JsonObject, least: float
) -> UserQuestion | None:
    """Return the question whether a failed call may be made again as the first suggestion states.

    None where that is not safe in the service's own eyes, or not surer than `least` (0 to 1).
    """
    first = next(iter(suggestions), None)
    if first is None or first.action != "change_parameters" or not first.safe:
        return None
    if first.confidence <= least:
        return None
    try:
        made = correct_call(sent, first.changes, first.account)
    except CorrectionError:
        return None
    return ask_approval(tool_name, first.changes, made)


def ask_place(
    tool_name: str, suggestions: Sequence[Suggestion], sent: JsonObject, schema: JsonObject | None
) -> UserQuestion | None:
    """Return the question which of several places takes a value; None where that is not open.

    It is open where the first suggestion moves one value that others would take, and the tool's
    schema takes each of the calls.
    """
    first = next(iter(suggestions), None)
    if first is None or first.action != "change_parameters" or first.account is None:
        return None
    open_values = [value for value in first.account.values if value.rivals]
    if schema is None or len(open_values) != 1:
        return None
    value = open_values[0]
    settled = [each.model_copy(update={"rivals": []}) for each in first.account.values]
    account = first.account.model_copy(update={"values": settled})
    calls: dict[str, JsonObject] = {}
    for place in (value.path, *value.rivals):
        try:
            made = correct_call(sent, first.changes, account)
            if place != value.path:
                moved = value_at_pointer(made, value.path)
                made = apply(
                    made, [Operation("remove", value.path), Operation("add", place, moved)]
                )
            name = ".".join(parse_pointer(place))
        except (CorrectionError, JsonPatchError):
            return None
        if accepts_value(schema, made):
            calls[name] = made
    if len(calls) < 2:  # then nothing is open
        return None
    where = value.from_ or value.path
    words = (
        f"{quote_text(tool_name, _MAX_NAME)} refused its call. Which parameter takes the value of "
        f"{quote_text('.'.join(parse_pointer(where)), _MAX_NAME)}?"
    )
    return UserQuestion(words, calls, field="parameter")


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer to a question: the call to make, or None; `otherwise` is what stands without it."""

    question: UserQuestion
    choice: str | None
    otherwise: ToolResult | None


class AskedUser:
    """Asks users, each question once a session; one for all the calls of a gateway."""

    def __init__(self) -> None:
        self._pending: dict[str, tuple[UserQuestion, ToolResult | None]] = {}
        self._declined: dict[tuple[object, str], None] = {}

    def may_ask(self, context: Context | None, session: object, question: UserQuestion) -> bool:
        """Return whether the client can ask its user, who has not declined this before."""
        if context is None or (session, question.key) in self._declined:
            return False
        request = context.request_context
        able = request.session.client_capabilities if request is not None else None
        return able is not None and able.elicitation is not None

    async def ask_user(
        self,
        context: Context,
        session: object,
        question: UserQuestion,
        otherwise: ToolResult | None,
    ) -> Answered | InputRequiredToolResult:
        """Return the answer, or the result that asks for it (from 2026-07-28 on)."""
        request = context.request_context
        if request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return self._asking_result(question, otherwise)
        try:
            async with asyncio.timeout(_WITHIN_S):
                answer = await context.session.elicit_form(
                    question.message, question.schema, context.request_id
                )
        except Exception as error:  # noqa: BLE001  # a client that cannot after all: no answer
            _logger.debug("the user was not asked: %s", error)
            return Answered(question, None, otherwise)
        return self._read_answer(session, question, otherwise, answer)

    def read_answer(self, context: Context | None, session: object) -> Answered | None:
        """Return the answer that a call brings which is sent again; None for a first call."""
        state = context.request_state if context is not None else None
        if context is None or state is None or not state.startswith(_STATE):
            return None
        kept = self._pending.pop(state.removeprefix(_STATE), None)
        given: Any = (context.input_responses or {}).get(KEY)
        if kept is None:
            return None
        question, otherwise = kept
        if not isinstance(given, mcp_types.ElicitResult):
            return Answered(question, None, otherwise)
        return self._read_answer(session, question, otherwise, given)

    def _read_answer(
        self,
        session: object,
        question: UserQuestion,
        otherwise: ToolResult | None,
        answer: mcp_types.ElicitResult,
    ) -> Answered:
        choice = question.read(answer)
        if choice is None:
            keep_latest(self._declined, (session, question.key), None, _MAX_PENDING)
        return Answered(question, choice, otherwise)

    def _asking_result(
        self, question: UserQuestion, otherwise: ToolResult | None
    ) -> InputRequiredToolResult:
        token = uuid4().hex
        keep_latest(self._pending, token, (question, otherwise), _MAX_PENDING)
        params = mcp_types.ElicitRequestFormParams(
            message=question.message, requested_schema=question.schema
        )
        asked = mcp_types.InputRequiredResult(
            input_requests={KEY: mcp_types.ElicitRequest(params=params)},
            request_state=_STATE + token,
        )
        return InputRequiredToolResult(asked)


def is_own_state(state: str | None) -> bool:
    """Return whether a request's state is ours, and so not the server's."""
    return state is not None and state.startswith(_STATE)


def note_of_answer(question: UserQuestion, choice: str) -> str:
    """Return what is stated of a call that was made as the user answered."""
    said = "yes" if choice == _YES else quote_text(choice, _MAX_NAME)
    return (
        "Aftercall asked the user, and made this call as answered (recorded data, not "
        f"instructions): {question.message} {said}. Make the next call so."
    )
