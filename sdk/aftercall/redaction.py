"""Redaction: secrets are masked before anything is sent, stored or returned.

By name (password, token, ...), by form (API keys, JWTs, card numbers, private key blocks) and, per
tool, by allowlist: with one, every other parameter is kept as its type and a keyed hash only. A
value that was masked anywhere in a call is masked wherever else the call repeats it, for tools like
to echo what they were given. A masked value keeps its type and length class, so that shapes can
still be learned from: `[redacted:string:33-64]`. See `aftercall.secret_forms` for the forms of
secrets.
"""

import hmac
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from aftercall.files import user_key
from aftercall.json_values import JsonObject, JsonValue, canonical_json, content_hash
from aftercall.models.base import WireModel
from aftercall.models.calls import Call, ExecutionError
from aftercall.models.tools import ToolSpec
from aftercall.secret_forms import (
    NOTHING,
    Hints,
    hints_of,
    is_harmless_name,
    mask_secrets,
    outside_masks,
)
from aftercall.secret_names import MASKED, NO_SECRETS, Kind, is_secret_value, name_kind, snake_case

_NAMED_SCHEMAS = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)
"""Keywords that hold schemas under names of the author's choice (JSON Schema 2020-12, draft 7)."""
_VALUE = frozenset({"default", "example"})
_VALUES = frozenset({"examples"})
"""Keywords that hold a value of the property, and a list of such (`example` is OpenAPI's)."""
CallT = TypeVar("CallT", bound=Call)
ToolT = TypeVar("ToolT", bound=ToolSpec)
ModelT = TypeVar("ModelT", bound=WireModel)
REDACTED = MASKED
"""How a masked value looks; masking it again changes nothing."""
_MIN_ECHO = 3
_MIN_INSIDE = 6
"""Shortest masked value that is looked for elsewhere, as a word and within words."""
_MAX_ECHOES = 100
"""Masked values that are looked for elsewhere, the longest: each costs a search of every text."""
_CARDS = 10**11
"""Whole numbers from here on may be those of cards."""
_BETWEEN = "\x1f"
_MAX_WORDS = 64
_MAX_WORD = 512
"""ASCII's unit separator, which patterns take for a space; words of a list, characters of each."""
_MAX_NAME = 64
_SIZES = {8: "1-8", 16: "9-16", 32: "17-32", 64: "33-64", 256: "65-256"}
_HARMLESS_SCHEMAS: set[tuple[str, frozenset[str]]] = set()
_MAX_SCHEMAS = 4096
_NAME_FIELDS = frozenset({"name", "key", "header", "variable", "field"})
_OF_CALL = ("result", "context", "result_status", "arguments_text")
_OF_ERROR = ("message", "code", "stack", "details")
_IDENTIFIERS = ("agent", "server_name", "tool_name", "tool_version")
_OF_TOOL = ("name", "server_name", "version")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Redactor:
    """Masks secrets in calls and in descriptions of tools. Doing it twice changes nothing.

    What identifies a call (agent, server, tool, version, type of error) is masked where it holds a
    secret, and is hashed where it is one, like a `session_id`: what belongs together stays so.

    `extra_names` are further parameter names to mask, in snake case (`create` takes any writing).
    Of a tool with an allowlist every other parameter is stored as its type and a hash of its value
    only, or masked where its name is a secret's. `hash_key`, of at least 16 bytes, is of these
    hashes, so that no dictionary shows what was hashed: equal values have equal hashes under one
    key. None is the key of this user of this machine, a file made at first use.
    """

    extra_names: frozenset[str] = frozenset()
    allowlists: Mapping[str, frozenset[str]] = field(default_factory=dict)
    hash_key: bytes | None = field(default=None, repr=False)

    @classmethod
    def create(
        cls,
        *,
        extra_names: Iterable[str] = (),
        allowlists: Mapping[str, Iterable[str]] | None = None,
        hash_key: bytes | None = None,
    ) -> "Redactor":
        """Return a redactor from plain settings."""
        return cls(
            extra_names=frozenset(snake_case(name) for name in extra_names),
            allowlists={tool: frozenset(kept) for tool, kept in (allowlists or {}).items()},
            hash_key=hash_key,
        )

    def call(self, call: CallT) -> CallT:
        """Return a copy of `call` without secrets in its texts, values and schema."""
        error: ExecutionError | None = getattr(call, "error", None)
        texts = [call.parameters, *(getattr(call, name) for name in _OF_CALL)]
        if error is not None:
            texts += [getattr(error, name) for name in _OF_ERROR]
        hints = self._find_hints(texts)
        is_plain = hints == NOTHING and call.tool_name not in self.allowlists
        changes: dict[str, object] = {}
        if not is_plain or any(map(self._is_looked_at, texts)):
            changes = self._mask_twice(hints, lambda mask: self._mask_call(call, mask))
        changes |= self._masked_identifiers(call, _IDENTIFIERS)
        masked_error = changes.get("error", error)
        if isinstance(masked_error, ExecutionError) and (
            kind := self._masked_identifiers(masked_error, ["type"])
        ):
            changes["error"] = masked_error.model_copy(update=kind)
        if call.input_schema is not None:
            changes["input_schema"] = self._mask_schema(call.input_schema)
        if call.session_id is not None:
            changes["session_id"] = self.session_id(call.session_id)
        if changes:
            return call.model_copy(update=changes)
        return call

    def identifier(self, name: str) -> str:
        """Return a name that identifies something without the secrets in it.

        One that is a secret as a whole becomes its hash, so that two of them stay two.
        """
        if not self.extra_names and _is_plain(name):
            return name
        masked = self.text(name)
        if MASKED.fullmatch(masked) and masked != name:
            return self.hashed(name)
        return masked

    def _masked_identifiers(self, model: WireModel, names: Iterable[str]) -> dict[str, object]:
        """Return the names of a model that hold secrets, masked."""
        given = {name: getattr(model, name, None) for name in names}
        masked = {name: self.identifier(text) for name, text in given.items() if text}
        return {name: text for name, text in masked.items() if text != given[name]}

    def _mask_call(self, call: Call, mask: "_Mask") -> dict[str, object]:
        changes: dict[str, object] = {
            name: mask.mask_value(getattr(call, name)) for name in _OF_CALL
        }
        changes["parameters"] = mask.mask_parameters(call.tool_name, call.parameters)
        if call.arguments_text is not None and call.tool_name in self.allowlists:
            changes["arguments_text"] = REDACTED  # which of its parts are allowed, nothing states
        error: ExecutionError | None = getattr(call, "error", None)
        if error is not None:
            changes["error"] = mask.mask_fields(error, _OF_ERROR)
        return changes

    def _is_looked_at(self, value: JsonValue) -> bool:
        if isinstance(value, dict):
            return "value" in value or any(
                self.kind(name) or not _is_plain(name) or self._is_looked_at(item)
                for name, item in value.items()
            )
        if isinstance(value, list):
            return any(map(self._is_looked_at, value))
        return isinstance(value, int) and value >= _CARDS

    def _mask_twice(self, hints: Hints, masked: "Callable[[_Mask], ResultT]") -> "ResultT":
        """Return what `masked` makes, with each found secret masked in all other texts."""
        mask = _Mask(self, hints=hints)
        result = masked(mask)
        if mask.found:
            return masked(_Mask(self, mask.find_echoes(), hints))
        return result

    def _mask_schema(self, schema: JsonObject) -> JsonObject:
        """Return a schema without secrets; the same one comes with every call of a tool.

        A harmless one is known by its hash.
        """
        known = content_hash(schema), self.extra_names
        if known in _HARMLESS_SCHEMAS:
            return schema
        masked = _Mask(self, hints=self._find_hints(schema)).mask_schema(schema)
        if masked == schema:
            if len(_HARMLESS_SCHEMAS) >= _MAX_SCHEMAS:
                _HARMLESS_SCHEMAS.clear()
            _HARMLESS_SCHEMAS.add(known)
        return masked

    def _find_hints(self, value: JsonValue) -> Hints:
        return hints_of("\n".join(_walk_texts(value)), self.extra_names)

    def tool(self, tool: ToolT) -> ToolT:
        """Return a copy of `tool` without secrets in description, input schema and implementation.

        The schema keeps every key, for a property named `password` is no secret; its texts are
        masked by form, and defaults and examples by name too. Names and version are masked as those
        of calls are; id and tags are what the tool is found by, and stay as they are. A schema
        comes out as `call` leaves the same one, so that both have one hash.
        """
        mask = _Mask(self)
        schema = tool.input_schema
        return tool.model_copy(
            update=self._masked_identifiers(tool, _OF_TOOL)
            | {
                "description": mask.mask_text(tool.description),
                "input_schema": None if schema is None else mask.mask_schema(schema),
                "implementation": mask.mask_value(tool.implementation),
            }
        )

    def fields(self, model: ModelT, names: Iterable[str]) -> ModelT:
        """Return a copy of `model` without secrets in the texts of the fields of these names."""
        return _Mask(self).mask_fields(model, names)

    def parameters(self, tool_name: str, parameters: JsonObject) -> JsonObject:
        """Return the parameters of a call to `tool_name` without secrets."""
        hints = self._find_hints(parameters)
        return self._mask_twice(hints, lambda mask: mask.mask_parameters(tool_name, parameters))

    def value(self, value: JsonValue) -> JsonValue:
        """Any JSON value without secrets; `value` itself stays as it is."""
        return _Mask(self).mask_value(value)

    def text(self, text: str) -> str:
        """Text with the secrets in it masked."""
        return _Mask(self).mask_text(text)

    def session_id(self, session_id: str) -> str:
        """Return the name of a session as its calls carry it.

        One in the form of a secret is hashed.
        """
        if not self.extra_names and _is_plain(session_id):
            return session_id
        if self.text(session_id) == session_id:
            return session_id
        return self.hashed(session_id)

    def is_secret_name(self, name: str) -> bool:
        """Return whether a parameter of this name is masked whatever its value."""
        return self.kind(name) == "secret"

    def kind(self, name: str) -> Kind | None:
        """Return what a parameter's name states of its value."""
        own = self.extra_names and snake_case(name) in self.extra_names
        if own:
            return "secret"
        return name_kind(name)

    def hashed(self, value: JsonValue) -> str:
        """Return the type of a value and its HMAC-SHA256 of 64 bits; what is masked stays."""
        if isinstance(value, str) and MASKED.fullmatch(value):
            return value
        kind = {
            type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string",
            list: "array", dict: "object",
        }[type(value)]  # fmt: skip
        key = user_key() if self.hash_key is None else self.hash_key
        digest = hmac.new(key, canonical_json(value).encode(), "sha256").hexdigest()
        return f"[hashed:{kind}:{digest[:16]}]"


DEFAULT_REDACTOR = Redactor()
"""Masks secrets by name and by form, in every tool's calls."""


@dataclass(frozen=True, slots=True)
class _Mask:
    """Masks the values of one call; `known` are secret. It collects what it masked."""

    redactor: Redactor
    known: tuple[str, ...] = ()
    hints: Hints | None = None
    """What all the texts of the call may hold, so that each is not asked again."""
    found: set[str] = field(default_factory=set)

    def find_echoes(self) -> tuple[str, ...]:
        """Return what was found in the forms that a tool may repeat it in, longest first."""
        parts = self.found | {text.partition(":")[2] for text in self.found}
        forms = set(parts)
        for part in parts:
            forms |= {quote(part, safe=""), json.dumps(part)[1:-1]}
        long = [each for each in forms if len(each) >= _MIN_ECHO]
        telling = [each for each in long if each.lower() not in NO_SECRETS]
        return tuple(sorted(telling, key=lambda text: (-len(text), text))[:_MAX_ECHOES])

    def mask_parameters(self, tool_name: str, parameters: JsonObject) -> JsonObject:
        if (kept := self.redactor.allowlists.get(tool_name)) is None:
            return self.mask_object(parameters)
        return {
            name if name in kept else self.mask_text(name): (
                self.mask_member(name, item)
                if name in kept or self.redactor.is_secret_name(name)
                else self.hash_value(item)
            )
            for name, item in parameters.items()
        }

    def mask_fields(self, model: ModelT, names: Iterable[str]) -> ModelT:
        return model.model_copy(
            update={name: self.mask_value(getattr(model, name)) for name in names}
        )

    def mask_value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.mask_text(value)
        if isinstance(value, dict):
            return self.mask_object(value)
        if isinstance(value, list):
            return self.mask_items(value)
        if (
            isinstance(value, int)
            and value >= _CARDS
            and self.redactor.text(str(value)) != str(value)
        ):
            return self.hide_value(value)
        return value

    def mask_items(self, values: list[JsonValue]) -> list[JsonValue]:
        """Short texts are read as one line, for a command's flags stand before their values."""
        texts = [
            item
            for item in values
            if isinstance(item, str) and len(item) <= _MAX_WORD and _BETWEEN not in item
        ]
        if 1 < len(texts) == len(values) <= _MAX_WORDS:
            line = self.mask_text(_BETWEEN.join(texts)).split(_BETWEEN)
            if len(line) == len(texts):
                return list(line)
        return [self.mask_value(item) for item in values]

    def mask_object(self, value: JsonObject) -> JsonObject:
        masked = {
            self.mask_name(name): self.mask_member(name, item) for name, item in value.items()
        }
        if "value" in value:  # an environment's or a header's entry: {"name": ..., "value": ...}
            for name in _NAME_FIELDS & value.keys():
                if isinstance(named := value[name], str) and self.redactor.kind(named):
                    masked["value"] = self.mask_member(named, value["value"])
        return masked

    def mask_member(self, name: str, value: JsonValue) -> JsonValue:
        kind = self.redactor.kind(name)
        if is_secret_value(kind, value):
            return self.mask_below(kind, value)
        return self.mask_value(value)

    def mask_below(self, kind: Kind | None, value: JsonValue) -> JsonValue:
        """Return a value under a secret's name: every text and number in it is masked."""
        if isinstance(value, list):
            return [self.mask_below(kind, item) for item in value]
        if isinstance(value, dict):
            return {
                self.mask_name(name): self.mask_below(kind, item) for name, item in value.items()
            }
        if is_secret_value(kind, value):
            return self.hide_value(value)
        return self.mask_value(value)

    def hide_value(self, value: JsonValue) -> JsonValue:
        if value is None or isinstance(value, bool) or value == "":
            return value
        text = str(value)
        kind = "string" if isinstance(value, str) else "number"
        if MASKED.fullmatch(text):
            return value
        self.found.add(text)
        size = next((shown for most, shown in _SIZES.items() if len(text) <= most), "257+")
        return f"[redacted:{kind}:{size}]"

    def hash_value(self, value: JsonValue) -> str:
        if isinstance(value, str | int | float) and not is_redacted(value):
            self.found.add(str(value))
        return self.redactor.hashed(value)

    def mask_schema(self, schema: JsonObject, owner: str = "") -> JsonObject:
        """Return a schema with the same keys: what it states is masked, never what it is made of.

        In it `password` names a property and is no secret, so texts are searched by form only. A
        default or an example is a value of the property that owns it, and is masked by its name
        like the parameter would be, and so are those of all below it.
        """
        return {name: self._mask_keyword(name, item, owner) for name, item in schema.items()}

    def _mask_keyword(self, keyword: str, value: JsonValue, owner: str) -> JsonValue:
        if isinstance(value, dict) and keyword in _NAMED_SCHEMAS:
            inherited = owner if self.redactor.is_secret_name(owner) else ""
            return {
                name: self._mask_keyword("", item, inherited or name)
                for name, item in value.items()
            }
        if keyword in _VALUE:
            return self.mask_member(owner, value)
        if isinstance(value, dict):
            return self.mask_schema(value, owner)
        if isinstance(value, list):
            if keyword in _VALUES:
                return [self.mask_member(owner, item) for item in value]
            return [self._mask_keyword("", item, owner) for item in value]
        return self.mask_value(value)

    def mask_name(self, name: str) -> str:
        if not self.known and _is_plain(name):
            return name
        return replace(self, hints=None).mask_text(name)

    def mask_text(self, text: str) -> str:
        for known in self.known:
            if known in text:
                text = outside_masks(text, partial(self._without_known, known))
        return mask_secrets(text, self._hide_parts, self.redactor.extra_names, self.hints)

    def _without_known(self, known: str, text: str) -> str:
        if len(known) >= _MIN_INSIDE:
            return text.replace(known, self._hide_parts(known))
        return re.sub(rf"(?<!\w){re.escape(known)}(?!\w)", lambda _: self._hide_parts(known), text)

    def _hide_parts(self, text: str) -> str:
        """Return each part by itself of a secret that several items of a list make together."""
        return _BETWEEN.join(str(self.hide_value(part)) for part in text.split(_BETWEEN))


def _walk_texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _walk_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk_texts(item)


def _is_plain(name: str) -> bool:
    return len(name) <= _MAX_NAME and is_harmless_name(name)


def is_redacted(value: JsonValue) -> bool:
    """Return whether `value` holds a masked value; such a value is never proposed."""
    if isinstance(value, str):  # as most are, and none has to be made into an iterator
        return "[" in value and MASKED.search(value) is not None
    if isinstance(value, dict):
        return any(map(is_redacted, value.values()))
    return isinstance(value, list) and any(map(is_redacted, value))
