"""What a tool call of LangGraph says of itself: arguments, schema, agent and session."""

from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from pydantic import BaseModel

from aftercall.json_values import JsonObject


def arguments_of(request: ToolCallRequest) -> JsonObject:
    """The arguments as the model gave them, without names that only the graph fills in."""
    injected = _injected(request.tool)
    return {n: v for n, v in request.tool_call["args"].items() if n not in injected}


def with_arguments(request: ToolCallRequest, arguments: JsonObject) -> ToolCallRequest:
    """The same call with other arguments; what was left out of them stays as it was."""
    injected = _injected(request.tool)
    kept = {n: v for n, v in request.tool_call["args"].items() if n in injected}
    return request.override(tool_call={**request.tool_call, "args": {**kept, **arguments}})


def schema_of(tool: BaseTool | None) -> object:
    """JSON Schema of the arguments that a model gives; None when there is none."""
    if tool is None:
        return None
    schema: Any = tool.tool_call_schema
    return schema if isinstance(schema, dict) else schema.model_json_schema()


def refusal_of(tool: BaseTool | None, arguments: JsonObject) -> ValueError | None:
    """What the tool's own schema has against the arguments; None when nothing, or not known.

    The tool checks them by this before it runs, so what is refused here has not run.
    """
    schema = tool.tool_call_schema if tool is not None else None
    if not isinstance(schema, type) or not issubclass(schema, BaseModel):
        return None
    try:
        schema.model_validate(arguments)
    except ValueError as error:
        return error
    except Exception:  # noqa: BLE001  # a validator of the tool's own may raise anything
        return None
    return None


def agent_of(request: ToolCallRequest) -> str | None:
    """The name that `create_agent` was given."""
    name = _config(request).get("metadata", {}).get("lc_agent_name")
    return name if isinstance(name, str) and name else None


def session_of(request: ToolCallRequest) -> str | None:
    """The thread, or else the run; None outside a graph."""
    config = _config(request)
    info = getattr(request.runtime, "execution_info", None)
    found = (
        config.get("configurable", {}).get("thread_id")
        or config.get("run_id")
        or getattr(info, "run_id", None)
    )
    return str(found) if found else None


def latest_request(request: ToolCallRequest) -> str | None:
    """The text of the latest message by a person: what the agent is trying to do."""
    state = request.state
    messages = (
        state.get("messages") if isinstance(state, dict) else getattr(state, "messages", state)
    )
    if not isinstance(messages, list):
        return None
    said = next((m for m in reversed(messages) if isinstance(m, HumanMessage)), None)
    return str(said.text) if said is not None else None


def _injected(tool: BaseTool | None) -> set[str]:
    """Parameters that are not the model's to give."""
    if tool is None or isinstance(tool.args_schema, dict):
        return set()
    try:
        whole, shown = tool.get_input_schema(), tool.tool_call_schema
    except Exception:  # noqa: BLE001  # a schema that cannot be made; the call will say so
        return set()
    if isinstance(shown, dict):
        return set()
    return set(_fields(whole)) - set(_fields(shown))


def _fields(schema: Any) -> Any:
    """Of a model of pydantic 2, or of 1 as LangChain still takes."""
    return getattr(schema, "model_fields", None) or getattr(schema, "__fields__", {})


def _config(request: ToolCallRequest) -> dict[str, Any]:
    config: Any = getattr(request.runtime, "config", None)  # there is no runtime outside a graph
    return config if isinstance(config, dict) else {}
