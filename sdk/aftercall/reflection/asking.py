"""Asking the service about a failed call, within a time and without ever raising."""

import asyncio
import contextvars
import queue
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from aftercall.models.calls import Execution, SuggestResponse, ToolAnnotations
from aftercall.reflection.retry_rules import ReflectionPolicy


class AsyncSuggester(Protocol):
    """The one method of `AsyncClient` that reflection needs."""

    async def suggest(
        self,
        execution: Execution,
        *,
        limit: int = 3,
        annotations: ToolAnnotations | None = None,
    ) -> SuggestResponse:
        """What similar calls that succeeded did differently."""


class Suggester(Protocol):
    """The one method of `Client` that reflection needs."""

    def suggest(
        self,
        execution: Execution,
        *,
        limit: int = 3,
        annotations: ToolAnnotations | None = None,
    ) -> SuggestResponse:
        """What similar calls that succeeded did differently."""


async def ask(
    client: AsyncSuggester,
    question: Execution,
    policy: ReflectionPolicy,
    annotations: ToolAnnotations | None,
    asking: AbstractContextManager[None] | None = None,
) -> SuggestResponse | Exception:
    """What the service answers, or what came instead of it within the policy's time; never raises.

    Args:
        client: asks.
        question: the failed call.
        policy: how long it may take, and how many suggestions are wanted.
        annotations: claims about the tool; None for those registered.
        asking: what an observer has around the question.
    """
    try:
        with asking or nullcontext():
            return await asyncio.wait_for(
                client.suggest(question, limit=policy.limit, annotations=annotations),
                policy.suggest_timeout_s,
            )
    except Exception as error:  # noqa: BLE001  # whatever it is, the tool's error must come back
        return error


def ask_sync(
    client: Suggester,
    question: Execution,
    policy: ReflectionPolicy,
    annotations: ToolAnnotations | None,
    asking: AbstractContextManager[None] | None = None,
) -> SuggestResponse | Exception:
    """As `ask`, in a thread: a client blocked in a read is left behind when the time is up."""
    answers: queue.SimpleQueue[SuggestResponse | Exception] = queue.SimpleQueue()

    def put_answer() -> None:
        try:
            answers.put(client.suggest(question, limit=policy.limit, annotations=annotations))
        except Exception as error:  # noqa: BLE001  # as above
            answers.put(error)

    try:
        with asking or nullcontext():
            # In the caller's context: what is current there (a span) is what the question is of.
            context = contextvars.copy_context()
            threading.Thread(
                target=context.run, args=(put_answer,), name="aftercall-suggest", daemon=True
            ).start()
            return _answer(answers, policy.suggest_timeout_s)
    except Exception as error:  # noqa: BLE001  # as above
        return error


def _answer(
    answers: queue.SimpleQueue[SuggestResponse | Exception], timeout_s: float
) -> SuggestResponse:
    try:
        answer = answers.get(timeout=timeout_s)
    except queue.Empty:
        raise TimeoutError(f"no answer within {timeout_s:g} s") from None
    if isinstance(answer, Exception):
        raise answer
    return answer
