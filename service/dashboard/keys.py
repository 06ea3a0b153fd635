"""*Keys*: who may ask, and the audit of what was done; for keys with the scope `admin`."""

from typing import Final

from service import keys as keyring
from service.dashboard import html as h
from service.dashboard.look import Look, Shown

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
    h.Column("at", "When", "time"),
    h.Column("principal", "Who"),
    h.Column("action", "What"),
    h.Column("subject", "Subject"),
    h.Column("workspace", "Workspace"),
    h.Column("position", "Position", "number"),
)


async def keys(look: Look) -> Shown:
    """The page."""
    context, caller = look.context, look.context.caller
    may = look.may_change
    found = await keyring.list_keys(context.keys, caller) if may else None
    audit = await keyring.audit(context.keys, caller, limit=500) if may else None
    return look.shows(
        "Keys",
        "keys",
        keys=found.keys if found else [],
        entries=audit.entries if audit else [],
        columns=(_KEYS, _ENTRIES),
        is_required=context.keys.is_required,
    )
