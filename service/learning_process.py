"""Learning in a process of its own: the service's end of the pipe, and the process itself.

The process takes no lease: it commits by that of the service, whose order it carries out, and ends
with the pipe. Frames are pickles after their length: both ends are this module, and no one else has
the pipe.
"""

import asyncio
import os
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from ingest import pacing
from ingest.batches import CachedLearner, KnowledgePlace, LearnedBatch, LearnerEndedError
from mongo.errors import StoreError
from mongo.protocol import Knowledge, Store
from mongo.records import Cursor, Lease
from service.databases import opened_store
from service.environment import read_settings
from service.lifecycle import COMMAND_PATIENCE_S, end_process, spare_collector
from service.logs import configure_logging
from service.processes import start_process
from service.settings import Settings

_LENGTH_BYTES = 8
_START_S = 60.0
_STOP_S = 5.0
_ANSWER_S = 120.0
"""For a batch, which takes some 3 s: a process that hangs longer is killed."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the process is to learn."""

    place: KnowledgePlace
    cursor: Cursor
    most: int
    lease: Lease
    knows_rows: bool
    """Whether what it decoded holds still: no commit since then changed any of it."""


class LearningProcess:
    """As `ingest.batches.LearnerProcess`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._serials: dict[KnowledgePlace, int] = {}
        """Of the rows that the process has."""
        self._one_at_a_time = asyncio.Lock()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    async def learn_batch(
        self, knowledge: Knowledge, workspace: str, cursor: Cursor, most: int, lease: Lease
    ) -> LearnedBatch | None:
        place = KnowledgePlace(knowledge.generation, workspace)
        knows_rows = self._serials.pop(place, None) == cursor.serial
        async with self._one_at_a_time:
            answer = await self._carry_out(Order(place, cursor, most, lease, knows_rows))
        if isinstance(answer, StoreError):
            raise answer
        if answer is not None:
            self._serials[place] = answer.serial
        return answer

    def follow_commit(self, place: KnowledgePlace, serial: int) -> None:
        if self._serials.get(place) == serial - 1:
            self._serials[place] = serial

    def forget_rows(self) -> None:
        self._serials.clear()

    async def close(self) -> None:
        async with self._one_at_a_time:
            await end_process(self._process, _STOP_S)

    async def _carry_out(self, order: Order) -> LearnedBatch | StoreError | None:
        try:
            await self._write(order)
            answer: LearnedBatch | StoreError | None = await asyncio.wait_for(
                self.read_frame(), _ANSWER_S
            )
        except TimeoutError as error:
            await end_process(self._process, 0)
            raise LearnerEndedError(f"it did not answer in {_ANSWER_S:g} s") from error
        except asyncio.CancelledError:  # its answer would be taken for that to the next order
            await end_process(self._process, 0)
            raise
        return answer

    async def _write(self, order: Order) -> None:
        assert self._process.stdin is not None  # noqa: S101  # it was asked for
        try:
            for part in _frame(order):
                self._process.stdin.write(part)
            await self._process.stdin.drain()
        except (OSError, RuntimeError) as error:
            raise LearnerEndedError(str(error)) from error

    async def read_frame(self) -> Any:
        """Return the next that the process says; a `LearnerEndedError` when it ended."""
        assert self._process.stdout is not None  # noqa: S101
        try:
            length = int.from_bytes(await self._process.stdout.readexactly(_LENGTH_BYTES))
            return pickle.loads(await self._process.stdout.readexactly(length))  # noqa: S301  # ours
        except asyncio.IncompleteReadError as error:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _STOP_S)
            await end_process(self._process, 0)
            status = self._process.returncode
            raise LearnerEndedError(f"it ended with status {status}") from error


async def start_learning_process(settings: Settings) -> LearningProcess:
    """Start the process and wait until it has the store open.

    Raises:
        LearnerEndedError: it did not get so far.
    """
    try:
        process = await start_process(settings, "service.learning_process", stdin=PIPE, stdout=PIPE)
    except OSError as error:
        raise LearnerEndedError(str(error)) from error
    learning = LearningProcess(process)
    try:
        await asyncio.wait_for(learning.read_frame(), _START_S)
    except TimeoutError as error:
        await end_process(process, 0)
        raise LearnerEndedError(f"it was not ready in {_START_S:g} s") from error
    except BaseException:
        await end_process(process, 0)
        raise
    return learning


def _frame(value: object) -> Iterator[bytes]:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    yield len(data).to_bytes(_LENGTH_BYTES)
    yield data


def _send(out: BinaryIO, value: object) -> None:
    out.writelines(_frame(value))
    out.flush()


def _read_order(source: BinaryIO) -> Order | None:
    """Return the next order; None when the service has closed the pipe."""
    length = source.read(_LENGTH_BYTES)
    if len(length) < _LENGTH_BYTES:
        return None
    return pickle.loads(source.read(int.from_bytes(length)))  # type: ignore[no-any-return]  # noqa: S301


async def _serve(settings: Settings, source: BinaryIO, out: BinaryIO) -> None:
    async with opened_store(settings, beside=True, patience_s=COMMAND_PATIENCE_S) as store:
        learner = CachedLearner(store.events)
        _send(out, "ready")
        while (order := await asyncio.to_thread(_read_order, source)) is not None:
            learner.take_up(order.place, order.cursor.serial if order.knows_rows else None)
            try:
                knowledge = await _current_generation(store, order.place.generation)
                learned = await learner.learn_batch(
                    knowledge, order.place.workspace, order.cursor, order.most, order.lease
                )
            except StoreError as error:  # the service tries again, as after its own
                _send(out, error)
            else:
                _send(out, learned)


async def _current_generation(store: Store, number: int) -> Knowledge:
    if store.knowledge.generation != number:
        await store.refresh_generation()
    if store.knowledge.generation != number:
        raise StoreError(f"generation {number} is not current any more")
    return store.knowledge


def main() -> None:
    """Learn what standard input orders until that is closed."""
    # What is printed by mistake must not be taken for an answer.
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    settings = read_settings()
    configure_logging(settings.log)
    spare_collector()
    os.nice(pacing.PROCESS_NICE)
    try:
        asyncio.run(_serve(settings, sys.stdin.buffer, out))
    except StoreError as error:
        sys.exit(f"aftercall: the process that learns ends: {error}")
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # the service has ended


if __name__ == "__main__":
    main()
