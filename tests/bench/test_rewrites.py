"""The forms of change are what they say, and what the benchmark counts as right is right."""

import re
from collections import Counter

import pytest

from bench.quality.laws.complaints import errors_of
from bench.quality.rewrites import is_right
from bench.quality.rewrites_cases import Form, changes_of, forms, is_change, mends, schema_of, traps

FORMS = forms()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: re.sub(r"\W+", "-", form.name))
def test_the_same_becomes_of_all_pairs_of_a_form(form: Form) -> None:
    """And each is about other values, so that no answer can be one of those that were taught."""
    assert len(form.pairs) == 4
    found = [changes_of(failed, mended) for failed, mended in form.pairs]
    assert [each for each in found if not is_change(form.change, each)] == []
    mended = [right for _, right in form.pairs]
    assert all(right not in mended[:at] for at, right in enumerate(mended))


def test_the_schema_of_a_form_takes_its_right_calls() -> None:
    """The call that no lesson may touch is one of them."""
    for form in FORMS:
        right = [mended for _, mended in form.pairs] + [form.other] * bool(form.other)
        assert [each for each in right if errors_of(form.schema, each)] == []


def test_there_are_forms_traps_and_mends_enough() -> None:
    """A third of the errors say nothing; no lesson reaches another form."""
    assert len(FORMS) >= 60
    assert sum(form.opaque for form in FORMS) * 3 >= len(FORMS)
    assert max(Counter((form.tool, form.server) for form in FORMS).values()) == 1
    assert len(traps()) >= 40
    assert len(mends(40)) == 12


def test_the_agents_of_a_mend_have_values_of_their_own() -> None:
    """And what all mend alike is the same change."""
    for mend in mends(40):
        calls = [mended for _, mended in mend.pairs]
        assert all(each not in calls[:at] for at, each in enumerate(calls))
        assert len({frozenset(changes_of(*pair)) for pair in mend.pairs}) == 1


def test_values_of_others_are_taught_and_not_asked_with() -> None:
    for trap in traps():
        assert bool(trap.theirs) == (trap.kind == "subject"), trap.name
        assert all(str(value) not in str(trap.question.call) for value in trap.theirs), trap.name
        assert all(str(value) in str(trap.pairs) for value in trap.theirs), trap.name


def test_a_change_is_told_by_its_leaves() -> None:
    """Each of them, and no other; `?` marks what some pairs have."""
    found = changes_of({"q": "a", "n": [1, 2]}, {"query": "a", "n": [1, 3]})
    assert found == {"-q", "+query", "~n.1"}
    assert is_change("-q +query ~n.* ?-lang", found)
    assert not is_change("-q +query", found)
    assert not is_change("-q +query ~n.* +lang", found)


def test_right_is_byte_for_byte_but_for_blanks_of_json_texts() -> None:
    assert is_right({"a": '{"b":1}'}, {"a": '{"b": 1}'})
    assert not is_right({"a": 1.0}, {"a": 1})
    assert not is_right({"a": True}, {"a": 1})


def test_a_schema_requires_what_all_values_have() -> None:
    schema = schema_of([{"a": 1, "b": [{"c": "x"}]}, {"a": 2}])
    assert schema["required"] == ["a"]
    assert schema["properties"]["b"]["items"]["required"] == ["c"]
