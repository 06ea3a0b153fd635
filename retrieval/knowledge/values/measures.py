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
        telling = (word for word in words if len(word) > 1 or word == "%")
        named = {units[word] for word in telling if word in units}
        if len(named) == 1:
            [unit] = named
            yield kind, unit


def amount_of(text: str, kind: str) -> float | None:
    """Return how much a text states, such as `1h 30m` or `2.4 kg`, in the first unit of a kind."""
    text = text.strip().replace("\u00b0", "").lower()
    if len(text) > _LONGEST:
        return None
    if kind == "time" and (clock := _CLOCKED.fullmatch(text)):
        parts = [int(part or 0) for part in clock.groups()]
        hours, minutes, seconds = parts
        return 3600.0 * hours + 60 * minutes + seconds
    at = 0
    total = 0.0
    units = _UNITS[kind]
    while at < len(text):
        found = _AMOUNT.match(text, at)
        if found is None:
            return None
        number, unit = found[1], found[2]
        if unit not in units:
            return None
        total += float(number.replace(",", "")) * units[unit]
        at = found.end()
    if text:
        return total
    return None


def measure_text(text: str, name: str, described_by: Collection[str]) -> float | None:
    """Return the number of a text in the unit of a parameter's name or description."""
    if len(text) > _LONGEST:
        return None
    bare = text.strip()
    times = _TIMES.fullmatch(bare)
    if times:
        return float(times[1])
    thousands = _THOUSANDS.fullmatch(bare)
    if thousands and not _OF_MONEY.isdisjoint(words_of(name)):
        return 1000 * float(thousands[1])
    if re.fullmatch(r"-?\d+,\d{1,2}", bare):  # 1,500 may be a thousand and a half
        return float(bare.replace(",", "."))
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
    if seconds is None or seconds <= 0:
        return
    if seconds != int(seconds):
        return
    whole = int(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    words = [f"{count}{letter}" for count, letter in parts if count]
    yield "PT" + "".join(words).upper()
    yield " ".join(words)
    for unit, one in (("h", 3600), ("m", 60), ("s", 1)):
        if whole % one == 0:
            yield f"{whole // one}{unit}"
    yield f"{hours:02}:{minutes:02}:{rest:02}"


def _named_codes(table: dict[str, list[str]], text: str) -> list[str]:
    return [code for code, names in table.items() if text in names or text == names[0].lower()]


def codes_of(text: str) -> list[str]:
    """Codes of the country, language or state that a text names: `Germany`, `Portuguese (Brazil)`.

    All forms in which tools write them; none where the text is not one of these names.
    """
    if len(text) > _LONGEST:
        return []
    letters = [each for each in normalize("NFKD", text) if not combining(each)]
    plain = "".join(letters).lower().strip()
    countries = _TABLE["countries"]
    languages = _TABLE["languages"]
    states = _TABLE["states"]
    found = _named_codes(countries, plain)
    found += [countries[code][0] for code in found]
    for code, names in countries.items():
        if names[0].lower() == plain:
            found.append(code)
    tongues = _named_codes(languages, plain)
    found += tongues
    found += [languages[code][0] for code in tongues]
    found += _named_codes(states, plain)
    parts = re.fullmatch(r"([\w ]+?)[ ,(]+([\w ]+?)\)?", plain)
    if parts is None:
        return list(dict.fromkeys(found))
    one, other = parts.groups()
    for tongue, place in ((one, other), (other, one)):
        lands = _named_codes(countries, place)
        for code in _named_codes(languages, tongue):
            for land in lands:
                found.append(f"{code}-{land}")
                found.append(f"{code}_{land}")
    return list(dict.fromkeys(found))
