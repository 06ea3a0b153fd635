"""What names show of their values, alone and in texts, and what values look like secrets.

Names and how a name and its value stand in a text are in `secret_names.toml`.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from operator import itemgetter
from typing import Literal, NamedTuple

from aftercall.files import read_table

MASKED = re.compile(r"\[(?:redacted|hashed):[a-z]+:[0-9a-f+-]+\]")
"""How a masked value looks."""
Kind = Literal["secret", "likely", "random"]
"""How a name judges its value: secret whatever it is, if it looks like one, if it looks random."""


_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_GAP = re.compile(r"[\W_]+")


def snake_case(name: str) -> str:
    """Return `apiKey`, `API-Key` and `api key` as `api_key`; letters of every script stay."""
    spaced = _WORD_START.sub("_", name)
    return _GAP.sub("_", spaced.lower()).strip("_")


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of plain words, longest first, grouped by their first two letters."""
    tails_of: dict[str, list[str]] = {}
    for word in sorted(words, key=len, reverse=True):
        tails_of.setdefault(word[:1], []).append(word[1:])
    patterns = []
    for head, tails in tails_of.items():
        rest = any_of(tails) if all(tails) else "|".join(map(re.escape, tails))
        patterns.append(f"{re.escape(head)}(?:{rest})")
    return "|".join(patterns)


# --- Names ------------------------------------------------------------------------------------
NAME_TABLE = read_table("secret_names.toml")
_ABOUT = frozenset(NAME_TABLE["about"])
WORDS = frozenset(NAME_TABLE["words"])
_METHODS = frozenset(NAME_TABLE["methods"])
NO_SECRETS = WORDS | _METHODS
"""Words that stand instead of a secret and are none."""
_ENDS = tuple(NAME_TABLE["ends"])
_KINDS: tuple[Kind, ...] = ("secret", "likely", "random")
_Verdict = Kind | Literal["harmless"]


def _read_phrases() -> dict[str, _Verdict]:
    """Return the verdict on each phrase of the table; the gravest where it has several."""
    phrases: dict[str, _Verdict] = dict.fromkeys(NAME_TABLE["harmless"], "harmless")
    for kind in reversed(_KINDS):
        phrases |= dict.fromkeys(NAME_TABLE[kind], kind)
    return phrases


_PHRASES = _read_phrases()
_CORE = re.compile("pass|pwd|secret|token|key|cred(?!it)|auth|cookie|jwt")
_LONGEST = max(phrase.count("_") + 1 for phrase in _PHRASES)


def name_kind(name: str) -> Kind | None:
    """Return what the name of a parameter states of its value; None if it is no secret's name."""
    if len(name) <= _CACHED_NAME_LENGTH:
        return _cached_kind(name)
    return _kind_of(name[:1000])


def _kind_of(name: str) -> Kind | None:
    match = None if name.isascii() else other_names().search(name.lower())
    if match:
        phrase = match[0].replace(" ", "_")
        return _PHRASES[phrase]  # type: ignore[return-value]  # none is harmless
    words = snake_case(name).split("_")
    end = len(words)
    if end > 1 and words[0] in NAME_TABLE["asks"]:
        return None
    before_number = end - 1 if words[-1] in NAME_TABLE["numbers"] else end
    found: Kind | None = None
    kind: _Verdict | None = None
    at = 0
    while at < end:
        phrase, size = _phrase_at(words, at)
        kind = _PHRASES.get(phrase)
        at += size
        is_last = at >= before_number
        if kind == "secret":
            # A secret's name counts anywhere, unless the end shows what about it is stated.
            if is_last or (_CORE.search(phrase) and words[-1] not in _ABOUT):
                found = kind
        elif kind in ("likely", "random") and is_last:
            found = found or kind
    if found is None and kind is None and words[-1].endswith(_ENDS):
        return "secret"
    return found


def _phrase_at(words: list[str], at: int) -> tuple[str, int]:
    """Return the longest known phrase that begins at a word, and its words; or that one word."""
    for size in range(min(_LONGEST, len(words) - at), 0, -1):
        phrase = _phrase_of(words[at : at + size])
        if phrase in _PHRASES:
            return phrase, size
    return "", 1


def _phrase_of(words: list[str]) -> str:
    """Return words as the table has them: in the singular, but for a lone `tokens`."""
    last = words[-1]
    if last == "tokens" and len(words) == 1:
        return last
    if last.endswith("s") and not last.endswith("ss") and last not in _PHRASES:
        last = last[:-1]
    return "_".join([*words[:-1], last])


_CACHED_NAME_LENGTH = 64
# The same few names come with every call, and the verdict costs ten times a look-up.
_cached_kind = lru_cache(maxsize=8192)(_kind_of)


def is_secret_value(kind: Kind | None, value: object) -> bool:
    """Return whether a value under a name of this kind is a secret."""
    if kind is None:
        return False
    if kind == "secret":
        return True
    if isinstance(value, dict | list):
        return kind == "likely"
    if kind == "random":
        return isinstance(value, str) and looks_random(value, 16) and not names_place(value)
    text = str(value)
    if text.lower() in NO_SECRETS or _PATH.search(text):
        return False
    if text.isdecimal():
        return _PIN.fullmatch(text) is not None
    return isinstance(value, str) and len(text) >= LEAST


LEAST = 4
_PIN = re.compile(r"\d{4,12}")
_PATH = re.compile(r"^(?:[/~.\\]|[A-Za-z]:[\\/]|%\w|\$\w|[a-z]+/[\w.-]+(?:/|$))|^\w{1,2}$")
UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PLACE_PART = re.compile(r"_?[A-Za-z]{2,40}(?:_[A-Za-z]{2,40}){0,8}(?:\[\d{1,6}\])?")
_PLACE_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WORD_LENGTH = 3
"""Letters that the words of names have at least, on average; runs of random letters have two."""
_RUNS = re.compile(r"[A-Za-z0-9+/=]+")
_CLASSES = re.compile(r"[a-z]+|[A-Z]+|[0-9]+|[^a-zA-Z0-9]+")
_SPACE = re.compile(r"\s")
_PLAIN_WORD = re.compile(
    r"[\w.-]*\.[a-z]{2,4}|v?\d+(?:[.:-]\d+)*\w?|[a-z]+(?:[_-][a-z0-9]+)*\(?\)?"
)
"""The name of a file, a version or a time, words of a program."""
_NUMBERED_WORD = re.compile(r"[a-z]+\d+")
_INNER_CAPITAL = re.compile("[a-z][A-Z]")
_SIGN = re.compile(r"[!@#$%^&*?~+=_-]")


def names_place(text: str) -> bool:
    """Return whether a text is a dotted path of words, such as `CreateShipment.parcels[1].weight`.

    Go's validator prints a parameter's place so, behind `Key:`.
    """
    parts = text.split(".")
    if len(parts) == 1 or not all(map(_PLACE_PART.fullmatch, parts)):
        return False
    words = _PLACE_WORD.findall(text)
    return sum(map(len, words)) >= _WORD_LENGTH * len(words)


def looks_random(text: str, least: int) -> bool:
    """Return whether a run of letters and digits often changes its kind of character."""
    if len(text) < least or _SPACE.search(text):
        return False
    if UUID.fullmatch(text):
        return True
    run = max(_RUNS.findall(text), key=len, default="")
    if len(set(run)) < least // 2:
        return False
    changes = len(_CLASSES.findall(run)) - 1
    return changes * 5 >= len(run)


def looks_like_password(text: str) -> bool:
    """Return whether a text has letters, and a digit, a sign or a capital within a word."""
    if len(text) < LEAST or _PATH.search(text) or MASKED.search(text):
        return False
    if text.isdecimal():
        return True
    if _PLAIN_WORD.fullmatch(text):
        return _NUMBERED_WORD.fullmatch(text) is not None
    if not any(map(str.isalpha, text)):
        return False
    has_sign = _SIGN.search(text) or any(map(str.isdigit, text))
    return bool(has_sign or _INNER_CAPITAL.search(text))


# --- Names in texts ---
_MARKS = ("_", " ", "-", "")
_MARK = re.compile("[_ -]")


def keyword_pattern(words: Iterable[str], ends: Iterable[str] = ()) -> re.Pattern[str]:
    """Return a pattern of words, spelt apart or as one.

    A compound is found by a last part that is a name itself.
    """
    spelt: set[str] = set()
    for word in words:
        spelt.update(word.replace("_", mark) for mark in _MARKS)
    whole = {word for word in spelt if spelt.isdisjoint(_MARK.split(word)[1:])}
    pattern = f"(?<![a-z])(?:{any_of(whole)})"
    if ends:
        pattern = f"{pattern}|{any_of(ends)}"
    return re.compile(pattern)


_LETTERS = re.compile(r"(?:[^\W\d]| )+")
IDEOGRAPHS = "\u2e80"
"""From here on, words are not divided."""


def _rare_word(word: str) -> str:
    """Return the word of a compound by which a text is known to hold it: a rare one."""
    return max(word.split("_"), key=lambda part: (part not in _COMMON, len(part)))


_ALL_NAMES = [word for kind in _KINDS for word in NAME_TABLE[kind]]
_COMMON = frozenset(NAME_TABLE["common"])
_SHORT = 2
"""Letters of a word that is too common to be a hint: `no`, `id`."""
_COMMON_NAMES = [word for word in _ALL_NAMES if _rare_word(word) in _COMMON]


def _find_roots() -> set[str]:
    roots = {word.replace("_", "") for word in _ALL_NAMES}
    roots.update(map(_rare_word, _ALL_NAMES))
    return {word for word in roots - _COMMON if len(word) > _SHORT}


def _find_compounds() -> dict[str, list[set[str]]]:
    compounds: dict[str, list[set[str]]] = {}
    for name in _COMMON_NAMES:
        words = name.split("_")
        last = words[-1]
        if len(last) > _SHORT:
            long = {word for word in words if len(word) > _SHORT}
            compounds.setdefault(last, []).append(long)
    return compounds


ROOTS = _find_roots()
COMPOUNDS = _find_compounds()
GLUED = re.compile(any_of(NAME_TABLE["glued"]))
"""Each name as one word, and of each the longest word: a text has one of them, all the words of a
compound by its last one, or no name."""


@cache
def ascii_names() -> re.Pattern[str]:
    """Return what finds names in ASCII letters, in a text in lower case."""
    return keyword_pattern(filter(str.isascii, _ALL_NAMES), [*_ENDS, "pass"])


@cache
def other_names() -> re.Pattern[str]:
    """Return what finds names in other letters, in a text in lower case."""
    spelt: set[str] = set()
    for word in _ALL_NAMES:
        if not word.isascii():
            spelt.update([word, word.replace("_", " ")])
    parted = {word for word in spelt if _LETTERS.fullmatch(word) and max(word) < IDEOGRAPHS}
    words = any_of(parted)
    within = any_of(spelt - parted)
    return re.compile(rf"(?<![^\W_])(?:{words})(?![^\W\d_])|{within}")


@cache
def compound_pattern() -> re.Pattern[str]:
    """Find names of several words that any text may have."""
    return keyword_pattern(word for word in _COMMON_NAMES if "_" in word)


# --- Names with their values in texts ---
def holds_name(text: str, lower: str, words: set[str], extra: frozenset[str]) -> bool:
    """Return whether a text may hold a secret's name.

    `lower` is the text and `words` its ASCII words in lower case, `extra` further names of secrets
    in snake case.
    """
    if not ROOTS.isdisjoint(words):
        return True
    if GLUED.search(lower):
        return True
    parts = (each for last in COMPOUNDS.keys() & words for each in COMPOUNDS[last])
    if any(each <= words for each in parts) and compound_pattern().search(lower):
        return True
    if not text.isascii() and other_names().search(lower):
        return True
    return bool(extra) and _extra_names(extra).search(lower) is not None


_GRAMMAR = {
    part: re.compile(pattern, re.VERBOSE) for part, pattern in NAME_TABLE["grammar"].items()
}
_SLIPS = frozenset(NAME_TABLE["ids"])
_NUMBER = re.compile(rf" (?:{any_of(NAME_TABLE['numbers'])})\.?(?=\s?[:=])")
"""Between the name of a number and its sign: `kimlik no:`."""


class _Named(NamedTuple):
    kind: Kind
    name: str
    start: int
    end: int


def _find_named(text: str, extra: frozenset[str]) -> Iterator[_Named]:
    lower = lower_text(text)
    patterns = [ascii_names()]
    if not text.isascii():
        patterns.append(other_names())
    if extra:
        patterns.append(_extra_names(extra))
    for pattern in patterns:
        seen = 0
        for match in pattern.finditer(lower):
            end = _end_of_name(text, lower, match.end())
            if end <= seen:
                continue  # another part of the same word
            seen = max(seen, end)
            before = text[max(0, match.start() - _BEFORE) : match.start()][::-1]
            words = _GRAMMAR["before"].match(before)
            name = (words[0][::-1] if words else "") + text[match.start() : end]
            own = bool(extra) and _is_own(name, extra)
            kind = "secret" if own else name_kind(name)
            if kind:
                yield _Named(kind, name.rpartition(" ")[2], match.start(), end)


_BEFORE = 80


def _end_of_name(text: str, lower: str, end: int) -> int:
    """Return the end of the word; 0 where it is too long for a name."""
    if text[end - 1] >= IDEOGRAPHS:  # there, words are not divided
        return end
    behind = _GRAMMAR["behind"].match(text, end)
    end = behind.end() if behind else end
    if _GRAMMAR["within"].match(text, end):
        return 0
    number = _NUMBER.match(lower, end)
    if number:
        return number.end()
    return end


def _is_own(name: str, extra: frozenset[str]) -> bool:
    snake = snake_case(name)
    return any(snake == each or snake.endswith(f"_{each}") for each in extra)


_extra_names = lru_cache(maxsize=64)(keyword_pattern)


def _value_of(named: _Named, text: str) -> tuple[int, int] | None:
    """Return the span of a name's value, if it is a secret."""
    sign = _GRAMMAR["sign"].match(text, named.end)
    if sign:
        return _signed_span(named, text, sign)
    copula = _GRAMMAR["copula"].match(text, named.end)
    between = copula or _GRAMMAR["space"].match(text, named.end)
    if between:
        quoted = _quoted_span(text, between.end())
        span = quoted or _plain_span(text, between.end())
        value = text[slice(*span)]
        if copula:
            is_secret = _is_stated(named, value, quoted)
            is_last = named.kind == "random"
        else:
            is_option = named.name.startswith("-") and not value.startswith("-")
            is_last = is_option and len(value) > 1
            stands = _is_of_option if is_last else _stands_bare
            is_secret = stands(named, value, quoted)
        if is_secret:
            return span
        if is_last:
            return None
    return None if named.kind == "likely" else _filled_span(text, named.end)


def _signed_span(named: _Named, text: str, sign: re.Match[str]) -> tuple[int, int] | None:
    """Return the span of a secret behind a name and a sign, such as `=`."""
    mark = sign[0].strip()
    before = text[max(0, named.start - len(named.name) - 1) : named.start]
    if mark == ">" and "<" not in before:
        return None
    span = _assigned_span(named, text, sign.end())
    # `define('AUTH_KEY', '...')`, or a list of names
    if span and mark.endswith(",") and not looks_random(text[slice(*span)], 12):
        return None
    return span


def _is_stated(named: _Named, value: str, quoted: object) -> bool:
    """Return whether a value behind a name and a word such as `is` is a secret."""
    if named.kind == "random":
        return looks_random(value, 16)
    if quoted and len(value) > 2:
        return True
    return value not in WORDS and looks_like_password(value)


_NEGATION = re.compile(r"-{1,2}(?:no|skip|without|prompt|ask)-")


def _is_of_option(named: _Named, value: str, _quoted: object) -> bool:
    return not _NEGATION.match(named.name) and is_secret_value(named.kind, value)


def _stands_bare(named: _Named, value: str, quoted: object) -> bool:
    if named.kind == "random" or value in WORDS:
        return False
    if _GRAMMAR["tokens"].search(named.name.lower()):
        return looks_random(value, 12)
    if quoted and len(value) > _LONG and NO_SECRETS.isdisjoint(value.lower().split()):
        return True
    has_digit = len(value) > LEAST and any(map(str.isdecimal, value))
    return has_digit and looks_like_password(value)


_LONG = 8
_MAX_RANDOM = 1024


def _assigned_span(named: _Named, text: str, at: int) -> tuple[int, int] | None:
    block = _GRAMMAR["block"].match(text, at)
    if block and is_secret_value(named.kind, block["lines"]):
        return block.span("lines")
    wrapped = _GRAMMAR["wrapped"].match(text, at)
    if wrapped:
        at = wrapped.end()
    quoted = _quoted_span(text, at)
    start, end = quoted or _plain_span(text, at)
    if named.kind != "secret" and end - start > _MAX_RANDOM:
        return None
    scheme = _GRAMMAR["scheme"].match(text, start)
    if scheme:
        start, end = (scheme.end(), end) if quoted else _plain_span(text, scheme.end())
    value = text[start:end]
    least = 2 if named.kind == "secret" and value.isdecimal() else 3
    if value.isdecimal() and _GRAMMAR["tokens"].search(named.name.lower()):
        least = LEAST
    if len(value) < least:
        return None  # a number of tokens, a place among keys
    if quoted is None:
        app = _GRAMMAR["app_password"].match(text, start)
        if app:
            return app.span()
        if value.lower() in WORDS:
            return None
        if value.isalpha() and text[at - 1].isspace() and _GRAMMAR["sentence"].match(text, end):
            return None
    if is_secret_value(named.kind, value):
        return (start, end)
    return None


def _quoted_span(text: str, at: int) -> tuple[int, int] | None:
    match = _GRAMMAR["quoted"].match(text, at)
    if match:
        return match.span(next(name for name in "abcde" if match[name] is not None))
    return None


def _plain_span(text: str, at: int) -> tuple[int, int]:
    match = _GRAMMAR["plain"].match(text, at)
    if match:
        return (at, at + len(match[0].rstrip(".:")))
    return (at, at)


def _filled_span(text: str, at: int) -> tuple[int, int] | None:
    """Return a random token a few plain words behind a name: `Invalid API key provided: ...`."""
    match = _GRAMMAR["filled"].match(text[at : at + 600])
    if match is None:
        return None
    words = re.findall(r"[a-z]+", match["fill"].lower())
    value = match["value"].rstrip(".")
    if len(words) > 4:
        return None
    if not _SLIPS.isdisjoint(words):
        return None
    if not looks_random(value, 16):
        return None
    if words and UUID.fullmatch(value):
        return None
    if len(words) > 1 and re.fullmatch(r"[0-9a-f]+", value):
        return None
    return at + match.start("value"), at + match.start("value") + len(value)


def mask_named(extra: frozenset[str], mask: Callable[[str], str], part: str) -> str:
    """Return a text with each secret behind a name masked; `extra` are further names."""
    out, last = [], 0
    for start, end in secret_spans(part, extra):
        out += [part[last:start], mask(part[start:end])]
        last = end
    if out:
        return "".join(out) + part[last:]
    return part


def secret_spans(text: str, extra: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of secrets behind names, in order; names within secrets are skipped."""
    last = 0
    left = _LEAST_NAMES + len(text) // _NAMES_APART
    tokens = [token.span() for token in _TOKEN.finditer(text)]
    for each in sorted(_find_named(text, extra), key=lambda named: named.start):
        if each.start < last:
            continue
        if each.kind == "random" and not _is_near(tokens, each.end):
            continue
        left = left - 1
        if left < 0:
            yield each.start, len(text)
            return
        span = _value_of(each, text)
        if span is not None and last <= span[0] < span[1]:
            yield span
            last = span[1]


_LEAST_NAMES = 64
_NAMES_APART = 40
"""A text that names more secrets than these and one in 40 characters is masked from there on: each
name is judged by a dozen patterns, and no honest text has so many."""
_TOKEN = re.compile(r"\S{16,}")
"""A value under a name such as `key` is one run of 16 characters at least."""
_REACH = 700
"""Characters behind a name within which its value stands."""


def _is_near(tokens: list[tuple[int, int]], place: int) -> bool:
    """Return whether a token ends behind a place and begins within reach of it."""
    at = bisect_right(tokens, place, key=itemgetter(1))
    if at == len(tokens):
        return False
    start, _ = tokens[at]
    return start - place < _REACH


def lower_text(text: str) -> str:
    """Return a text in lower case, each character at its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(char.lower()[0] for char in text)
