"""Typed outcomes: a tool says that it succeeded, that it failed, or that this is not its job.

    return Outcome.ok(films, status="success_no_parse")
    return Outcome.wrong_tool_boundary(
        "this page has to be fetched and then read",
        boundary_axes=["transport", "extraction"],
        suggested_split=["http_get", "extract_titles"],
        evidence="the url answers with HTML, and only JSON is read here",
    )

Nothing here, and nothing that reads outcomes, turns a success into a failure by reading its text.
"""

from aftercall.outcomes.outcome import (
    STATUS_KEY,
    Outcome,
    ToolFailedError,
    error_in_result,
    log_line,
    status_in_result,
    unwrapped,
)
from aftercall.outcomes.typed_errors import (
    REFERRALS,
    is_referral,
    normalised_details,
    referral_details,
    referral_of,
    typed_error,
    typed_error_in_text,
)

__all__ = [
    "REFERRALS",
    "STATUS_KEY",
    "Outcome",
    "ToolFailedError",
    "error_in_result",
    "is_referral",
    "log_line",
    "normalised_details",
    "referral_details",
    "referral_of",
    "status_in_result",
    "typed_error",
    "typed_error_in_text",
    "unwrapped",
]
