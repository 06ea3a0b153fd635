"""An outcome in one line of a log: short, bounded, without secrets."""

import json

from aftercall.bounded import bounded_text
from aftercall.models.calls import ExecutionError
from aftercall.outcomes.outcome import Outcome
from aftercall.outcomes.referrals import referral_of
from aftercall.outcomes.words import one_line
from aftercall.redaction import DEFAULT_REDACTOR

MAX_LINE_CHARS = 500
_MAX_MESSAGE_CHARS = 200
_MAX_NAME_CHARS = 80
_MOST_AXES = 5


def log_line(outcome: Outcome[object], *, tool: str | None = None) -> str:
    """Such as `outcome=error tool="get" type=wrong_tool_boundary axes=["transport"] evidence=yes`.

    At most 500 characters on one line. The value of a success is not in it; texts of the tool are
    JSON strings, so that none can pass for another field.
    """
    parts = ["outcome=ok" if outcome.error is None else "outcome=error"]
    if tool is not None:
        parts.append(f"tool={_quoted(tool, _MAX_NAME_CHARS)}")
    if outcome.status is not None:
        parts.append(f"status={_quoted(outcome.status, _MAX_NAME_CHARS)}")
    if outcome.error is not None:
        parts += _of_error(outcome.error)
    return bounded_text(" ".join(parts), MAX_LINE_CHARS)


def _of_error(error: ExecutionError) -> list[str]:
    parts = [f"type={_quoted(error.type, _MAX_NAME_CHARS)}"]
    referral = referral_of(error)
    if referral is not None:
        if referral.boundary_axes:
            axes = ",".join(
                _quoted(a, _MAX_NAME_CHARS) for a in referral.boundary_axes[:_MOST_AXES]
            )
            more = ",..." if len(referral.boundary_axes) > _MOST_AXES else ""
            parts.append(f"axes=[{axes}{more}]")
        if referral.suggested_split:
            parts.append(f"split={len(referral.suggested_split)}")
        parts.append(f"evidence={'yes' if referral.evidence else 'no'}")
    parts.append(f"message={_quoted(error.message, _MAX_MESSAGE_CHARS)}")
    return parts


def _quoted(text: str, max_chars: int) -> str:
    return json.dumps(one_line(DEFAULT_REDACTOR.text(text), max_chars), ensure_ascii=False)
