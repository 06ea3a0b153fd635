"""Fitting in a process of its own: scikit-learn would stay in the service's memory, 80 MiB of it.

One JSON line in per workspace, one `Scaling` out; the process ends when its input does.
"""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from aftercall.errors import AftercallError
from retrieval.confidence import Scaling
from retrieval.memory import JudgedSuggestion

_THREADS = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
"""Two parameters need no more, and the cores are for those who wait."""


class FittingError(AftercallError):
    """The process that fits could not be started, or ended too early; it can be tried again."""


class FittingProcess:
    """Started with the first fit, killed at the end of the block, also in the middle of a fit."""

    def __init__(self) -> None:
        self._process: Process | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.communicate()

    async def refit(self, current: Scaling, judged: Sequence[JudgedSuggestion]) -> Scaling:
        """As `retrieval.fitting.refit_scaling`, of outcomes in order, latest first.

        One call at a time.

        Raises:
            FittingError: nothing was fitted.
        """
        line = await asyncio.to_thread(_question, current, judged)
        try:
            if self._process is None:
                self._process = await _start()
            reader, writer = self._process.stdout, self._process.stdin
            if reader is None or writer is None:
                raise FittingError("the process that fits has no pipes")
            writer.write(line)
            await writer.drain()
            fitted = await reader.readline()
        except OSError as error:
            raise FittingError(f"no process for fitting: {error}") from error
        if not fitted:
            status = await self._process.wait()
            raise FittingError(f"the process that fits ended with status {status}")
        return Scaling.model_validate_json(fitted)


async def _start() -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "ingest.fitting_process",
        stdin=PIPE, stdout=PIPE, stderr=DEVNULL,
        env={**os.environ, **_THREADS, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,  # Ctrl-C at the terminal is the service's to handle
    )  # fmt: skip


def _question(current: Scaling, judged: Sequence[JudgedSuggestion]) -> bytes:
    columns = {
        "current": current.model_dump(mode="json"),
        "estimates": [each.estimate for each in judged],
        "rights": [each.outcome == "success" for each in judged],
        "agents": [each.agent for each in judged],
    }
    return json.dumps(columns).encode() + b"\n"


def main() -> None:
    """Answer the questions on stdin, one a line."""
    from retrieval.fitting import (  # noqa: PLC0415 - for this process alone
        refit_scaling,
    )

    if hasattr(os, "nice"):  # not on Windows
        os.nice(10)
    for line in sys.stdin.buffer:
        question = json.loads(line)
        current = Scaling.model_validate(question.pop("current"))
        sys.stdout.write(refit_scaling(current, **question).model_dump_json() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
