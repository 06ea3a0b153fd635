"""A `Client` asked from coroutines: what a hanging service costs, and whom."""

import asyncio
import threading
from collections.abc import Iterator
from contextvars import ContextVar

import pytest

from aftercall.adapters.asking_threads import MAX_THREADS, AskingThreads
from aftercall.adapters.functions import reflecting
from aftercall.models import Execution, SuggestResponse, ToolAnnotations
from aftercall.reflection import ReflectionPolicy
from tests.sdk.scripted_advice import Records, answer

WHO: ContextVar[str] = ContextVar("who", default="nobody")


class Hanging:
    """A service that answers nobody until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()
        self.asked = 0

    def suggest(
        self,
        execution: Execution,
        *,
        limit: int = 3,
        annotations: ToolAnnotations | None = None,
    ) -> SuggestResponse:
        del execution, limit, annotations
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
        calls = [asyncio.create_task(fails()) for _ in range(4 * MAX_THREADS)]
        await asyncio.sleep(0)  # all of them are asked about now
        assert await asyncio.wait_for(asyncio.to_thread(lambda: 1), 10) == 1
        assert not any(call.done() for call in calls)
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert {str(error) for error in ended} == {"no"}

    asyncio.run(main())  # would wait for the loop's own threads
    assert 0 < hanging.asked <= MAX_THREADS


async def test_questions_wait_in_line_and_those_given_up_are_not_asked() -> None:
    """Each is asked once, in its own context; what raises is raised."""
    threads, go, seen = AskingThreads(1), threading.Event(), list[str]()

    def ask() -> str:
        go.wait()
        seen.append(WHO.get())
        return WHO.get()

    def fail() -> str:
        raise ValueError("no")

    asked = []
    for who in ("ada", "ben", "cyd"):
        WHO.set(who)
        asked.append(asyncio.create_task(threads.run(ask)))
    await asyncio.sleep(0)
    asked[1].cancel()
    await asyncio.sleep(0)
    go.set()
    assert (await asked[0], await asked[2]) == ("ada", "cyd")
    assert seen == ["ada", "cyd"]
    with pytest.raises(ValueError, match="no"):
        await threads.run(fail)
    assert await threads.run(ask) == "cyd"
