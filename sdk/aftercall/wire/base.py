"""What all wire models share: camelCase on the wire, unknown fields refused by name."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel

from aftercall.json_values import (
    JsonObject,
    JsonValue,
    check_json_object,
    check_json_value,
    check_text,
)


class WireModel(BaseModel):
    """Base of every wire model: immutable, camelCase out, both cases in, unknown fields refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
    )


def _canonical_uuid(text: str) -> str:
    try:
        return str(UUID(text))
    except ValueError:
        raise ValueError("must be a UUID, such as 0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d") from None


def _text_timestamp(value: object) -> object:
    if isinstance(value, str | datetime):
        return value
    raise ValueError("must be an RFC 3339 text with a zone, such as 2026-02-20T14:30:00Z")


Text = Annotated[str, AfterValidator(check_text)]
"""Text without NUL characters and lone surrogates."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(check_text)]
"""A name of an agent, a server, a tool, a session, ...: 1 to 256 characters."""

Id = Annotated[str, AfterValidator(_canonical_uuid)]
"""A UUID in its canonical lower-case text form."""

Timestamp = Annotated[AwareDatetime, BeforeValidator(_text_timestamp)]
"""A moment with a zone; RFC 3339 on the wire."""

Object = Annotated[
    JsonObject, PlainValidator(check_json_object), WithJsonSchema({"type": "object"})
]
"""A JSON object of plain, finite, clean values (see `aftercall.json_values`)."""

Json = Annotated[JsonValue, PlainValidator(check_json_value), WithJsonSchema({})]
"""Any plain JSON value."""
