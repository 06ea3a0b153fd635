"""Intake: what comes in is checked, redacted and durable before it is acknowledged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from aftercall.background import call_aside
from aftercall.json_values import content_hash
from aftercall.models import Execution, RecordReceipt, Rejection
from aftercall.redaction import Redactor
from aftercall.stages import stage
from ingest.sampling import SuccessSampler
from mongo.contents import execution_event
from mongo.protocol import EventLog
from mongo.records import OWNER, Appended, Event
from retrieval.knowledge.values.parameters import bound_call, is_large

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
MAX_CLOCK_SKEW = timedelta(hours=24)
"""A recorder's clock may be this far ahead; more is a mistake that would spoil every statistic."""
_FEW = 20
"""Executions that are masked where they are; more of them next to the event loop."""


class ExecutionConflictError(ValueError):
    """The execution id is taken by an execution with other content."""


class InvalidExecutionError(ValueError):
    """The execution is well-formed but cannot be true, such as one of next year."""


@dataclass(frozen=True, slots=True)
class Intake:
    """Takes executions in.

    `on_stored` is called after something new is durable. Without a `sampler` no success is left
    out. Older calls than `retention` are refused, so that a replay cannot count twice.
    `on_receipt` is given the accepted executions, also those left out, and the receipt.
    """

    log: EventLog
    redactor: Redactor
    on_stored: Callable[[], None]
    sampler: SuccessSampler = field(default_factory=SuccessSampler)
    retention: timedelta | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    on_receipt: Callable[[Sequence[Execution], RecordReceipt], None] = lambda *_: None

    async def accept_executions(
        self, workspace: str, records: Sequence[Execution | Rejection], *, principal: str = OWNER
    ) -> RecordReceipt:
        """Store what can be stored; durable when this returns. One bad record harms no other.

        `records` are in the order they were sent; those that could not be read are rejections.
        """
        rejected = [record for record in records if isinstance(record, Rejection)]
        accepted: list[Execution] = []
        kept: list[_Kept] = []
        verdicts: list[Appended] = []
        left_out = 0
        for index, record in enumerate(records):
            if isinstance(record, Rejection):
                continue
            try:
                check_age(record.timestamp, self.clock(), self.retention)
            except InvalidExecutionError as error:
                rejected.append(Rejection(index=index, message=str(error)))
                continue
            if stands_for := self.sampler.stands_for(workspace, record):
                kept.append(_Kept(index, record, stands_for))
            else:
                left_out += 1
                accepted.append(record)
        if kept:
            is_much = len(kept) > _FEW or any(is_large(each.execution) for each in kept)
            kept, events = await call_aside(
                self._make_events, workspace, kept, principal, when=is_much
            )
            verdicts = await self._append_events(workspace, kept, events)
        for each, verdict in zip(kept, verdicts, strict=True):
            if verdict == "conflict":
                message = (
                    f"executionId: {each.execution.execution_id} is already stored with other "
                    "content; every execution needs an id of its own"
                )
                rejected.append(Rejection(index=each.index, message=message))
            elif verdict == "accepted":
                accepted.append(each.execution)
        receipt = RecordReceipt(
            accepted=len(accepted),
            duplicates=verdicts.count("duplicate"),
            rejected=sorted(rejected, key=lambda rejection: rejection.index),
            left_out=left_out,
        )
        self.on_receipt(accepted, receipt)
        return receipt

    async def accept_one(
        self, workspace: str, execution: Execution, *, principal: str = OWNER
    ) -> RecordReceipt:
        """Store one execution; an `InvalidExecutionError` where it cannot be true.

        An `ExecutionConflictError` where its id is taken by one with other content.
        """
        check_age(execution.timestamp, self.clock(), self.retention)
        receipt = await self.accept_executions(workspace, [execution], principal=principal)
        if receipt.rejected:
            raise ExecutionConflictError(receipt.rejected[0].message)
        return receipt

    def _make_events(
        self, workspace: str, records: "Sequence[_Kept]", principal: str
    ) -> "tuple[list[_Kept], list[Event]]":
        masked = self.redactor.call
        kept = [replace(each, execution=masked(bound_call(each.execution))) for each in records]
        return kept, [
            execution_event(
                workspace,
                each.execution.model_copy(update={"input_schema": None}),
                content_hash=content_hash(each.execution.model_dump(mode="json", by_alias=True)),
                schema_hash=None if (schema := each.execution.input_schema) is None
                else content_hash(schema),
                input_schema=schema,
                stands_for=each.stands_for,
                principal=principal,
            )
            for each in kept
        ]  # fmt: skip

    async def _append_events(
        self, workspace: str, kept: "Sequence[_Kept]", events: Sequence[Event]
    ) -> list[Appended]:
        stored: Sequence[Appended] = ()
        try:
            with stage("intake.append") as noted:
                stored = await self.log.append(workspace, events)
                noted.note(executions=len(events), accepted=stored.count("accepted"))
        finally:
            for place, each in enumerate(kept):
                if each.stands_for > 1 and (not stored or stored[place] != "accepted"):
                    self.sampler.was_not_stored(workspace, each.execution, each.stands_for)
        if "accepted" in stored:
            self.on_stored()
        return list(stored)


@dataclass(frozen=True, slots=True)
class _Kept:
    """An execution that is to be stored, with its place in the request."""

    index: int
    execution: Execution
    stands_for: int


def check_time(moment: datetime, now: datetime) -> None:
    """Refuse a call of before 1970 or of the future by an `InvalidExecutionError`."""
    if not EARLIEST <= moment <= now + MAX_CLOCK_SKEW:
        raise InvalidExecutionError(
            f"timestamp: {moment.isoformat()} is not between {EARLIEST.date()} and tomorrow; "
            "check the clock of the sender"
        )


def check_age(moment: datetime, now: datetime, retention: timedelta | None) -> None:
    """Refuse also a call older than the retention: learned before, it would count twice."""
    check_time(moment, now)
    if retention is not None and moment < now - retention:
        raise InvalidExecutionError(
            f"timestamp: {moment.isoformat()} is older than what is kept here "
            f"({retention.days} days, AFTERCALL_RETENTION_DAYS)"
        )
