"""Calling a tool with reflection: record every attempt, ask when one fails, retry where safe.

`call_with_reflection` wraps any callable; `call_with_reflection_sync` is its twin. Both only do
the I/O: what to do next is decided in `aftercall.reflection.retry_rules`, and kept track of in
`aftercall.reflection.reflected_call`.

    reflected = await call_with_reflection(
        tool, tool_name="rag_query", parameters={"topK": 50}, agent="librarian",
        client=client, recorder=recorder,
    )

A service that is away or slow never makes a call worse: the tool's own error is what comes back.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from typing import TypeVar

from aftercall.json_values import JsonObject
from aftercall.models.calls import ToolAnnotations
from aftercall.reflection.asking import AsyncSuggester, Suggester, ask, ask_sync
from aftercall.reflection.failure_rates import FailureRates
from aftercall.reflection.observing import CallFacts, CallObserver
from aftercall.reflection.reflected_call import ExecutionSink, ReflectedCall
from aftercall.reflection.reflected_result import Attempt, ReflectedResult
from aftercall.reflection.result_reader import ResultReader, ThreadedReader
from aftercall.reflection.retry_rules import ReflectionPolicy

__all__ = [
    "AsyncSuggester",
    "Attempt",
    "CallObserver",
    "ExecutionSink",
    "FailureRates",
    "ReflectedResult",
    "ReflectionPolicy",
    "ResultReader",
    "Suggester",
    "call_with_reflection",
    "call_with_reflection_sync",
]

ResultT = TypeVar("ResultT")


async def call_with_reflection(
    call: Callable[[JsonObject], Awaitable[ResultT]],
    *,
    tool_name: str,
    parameters: JsonObject,
    agent: str,
    client: AsyncSuggester,
    recorder: ExecutionSink,
    server_name: str | None = None,
    session_id: str | None = None,
    context: str | None = None,
    annotations: ToolAnnotations | None = None,
    may_repeat: bool = False,
    policy: ReflectionPolicy | None = None,
    rates: FailureRates | None = None,
    reader: ResultReader[ResultT] | None = None,
    raise_on_failure: bool = False,
    observers: Sequence[CallObserver] = (),
) -> ReflectedResult[ResultT]:
    """Call a tool; when it fails, ask the service and retry where the rules allow it.

    Args:
        call: the tool. It gets the parameters and returns its result or raises.
        tool_name: the tool's name.
        parameters: plain JSON. Values outside JSON are recorded as text, and such a call is not
            retried, since the correction could not carry them.
        agent: who calls.
        client: asks `/suggest`.
        recorder: takes every attempt.
        server_name: the server the tool belongs to.
        session_id: calls of one session are looked at together for repairs.
        context: what the agent was trying to do.
        annotations: claims about the tool; left out, the ones registered at the service count.
        may_repeat: the caller vouches that calling twice does no harm.
        policy: limits; `ReflectionPolicy()` when left out.
        rates: failure counts, shared by all calls; needed for `policy.min_failure_rate`.
        reader: how a result that tells a failure is recognised; without one exceptions and typed
            errors (`aftercall.outcomes`) are failures.
        raise_on_failure: re-raise the first exception, with the suggestions as a note and the
            `ReflectedResult` as its attribute `aftercall`, instead of returning it. A failure
            that was told by a result is returned in any case.
        observers: look on, attempt by attempt (`aftercall.events`, `aftercall.tracing`).

    Returns:
        The result, with every attempt, or the first failure with suggestions for a manual fix.

    Raises:
        Exception: the tool's own, only with `raise_on_failure`.
    """
    policy = policy or ReflectionPolicy()
    facts = CallFacts(
        tool_name=tool_name,
        server_name=server_name,
        agent=agent,
        session_id=session_id,
        context=context,
    )
    job = ReflectedCall(
        facts,
        parameters,
        policy,
        recorder,
        rates,
        reader,
        may_repeat,
        random.random,
        observers=observers,
    )
    asked_with = annotations if policy.trust_annotations else ToolAnnotations()
    sent = parameters
    while True:
        job.begin()
        try:
            try:
                result = await call(sent)
            finally:
                job.stopped()
        except Exception as error:  # noqa: BLE001  # any exception of a tool is a failed call
            job.raised(error)
        else:
            if isinstance(reader, ThreadedReader) and reader.reads_in_thread:
                await asyncio.to_thread(job.returned, result)
            else:
                job.returned(result)
        question = job.question()
        if question is None:
            break
        retry = job.answered(await ask(client, question, policy, asked_with, job.asking()))
        if retry is None:
            break
        await asyncio.sleep(retry.wait_s)
        sent = deepcopy(retry.parameters)
    return job.finish(raise_on_failure=raise_on_failure)


def call_with_reflection_sync(
    call: Callable[[JsonObject], ResultT],
    *,
    tool_name: str,
    parameters: JsonObject,
    agent: str,
    client: Suggester,
    recorder: ExecutionSink,
    server_name: str | None = None,
    session_id: str | None = None,
    context: str | None = None,
    annotations: ToolAnnotations | None = None,
    may_repeat: bool = False,
    policy: ReflectionPolicy | None = None,
    rates: FailureRates | None = None,
    reader: ResultReader[ResultT] | None = None,
    raise_on_failure: bool = False,
    observers: Sequence[CallObserver] = (),
) -> ReflectedResult[ResultT]:
    """As `call_with_reflection`, for code without an event loop.

    Raises:
        Exception: the tool's own, only with `raise_on_failure`.
    """
    policy = policy or ReflectionPolicy()
    facts = CallFacts(
        tool_name=tool_name,
        server_name=server_name,
        agent=agent,
        session_id=session_id,
        context=context,
    )
    job = ReflectedCall(
        facts,
        parameters,
        policy,
        recorder,
        rates,
        reader,
        may_repeat,
        random.random,
        observers=observers,
    )
    asked_with = annotations if policy.trust_annotations else ToolAnnotations()
    sent = parameters
    while True:
        job.begin()
        try:
            try:
                result = call(sent)
            finally:
                job.stopped()
        except Exception as error:  # noqa: BLE001  # any exception of a tool is a failed call
            job.raised(error)
        else:
            job.returned(result)
        question = job.question()
        if question is None:
            break
        retry = job.answered(ask_sync(client, question, policy, asked_with, job.asking()))
        if retry is None:
            break
        time.sleep(retry.wait_s)
        sent = deepcopy(retry.parameters)
    return job.finish(raise_on_failure=raise_on_failure)
