"""Errors for exporters that speak protobuf: the same status and words, as a `google.rpc.Status`.

The protocol wants an error in the request's own encoding. Errors arise in many layers (limits, the
host guard, services that are not open yet, a store that is away), so they are turned around where
all of them pass, and everything else stays as it is.
"""

import json
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ingest.formats.otlp.answers import status_protobuf

PATH: Final = "/v1/traces"
PROTOBUF: Final = "application/x-protobuf"

_INVALID, _DEADLINE, _NOT_FOUND, _DENIED = 3, 4, 5, 7
_EXHAUSTED, _UNIMPLEMENTED, _INTERNAL, _UNAVAILABLE = 8, 12, 13, 14
_CODES: Final = {
    403: _DENIED, 404: _NOT_FOUND, 405: _UNIMPLEMENTED, 408: _DEADLINE, 413: _EXHAUSTED,
    429: _EXHAUSTED, 500: _INTERNAL, 503: _UNAVAILABLE,
}  # fmt: skip
"""`google.rpc.Code` by HTTP status; all others are the sender's mistake."""


class OtlpErrors:
    """Pure ASGI; outside of everything that answers with an error."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if (
            scope["type"] != "http"
            or scope["path"] != PATH
            or media_type(Headers(scope=scope)) != PROTOBUF
        ):
            await self._app(scope, receive, send)
            return
        begun: Message | None = None
        body = b""

        async def send_turned(message: Message) -> None:
            nonlocal begun, body
            if message["type"] == "http.response.start" and message["status"] >= 400:
                begun = message
            elif begun is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    status = status_protobuf(_CODES.get(begun["status"], _INVALID), _words(body))
                    headers = MutableHeaders(raw=begun["headers"])
                    headers["content-type"] = PROTOBUF
                    headers["content-length"] = str(len(status))
                    await send({**begun, "headers": headers.raw})
                    await send({"type": "http.response.body", "body": status})

        await self._app(scope, receive, send_turned)


def media_type(headers: Headers) -> str:
    """The media type of a request, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _words(body: bytes) -> str:
    """The message of the house's one form of errors."""
    return str(json.loads(body)["error"]["message"])
