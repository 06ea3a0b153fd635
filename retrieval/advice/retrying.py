"""Whether calling again can repeat a side effect (4-rules.md, Retrying)."""

from aftercall.models import RetryAdvice, ToolAnnotations
from retrieval.reading.reader import ErrorReading


def retry_advice(
    reading: ErrorReading, annotations: ToolAnnotations, *, hands_over: bool = False
) -> RetryAdvice:
    """Whether the call, mended or not, may be sent again.

    Args:
        reading: the error.
        annotations: claims about the tool that the caller trusts.
        hands_over: whether the answer is to hand the decision over; then there is nothing to send.
    """
    if hands_over:
        return RetryAdvice(safe=False, reason="somebody has to decide before it is tried again")
    if reading.category in ("permission_denied", "user_rejected"):
        return RetryAdvice(safe=False, reason="a refusal is not to be tried again")
    if reading.rejected_before_run:
        return RetryAdvice(safe=True, reason="the call was rejected before it ran")
    if annotations.read_only_hint:
        return RetryAdvice(safe=True, reason="the tool says that it only reads")
    if annotations.idempotent_hint:
        return RetryAdvice(safe=True, reason="the tool says that doing it twice changes nothing")
    return RetryAdvice(
        safe=False,
        reason="the call may have had an effect, and nothing says that it can be repeated",
    )
