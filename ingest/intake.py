"""Intake: what comes in is checked, redacted and durable before it is acknowledged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from aftercall.json_values import content_hash
from aftercall.models import Execution, RecordReceipt, Rejection
from aftercall.redaction import Redactor
from aftercall.stages import stage
from ingest.sampling import SuccessSampler
from mongo.protocol import LogStore
from mongo.records import Appended, NewExecution

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
MAX_CLOCK_SKEW = timedelta(hours=24)
"""A recorder's clock may be this far ahead; more is a mistake that would spoil every statistic."""


class ConflictError(ValueError):
    """The execution id is taken by an execution with other content."""


class InvalidExecutionError(ValueError):
    """The execution is well-formed but cannot be true, such as one of next year."""


@dataclass(frozen=True, slots=True)
class Intake:
    """Takes executions in.

    Args:
        store: where they become durable.
        redactor: masks secrets before anything is written.
        on_stored: called after something new is durable, such as to wake the indexer.
        sampler: says which successes are left out; none unless it is given.
        on_receipt: told the accepted executions, also those left out, and the receipt.
        clock: the time now, with a zone.
    """

    store: LogStore
    redactor: Redactor
    on_stored: Callable[[], None]
    sampler: SuccessSampler = field(default_factory=SuccessSampler)
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    on_receipt: Callable[[Sequence[Execution], RecordReceipt], None] = lambda *_: None

    async def accept(
        self, workspace: str, records: Sequence[Execution | Rejection]
    ) -> RecordReceipt:
        """Store what can be stored; durable when this returns. One bad record harms no other.

        Args:
            workspace: the tenant.
            records: in the order they were sent; those that could not be read come as rejections.
        """
        rejected = [record for record in records if isinstance(record, Rejection)]
        positions: list[int] = []
        prepared: list[NewExecution] = []
        accepted: list[Execution] = []
        left_out = 0
        for position, record in enumerate(records):
            if isinstance(record, Rejection):
                continue
            try:
                new = self._prepare(workspace, record)
            except InvalidExecutionError as error:
                rejected.append(Rejection(index=position, message=str(error)))
                continue
            if new is None:
                left_out += 1
                accepted.append(record)
                continue
            prepared.append(new)
            positions.append(position)
        verdicts = await self._append(workspace, prepared) if prepared else []
        for position, new, verdict in zip(positions, prepared, verdicts, strict=True):
            if verdict == "conflict":
                message = _conflict(new.execution.execution_id)
                rejected.append(Rejection(index=position, message=message))
            elif verdict == "accepted":
                accepted.append(new.execution)
        receipt = RecordReceipt(
            accepted=len(accepted),
            duplicates=verdicts.count("duplicate"),
            rejected=sorted(rejected, key=lambda rejection: rejection.index),
            left_out=left_out,
        )
        self.on_receipt(accepted, receipt)
        return receipt

    async def accept_one(self, workspace: str, execution: Execution) -> RecordReceipt:
        """Store one execution.

        Raises:
            InvalidExecutionError: when it cannot be true.
            ConflictError: when its id is taken by an execution with other content.
        """
        new = self._prepare(workspace, execution)
        if new is None:
            receipt = RecordReceipt(accepted=1, left_out=1)
            self.on_receipt([execution], receipt)
            return receipt
        verdicts = await self._append(workspace, [new])
        if verdicts == ["conflict"]:
            message = _conflict(execution.execution_id)
            refused = RecordReceipt(accepted=0, rejected=[Rejection(index=0, message=message)])
            self.on_receipt([], refused)
            raise ConflictError(message)
        accepted = [new.execution] if verdicts == ["accepted"] else []
        receipt = RecordReceipt(accepted=len(accepted), duplicates=verdicts.count("duplicate"))
        self.on_receipt(accepted, receipt)
        return receipt

    async def _append(self, workspace: str, prepared: Sequence[NewExecution]) -> list[Appended]:
        stored: Sequence[Appended] = ()
        try:
            with stage("intake.append") as noted:
                stored = await self.store.append(workspace, prepared)
                noted.note(executions=len(prepared), accepted=stored.count("accepted"))
        finally:
            for place, new in enumerate(prepared):
                if new.stands_for > 1 and (not stored or stored[place] != "accepted"):
                    self.sampler.was_not_stored(workspace, new.execution, new.stands_for)
        if "accepted" in stored:
            self.on_stored()
        return list(stored)

    def _prepare(self, workspace: str, execution: Execution) -> NewExecution | None:
        """What is to be stored; None when sampling leaves it out."""
        check_time(execution.timestamp, self.clock())
        stands_for = self.sampler.stands_for(workspace, execution)
        if not stands_for:
            return None
        redacted = self.redactor.call(execution)
        schema = redacted.input_schema
        bare = redacted.model_copy(update={"input_schema": None})
        return NewExecution(
            execution=bare,
            content_hash=_hash_of(redacted),
            schema_hash=content_hash(schema) if schema is not None else None,
            input_schema=schema,
            stands_for=stands_for,
        )


def check_time(moment: datetime, now: datetime) -> None:
    """Refuse a call of before 1970 or of the future.

    Raises:
        InvalidExecutionError: it cannot be true; the message says what to check.
    """
    if not EARLIEST <= moment <= now + MAX_CLOCK_SKEW:
        raise InvalidExecutionError(
            f"timestamp: {moment.isoformat()} is not between {EARLIEST.date()} and tomorrow; "
            "check the clock of the sender"
        )


def _hash_of(execution: Execution) -> str:
    """The hash that tells the same content; of stores from before a field existed, too."""
    content = execution.model_dump(mode="json", by_alias=True)
    if execution.result_status is None:
        del content["resultStatus"]
    return content_hash(content)


def _conflict(execution_id: str) -> str:
    return (
        f"executionId: {execution_id} is already stored with other content; "
        "every execution needs an id of its own"
    )
