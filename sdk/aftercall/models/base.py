"""What all models of the contract share: camelCase in JSON, unknown fields refused by name."""

import ast
import inspect
import linecache
import re
import sys
from collections import ChainMap
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Annotated, Any
from uuid import UUID

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    Strict,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from aftercall.json_values import (
    JsonObject,
    JsonValue,
    check_json_object,
    check_json_value,
    check_text,
    clean_text,
    replace_unstorable,
)


class WireModel(BaseModel):
    """Base of every wire model: immutable, camelCase out, both cases in, unknown fields refused."""

    model_config = ConfigDict(
        defer_build=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema with descriptions, which pydantic would read at each import."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, said in field_descriptions(cls).items():
            if (field := cls.model_fields.get(name)) and field.description is None:
                properties[name if name in properties else field.alias]["description"] = said
        return schema


def field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return what stands under a model's fields in its source, by field."""
    kinds = model.__mro__[: model.__mro__.index(BaseModel)]
    return dict(ChainMap(*(_under_fields(k.__module__).get(k.__name__, {}) for k in kinds)))


@cache
def _under_fields(module: str) -> dict[str, dict[str, str]]:
    source = linecache.getlines(getattr(sys.modules[module], "__file__", ""))  # none: no lines
    tree = ast.parse("".join(source))
    return {
        kind.name: {
            ast.unparse(field.target): inspect.cleandoc(ast.literal_eval(text.value))
            for field, text in pairwise(kind.body)
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
        }
        for kind in ast.walk(tree) if isinstance(kind, ast.ClassDef)
    }  # fmt: skip


_UUID_PATTERN = "^[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}$"
_UUID = re.compile(_UUID_PATTERN)
_DATE_AND_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = 1970, 2199  # every store's clock and every epoch in use can hold these


def _canonical_uuid(text: str) -> str:
    # UUID() alone also takes braces, URNs, underscores, spaces and digits of any script.
    if not _UUID.fullmatch(text):
        raise ValueError("must be a UUID, such as 0b7e1c9a-2a4e-4b0e-9d5c-3f1f6a1b2c3d")
    return str(UUID(text))


def _text_timestamp(value: object) -> object:
    # pydantic would read "1700000000" as seconds since 1970.
    if isinstance(value, datetime) or (isinstance(value, str) and _DATE_AND_TIME.match(value)):
        return value
    raise ValueError("must be an RFC 3339 text with a zone, such as 2026-02-20T14:30:00Z")


def _in_utc(value: datetime) -> datetime:
    # Near the ends of the calendar the change of zone itself overflows.
    far = not _FIRST_YEAR - 1 <= value.year <= _LAST_YEAR + 1
    if far or not _FIRST_YEAR <= (moment := value.astimezone(UTC)).year <= _LAST_YEAR:
        raise ValueError(f"must lie between the years {_FIRST_YEAR} and {_LAST_YEAR}, in UTC")
    return moment


def whole_number(value: object) -> object:
    """Return a whole number, also one that is written as `3.0`; all else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_not_blank(cure: str) -> AfterValidator:
    """Refuses a text that is all blank."""

    def check_not_blank(text: str) -> str:
        if not text.strip():
            raise ValueError(f"must say something; {cure}")
        return text

    return AfterValidator(check_not_blank)


SAYS_SOMETHING = r"^[^\x00]*[^\s\x00\x1c-\x1f][^\x00]*$"
"""A pattern: not all of it is blank, as `str.strip` has it, and nothing is NUL."""
Text = Annotated[str, AfterValidator(check_text)]
"""Text without NUL characters and lone surrogates."""


def _clean_field(value: object) -> object:
    return clean_text(value) if isinstance(value, str) else value


SaidText = Annotated[Text, BeforeValidator(_clean_field)]
"""What a tool stated: NUL characters and lone surrogates become U+FFFD, and the call is kept."""
Name = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(check_text)]
"""A name of an agent, a server, a tool, a session, ...: 1 to 256 characters."""
SaidName = Annotated[Name, BeforeValidator(_clean_field)]
"""A name that a tool gave: as `SaidText`."""
Id = Annotated[
    str,
    AfterValidator(_canonical_uuid),
    WithJsonSchema({"type": "string", "pattern": _UUID_PATTERN}),
]
"""A UUID in its canonical lower-case text form."""
Share = Annotated[float, Field(ge=0, le=1)]
"""From 0 to 1: a share, or a probability."""
WHOLE = (Strict(), BeforeValidator(whole_number))
"""Of an int: `3.0` is one in JSON, `"3"` and `true` are none."""
Timestamp = Annotated[
    AwareDatetime,
    BeforeValidator(_text_timestamp),
    AfterValidator(_in_utc),
    WithJsonSchema(
        {"type": "string", "format": "date-time", "pattern": "^(19[7-9][0-9]|2[01][0-9]{2})-"}
    ),
]
"""A moment in UTC, of the years 1970 to 2199; RFC 3339 on the wire, with any zone on input."""

# Without it pydantic asks a Python function for the type of each value inside.
_AS_IT_IS = PlainSerializer(lambda value: value, return_type=Any)
Object = Annotated[
    JsonObject, PlainValidator(check_json_object), _AS_IT_IS, WithJsonSchema({"type": "object"})
]
"""A JSON object of plain, finite, clean values (see `aftercall.json_values`)."""
Json = Annotated[JsonValue, PlainValidator(check_json_value), _AS_IT_IS, WithJsonSchema({})]
"""Any plain JSON value."""
SaidObject = Annotated[Object, BeforeValidator(replace_unstorable)]
SaidJson = Annotated[Json, BeforeValidator(replace_unstorable)]
"""What a tool returned: what no store can hold is replaced visibly (`replace_unstorable`)."""
