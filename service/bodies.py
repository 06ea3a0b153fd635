"""Bodies of requests: media type, bytes, JSON, model; each fault names its cure.

The fast parser refuses a whole body for one NaN, one lone surrogate, one value nested 200 deep. A
batch may not lose its good records to a bad one, so such a body is read again element by element;
what cannot be held becomes a value that validation rejects by itself. A key that stands twice in an
object counts with its last value, as in most parsers.

A megabyte of zeros is a kilobyte in gzip, so the bound on what arrives says nothing about what
comes out. Unpacking stops at the first byte too many; no more than the bound is ever in memory.
"""

import asyncio
import json
import re
import zlib
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from aftercall.json_values import MAX_DEPTH
from aftercall.models import MAX_BATCH, Execution, Rejection
from service.errors import (
    InvalidRequestError,
    MalformedJsonError,
    ProblemError,
    TooLargeError,
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
        TooLargeError: a top-level list of more than `max_elements`.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        value = _Patient(_decode(body), max_elements).value()
    if isinstance(value, list) and len(value) > max_elements:
        raise TooLargeError(_too_many(f"{len(value):,}", max_elements))
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
                raise TooLargeError(
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
ModelT = TypeVar("ModelT", bound=BaseModel)

_INLINE_BYTES = 64 * 1024
"""Bodies up to this size are parsed where they are: validating one takes about a millisecond,
less than a trip to a thread and back under load."""


async def read_body(request: Request) -> bytes:
    """The body of a request that carries JSON.

    The media type must be `application/json`. A web page can send that to another origin only
    after a CORS preflight, which this service never grants, so that no page can post here behind
    its reader's back.

    Raises:
        ProblemError: 415 for another or no media type and for encoded bodies; 400 for an empty one.
    """
    media_type, *parameters = request.headers.get("content-type", "").lower().split(";")
    if media_type.strip() != "application/json":
        raise _unsupported("send the body with Content-Type: application/json")
    for name, _, value in (parameter.strip().partition("=") for parameter in parameters):
        if name == "charset" and value.strip('"') not in {"utf-8", "utf8", "us-ascii"}:
            raise _unsupported("send the body in UTF-8")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        # Unpacking needs a bound of its own against bodies that grow a thousandfold.
        raise _unsupported("send the body uncompressed, without Content-Encoding")
    try:
        body = await request.body()
    except ClientDisconnect:
        # Nobody reads this answer; the log line shows it.
        raise ProblemError(
            400, "disconnected", "the client went away before its body arrived"
        ) from None
    if not body:
        raise MalformedJsonError("the body is empty; send a JSON value")
    return body


def _unsupported(cure: str) -> ProblemError:
    return ProblemError(415, "unsupported_media_type", cure)


async def read_model(request: Request, model: type[ModelT], parsers: Executor) -> ModelT:
    """The body of a request as `model`; a large one is parsed by `parsers`.

    Raises:
        ProblemError: as `read_body`; 400 when it is not JSON; 422 naming the field at fault.
    """
    body = await read_body(request)
    return await parse(body, partial(_parse_model, model=model), parsers)


async def parse(body: bytes, how: Callable[[bytes], ResultT], parsers: Executor) -> ResultT:
    """`how(body)`, off the event loop when the body is large."""
    if len(body) <= _INLINE_BYTES:
        return how(body)
    return await asyncio.get_running_loop().run_in_executor(parsers, how, body)


def _parse_model(body: bytes, model: type[ModelT]) -> ModelT:
    value = parse_json(body)
    if isinstance(value, TooDeep):
        raise InvalidRequestError(f"the body {value.message}")
    if not isinstance(value, dict):
        raise InvalidRequestError("the body must be a JSON object")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidRequestError(explain(error, model)) from None


def parse_records(body: bytes) -> Execution | list[Execution | Rejection]:
    """The one execution of a body, or what became of each record of its list, in order.

    Raises:
        MalformedJsonError: the body is not JSON.
        TooLargeError: the list is longer than a batch may be.
        InvalidRequestError: a single record that is no execution, or neither object nor list.
    """
    value = parse_json(body)
    if isinstance(value, list):
        return [_record(index, record) for index, record in enumerate(value)]
    if isinstance(value, TooDeep):
        raise InvalidRequestError(f"the body {value.message}")
    if not isinstance(value, dict):
        raise InvalidRequestError(
            "the body must be an execution (an object) or a list of executions"
        )
    try:
        return Execution.model_validate(value)
    except ValidationError as error:
        raise InvalidRequestError(explain(error, Execution)) from None


def _record(index: int, value: object) -> Execution | Rejection:
    if isinstance(value, TooDeep):
        return Rejection(index=index, message=f"the record {value.message}")
    if not isinstance(value, dict):
        return Rejection(index=index, message="the record must be a JSON object")
    try:
        return Execution.model_validate(value)
    except ValidationError as error:
        return Rejection(index=index, message=safe_message(explain(error, Execution)))


_GZIP_WINDOW = 31  # zlib's way to say: gzip, largest window
_PIECE = 64 * 1024
_MAX_MEMBERS = 64
"""Members of one gzip body. Senders write one; each further one costs a start, however small."""


async def read_packed_body(request: Request) -> tuple[bytes, bool]:
    """The body as it came, and whether it is in gzip. `BodyLimits` has bounded what came.

    Raises:
        ProblemError: 415 for another encoding; 400 when the client went away.
    """
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip", ""}:
        raise ProblemError(
            415,
            "unsupported_media_type",
            "send the body with Content-Encoding: gzip, or without one",
        )
    try:
        return await request.body(), encoding == "gzip"
    except ClientDisconnect:
        # Nobody reads this answer; the log line shows it.
        raise ProblemError(
            400, "disconnected", "the client went away before its body arrived"
        ) from None


def gunzip(packed: bytes, most: int) -> bytes:
    """What is packed, at most `most` bytes of it.

    Raises:
        TooLargeError: there is more.
        ProblemError: 400 for what is no gzip, or ends within it.
    """
    unpacked = bytearray()
    view = memoryview(packed)
    at = members = 0
    while at < len(packed):
        members += 1
        if members > _MAX_MEMBERS:
            raise _broken(f"holds more than {_MAX_MEMBERS} members; pack it as one")
        at = _member(view, at, unpacked, most)
    if not members:
        raise _broken("is empty")
    return bytes(unpacked)


def _member(view: memoryview, at: int, unpacked: bytearray, most: int) -> int:
    """Append what the gzip member at `at` holds; where it ends."""
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    waiting = b""
    while not unpacker.eof:
        if not waiting:
            if at >= len(view):
                raise _broken("ends too early; send it whole")
            waiting = bytes(view[at : at + _PIECE])
            at += len(waiting)
        try:
            # One byte more than may be, so that exactly as much as may be is still taken.
            unpacked += unpacker.decompress(waiting, most + 1 - len(unpacked))
        except zlib.error:
            raise _broken("is none, or damaged") from None
        if len(unpacked) > most:
            raise TooLargeError(
                f"the body is larger than {most:,} bytes when unpacked; nothing was stored, "
                "send it in several requests"
            )
        waiting = unpacker.unconsumed_tail
    return at - len(unpacker.unused_data)


def _broken(problem: str) -> ProblemError:
    return ProblemError(400, "malformed_gzip", f"the gzip body {problem}; nothing was stored")
