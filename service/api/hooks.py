"""Hooks of coding agents: their own payloads in, their own answers out."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from aftercall import models as m
from aftercall.models.base import Name
from service.errors import InvalidProblemError, NotFoundProblemError
from service.hooks.clients import HookClient, client_names, read_client
from service.requests import NO_QUERY, JsonRoute, Read, Record, parse_body, parse_json, read_body

router = APIRouter(tags=["hooks"], route_class=JsonRoute)
ClientName = Annotated[str, Path(description="One of those of `GET /hooks`.")]


class HookQuery(m.WireModel):
    """How the calls of a client are handled."""

    mode: Literal["off", "advise", "repair", "shadow"] = "repair"
    """`advise` changes and refuses nothing, `shadow` only records."""
    except_: list[Name] = Field(default_factory=list, alias="except", max_length=200)
    """MCP servers that are passed over: a gateway stands in front of them."""


@router.get(
    "/hooks", summary="Clients, their events, and what each may change", dependencies=[NO_QUERY]
)
async def list_hooks(_space: Read) -> m.HookClients:
    """Return the clients with their events.

    `seen` states whether a client was run; the others are described by their published form.
    """
    return m.HookClients(clients=[_describe_client(read_client(name)) for name in client_names()])


@router.post("/hooks/{client}", summary="An event of a coding agent, in its own form")
async def answer_hook(
    space: Record, client: ClientName, request: Request, query: Annotated[HookQuery, Query()]
) -> dict[str, Any]:
    """Return the answer in the client's own form; it is empty for most events.

    A call is checked before it is made, gets advice after a failure, and is recorded when it ended.
    An input is changed only if the user approves the changed one, or if no approval is asked. A key
    without `suggest` records only, and gets an empty answer.
    """
    try:
        known = read_client(client)
    except KeyError:
        names = ", ".join(client_names())
        raise NotFoundProblemError(f"there are no hooks of that name; there are {names}") from None
    payload = await parse_body(await read_body(request), parse_json)
    if not isinstance(payload, dict):
        raise InvalidProblemError("a hook's payload is a JSON object")
    # Imported with the first hook: it takes a thirtieth of the service's start.
    from service.hooks.handling import ChangedCalls, HookHandler  # noqa: PLC0415

    state = request.app.state
    if not hasattr(state, "changed_calls"):
        state.changed_calls = ChangedCalls()
    handler = HookHandler(
        space.context,
        space.workspace,
        known,
        state.changed_calls,
        query.mode if "suggest" in space.context.caller.scopes else "shadow",
        query.except_,
    )
    return await handler.handle_payload(payload)


def _describe_client(client: HookClient) -> m.HookClientFacts:
    return m.HookClientFacts(
        name=client.key,
        title=client.title,
        version=client.version,
        seen=client.seen,
        tools=sorted(client.schemas),
        events=[
            m.HookEventFacts(
                name=each.name,
                kind=each.kind,
                changes=bool(each.change or each.again),
                refuses=bool(each.refuse),
                advises=bool(each.context),
            )
            for each in client.events
        ],
    )
