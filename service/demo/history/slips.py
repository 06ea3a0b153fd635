"""Slips: how a right call becomes the one that an agent sends.

Each also knows what the caller meant, for some slips change that: who asks for 200 hits of a tool
that gives 50 means as many as there can be.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

from aftercall.json_values import JsonObject, JsonValue

SlipKind = Literal["name", "missing", "type", "range", "choice", "form", "invented", "hidden", "id"]
"""What an agent gets wrong; agents differ in which of these they are prone to."""

Slipped: TypeAlias = tuple[JsonObject, JsonObject]
"""What is sent, and what is meant."""


@dataclass(frozen=True, slots=True)
class Slip:
    """One way to get a call of one tool wrong.

    Args:
        kind: what kind of mistake it is.
        name: the parameter that it is about.
        make: sends and means from the right parameters; None where it does not apply.
        weight: how common it is beside the tool's other slips.
    """

    kind: SlipKind
    name: str
    make: Callable[[JsonObject, Random], Slipped | None]
    weight: float = 1.0


def renamed(right: str, *wrong: str, weight: float = 1.0) -> Slip:
    """The parameter under a name that other tools have for it."""

    def make(means: JsonObject, dice: Random) -> Slipped | None:
        if right not in means:
            return None
        name = dice.choice(wrong)
        return {name if key == right else key: value for key, value in means.items()}, means

    return Slip("name", right, make, weight)


def left_out(name: str, weight: float = 1.0) -> Slip:
    """A parameter is forgotten."""

    def make(means: JsonObject, dice: Random) -> Slipped | None:
        del dice
        if name not in means:
            return None
        return {key: value for key, value in means.items() if key != name}, means

    return Slip("missing", name, make, weight)


def as_text(name: str, weight: float = 1.0) -> Slip:
    """A number or a flag is sent as text."""
    return _replaced("type", name, lambda value, _: str(value).lower(), weight)


def as_list(name: str, weight: float = 1.0) -> Slip:
    """One text is sent as a list of one."""
    return _replaced("type", name, lambda value, _: [value], weight)


def as_one(name: str, weight: float = 1.0) -> Slip:
    """A list is sent as text with commas."""

    def joined(value: JsonValue, dice: Random) -> JsonValue:
        del dice
        return ", ".join(map(str, value)) if isinstance(value, list) else None

    return _replaced("type", name, joined, weight)


def beyond(name: str, most: int, *wrong: int, weight: float = 1.0, is_hidden: bool = False) -> Slip:
    """More than the tool gives; what is meant is as much as it gives."""

    def make(means: JsonObject, dice: Random) -> Slipped | None:
        return {**means, name: dice.choice(wrong)}, {**means, name: most}

    return Slip("hidden" if is_hidden else "range", name, make, weight)


def called(name: str, words: Mapping[str, tuple[str, ...]], weight: float = 1.0) -> Slip:
    """A listed value under another word, such as `closed` for `resolved`."""

    def other(value: JsonValue, dice: Random) -> JsonValue:
        found = words.get(str(value))
        return dice.choice(found) if found else None

    return _replaced("choice", name, other, weight)


def formed(name: str, change: Callable[[str, Random], str | None], weight: float = 1.0) -> Slip:
    """A text in another form, such as `03.11.2026` for `2026-11-03`."""
    return _changed("form", name, change, weight)


def mistaken(name: str, change: Callable[[str, Random], str | None], weight: float = 1.0) -> Slip:
    """A value that the tool does not know, such as the id of something that is not there."""
    return _changed("id", name, change, weight)


def against_a_rule(
    name: str, change: Callable[[str, Random], str | None], weight: float = 1.0
) -> Slip:
    """A text that the schema allows and the tool does not."""
    return _changed("hidden", name, change, weight)


def invented(name: str, *values: JsonValue, weight: float = 1.0) -> Slip:
    """A parameter that the tool does not have."""

    def make(means: JsonObject, dice: Random) -> Slipped | None:
        return {**means, name: dice.choice(values)}, means

    return Slip("invented", name, make, weight)


def day_forms(day: str, dice: Random) -> str:
    """`2026-11-03` as people write it."""
    year, month, date = day.split("-")
    return dice.choice((f"{date}.{month}.{year}", f"{year}/{month}/{date}", f"{day}T00:00:00Z"))


def time_forms(time: str, dice: Random) -> str:
    """`14:30` as people write it."""
    hour, minute = map(int, time.split(":"))
    half = "pm" if hour >= 12 else "am"
    return dice.choice((f"{hour % 12 or 12}:{minute:02d} {half}", f"{hour}h{minute:02d}"))


def _changed(
    kind: SlipKind, name: str, change: Callable[[str, Random], str | None], weight: float
) -> Slip:
    def other(value: JsonValue, dice: Random) -> JsonValue:
        return change(value, dice) if isinstance(value, str) else None

    return _replaced(kind, name, other, weight)


def _replaced(
    kind: SlipKind, name: str, other: Callable[[JsonValue, Random], JsonValue], weight: float
) -> Slip:
    def make(means: JsonObject, dice: Random) -> Slipped | None:
        if name not in means:
            return None
        value = other(means[name], dice)
        return None if value is None or value == means[name] else ({**means, name: value}, means)

    return Slip(kind, name, make, weight)
