"""*Keys*: the keys and the audit; for keys with the scope `admin`."""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from aftercall.models import AuditRecord, KnownKey
from service.api.keys import AuditQuery, list_keys, read_audit
from service.dashboard import html as h
from service.dashboard import words as w
from service.dashboard.look import Look, Shown
from service.keys import KeySpace

_KEYS: Final = (
    h.Column("name", "Name"),
    h.Column("id", "Id"),
    h.Column("workspace", "Workspace"),
    h.Column("scopes", "Scopes", of=lambda each: ", ".join(each.scopes)),
    h.Column("created_at", "Created", "time"),
    h.Column("used_at", "Last used", "time"),
    h.Column("expires_at", "Valid until", "time"),
    h.Column("revoked_at", "Revoked", "time"),
)
_ENTRIES: Final = (
    h.Column("at", "When", "time", of=lambda fold: fold[0].at),
    h.Column("principal", "Who", of=lambda fold: fold[0].principal),
    h.Column("action", "What", of=lambda fold: fold[0].action),
    h.Column("times", "Times", "number", of=len),
    h.Column("subject", "Subject", of=lambda fold: w.fold_names(each.subject for each in fold)),
    h.Column("workspace", "Workspace", of=lambda fold: fold[0].workspace),
    h.Column("position", "Position", "number", "Of the latest.", lambda fold: fold[0].position),
)


def fold_entries(entries: Iterable[AuditRecord]) -> list[list[AuditRecord]]:
    """Put together neighbours with the same principal, action and workspace."""

    def group_key(each: AuditRecord) -> tuple[str, str, str]:
        return each.principal, each.action, each.workspace

    return [list(fold) for _, fold in groupby(entries, key=group_key)]


async def show_keys(look: Look) -> Shown:
    """Return the page."""
    keyring = look.context.keys
    keys: list[KnownKey] = []
    entries: list[list[AuditRecord]] = []
    if look.may_change:
        space = KeySpace(keyring, look.context.caller)
        found = await list_keys(space)
        keys = found.keys
        audit = await read_audit(space, AuditQuery(limit=500))
        entries = fold_entries(audit.entries)
    return look.show_page(
        "Keys",
        "keys",
        keys=keys,
        entries=entries,
        columns=(_KEYS, _ENTRIES),
        is_required=keyring.is_required,
    )
