"""What no app sees: bytes that are no HTTP, and request lines that are too long.

The protocol answers them in the contract's form.
"""

from typing import Final

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.dashboard.prefix import SOCKET
from service.http.problems import ProblemError, render

MAX_TARGET_BYTES = 65_535
"""Bytes of a request's path and query, percent-encoded: the parser of URLs counts in 16 bits."""

_MAX_READ_BYTES = 16 * 1024 * 1024
"""Bytes of a target that are read at all; what is too long is read and thrown away up to here, so
that a client which sends it all before it reads still gets the answer."""

_MALFORMED: Final = render(
    ProblemError(
        400,
        "malformed_http",
        "this is not a valid HTTP/1.1 request; check the request line, the header lines and "
        "Content-Length",
    )
)

_TOO_LONG: Final = render(
    ProblemError(
        414,
        "uri_too_long",
        f"path and query are longer than {MAX_TARGET_BYTES:,} bytes; a scenario has at most 10,000 "
        "characters, and one that is long when percent-encoded fits into `POST /tools/find`",
    )
)

_SOCKETS: Final = f"{SOCKET}/".encode()
"""Where there are any: the dashboard's."""

_PHRASES: Final = {400: "Bad Request", 414: "URI Too Long"}


class ContractHttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, whose own 400 is plain text and whose request line has no bound."""

    _target_bytes = 0

    def on_message_begin(self) -> None:
        """A request begins."""
        self._target_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of the target; of one that is too long nothing more is kept."""
        self._target_bytes += len(url)
        if self._target_bytes <= MAX_TARGET_BYTES:
            super().on_url(url)
        elif self._target_bytes > _MAX_READ_BYTES:
            raise ValueError("the target is far too long")  # the parser makes it a 400 of its own

    def on_headers_complete(self) -> None:
        """The head is there; one whose target is too long goes to no app."""
        if self._target_bytes > MAX_TARGET_BYTES:
            raise ValueError("the target is too long")  # as above
        super().on_headers_complete()

    def _should_upgrade(self) -> bool:
        # A request to any other path is answered as if it had not asked for a socket.
        return self.url.startswith(_SOCKETS) and super()._should_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Answer and close: where the next request would begin cannot be known.

        Args:
            msg: Uvicorn's words, which it has logged; the same for all that cannot be parsed.
        """
        del msg
        is_too_long = self._target_bytes > MAX_TARGET_BYTES
        self._answer_and_close(_TOO_LONG if is_too_long else _MALFORMED)

    def _answer_and_close(self, answer: Response) -> None:
        headers = [
            *self.server_state.default_headers,
            *answer.raw_headers,
            (b"connection", b"close"),
        ]
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        head = f"HTTP/1.1 {answer.status_code} {_PHRASES[answer.status_code]}\r\n".encode()
        self.transport.write(head + lines + b"\r\n" + bytes(answer.body))
        self.transport.close()
