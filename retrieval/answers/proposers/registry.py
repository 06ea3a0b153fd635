"""The registry of proposers: who may repair which kinds of fault, in the order of being asked.

A proposer is a function of a case, the index of a fault and the fault, that yields options. A
researcher's own is registered, not patched in:

    register(Proposer("mine", frozenset(("bad_format",)), my_options))

or comes with another distribution (`register_plugins`, docs/plugins.md),

and `without_proposer("mine")` asks all but one of them, which is how the ablation counts what each
earns.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import ParamSpec

from aftercall.extensions import load_plugins, use_each
from retrieval.answers.proposers.bounds import out_of_range_options
from retrieval.answers.proposers.case import Case, Option
from retrieval.answers.proposers.context import context_options
from retrieval.answers.proposers.experience import rule_options, seed_options
from retrieval.answers.proposers.names import renamed_options, unexpected_options
from retrieval.answers.proposers.paths import path_options
from retrieval.answers.proposers.records import record_options, unlocated_record_options
from retrieval.answers.proposers.session import session_options
from retrieval.answers.proposers.slips import without_rival
from retrieval.answers.proposers.types import unwrapped_options, wrong_type_options
from retrieval.answers.proposers.values import (
    refused_value_options,
    stated_value_options,
    usual_values,
)
from retrieval.knowledge.reading.faults import Fault, FaultKind

P = ParamSpec("P")
logger = logging.getLogger(__name__)
Options = Callable[[Case, int, Fault], Iterable[Option]]
"""What a proposer yields for a fault, which has its index in the case."""
_VALUES: frozenset[FaultKind] = frozenset(("not_allowed", "bad_format", "not_found", "invalid"))
_MISSING: frozenset[FaultKind] = frozenset(("missing",))
EVERY: frozenset[FaultKind] = _VALUES | _MISSING | {"unexpected", "wrong_type", "out_of_range"}


@dataclass(frozen=True, slots=True)
class Proposer:
    """One way to repair faults of some kinds.

    It is asked only where none of `unless` had an option for the fault, and, where there are any,
    one of `beside` had. With `in_place` it is asked about the fault where it stands; else, for a
    fault inside of a value, about the object around it, as if that were the call.
    """

    name: str
    kinds: frozenset[FaultKind]
    options: Options
    unless: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class WholeProposer:
    """One way to repair a call as a whole, by what repaired such calls or what the session has."""

    name: str
    options: Callable[[Case], Iterable[Option]]


_proposers: dict[str, Proposer] = {}
_whole: dict[str, WholeProposer] = {}
_left_out: set[str] = set()


def register_proposer(proposer: Proposer | WholeProposer) -> None:
    """Add a proposer behind all others; one of the same name is replaced where it stands."""
    if isinstance(proposer, WholeProposer):
        _whole[proposer.name] = proposer
    else:
        _proposers[proposer.name] = proposer


def register_plugins() -> None:
    """Register the proposers that other distributions add, in the order of their names."""
    use_each("proposers", load_plugins("proposers"), _register_guarded)


def _register_guarded(proposer: object) -> None:
    """Register a proposer of another distribution, whose failures cost its own options only."""
    match proposer:
        case Proposer(name=name, options=options):
            register_proposer(replace(proposer, options=_guard_options(name, options)))
        case WholeProposer(name=name, options=of_call):
            register_proposer(replace(proposer, options=_guard_options(name, of_call)))
        case _:
            raise TypeError("it is no Proposer and no WholeProposer")


def _guard_options(name: str, options: Callable[P, Iterable[Option]]) -> Callable[P, list[Option]]:
    def ask_proposer(*args: P.args, **kwargs: P.kwargs) -> list[Option]:
        try:
            return list(options(*args, **kwargs))
        except Exception:
            logger.exception("the proposer %r of a plug-in failed; its options are left out", name)
            return []

    return ask_proposer


def unregister_proposer(name: str) -> None:
    """Take a proposer out.

    Raises:
        KeyError: no proposer has this name.
    """
    (_whole if name in _whole else _proposers).pop(name)


def proposer_names() -> list[str]:
    """Return the names of all proposers, in the order in which they are asked."""
    return [*_whole, *_proposers]


@contextmanager
def without_proposer(name: str) -> Iterator[None]:
    """Leave out a proposer while the context lasts: the rest answers as if it had never been.

    Raises:
        KeyError: no proposer has this name.
    """
    if name not in _whole and name not in _proposers:
        raise KeyError(f"no proposer is called {name!r}; there are {', '.join(proposer_names())}")
    _left_out.add(name)
    try:
        yield
    finally:
        _left_out.discard(name)


def options_for(
    case: Case, index: int, fault: Fault, *, in_place: bool = False
) -> Iterator[Option]:
    """Yield what the proposers have for a fault: those `in_place`, or all others."""
    had = set[str]()
    for proposer in _proposers.values():
        is_asked = fault.kind in proposer.kinds and proposer.in_place == in_place
        if not is_asked or proposer.name in _left_out:
            continue
        if not had.isdisjoint(proposer.unless):
            continue
        if proposer.beside and had.isdisjoint(proposer.beside):
            continue
        for option in proposer.options(case, index, fault):
            had.add(proposer.name)
            yield replace(option, proposer=proposer.name)


def whole_options(case: Case) -> Iterator[Option]:
    """Yield what repairs the call as a whole."""
    for proposer in _whole.values():
        if proposer.name not in _left_out:
            for option in proposer.options(case):
                yield replace(option, proposer=proposer.name)


# ------------------------------------------------------------------ those of the product
def _if_missing(options: Options) -> Options:
    """Ask only where the parameter is known by name and not there."""

    def ask_proposer(case: Case, index: int, fault: Fault) -> Iterable[Option]:
        is_missing = fault.parameter is not None and fault.parameter not in case.parameters
        return options(case, index, fault) if is_missing else ()

    return ask_proposer


def _rival_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    if fault.rival in case.parameters:
        yield from without_rival(index, fault)


def _unwrap_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    if fault.parameter is not None:
        yield from unwrapped_options(case, index, fault.parameter)


def _usual_options(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    if fault.parameter is not None:
        yield from usual_values(case, index, fault.parameter)


def _usual_in_range(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    if fault.parameter in case.parameters:
        yield from _usual_options(case, index, fault)


_OF_CALL = ("values.refused", "values.unwrapped")
_RENAMED = ("names.renamed",)
_WRONG_TYPE: frozenset[FaultKind] = frozenset(("wrong_type",))
_RANGE: frozenset[FaultKind] = frozenset(("out_of_range",))

for _each in (
    WholeProposer("learned.rules", lambda case: rule_options(case, case.like_signatures)),
    WholeProposer("learned.seeds", seed_options),
    WholeProposer("session.paths", path_options),
    WholeProposer("session.things", unlocated_record_options),
    Proposer("values.stated", EVERY, stated_value_options, in_place=True),
    Proposer("names.renamed", _MISSING, _if_missing(renamed_options)),
    Proposer("names.rival", _MISSING, _if_missing(_rival_options)),
    Proposer("names.unexpected", frozenset(("unexpected",)), unexpected_options),
    Proposer("values.type", _WRONG_TYPE, wrong_type_options),
    Proposer("values.bounds", _RANGE, out_of_range_options),
    Proposer("values.refused", _VALUES, refused_value_options),
    Proposer("values.unwrapped", _VALUES, _unwrap_options),
    Proposer("task.values", _VALUES | _RANGE, context_options),
    Proposer("task.missing", _MISSING, _if_missing(context_options), unless=_RENAMED),
    Proposer("session.records", _VALUES | _WRONG_TYPE, record_options),
    Proposer("session.missing", _MISSING, _if_missing(record_options), unless=_RENAMED),
    Proposer("session.links", _VALUES, session_options, unless=_OF_CALL),
    Proposer("session.near", _VALUES, partial(session_options, alone=False), beside=_OF_CALL),
    Proposer("session.given", _MISSING, _if_missing(session_options), unless=_RENAMED),
    Proposer("others.usual", _MISSING, _if_missing(_usual_options), unless=_RENAMED),
    Proposer("others.range", _RANGE, _usual_in_range),
):  # fmt: skip
    register_proposer(_each)
