"""Places inside parameters."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.knowledge.reading.faults import Fault
from retrieval.knowledge.tool.profile import ToolProfile
from retrieval.knowledge.values.parameters import (
    MAX_NODES,
    ParameterView,
    inner_values,
    value_at,
    written_place,
)
from tests.retrieval.profiles import at

BOOKING = {
    "flights": [
        {"flight_number": "HAT136", "date": "2024-05-20"},
        {"flight_number": "HAT039", "date": "2024-05-21", "seat": 12},
    ],
    "contact": {"name": "Mia", "address": {"city": "Austin", "tags": [["a"]]}},
}


def test_places_are_named_by_their_way() -> None:
    """Down to three objects or lists below the parameter; items of a list share a place."""
    found = [place for place, _ in inner_values(BOOKING.items())]
    assert found == [
        "flights[]", "flights[]", "contact.name", "contact.address", "flights[].flight_number",
        "flights[].date", "flights[].flight_number", "flights[].date", "flights[].seat",
        "contact.address.city", "contact.address.tags", "contact.address.tags[]",
    ]  # fmt: skip
    assert written_place(("flights", 1, "date")) == "flights[].date"
    assert value_at(BOOKING, ("flights", 1, "date")) == "2024-05-21"  # type: ignore[arg-type]  # plain JSON


@pytest.mark.parametrize("path", [("flights", 9), ("flights", "date"), ("contact", 0), ("x", "y")])
def test_a_path_that_leads_nowhere_finds_nothing(path: tuple[str | int, ...]) -> None:
    """Whatever an error claims."""
    assert value_at(BOOKING, path) is None  # type: ignore[arg-type]  # plain JSON


@given(
    st.recursive(
        st.integers(), lambda inner: st.lists(inner, min_size=1) | st.dictionaries(st.text(), inner)
    )
)
def test_no_call_has_more_places_than_are_looked_at(value: Any) -> None:
    """However wide and deep it is."""
    assert len(list(inner_values({"a": [value] * 30, "b": [[value]] * 30}.items()))) <= MAX_NODES


def test_a_renamed_or_missing_key_inside_a_list_shows_without_a_schema() -> None:
    """The objects at a place have a view like the tool itself."""
    profile = ToolProfile()
    for number in range(10):
        profile.observe_success(BOOKING, f"s{number}", "ada", at(number))  # type: ignore[arg-type]  # plain JSON
    view = profile.inner_view(("flights", 0))
    assert view.closed
    sent: dict[str, Any] = {"flightNumber": "HAT136", "date": "2024-05-20"}
    assert (view.unknown_parameters(sent), view.missing_parameters(sent)) == (
        ["flightNumber"],
        ["flight_number"],
    )
    assert view.parameters["seat"] == ParameterView("seat", types=("integer",))
    contact = profile.inner_view(("contact",))
    assert list(contact.parameters) == ["name", "address"]
    assert profile.make_view().parameters["flights"].item_types == ("object",)
    assert profile.inner_view(("flights",)) is None
    assert profile.inner_view(()) is None


def test_a_value_inside_a_list_that_an_error_names_is_refused_there() -> None:
    """And not that of the other items."""
    profile = ToolProfile()
    fault = Fault("bad_format", ("flights", 1, "date"))
    profile.observe_failure(BOOKING, [fault], at(1), blame_parameters=True)  # type: ignore[arg-type]  # plain JSON
    date = profile.profile_at("flights[].date")
    assert date.is_refused("2024-05-21")
    assert not date.is_refused("2024-05-20")
    assert (date.successes, date.failures) == (0, 2)


def test_a_flood_of_names_takes_the_place_of_no_parameter_that_works() -> None:
    """Failing calls displace nothing that had a success; successes only the weakest."""
    profile = ToolProfile()
    for number in range(20):
        profile.observe_success({"query": "x"}, f"s{number}", "ada", at(number))
    for number in range(300):
        junk = {f"junk {number} {k}": 1 for k in range(5)}
        profile.observe_failure(junk, (), at(number), blame_parameters=True)
        profile.observe_success(junk, f"s{number}", "mallory", at(number))
    assert profile.parameters["query"].successes == 20
    assert not profile.make_view().closed, "it cannot know all names"
    profile.observe_success({"fresh": 1}, "s", "ada", at(999))
    assert "fresh" in profile.parameters
