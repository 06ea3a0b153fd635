"""Keys and the audit in a file of their own, since `aftercall export` leaves them out.

The file has JSON lines: a header, the entries of the audit from the first on, the keys, and a last
line with the SHA-256 of all lines before it. It holds the hash of each key's secret, and not the
secret. Restoring needs a control store without keys and entries. It computes the hash of each entry
again, so that a changed file is refused.
"""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from mongo.protocol import ControlStore
from mongo.records import AuditEntry, AuditHead, StoredKey, decode_json, encode_json
from service.keys import CONSOLE

FORM = 1
"""Version of the file's form; each later version reads the one before."""
_PAGE = 500
_FEW = 10
"""Entries that are looked at: an archive that was restored before is one of them, and no other."""


class KeyArchiveError(ValueError):
    """The file cannot be restored; the message states why and what to do."""


async def pack_keys(store: ControlStore) -> bytes:
    """Return the file of a control store: every key and every entry of the audit."""
    entries: list[AuditEntry] = []
    before: int | None = None
    while page := await store.list_entries(_PAGE, before=before):
        entries += page
        before = page[-1].position
    keys = await store.list_keys()
    header = {"aftercall": "keys", "form": FORM, "entries": len(entries), "keys": len(keys)}
    lines = [json.dumps(header).encode()]
    lines += map(encode_json, reversed(entries))
    lines += map(encode_json, keys)
    body = b"".join(line + b"\n" for line in lines)
    end = {"sha256": _hash_body(body)}
    return body + json.dumps(end).encode() + b"\n"


def _hash_body(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def read_keys(content: bytes) -> tuple[list[AuditEntry], list[StoredKey]]:
    """Return the entries, the first one first, and the keys of a file.

    Raises:
        KeyArchiveError: it is no such file, was cut off or changed, or is of a newer form.
    """
    body, _, last = content.removesuffix(b"\n").rpartition(b"\n")
    body += b"\n"
    first, *lines = body.split(b"\n")[:-1]
    try:
        header: dict[str, Any] = json.loads(first)
        is_ours = header.get("aftercall") == "keys"
        stated = json.loads(last).get("sha256")
    except (ValueError, AttributeError):
        is_ours, stated, header = False, None, {}
    if not is_ours:
        raise KeyArchiveError("this is no file of `aftercall keys export`, or it was cut off")
    if header.get("form") != FORM:
        raise KeyArchiveError("the file is of a newer Aftercall; upgrade this one first")
    if stated != _hash_body(body):
        raise KeyArchiveError("the file was cut off or changed; fetch it again from the backup")
    count = header["entries"]
    entries = [decode_json(AuditEntry, line) for line in lines[:count]]
    return entries, [decode_json(StoredKey, line) for line in lines[count:]]


async def restore_keys(store: ControlStore, content: bytes) -> int:
    """Put the keys and the audit of a file into an empty control store; return the count of keys.

    Each key gets an entry `key.restore` behind those of the file. A restore that was killed leaves
    entries behind: delete the control store and restore again.

    Raises:
        KeyArchiveError: the file cannot be restored, or the store has keys or entries already.
    """
    entries, keys = read_keys(content)
    there = await store.list_entries(_FEW)
    if await store.list_keys() or any(entry.action != "store.import" for entry in there):
        raise KeyArchiveError(
            "there are keys or audit entries already; restore into a data folder without "
            "`control.sqlite3`, or an empty database"
        )
    head = AuditHead()
    for entry in entries:
        expected = replace(entry, position=0, previous="", hash="").chain_to(head)
        if expected != entry:
            raise KeyArchiveError(f"entry {head.position + 1} of the audit was changed")
        head = AuditHead(entry.position, entry.hash)
    for entry in entries:
        await store.append(replace(entry, position=0, previous="", hash=""))
    now = datetime.now(UTC)
    for key in keys:
        entry = AuditEntry("key.restore", key.id, CONSOLE.principal, key.workspace, now)
        await store.append(entry, key)
    return len(keys)
