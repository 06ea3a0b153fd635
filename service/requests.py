"""The parameters of routes: the caller's space, names in paths, queries and bodies.

Dependencies are coroutines, since FastAPI sends plain functions to a thread pool.

Each fault of a body (media type, bytes, JSON, model) names its cure. The fast parser refuses a
whole body for one NaN, one lone surrogate, one value nested 200 deep. A batch may not lose its good
records to a bad one, so such a body is read again by a patient parser, and validation rejects what
cannot be held by itself; only some 1,000 levels refuse the whole. A key that stands twice in an
object counts with its last value, as in most parsers. FastAPI reads and validates bodies;
`JsonRoute` gives it these bytes and these values.
"""

import json
import re
import zlib
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, TypeAlias, TypeVar

from fastapi import Depends, Path, Query, Request, Response, Security
from fastapi._compat import shared as fastapi_compat
from fastapi.openapi.models import HTTPBearer
from fastapi.routing import APIRoute
from fastapi.security.base import SecurityBase
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import ClientDisconnect

from aftercall import models as m
from aftercall.background import call_aside
from aftercall.explain import explain_error, explain_request
from aftercall.json_values import MAX_DEPTH, read_json
from aftercall.models.base import Id, Name
from mongo.records import ToolKey
from service.context import Context, Lifecycle, Space
from service.errors import (
    InvalidProblemError,
    MalformedJsonError,
    NotFoundProblemError,
    ProblemError,
    TooLargeProblemError,
    UnavailableError,
    safe_message,
)
from service.keys import DEFAULT_WORKSPACE, Access, KeySpace
from service.middleware import access_of

# FastAPI asks of each model whether it is one of pydantic's first version, and imports all of that
# to know: a twentieth of the service's start, and 10 MiB. No model here is one.
if hasattr(fastapi_compat, "is_pydantic_v1_model_class"):
    fastapi_compat.is_pydantic_v1_model_class = lambda cls: False  # noqa: ARG005  # its own name


class SpaceFor(SecurityBase):
    """Gives a route the space of a caller whose key has a scope; annotations name it."""

    def __init__(self, scope: m.Scope) -> None:
        self.model = HTTPBearer(bearerFormat="ac_<id>_<secret>")
        self.scheme_name = "key"
        self._scope = scope

    async def __call__(self, request: Request) -> Space:
        """Return the space of a request: its key has the workspace, and no route names one."""
        context = open_for(request, self._scope)
        named = request.headers.get(m.WORKSPACE_HEADER)
        own = context.caller.workspace
        workspace = (named or DEFAULT_WORKSPACE) if own == m.ALL_WORKSPACES else own
        if named not in (None, workspace) or not _WORKSPACE.fullmatch(workspace):
            raise NotFoundProblemError("there is no such workspace for this key")
        return Space(context, workspace)


def check_scope(access: Access, scope: m.Scope) -> None:
    """Refuse a key without a scope."""
    if scope not in access.scopes:
        has = ", ".join(sorted(access.scopes))
        message = f"this wants a key with the scope {scope}; yours has {has}"
        raise ProblemError(403, "outside_scope", message)


def open_for(request: Request, scope: m.Scope) -> Context:
    """Return the context, once it is open, of a caller whose key has a scope."""
    lifecycle: Lifecycle = request.app.state.lifecycle
    access = access_of(request.scope)
    if lifecycle.context is None:
        raise UnavailableError("not_ready", f"the service is {lifecycle.phase}; try again shortly")
    if access is None:  # it arrived before the keys were read
        raise UnavailableError("not_ready", "the service has just started; try again")
    check_scope(access, scope)
    return replace(lifecycle.context, caller=access)


_WORKSPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
Record = Annotated[Space, Security(SpaceFor("record"), scopes=["record"])]
"""The space of a caller whose key has the scope of that name, like the three below."""
Suggest = Annotated[Space, Security(SpaceFor("suggest"), scopes=["suggest"])]
Read = Annotated[Space, Security(SpaceFor("read"), scopes=["read"])]
Admin = Annotated[Space, Security(SpaceFor("admin"), scopes=["admin"])]
_ADMIN = SpaceFor("admin")


async def _open_key_space(space: Annotated[Space, Security(_ADMIN, scopes=["admin"])]) -> KeySpace:
    return KeySpace(space.context.keys, space.context.caller)


KeyAdmin = Annotated[KeySpace, Depends(_open_key_space)]
"""What operations on keys need, for an admin; the command line makes its own."""


class _NameInPath(PathConvertor):
    """`:name` in a path: any text; a client percent-encodes a slash, and the server decodes it."""

    regex = "(?s:.+)"  # `(?s:.)` matches line breaks, too


class _ToolInPath(_NameInPath):
    """`:tool` in a path: any text without the endings that the contract puts after a tool's id."""

    regex = "(?!(?s:.+)/(?:failures|health)$)(?s:.+)"


register_url_convertor("name", _NameInPath())
register_url_convertor("tool", _ToolInPath())
ExecutionId = Annotated[Id, Path(alias="executionId", description="A UUID.")]
SuggestionId = Annotated[
    Id, Path(alias="suggestionId", description="A UUID, from `POST /suggest`.")
]
ToolId = Annotated[
    Name,
    Path(
        alias="toolId",
        description="Chosen by the one that registers the tool; may hold slashes.",
        json_schema_extra={"not": {"pattern": "./(failures|health)$"}},
    ),
]
Namespace = Annotated[Name, Path(description="A capability that tools serve; may hold slashes.")]


class Window(m.WireModel):
    """A span of time up to now."""

    window: m.UsageWindow = Field(default="24h", description="Up to now.")


class WindowList(Window):
    """A span of time up to now, and how many entries of each list are wanted."""

    limit: int = Field(
        default=100, ge=1, le=500, description="Entries of each list in the answer, at most."
    )


class _Nothing(m.WireModel):
    pass


async def _refuse_query(_query: Annotated[_Nothing, Query()]) -> None:
    """Take no parameters, so that a parameter of another route is refused and not ignored."""


NO_QUERY = Depends(_refuse_query)
"""A dependency of routes that take no parameters in the query."""
WindowQuery = Annotated[Window, Query()]
ListQuery = Annotated[WindowList, Query()]


class ToolFilter(m.WireModel):
    """A tool as calls name it, in a query."""

    tool_name: Name | None = Field(
        default=None, description="Only what is about the tool that calls name so."
    )
    server_name: Name | None = Field(
        default=None, description="Its server; left out, the tool without one is meant."
    )

    def find_tool(self, workspace: str) -> ToolKey | None:
        """Return the tool that the query names; None for all tools."""
        if self.tool_name is not None:
            return ToolKey(workspace, self.server_name, self.tool_name)
        if self.server_name is not None:
            raise NotFoundProblemError("serverName needs toolName; a server alone is no tool")
        return None


def parse_json(body: bytes, *, max_elements: int = m.MAX_BATCH) -> object:
    """Return the value of a JSON text in UTF-8.

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
        return read_json(text, parse_int=_read_integer)
    except RecursionError:
        raise InvalidProblemError(
            f"the body is nested deeper than {MAX_DEPTH} levels; nothing was stored"
        ) from None
    except json.JSONDecodeError as error:
        raise MalformedJsonError(
            f"malformed JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None


def _read_integer(digits: str) -> int | float:
    """Return an integer, or infinity: Python refuses to read integers beyond 4,300 digits."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


ResultT = TypeVar("ResultT")
_INLINE_BYTES = 64 * 1024
"""Bodies up to this size are parsed where they are: a trip to a thread takes longer."""


class JsonRequest(Request):
    """A request whose body is JSON, for FastAPI; a large one becomes `model` next to the loop."""

    model: Any = None

    async def body(self) -> bytes:
        """Return the body of a request that carries JSON.

        The media type must be `application/json`. A web page can send that to another origin only
        after a CORS preflight, which this service never grants, so that no page can post here
        behind its reader's back. Another or no media type and an encoded body are 415, an empty one
        400.
        """
        kind, *parameters = self.headers.get("content-type", "").lower().split(";")
        if kind.strip() != "application/json":
            raise refuse_media("send the body with Content-Type: application/json")
        for name, _, value in (parameter.strip().partition("=") for parameter in parameters):
            if name == "charset" and value.strip('"') not in {"utf-8", "utf8", "us-ascii"}:
                raise refuse_media("send the body in UTF-8")
        if self.headers.get("content-encoding", "identity").lower() != "identity":
            # Unpacking needs its own bound: a body may grow a thousandfold.
            raise refuse_media("send the body uncompressed, without Content-Encoding")
        if not (body := await whole_body(self)):
            raise MalformedJsonError("the body is empty; send a JSON value")
        return body

    async def json(self) -> Any:
        """Return the value of the body, which FastAPI has read before, or its model."""
        body = await whole_body(self)
        model = self.model if len(body) > _INLINE_BYTES else None
        return await parse_body(body, partial(_read_value, model=model))


async def parse_body(body: bytes, how: Callable[[bytes], ResultT]) -> ResultT:
    """Return what `how` makes of a body; a large body is parsed off the event loop."""
    return await call_aside(how, body, when=len(body) > _INLINE_BYTES)


def _read_value(body: bytes, *, model: Any) -> Any:
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
        """Return FastAPI's own handler, which gets a `JsonRequest`."""
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            json_request = JsonRequest(request.scope, request.receive)
            json_request.model = self.body_field and self.body_field.field_info.annotation
            return await handle(json_request)

        return handle_json


async def read_body(request: Request) -> bytes:
    """Return the body of a request that carries JSON; for routes that read it themselves."""
    return await JsonRequest(request.scope, request.receive).body()


async def whole_body(request: Request) -> bytes:
    """Return the body as it came. `service.middleware.BodyLimits` has bounded it."""
    try:
        return await Request.body(request)
    except ClientDisconnect:
        # No one reads this answer; the log line shows it.
        raise ProblemError(
            400, "disconnected", "the client went away before its body arrived"
        ) from None


def refuse_media(cure: str) -> ProblemError:
    """Return a problem 415 with a cure."""
    return ProblemError(415, "unsupported_media_type", cure)


Records: TypeAlias = m.Execution | list[m.Execution | m.Rejection]
"""The one execution of a body, or what became of each record of its list, in order."""


def parse_records(body: bytes) -> Records:
    """Read the body of `POST /executions`."""
    value = parse_json(body)
    if isinstance(value, list):
        return [_read_record(index, record) for index, record in enumerate(value)]
    if not isinstance(value, dict):
        raise InvalidProblemError(
            "the body must be an execution (an object) or a list of executions"
        )
    read = _read_record(0, value)
    if isinstance(read, m.Rejection):
        raise InvalidProblemError(read.message)
    return read


def _read_record(index: int, value: object) -> m.Execution | m.Rejection:
    if not isinstance(value, dict):
        return m.Rejection(index=index, message="the record must be a JSON object")
    try:
        return m.Execution.model_validate(value)
    except ValidationError as error:
        return m.Rejection(index=index, message=safe_message(explain_error(error, m.Execution)))


async def _read_records(request: Request) -> Records:
    return await parse_body(await read_body(request), parse_records)


RecordsBody = Annotated[Records, Depends(_read_records)]
"""FastAPI would refuse a whole list for one bad record."""
GZIP = 31
"""zlib's way to say: gzip, largest window."""


def unpack_gzip(packed: bytes, most: int) -> bytes:
    """Return the unpacked bytes, at most `most` of them.

    A megabyte of zeros is a kilobyte in gzip, so the bound on what arrives does not bound what
    comes out. Unpacking stops at the first byte too many.
    """
    unpacker = zlib.decompressobj(GZIP)
    try:
        unpacked = unpacker.decompress(packed, most + 1)
    except zlib.error:
        raise _refuse_gzip("is none, or damaged") from None
    if len(unpacked) > most:
        raise TooLargeProblemError(
            f"the body is larger than {most:,} bytes when unpacked; nothing was stored, "
            "send it in several requests"
        )
    if not unpacker.eof:
        raise _refuse_gzip("ends too early; send it whole")
    if unpacker.unused_data:
        raise _refuse_gzip("goes on behind its end; pack it as one")
    return unpacked


def _refuse_gzip(problem: str) -> ProblemError:
    return ProblemError(400, "malformed_gzip", f"the gzip body {problem}; nothing was stored")
