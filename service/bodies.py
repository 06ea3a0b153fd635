"""Bodies of requests: media type, bytes, JSON, model; each fault names its cure.

The fast parser refuses a whole body for one NaN, one lone surrogate, one value nested 200 deep. A
batch may not lose its good records to a bad one, so such a body is read again element by element;
what cannot be held becomes a value that validation rejects by itself. A key that stands twice in an
object counts with its last value, as in most parsers.

FastAPI reads and validates bodies; `JsonRoute` gives it these bytes and these values.
"""

import asyncio
import json
import re
import zlib
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect

from aftercall.json_values import MAX_DEPTH
from aftercall.models import MAX_BATCH, Execution, Rejection
from service.errors import (
    InvalidProblemError,
    MalformedJsonError,
    ProblemError,
    TooLargeProblemError,
    safe_message,
)
from service.explain import explain


class TooDeep:
    """Stands for a value nested so deep that no parser here reads it."""

    message: Final = f"is nested deeper than {MAX_DEPTH} levels"


TOO_DEEP: Final = TooDeep()

_SPACE = re.compile(r"[ \t\r\n]*")
_BRACKETS_AND_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"|\[++|\{++|\]++|\}++|"', re.DOTALL)


def parse_json(body: bytes, *, max_elements: int = MAX_BATCH) -> object:
    """The value of a JSON text in UTF-8.

    NaN, infinities and lone surrogates come through, for validation to name them with their place.
    What is nested too deep for a parser is `TOO_DEEP`: the whole, or an element of a list.

    Raises:
        MalformedJsonError: not JSON; the message gives line and column.
        TooLargeProblemError: a top-level list of more than `max_elements`.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        value = _Patient(_decode(body), max_elements).value()
    if isinstance(value, list) and len(value) > max_elements:
        raise TooLargeProblemError(_too_many(f"{len(value):,}", max_elements))
    return value


def _too_many(count: str, most: int) -> str:
    return (
        f"{count} records in one request, at most {most:,} are taken; nothing was stored, split it"
    )


def _decode(body: bytes) -> str:
    try:
        text = body.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise MalformedJsonError(
            f"the body is not UTF-8 text: byte {error.start} does not fit; send JSON in UTF-8"
        ) from None
    return text.removeprefix("\ufeff")


class _Patient:
    """Reads a text with the standard parser, a top-level list element by element."""

    def __init__(self, text: str, max_elements: int) -> None:
        self._text = text
        self._max_elements = max_elements
        self._decoder = json.JSONDecoder(parse_int=_integer)

    def value(self) -> object:
        start = self._skip_space(0)
        is_list = self._text[start : start + 1] == "["
        value, end = self._list(start) if is_list else self._element(start)
        end = self._skip_space(end)
        if end != len(self._text):
            raise self._malformed("there is more after the end of the JSON value", end)
        return value

    def _list(self, start: int) -> tuple[object, int]:
        elements: list[object] = []
        at = self._skip_space(start + 1)
        if self._text[at : at + 1] == "]":
            return elements, at + 1
        while True:
            element, at = self._element(at)
            elements.append(element)
            if len(elements) > self._max_elements:
                # Each element costs a call here, so the rest is not even looked at.
                raise TooLargeProblemError(
                    _too_many(f"more than {self._max_elements:,}", self._max_elements)
                )
            at = self._skip_space(at)
            separator = self._text[at : at + 1]
            if separator == "]":
                return elements, at + 1
            if separator != ",":
                raise self._malformed("expected ',' or ']'", at)
            at = self._skip_space(at + 1)

    def _element(self, start: int) -> tuple[object, int]:
        try:
            return self._decoder.raw_decode(self._text, start)
        except json.JSONDecodeError as error:
            raise self._malformed(error.msg, error.pos) from None
        except RecursionError:
            return TOO_DEEP, self._end_of(start)

    def _end_of(self, start: int) -> int:
        """Where the bracketed value at `start` ends, found without recursion."""
        depth = 0
        for token in _BRACKETS_AND_STRINGS.finditer(self._text, start):
            text = token[0]
            if text == '"':
                raise self._malformed("unterminated string", token.start())
            if text[0] in "[{":
                depth += len(text)
            elif text[0] in "]}":
                if len(text) >= depth:
                    return token.start() + depth
                depth -= len(text)
        raise self._malformed("the body ends inside a value", len(self._text))

    def _skip_space(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _malformed(self, problem: str, at: int) -> MalformedJsonError:
        line = self._text.count("\n", 0, at) + 1
        column = at - self._text.rfind("\n", 0, at)
        return MalformedJsonError(f"malformed JSON at line {line}, column {column}: {problem}")


def _integer(digits: str) -> int | float:
    """Python refuses to read integers beyond 4,300 digits; as a float they are infinite."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


ResultT = TypeVar("ResultT")

_INLINE_BYTES = 64 * 1024
"""Bodies up to this size are parsed where they are: it takes less than a trip to a thread and back
under load."""


class JsonRequest(Request):
    """A request whose body is JSON, for FastAPI."""

    async def body(self) -> bytes:
        """The body of a request that carries JSON.

        The media type must be `application/json`. A web page can send that to another origin only
        after a CORS preflight, which this service never grants, so that no page can post here
        behind its reader's back.

        Raises:
            ProblemError: 415 for another or no media type and for encoded bodies; 400 for an empty
                one.
        """
        kind, *parameters = self.headers.get("content-type", "").lower().split(";")
        if kind.strip() != "application/json":
            raise unsupported("send the body with Content-Type: application/json")
        for name, _, value in (parameter.strip().partition("=") for parameter in parameters):
            if name == "charset" and value.strip('"') not in {"utf-8", "utf8", "us-ascii"}:
                raise unsupported("send the body in UTF-8")
        if self.headers.get("content-encoding", "identity").lower() != "identity":
            # Unpacking needs a bound of its own against bodies that grow a thousandfold.
            raise unsupported("send the body uncompressed, without Content-Encoding")
        if not (body := await whole_body(self)):
            raise MalformedJsonError("the body is empty; send a JSON value")
        return body

    async def json(self) -> Any:
        """The value of the body, which FastAPI has asked for before.

        Raises:
            ProblemError: 400 when it is not JSON, 422 when it is nested too deep.
        """
        value = await parsed(await whole_body(self), parse_json)
        if isinstance(value, TooDeep):
            raise InvalidProblemError(f"the body {value.message}")
        return value


async def parsed(body: bytes, how: Callable[[bytes], ResultT]) -> ResultT:
    """What `how` makes of a body, off the event loop when that is large."""
    return how(body) if len(body) <= _INLINE_BYTES else await asyncio.to_thread(how, body)


class JsonRoute(APIRoute):
    """A route whose body FastAPI reads through `JsonRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's own, with another request."""
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return handle_json


async def read_body(request: Request) -> bytes:
    """The body of a request that carries JSON; for routes that read it themselves.

    Raises:
        ProblemError: as `JsonRequest.body`.
    """
    return await JsonRequest(request.scope, request.receive).body()


async def whole_body(request: Request) -> bytes:
    """The body as it came. `service.middleware.BodyLimits` has bounded it.

    Raises:
        ProblemError: 400 when the client went away.
    """
    try:
        return await Request.body(request)
    except ClientDisconnect:
        # Nobody reads this answer; the log line shows it.
        raise ProblemError(
            400, "disconnected", "the client went away before its body arrived"
        ) from None


def unsupported(cure: str) -> ProblemError:
    """415."""
    return ProblemError(415, "unsupported_media_type", cure)


Records: TypeAlias = Execution | list[Execution | Rejection]
"""The one execution of a body, or what became of each record of its list, in order."""


def parse_records(body: bytes) -> Records:
    """Read the body of `POST /executions`.

    Raises:
        MalformedJsonError: the body is not JSON.
        TooLargeProblemError: the list is longer than a batch may be.
        InvalidProblemError: a single record that is no execution, or neither object nor list.
    """
    value = parse_json(body)
    if isinstance(value, list):
        return [_record(index, record) for index, record in enumerate(value)]
    if isinstance(value, TooDeep):
        raise InvalidProblemError(f"the body {value.message}")
    if not isinstance(value, dict):
        raise InvalidProblemError(
            "the body must be an execution (an object) or a list of executions"
        )
    try:
        return Execution.model_validate(value)
    except ValidationError as error:
        raise InvalidProblemError(explain(error, Execution)) from None


def _record(index: int, value: object) -> Execution | Rejection:
    if isinstance(value, TooDeep):
        return Rejection(index=index, message=f"the record {value.message}")
    if not isinstance(value, dict):
        return Rejection(index=index, message="the record must be a JSON object")
    try:
        return Execution.model_validate(value)
    except ValidationError as error:
        return Rejection(index=index, message=safe_message(explain(error, Execution)))


async def _read_records(request: Request) -> Records:
    return await parsed(await read_body(request), parse_records)


RecordsBody = Annotated[Records, Depends(_read_records)]
"""FastAPI would refuse a whole list for one bad record."""

_GZIP = 31
"""zlib's way to say: gzip, largest window."""


def gunzip(packed: bytes, most: int) -> bytes:
    """What is packed, at most `most` bytes of it.

    A megabyte of zeros is a kilobyte in gzip, so the bound on what arrives says nothing about what
    comes out. Unpacking stops at the first byte too many.

    Raises:
        TooLargeProblemError: there is more.
        ProblemError: 400 for what is no gzip, ends within it, or goes on behind it.
    """
    unpacker = zlib.decompressobj(_GZIP)
    try:
        unpacked = unpacker.decompress(packed, most + 1)
    except zlib.error:
        raise _broken("is none, or damaged") from None
    if len(unpacked) > most:
        raise TooLargeProblemError(
            f"the body is larger than {most:,} bytes when unpacked; nothing was stored, "
            "send it in several requests"
        )
    if not unpacker.eof:
        raise _broken("ends too early; send it whole")
    if unpacker.unused_data:
        raise _broken("goes on behind its end; pack it as one")
    return unpacked


def _broken(problem: str) -> ProblemError:
    return ProblemError(400, "malformed_gzip", f"the gzip body {problem}; nothing was stored")
