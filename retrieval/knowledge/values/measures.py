"""Measures and codes: an amount in the unit that a tool counts in, and the code of what is named.

Nothing is converted but between units that are named on both sides.
"""

import re
from collections.abc import Collection, Iterator
from unicodedata import combining, normalize

from retrieval import read_word_table
from retrieval.knowledge.values.likeness import words_of

_TABLE = read_word_table("knowledge/values/measures.toml")
_UNITS: dict[str, dict[str, float]] = {
    kind: {name: row[0] for row in units.values() for name in row[1:]}
    for kind, units in _TABLE["units"].items()
}
"""What one of each unit is, by kind and name."""
_AMOUNT = re.compile(r"\s*(-?\d[\d,]*(?:\.\d+)?)\s*([a-z%]+)\s*(?:and\b|,)?", re.IGNORECASE)
_CLOCKED = re.compile(r"(?:(\d{1,2}):)?(\d{1,3}):(\d\d)")
_TIMES = re.compile(r"(\d+(?:\.\d+)?)\s?[x\u00d7]")
_THOUSANDS = re.compile(r"(\d+(?:\.\d+)?)\s?[kK]")
_OF_MONEY = frozenset(("price", "amount", "budget", "cost", "salary", "income", "revenue"))
_LONGEST = 60


def counted_in(words: Collection[str]) -> Iterator[tuple[str, float]]:
    """Yield the kinds of units that words name, with what one of the named ones is; each once."""
    for kind, units in _UNITS.items():
        named = {units[word] for word in words if word in units and (len(word) > 1 or word == "%")}
        if len(named) == 1:
            yield kind, named.pop()


def amount_of(text: str, kind: str) -> float | None:
    """Return how much a text states, such as `1h 30m` or `2.4 kg`, in the first unit of a kind."""
    text = text.strip().replace("\u00b0", "").lower()
    if len(text) > _LONGEST:
        return None
    if kind == "time" and (clock := _CLOCKED.fullmatch(text)):
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return 3600.0 * hours + 60 * minutes + seconds
    at = 0
    total = 0.0
    while at < len(text):
        found = _AMOUNT.match(text, at)
        if found is None:
            return None
        if found[2] not in _UNITS[kind]:
            return None
        total += float(found[1].replace(",", "")) * _UNITS[kind][found[2]]
        at = found.end()
    if text:
        return total
    return None


def measure_text(text: str, name: str, described_by: Collection[str]) -> float | None:
    """Return the number of a text in the unit of a parameter's name or description."""
    if len(text) > _LONGEST:
        return None
    times = _TIMES.fullmatch(text.strip())
    if times:
        return float(times[1])
    thousands = _THOUSANDS.fullmatch(text.strip())
    if thousands and not _OF_MONEY.isdisjoint(words_of(name)):
        return 1000 * float(thousands[1])
    if re.fullmatch(r"-?\d+,\d{1,2}", text.strip()):  # 1,500 may be a thousand and a half
        return float(text.strip().replace(",", "."))
    for words in (words_of(name), described_by):
        kinds = list(counted_in({*words, *(f"{word}s" for word in words)}))
        if kinds:
            found = {
                round(amount / one, 9)
                for kind, one in kinds
                if (amount := amount_of(text, kind)) is not None
            }
            if len(found) == 1:
                return found.pop()
            return None
    return None


def span_forms(text: str) -> Iterator[str]:
    """Yield a span of time as programs write it.

    `PT1H30M`, `1h 30m`, `90m`, `5400s`, `01:30:00`.
    """
    seconds = amount_of(text, "time")
    if seconds is None:
        return
    if seconds != int(seconds):
        return
    if seconds <= 0:
        return
    whole = int(seconds)
    parts = [(whole // 3600, "H"), (whole // 60 % 60, "M"), (whole % 60, "S")]
    yield "PT" + "".join(f"{count}{letter}" for count, letter in parts if count)
    yield " ".join(f"{count}{letter.lower()}" for count, letter in parts if count)
    yield from (
        f"{whole // one}{unit}"
        for unit, one in (("h", 3600), ("m", 60), ("s", 1))
        if whole % one == 0
    )
    yield ":".join(f"{count:02}" for count, _ in parts)


def _named_codes(table: dict[str, list[str]], text: str) -> list[str]:
    return [code for code, names in table.items() if text in names or text == names[0].lower()]


def codes_of(text: str) -> list[str]:
    """Codes of the country, language or state that a text names: `Germany`, `Portuguese (Brazil)`.

    All forms in which tools write them; none where the text is not one of these names.
    """
    if len(text) > _LONGEST:
        return []
    plain = "".join(each for each in normalize("NFKD", text) if not combining(each)).lower().strip()
    countries = _TABLE["countries"]
    languages = _TABLE["languages"]
    found = _named_codes(countries, plain)
    found += [countries[code][0] for code in found]
    found += [code for code, names in countries.items() if names[0].lower() == plain]
    tongues = _named_codes(languages, plain)
    found += [
        *tongues,
        *(languages[code][0] for code in tongues),
        *_named_codes(_TABLE["states"], plain),
    ]
    parts = re.fullmatch(r"([\w ]+?)[ ,(]+([\w ]+?)\)?", plain)
    for tongue, place in (parts.groups(), parts.groups()[::-1]) if parts else ():
        for code in _named_codes(languages, tongue):
            found += [
                f"{code}{mark}{land}" for land in _named_codes(countries, place) for mark in "-_"
            ]
    return list(dict.fromkeys(found))
