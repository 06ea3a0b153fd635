"""A proposer of a researcher's own beside those of the service, inside this process."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from retrieval.proposals import compose
from retrieval.proposals.case import Case, Option
from retrieval.proposals.values import stated_value_options
from retrieval.reading.faults import Fault

Proposer = Callable[[Case, int, Fault], Iterator[Option]]
"""Options that mend one fault of a case, by the fault's index; see `retrieval.proposals.case`."""


@contextmanager
def with_proposer(proposer: Proposer) -> Iterator[None]:
    """Also ask a proposer, until the block ends; its options are verified and ranked as others."""
    built_in = stated_value_options  # which is asked of every fault

    def both(case: Case, index: int, fault: Fault) -> Iterator[Option]:
        yield from built_in(case, index, fault)
        yield from proposer(case, index, fault)

    with patch.object(compose, "stated_value_options", both):
        yield
