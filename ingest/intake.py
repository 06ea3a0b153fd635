"""Intake: what comes in is checked, redacted and durable before it is acknowledged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from aftercall.json_values import content_hash
from aftercall.redaction import Redactor
from aftercall.wire import Execution, RecordReceipt, Rejection
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
        clock: the time now, with a zone.
    """

    store: LogStore
    redactor: Redactor
    on_stored: Callable[[], None]
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

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
        for position, record in enumerate(records):
            if isinstance(record, Rejection):
                continue
            try:
                prepared.append(self._prepare(record))
                positions.append(position)
            except InvalidExecutionError as error:
                rejected.append(Rejection(index=position, message=str(error)))
        verdicts = await self.store.append(workspace, prepared) if prepared else []
        for position, new, verdict in zip(positions, prepared, verdicts, strict=True):
            if verdict == "conflict":
                message = _conflict(new.execution.execution_id)
                rejected.append(Rejection(index=position, message=message))
        self._tell(verdicts)
        return RecordReceipt(
            accepted=verdicts.count("accepted"),
            duplicates=verdicts.count("duplicate"),
            rejected=sorted(rejected, key=lambda rejection: rejection.index),
        )

    async def accept_one(self, workspace: str, execution: Execution) -> RecordReceipt:
        """Store one execution.

        Raises:
            InvalidExecutionError: when it cannot be true.
            ConflictError: when its id is taken by an execution with other content.
        """
        verdicts = await self.store.append(workspace, [self._prepare(execution)])
        if verdicts == ["conflict"]:
            raise ConflictError(_conflict(execution.execution_id))
        self._tell(verdicts)
        return RecordReceipt(
            accepted=verdicts.count("accepted"), duplicates=verdicts.count("duplicate")
        )

    def _tell(self, verdicts: Sequence[Appended]) -> None:
        if "accepted" in verdicts:
            self.on_stored()

    def _prepare(self, execution: Execution) -> NewExecution:
        self._check_time(execution.timestamp)
        redacted = self.redactor.call(execution)
        schema = redacted.input_schema
        bare = redacted.model_copy(update={"input_schema": None})
        return NewExecution(
            execution=bare,
            content_hash=_hash_of(redacted),
            schema_hash=content_hash(schema) if schema is not None else None,
            input_schema=schema,
        )

    def _check_time(self, moment: datetime) -> None:
        latest = self.clock() + MAX_CLOCK_SKEW
        if not EARLIEST <= moment <= latest:
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
