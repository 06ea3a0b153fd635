"""Bodies of requests: media type, bytes, JSON, model; each fault names its cure.

The fast parser refuses a whole body for one NaN, one lone surrogate, one value nested 200 deep. A
batch may not lose its good records to a bad one, so such a body is read again by a patient parser,
and validation rejects what cannot be held by itself; only some 1,000 levels refuse the whole. A key
that stands twice in an object counts with its last value, as in most parsers.

FastAPI reads and validates bodies; `JsonRoute` gives it these bytes and these values.
"""

import json
import zlib
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Annotated, Any, TypeAlias, TypeVar

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json
from starlette.requests import ClientDisconnect

from aftercall.background import aside
from aftercall.explain import explain, explain_request
from aftercall.json_values import MAX_DEPTH
from aftercall.models import MAX_BATCH, Execution, Rejection
from service.errors import (
    InvalidProblemError,
    MalformedJsonError,
    ProblemError,
    TooLargeProblemError,
    safe_message,
)


def parse_json(body: bytes, *, max_elements: int = MAX_BATCH) -> object:
    """The value of a JSON text in UTF-8.

    NaN, infinities and lone surrogates come through, for validation to name them with their place.

    Raises:
        MalformedJsonError: not JSON; the message gives line and column.
        InvalidProblemError: it is nested so deep that no parser reads it.
        TooLargeProblemError: a top-level list of more than `max_elements`.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError:
        value = _read_patiently(body)
    if isinstance(value, list) and len(value) > max_elements:
        raise TooLargeProblemError(
            f"{len(value):,} records in one request, at most {max_elements:,} are taken; nothing "
            "was stored, split it"
        )
    return value


def _read_patiently(body: bytes) -> object:
    try:
        text = body.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise MalformedJsonError(
            f"the body is not UTF-8 text: byte {error.start} does not fit; send JSON in UTF-8"
        ) from None
    try:
        return json.loads(text, parse_int=_integer)
    except RecursionError:
        raise InvalidProblemError(
            f"the body is nested deeper than {MAX_DEPTH} levels; nothing was stored"
        ) from None
    except json.JSONDecodeError as error:
        raise MalformedJsonError(
            f"malformed JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None


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
    """A request whose body is JSON, for FastAPI; a large one becomes `model` beside the loop."""

    model: Any = None

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
        """The value of the body, which FastAPI has asked for before, or already its model."""
        body = await whole_body(self)
        model = self.model if len(body) > _INLINE_BYTES else None
        return await parsed(body, partial(_value, model=model))


async def parsed(body: bytes, how: Callable[[bytes], ResultT]) -> ResultT:
    """What `how` makes of a body, off the event loop when that is large."""
    return await aside(how, body, when=len(body) > _INLINE_BYTES)


def _value(body: bytes, *, model: Any) -> Any:
    value = parse_json(body)
    if model is None:
        return value  # for FastAPI to validate
    try:
        return TypeAdapter(model).validate_python(value)
    except ValidationError as error:
        faults = [each | {"loc": ("body", *each["loc"])} for each in error.errors()]
        raise InvalidProblemError(explain_request(faults, model)) from None


class JsonRoute(APIRoute):
    """A route whose body FastAPI reads through `JsonRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's own, with another request."""
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            json_request = JsonRequest(request.scope, request.receive)
            json_request.model = self.body_field and self.body_field.field_info.annotation
            return await handle(json_request)

        return handle_json


async def read_body(request: Request) -> bytes:
    """The body of a request that carries JSON; for routes that read it themselves."""
    return await JsonRequest(request.scope, request.receive).body()


async def whole_body(request: Request) -> bytes:
    """The body as it came. `service.middleware.BodyLimits` has bounded it."""
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
    """Read the body of `POST /executions`."""
    value = parse_json(body)
    if isinstance(value, list):
        return [_record(index, record) for index, record in enumerate(value)]
    if not isinstance(value, dict):
        raise InvalidProblemError(
            "the body must be an execution (an object) or a list of executions"
        )
    try:
        return Execution.model_validate(value)
    except ValidationError as error:
        raise InvalidProblemError(explain(error, Execution)) from None


def _record(index: int, value: object) -> Execution | Rejection:
    if not isinstance(value, dict):
        return Rejection(index=index, message="the record must be a JSON object")
    try:
        return Execution.model_validate(value)
    except ValidationError as error:
        return Rejection(index=index, message=safe_message(explain(error, Execution)))


async def _read_records(request: Request) -> Records:
    body = await read_body(request)
    return await parsed(body, parse_records)


RecordsBody = Annotated[Records, Depends(_read_records)]
"""FastAPI would refuse a whole list for one bad record."""
_GZIP = 31
"""zlib's way to say: gzip, largest window."""


def gunzip(packed: bytes, most: int) -> bytes:
    """What is packed, at most `most` bytes of it.

    A megabyte of zeros is a kilobyte in gzip, so the bound on what arrives says nothing about what
    comes out. Unpacking stops at the first byte too many.
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
