"""What goes wrong, as a sentence for a model: what it is, and what helps. Never a stack trace."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from aftercall.bounded import bounded_text
from aftercall.errors import (
    AftercallError,
    ApiError,
    ProtocolError,
    ServiceFailedError,
    ServiceTimeoutError,
    ServiceUnreachableError,
)

MAX_MESSAGE = 1_000
"""Characters of a fault; the service's own messages have at most 500."""

UNEXPECTED = (
    "something unexpected happened while this tool ran; nothing is known to be wrong with the "
    "arguments. Trying once more may help; the log of the MCP server has more"
)

_SHOWN = 5
"""Faults named in one message; arguments with more have one cause."""

_MAX_NAME = 60
"""Characters of a caller's own field name that a message repeats."""


class RefusedError(AftercallError):
    """The service took the request and refused what was in it; the message says why."""


def explain(error: AftercallError, url: str) -> str:
    """An error of the client.

    Args:
        error: what it raised.
        url: where the service is.
    """
    return bounded_text(_words(error, url), MAX_MESSAGE)


def _words(error: AftercallError, url: str) -> str:
    if isinstance(error, ServiceTimeoutError):
        return f"the service at {url} did not answer in time; try again shortly"
    if isinstance(error, ServiceUnreachableError):
        return (
            f"there is no Aftercall service at {url}. Go on without it for now; whoever runs this "
            "machine can start it with `aftercall serve`, or name another with --service URL or "
            "AFTERCALL_URL. This tool works again as soon as the service is there"
        )
    if isinstance(error, ProtocolError):
        return f"what answers at {url} is no Aftercall service of this version; check the address"
    if isinstance(error, ServiceFailedError) and error.retry_after_s is not None:
        return f"{error.message}; come back in {error.retry_after_s:g} s"
    return error.message if isinstance(error, ApiError) else str(error)


def explain_arguments(error: ValidationError, model: type[BaseModel]) -> str:
    """Which arguments are wrong, and what they must be. No value is repeated: it may be secret."""
    faults = error.errors(include_input=False, include_url=False)
    # A misspelt argument also shows as a missing one; its own sentence is the more helpful.
    faults.sort(key=lambda fault: fault["type"] != "extra_forbidden")
    sentences = [_sentence(fault, model) for fault in faults[:_SHOWN]]
    if len(faults) > _SHOWN:
        sentences.append(f"and {len(faults) - _SHOWN} more")
    return f"the arguments are wrong: {'; '.join(sentences)}. Call again with these mended"


def _sentence(fault: Mapping[str, Any], model: type[BaseModel]) -> str:
    names = list(_names(fault["loc"]))
    path = ".".join(names)
    if fault["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in model.model_fields.items()]
        near = get_close_matches(names[-1], known, 1) if len(names) == 1 else []
        cure = f"did you mean `{near[0]}`?" if near else "leave it out"
        return f"`{path}` is unknown, {cure}"
    if fault["type"] == "missing":
        return f"`{path}` is missing"
    message = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return f"`{path}` {message}" if path else message


def _names(location: tuple[int | str, ...]) -> Iterator[str]:
    for part in location:
        yield bounded_text(str(part), _MAX_NAME)
