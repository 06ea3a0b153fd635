"""toolproxy's repair of arguments, with its own model of an MCP tool's schema."""

import json
import sys

from toolproxy.guardrails import repair_arguments
from toolproxy.mcp import MCPToolInfo, _build_schema_model


def repaired(question):
    try:
        model = _build_schema_model(MCPToolInfo(question["tool"], "", question["schema"] or {}))
    except Exception:  # noqa: BLE001  # a schema that it cannot read
        return None
    return repair_arguments(model, question["call"])


for line in sys.stdin:
    print(json.dumps({"call": repaired(json.loads(line))}), flush=True)
