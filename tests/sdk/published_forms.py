"""The published forms of what `aftercall bundle` makes, as far as it uses them.

Each was written by hand after its publication, which the tests cannot reach; a copy checks less
than the publisher's own program would.

- `SERVER_JSON`: modelcontextprotocol/registry, `docs/reference/server-json` (2026-11-29), which
  names the schema of 2025-12-11.
- `PLUGIN`, `HOOKS`: SchemaStore's `claude-code-plugin-manifest.json` (2026-11-29).
- `MARKETPLACE`, `MCP_SERVERS`: Claude Code's documents on marketplaces and plug-ins; from memory,
  not looked up on that day.
- `SKILL`: agentskills.io's specification (2026-11-29).
"""

from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string", "minLength": 1}
URI: Schema = {"type": "string", "format": "uri"}


def objects(required: list[str], *, closed: bool = True, **properties: Any) -> Schema:
    """An object; what the form has and is not used here is left out, and so refused if closed."""
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": not closed,
    }


_INPUT: Schema = {
    "description": TEXT,
    "isRequired": {"type": "boolean"},
    "isSecret": {"type": "boolean"},
    "default": {"type": "string"},
    "value": {"type": "string"},
    "format": {"enum": ["string", "number", "boolean", "filepath"]},
}
_NAMED = objects(["name"], name=TEXT, **_INPUT)
_ARGUMENT: Schema = {
    "oneOf": [
        objects(["type", "value"], type={"const": "positional"}, **_INPUT),
        objects(["type", "name"], type={"const": "named"}, name=TEXT, **_INPUT),
    ]
}
_ADDRESS: Schema = {"type": "string", "pattern": r"^(https?://[^\s]+|\{[a-zA-Z_]\w*\}[^\s]*)$"}
_PACKAGE = objects(
    ["registryType", "identifier", "transport"],
    registryType=TEXT,
    identifier=TEXT,
    version={"type": "string", "minLength": 1, "maxLength": 255, "not": {"const": "latest"}},
    runtimeHint=TEXT,
    runtimeArguments={"type": "array", "items": _ARGUMENT},
    packageArguments={"type": "array", "items": _ARGUMENT},
    environmentVariables={"type": "array", "items": _NAMED},
    transport=objects(["type"], type={"const": "stdio"}),
)
_REMOTE = objects(
    ["type", "url"],
    type={"enum": ["streamable-http", "sse"]},
    url=_ADDRESS,
    headers={"type": "array", "items": _NAMED},
)
SERVER_JSON = objects(
    ["name", "description", "version"],
    **{"$schema": URI},
    name={"type": "string", "minLength": 3, "maxLength": 200,
          "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
    title={"type": "string", "minLength": 1, "maxLength": 100},
    description={"type": "string", "minLength": 1, "maxLength": 100},
    version={"type": "string", "maxLength": 255},
    repository=objects(["url", "source"], url=URI, source=TEXT),
    packages={"type": "array", "items": _PACKAGE},
    remotes={"type": "array", "items": _REMOTE},
)  # fmt: skip

PLUGIN = objects(
    ["name"],
    name={"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
    version={"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
    description=TEXT,
    author=objects(["name"], name=TEXT, email=TEXT, url=TEXT),
    keywords={"type": "array", "items": TEXT},
)
_COMMAND = objects(
    ["type", "command"],
    type={"const": "command"},
    command=TEXT,
    timeout={"type": "number", "exclusiveMinimum": 0},
)
_GROUPS: Schema = {
    "type": "array",
    "items": objects(["hooks"], matcher={"type": "string"},
                     hooks={"type": "array", "minItems": 1, "items": _COMMAND}),
}  # fmt: skip
HOOKS = objects(
    ["hooks"],
    description=TEXT,
    hooks=objects([], PreToolUse=_GROUPS, PostToolUse=_GROUPS, PostToolUseFailure=_GROUPS),
)
MARKETPLACE = objects(
    ["name", "owner", "plugins"],
    name={"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
    owner=objects(["name"], name=TEXT),
    plugins={
        "type": "array",
        "items": objects(
            ["name", "source"],
            name=TEXT,
            description=TEXT,
            source={"type": "string", "pattern": r"^\./"},
        ),
    },
)
MCP_SERVERS = objects(
    ["mcpServers"],
    mcpServers={
        "type": "object",
        "additionalProperties": objects(
            ["command"], command=TEXT, args={"type": "array", "items": {"type": "string"}}
        ),
    },
)
SKILL = objects(
    ["name", "description"],
    name={"type": "string", "maxLength": 64, "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$"},
    description={"type": "string", "minLength": 1, "maxLength": 1024, "pattern": "^[^<>]*$"},
    license=TEXT,
    compatibility={"type": "string", "minLength": 1, "maxLength": 500},
    metadata={"type": "object", "additionalProperties": {"type": "string"}},
)
