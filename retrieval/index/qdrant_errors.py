"""What a Qdrant client raises, as the index's own errors with their cure."""

import grpc
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse

from retrieval.index.protocol import VectorIndexError, VectorIndexUnavailableError

_REBUILD = "if this persists, `aftercall rebuild` makes the vectors anew"

_AWAY = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.CANCELLED,
}
"""Not answering, not in time, or asking for patience."""

_REFUSED = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}


def translate(error: Exception, *, what: str, where: str) -> VectorIndexError:
    """The error to raise for one of the client's.

    Args:
        error: what it raised.
        what: was to be done, such as "search the vectors".
        where: the address, without credentials.
    """
    failed = f"cannot {what} at {where}"
    if isinstance(error, ResourceExhaustedResponse):
        return VectorIndexUnavailableError(
            f"{failed}: Qdrant asks to wait {error.retry_after_s} s ({error}); try again then"
        )
    if not isinstance(error, grpc.aio.AioRpcError):
        return VectorIndexError(f"{failed}: {error}; {_REBUILD}")
    code, details = error.code(), error.details() or "no details"
    if code in _AWAY:
        return VectorIndexUnavailableError(
            f"{failed}: Qdrant does not answer ({code.name}: {details}); see that it runs and that "
            "AFTERCALL_QDRANT_URL and AFTERCALL_QDRANT_GRPC_PORT are right; it is tried again"
        )
    if code in _REFUSED:
        return VectorIndexError(
            f"{failed}: Qdrant refuses ({code.name}: {details}); check AFTERCALL_QDRANT_API_KEY, "
            "which must be one that may write"
        )
    if code is grpc.StatusCode.NOT_FOUND:
        return VectorIndexError(
            f"{failed}: the collection is gone ({details}); `aftercall rebuild` makes the vectors "
            "anew from the log"
        )
    return VectorIndexError(f"{failed}: {code.name}: {details}; see Qdrant's own log; {_REBUILD}")
