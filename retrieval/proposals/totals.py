"""Right values that the error states: for one value of the call, or for the sum of several."""

from collections.abc import Iterator

from aftercall.redaction import is_redacted
from retrieval.edits.apply import apply_edits
from retrieval.edits.kinds import Balance, EditDoesNotApplyError, FromError, number_of
from retrieval.paths import Path, general, leaves_like
from retrieval.proposals.case import Case
from retrieval.proposals.grounds import grounds_of
from retrieval.proposals.option import Option, Trials
from retrieval.proposals.priors import prior
from retrieval.reading.faults import Fault

_MOST_LEAVES = 3
"""Numbers of a sum that are offered to take the difference, the last first."""


def stated_value_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    """The stated value in the place of the wrong one, or one number of a sum moved to the total."""
    if fault.stated is None or is_redacted(fault.stated):
        return
    covers, grounds = frozenset({index}), grounds_of(case)
    leaves = leaves_like(case.parameters, ())
    plain = any(at == fault.path for at, _ in leaves)
    wrong = fault.path if plain else _only_place(fault, [(at, str(value)) for at, value in leaves])
    if wrong:
        edit = FromError(name="").at(wrong)
        try:
            apply_edits(case.parameters, [edit], grounds)
        except EditDoesNotApplyError:
            return
        trials = prior("stated.value", 12, 3) if not case.writes else prior("stated.write", 8, 4)
        yield Option((edit,), "the error states the right value", trials, ("error",), covers=covers)
        return
    for rank, place in enumerate(_summands(case, fault)):
        yield Option(
            (Balance(name="").at(place),),
            "the error states what the sum must be",
            _sum_trials(rank),
            ("error",),
            covers=covers,
        )


def _sum_trials(rank: int) -> Trials:
    """Which of several amounts takes the difference is the caller's to say: never a sure guess."""
    return prior("stated.sum.last", 3, 3) if rank == 0 else prior("stated.sum.other", 1, 4)


def _only_place(fault: Fault, leaves: list[tuple[Path, str]]) -> Path:
    found = [at for at, text in leaves if text == fault.value_text]
    return found[0] if len(found) == 1 else ()


def _summands(case: Case, fault: Fault) -> list[Path]:
    """The numbers of an array that add up to the wrong total, the last first."""
    total = number_of(fault.value_text)
    groups: dict[Path, list[tuple[Path, float]]] = {}
    for at, value in leaves_like(case.parameters, ()):
        number = None if isinstance(value, str) else number_of(value)
        if number is not None and any(isinstance(step, int) for step in at):
            groups.setdefault(general(at), []).append((at, number))
    summed = [
        group
        for group in groups.values()
        if total is not None and len(group) > 1 and sum(number for _, number in group) == total
    ]
    if len(summed) != 1:
        return []
    places = [at for at, _ in summed[0]]
    last = tuple(-1 if step == places[-1][i] and isinstance(step, int) else step
                 for i, step in enumerate(places[-1]))  # fmt: skip
    return [last, *reversed(places[:-1])][:_MOST_LEAVES]
