"""Tables of the pages of quality: of a set of wrong calls by kind, and of figures side by side."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.quality.scores import SURE, scores
from bench.quality.trial import Json, Result

UNREPAIRABLE = "should not be repaired"
"""The family of calls that hold no right repair."""
GUESS = 0.5
"""A suggestion of that confidence or more is wrong where nothing can be repaired."""
ABOUT = f"""
*Right@1*: the first suggestion does what the undamaged call would have done. *Wrong success*: it
does something else. *Coverage*: surer than {SURE:.2f}; *harm*: the share of these that is not
right. *By itself*: surer than {SURE:.2f} and allowed by its class, so that a client follows it
without asking; *and wrong*: those of them that do something else. *ECE* is of confidence against
right. Where nothing can be repaired it is right to propose nothing with a confidence of {GUESS} or
more, and wrong success to do so.
""".strip()
_COLUMNS = ("n", "right@1", "wrong success", "coverage", "harm", "by itself", "and wrong", "ECE")


def table(with_schema: Sequence[Result], without: Sequence[Result], *, by_kind: bool = True) -> str:
    """Return the rows of what was asked with schemas, and those of all with and without."""
    lines = [f"| {' | '.join(('kind', *_COLUMNS))} |", f"|---|{'---:|' * len(_COLUMNS)}"]
    for family, of in _grouped(with_schema, lambda each: each.trial.damage.parameter):
        lines.append(_line(f"**{family}**" if by_kind else family, of))
        if by_kind:
            kinds = _grouped(of, lambda each: each.trial.damage.kind)
            lines += [_line(kind, found) for kind, found in kinds]
    for name, found in (("with the schema", with_schema), ("without", without)):
        can_be = [each for each in found if not _is_never(each)]
        lines.append(_line(f"**all that can be repaired, {name}**", can_be))
        if len(can_be) < len(found):
            lines.append(_line(f"**{UNREPAIRABLE}, {name}**", list(filter(_is_never, found))))
    return "\n".join(lines)


def _grouped(
    results: Sequence[Result], key: Callable[[Result], str]
) -> Iterator[tuple[str, list[Result]]]:
    groups: dict[str, list[Result]] = {}
    for each in results:
        groups.setdefault(key(each), []).append(each)
    yield from groups.items()


def _is_never(result: Result) -> bool:
    return result.trial.damage.parameter == UNREPAIRABLE


def _line(name: str, of: Sequence[Result]) -> str:
    found = scores(of)
    right, wrong = found.right_at_1, found.wrong_success
    if all(map(_is_never, of)):
        wrong = sum(each.confidence >= GUESS for each in of) / max(1, len(of))
        right = 1 - wrong
    alone = [each for each in of if each.confidence > SURE and each.attempts[0].safe]
    figures = (right, wrong, found.coverage, found.harm)
    cells = [str(len(of)), *(f"{figure:.2f}" for figure in figures), str(len(alone)),
             str(sum(each.verdicts[0] == "wrong success" for each in alone)),
             f"{found.ece:.2f}"]  # fmt: skip
    return f"| {name} | {' | '.join(cells)} |"


def columns_table(columns: Mapping[str, Json]) -> list[str]:
    """Return the lines of a table with a column for each set of figures, a row for each figure."""
    names = dict.fromkeys(name for figures in columns.values() for name in figures)
    return [
        f"| | {' | '.join(columns)} |",
        "|---" * (len(columns) + 1) + "|",
        *(
            f"| {name} | {' | '.join(str(each.get(name, '-')) for each in columns.values())} |"
            for name in names
        ),
    ]
