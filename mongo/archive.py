"""What an archive of a store holds: kinds of records, the same whatever store they come from.

Fields are named and typed once for all adapters. `server_name` is '' for a tool without a server,
times are microseconds since 1970 in UTC, JSON is kept as the text that was stored.
"""

from dataclasses import dataclass
from typing import Literal

FieldType = Literal["text", "integer", "real", "bytes", "flag"]
"""How a field travels in JSON: `bytes` as base64, `flag` as a boolean, the rest as they are."""


@dataclass(frozen=True, slots=True)
class ArchiveKind:
    """A kind of record: its key, by which it is ordered, and its further fields."""

    name: str
    key: tuple[str, ...]
    fields: dict[str, FieldType]
    """All fields, those of the key too. Any but those may be null."""


def _kind(name: str, key: tuple[str, ...], /, **fields: FieldType) -> ArchiveKind:
    return ArchiveKind(name, key, dict(fields))


_BY_TOOL = ("workspace", "server_name", "tool_name")
_TOOL: dict[str, FieldType] = {"workspace": "text", "server_name": "text", "tool_name": "text"}

KINDS: tuple[ArchiveKind, ...] = (
    _kind(
        "executions", ("workspace", "position"),
        workspace="text", position="integer", execution_id="text", received_at="integer",
        content_hash="text", schema_hash="text", stands_for="integer", data="text", queued="flag",
    ),
    _kind(
        "schemas", ("workspace", "schema_hash"), workspace="text", schema_hash="text", data="text"
    ),
    _kind(
        "tools", ("workspace", "revision"),
        workspace="text", revision="integer", tool_id="text", data="text",
    ),
    _kind(
        "changed_tools", ("workspace", "position"),
        position="integer", tool_id="text", **_TOOL,
    ),
    _kind(
        "suggestions", ("workspace", "suggestion_id"),
        suggestion_id="text", signature="text", edit_key="text", issued_at="integer",
        estimate="real", data="text", **_TOOL,
    ),
    _kind(
        "outcomes", ("workspace", "position"),
        workspace="text", position="integer", suggestion_id="text", execution_id="text",
        outcome="text", queued="flag",
    ),
    _kind(
        "marks", ("workspace", "position"),
        position="integer", mark_id="text", tool_id="text", version="text", scenario="text",
        error_message="text", severity="text", marked_at="integer", negative_tags="text",
        execution_id="text", queued="flag", **_TOOL,
    ),
    _kind(
        "corrections", ("workspace", "position"),
        workspace="text", position="integer", correction_id="text", execution_id="text",
        kind="text", text="text", corrected_at="integer", boundary_axes="text", agent="text",
        server_name="text", tool_name="text", queued="flag",
    ),
    _kind(
        "recommendations", ("workspace", "recommendation_id"),
        workspace="text", recommendation_id="text", state="text", changed_at="integer",
        data="bytes", reason="text", changed_by="text",
    ),
    _kind(
        "promotions", ("workspace", "namespace"),
        workspace="text", namespace="text", inherited_quality="real", data="text",
    ),
    _kind(
        "promotion_history", ("workspace", "position"),
        workspace="text", position="integer", namespace="text", at="integer", action="text",
        inherited_quality="real", data="text", queued="flag",
    ),
    _kind("knowledge", _BY_TOOL, data="bytes", **_TOOL),
    _kind("statistics", _BY_TOOL, data="bytes", **_TOOL),
    _kind("health", _BY_TOOL, data="bytes", used_at="integer", troubled_at="integer", **_TOOL),
    _kind(
        "documents", ("workspace", "document_id"),
        workspace="text", document_id="text", data="bytes",
    ),
    _kind(
        "repairs", ("workspace", "position"),
        position="integer", failed_id="text", mended_id="text", signature="text", data="bytes",
        **_TOOL,
    ),
    _kind(
        "usage", ("workspace", "day", "server_name", "tool_name"),
        day="text", data="bytes", **_TOOL,
    ),
    _kind(
        "patterns", ("workspace", "pattern_id"),
        workspace="text", pattern_id="text", data="bytes", last_seen="integer", count="integer",
    ),
    _kind(
        "answers", ("workspace", "day", "kind"),
        workspace="text", day="text", kind="text", count="integer",
    ),
    _kind("facts", ("name",), name="text", value="text"),
)  # fmt: skip
"""In the order in which they are restored. Vectors are no part of it: every restored document is
queued for its vector. Facts that only hold for one store (`LOCAL_FACTS`) are left out."""

LOCAL_FACTS = ("index", "index_model", "seed_corpus", "import")
"""Names of facts that hold for one store alone: where its vectors are, which model made them and
which shipped corpus is among them, and how far an import into it has come."""
