"""Values as the stores keep them: names, times and wire models."""

import json
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from mongo.errors import StoreDamagedError

Model = TypeVar("Model", bound=BaseModel)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

FOLLOWS = '"suggestionId":"'
"""What the JSON of an execution that followed a suggestion has in it; others' may, too."""

MENDS = '"repairOf":"'
"""The same of one that names the failure that it mends."""


def server_column(server_name: str | None) -> str:
    """'' stands for no server: null would not be unique in a key, and no real name is empty."""
    return server_name or ""


def server_name(column: str) -> str | None:
    """The reverse of `server_column`."""
    return column or None


def to_microseconds(moment: datetime) -> int:
    """Microseconds since 1970 in UTC, exact."""
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """The moment in UTC."""
    return _EPOCH + timedelta(microseconds=count)


def follows_suggestion(data: str) -> bool:
    """Whether an execution followed a suggestion, from its stored JSON."""
    return FOLLOWS in data and json.loads(data).get("suggestionId") is not None


def mended_by(data: str) -> str | None:
    """The failed execution that an execution names as mended, from its stored JSON."""
    if MENDS not in data:
        return None
    found: str | None = json.loads(data).get("repairOf")
    return found


def parse(model: type[Model], data: str) -> Model:
    """A wire model from its stored JSON.

    Raises:
        StoreDamagedError: when it is not one.
    """
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        # The values stay out of the message: they are what agents sent.
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise StoreDamagedError(
            f"a stored {model.__name__} cannot be read ({faults[0]['loc']}: {faults[0]['msg']}): "
            "restore a backup of the store, or report this if it follows an upgrade"
        ) from None
