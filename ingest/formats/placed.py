"""What a file says at a place, and how the executions of transcripts and logs are made. Pure.

Neither transcripts nor protocol logs have ids for executions. Here an id is made of what was called
and what came back, so that reading a file again, whole or longer than it was, gives the same ids.
"""

import hashlib
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import ValidationError

from aftercall.bounded import bounded_text
from aftercall.json_values import JsonValue, canonical_json
from aftercall.models import Execution
from ingest.formats.reading import Read, Unreadable

MAX_CONTEXT_CHARS = 4000
"""As the SDK bounds it."""

_MAX_NAME_CHARS = 256  # as the wire models have it
_NAMESPACE = uuid.UUID("5b0a3f0e-6c1d-5b52-9a34-6d0f0c6f7a51")
"""Of the ids made here; a change of it would count everything twice at the next import."""

_FIRST_YEAR, _LAST_YEAR = 1970, 2199  # as the wire models have it
_SECONDS_BELOW, _MILLIS_BELOW, _MICROS_BELOW = 1e11, 1e14, 1e17
"""Moments after 1973 in ms, µs and ns lie above these, and no moment before 5138 in s does."""


class Placed(NamedTuple):
    """Something read, and where: for an execution that the service rejects later."""

    where: str
    read: Read


@dataclass(frozen=True, slots=True)
class Given:
    """What a person says of a file, for what the file itself does not say."""

    at: datetime
    """When the calls were made whose time is nowhere in the file."""
    agent: str | None = None
    """Who made the calls, whatever the file says."""
    error_prefixes: tuple[str, ...] = ()
    """Results that begin so are failures; used for transcripts only, which have no flag for it."""


def placed_execution(where: str, **fields: Any) -> Placed:
    """The execution of these fields; what is wrong with them where it cannot be one."""
    try:
        return Placed(where, Execution.model_validate(fields))
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False)
        first = faults[0]
        name = bounded_text(".".join(str(part) for part in first["loc"]), 100) or "the call"
        return unreadable(where, f"{name}: {first['msg']}")


def unreadable(where: str, message: str) -> Placed:
    """What could not be read at a place."""
    return Placed(where, Unreadable(bounded_text(where, 200), message))


def stable_id(*parts: JsonValue) -> str:
    """An execution id that is the same for the same parts."""
    return str(uuid.uuid5(_NAMESPACE, digest(list(parts))))


def digest(value: JsonValue) -> str:
    """SHA-256 of the canonical JSON; also of text that has lone surrogates in it."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def name_of(value: object) -> str | None:
    """A name as the wire takes it; None for what is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return bounded_text(value, _MAX_NAME_CHARS) if isinstance(value, str) and value else None


def first_name(value: dict[str, Any], *keys: str) -> str | None:
    """The first of the members that is a name."""
    return next((name for key in keys if (name := name_of(value.get(key)))), None)


def first_moment(value: dict[str, Any], *keys: str) -> datetime | None:
    """The first of the members that is a moment."""
    return next((at for key in keys if (at := moment(value.get(key)))), None)


def moment(value: object) -> datetime | None:
    """A moment in UTC of a text (ISO 8601; without a zone it is UTC) or of a number since 1970.

    The number's size tells seconds, milli-, micro- and nanoseconds apart.
    """
    try:
        if isinstance(value, str) and not value.isdecimal():
            said = datetime.fromisoformat(value.strip().replace(",", "."))
            found = (said if said.tzinfo else said.replace(tzinfo=UTC)).astimezone(UTC)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            found = datetime.fromtimestamp(_seconds(float(value)), UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return found if _FIRST_YEAR <= found.year <= _LAST_YEAR else None


def _seconds(number: float) -> float:
    for bound, unit in ((_SECONDS_BELOW, 1), (_MILLIS_BELOW, 1e3), (_MICROS_BELOW, 1e6)):
        if abs(number) < bound:
            return number / unit
    return number / 1e9
