"""What was answered, counted by day and kind.

All that one call adds goes into one record, since only that is all or none: the record of the
latest of its days. A day is therefore the sum over its own record and those of later days.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from urllib.parse import quote, unquote

from aftercall.json_values import JsonObject
from mongo.mongodb import bulk
from mongo.mongodb.collections import Collections, Record, key, within
from mongo.records import AnswerCount
from mongo.upkeep import ArchiveRow


async def add(db: Collections, workspace: str, counts: Sequence[AnswerCount]) -> None:
    """Add to what is counted already."""
    if not counts:
        return
    added: dict[str, Counter[str]] = {}
    for each in counts:
        added.setdefault(each.day.isoformat(), Counter())[_field(each.kind)] += each.count
    record = {"_id": key(workspace, max(added)), "workspace": workspace}
    steps = {
        f"counts.{day}.{field}": count for day, of in added.items() for field, count in of.items()
    }
    while True:
        updated = await db.answers.update_one(record, {"$inc": steps})
        if updated.matched_count or await bulk.insert_new(
            db.answers, [{**record, "counts": {day: dict(of) for day, of in added.items()}}]
        ):
            return
        # Another process has made the record in between: it is there now.


async def list_since(db: Collections, workspace: str, since: date) -> list[AnswerCount]:
    """From a day on, by day and then kind."""
    names = {**within(workspace), "$gte": key(workspace, since.isoformat())}
    records = await db.answers.find({"workspace": workspace, "_id": names}).to_list()
    return [each for each in _sums(records) if each.day >= since]


async def scan(db: Collections, after: JsonObject | None, limit: int) -> list[ArchiveRow]:
    """The counts of all workspaces as archives carry them, behind the key fields of `after`."""
    behind = ("", "", "")
    wanted: Record = {}
    if after is not None:
        behind = (str(after["workspace"]), str(after["day"]), str(after["kind"]))
        wanted = {"_id": {"$gte": key(*behind[:2])}}
    found: list[ArchiveRow] = []
    of_one: list[Record] = []
    async with db.analytics(db.answers).find(wanted).sort("_id", 1) as records:
        async for record in records:
            if of_one and record["workspace"] != of_one[0]["workspace"]:
                found += _rows(of_one, behind)
                of_one = []
                if len(found) >= limit:
                    break
            of_one.append(record)
    return [*found, *_rows(of_one, behind)][:limit]


async def restore(db: Collections, rows: Iterable[ArchiveRow]) -> int:
    """Put counts where there are none; how many that were."""
    given: dict[str, list[AnswerCount]] = {}
    for row in rows:
        count = row.fields["count"]
        day = date.fromisoformat(str(row.fields["day"]))
        given.setdefault(str(row.fields["workspace"]), []).append(
            AnswerCount(day, str(row.fields["kind"]), count if isinstance(count, int) else 0)
        )
    new = 0
    for workspace, counts in given.items():
        first = min(each.day for each in counts)
        known = {(each.day, each.kind) for each in await list_since(db, workspace, first)}
        missing = [each for each in counts if (each.day, each.kind) not in known]
        for day in dict.fromkeys(each.day for each in missing):
            await add(db, workspace, [each for each in missing if each.day == day])
        new += len(missing)
    return new


def _rows(records: Sequence[Record], behind: tuple[str, str, str]) -> list[ArchiveRow]:
    """Those of one workspace."""
    rows = []
    for each in _sums(records):
        workspace, day = records[0]["workspace"], each.day.isoformat()
        if (workspace, day, each.kind) > behind:
            fields: JsonObject = {
                "workspace": workspace, "day": day, "kind": each.kind, "count": each.count,
            }  # fmt: skip
            rows.append(ArchiveRow("answers", fields))
    return rows


def _sums(records: Iterable[Record]) -> list[AnswerCount]:
    """By day and then kind."""
    sums: Counter[tuple[str, str]] = Counter()
    for record in records:
        for day, counts in record["counts"].items():
            for field, count in counts.items():
                sums[day, unquote(field)] += int(count)
    return [
        AnswerCount(date.fromisoformat(day), kind, count)
        for (day, kind), count in sorted(sums.items())
    ]


def _field(kind: str) -> str:
    """A kind as the name of a field, which holds neither dots nor dollars."""
    return quote(kind, safe="").replace(".", "%2E")
