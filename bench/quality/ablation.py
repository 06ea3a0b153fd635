"""Parts of the product that can be switched off, to see what they earn (`bench.quality.memory`)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from retrieval import likeness as words
from retrieval.advice import advise
from retrieval.judge import ranking
from retrieval.knowledge import repairs
from retrieval.proposals import compose, experience, names, shape, values
from retrieval.proposals import faults as found
from retrieval.reading import reader

NOTHING = "nothing off"

Patch = tuple[Any, str, Any]
"""Whose attribute, its name, and what stands there instead."""


@dataclass(frozen=True, slots=True)
class Part:
    """A heuristic, and what to put in its place."""

    name: str
    patches: tuple[Patch, ...]


def _nothing(*_: Any, **__: Any) -> Iterator[Any]:
    return iter(())


def _none(*_: Any, **__: Any) -> None:
    return None


def _false(*_: Any, **__: Any) -> bool:
    return False


def certainty_parts() -> Iterator[Part]:
    """What was made for mistakes that nobody foresaw; `bench.quality.kinds` has their table."""
    yield Part("shape before names", ((compose, "reshaped", _none),))
    yield Part("names that are the likest", _both(names, shape, "best_matches", _no_matches))
    yield Part("no call in a call is a value", ((names, "holds_parameters", _false),))
    yield Part("stated forms", ((values, "_in_form", _nothing), (values, "in_form", _none)))
    yield Part("values of forms that schemas state", ((found, "out_of_form", lambda *_: []),))
    yield Part("nulls in words are left out", ((values, "left_out_options", _nothing),))
    yield Part("synonyms of names", ((words, "_share", _false),))
    yield Part("synonyms of listed values", ((values, "synonym_of", _none),))
    yield Part("the only value in the message", ((reader, "_placed", lambda faults, *_: faults),))
    yield Part("the session's values", ((compose, "session_options", _nothing),))
    yield from mixed_parts()


def mixed_parts() -> Iterator[Part]:
    """What was made for several mistakes at once."""
    yield Part("strange names of open schemas", ((found, "_strangers", _nothing),))
    yield Part("no surer than what is known of a value", ((ranking, "bound", lambda _: 1.0),))


def _no_matches(*_: Any, **__: Any) -> dict[str, str]:
    return {}


def memory_parts() -> Iterator[Part]:
    """What is remembered of sessions; `bench.quality.memory` has a table of its own for them."""
    yield Part("memory: mended alike", ((experience, "learned_options", _nothing),))
    yield Part("memory: general bounds", ((repairs, "_bounds", _nothing),))
    yield Part("memory: evidence adds up", ((compose, "_told", lambda proposal, *_: proposal),))
    yield Part("memory: the session's values", ((compose, "session_options", _nothing),))
    yield Part("memory: what comes first", ((advise, "learned_first_call", _none),))


def _both(one: ModuleType, other: ModuleType, name: str, instead: Any) -> tuple[Patch, ...]:
    return tuple((module, name, instead) for module in (one, other) if hasattr(module, name))


@contextmanager
def switched_off(part: Part) -> Iterator[None]:
    """The product without a part."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in part.patches]
    try:
        for owner, name, instead in part.patches:
            setattr(owner, name, instead)
        reader._faults_of.cache_clear()  # noqa: SLF001  # it keeps what was read with the part
        yield
    finally:
        for owner, name, own in before:
            setattr(owner, name, own)
        reader._faults_of.cache_clear()  # noqa: SLF001  # as above
