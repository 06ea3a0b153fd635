"""A `Client` asked from coroutines: what a hanging service costs, and whom."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from aftercall.adapters.functions import reflecting
from aftercall.models import Execution, SuggestResponse, ToolAnnotations
from aftercall.reflection import ReflectionPolicy
from tests.sdk.scripted_advice import Records, answer


class Hanging:
    """A service that answers nobody until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.asked = 0

    def suggest(
        self, execution: Execution, *, annotations: ToolAnnotations | None = None
    ) -> SuggestResponse:
        del execution, annotations
        self.asked += 1
        self.let_go.wait()
        return answer()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    service = Hanging()
    yield service
    service.let_go.set()


def test_a_hanging_service_takes_no_thread_of_the_event_loop(hanging: Hanging) -> None:
    """Tools still find the loop's threads, and the loop ends while questions are unanswered."""
    policy = ReflectionPolicy(suggest_timeout_s=0.2)

    @reflecting(client=hanging, recorder=Records(), policy=policy)
    async def fails() -> None:
        raise ValueError("no")

    async def main() -> None:
        calls = [asyncio.create_task(fails()) for _ in range(70)]
        await asyncio.sleep(0)  # all of them are asked about now
        assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), 60) == 1
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert {str(error) for error in ended} == {"no"}

    asyncio.run(main())  # would wait for the loop's own threads
    assert hanging.asked == 70
