"""What a secret looks like: by the name of the parameter that holds it, and by its own form.

Every pattern runs in time linear to the text, for texts come from strangers: a class of characters
that may repeat without bound is entered from one side only, and possessive quantifiers (`++`) keep
it from being read again.
"""

import re
from collections.abc import Callable
from functools import lru_cache, partial

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
    patterns = [
        *((_mask_forms,) if _FORM_HINT.search(lower) else ()),
        *((_mask_assigned,) if _NAME_HINT.search(lower) else ()),
        *((_mask_cards,) if _CARD_HINT.search(text) else ()),
    ]
    while patterns:
        before = text
        for pattern in patterns:
            text = outside_masks(text, partial(pattern, mask))
        if text == before:
            break
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
