"""What clients ask servers for beside tools: completions, log messages, updates of resources."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from fastmcp.client.messages import MessageHandler
from mcp.client.subscriptions import ResourceUpdated, listen

from tests.gateway.conftest import OpenGateway
from tests.gateway.waiting import until

pytestmark = pytest.mark.real

REFERENCE: dict[str, Any] = {
    "command": sys.executable,
    "args": ["-m", "tests.gateway.conformance.reference_server"],
    "cwd": str(Path(__file__).parents[2]),
}
SERVERS = {"one": REFERENCE, "two": REFERENCE}
WATCHED = "test://one/watched-resource"


class Updates(MessageHandler):
    """Keeps the addresses of resources that changed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    async def on_resource_updated(self, message: mcp_types.ResourceUpdatedNotification) -> None:
        """Keep it."""
        self.seen.append(str(message.params.uri))


async def test_a_client_of_the_handshake_gets_what_its_servers_offer_beside_tools(
    open_gateway: OpenGateway,
) -> None:
    """Completions, log messages while a call runs, updates, and questions, of several servers."""
    updates, logged = Updates(), []

    async def keep(message: mcp_types.LoggingMessageNotificationParams) -> None:
        logged.append(message.data)

    async def answer(*_: Any) -> mcp_types.ElicitResult:
        return mcp_types.ElicitResult(action="accept", content={"username": "ada"})

    options: dict[str, Any] = {"mode": "legacy", "message_handler": updates, "log_handler": keep}
    async with open_gateway(SERVERS, elicitation_handler=answer, **options) as client:
        prompt = mcp_types.PromptReference(type="ref/prompt", name="two_test_prompt_with_arguments")
        completed = await client.complete(prompt, {"name": "arg1", "value": "par"})
        template = mcp_types.ResourceTemplateReference(
            type="ref/resource", uri="test://one/template/{id}/data"
        )
        of_template = await client.complete(template, {"name": "id", "value": "pari"})
        unknown = prompt.model_copy(update={"name": "two_nothing"})
        of_nothing = await client.complete(unknown, {"name": "arg1", "value": "par"})
        await client.call_tool_mcp("one_test_tool_with_logging", {})
        asked = await client.call_tool_mcp("two_test_elicitation", {"message": "Who?"})
        params = mcp_types.SubscribeRequestParams(uri=WATCHED)
        wish = mcp_types.SubscribeRequest(params=params)
        await client.session.send_request(wish, mcp_types.EmptyResult)
        await until(lambda: updates.seen == [WATCHED])

    assert completed.values == ["paris", "park", "party"]
    assert of_template.values == ["paris"]
    assert of_nothing.values == []
    assert len(logged) == 3
    assert "ada" in asked.content[0].text


async def test_a_client_of_the_newest_protocol_listens_for_a_servers_updates(
    open_gateway: OpenGateway,
) -> None:
    """Its subscription is one at the server, which says when the resource changes."""
    servers = {"one": {**REFERENCE, "args": [*REFERENCE["args"], "--legacy"]}, "two": REFERENCE}
    async with (
        open_gateway(servers) as client,
        listen(client.session, resource_subscriptions=[WATCHED]) as changes,
    ):
        async with asyncio.timeout(60):
            change = await anext(aiter(changes))
    assert change == ResourceUpdated(uri=WATCHED)
