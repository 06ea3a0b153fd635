"""Kinds of damage that nothing was fitted on, in families: the same for the same draw.

Each maker gives what could be sent instead of a right call, in the order of its draw; the first
that the tool refuses becomes a trial. None of them makes what `bench.quality.damage` makes: those
mistakes are what the memory has seen. The calls of the family `should not be repaired` hold no
right repair: whatever is changed in them is a guess.
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bench.quality.damage import aliases_of
from bench.quality.kinds_words import (
    ABBREVIATIONS,
    LISTED,
    SYNONYMS,
    TRANSLATIONS,
    camel,
    joined_as,
    number_in_words,
    words_of,
)
from bench.quality.sessions import GoldCall
from bench.quality.trial import Json


@dataclass(frozen=True, slots=True)
class Made:
    """What is sent instead of a right call."""

    sent: Json
    how: str = ""
    gold: Json | None = None
    """What was meant, where that is not the call itself."""
    error: Json | None = None
    """What is said of it, where the tool itself never sees it."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A right call, and what a mistake in it is drawn from."""

    call: GoldCall
    schema: Json
    others: Sequence[Json]
    """Parameters of other calls of the tool."""
    earlier: Sequence[GoldCall]
    """The session's calls before it."""
    rng: random.Random = field(repr=False)

    @property
    def sent(self) -> Json:
        """The right parameters."""
        return self.call.parameters

    @property
    def properties(self) -> Json:
        """The schema's parameters."""
        found: Json = self.schema.get("properties", {})
        return found

    @property
    def required(self) -> list[str]:
        """Those of the call that the tool requires."""
        return [name for name in self.schema.get("required", ()) if name in self.sent]

    def shuffled(self, items: Iterable[Any]) -> list[Any]:
        """The items in the order of the draw."""
        found = list(items)
        self.rng.shuffle(found)
        return found

    def renamed(self, names: dict[str, str]) -> Json | None:
        """The call with other names; None where one is taken, or is of the mistakes seen."""
        taken = {**self.properties, **self.sent}
        if any(new in taken or new in aliases_of(old) for old, new in names.items()):
            return None
        return {names.get(name, name): value for name, value in self.sent.items()}

    def valued(self, name: str, value: Any) -> Json:
        """The call with another value."""
        return {**self.sent, name: value}

    def listed(self, name: str) -> list[str]:
        """The texts that a parameter may have, as far as its schema lists them."""
        part = self.properties.get(name, {})
        found = part.get("enum") or part.get("items", {}).get("enum")
        if found is None and "[Enum]: [" in part.get("description", ""):
            text = part["description"].split("[Enum]: [", 1)[1].split("]", 1)[0]
            found = json.loads(f"[{text}]")
        return [each for each in found or () if isinstance(each, str)]

    def is_stated(self, value: Any) -> bool:
        """Whether the context, the session or another call says the value."""
        said = [self.call.context, *(each.context for each in self.earlier)]
        said += [json.dumps([each.parameters, each.result], default=str) for each in self.earlier]
        said += [json.dumps(each) for each in self.others if each != self.sent]
        return str(value).lower() in " ".join(said).lower()


Maker = Callable[[Draw], Iterator[Made]]


# Names


def one_renamed(draw: Draw, names_for: Callable[[str], Iterable[str]]) -> Iterator[Made]:
    for name in draw.shuffled(draw.sent):
        for new in draw.shuffled(names_for(name)):
            sent = draw.renamed({name: new})
            if sent is not None:
                yield Made(sent, f"{name} -> {new}")


def synonyms(name: str) -> list[str]:
    words = words_of(name)
    return [
        joined_as(name, [*words[:at], new, *words[at + 1 :]])
        for at, word in enumerate(words)
        if len(words) > 1
        for new in SYNONYMS.get(word.lower(), ())
    ]


def abbreviations(name: str) -> list[str]:
    words = words_of(name)
    short = [ABBREVIATIONS.get(word.lower(), word) for word in words]
    skeleton = [
        word if len(word) < 5 else word[0] + "".join(c for c in word[1:] if c not in "aeiou")
        for word in words
    ]
    return list(dict.fromkeys(joined_as(name, each) for each in (short, skeleton) if each != words))


def numbers_of_names(name: str) -> list[str]:
    return [name[:-1]] if name.endswith("s") and len(name) > 3 else [f"{name}s"]


def translations(name: str) -> list[str]:
    words = [word.lower() for word in words_of(name)]
    found = [TRANSLATIONS.get(word, ()) for word in words]
    most = min((len(each) for each in found), default=0)
    return [joined_as(name, [each[at] for each in found]) for at in range(most)]


def with_noun(draw: Draw) -> Iterator[Made]:
    words = words_of(draw.call.tool)
    noun = words[-1].lower().rstrip("s")
    if len(words) > 1:
        yield from one_renamed(
            draw,
            lambda name: () if noun in name.lower() else [joined_as(name, [noun, *words_of(name)])],
        )


def neutral(draw: Draw) -> Iterator[Made]:
    for name in draw.shuffled(draw.required):
        for word in draw.shuffled(("text", "value", "input")):
            if (isinstance(draw.sent[name], str) or word != "text") and (
                sent := draw.renamed({name: word})
            ):
                yield Made(sent, f"{name} -> {word}")


def with_type(draw: Draw) -> Iterator[Made]:
    words = {str: "string", list: "list", bool: "flag", int: "number", float: "number"}
    yield from one_renamed(
        draw,
        lambda name: [
            joined_as(name, [*words_of(name), words.get(type(draw.sent[name]), "object")])
        ],
    )


# Types


def _numbers(draw: Draw) -> list[tuple[str, float]]:
    return [
        (name, value)
        for name, value in draw.shuffled(draw.sent.items())
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def with_unit(draw: Draw) -> Iterator[Made]:
    for name, value in _numbers(draw):
        nouns = [word for word in words_of(name) if len(word) > 3]
        unit = {"distance": "miles", "fuelAmount": "gallons", "duration": "days"}.get(name)
        unit = unit or (nouns[-1].lower() if nouns else "units")
        yield Made(draw.valued(name, f"{_plain(value)} {unit}"), name)


def yes_or_no(draw: Draw) -> Iterator[Made]:
    for name, value in draw.shuffled(draw.sent.items()):
        if isinstance(value, bool):
            for yes, no in draw.shuffled((("yes", "no"), ("on", "off"), ("Y", "N"))):
                yield Made(draw.valued(name, yes if value else no), name)


def in_words(draw: Draw) -> Iterator[Made]:
    for name, value in _numbers(draw):
        words = number_in_words(value)
        if words:
            yield Made(draw.valued(name, words), name)


def as_comma_text(draw: Draw) -> Iterator[Made]:
    for name, value in draw.shuffled(draw.sent.items()):
        if isinstance(value, list) and len(value) > 1:
            items = [str(each) for each in value if isinstance(each, str | int | float)]
            if len(items) == len(value) and not any(set(",;") & set(each) for each in items):
                ways = (",".join(items), "; ".join(items), "\n".join(items),
                        f"{', '.join(items[:-1])} and {items[-1]}")  # fmt: skip
                yield from (Made(draw.valued(name, way), name) for way in draw.shuffled(ways))


def optional_as(*values: Any) -> Maker:
    """A maker that gives an optional parameter, which the caller did not want, one of these."""

    def made(draw: Draw) -> Iterator[Made]:
        left = [name for name in draw.properties if name not in draw.sent]
        optional = [name for name in left if name not in draw.schema.get("required", ())]
        for name in draw.shuffled(optional):
            value = draw.rng.choice(values)
            yield Made(draw.valued(name, value), f"{name}: {value}")

    return made


def as_fraction_text(draw: Draw) -> Iterator[Made]:
    for name, value in _numbers(draw):
        if value == int(value):
            yield Made(draw.valued(name, f"{value:.1f}" if value % 10 else f"{value:.2e}"), name)


# Forms of values


def each_text(
    draw: Draw, forms: Callable[[str], Iterable[str]], *, listed: bool = True
) -> Iterator[Made]:
    """One text in another form; `listed` allows those that the schema lists."""
    for name, value in draw.shuffled(draw.sent.items()):
        if isinstance(value, str) and value and (listed or not draw.listed(name)):
            for new in draw.shuffled(forms(value)):
                if new != value:
                    yield Made(draw.valued(name, new), f"{name}: {new[:40]!r}")


def dates(text: str) -> list[str]:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return []
    if len(text) < 10 or not text[:4].isdigit():
        return []
    day = (f"{moment:%d %B %Y}", f"{moment:%B} {moment.day}, {moment.year}", f"{moment:%Y/%m/%d}",
           f"{moment:%d.%m.%Y}", f"{moment:%Y%m%d}")  # fmt: skip
    if len(text) == 10:
        return list(day)
    return [f"{each} {moment:%H:%M}" for each in day] + [f"{moment:%Y-%m-%d %H:%M:%S}"]


def quoted(text: str) -> list[str]:
    return [f'"{text}"', f"'{text}'", f"`{text}`", f"**{text}**"]


def blanks(text: str) -> list[str]:
    return [f" {text}", f"{text} ", f"{text}\n", f"\t{text}"]


def marked_numbers(draw: Draw) -> Iterator[Made]:
    for name, value in _numbers(draw):
        whole = value == int(value)
        marks = (
            [f"~{_plain(value)}", f"{_plain(value)}.-"] if whole else [f"~{value}", f"{value} USD"]
        )
        if whole and abs(value) >= 1000:
            marks = [f"{int(value):,}", f"{int(value):,}.00", f"{int(value):,}".replace(",", "'")]
        if whole and name.lower().endswith(("number", "id")):
            marks = [f"#{int(value)}", f"No. {int(value)}"]
        yield from (Made(draw.valued(name, mark), f"{name}: {mark}") for mark in marks)


def each_listed(draw: Draw, forms: Callable[[str], Iterable[str]]) -> Iterator[Made]:
    """One listed value in another form, also one of a list of them."""
    for name, value in draw.shuffled(draw.sent.items()):
        listed = draw.listed(name)
        items = value if isinstance(value, list) else [value]
        for at, item in enumerate(items):
            for new in forms(item) if isinstance(item, str) and item in listed else ():
                if new not in listed:
                    changed = [*items[:at], new, *items[at + 1 :]]
                    sent = draw.valued(name, changed if isinstance(value, list) else new)
                    yield Made(sent, f"{name}: {item} -> {new}")


def listed_synonyms(text: str) -> Sequence[str]:
    """What a listed value is called elsewhere."""
    return LISTED.get(text.lower(), ())


def misspelt(rng: random.Random, text: str) -> list[str]:
    """Two slips, or a vowel for another: not the single slip that the memory has seen."""
    places = [at for at in range(1, len(text) - 2) if text[at : at + 2].isalpha()]
    if len(text) < 5 or not places or not text[-1].isalpha():
        return []
    at = rng.choice(places)
    swapped = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    vowels = dict(zip("aeiouAEIOU", "eaaueEAAUE", strict=True))
    last = next((at for at in range(len(text) - 1, -1, -1) if text[at] in vowels), 0)
    vowel = text[:last] + vowels.get(text[last], text[last]) + text[last + 1 :]
    return [each for each in (vowel, swapped[:-1]) if each != text]


def spellings(text: str) -> list[str]:
    words = [word.lower() for word in words_of(text)]
    if len(words) < 2:
        return [text.swapcase()] if len(text) > 1 else []
    return [camel(text), " ".join(words), "-".join(words), "".join(words)]


# Values


def part_left_out(text: str) -> list[str]:
    """A known value as one remembers it: without its ending, or with a blank in its name."""
    stem, dot, ending = text.rpartition(".")
    found = [stem] if dot and 1 < len(ending) < 5 and " " not in text else []
    words = words_of(text)
    for mark in "_-":
        if 1 < len(words) < 5 and mark in text:
            found += [text.replace(mark, " "), text.replace(mark, "")]
    return found


def percent(draw: Draw) -> Iterator[Made]:
    """The unit's hundredfold, and more of a portion than there may be: as much as there may be."""
    for name, value in _numbers(draw):
        highest = draw.properties.get(name, {}).get("maximum")
        if highest is not None:
            more = draw.rng.choice((highest + 1, 2 * highest, 1000))
            yield Made(draw.valued(name, more), name, draw.valued(name, highest))
        elif isinstance(value, float) and 0 < value <= 1:
            yield Made(draw.valued(name, 100 * value), name)


def swapped(draw: Draw) -> Iterator[Made]:
    names = draw.shuffled(draw.sent)
    for first in names:
        for second in names:
            if first < second and draw.sent[first] != draw.sent[second]:
                swapped = {first: draw.sent[second], second: draw.sent[first]}
                yield Made({**draw.sent, **swapped}, f"{first} and {second}")


def of_another_call(draw: Draw) -> Iterator[Made]:
    for earlier in reversed(draw.earlier):
        for name in draw.shuffled(draw.sent):
            for key, value in earlier.parameters.items():
                alike = type(value) is type(draw.sent[name]) and not isinstance(value, bool)
                if key != name and alike and value != draw.sent[name]:
                    yield Made(draw.valued(name, value), f"{name} of {earlier.tool}.{key}")


def relative(text: str) -> list[str]:
    plain = text.replace(".", "").replace("_", "").replace("-", "").isalnum()
    return [f"./{text}", f"/{text}", f"{text}/"] if plain else []
