"""Finds secrets: by what they are called (`secret_names.toml`) and by form (`secret_forms.toml`).

Texts come from other callers, so every search is linear in the text: what repeats is bounded or
possessive. Texts without a hint of a secret pay for a few plain searches only, and a form's
pattern is compiled when a text first hints at it.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from importlib.resources import files
from typing import Any, NamedTuple

from aftercall.extensions import load_tables, use_each
from aftercall.files import read_table
from aftercall.secret_escapes import EncodedSecret, encoded_secrets, join_overlapping
from aftercall.secret_names import (
    COMPOUNDS,
    GLUED,
    IDEOGRAPHS,
    LEAST,
    MASKED,
    NAME_TABLE,
    NO_SECRETS,
    ROOTS,
    UUID,
    WORDS,
    Kind,
    any_of,
    compound_pattern,
    is_secret_value,
    keyword_pattern,
    looks_like_password,
    looks_random,
    name_kind,
    names_in_texts,
    snake_case,
)

_MASKED_PART = re.compile(f"({MASKED.pattern})")


# --- Forms ------------------------------------------------------------------------------------
class _Form(NamedTuple):
    place: int
    gate: str
    hints: tuple[str, ...]
    run: int
    source: str
    check: str | None


def _read_forms() -> Iterator[_Form]:
    rows = list(read_table("secret_forms.toml")["form"])

    def add(table: dict[str, Any]) -> None:
        for row in table["form"]:
            re.compile(_form_of(0, row).source)
        rows.extend(table["form"])

    use_each("secret_forms", load_tables("secret_forms"), add)
    yield from (_form_of(place, row) for place, row in enumerate(rows))


def _form_of(place: int, row: dict[str, Any]) -> _Form:
    source = row.get("pattern") or rf"(?<![A-Za-z0-9])(?:{row['token']})"
    gate = row.get("gate", "token")
    hints = tuple(row.get("hints", ()))
    return _Form(place, gate, hints, row.get("run", _SHORT_RUN), source, row.get("check"))


_SHORT_RUN = 15
_TWO_DIGITS = re.compile(r"\d\d")
_DIGITS = re.compile(r"\d(?:[ .-]?\d){6,}+(?:-?[A-Z])?")
_CAPITALS = re.compile(r"[A-Z](?:\d{4}|-?\d{6}| \d\d ?\d\d|\d\d[A-Z]\d)")
_SCHEMES = {"bearer", "basic", "ssws", "ntlm", "negotiate", "apikey", "geniekey", "bot"}
_AT = re.compile(r":[^\s:@]+@")
_FORMS = tuple(_read_forms())
_GATED = {
    gate: tuple(each for each in _FORMS if each.gate == gate)
    for gate in ("inside", "at", "words", "schemes", "flags", "digits", "lettered", "capitals")
}
_compiled = cache(re.compile)
_STARTS = {
    hint: tuple(f for f in _FORMS if f.gate == "token" and hint.startswith(f.hints))
    for form in _FORMS
    if form.gate == "token"
    for hint in form.hints
}
_START = f"(?<![a-z0-9])(?:{any_of(_STARTS)})"
_LETTERS = bytes(code if chr(code).islower() and code < 128 else 32 for code in range(256))
_FORM_WORDS = {hint for each in _GATED["words"] for hint in each.hints}


def _passes_luhn(text: str) -> bool:
    """ISO/IEC 7812-1, annex B, so that order numbers and timestamps stay."""
    digits = [int(char) for char in text if char.isdecimal()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _passes_iban(text: str) -> bool:
    """ISO 7064, MOD 97-10, over the text with its first four characters behind."""
    plain = re.sub(r"[ -]", "", text).upper()
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def _passes_national(text: str) -> bool:
    """Return the check digits of France's, Spain's, Sweden's and Canada's numbers."""
    plain = re.sub(r"[ +-]", "", text)
    if plain[-1].isalpha():
        number = plain[:-1].translate(str.maketrans("XYZ", "012"))
        return len(number) == 8 and "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == plain[-1]
    if len(plain) == 15:
        number = plain[:13].replace("2A", "19").replace("2B", "18")
        return number.isdecimal() and 97 - int(number) % 97 == int(plain[13:])
    return _passes_luhn(plain[-10:])


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "luhn": _passes_luhn,
    "iban": _passes_iban,
    "national": _passes_national,
    "random": lambda text: looks_random(text, 16) and not UUID.fullmatch(text),
}


def _mask_form(form: _Form, mask: Callable[[str], str], part: str) -> str:
    def mask_match(match: re.Match[str]) -> str:
        groups = match.groupdict()
        if form.check and not _CHECKS[form.check](groups.get("random") or match[0]):
            return match[0]
        name = next((key for key, value in groups.items() if value and key != "random"), None)
        if name is None:
            return mask(match[0])
        start = match.start(name) - match.start()
        end = match.end(name) - match.start()
        return match[0][:start] + mask(match[name]) + match[0][end:]

    return _compiled(form.source).sub(mask_match, part)


# --- Seed phrases -----------------------------------------------------------------------------
@cache
def _seed_words() -> frozenset[str]:
    """Return the English list of BIP 39."""
    return frozenset(files("aftercall").joinpath("bip39_words.txt").read_text().split())


_SEED_LENGTH = 12
_DISTINCT = 8
"""Words of a phrase that differ; drawn from 2,048, twelve have fewer never."""
_SEED = re.compile(
    r"(?<![\w-])[a-z]{3,8}(?:[ ,;\x1f\n]{1,2}(?:\d{1,2}[.)] ?)?[a-z]{3,8}){11,}+(?![\w-])",
    re.IGNORECASE,
)


def _has_seeds(words: Sequence[str]) -> bool:
    """Return whether so many words of the list stand in a row.

    Looks at each twelfth, and around it.
    """
    known = _seed_words()
    at = _SEED_LENGTH - 1
    while at < len(words):
        before = at
        while before > at - _SEED_LENGTH and words[before] in known:
            before -= 1
        if before == at - _SEED_LENGTH:
            return True
        at = before + _SEED_LENGTH
    return False


def _mask_seeds(mask: Callable[[str], str], part: str) -> str:
    def mask_match(match: re.Match[str]) -> str:
        known, start, out, last = _seed_words(), None, [], 0
        words = [*re.finditer(r"[A-Za-z]+", match[0])]
        for number, word in enumerate([*words, None]):
            if word is not None and word[0].lower() in known:
                start = number if start is None else start
                continue
            phrase = {each[0].lower() for each in words[start:number]}
            if start is not None and number - start >= _SEED_LENGTH and len(phrase) >= _DISTINCT:
                begin = words[start].start()
                end = words[number - 1].end()
                out += [match[0][last:begin], mask(match[0][begin:end])]
                last = end
            start = None
        return "".join(out) + match[0][last:]

    return _SEED.sub(mask_match, part)


# --- Names in texts ---------------------------------------------------------------------------
def _is_named(text: str, lower: str, words: set[str], extra: frozenset[str]) -> bool:
    if not ROOTS.isdisjoint(words):
        return True
    if GLUED.search(lower):
        return True
    parts = (each for last in COMPOUNDS.keys() & words for each in COMPOUNDS[last])
    if any(each <= words for each in parts) and compound_pattern().search(lower):
        return True
    other = not text.isascii() and names_in_texts(ascii_only=False).search(lower)
    return bool(other or (extra and _extra_names(extra).search(lower)))


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
    lower = _lower_text(text)
    patterns = [names_in_texts(ascii_only=True)] + [names_in_texts(ascii_only=False)] * (
        not text.isascii()
    )
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
        tag = sign[0].strip() == ">"
        if tag and text[max(0, named.start - len(named.name) - 1) : named.start].rfind("<") < 0:
            return None
        span = _assigned_span(named, text, sign.end())
        listed = sign[0].rstrip().endswith(",")  # `define('AUTH_KEY', '...')`, or a list of names
        return span if span and not (listed and not looks_random(text[slice(*span)], 12)) else None
    copula = _GRAMMAR["copula"].match(text, named.end)
    if copula:
        quoted = _quoted_span(text, copula.end())
        start, end = quoted or _plain_span(text, copula.end())
        value = text[start:end]
        if named.kind == "random":
            return (start, end) if looks_random(value, 16) else None
        if (quoted and len(value) > 2) or (value not in WORDS and looks_like_password(value)):
            return start, end
    elif space := _GRAMMAR["space"].match(text, named.end):
        quoted = _quoted_span(text, space.end())
        start, end = quoted or _plain_span(text, space.end())
        value = text[start:end]
        if named.name.startswith("-") and not value.startswith("-") and len(value) > 1:
            negated = re.match(r"-{1,2}(?:no|skip|without|prompt|ask)-", named.name)
            return (start, end) if not negated and is_secret_value(named.kind, value) else None
        if named.kind != "random" and value not in WORDS and _stands_bare(named, value, quoted):
            return start, end
    return _filled_span(text, named.end) if named.kind != "likely" else None


def _stands_bare(named: _Named, value: str, quoted: object) -> bool:
    if _GRAMMAR["tokens"].search(named.name.lower()):
        return looks_random(value, 12)
    if quoted and len(value) > _LONG and NO_SECRETS.isdisjoint(value.lower().split()):
        return True
    return len(value) > LEAST and any(map(str.isdecimal, value)) and looks_like_password(value)


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


def _mask_named(extra: frozenset[str], mask: Callable[[str], str], part: str) -> str:
    out, last = [], 0
    for start, end in _secret_spans(part, extra):
        out += [part[last:start], mask(part[start:end])]
        last = end
    if out:
        return "".join(out) + part[last:]
    return part


def _secret_spans(text: str, extra: frozenset[str]) -> Iterator[tuple[int, int]]:
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
    at = bisect_right(tokens, place, key=lambda token: token[1])
    return at < len(tokens) and tokens[at][0] - place < _REACH


def _lower_text(text: str) -> str:
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(char.lower()[0] for char in text)


class Hints(NamedTuple):
    """What a text may hold: of these forms, after a name, a seed phrase."""

    forms: tuple[_Form, ...]
    named: bool
    seeds: bool
    encoded: bool = False
    """Whether it holds a secret behind escapes or in base64."""


NOTHING = Hints((), named=False, seeds=False)


def hints_of(text: str, extra_names: frozenset[str] = frozenset()) -> Hints:
    """Return what a text, or one of several that are joined by line ends, may hold."""
    encoded = bool(encoded_secrets(text, partial(_find_plain, extra_names)))
    return _plain_hints(text, extra_names)._replace(encoded=encoded)


def _plain_hints(text: str, extra_names: frozenset[str]) -> Hints:
    lower = _lower_text(text)
    seen = lower.encode("utf-8", "replace").translate(_LETTERS).decode("ascii").split()
    words = set(seen)
    named = _is_named(text, lower, words, extra_names) and any(_secret_spans(text, extra_names))
    return Hints(_hinted_forms(text, lower, words), named, _has_seeds(seen))


@lru_cache(maxsize=8192)
def is_harmless_name(name: str) -> bool:
    """Return whether no secret stands in a parameter's name; the same few come with every call."""
    return mask_secrets(name, lambda _: "") == name


def mask_secrets(
    text: str,
    mask: Callable[[str], str],
    extra_names: frozenset[str] = frozenset(),
    hints: Hints | None = None,
) -> str:
    """`text` with each secret in it replaced by `mask(secret)`; `mask` returns a `MASKED` text.

    Doing it twice changes nothing: what is masked is never looked at again, and the search goes on
    until it finds nothing new.

    `extra_names` are further names of secrets, in snake case; `hints` what `text` and others may
    hold, where that is known.
    """
    if len(text) < LEAST:
        return text
    if text.isalpha():
        return text
    if hints == NOTHING:
        return text
    before = None
    while text != before:
        before = text
        hints = hints or hints_of(text, extra_names)
        if hints.encoded:
            text = _mask_encoded(text, mask, extra_names)
        else:
            text = _mask_plain(text, mask, extra_names, hints)
        hints = None  # what was masked may have hidden a form from the next text
    return text


def _mask_plain(
    text: str, mask: Callable[[str], str], extra_names: frozenset[str], hints: Hints
) -> str:
    for step in _masking_steps(hints, mask, extra_names):
        text = outside_masks(text, step)
    return text


def _mask_encoded(text: str, mask: Callable[[str], str], extra_names: frozenset[str]) -> str:
    # What stands open counts too: escapes may hide a part of it only.
    find = partial(_find_plain, extra_names)
    is_open = [EncodedSecret(*span, text[slice(*span)]) for span in find(text)]
    out, last = [], 0
    for secret in join_overlapping([*is_open, *encoded_secrets(text, find)]):
        for inner in secret.within:
            mask(inner)  # so that it is known as a secret wherever else it stands
        out += [text[last : secret.start], mask(secret.shown)]
        last = secret.end
    return "".join(out) + text[last:]


def _find_plain(extra_names: frozenset[str], text: str) -> list[tuple[int, int]]:
    """Return the spans of secrets in a text, without a look behind its escapes."""
    if len(text) < LEAST:
        return []
    if (hints := _plain_hints(text, extra_names)) == NOTHING:
        return []
    kind = "place"
    while f"[hashed:{kind}:" in text:
        kind += "s"
    secrets: list[str] = []

    def note_secret(secret: str) -> str:
        secrets.append(secret)
        return f"[hashed:{kind}:{len(secrets) - 1:x}]"

    spans, at = [], 0
    parts = re.split(
        rf"\[hashed:{kind}:([0-9a-f]+)\]", _mask_plain(text, note_secret, extra_names, hints)
    )
    for plain, number in zip(parts[::2], [*parts[1::2], None], strict=True):
        at += len(plain)
        if number is not None:
            length = len(secrets[int(number, 16)])
            spans.append((at, at + length))
            at += length
    return spans


def _masking_steps(
    hints: Hints, mask: Callable[[str], str], extra_names: frozenset[str]
) -> Iterator[Callable[[str], str]]:
    yield from (partial(_mask_form, each, mask) for each in hints.forms)
    if hints.named:
        yield partial(_mask_named, extra_names, mask)
    if hints.seeds:
        yield partial(_mask_seeds, mask)


def _hinted_forms(text: str, lower: str, words: set[str]) -> tuple[_Form, ...]:
    """Return the forms that a text hints at, in the order of the table."""
    found: set[_Form] = set()
    runs = [run for run in text.split() if len(run) >= _SHORT_RUN]
    if runs:
        found.update(_in_runs("\n".join(runs).lower(), max(map(len, runs))))
    if "@" in text and _AT.search(text):
        found.update(_GATED["at"])
    if _TWO_DIGITS.search(text):
        for group in _DIGITS.findall(text):
            digits = sum(map(str.isdecimal, group))
            found.update(each for each in _GATED["digits"] if each.run <= digits)
            found.update(_GATED["lettered"] if group[-1].isalpha() else ())
        if _CAPITALS.search(text):
            found.update(_GATED["capitals"])
    if not words.isdisjoint(_FORM_WORDS):
        found.update(each for each in _GATED["words"] if not words.isdisjoint(each.hints))
    if any(f"{scheme} " in lower for scheme in _SCHEMES & words):
        found.update(_GATED["schemes"])
    if " -" in text or "\x1f-" in text or "\n-" in text or " /" in text:
        found.update(each for each in _GATED["flags"] if any(h in lower for h in each.hints))
    return tuple(each for each in sorted(found) if _compiled(each.source).search(text))


def _in_runs(runs: str, longest: int) -> Iterator[_Form]:
    for match in _compiled(_START).finditer(runs):
        yield from (each for each in _STARTS[match[0]] if each.run <= longest)
    for each in _GATED["inside"]:
        if each.run <= longest and any(hint in runs for hint in each.hints):
            yield each


def outside_masks(text: str, change: Callable[[str], str]) -> str:
    """Apply `change` to the stretches of `text` between masked values."""
    if "[" not in text:
        return change(text)
    parts = _MASKED_PART.split(text)
    parts[::2] = [change(part) for part in parts[::2]]
    return "".join(parts)
