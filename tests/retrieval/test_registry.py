"""The registry of proposers: a researcher's own is asked, and any one can be left out."""

from collections.abc import Iterator

import pytest

from retrieval.answers.proposers.case import Case, Option, one_edit, prior_trials
from retrieval.answers.proposers.compose import propose_changes
from retrieval.answers.proposers.registry import (
    Proposer,
    proposer_names,
    register_proposer,
    unregister_proposer,
    without_proposer,
)
from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.rewrites.edits import Replace
from tests.retrieval.cases import make_case, object_schema

SCHEMA = object_schema(colour="string")
MESSAGE = "colour 'grau' is not a known colour"


def _german(case: Case, index: int, fault: Fault) -> Iterator[Option]:
    sent = case.parameters.get(str(fault.parameter))
    if sent == "grau":
        edit = Replace(name="colour", before=sent, value="grey")
        yield one_edit(index, edit, "the German word", prior_trials("mine.german", (9, 1)), "seed")


def repaired() -> list[object]:
    """The colours that are proposed."""
    case = make_case({"colour": "grau"}, MESSAGE, schema=SCHEMA)
    return [each.parameters["colour"] for each in propose_changes(case)]


def test_a_registered_proposer_is_asked() -> None:
    """About its kinds of fault; taken out, it is gone."""
    assert "grey" not in repaired()
    register_proposer(Proposer("mine", frozenset(("not_found", "invalid", "not_allowed")), _german))
    try:
        assert "mine" in proposer_names()
        assert "grey" in repaired()
        with without_proposer("mine"):
            assert "grey" not in repaired()
    finally:
        unregister_proposer("mine")
    assert "grey" not in repaired()


def test_each_proposer_can_be_left_out() -> None:
    """Without renames a misspelt name has no other place; one that is not there is named."""
    case = make_case(
        {"colur": "red"},
        "missing required parameter: colour",
        schema=object_schema(colour="string"),
    )
    assert [each.parameters for each in propose_changes(case)][:1] == [{"colour": "red"}]
    with without_proposer("names.renamed"), without_proposer("names.unexpected"):
        assert {"colour": "red"} not in [each.parameters for each in propose_changes(case)]
    with pytest.raises(KeyError, match="no proposer"), without_proposer("no such"):
        pass
