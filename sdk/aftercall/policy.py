"""The policy: may a call be sent again without asking, and one true sentence why.

Service, SDK and gateway decide by these two functions, so that none has to trust another. How sure
a repair is does not matter here; what it could do wrong does (`change_classes`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aftercall.change_classes import QUORUM, alters_qualifier, is_destroying, reads_only
from aftercall.json_values import JsonObject
from aftercall.models.calls import ChangeClass, ErrorCategory, RetryAdvice, ToolAnnotations

NEVER_RETRIED: Final[frozenset[ErrorCategory]] = frozenset({"permission_denied", "user_rejected"})
"""Categories of errors that are for a person to settle."""
_LOSES_A_LIMIT: Final = "a parameter that limits what the call does would be lost or become another"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A repair of one failed call, with everything that the policy looks at."""

    change_class: ChangeClass
    """The class of the strictest of its changes."""
    tool_name: str
    hints: ToolAnnotations | None
    """Claims about the tool that the caller trusts."""
    before: JsonObject
    """Parameters of the failed call."""
    after: JsonObject
    """Parameters of the repaired call."""
    rejected: bool
    """Whether the failed call was refused before it ran."""
    principals: int = 0
    """How many principals made the same change to values like these."""
    quorum: int = QUORUM
    """How many principals a semantic change needs; the operator's setting."""
    refusal: str = ""
    """Why it is never followed, such as a question that it leaves open; empty where nothing is."""
    doubts: Sequence[str] = ()
    """Why it is not followed although its class may be; the first is the reason that is given."""


def decide_repair(repair: Repair) -> RetryAdvice:
    """Return whether the repaired call may be sent without asking (`safe`), with the reason."""
    reads = reads_only(repair.tool_name, repair.hints, repair.before)
    refusal = repair.refusal or _class_refusal(repair, reads=reads)
    if not refusal and repair.doubts:
        refusal = repair.doubts[0]
    if not refusal and not reads and alters_qualifier(repair.before, repair.after):
        refusal = _LOSES_A_LIMIT
    if refusal:
        return RetryAdvice(safe=False, reason=refusal)
    if repair.rejected:
        return RetryAdvice(safe=True, reason="the call was rejected before it ran")
    twice = "the tool says that doing it twice changes nothing"
    return RetryAdvice(safe=True, reason="the tool only reads" if reads else twice)


def _class_refusal(repair: Repair, *, reads: bool) -> str:
    """Return why the class of a repair is not followed on such a tool; empty where it is."""
    hints, kind = repair.hints, repair.change_class
    is_idempotent = hints is not None and bool(hints.idempotent_hint)
    if not (repair.rejected or reads or is_idempotent):
        return "the call may have had an effect, and nothing says that it can be repeated"
    if kind == "semantic":
        is_harmless = is_idempotent and hints is not None and hints.destructive_hint is False
        if not reads and not is_harmless:
            return "it means something else, and the tool does not only read"
        if repair.principals < repair.quorum:
            return "it means something else; that is for the caller to decide"
    if kind == "lossy" and not reads:
        return "something of what was asked is lost, and the tool does not only read"
    may_destroy = not repair.rejected or is_destroying(repair.tool_name, hints)
    if kind == "plausible" and not reads and may_destroy:
        return "the name is only likely to be the right one, and the tool may destroy"
    return ""


def decide_repeat(
    category: ErrorCategory,
    tool_name: str,
    hints: ToolAnnotations,
    call: JsonObject,
    *,
    rejected: bool,
) -> RetryAdvice:
    """Return whether the same call may be sent again (`safe`), with the reason.

    Args:
        category: category of the call's error.
        tool_name: name of the tool, by which it may be presumed to read.
        hints: claims about the tool that the caller trusts.
        call: parameters of the failed call.
        rejected: whether the call was refused before it ran.
    """
    if category in NEVER_RETRIED:
        return RetryAdvice(safe=False, reason="a refused call is not tried again")
    if rejected:
        return RetryAdvice(safe=True, reason="the call was rejected before it ran")
    if hints.read_only_hint:
        return RetryAdvice(safe=True, reason="the tool says that it only reads")
    if reads_only(tool_name, hints, call):
        return RetryAdvice(safe=True, reason="the tool only reads, by its name")
    if hints.idempotent_hint:
        reason = "the tool says that doing it twice changes nothing"
        return RetryAdvice(safe=True, reason=reason)
    reason = "the call may have had an effect, and nothing says that it can be repeated"
    return RetryAdvice(safe=False, reason=reason)
