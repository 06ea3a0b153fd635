"""pydantic in its lax mode, with a model made from the schema; what was not sent stays unsent."""

import json
import sys
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, create_model

SCALARS = {"string": str, "integer": int, "number": float, "boolean": bool, "null": None}
BOUNDS = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt",
          "minLength": "min_length", "maxLength": "max_length", "minItems": "min_length",
          "maxItems": "max_length"}  # fmt: skip
Node = dict[str, Any]


def type_of(node: Node, root: Node) -> Any:
    """Return the annotation that stands for a schema."""
    while isinstance(node, dict) and "$ref" in node:
        target: Any = root
        for name in node["$ref"].removeprefix("#/").split("/"):
            target = target[name]
        node = target
    if not isinstance(node, dict):
        return Any
    if "const" in node or "enum" in node:
        return Literal[tuple(node.get("enum", [node.get("const")]))]
    if options := node.get("anyOf") or node.get("oneOf"):
        return Union[tuple(type_of(each, root) for each in options)]  # noqa: UP007  # not known
    kind = node.get("type")
    if isinstance(kind, list):
        return Union[tuple(type_of(node | {"type": each}, root) for each in kind)]  # noqa: UP007
    if kind == "array":
        bare = list[type_of(node.get("items", True), root)]
    elif kind == "object" and "properties" in node:
        return model_of(node, root)
    else:
        bare = {**SCALARS, "object": dict[str, Any]}.get(kind, Any)
    limits = {ours: node[theirs] for theirs, ours in BOUNDS.items() if theirs in node}
    return Annotated[bare, Field(**limits)] if limits else bare


def model_of(node: Node, root: Node) -> type[BaseModel]:
    """Return the model of an object."""
    required = node.get("required", [])
    fields = {
        f"field_{at}": (type_of(each, root), Field(... if name in required else None, alias=name))
        for at, (name, each) in enumerate(node.get("properties", {}).items())
    }
    extra = "forbid" if node.get("additionalProperties") is False else "allow"
    return create_model("Call", __config__=ConfigDict(extra=extra), **fields)


def repaired(question: Node) -> Any:
    """Return what the model makes of the call; None where it refuses the call."""
    schema = question["schema"]
    if schema is None:
        return None
    try:
        model = model_of(schema, schema).model_validate(question["call"])
    except Exception:  # noqa: BLE001  # it refuses the call, or the schema cannot be read
        return None
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


for line in sys.stdin:
    print(json.dumps({"call": repaired(json.loads(line))}), flush=True)
