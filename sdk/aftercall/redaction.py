"""Redaction: secrets are masked before anything is sent, stored or returned.

By name (password, token, ...), by form (API keys, JWTs, card numbers, private key blocks) and, per
tool, by allowlist: with one, every other parameter is kept as its type and hash only. A value that
was masked in the parameters is masked wherever else the call repeats it, for tools like to echo
what they were given. A masked value keeps its type and length class, so that shapes can still be
learned from: `[redacted:string:33-64]`.

Every pattern runs in time linear to the text, for texts come from strangers: a class of characters
that may repeat without bound is entered from one side only, and possessive quantifiers (`++`) keep
it from being read again.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TypeVar

from aftercall.json_values import JsonObject, JsonValue, content_hash
from aftercall.models.base import WireModel
from aftercall.models.calls import Call, ExecutionError
from aftercall.models.tools import ToolSpec

MASKED = re.compile(r"\[(?:redacted|hashed):[a-z]+:[0-9a-f+-]+\]")
"""How a masked value looks."""
_MASKED_PART = re.compile(f"({MASKED.pattern})")

_SECRET_NAMES = (
    "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "jwt",
    "authorization", "cookie", "credential", "bearer", "csrf", "otp", "pin_code", "ssn", "iban",
    "api_key", "apikey", "access_key", "private_key", "secret_key", "signing_key", "session_key",
    "encryption_key", "card_number", "cvv", "cvc", "dsn", "connection_string",
)  # fmt: skip

# Written as one word by some APIs: `accesstoken`, `dbpassword`.
_SECRET_ENDS = ("password", "passwd", "secret", "token", "apikey")

# Names that hold the word `token` and are no secrets: counts of a model's tokens, cursors of APIs.
_COUNT = r"max|min|num|number|n|total|count|limit|used|usage|budget|input|output|prompt|completion"
_HARMLESS_TOKEN = re.compile(
    rf"^tokens$|(?:^|_)(?:{_COUNT})_?(?:[a-z]+_)*tokens(?:_|$)"
    r"|(?:^|_)(?:next|prev|previous|page|next_page|continuation|start|stop|eos|bos|pad|sync|delta)"
    r"_?token(?:_|$)"
    r"|(?:^|_)tokens?_(?:limit|count|usage|type|budget|ids?|endpoint|url)(?:_|$)"
)

_FORMS = re.compile(
    "|".join(
        (
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
            # JSON Web Token
            r"(?<![\w-])eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+",
            r"(?<![A-Za-z0-9])(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)[-_][A-Za-z0-9_-]{12,}+",
            r"(?<![A-Za-z0-9])sk-[A-Za-z0-9]{20,}+",
            r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{20,}+",
            r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{20,}+",
            r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{16,}+",
            r"(?<![A-Za-z0-9])xox[abeoprs]-[A-Za-z0-9-]{10,}+",  # Slack
            r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS
            r"(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{30,}+",  # Google
            r"(?<![A-Za-z0-9])(?:npm|hf)_[A-Za-z0-9]{30,}+",
            r"(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{30,}+",
            r"(?<=://)[^\s/@:]{0,256}:[^\s/@]{1,256}(?=@)",  # user:password in a URL
            # Not the words of "basic authentication": a digit, a symbol or 20 characters are asked.
            r"(?i:(?<=\bbearer )|(?<=\bbasic ))(?=\S*[0-9=+/]|\S{20})[A-Za-z0-9._~+/=-]{12,}+",
        )
    ),
    re.DOTALL,
)

# `password=...`, `"apiKey": "..."`, `Authorization: Bearer ...`, also inside escaped JSON. A value
# without quotes that begins like a validator's sentence ("password: must be ...") is no secret.
_ASSIGNED = re.compile(
    r"""
    (?P<name>
        (?: password | passwd | passphrase | passcode | pwd | secret | token | authorization
          | credential | (?:api|access|private|secret|signing|session|encryption)[_-]?key | cookie
        ) s?+ )
    (?P<sign> \\*+ ["']?+ \s*+ [=:] \s*+ )
    (?P<scheme> (?: \\*+ ["'] )?+ (?: (?:bearer|basic|token|apikey|digest|negotiate) \s++ )?+ )
    (?P<value>
        (?<=") (?: (?! \\*" ) [^\n] ){4,}+
      | (?<=') (?: (?! \\*' ) [^\n] ){4,}+
      | (?! (?: must | should | shall | cannot | field | value | input | string | number | boolean
              | expected | unexpected | required | missing | invalid | incorrect | wrong | expired
              | null | none | true | false | extra | already | does | could | have | with ) \b )
        [^\s"'\\,;&)}\]<>]{4,}+
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_COOKIES = re.compile(r"(?i)(?P<sign>\bcookie:[ \t]*+)(?P<value>[^\s\"'\\][^\n\"'\\]*+)")
# Payment cards as they are printed, of all brands (ISO/IEC 7812: the first digit is the industry;
# 3 to 6 are travel and banking, 2 is the newer Mastercard). An expiry date may follow.
_CARD = re.compile(
    r"(?<![\w-])(?<!\d\.)"
    r"(?:[2-6]\d{12,18}|[2-6]\d{3}([ -])\d{4}\1\d{4}\1\d{1,7}|3\d{3}([ -])\d{6}\2\d{4,5})"
    r"(?![\w-]|\.\d)"
)


def _any_of(*words: str) -> re.Pattern[str]:
    """A pattern of plain words, grouped by their first letter: half the time of a flat list."""
    tails: dict[str, list[str]] = {}
    for word in words:
        tails.setdefault(word[0], []).append(re.escape(word[1:]))
    return re.compile("|".join(f"{re.escape(c)}(?:{'|'.join(t)})" for c, t in tails.items()))


# One cheap look at the text in lower case spares most texts the patterns above.
_FORM_HINT = _any_of(
    "-----begin", "eyj", "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "ghp_", "gho_", "ghu_", "ghs_",
    "ghr_", "github_pat", "glpat", "xox", "akia", "asia", "aiza", "npm_", "hf_", "pypi-", "://",
    "bearer ", "basic ",
)  # fmt: skip
_NAME_HINT = _any_of(
    "pass", "pwd", "secret", "token", "key", "authorization", "cookie", "credential"
)
_CARD_HINT = re.compile(r"\d(?:[ -]?\d){12}")
_CACHED_NAME_LENGTH = 64


def snake_case(name: str) -> str:
    """`apiKey`, `API-Key` and `api key` as `api_key`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def is_secret_name(name: str) -> bool:
    """Whether a parameter of this name holds a secret, whatever its value."""
    return _cached_verdict(name) if len(name) <= _CACHED_NAME_LENGTH else _verdict(name)


def _verdict(name: str) -> bool:
    snake = snake_case(name)
    if snake == "auth":
        return True
    words = f"_{snake}_"
    found = {
        secret for secret in _SECRET_NAMES if f"_{secret}_" in words or f"_{secret}s_" in words
    }
    found.update(end for end in _SECRET_ENDS if snake.endswith(end))
    if found == {"token"}:
        return _HARMLESS_TOKEN.search(snake) is None
    return bool(found)


# The same few names come with every call, and the verdict costs ten times a look-up.
_cached_verdict = lru_cache(maxsize=8192)(_verdict)


def mask_secrets(text: str, mask: Callable[[str], str]) -> str:
    """`text` with each secret in it replaced by `mask(secret)`; `mask` returns a `MASKED` text.

    Doing it twice changes nothing: what is masked is never looked at again, and the search goes on
    until it finds nothing new.
    """
    lower = text.lower()
    looks = ((_FORM_HINT, _mask_forms), (_NAME_HINT, _mask_assigned), (_CARD_HINT, _mask_cards))
    patterns = [pattern for hint, pattern in looks if hint.search(lower)]
    before = None
    while patterns and text != before:
        before = text
        for pattern in patterns:
            text = outside_masks(text, partial(pattern, mask))
    return text


def outside_masks(text: str, change: Callable[[str], str]) -> str:
    """Apply `change` to the stretches of `text` between masked values."""
    if "[" not in text:
        return change(text)
    parts = _MASKED_PART.split(text)
    parts[::2] = [change(part) for part in parts[::2]]
    return "".join(parts)


def _mask_forms(mask: Callable[[str], str], part: str) -> str:
    return _FORMS.sub(lambda match: mask(match[0]), part)


def _mask_assigned(mask: Callable[[str], str], part: str) -> str:
    def masked(match: re.Match[str]) -> str:
        start = match.start("name")
        prefix = re.search(r"[\w-]*$", part[max(0, start - _CACHED_NAME_LENGTH) : start])
        name = (prefix[0] if prefix else "") + match["name"]
        if not is_secret_name(name):
            return match[0]
        return match["name"] + match["sign"] + match["scheme"] + mask(match["value"])

    cookies = _COOKIES.sub(lambda match: match["sign"] + mask(match["value"]), part)
    return outside_masks(cookies, lambda rest: _ASSIGNED.sub(masked, rest))


def _mask_cards(mask: Callable[[str], str], part: str) -> str:
    return _CARD.sub(lambda match: mask(match[0]) if _is_card(match[0]) else match[0], part)


def _is_card(text: str) -> bool:
    """Luhn's check (ISO/IEC 7812-1), so that order numbers and timestamps stay."""
    digits = [int(char) for char in text if char.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_NAMED_SCHEMAS = frozenset(
    {"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}
)
"""Keywords that hold schemas under names of the author's choice (JSON Schema 2020-12, draft 7)."""

_VALUE, _VALUES = frozenset({"default", "example"}), frozenset({"examples"})
"""Keywords that hold a value of the property, and a list of such (`example` is OpenAPI's)."""
CallT = TypeVar("CallT", bound=Call)
ToolT = TypeVar("ToolT", bound=ToolSpec)
ModelT = TypeVar("ModelT", bound=WireModel)
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

    def fields(self, model: ModelT, names: Iterable[str]) -> ModelT:
        """A copy of `model` without secrets in the texts of the fields of these names."""
        mask = _Mask(self)
        return model.model_copy(update={name: mask.value(getattr(model, name)) for name in names})

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

    def schema(self, schema: JsonObject, owner: str = "") -> JsonObject:
        """A schema with the same keys: what it says is masked, never what it is made of.

        In it `password` names a property and is no secret, so texts are searched by form only. A
        default or an example is a value of the property that owns it, and is masked by its name
        like the parameter would be, and so are those of all below it.
        """
        return {name: self._keyword(name, item, owner) for name, item in schema.items()}

    def _keyword(self, keyword: str, value: JsonValue, owner: str) -> JsonValue:
        if isinstance(value, dict) and keyword in _NAMED_SCHEMAS:
            inherited = owner if self.redactor.is_secret_name(owner) else ""
            return {
                name: self._keyword("", item, inherited or name) for name, item in value.items()
            }
        if keyword in _VALUE:
            return self.member(owner, value)
        if isinstance(value, dict):
            return self.schema(value, owner)
        if isinstance(value, list):
            if keyword in _VALUES:
                return [self.member(owner, item) for item in value]
            return [self._keyword("", item, owner) for item in value]
        return self.value(value)

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
