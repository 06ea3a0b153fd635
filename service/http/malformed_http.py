"""Bytes that are no HTTP: answered in the contract's form by the protocol, as no app sees them."""

from http import HTTPStatus
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service.http.problems import ProblemError, render

_PROBLEM: Final = render(
    ProblemError(
        HTTPStatus.BAD_REQUEST,
        "malformed_http",
        "this is not a valid HTTP/1.1 request; check the request line, the header lines and "
        "Content-Length",
    )
)


class ContractHttpProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, whose own 400 is plain text."""

    def send_400_response(self, msg: str) -> None:
        """Answer and close: where the next request would begin cannot be known.

        Args:
            msg: Uvicorn's words, which it has logged; the same for all that cannot be parsed.
        """
        del msg
        headers = [
            *self.server_state.default_headers,
            *_PROBLEM.raw_headers,
            (b"connection", b"close"),
        ]
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        status = HTTPStatus.BAD_REQUEST
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
        self.transport.write(head + lines + b"\r\n" + bytes(_PROBLEM.body))
        self.transport.close()
