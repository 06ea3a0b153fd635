"""A strict MCP server over stdio: `lookup_ticket` takes an integer and nothing else."""

import json
import sys
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {"ticket_id": {"type": "integer"}},
    "required": ["ticket_id"],
    "additionalProperties": False,
}


def _answer(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        server = {"name": "desk", "version": "1"}
        version = parameters.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        hints = {"readOnlyHint": True}
        tool = {"name": "lookup_ticket", "inputSchema": SCHEMA, "annotations": hints}
        return {"tools": [tool | {"description": "Look a ticket up."}]}
    if method != "tools/call":
        return {}
    given = parameters.get("arguments") or {}
    is_right = given.keys() == {"ticket_id"} and type(given["ticket_id"]) is int
    text = f"ticket {given['ticket_id']} is open" if is_right else "ticket_id must be an integer"
    return {"content": [{"type": "text", "text": text}], "isError": not is_right}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            result = _answer(asked["method"], asked.get("params") or {})
            answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
            sys.stdout.write(f"{json.dumps(answer)}\n")
            sys.stdout.flush()
