"""A server that does all that MCP's conformance suite asks of one, over stdio or HTTP.

    python -m tests.gateway.conformance.reference_server [--port PORT] [--legacy]

With `--legacy` it speaks, over stdio, the protocols of the handshake alone, up to 2025-11-25. The
names and texts are those that the suite looks for.
"""

import argparse
import asyncio
import hashlib
import hmac
import json
import sys
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

warnings.simplefilter("ignore", MCPDeprecationWarning)  # what is deprecated is asked for, too
Context = ServerRequestContext[Any, Any]
Json = dict[str, Any]
Answer = list[Any] | str | types.CallToolResult | types.InputRequiredResult
Tool = Callable[[Context, types.CallToolRequestParams], Awaitable[Answer]]
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
WATCHED = "test://watched-resource"
_STEP_S = 0.05
_KEY = b"only in tests"
DATA = json.loads(Path(__file__).with_name("reference_data.json").read_text(encoding="utf-8"))
"""Schemas of tools and of what is asked of users, as the suite looks for them."""


def _text(words: str) -> list[Any]:
    return [types.TextContent(type="text", text=words)]


def _resource(uri: str, kind: str, words: str) -> types.EmbeddedResource:
    held = types.TextResourceContents(uri=uri, mime_type=kind, text=words)
    return types.EmbeddedResource(type="resource", resource=held)


def _image() -> types.ImageContent:
    return types.ImageContent(type="image", data=PIXEL, mime_type="image/png")


async def say_text(_context: Context, _params: types.CallToolRequestParams) -> Answer:
    return "This is a simple text response for testing."


async def show_image(_context: Context, _params: types.CallToolRequestParams) -> Answer:
    return [_image()]


async def play_audio(_context: Context, _params: types.CallToolRequestParams) -> Answer:
    return [types.AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]


async def embed(_context: Context, _params: types.CallToolRequestParams) -> Answer:
    held = "This is an embedded resource content."
    return [_resource("test://embedded-resource", "text/plain", held)]


async def mix(_context: Context, _params: types.CallToolRequestParams) -> Answer:
    held = json.dumps({"test": "data", "value": 123})
    mixed = _resource("test://mixed-content-resource", "application/json", held)
    return [*_text("Multiple content types test:"), _image(), mixed]


async def log(context: Context, _params: types.CallToolRequestParams) -> Answer:
    for words in ("started", "processing data", "completed"):
        said = f"Tool {words}" if " " in words else f"Tool execution {words}"
        await context.session.send_log_message("info", said, related_request_id=context.request_id)
        await asyncio.sleep(_STEP_S)
    return "All was logged."


async def progress(context: Context, _params: types.CallToolRequestParams) -> Answer:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
        await asyncio.sleep(_STEP_S)
    return "All is done."


async def fail(_context: Context, _params: types.CallToolRequestParams) -> Answer:
    words = "This tool intentionally returns an error for testing"
    return types.CallToolResult(content=_text(words), is_error=True)


async def sample(context: Context, params: types.CallToolRequestParams) -> Answer:
    prompt = types.TextContent(type="text", text=str((params.arguments or {})["prompt"]))
    answer = await context.session.create_message(
        [types.SamplingMessage(role="user", content=prompt)],
        max_tokens=100,
        related_request_id=context.request_id,
    )
    return f"LLM response: {getattr(answer.content, 'text', '')}"


def _asking(schema: Json, words: str | None = None) -> Tool:
    """Return a tool that asks the user by a request of its own, as up to 2025-11-25."""

    async def ask(context: Context, params: types.CallToolRequestParams) -> Answer:
        message = words or str((params.arguments or {})["message"])
        answer = await context.session.elicit_form(message, schema, context.request_id)
        content = json.dumps(answer.content or {})
        return f"Elicitation completed: action={answer.action}, content={content}"

    return ask


async def poll(context: Context, _params: types.CallToolRequestParams) -> Answer:
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await asyncio.sleep(0.1)
    return "Reconnected."


async def need_sampling(context: Context, _params: types.CallToolRequestParams) -> Answer:
    needed = types.ClientCapabilities(sampling=types.SamplingCapability())
    if not context.session.check_client_capability(needed):
        data = {"requiredCapabilities": {"sampling": {}}}
        code = types.MISSING_REQUIRED_CLIENT_CAPABILITY
        raise MCPError(code, "Missing required client capability: sampling", data)
    return "The client can sample."


def _request(kind: str, words: str = "", field: str = "name", of: str = "string") -> Json:
    if kind == "roots/list":
        return {"method": kind}
    if kind == "sampling/createMessage":
        said = {"role": "user", "content": {"type": "text", "text": words}}
        return {"method": kind, "params": {"messages": [said], "maxTokens": 100}}
    schema = {"type": "object", "properties": {field: {"type": of}}, "required": [field]}
    params = {"mode": "form", "message": words, "requestedSchema": schema}
    return {"method": kind, "params": params}


ASK = "elicitation/create"
NAME = {"user_name": _request(ASK, "What is your name?")}
CAPITAL = {"capital_question": _request("sampling/createMessage", "What is the capital of France?")}
ROOTS = {"client_roots": _request("roots/list")}
CONFIRM = {"confirm": _request(ASK, "Please confirm", "ok", "boolean")}
GREETING = {"greeting": _request("sampling/createMessage", "Generate a greeting")}
STEPS = (
    {"step1": _request(ASK, "Step 1: What is your name?")},
    {"step2": _request(ASK, "Step 2: What is your favorite color?", "color")},
)


def _signed(step: str) -> str:
    return f"{step}.{hmac.digest(_KEY, step.encode(), hashlib.sha256).hex()}"


def _input(asked: Json, state: str | None = None) -> types.InputRequiredResult:
    return types.InputRequiredResult.model_validate(
        {"resultType": "input_required", "inputRequests": asked, "requestState": state}
    )


def _needing(*rounds: Json, has_state: bool = False, said: str = "") -> Tool:
    """Return a tool that asks for input round by round, each by its result, as from 2026-07-28."""

    async def ask(_context: Context, params: types.CallToolRequestParams) -> Answer:
        return _next_round(params, rounds, has_state) or f"{said} {_answers(params)}".strip()

    return ask


def _answers(params: Any) -> str:
    given = params.input_responses or {}
    return json.dumps(
        {key: each if isinstance(each, dict) else each.model_dump() for key, each in given.items()},
        default=str,
    )


def _next_round(
    params: Any, rounds: tuple[Json, ...], has_state: bool
) -> types.InputRequiredResult | None:
    at, state = 0, params.request_state
    if state is not None:
        step = state.partition(".")[0]
        if not hmac.compare_digest(state, _signed(step)):
            raise MCPError(types.INVALID_PARAMS, "The request state is not one of this server")
        at = int(step)
    if rounds[at].keys() <= (params.input_responses or {}).keys():
        at += 1
    if at == len(rounds):
        return None
    return _input(rounds[at], _signed(str(at)) if has_state else None)


async def ask_what_it_can(context: Context, params: types.CallToolRequestParams) -> Answer:
    able = context.session.client_capabilities or types.ClientCapabilities()
    asked: Json = {}
    asked |= NAME if able.elicitation is not None else {}
    asked |= CAPITAL if able.sampling is not None else {}
    asked |= ROOTS if able.roots is not None else {}
    return _input(asked) if asked and not params.input_responses else _answers(params)


TOOLS: dict[str, Tool] = {
    "test_simple_text": say_text,
    "test_image_content": show_image,
    "test_audio_content": play_audio,
    "test_embedded_resource": embed,
    "test_multiple_content_types": mix,
    "test_tool_with_logging": log,
    "test_logging_tool": log,
    "test_tool_with_progress": progress,
    "test_error_handling": fail,
    "test_sampling": sample,
    "test_elicitation": _asking(DATA["asked"]["user"]),
    "test_elicitation_sep1034_defaults": _asking(DATA["asked"]["defaults"], "Who are you?"),
    "test_elicitation_sep1330_enums": _asking(DATA["asked"]["enums"], "Which of these?"),
    "test_reconnection": poll,
    "json_schema_2020_12_tool": say_text,
    "test_custom_headers": say_text,
    "test_missing_capability": need_sampling,
    "test_streaming_elicitation": _needing(NAME),
    "test_input_required_result_elicitation": _needing(NAME, said="Hello"),
    "test_input_required_result_sampling": _needing(CAPITAL),
    "test_input_required_result_list_roots": _needing(ROOTS),
    "test_input_required_result_request_state": _needing(CONFIRM, has_state=True, said="state-ok"),
    "test_input_required_result_multiple_inputs": _needing(NAME | GREETING | ROOTS, has_state=True),
    "test_input_required_result_multi_round": _needing(*STEPS, has_state=True),
    "test_input_required_result_tampered_state": _needing(CONFIRM, has_state=True),
    "test_input_required_result_capabilities": ask_what_it_can,
}
RESOURCES = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("image/png", ""),
    WATCHED: ("text/plain", "It changes."),
}
TEMPLATE = "test://template/{id}/data"


def _described(name: str) -> types.Tool:
    schema = DATA["schemas"].get(name, {"type": "object", "properties": {}})
    return types.Tool(name=name, description=f"Tests {name}.", input_schema=schema)


async def list_tools(_context: Context, _params: Any) -> types.ListToolsResult:
    names = [*TOOLS, "test_trigger_tool_change", "test_trigger_prompt_change"]
    return types.ListToolsResult(tools=[_described(name) for name in names])


async def call_tool(
    context: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    if params.name.startswith("test_trigger_"):
        is_tool = params.name == "test_trigger_tool_change"
        await BUS.publish(ToolsListChanged() if is_tool else PromptsListChanged())
        return types.CallToolResult(content=_text("It is said."))
    if (tool := TOOLS.get(params.name)) is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    answer = await tool(context, params)
    if isinstance(answer, types.CallToolResult | types.InputRequiredResult):
        return answer
    return types.CallToolResult(content=_text(answer) if isinstance(answer, str) else answer)


async def list_resources(_context: Context, _params: Any) -> types.ListResourcesResult:
    listed = [
        types.Resource(uri=uri, name=uri.removeprefix("test://"), description=uri, mime_type=kind)
        for uri, (kind, _) in RESOURCES.items()
    ]
    return types.ListResourcesResult(resources=listed)


async def list_templates(_context: Context, _params: Any) -> types.ListResourceTemplatesResult:
    one = types.ResourceTemplate(
        uri_template=TEMPLATE, name="template", description="By id", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[one])


async def read_resource(
    _context: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    uri = str(params.uri)
    held: types.TextResourceContents | types.BlobResourceContents
    if uri == "test://static-binary":
        held = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
    elif uri in RESOURCES:
        kind, words = RESOURCES[uri]
        held = types.TextResourceContents(uri=uri, mime_type=kind, text=words)
    elif uri.startswith("test://template/"):
        key = uri.split("/")[3]
        data = {"id": key, "templateTest": True, "data": f"Data for ID: {key}"}
        held = types.TextResourceContents(
            uri=uri, mime_type="application/json", text=json.dumps(data)
        )
    else:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return types.ReadResourceResult(contents=[held])


async def subscribe(context: Context, params: Any) -> types.EmptyResult:
    await context.session.send_resource_updated(params.uri)
    return types.EmptyResult()


async def unsubscribe(_context: Context, _params: Any) -> types.EmptyResult:
    return types.EmptyResult()


async def list_prompts(_context: Context, _params: Any) -> types.ListPromptsResult:
    listed = [
        types.Prompt(
            name=name,
            description=f"Tests {name}.",
            arguments=[types.PromptArgument(name=each, required=True) for each in needed],
        )
        for name, needed in DATA["prompts"].items()
    ]
    return types.ListPromptsResult(prompts=listed)


async def get_prompt(
    _context: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given, blocks = params.arguments or {}, _text("This is a simple prompt for testing.")
    if params.name == "test_prompt_with_arguments":
        values = ", ".join(f"{key}='{given.get(key)}'" for key in ("arg1", "arg2"))
        blocks = _text(f"Prompt with arguments: {values}")
    elif params.name == "test_prompt_with_embedded_resource":
        held = "Embedded resource content for testing."
        first = _resource(given["resourceUri"], "text/plain", held)
        blocks = [first, *_text("Please process the embedded resource above.")]
    elif params.name == "test_prompt_with_image":
        blocks = [_image(), *_text("Please analyze the image above.")]
    elif params.name == "test_input_required_result_prompt":
        asked = {"user_context": _request(ASK, "What context should the prompt use?", "context")}
        if (needed := _next_round(params, (asked,), has_state=False)) is not None:
            return needed
    elif params.name != "test_simple_prompt":
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=each) for each in blocks]
    )


async def complete(_context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    words = [each for each in ("paris", "park", "party") if each.startswith(params.argument.value)]
    found = types.Completion(values=words, total=len(words), has_more=False)
    return types.CompleteResult(completion=found)


async def set_level(_context: Context, _params: Any) -> types.EmptyResult:
    return types.EmptyResult()


BUS = InMemorySubscriptionBus()


def build_server() -> Server[Any]:
    """Return the server."""
    hint = CacheHint(ttl_ms=1_000)
    methods: tuple[Any, ...] = (
        "tools/list", "prompts/list", "resources/list", "resources/templates/list",
        "resources/read", "server/discover",
    )  # fmt: skip
    server: Server[Any] = Server(
        "reference",
        version="1.0.0",
        cache_hints=dict.fromkeys(methods, hint),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=ListenHandler(BUS),
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=set_level,
    )
    server.get_tool_input_schema = lambda name: _described(name).input_schema
    return server


async def _serve_stdio(server: Server[Any], legacy: bool) -> None:
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        if legacy:
            await serve_loop(server, read, write, lifespan_state={}, init_options=options)
        else:
            await server.run(read, write, options)


def main() -> None:
    """Serve until the client leaves, or for ever over HTTP."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--legacy", action="store_true")
    args = parser.parse_args()
    server = build_server()
    if args.port is None:
        anyio.run(_serve_stdio, server, args.legacy)
        return
    app = server.streamable_http_app()
    uvicorn.run(app, port=args.port, log_level="warning", ws="none")


if __name__ == "__main__":
    sys.exit(main())
