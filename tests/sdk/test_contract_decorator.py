"""Deliverables around calls: the decorator, `checked`, and the reader for reflection."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from aftercall.contracts import (
    ContractViolationError,
    Deliverable,
    DeliverableReader,
    checked,
    deliverable,
)
from aftercall.errors import ConfigurationError
from aftercall.json_values import JsonObject
from aftercall.outcomes import Outcome
from aftercall.reflection import ReflectionPolicy, call_with_reflection
from aftercall.reflection.results import OutcomeReader
from tests.sdk.scripted_advice import AsyncScripted, Records, answer, change, suggestion

MOVIES = {"titles": {"min_items": 1}}
WEAK: dict[str, object] = {"status": "success_no_parse", "titles": []}


def test_a_plain_function_gives_the_canonical_shape_or_raises() -> None:
    """And stays the function it was: name, docstring and signature are what frameworks read."""

    @deliverable(MOVIES)
    def movies(genre: str, *, limit: int = 3) -> dict[str, object]:
        """Find movies."""
        return {"Titles": [genre] * limit}

    assert movies("noir", limit=2) == {"titles": ["noir", "noir"]}
    with pytest.raises(ContractViolationError, match="/titles: needs 1 or more items"):
        movies("noir", limit=0)
    assert movies.__name__ == "movies"
    assert movies.__doc__ == "Find movies."
    assert list(inspect.signature(movies).parameters) == ["genre", "limit"]


async def test_an_async_function_stays_one() -> None:
    @deliverable(type="array", min_items=1)
    async def movies(found: list[str]) -> list[str]:
        return found

    assert inspect.iscoroutinefunction(movies)
    assert await movies(["Heat"]) == ["Heat"]
    with pytest.raises(ContractViolationError):
        await movies([])


def test_an_ok_outcome_is_checked_and_keeps_its_status() -> None:
    """Its callers look into the outcome, so that is where a violation stands."""

    @deliverable(MOVIES)
    def movies(titles: list[str]) -> Outcome[Any]:
        return Outcome.ok({"Titles": titles}, status="success_no_parse")

    good, weak = movies(["Heat"]), movies([])
    assert good == Outcome.ok({"titles": ["Heat"]}, status="success_no_parse")
    assert weak.error.type == "contract_violation"
    assert weak.error.details["path"] == "/titles"
    assert (weak.error.details["expected"], weak.error.details["actual"]) == (1, 0)


@pytest.mark.parametrize(
    "said",
    [
        Outcome.low_utility("nothing of use"),
        Outcome.wrong_tool_boundary("not my job", boundary_axes=["transport"]),
        Outcome.low_utility("nothing of use").to_dict(),
    ],
)
def test_what_is_an_error_already_passes_through_untouched(said: object) -> None:
    """A tool that fails honestly does not get another error on top."""
    assert checked(lambda: said, MOVIES)() is said


@pytest.mark.parametrize("as_reader", [False, True])
async def test_a_violation_is_asked_about_and_mended_like_any_failure(*, as_reader: bool) -> None:
    """By a wrapped call, or by a reader, which leaves what is recorded in the tool's own shape."""

    async def movies(parameters: JsonObject) -> Any:
        return {"Titles": ["Heat"] if parameters["page"] == 1 else []}

    wanted = Deliverable.from_dict(MOVIES)
    call: Callable[[JsonObject], Awaitable[Any]] = movies if as_reader else checked(movies, wanted)
    reader = DeliverableReader[object](OutcomeReader(), wanted)
    records = Records()
    service = AsyncScripted(answer(suggestion(change("/page", 1, before=0))))
    reflected = await call_with_reflection(
        call, tool_name="movies", parameters={"page": 0}, agent="a", client=service,
        recorder=records, policy=ReflectionPolicy(base_backoff_s=0),
        reader=reader if as_reader else None,
    )  # fmt: skip
    assert reflected.repaired
    assert [e.error.type if e.error else None for e in records.executions] == [
        "contract_violation",
        None,
    ]
    assert service.asked[0].error == records.executions[0].error
    key = "Titles" if as_reader else "titles"
    assert reflected.result == records.executions[1].result == {key: ["Heat"]}


def test_what_cannot_be_looked_at_is_no_violation(caplog: pytest.LogCaptureFixture) -> None:
    """It says nothing about the tool: the result stands, and the log tells."""

    class Lazy(dict[str, object]):
        def __contains__(self, _: object) -> bool:
            raise RuntimeError("closed")

    lazy = Lazy(titles=[])
    assert checked(lambda: lazy, MOVIES)() is lazy
    assert "a result was not checked: RuntimeError" in caplog.text


def test_a_generator_is_refused_when_it_is_decorated() -> None:
    def pieces() -> Iterator[int]:
        yield 1

    with pytest.raises(ConfigurationError, match="return the whole result"):
        deliverable(min_items=1)(pieces)
