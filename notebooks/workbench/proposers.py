"""A proposer of a researcher's own next to those of the service, inside this process."""

from collections.abc import Iterator
from contextlib import contextmanager

from retrieval.answers.proposers.registry import (
    EVERY,
    Options,
    Proposer,
    register_proposer,
    unregister_proposer,
)


@contextmanager
def with_proposer(options: Options, name: str = "mine") -> Iterator[None]:
    """Also ask a proposer, until the block ends; its options are verified and ranked as others."""
    register_proposer(Proposer(name, EVERY, options, in_place=True))
    try:
        yield
    finally:
        unregister_proposer(name)
