"""Reading a request: media type, body, JSON, model; each fault a `ProblemError` with its cure."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from service.http.explain import explain
from service.http.json_body import TooDeep, parse_json
from service.http.problems import InvalidRequestError, MalformedJsonError, ProblemError

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
