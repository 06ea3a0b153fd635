"""The middleware by itself, in a FastMCP server of one's own."""

from dataclasses import dataclass
from typing import Any

import pytest
from fastmcp import Client, Context, FastMCP
from fastmcp.exceptions import ToolError
from mcp import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
)

from aftercall.adapters import before_call
from aftercall.adapters.fastmcp import ReflectionMiddleware, take_texts
from aftercall.json_values import JsonObject
from aftercall.models import Account, Change, CheckResponse, RetryAdvice, SuggestResponse
from aftercall.reflection import ReflectionPolicy
from tests.gateway.results import texts
from tests.sdk.scripted_advice import (
    AsyncScripted,
    Records,
    answer,
    change,
    suggestion,
    write,
    write_async,
)

LIMIT = suggestion(change("/topK", 10, before=50))
_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


class Library:
    """A server with tools that fail in each of the ways there are."""

    def __init__(self, *script: SuggestResponse, masked: bool = False, check: Any = None) -> None:
        self.records = Records()
        self.service = AsyncScripted(*script)
        self.mcp: FastMCP[Any] = FastMCP("library", mask_error_details=masked)
        self.mcp.add_middleware(
            ReflectionMiddleware(
                client=self.service,
                recorder=self.records,
                server_name="library",
                policy=ReflectionPolicy(base_backoff_s=0),
                check=check,
            )
        )

        @self.mcp.tool(annotations={"readOnlyHint": True})
        def search(query: str, topK: int = 5) -> list[str]:  # noqa: N803  # as such tools have it
            if topK > 10:
                raise ValueError("topK must be <= 10")
            return [query] * topK

        @self.mcp.tool
        def refuse() -> str:
            raise ToolError("not today")

        @self.mcp.tool
        def needs_capability() -> str:
            raise MCPError(code=MISSING_REQUIRED_CLIENT_CAPABILITY, message="needs sampling")

        @self.mcp.tool
        async def ask(ctx: Context) -> Any:
            if ctx.input_responses is not None:
                return "thanks"
            form = ElicitRequestFormParams(message="which?", requested_schema=_SCHEMA)
            return InputRequiredResult(input_requests={"q": ElicitRequest(params=form)})

    async def call(
        self, name: str, arguments: JsonObject | None = None, **meta: str
    ) -> tuple[bool, list[str], dict[str, Any]]:
        async with Client(self.mcp) as client:
            result = await client.call_tool_mcp(name, arguments or {}, meta=dict(meta) or None)
        return result.is_error, texts(result), result.meta or {}


async def test_a_repair_keeps_the_results_own_meta_and_structure() -> None:
    """The corrected call's result is whole; only `aftercall` is added to its meta.

    The question has the live schema and annotations, so that nobody need register the tool.
    """
    library = Library(answer(LIMIT))
    async with Client(library.mcp) as client:
        result = await client.call_tool("search", {"query": "q", "topK": 50})

    assert result.data == ["q"] * 10
    assert result.meta["fastmcp"] == {"wrap_result": True}
    assert result.meta["aftercall"]["changes"][0]["from"] == 50
    assert [e.outcome for e in library.records.executions] == ["failure", "success"]
    schema: Any = library.service.asked[0].input_schema
    assert set(schema["properties"]) == {"query", "topK"}
    (claims,) = library.service.annotations
    assert claims.read_only_hint is True


async def test_what_a_server_masks_stays_masked() -> None:
    """Details that the caller may not see are not sent around him either."""
    library = Library(answer(suggestion(change("/topK", 10), confidence=0.3)), masked=True)
    is_error, shown, _ = await library.call("search", {"query": "q", "topK": 50})

    assert is_error
    assert library.records.executions[0].error.message == "Error calling tool 'search'"
    assert shown[0] == "Error calling tool 'search'"


async def test_with_suggestions_the_tools_own_error_comes_first() -> None:
    """An exception becomes an error result: its own text, then one block with the suggestions."""
    library = Library(answer(suggestion(confidence=0.5, action="escalate")))
    is_error, shown, meta = await library.call("refuse")

    assert is_error
    assert shown[0] == "not today"
    assert shown[1].startswith("Suggestions from Aftercall")
    assert len(shown) == 2
    assert meta["aftercall"]["suggestions"][0]["action"] == "escalate"


async def test_protocol_errors_keep_their_form() -> None:
    """A missing capability is -32021 on the wire, suggestions or not."""
    library = Library(answer(suggestion(confidence=0.5, action="escalate")))
    with pytest.raises(MCPError) as caught:
        await library.call("needs_capability")

    assert caught.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY


async def test_a_request_for_input_passes_through_untouched() -> None:
    """It is no outcome: nothing is recorded until the tool has its answer."""
    library = Library()

    async def elicit(*_: object) -> dict[str, Any]:
        return {"name": "the red one"}

    async with Client(library.mcp, elicitation_handler=elicit) as client:
        result = await client.call_tool("ask")

    assert texts(result)[0] == "thanks"
    assert [e.outcome for e in library.records.executions] == ["success"]


async def test_who_calls_is_read_from_the_request() -> None:
    """`_meta` names agent, session and purpose; they are in the question and the records."""
    library = Library()
    meta = {"aftercall/agent": "oracle", "aftercall/session": "s-9", "aftercall/context": "papers"}
    await library.call("refuse", None, **meta)

    for seen in (library.records.executions[0], library.service.asked[0]):
        assert (seen.agent, seen.session_id, seen.context) == ("oracle", "s-9", "papers")
        assert (seen.server_name, seen.tool_name) == ("library", "refuse")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_without_names_the_client_and_its_connection_stand_in(mode: str) -> None:
    """The MCP client's name is the agent; calls of one connection are one session."""
    library = Library()
    for _ in range(2):
        async with Client(library.mcp, mode=mode) as client:
            await client.call_tool_mcp("search", {"query": "a"})
            await client.call_tool_mcp("search", {"query": "b"})

    one, two, three, four = library.records.executions
    assert one.agent == "mcp"
    assert one.session_id == two.session_id != None  # noqa: E711  # both: equal, and there is one
    assert three.session_id == four.session_id
    # Before 2026-07-28 a connection has a session of its own; since then, only the process has.
    assert (one.session_id == three.session_id) == (mode == "auto")


async def test_a_tool_of_a_fastmcp_server_has_run_unless_the_server_refused() -> None:
    """FastMCP wraps what a function raises; the type that is recorded is the function's own."""
    service, records = AsyncScripted(), Records()
    server: FastMCP[Any] = FastMCP("notes")
    server.add_middleware(ReflectionMiddleware(client=service, recorder=records))
    for each in (write, write_async):
        server.tool(each)
    async with Client(server) as client:
        for name, limit in (("write", 50), ("write_async", 50), ("write", "many")):
            await client.call_tool(name, {"limit": limit}, raise_on_error=False)
    assert service.said_of_the_run == [True, True, None]
    assert [e.error.type for e in records.executions if e.error] == ["ValidationError"] * 3


def accounted(*values: JsonObject, kept: int = 1, **more: Any) -> Account:
    return Account.model_validate({"kept": kept, "values": [*values], **more})


def rename() -> list[Change]:
    reason = "the schema has `topK`"
    return [
        Change(op="remove", path="/top_k", from_=3, reason=reason),
        Change(op="add", path="/topK", value=3, reason=reason),
    ]


MOVED: JsonObject = {
    "path": "/topK", "origin": "moved", "from": "/top_k", "why": "another spelling",
}  # fmt: skip


async def test_a_repair_says_what_became_of_each_value() -> None:
    """In the content, in words, and in the meta as it came."""
    offer = suggestion(*rename()).model_copy(update={"account": accounted(MOVED)})
    is_error, shown, meta = await Library(answer(offer)).call("search", {"query": "q", "top_k": 3})

    assert not is_error
    assert "Values: `top_k` -> `topK` (another spelling); 1 value kept." in shown[-1]
    assert "because" in shown[-1]
    assert meta["aftercall"]["account"]["values"] == [MOVED]


async def test_what_is_not_done_is_shown_with_its_reason() -> None:
    """A question names its places; nothing is sent, however sure the suggestion is."""
    question = accounted({**MOVED, "rivals": ["/limit"]})
    offer = suggestion(*rename(), confidence=0.99).model_copy(update={"account": question})
    library = Library(answer(offer))
    is_error, shown, _ = await library.call("search", {"query": "q", "top_k": 3})

    assert is_error
    assert len(library.records.executions) == 1
    why = "not repaired: more than one place would take the value: `topK` or `limit`?"
    assert f'Why nothing more was done: "{why}"' in shown[-1]
    assert "Values: `topK` or `limit`?; 1 value kept." in shown[-1]


async def test_the_services_own_reason_is_said_and_no_other() -> None:
    """That a change means something else is no side effect of a retry."""
    offer = suggestion(*rename()).model_copy(update={"change_class": "semantic", "safe": False})
    reason = "it means something else, and the tool does not only read"
    advice = answer(offer).model_copy(update={"retry": RetryAdvice(safe=False, reason=reason)})
    _, shown, _ = await Library(advice).call("search", {"query": "q", "top_k": 3})

    assert f'"not repaired: {reason}"' in shown[-1]
    assert "side effect" not in shown[-1]


@dataclass
class Checker:
    """Answers `POST /check` with a repair."""

    changes: list[Change]
    account: Account | None = None

    async def check(self, *_question: Any, **_more: Any) -> CheckResponse:
        return CheckResponse(verdict="repair", changes=self.changes, account=self.account)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr(before_call, "TIMEOUT_S", 30)


@pytest.mark.usefixtures("patient")
async def test_a_repair_before_the_call_says_what_became_of_each_value() -> None:
    """As one after it does."""
    library = Library(check=Checker(rename(), accounted(MOVED)))
    is_error, shown, meta = await library.call("search", {"query": "q", "top_k": 3})
    assert not is_error
    assert "before it was made" in shown[-1]
    assert "Values: `top_k` -> `topK` (another spelling); 1 value kept." in shown[-1]
    assert meta["aftercall"]["account"]["values"] == [MOVED]


@pytest.mark.usefixtures("patient")
async def test_an_error_of_a_call_that_was_changed_is_not_shown_as_the_callers() -> None:
    """The caller must know what the tool refused: not what it sent."""
    too_many = Change(op="replace", path="/topK", from_=3, value=50, reason="r")
    library = Library(check=Checker([*rename(), too_many]))
    is_error, shown, meta = await library.call("search", {"query": "q", "top_k": 3})
    assert is_error
    assert "topK must be <= 10" in shown[0]
    assert "Aftercall changed this call before it was made" in shown[-1]
    assert "It failed as changed." in shown[-1]
    assert len(meta["aftercall"]["changes"]) == 3


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    ("changes", "account", "why"),
    [
        ([Change(op="replace", path="/topK", from_="5", value=5, reason="r")], None,
         "the call holds another value at"),
        ([Change(op="replace", path="/topK", from_="3", value=3, reason="r")],
         accounted({**MOVED, "rivals": ["/limit"]}), "`topK` or `limit`?"),
    ],
    ids=["it is about another call", "it is a question"],
)  # fmt: skip
async def test_a_repair_that_must_not_be_made_is_not_made_before_the_call(
    changes: list[Change], account: Account | None, why: str
) -> None:
    """The call goes as it is, and the one who reads its result learns why."""
    library = Library(check=Checker(changes, account))
    is_error, shown, meta = await library.call("search", {"query": "q", "topK": "3"})
    assert not is_error
    assert "a repair of this call was not made" in shown[-1]
    assert why in shown[-1]
    assert meta["aftercall"]["warnings"]
    assert library.records.executions[0].parameters == {"query": "q", "topK": "3"}


class _TextCall(CallToolRequestParams):
    arguments: Any = None


class _TextRequest(CallToolRequest):
    params: _TextCall


async def called_with(library: Library, text: str) -> Any:
    """A call whose arguments are a text, over the wire; a client's own types refuse it."""
    take_texts(library.mcp)
    async with Client(library.mcp) as client:
        params = _TextCall(name="search", arguments=text)
        return await client.session.send_request(
            _TextRequest(method="tools/call", params=params), CallToolResult
        )


async def test_arguments_that_are_a_text_are_read() -> None:
    """The tool is called with the object that they say, and the result says so."""
    library = Library()
    result = await called_with(library, "{'query': 'x', 'topK': 2,}")
    assert not result.is_error
    assert "were read as one" in result.content[-1].text
    (recorded,) = library.records.executions
    assert recorded.parameters == {"query": "x", "topK": 2}


async def test_a_read_call_that_fails_is_repaired() -> None:
    """As any other."""
    library = Library(answer(LIMIT))
    result = await called_with(library, '```json\n{"query": "x", "topK": 50}\n```')
    assert (result.is_error, len(library.records.executions)) == (False, 2)


async def test_arguments_that_are_cut_off_are_refused_and_recorded() -> None:
    """No tool is called; the model reads what is wrong."""
    library = Library(answer(LIMIT))
    result = await called_with(library, '{"query": "x", "topK": 5')
    assert result.is_error
    assert "Invalid JSON in the arguments" in result.content[0].text
    (recorded,) = library.records.executions
    assert (recorded.outcome, recorded.arguments_text) == ("failure", '{"query": "x", "topK": 5')
