"""Redaction: secrets are masked before anything is sent, stored or returned.

By name (password, token, ...), by form (API keys, JWTs, card numbers, private key blocks) and, per
tool, by allowlist: with one, every other parameter is kept as its type and hash only. A masked
value keeps its type and length class, so that shapes can still be learned from:
`[redacted:string:33-64]`.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from aftercall.json_values import JsonObject, JsonValue, canonical_json
from aftercall.wire.execution import Call, ExecutionError

CallT = TypeVar("CallT", bound=Call)

REDACTED = re.compile(r"\[(?:redacted|hashed):[a-z]+:[0-9a-f+-]+\]")
"""How a masked value looks; masking it again changes nothing."""

_SECRET_NAMES = (
    "password", "passwd", "passphrase", "pwd", "secret", "token", "authorization", "cookie",
    "api_key", "apikey", "access_key", "private_key", "secret_key", "signing_key", "credential",
    "credentials", "client_secret", "bearer", "session_key", "csrf", "otp", "pin_code", "ssn",
    "card_number", "cvv", "cvc", "iban",
)  # fmt: skip

# Words that hold a secret word and are no secrets: limits, counters and cursors of APIs.
_HARMLESS = re.compile(
    r"(?:^|_)(?:max|min|num|n|total|count|limit|used|usage|next|page|continuation|start|stop|eos|bos|pad)"
    r"_?(?:\w+_)*tokens?(?:_|$)|(?:^|_)tokens?_(?:limit|count|usage|type|budget|ids?)(?:_|$)|^tokens$"
)

_SECRET_FORMS = re.compile(
    "|".join(
        (
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
            r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",  # JWT
            r"\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)[-_][A-Za-z0-9_-]{12,}",
            r"\bsk-[A-Za-z0-9]{20,}",
            r"\bgh[pousr]_[A-Za-z0-9]{20,}\b|\bgithub_pat_[A-Za-z0-9_]{20,}",
            r"\bglpat-[A-Za-z0-9_-]{16,}",
            r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",  # Slack
            r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",  # AWS
            r"\bAIza[A-Za-z0-9_-]{30,}",  # Google
            r"\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{30,}|\bhf_[A-Za-z0-9]{30,}",
            r"(?<=://)[^\s/@:]{1,256}:[^\s/@]{1,256}(?=@)",  # user:password in a URL
            r"(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{12,}",
            r"(?i:\b(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key))"
            r"""["']?\s*[=:]\s*["']?(?!\[redacted)[^\s"',;&)}\]]{4,256}""",
        )
    ),
    re.DOTALL,
)
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w.-])")
_HINTS = re.compile(
    r"(?i)-----BEGIN|eyJ|[spr]k[-_]|gh[pousr]_|github_pat|glpat|xox|AKIA|ASIA|AIza|npm_|pypi-|hf_"
    r"|://|bearer|basic|pass|pwd|secret|token|key|\d(?:[ -]?\d){12}"
)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Masks secrets in calls.

    Args:
        extra_names: further parameter names to mask, as they are written or in any case.
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
            extra_names=frozenset(_snake(name) for name in extra_names),
            allowlists={tool: frozenset(kept) for tool, kept in (allowlists or {}).items()},
        )

    def call(self, call: CallT) -> CallT:
        """A copy of `call` without secrets in parameters, result, error and context."""
        error: ExecutionError | None = getattr(call, "error", None)
        changes: dict[str, object] = {
            "parameters": self.parameters(call.tool_name, call.parameters),
            "result": self.value(call.result),
            "context": None if call.context is None else self.text(call.context),
        }
        if error is not None:
            changes["error"] = error.model_copy(
                update={
                    "message": self.text(error.message),
                    "stack": None if error.stack is None else self.text(error.stack),
                    "details": self.value(error.details),
                }
            )
        return call.model_copy(update=changes)

    def parameters(self, tool_name: str, parameters: JsonObject) -> JsonObject:
        """The parameters of a call to `tool_name` without secrets."""
        kept = self.allowlists.get(tool_name)
        if kept is None:
            return self._object(parameters)
        return {
            name: self.value(value) if name in kept else _hashed(value)
            for name, value in parameters.items()
        }

    def value(self, value: JsonValue) -> JsonValue:
        """Any JSON value without secrets; unchanged parts are shared, never altered."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def text(self, text: str) -> str:
        """Text with the secrets in it masked."""
        if not _HINTS.search(text):
            return text
        text = _SECRET_FORMS.sub(lambda match: _mask_form(match[0]), text)
        return _CARD.sub(
            lambda match: _mask_text(match[0]) if _is_card(match[0]) else match[0], text
        )

    def is_secret_name(self, name: str) -> bool:
        """Whether a parameter of this name is masked whatever its value."""
        snake = _snake(name)
        if snake in self.extra_names:
            return True
        if _HARMLESS.search(snake):
            return False
        words = f"_{snake}_"
        return any(f"_{secret}_" in words or f"_{secret}s_" in words for secret in _SECRET_NAMES)

    def _object(self, value: JsonObject) -> JsonObject:
        return {
            name: _mask(item) if self.is_secret_name(name) else self.value(item)
            for name, item in value.items()
        }


def is_redacted(value: JsonValue) -> bool:
    """Whether `value` holds a masked value; such a value is never proposed."""
    if isinstance(value, str):
        return REDACTED.search(value) is not None
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
    return {name: _mask(item) for name, item in value.items()}


def _mask_text(text: str) -> str:
    if text == "" or REDACTED.fullmatch(text):
        return text
    return f"[redacted:string:{_length_class(len(text))}]"


def _mask_form(match: str) -> str:
    """Keep the `name=` or `Bearer ` in front of a secret, so that the text stays readable."""
    prefix = re.match(
        r"""(?i)(?:bearer|basic)\s+|[\w-]*?(?:password|passwd|pwd|secret|token|key)["']?\s*[=:]\s*["']?""",
        match,
    )
    kept = prefix[0] if prefix and not match.startswith(("sk-", "sk_", "pk_", "rk_")) else ""
    return kept + _mask_text(match[len(kept) :])


def _hashed(value: JsonValue) -> JsonValue:
    kind = {
        type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string",
        list: "array", dict: "object",
    }[type(value)]  # fmt: skip
    if isinstance(value, str) and REDACTED.fullmatch(value):
        return value
    digest = hashlib.sha256(canonical_json(value).encode()).hexdigest()[:16]
    return f"[hashed:{kind}:{digest}]"


def _length_class(length: int) -> str:
    for low, high in ((1, 8), (9, 16), (17, 32), (33, 64), (65, 256)):
        if length <= high:
            return f"{low}-{high}"
    return "257+"


def _snake(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def _is_card(text: str) -> bool:
    """Luhn's check (ISO/IEC 7812-1), so that order numbers and timestamps stay."""
    digits = [int(char) for char in text if char.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0
