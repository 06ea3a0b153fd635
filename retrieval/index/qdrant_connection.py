"""A client of one Qdrant: a server's over gRPC, or the client library's own store (`local:DIR`).

The local store keeps everything in Python lists and searches them one by one, on the event loop:
for tests and trials of some thousand documents. It takes the same requests as a server. A folder
can be open once, so everyone in this process shares one client of it.
"""

import asyncio
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from qdrant_client import AsyncQdrantClient

from retrieval.index.protocol import IndexInUseError, VectorIndexError
from retrieval.index.qdrant_errors import translate

LOCAL = "local:"
"""What an address begins with that names a folder, or `:memory:`, of the client's own store."""

GRPC_OPTIONS = {
    # Tried again soon after an outage; gRPC's own pause grows to two minutes.
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 2_000,
    # A connection that a proxy has dropped without a word is noticed during the next call.
    "grpc.keepalive_time_ms": 20_000,
    "grpc.keepalive_timeout_ms": 5_000,
}


@dataclass
class _Shared:
    client: AsyncQdrantClient
    users: int = 0


_LOCAL_CLIENTS: dict[str, _Shared] = {}
"""Of this process, by folder; given up with their last user."""


class Connection:
    """A client and what its errors are to say. Construct with `connect`."""

    def __init__(self, client: AsyncQdrantClient, *, where: str, shared: str | None = None) -> None:
        self._client = client
        self._shared = shared
        self._closed = False
        self.where = where
        """The address for messages: no credentials are in it."""

    @property
    def is_local(self) -> bool:
        """Whether it is the client's own store."""
        return self._shared is not None

    @contextmanager
    def doing(self, what: str) -> Iterator[AsyncQdrantClient]:
        """The client, and whatever it raises as `VectorIndexError`."""
        if self._closed:
            raise _closed_error()
        try:
            yield self._client
        except asyncio.CancelledError:
            # gRPC cancels the calls of a channel that is closed, which nobody asked for
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                raise _closed_error() from None
            raise
        except VectorIndexError:
            raise
        except Exception as error:
            raise translate(error, what=what, where=self.where) from error

    async def close(self) -> None:
        """Let go of the connections; closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._shared is not None:
            shared = _LOCAL_CLIENTS[self._shared]
            shared.users -= 1
            if shared.users:
                return
            del _LOCAL_CLIENTS[self._shared]
        await self._client.close()


def connect(
    url: str, *, api_key: str | None = None, grpc_port: int = 6334, timeout_s: float = 20.0
) -> Connection:
    """A client of the Qdrant at an address; a server is not called yet.

    Args:
        url: `http://host:port`, `https://...` for TLS, or `local:DIR`. The port is the one of REST,
            which nothing uses; a path is ignored.
        api_key: Sent with every call; an empty one is none.
        grpc_port: Of the same host.
        timeout_s: Of one call; rounded up to whole seconds, which is what the client takes.

    Raises:
        IndexInUseError: when another process has the folder open.
        VectorIndexError: when the address, the key or the folder will not do.
    """
    if url.startswith(LOCAL):
        return _connect_local(url.removeprefix(LOCAL))
    host = _host(url)
    if api_key and not (api_key.isascii() and api_key.isprintable()):
        raise VectorIndexError(
            "the API key of Qdrant has characters that no header takes: look for a line break in "
            "AFTERCALL_QDRANT_API_KEY"
        )
    where = f"{host}:{grpc_port}"
    try:
        client = AsyncQdrantClient(
            url=url,
            grpc_port=grpc_port,
            prefer_grpc=True,
            # as a header: for `api_key=` on a connection without TLS the client warns each time
            headers={"api-key": api_key} if api_key else None,
            timeout=_whole_seconds(timeout_s),
            grpc_options=dict(GRPC_OPTIONS),
            check_compatibility=False,  # asks in a thread and warns; `qdrant_collection` asks too
        )
    except Exception as error:
        raise translate(error, what="use the address of Qdrant", where=where) from error
    return Connection(client, where=where)


def _connect_local(folder: str) -> Connection:
    if not folder:
        raise VectorIndexError("the address of Qdrant names no folder: write local:DIR")
    key = folder if folder == ":memory:" else str(Path(folder).absolute())
    where = f"{LOCAL}{key}"
    # It warns of what it does without (approximation) and of its slowness with many points, which
    # who asks for it knows.
    warnings.filterwarnings("ignore", message="Local mode ", category=UserWarning)
    if key not in _LOCAL_CLIENTS:
        try:
            chosen: dict[str, Any] = {"location": key} if key == ":memory:" else {"path": key}
            client = AsyncQdrantClient(**chosen, force_disable_check_same_thread=True)
        except Exception as error:
            if "already accessed" in str(error):
                raise IndexInUseError(
                    f"another process has the vectors in {where} open: stop it first; only a "
                    "Qdrant server serves several"
                ) from error
            raise translate(error, what="open the vectors", where=where) from error
        _LOCAL_CLIENTS[key] = _Shared(client)
    _LOCAL_CLIENTS[key].users += 1
    return Connection(_LOCAL_CLIENTS[key].client, where=where, shared=key)


def _host(url: str) -> str:
    """The host of an address, which may be shown; credentials in it may not."""
    cure = "write AFTERCALL_QDRANT_URL as in http://qdrant:6333"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host = None
    if host is None or parts.scheme not in ("http", "https"):
        raise VectorIndexError(f"the address of Qdrant is none: {cure}")
    if parts.username is not None or parts.password is not None:
        raise VectorIndexError(
            f"the address of Qdrant holds credentials, which it takes as a key: {cure} and the key "
            "as AFTERCALL_QDRANT_API_KEY"
        )
    return f"[{host}]" if ":" in host else host


def _whole_seconds(seconds: float) -> int:
    return max(1, -int(-seconds // 1))


def _closed_error() -> VectorIndexError:
    return VectorIndexError("this index is closed; open another")
