"""Redaction: secrets are masked before anything is sent, stored or returned.

By name (password, token, ...), by form (API keys, JWTs, card numbers, private key blocks) and, per
tool, by allowlist: with one, every other parameter is kept as its type and hash only. A value that
was masked in the parameters is masked wherever else the call repeats it, for tools like to echo
what they were given. A masked value keeps its type and length class, so that shapes can still be
learned from: `[redacted:string:33-64]`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from aftercall.json_values import JsonObject, JsonValue, content_hash
from aftercall.models.calls import Call, ExecutionError
from aftercall.models.tools import ToolSpec
from aftercall.redaction.secret_forms import (
    MASKED,
    is_secret_name,
    mask_secrets,
    outside_masks,
    snake_case,
)
from aftercall.redaction.tool_schema import mask_schema

CallT = TypeVar("CallT", bound=Call)
ToolT = TypeVar("ToolT", bound=ToolSpec)

REDACTED = MASKED
"""How a masked value looks; masking it again changes nothing."""

_MIN_ECHO = 6
"""Shortest masked value that is looked for elsewhere; shorter ones occur in any text by chance."""

_MAX_ECHOES = 100
"""Masked values that are looked for elsewhere, the longest: each costs a search of every text."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """Masks secrets in calls and in descriptions of tools. Doing it twice changes nothing.

    What identifies a call (agent, server, tool, ids) is kept as it is; a `session_id` in the form
    of a secret becomes its hash, so that a session's calls still belong together.

    Args:
        extra_names: further parameter names to mask, in snake case (`create` takes any writing).
        allowlists: per tool name, the parameters that are kept; every other one is stored as its
            type and a hash of its value only.
    """

    extra_names: frozenset[str] = frozenset()
    allowlists: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def create(
        cls,
        *,
        extra_names: Iterable[str] = (),
        allowlists: Mapping[str, Iterable[str]] | None = None,
    ) -> "Redactor":
        """A redactor from plain settings."""
        return cls(
            extra_names=frozenset(snake_case(name) for name in extra_names),
            allowlists={tool: frozenset(kept) for tool, kept in (allowlists or {}).items()},
        )

    def call(self, call: CallT) -> CallT:
        """A copy of `call` without secrets in its parameters, result, error, context and schema."""
        echoes = self._echoes(call.tool_name, call.parameters)
        mask = _Mask(self, echoes)
        changes: dict[str, object] = {
            "parameters": self._parameters(call.tool_name, call.parameters, mask),
            "result": mask.value(call.result),
            "context": mask.optional_text(call.context),
            "result_status": mask.optional_text(call.result_status),
        }
        if call.input_schema is not None:
            changes["input_schema"] = mask.schema(call.input_schema)
        if call.session_id is not None:
            changes["session_id"] = self.session_id(call.session_id)
        error: ExecutionError | None = getattr(call, "error", None)
        if error is not None:
            changes["error"] = error.model_copy(
                update={
                    "message": mask.text(error.message),
                    "code": mask.optional_text(error.code),
                    "stack": mask.optional_text(error.stack),
                    "details": mask.value(error.details),
                }
            )
        return call.model_copy(update=changes)

    def tool(self, tool: ToolT) -> ToolT:
        """A copy of `tool` without secrets in description, input schema and implementation.

        The schema keeps every key, for a property named `password` is no secret; its texts are
        masked by form, and defaults and examples by name too. Id, names, version and tags are what
        the tool is found by, and stay as they are. A schema comes out as `call` leaves the same
        one, so that both have one hash.
        """
        mask = _Mask(self)
        schema = tool.input_schema
        return tool.model_copy(
            update={
                "description": mask.text(tool.description),
                "input_schema": None if schema is None else mask.schema(schema),
                "implementation": mask.value(tool.implementation),
            }
        )

    def parameters(self, tool_name: str, parameters: JsonObject) -> JsonObject:
        """The parameters of a call to `tool_name` without secrets."""
        mask = _Mask(self, self._echoes(tool_name, parameters))
        return self._parameters(tool_name, parameters, mask)

    def value(self, value: JsonValue) -> JsonValue:
        """Any JSON value without secrets; `value` itself stays as it is."""
        return _Mask(self).value(value)

    def text(self, text: str) -> str:
        """Text with the secrets in it masked."""
        return mask_secrets(text, _mask_text)

    def session_id(self, session_id: str) -> str:
        """The name of a session as its calls carry it: one in the form of a secret is hashed."""
        return session_id if self.text(session_id) == session_id else _hashed(session_id)

    def is_secret_name(self, name: str) -> bool:
        """Whether a parameter of this name is masked whatever its value."""
        return is_secret_name(name) or (
            bool(self.extra_names) and snake_case(name) in self.extra_names
        )

    def _parameters(self, tool_name: str, parameters: JsonObject, mask: "_Mask") -> JsonObject:
        kept = self.allowlists.get(tool_name)
        if kept is None:
            return mask.object(parameters)
        return {
            name if name in kept else self.text(name): (
                mask.member(name, item) if name in kept else _hashed(item)
            )
            for name, item in parameters.items()
        }

    def _echoes(self, tool_name: str, parameters: JsonObject) -> tuple[str, ...]:
        """The values to be masked in the parameters, longest first: one may hold another."""
        kept = self.allowlists.get(tool_name)
        found: set[str] = set()
        for name, item in parameters.items():
            hidden = kept is not None and name not in kept
            found.update(self._hidden_texts(item, hidden=hidden or self.is_secret_name(name)))
        return tuple(sorted(found, key=lambda text: (-len(text), text))[:_MAX_ECHOES])

    def _hidden_texts(self, value: JsonValue, *, hidden: bool) -> Iterator[str]:
        if isinstance(value, dict):
            for name, item in value.items():
                yield from self._hidden_texts(item, hidden=hidden or self.is_secret_name(name))
        elif isinstance(value, list):
            for item in value:
                yield from self._hidden_texts(item, hidden=hidden)
        elif hidden and isinstance(value, str | int | float) and not isinstance(value, bool):
            text = str(value)
            if len(text) >= _MIN_ECHO and not MASKED.fullmatch(text):
                yield text


DEFAULT_REDACTOR = Redactor()
"""Masks secrets by name and by form, in every tool's calls."""


@dataclass(frozen=True, slots=True)
class _Mask:
    """Masks the values of one call, of which `echoes` are known to be secret."""

    redactor: Redactor
    echoes: tuple[str, ...] = ()

    def value(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self.object(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def object(self, value: JsonObject) -> JsonObject:
        return {self.text(name): self.member(name, item) for name, item in value.items()}

    def member(self, name: str, value: JsonValue) -> JsonValue:
        return _mask(value) if self.redactor.is_secret_name(name) else self.value(value)

    def schema(self, schema: JsonObject) -> JsonObject:
        return mask_schema(
            schema,
            is_secret_name=self.redactor.is_secret_name,
            text=self.text,
            member=self.member,
        )

    def optional_text(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def text(self, text: str) -> str:
        for echo in self.echoes:
            if echo in text:
                text = outside_masks(text, partial(_without, echo))
        return mask_secrets(text, _mask_text)


def is_redacted(value: JsonValue) -> bool:
    """Whether `value` holds a masked value; such a value is never proposed."""
    if isinstance(value, str):
        return MASKED.search(value) is not None
    if isinstance(value, dict):
        return any(is_redacted(item) for item in value.values())
    if isinstance(value, list):
        return any(is_redacted(item) for item in value)
    return False


def _mask(value: JsonValue) -> JsonValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _mask_text(value)
    if isinstance(value, int | float):
        return f"[redacted:number:{_length_class(len(str(value)))}]"
    if isinstance(value, list):
        return [_mask(item) for item in value]
    return {mask_secrets(name, _mask_text): _mask(item) for name, item in value.items()}


def _without(echo: str, text: str) -> str:
    return text.replace(echo, _mask_text(echo))


def _mask_text(text: str) -> str:
    if text == "" or MASKED.fullmatch(text):
        return text
    return f"[redacted:string:{_length_class(len(text))}]"


def _hashed(value: JsonValue) -> str:
    kind = {
        type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string",
        list: "array", dict: "object",
    }[type(value)]  # fmt: skip
    if isinstance(value, str) and MASKED.fullmatch(value):
        return value
    return f"[hashed:{kind}:{content_hash(value)[:16]}]"


def _length_class(length: int) -> str:
    for low, high in ((1, 8), (9, 16), (17, 32), (33, 64), (65, 256)):
        if length <= high:
            return f"{low}-{high}"
    return "257+"
