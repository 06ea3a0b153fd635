"""All records of a store as archives carry them, read in the order of their keys, and put back."""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pymongo import UpdateOne

from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Execution, Tool
from mongo import codec
from mongo.archive import KINDS, LOCAL_FACTS, ArchiveKind
from mongo.errors import StoreError
from mongo.mongodb import (
    answers,
    bulk,
    by_tool,
    corrections,
    executions,
    facts,
    positions,
    promotions,
    together,
    vectors,
)
from mongo.mongodb.collections import NEW, Collection, Collections, Record, key
from mongo.records import NewExecution, StoredTool
from mongo.upkeep import ArchiveRow

_KINDS = {kind.name: kind for kind in KINDS}

_MAX_BYTES = 32 << 20
"""About how much one page holds, however many records were asked for."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Where the records of a kind are, and in what they differ from the archive's."""

    collection: str
    """The attribute of `Collections`."""
    named_by: tuple[str, ...]
    """Fields of which the `_id` is made, behind the workspace."""
    numbered_by: str | None = None
    """The field of numbers that are reserved, if the key is one."""
    stored_as: dict[str, str] = field(default_factory=dict)
    """Names of fields here, where they differ."""
    only: Record = field(default_factory=dict)
    """The condition on records that count; others stand for what is gone."""
    absent: tuple[str, ...] = ()
    """Fields that a record does not have rather than null."""
    also: Record = field(default_factory=dict)
    """Fields that only records here have."""


_FENCED: Record = {"fence": 0}

_SOURCES = {
    "executions": _Source(
        "executions", ("execution_id",), "position", stored_as={"received_at": "received_us"}
    ),
    "schemas": _Source("schemas", ("schema_hash",)),
    "tools": _Source("tools", ("tool_id",), "revision"),
    "changed_tools": _Source(
        "changed_tools", ("server_name", "tool_name", "tool_id"), "position", also={"queued": NEW}
    ),
    "suggestions": _Source(
        "suggestions", ("suggestion_id",), stored_as={"issued_at": "issued_us"}
    ),
    "outcomes": _Source("outcomes", ("suggestion_id", "execution_id"), "position"),
    "marks": _Source(
        "marks", ("mark_id",), "position",
        stored_as={"marked_at": "marked_us"}, absent=("execution_id",),
    ),
    "corrections": _Source(
        "corrections", ("correction_id",), "position",
        stored_as={"corrected_at": "corrected_us"},
    ),
    "recommendations": _Source(
        "recommendations", ("recommendation_id",), stored_as={"changed_at": "changed_us"}
    ),
    "promotions": _Source(
        "promotions", ("namespace",), only={"data": promotions.HOLDS}, also={"position": 0}
    ),
    "promotion_history": _Source(
        "promotion_history", ("namespace", "position"), "position", stored_as={"at": "at_us"}
    ),
    "knowledge": _Source("knowledge", ("server_name", "tool_name"), also=_FENCED),
    "statistics": _Source("fitness", ("server_name", "tool_name"), also=_FENCED),
    "health": _Source(
        "health", ("server_name", "tool_name"), also=_FENCED, absent=("troubled_at",),
        stored_as={"used_at": "used_us", "troubled_at": "troubled_us"},
    ),
    "documents": _Source(
        "documents", ("document_id",), only={"gone": {"$exists": False}}, also=_FENCED
    ),
    "repairs": _Source("repairs", ("failed_id", "mended_id"), "position", also=_FENCED),
    "usage": _Source("usage", ("day", "server_name", "tool_name")),
    "patterns": _Source(
        "patterns", ("pattern_id",), stored_as={"last_seen": "last_seen_us"}, also={"position": 0}
    ),
}  # fmt: skip
"""By kind; facts are read and put back by `mongo.mongodb.facts`, and what was answered by
`mongo.mongodb.answers`."""


async def scan(
    db: Collections, kind_name: str, after: JsonObject | None, limit: int
) -> list[ArchiveRow]:
    """Records of a kind behind the key fields of `after`, in the order of their keys.

    Fewer than `limit` where they are large, none only when none is left.
    """
    kind = _kind(kind_name)
    if limit <= 0:
        return []
    if after is None:
        await together.complete(db)  # what a process that died had half done
    if kind.name == "facts":
        return await _scan_facts(db, after, limit)
    if kind.name == "answers":
        return await answers.scan(db, after, limit)
    source = _SOURCES[kind.name]
    collection: Collection = getattr(db, source.collection)
    wanted = {**source.only, **_behind(source, after)}
    if kind.name == "changed_tools":
        wanted["queued"] = db.pending
    number = source.numbered_by
    order = [("_id", 1)] if number is None else [("workspace", 1), (number, 1)]
    page: list[Record] = []
    size = 0
    async with db.analytics(collection).find(wanted).sort(order).limit(limit) as records:
        async for record in records:
            page.append(record)
            size += len(record.get("data") or "")
            if size >= _MAX_BYTES:
                break
    if kind.name == "corrections":
        await _add_tools(db, page)
    return [ArchiveRow(kind.name, _fields(db, kind, source, record)) for record in page]


async def restore(db: Collections, rows: Sequence[ArchiveRow]) -> int:
    """Put records of one kind where they were; how many were new."""
    if not rows:
        return 0
    kind = _kind(rows[0].kind)
    if any(row.kind != kind.name for row in rows):
        raise StoreError("records of several kinds cannot be restored at once: part them by kind")
    if kind.name == "facts":
        return await _restore_facts(db, rows)
    if kind.name == "answers":
        return await answers.restore(db, rows)
    source = _SOURCES[kind.name]
    # Before they are written: were they written and this was not, they would be given out again.
    await _raise_numbers(db, source, rows)
    records = [_record(kind, source, row.fields) for row in rows]
    if kind.name == "documents":
        await _queue_for_vectors(db, records)
    if kind.name == "corrections":
        await _restore_ties(db, records)
    collection: Collection = getattr(db, source.collection)
    new = await bulk.insert_new(collection, records)
    if source.only and new < len(records):
        new += await _revive(collection, source, records)
    return new


def _kind(name: str) -> ArchiveKind:
    kind = _KINDS.get(name)
    if kind is None:
        raise StoreError(
            f"archives hold no records of the kind {name!r}: it may be of a newer version of "
            "Aftercall; upgrade this one"
        )
    return kind


def _behind(source: _Source, after: JsonObject | None) -> Record:
    if after is None:
        return {}
    number = source.numbered_by
    if number is None:
        return {"_id": {"$gt": _record_id(source, after)}}
    workspace = after["workspace"]
    return {
        "$or": [
            {"workspace": workspace, number: {"$gt": after[number]}},
            {"workspace": {"$gt": workspace}},
        ]
    }


def _record_id(source: _Source, fields: JsonObject) -> str:
    parts = (_part(fields[name]) for name in source.named_by)
    return key(_part(fields["workspace"]), *parts)


def _part(value: JsonValue) -> str:
    return f"{value:020d}" if isinstance(value, int) else str(value)


def _fields(db: Collections, kind: ArchiveKind, source: _Source, record: Record) -> JsonObject:
    fields: JsonObject = {}
    for name, field_type in kind.fields.items():
        value = record.get(source.stored_as.get(name, name))
        if field_type == "flag":
            value = value in db.pending["$in"]
        elif value is not None and field_type == "bytes":
            value = base64.b64encode(value).decode("ascii")
        elif value is not None and field_type == "integer":
            value = int(value)  # PyMongo has a class of its own for large ones
        fields[name] = value
    return fields


def _record(kind: ArchiveKind, source: _Source, fields: JsonObject) -> Record:
    if kind.name == "executions":
        return _execution(fields)
    record: Record = {"_id": _record_id(source, fields), **source.also}
    for name, field_type in kind.fields.items():
        value = fields.get(name)
        if field_type == "flag":
            if value:
                record["queued"] = NEW
        elif value is not None or name not in source.absent:
            is_bytes = field_type == "bytes" and isinstance(value, str)
            record[source.stored_as.get(name, name)] = (
                base64.b64decode(str(value)) if is_bytes else value
            )
    if kind.name == "tools":
        tool = codec.parse(Tool, record["data"])
        record |= by_tool.fields(StoredTool(record["workspace"], tool).tool_key)
    return record


def _execution(fields: JsonObject) -> Record:
    data = str(fields["data"])
    schema_hash = fields.get("schema_hash")
    new = NewExecution(
        codec.parse(Execution, data),
        str(fields["content_hash"]),
        schema_hash=None if schema_hash is None else str(schema_hash),
        stands_for=_number(fields["stands_for"]),
    )
    received_us = _number(fields["received_at"])
    record = executions.record(
        str(fields["workspace"]), new, _number(fields["position"]), received_us
    )
    record["data"] = data
    if not fields.get("queued"):
        del record["queued"]
        record["learned_since"] = codec.from_microseconds(received_us)
    return record


def _number(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


async def _raise_numbers(db: Collections, source: _Source, rows: Iterable[ArchiveRow]) -> None:
    if source.numbered_by is None:
        return
    highest: dict[str, int] = {}
    for row in rows:
        workspace = str(row.fields["workspace"])
        number = _number(row.fields[source.numbered_by])
        highest[workspace] = max(highest.get(workspace, 0), number)
    for workspace, number in highest.items():
        await positions.raise_to(db, workspace, source.collection, number)


async def _add_tools(db: Collections, records: Iterable[Record]) -> None:
    """Put the tools that corrections are about into their records."""
    by_workspace: dict[str, dict[int, Record]] = {}
    for record in records:
        by_workspace.setdefault(record["workspace"], {})[record["position"]] = record
    for workspace, placed in by_workspace.items():
        for place, tool in (await corrections.tools_of(db, workspace, placed)).items():
            placed[place] |= by_tool.fields(tool)


async def _restore_ties(db: Collections, records: Iterable[Record]) -> None:
    """Take the tools out of the records of corrections, and keep them where they are learned."""
    ties: list[Record] = []
    for record in records:
        named = {name: record.pop(name) for name in ("server_name", "tool_name")}
        if named["tool_name"] is not None:
            workspace, position = record["workspace"], record["position"]
            ties.append(
                {
                    "_id": corrections.tie_id(workspace, position),
                    "workspace": workspace,
                    "position": position,
                    **named,
                    **_FENCED,
                }
            )
    await bulk.insert_new(db.ties, ties)


async def _queue_for_vectors(db: Collections, records: Iterable[Record]) -> None:
    by_workspace: dict[str, list[Record]] = {}
    for record in records:
        by_workspace.setdefault(record["workspace"], []).append(record)
    for workspace, its_records in by_workspace.items():
        first = await positions.reserve(db, workspace, "documents", len(its_records))
        for place, record in enumerate(its_records, start=first):
            record |= {"waits": vectors.FOR_VECTOR, "queued_at": place}


async def _revive(collection: Collection, source: _Source, records: Iterable[Record]) -> int:
    """Put those back of which only what stands for their end is there; how many that were."""
    gone: Record = {name: {"$exists": True} if name == "gone" else None for name in source.only}
    changes = [
        UpdateOne(
            {"_id": record["_id"], "workspace": record["workspace"], **gone},
            {
                "$set": {name: value for name, value in record.items() if name not in _KEPT},
                "$unset": {"gone": "", "gone_since": ""},
            },
        )
        for record in records
    ]
    return (await collection.bulk_write(changes, ordered=False)).modified_count


_KEPT = ("_id", "workspace", "position", "fence")
"""What a record that comes back keeps, so that what is older than its end cannot change it."""


async def _scan_facts(db: Collections, after: JsonObject | None, limit: int) -> list[ArchiveRow]:
    found = await facts.list_all(db)
    behind = "" if after is None else str(after["name"])
    rows = [
        ArchiveRow("facts", {"name": name, "value": value})
        for name, value in found.items()
        if name > behind and name not in LOCAL_FACTS
    ]
    return rows[:limit]


async def _restore_facts(db: Collections, rows: Iterable[ArchiveRow]) -> int:
    known = await facts.list_all(db)
    new = {str(row.fields["name"]): str(row.fields["value"]) for row in rows}
    missing = [
        {"_id": name, "value": value}
        for name, value in new.items()
        if name not in known and name not in LOCAL_FACTS
    ]
    return await bulk.insert_new(db.facts, missing)
