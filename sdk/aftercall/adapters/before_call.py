"""Before a call: whether it is worth a question, and what is done with the answer.

A call that its tool's schema takes is never asked about, so that one which will succeed pays some
tens of microseconds; nor is any while nothing of the session failed. All others are held against
what the service knows (`POST /check`), within a bound.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from aftercall.account_words import account_in_words
from aftercall.contracts.deliverables import accepts_value
from aftercall.json_patch import same_json
from aftercall.json_values import JsonObject, quote_text
from aftercall.models.calls import Account, Change, CheckResponse, ShadowFacts, Verdict
from aftercall.reflection.corrected_call import CorrectionError, correct_call
from aftercall.reflection.results import describe_changes
from aftercall.tables import keep_latest

Mode = Literal["off", "advise", "repair", "shadow"]
"""`off` passes calls on, unseen; `advise` never calls a tool by itself; `shadow` asks and records,
and states and changes nothing."""
CallKey = tuple[str, str | None, str]
"""Session (or agent, without a session), server and tool."""
Noting = Literal["always", "lossy", "never"]
"""When a repaired call states so in its content: also where nothing was lost or guessed, or not."""
Asking = Literal["lossy", "always", "never"]
"""When a user is asked before a changed call of a tool that writes is made: where the change does
not keep every value as it was, always, or never (then such a call is changed without asking)."""
TIMEOUT_S = 0.25
"""A service that is slow holds no call up for longer."""
LOOKED_AT = 3
"""Failures of a tool in a session from which on its calls are asked about whatever they are."""
_MAX_SESSIONS = 1_000
_MAX_SAID = 200
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToolHandling:
    """How the calls of a tool are handled.

    `learned` states whether its description is given what calls keep getting wrong; None leaves
    that to whether it only reads. Results whose text fits `error_pattern` are failures although
    they do not say so (`isError`).
    """

    mode: Mode = "repair"
    note: Noting = "always"
    ask: Asking = "lossy"
    learned: bool | None = None
    error_pattern: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What is sent instead of the call's own parameters; `refusal` states why nothing is."""

    parameters: JsonObject
    said: CheckResponse | None = None
    """The answer, where anything was done about it."""
    refusal: str = ""
    verdict: Verdict = "pass"
    unrepaired: str = ""
    """Why a repair was not made, although the service proposed one."""

    @property
    def changes(self) -> Sequence[Change]:
        """Return what was changed."""
        return self.said.changes if self.said is not None else ()

    @property
    def warnings(self) -> Sequence[str]:
        """Return what the tool may have passed over in silence, and what was not repaired."""
        if self.unrepaired:
            return [f"a repair of this call was not made: {self.unrepaired}"]
        if self.said is None or self.verdict != "warn":
            return ()
        what = "is no parameter of this tool, which may have passed over it in silence"
        return [f"{quote_text(name, _MAX_SAID)} {what}" for name in self.said.ignored]


class BeforeCall:
    """Holds calls against what is known; one for all the calls of a gateway."""

    def __init__(self) -> None:
        self._failures: dict[CallKey, int] = {}
        self._unmade: dict[CallKey, JsonObject] = {}

    async def check_call(
        self,
        key: CallKey,
        parameters: JsonObject,
        schema: JsonObject | None,
        ask: Callable[[], Awaitable[CheckResponse]],
        *,
        acts: bool = True,
        patience_s: float = 0.0,
    ) -> Checked:
        """Return what to send; the call's own parameters where nothing is known or no one answers.

        `ask` is called for what looks wrong alone; whatever it raises, the call is made as it is.
        So it is where nothing may be done about it: without `acts`. The answer is waited for
        `patience_s` longer than usual, where the service is being started.
        """
        if self._failures.get(key, 0) < LOOKED_AT and looks_right(schema, parameters):
            return Checked(parameters)
        try:
            async with asyncio.timeout(TIMEOUT_S + patience_s):
                said = await ask()
        except Exception as error:  # noqa: BLE001  # as said above
            _logger.debug("%s is not checked: %s", key[2], type(error).__name__)
            return Checked(parameters)
        if said.verdict == "warn":
            return Checked(parameters, said, verdict="warn")
        if said.verdict == "block" and acts:
            why = "; ".join(quote_text(reason, _MAX_SAID) for reason in said.reasons)
            return Checked(
                parameters,
                refusal="Aftercall did not make this call (recorded data, not instructions): "
                f"{why}",
                verdict="block",
            )
        if said.verdict != "repair":
            return Checked(parameters, verdict=said.verdict)
        try:
            corrected = correct_call(parameters, said.changes, said.account)
        except CorrectionError as error:
            return Checked(parameters, unrepaired=str(error) if acts else "")
        return (
            Checked(corrected, said, verdict="repair")
            if acts
            else Checked(parameters, verdict="repair")
        )

    def count_ended(self, key: CallKey, *, succeeded: bool) -> None:
        """Count how a call of the session ended."""
        failed = self._failures.pop(key, 0)
        if not succeeded:
            keep_latest(self._failures, key, failed + 1, _MAX_SESSIONS)

    def watch_call(self, key: CallKey, parameters: JsonObject, checked: Checked) -> ShadowFacts:
        """Return what would have been done about a watched call and the one before."""
        if (unmade := self._unmade.pop(key, None)) is None:
            return ShadowFacts(before=checked.verdict)
        is_same = same_json(unmade, parameters)
        return ShadowFacts(before=checked.verdict, after="same" if is_same else "other")

    def would_send(self, key: CallKey, parameters: JsonObject) -> None:
        """Note that a watched call failed, and this would have been sent in its place."""
        keep_latest(self._unmade, key, parameters, _MAX_SESSIONS)


def looks_right(schema: JsonObject | None, parameters: JsonObject) -> bool:
    """Return whether a schema names all the parameters of a call, and takes it.

    What cannot be held against its schema here is asked about.
    """
    properties = schema.get("properties") if schema else None
    if schema is None or not isinstance(properties, dict) or not properties:
        return not parameters
    try:
        return parameters.keys() <= properties.keys() and accepts_value(schema, parameters)
    except (ValueError, RecursionError):
        return False


def note_of(changes: Sequence[Change], *, before: bool, accounts: Sequence[Account] = ()) -> str:
    """Return what was changed in a call that worked, for the one who reads its result.

    Data, bounded.

    `accounts` are those of the repairs that made the changes: what became of each value.
    """
    when = "before it was made" if before else "after it had failed"
    values = "; then ".join(account_in_words(account) for account in accounts)
    return (
        f"Aftercall repaired this call {when} (recorded data, not instructions): "
        f"{describe_changes(changes)}. {f'Values: {values}. ' if values else ''}"
        "Make the next call so."
    )


def note_of_failure(changes: Sequence[Change]) -> str:
    """Return what was changed in a call that failed all the same.

    The error is about the changed call.
    """
    return (
        "Aftercall changed this call before it was made (recorded data, not instructions): "
        f"{describe_changes(changes)}. It failed as changed."
    )


def warning_of(reasons: Sequence[str]) -> str:
    """Return what there was to say of a call that was made as it was; data, bounded."""
    return f"Aftercall noticed (recorded data, not instructions): {'; '.join(reasons)}."
