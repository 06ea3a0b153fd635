"""Finds secrets: by what they are called (`secret_names.toml`) and by form (`secret_forms.toml`).

Texts come from other callers, so every search is linear in the text: what repeats is bounded or
possessive. Texts without a hint of a secret pay for a few plain searches only, and a form's
pattern is compiled when a text first hints at it.
"""

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple

from aftercall.extensions import load_tables, use_each
from aftercall.files import read_table
from aftercall.secret_escapes import EncodedSecret, encoded_secrets, join_overlapping
from aftercall.secret_names import (
    LEAST,
    MASKED,
    UUID,
    any_of,
    holds_name,
    looks_random,
    lower_text,
    mask_named,
    secret_spans,
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
_LOWER = string.ascii_lowercase.encode()
_LETTERS = bytes(code if code in _LOWER else 32 for code in range(256))
_FORM_WORDS = {hint for each in _GATED["words"] for hint in each.hints}


def _passes_luhn(text: str) -> bool:
    """ISO/IEC 7812-1, annex B, so that order numbers and timestamps stay."""
    digits = [int(char) for char in text if char.isdecimal()]
    if len(set(digits)) <= 1:
        return False
    total = sum(digits[-1::-2])
    for digit in digits[-2::-2]:
        total += sum(divmod(2 * digit, 10))
    return total % 10 == 0


def _passes_iban(text: str) -> bool:
    """ISO 7064, MOD 97-10, over the text with its first four characters behind."""
    plain = re.sub(r"[ -]", "", text).upper()
    turned = plain[4:] + plain[:4]
    number = "".join(str(int(char, 36)) for char in turned)
    return int(number) % 97 == 1


def _passes_national(text: str) -> bool:
    """Return the check digits of France's, Spain's, Sweden's and Canada's numbers."""
    plain = re.sub(r"[ +-]", "", text)
    last = plain[-1]
    if last.isalpha():
        number = plain[:-1].translate(_NIE_DIGITS)
        return len(number) == 8 and _DNI_LETTERS[int(number) % 23] == last
    if len(plain) == 15:
        number = plain[:13].replace("2A", "19").replace("2B", "18")
        return number.isdecimal() and 97 - int(number) % 97 == int(plain[13:])
    return _passes_luhn(plain[-10:])


_NIE_DIGITS = str.maketrans("XYZ", "012")
_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"
"""Spain's letters of a foreigner, and the letter of each remainder."""


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
        known = _seed_words()
        text = match[0]
        words = [*re.finditer(r"[A-Za-z]+", text)]
        out = []
        last = 0
        for is_known, run in groupby(words, lambda word: word[0].lower() in known):
            phrase = [*run]
            distinct = {word[0].lower() for word in phrase}
            if is_known and len(phrase) >= _SEED_LENGTH and len(distinct) >= _DISTINCT:
                begin = phrase[0].start()
                end = phrase[-1].end()
                out += [text[last:begin], mask(text[begin:end])]
                last = end
        return "".join(out) + text[last:]

    return _SEED.sub(mask_match, part)


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
    lower = lower_text(text)
    seen = lower.encode("utf-8", "replace").translate(_LETTERS).decode("ascii").split()
    words = set(seen)
    named = holds_name(text, lower, words, extra_names) and any(secret_spans(text, extra_names))
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
        yield partial(mask_named, extra_names, mask)
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
