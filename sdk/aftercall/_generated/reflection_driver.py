"""Calling a tool with reflection: record every attempt, ask when one fails, retry where safe.

`call_with_reflection_sync` wraps any function. It only does the I/O: what to do next is
decided in `aftercall.reflection.retry_rules`, and kept track of in
`aftercall.reflection.reflected_call`.

    reflected = call_with_reflection_sync(
        tool, tool_name="rag_query", parameters={"topK": 50}, agent="librarian",
        client=client, recorder=recorder,
    )

A service that is away or slow never makes a call worse: the tool's own error is what comes back.
"""

# Made by `make generate` from reflection/async_driver.py; edit that.

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from typing import Any, Protocol, TypeVar

from aftercall.arguments import UnreadableArgumentsError
from aftercall.background import within_sync
from aftercall.json_values import JsonObject
from aftercall.models import Execution, ShadowFacts, SuggestResponse, ToolAnnotations
from aftercall.reflection.reflected_call import ExecutionSink, FailureRates, ReflectedCall
from aftercall.reflection.results import CallFacts, CallObserver, ReflectedResult, ResultReader
from aftercall.reflection.retry_rules import ReflectionPolicy

ResultT = TypeVar("ResultT")


class Suggester(Protocol):
    """The one method of `Client` that reflection needs."""

    def suggest(
        self, execution: Execution, *, annotations: ToolAnnotations | None = None
    ) -> SuggestResponse:
        """Return what similar calls that succeeded did differently."""


def ask_sync(
    client: Suggester,
    question: Execution,
    policy: ReflectionPolicy,
    annotations: ToolAnnotations | None,
    asking: AbstractContextManager[None] | None = None,
) -> SuggestResponse | Exception:
    """Return what the service answers, or what came instead of it within the policy's time.

    Never raises.

    `annotations` are claims about the tool, None for those registered; `asking` is around it.
    """
    try:
        with asking or nullcontext():
            return within_sync(
                policy.suggest_timeout_s, client.suggest, question, annotations=annotations
            )
    except Exception as error:  # noqa: BLE001  # whatever it is, the tool's error must come back
        return error


def call_with_reflection_sync(
    call: Callable[[JsonObject], ResultT],
    *,
    tool_name: str,
    parameters: JsonObject | str,
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
    shadow: ShadowFacts | None = None,
    repaired_before: bool = False,
    takes_text: bool = False,
) -> ReflectedResult[ResultT]:
    """Call a tool; when it fails, ask the service and retry where the rules allow it.

    The client asks `/suggest`, the recorder takes every attempt, and observers look on
    (`aftercall.events`, `aftercall.tracing`). Calls of one session are looked at together for
    repairs; `context` is what the agent was trying to do.

    - Parameters are plain JSON. Values outside JSON are recorded as text, and such a call is not
      retried, since the correction could not carry them.
    - Parameters may be a text, as model APIs hand them over: the object that it states is sent,
      also where it is loose JSON (the `note` states so). Where it is cut off or states no object,
      `call` is not called: the call failed with an `UnreadableArgumentsError`, and is recorded with
      its text. With `takes_text` it is called with the text, to refuse it in its own words.
    - Without `annotations`, claims about the tool, those registered at the service count; with
      `may_repeat` the caller vouches that calling twice does no harm.
    - `rates`, shared by all calls, are needed for `policy.min_failure_rate`.
    - Without a reader exceptions and typed errors (`aftercall.outcomes`) are failures.
    - With `raise_on_failure` the first exception is raised again, with the suggestions as a note
      and the `ReflectedResult` as its attribute `aftercall`, instead of returning it. A failure
      that was shown by a result is returned in any case.
    - With `repaired_before` the parameters are a repair of what the caller sent, and counted so.
    - With `shadow` the call is only watched: a retry is decided on, and not made (`unmade`).

    Returns:
        The result, with every attempt, or the first failure with suggestions for a manual fix.
    """
    policy = policy or ReflectionPolicy()
    job = ReflectedCall(
        CallFacts(
            tool_name=tool_name,
            server_name=server_name,
            agent=agent,
            session_id=session_id,
            context=context,
            annotations=annotations if policy.trust_annotations else None,
            shadow=shadow,
            repaired_before=repaired_before,
        ),
        parameters,
        policy,
        recorder,
        rates=rates,
        reader=reader,
        may_repeat=may_repeat,
        observers=observers,
    )
    asked_with = annotations if policy.trust_annotations else ToolAnnotations()
    said = job.arguments.parameters
    unread = None if takes_text or said is not None else UnreadableArgumentsError()
    sent: Any = parameters if said is None else said
    while True:
        job.begin_attempt()
        try:
            if unread is not None:
                raise unread  # noqa: TRY301  # as if the tool had refused it
            result = call(sent)
        except Exception as error:  # noqa: BLE001  # any exception of a tool is a failed call
            job.note_stopped()
            job.note_raised(error)
        except BaseException as error:
            job.note_stopped(error)
            raise
        else:
            job.note_stopped()
            if reader is not None and reader.reads_in_thread:
                job.note_returned(result)
            else:
                job.note_returned(result)
        if (question := job.question) is None:
            break
        retry = job.decide_retry(
            ask_sync(client, question, policy, asked_with, job.observe_question())
        )
        if retry is None:
            break
        time.sleep(retry.wait_s)
        sent = deepcopy(retry.parameters)
    return job.finish_call(raise_on_failure=raise_on_failure)
