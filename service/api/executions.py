"""Recording executions, and reading one back; spans of OpenTelemetry are recorded too."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from fastapi import APIRouter, Request, Response

from aftercall.background import call_aside
from aftercall.models import Execution, RecordReceipt
from ingest.formats.calls import PassedOver, Placed, Unreadable, passed_over
from ingest.formats.otlp.reading import is_same_span, read_otlp_json, read_protobuf
from ingest.formats.otlp.spans import OtlpError, TooManySpansError
from ingest.formats.otlp.wire import success_json, success_protobuf
from retrieval.knowledge.rows.log import load_execution
from retrieval.knowledge.rows.log import read_executions as stored_executions
from retrieval.knowledge.values.parameters import is_large
from service import errors
from service.context import Space
from service.requests import (
    ExecutionId,
    Read,
    Record,
    RecordsBody,
    parse_json,
    refuse_media,
    unpack_gzip,
    whole_body,
)

router = APIRouter(tags=["recording"])


@router.post(
    "/executions",
    summary="Record one execution, or a list of at most 1,000",
    status_code=202,
    name="record",
)
async def record_executions(space: Record, records: RecordsBody) -> RecordReceipt:
    """Record executions; the answer comes when they are durable.

    `executionId` makes sending them again harmless. In a list, one bad record never rejects its
    neighbours: it is named in `rejected`. A single execution that is malformed is a 422, one whose
    id is taken by other content a 409.
    """
    intake, principal = space.context.intake, space.context.caller.principal
    if isinstance(records, Execution):
        return await intake.accept_one(space.workspace, records, principal=principal)
    return await intake.accept_executions(space.workspace, records, principal=principal)


@router.get("/executions/{executionId}", summary="One execution, as it is stored")
async def read_execution(space: Read, execution_id: ExecutionId) -> Execution:
    """Return an execution; secrets were masked before it was written, and are masked again."""
    found = await load_execution(space.context.store.events, space.workspace, execution_id)
    if found is None:
        raise errors.NotFoundProblemError("there is no execution of that id")
    return await call_aside(space.context.redactor.call, found, when=is_large(found))


_JSON = "application/json"
_BATCH = 512
"""Executions that become durable at a time: as many as exporters send at once, so that these cost
one commit. They are read on a thread; between two batches other requests have their turn."""
_INLINE_BYTES = 16 * 1024
"""Bodies up to this size, some ten spans, are read on the event loop: a millisecond."""
_MAX_JSON_CONTAINERS = 500_000
_MAX_JSON_MEMBERS = 2_000_000
"""Brackets and commas in a JSON body. An object of two bytes takes 64 to 240 in memory, a number of
four 32; 10,000 spans of twenty attributes have fewer."""


_EVERY_S = 3600.0
_MAX_NAMES = 1000
"""Names are a sender's to choose: those beyond are counted together, a workspace each."""
_OTHERS = "others"


@dataclass(slots=True)
class PassedOverSpans:
    """Counts of spans that are no calls of tools, reported once an hour for each instrumentation.

    Exporters log a warning for each answer with a message, and most requests hold spans of models,
    agents and HTTP besides those of tools.
    """

    clock: Callable[[], float] = time.monotonic
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _said_at: dict[tuple[str, str], float] = field(default_factory=dict)

    def count_spans(self, workspace: str, counts: Mapping[str, int]) -> str | None:
        """Count more spans of a workspace, and return the message to send; None for no message.

        The message counts all spans since the last one about the same instrumentation.
        """
        now = self.clock()
        due: set[tuple[str, str]] = set()
        for name, number in counts.items():
            key = (workspace, name)
            if key not in self._said_at and len(self._said_at) >= _MAX_NAMES:
                key = (workspace, _OTHERS)
            self._counts[key] += number
            if now - self._said_at.get(key, -_EVERY_S) >= _EVERY_S:
                due.add(key)
        self._said_at |= dict.fromkeys(due, now)
        said = {key[1]: self._counts.pop(key) for key in due}
        return passed_over(said).message if said else None


@dataclass(slots=True)
class _Outcome:
    rejected: int = 0
    reasons: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)

    def reject_span(self, place: str, message: str) -> None:
        self.rejected += 1
        if len(self.reasons) < 5:
            reason = errors.safe_message(f"{place}: {message}" if place else message)
            self.reasons.append(reason[:300])

    def write_message(self) -> str:
        more = self.rejected - len(self.reasons)
        rest = [f"and {more:,} more"] if more > 0 else []
        return "; ".join([*self.reasons, *rest, *self.notes])


@router.post(
    errors.TRACES,
    summary="OpenTelemetry spans: every tool call among them is recorded",
    response_class=Response,
)
async def export_traces(space: Record, request: Request) -> Response:
    """Record the tool calls among spans in OTLP over HTTP.

    The body is `application/x-protobuf` or `application/json`, plain or in gzip. Spans of the
    GenAI, MCP and OpenInference conventions that are calls of a tool become executions; all others
    are accepted and left out. Sending a span again is harmless. Spans that cannot be read are
    counted in `partialSuccess`, with the first reasons; the number of spans that were left out is
    there once an hour for each instrumentation.
    """
    encoding = errors.media_type(request.headers)
    if encoding not in {errors.PROTOBUF, _JSON}:
        # A web page can send neither to another origin without a CORS preflight, which this service
        # never grants; what a page could send (text, forms) is refused here.
        raise refuse_media(f"send the body with Content-Type: {errors.PROTOBUF} or {_JSON}")
    packing = request.headers.get("content-encoding", "identity").strip().lower()
    if packing not in {"identity", "gzip", ""}:
        raise refuse_media("send the body with Content-Encoding: gzip, or without one")
    is_packed, packed = packing == "gzip", await whole_body(request)
    begin = partial(
        _begin_reading,
        encoding=encoding,
        is_packed=is_packed,
        most=request.app.state.limits.unpacked_bytes,
    )
    is_large = is_packed or len(packed) > _INLINE_BYTES
    # A body that waits for its turn is still packed.
    async with request.app.state.trace_turns if is_large else nullcontext():
        located = await call_aside(begin, packed, when=is_large)
        outcome = _Outcome()
        batch: list[Placed]
        while batch := await call_aside(list, islice(located, _BATCH), when=is_large):
            await _store_batch(batch, outcome, space)
    said = request.app.state.passed_over.count_spans(space.workspace, outcome.passed_over)
    outcome.notes += [] if said is None else [errors.safe_message(said)]
    encode = success_protobuf if encoding == errors.PROTOBUF else success_json
    return Response(encode(outcome.rejected, outcome.write_message()), media_type=encoding)


async def _store_batch(located: Sequence[Placed], outcome: _Outcome, space: Space) -> None:
    """Make executions durable, and note the rest in the outcome.

    If the store fails, what was stored stays; the exporter sends all again, which does no harm.
    """
    context, workspace = space
    executions: list[Execution] = []
    places: list[str] = []
    for where, read in located:
        if isinstance(read, Execution):
            executions.append(read)
            places.append(where)
        elif isinstance(read, Unreadable):
            outcome.reject_span(where, read.message)
        elif isinstance(read, PassedOver):
            outcome.passed_over.update(read.counts)
        else:
            outcome.notes.append(read.message)
    receipt = await context.intake.accept_executions(
        workspace, executions, principal=context.caller.principal
    )
    if not receipt.rejected:
        return
    refused = [executions[rejection.index].execution_id for rejection in receipt.rejected]
    stored = await stored_executions(context.store.events, workspace, sorted(set(refused)))
    known = {each.execution.execution_id: each.execution for each in stored}
    for rejection in receipt.rejected:
        given = executions[rejection.index]
        first = known.get(given.execution_id)
        if first is None or not is_same_span(first, given):
            outcome.reject_span(places[rejection.index], rejection.message)


def _begin_reading(packed: bytes, *, encoding: str, is_packed: bool, most: int) -> Iterator[Placed]:
    body = unpack_gzip(packed, most) if is_packed else packed
    try:
        return (
            read_protobuf(body)
            if encoding == errors.PROTOBUF
            else read_otlp_json(_read_traces(body))
        )
    except TooManySpansError as error:
        raise errors.TooLargeProblemError(str(error)) from None
    except OtlpError as error:
        # The protocol asks for a 400 for each body that cannot be decoded.
        raise errors.ProblemError(400, "malformed_traces", str(error)) from None


def _read_traces(body: bytes) -> object:
    if not body:
        raise errors.MalformedJsonError("the body is empty; send a JSON value")
    if (
        body.count(b"{") + body.count(b"[") > _MAX_JSON_CONTAINERS
        or body.count(b",") > _MAX_JSON_MEMBERS
    ):
        raise errors.TooLargeProblemError(
            f"more than {_MAX_JSON_CONTAINERS:,} objects and lists, or {_MAX_JSON_MEMBERS:,} "
            "values, in one request; nothing was stored, send fewer spans at a time, or "
            f"{errors.PROTOBUF}"
        )
    try:
        return parse_json(body)
    except errors.InvalidProblemError as error:
        raise errors.ProblemError(400, "malformed_traces", error.message) from None
