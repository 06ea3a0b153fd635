"""The shape of values: types, ranges, text forms and sizes, without the values themselves."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from pydantic import BaseModel, Field

from aftercall.json_values import JsonValue
from aftercall.redaction import REDACTED, is_redacted
from retrieval.formats import LetterCase, TextFormat, case_of, format_of
from retrieval.profile.bounded import add_counts, greatest, least
from retrieval.reading.faults import JsonType
from retrieval.values import type_of

_RARE = 0.05
"""A type of fewer of the values is taken for a slip that the tool let pass."""
_TYPES: dict[str, JsonType] = {
    "null": "null", "boolean": "boolean", "integer": "integer", "number": "number",
    "array": "array", "object": "object",
}  # fmt: skip
K = TypeVar("K", bound=str)


class Shape(BaseModel):
    """What many values looked like. Merging is exact: counts add up, ranges widen."""

    types: dict[JsonType, int] = Field(default_factory=dict)
    formats: dict[TextFormat, int] = Field(default_factory=dict)
    """Of texts that are not masked."""
    cases: dict[LetterCase, int] = Field(default_factory=dict)
    """Of the same texts."""
    minimum: float | None = None
    """The smallest number."""
    maximum: float | None = None
    shortest: int | None = None
    """Length in characters of the shortest text."""
    longest: int | None = None
    fewest: int | None = None
    """Number of items of the shortest list."""
    most: int | None = None

    def observe_shape(self, value: JsonValue) -> None:
        """Count one value."""
        if isinstance(value, str):
            self._observe_text(value)
            return
        kind = type_of(value)
        self.types[kind] = self.types.get(kind, 0) + 1
        if isinstance(value, bool):
            return
        if isinstance(value, int | float):
            number = float(value)
            self.minimum = least(self.minimum, number)
            self.maximum = greatest(self.maximum, number)
        elif isinstance(value, list):
            size = len(value)
            self.fewest = size if self.fewest is None or size < self.fewest else self.fewest
            self.most = size if self.most is None or size > self.most else self.most

    def _observe_text(self, value: str) -> None:
        if is_redacted(value):
            kind = _masked_type(value)
            self.types[kind] = self.types.get(kind, 0) + 1
            return
        self.types["string"] = self.types.get("string", 0) + 1
        form, case = format_of(value), case_of(value)
        self.formats[form] = self.formats.get(form, 0) + 1
        self.cases[case] = self.cases.get(case, 0) + 1
        size = len(value)
        self.shortest = size if self.shortest is None or size < self.shortest else self.shortest
        self.longest = size if self.longest is None or size > self.longest else self.longest

    def usual_types(self) -> Iterator[JsonType]:
        """The types that are no slips, the most frequent first."""
        total = sum(self.types.values())
        by_count = sorted(self.types.items(), key=lambda item: (-item[1], item[0]))
        return (kind for kind, count in by_count if count >= _RARE * total)

    def usual_format(self) -> tuple[TextFormat, float] | None:
        """The most frequent form of the texts, and its share of them (0 to 1)."""
        return _usual(self.formats)

    def usual_case(self) -> tuple[LetterCase, float] | None:
        """The most frequent letter case of the texts, and its share of them (0 to 1)."""
        return _usual(self.cases)


def _masked_type(text: str) -> JsonType:
    """The type that a mask says it stands for; a text with a mask in it is a text."""
    mask = REDACTED.fullmatch(text)
    kind = mask[0].split(":")[1] if mask else "string"
    return _TYPES.get(kind, "string")


def _usual(counts: Mapping[K, int]) -> tuple[K, float] | None:
    if not counts:
        return None
    key = max(counts, key=lambda each: (counts[each], each))
    return key, counts[key] / sum(counts.values())


def merge_shapes(left: Shape, right: Shape) -> dict[str, object]:
    """The fields of the shape of both, to make a `Shape` or a part of it from."""
    return {
        "types": add_counts(left.types, right.types),
        "formats": add_counts(left.formats, right.formats),
        "cases": add_counts(left.cases, right.cases),
        "minimum": least(left.minimum, right.minimum),
        "maximum": greatest(left.maximum, right.maximum),
        "shortest": least(left.shortest, right.shortest),
        "longest": greatest(left.longest, right.longest),
        "fewest": least(left.fewest, right.fewest),
        "most": greatest(left.most, right.most),
    }
