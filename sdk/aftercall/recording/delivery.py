"""Sending encoded executions: what was acknowledged, what was refused, and when to try again."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from aftercall.client import Client
from aftercall.client.endpoints import MAX_BODY_BYTES, record_encoded
from aftercall.client.transport import full_jitter_s
from aftercall.errors import (
    AftercallError,
    ApiError,
    ConflictError,
    InvalidRequestError,
    TooLargeError,
)

_LOGGER = logging.getLogger("aftercall")

_REFUSALS = (InvalidRequestError, TooLargeError, ConflictError)
"""Answers about what was sent: sending it again would change nothing."""

_BASE_S, _CAP_S = 0.5, 30.0  # waits between attempts while the service is away
_MAX_RETRY_AFTER_S = 300.0


@dataclass(slots=True)
class Delivered:
    """What became of some executions. `unsent` may be sent again; the rest needs no more."""

    sent: int = 0
    duplicates: int = 0
    rejected: int = 0
    refusal: str = ""  # why something was rejected, without a word of what was sent
    unsent: list[bytes] = field(default_factory=list)


def body_sized(
    lines: Sequence[bytes], *, max_lines: int, max_bytes: int = MAX_BODY_BYTES
) -> Iterator[list[bytes]]:
    """The lines in order, in groups that each fit into one request.

    A line that is too large by itself comes alone.
    """
    group: list[bytes] = []
    size = 2  # the brackets of the list
    for line in lines:
        if group and (len(group) >= max_lines or size + len(line) + 1 > max_bytes):
            yield group
            group, size = [], 2
        group.append(line)
        size += len(line) + 1
    if group:
        yield group


class Delivery:
    """Sends executions to the service; remembers whether it is away. For one thread at a time.

    Args:
        connect: gives the client; called when something is first sent, for a client costs some
            20 ms (TLS) that a process which only forks need not pay.
        max_batch: most executions in one request.
    """

    def __init__(self, connect: Callable[[], Client], *, max_batch: int) -> None:
        self._connect = connect
        self._client: Client | None = None
        self._max_batch = max_batch
        self._failures = 0
        self._retry_at = 0.0  # time.monotonic()

    @property
    def pause_s(self) -> float:
        """Seconds until the service should be tried again; 0 while it answers."""
        return max(0.0, self._retry_at - time.monotonic())

    def try_now(self) -> None:
        """Let the next `send` go out whatever the last one met."""
        self._retry_at = 0.0

    def send(self, lines: Sequence[bytes]) -> Delivered:
        """Send executions; nothing goes out any more once the service turned out to be away."""
        done = Delivered()
        for group in body_sized(lines, max_lines=self._max_batch):
            self._send_group(group, done)
        return done

    def close(self) -> None:
        """Close the client, if there ever was one."""
        if self._client is not None:
            self._client.close()

    def _send_group(self, group: list[bytes], done: Delivered) -> None:
        if self.pause_s:
            done.unsent += group
            return
        if len(group) == 1 and len(group[0]) + 2 > MAX_BODY_BYTES:
            done.rejected += 1
            done.refusal = (
                f"an execution of {len(group[0]):,} bytes is larger than a request may be"
            )
            return
        try:
            self._client = self._client or self._connect()
            receipt = self._client.send(record_encoded(group))
        except _REFUSALS as error:
            if len(group) > 1:  # one bad record must not take its neighbours with it
                middle = len(group) // 2
                self._send_group(group[:middle], done)
                self._send_group(group[middle:], done)
                return
            done.rejected += 1
            done.refusal = f"the service answered {error.status} {error.code}"
        except AftercallError as error:
            self._back_off(error)
            done.unsent += group
        else:
            self._answered()
            done.sent += receipt.accepted
            done.duplicates += receipt.duplicates
            done.rejected += len(receipt.rejected)
            if receipt.rejected:
                done.refusal = "the service named them in its receipt"

    def _back_off(self, error: AftercallError) -> None:
        self._failures += 1
        wait_s = full_jitter_s(self._failures, base_s=_BASE_S, cap_s=_CAP_S)
        if isinstance(error, ApiError) and error.retry_after_s is not None:
            wait_s = max(wait_s, min(error.retry_after_s, _MAX_RETRY_AFTER_S))
        self._retry_at = time.monotonic() + max(wait_s, 0.01)
        if self._failures == 1:
            _LOGGER.warning("the service takes no executions at the moment: %s", _reason(error))

    def _answered(self) -> None:
        if self._failures:
            _LOGGER.info("the service takes executions again")
        self._failures = 0


def _reason(error: AftercallError) -> str:
    """Why, without a word of what was sent: a service's message may quote its input."""
    if isinstance(error, ApiError):
        return f"it answered {error.status} {error.code}"
    return f"{type(error).__name__}: {error}"
