"""A proposer: Roman numerals where a tool wants an integer."""

from collections.abc import Iterator

from retrieval.answers.proposers.case import Case, Option, one_edit, put
from retrieval.answers.proposers.registry import Proposer
from retrieval.knowledge.beta import Trials
from retrieval.knowledge.reading.faults import Fault

_SIGNS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1_000}
_NEW = Trials(3, 1)
"""What stands for it before anybody used it: three times right in four, a guess."""


def number_of(text: str) -> int | None:
    """Return the number of a Roman numeral, from 1; None where the text is none."""
    values = [_SIGNS.get(letter, 0) for letter in text.upper()]
    if not values or 0 in values:
        return None
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < after else value for value, after in pairs)


def _options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    value = case.parameters.get(fault.parameter or "")
    number = number_of(value) if isinstance(value, str) else None
    if fault.parameter is not None and number is not None and "integer" in fault.expected_types:
        yield one_edit(index, put(case, fault.parameter, number), "a Roman numeral", _NEW, "schema")


ROMAN = Proposer("example.roman", frozenset({"wrong_type"}), _options)
