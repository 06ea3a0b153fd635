"""Keys are made, renewed and revoked, and the audit is read, for a caller with its rights.

The routes of `service/api/keys.py` and the commands `aftercall keys` and `aftercall audit` call
these; the commands need no FastAPI and no index for them, which take a second to import.
"""

import secrets
from dataclasses import replace
from datetime import timedelta

from aftercall import models as m
from mongo.records import AuditEntry, StoredKey
from service.keys import ANYBODY, Access, KeyRefusedError, KeySpace, UnknownKeyError, hash_of


async def issue_key(space: KeySpace, spec: m.KeySpec) -> m.IssuedKey:
    """Make a key, and return it with its secret.

    Raises:
        UnknownKeyError: the key is for another workspace.
        KeyRefusedError: the caller has no key, so that anyone could be the caller.
    """
    keyring, access = space
    _check_caller(access)
    if not access.sees_workspace(spec.workspace):
        raise UnknownKeyError(f"there is no workspace {spec.workspace!r} for this key")
    secret = secrets.token_urlsafe(32)
    key = StoredKey(
        id=secrets.token_hex(8),
        name=spec.name,
        workspace=spec.workspace,
        scopes=tuple(sorted(set(spec.scopes))),
        secret_hash=hash_of(secret),
        created_at=keyring.clock(),
        expires_at=spec.expires_at,
        rate=spec.rate,
    )
    return await _put_key(space, "key.create", key, None, secret)


async def visible_keys(space: KeySpace) -> list[m.KnownKey]:
    """Return the keys that the caller may see, revoked and expired ones too, the oldest first."""
    keyring, access = space
    keys = await keyring.store.list_keys()
    if keyring.bootstrap is not None:
        keys.insert(0, keyring.bootstrap)
    return [_known_key(key) for key in keys if access.sees_workspace(key.workspace)]


async def renew_secret(space: KeySpace, key_id: str, rotation: m.KeyRotation) -> m.IssuedKey:
    """Give a key a new secret; the former one is valid for `overlap_s` more seconds.

    Raises:
        UnknownKeyError: there is no such key, or it was revoked before.
        KeyRefusedError: it is the bootstrap key, or the caller has none.
    """
    before = await _find_key(space, key_id)
    now, secret = space.keyring.clock(), secrets.token_urlsafe(32)
    key = replace(
        before,
        secret_hash=hash_of(secret),
        former_hash=before.secret_hash,
        former_until=now + timedelta(seconds=rotation.overlap_s),
    )
    return await _put_key(space, "key.rotate", key, before, secret)


async def end_key(space: KeySpace, key_id: str) -> None:
    """Revoke a key, at once here and within a second in other processes.

    Raises:
        UnknownKeyError: there is no such key, or it was revoked before.
        KeyRefusedError: it is the bootstrap key, or the caller has none.
    """
    before = await _find_key(space, key_id)
    key = replace(before, revoked_at=space.keyring.clock())
    await _put_key(space, "key.revoke", key, before, "")


async def visible_entries(
    space: KeySpace, limit: int, before: int | None = None
) -> list[m.AuditRecord]:
    """Return at most `limit` entries of the audit that the caller may see, the latest first.

    With `before`, only entries of a position below it.
    """
    keyring, access = space
    only = None if access.workspace == m.ALL_WORKSPACES else access.workspace
    entries = await keyring.store.list_entries(limit, before=before, workspace=only)
    return [m.AuditRecord.model_validate(entry, from_attributes=True) for entry in entries]


def _check_caller(access: Access) -> None:
    if access == ANYBODY:
        raise KeyRefusedError(
            "the first key is made on the service's own machine: run `aftercall keys create`"
        )


async def _find_key(space: KeySpace, key_id: str) -> StoredKey:
    keyring, access = space
    _check_caller(access)
    if (
        keyring.bootstrap is not None
        and key_id == keyring.bootstrap.id
        and access.sees_workspace("*")
    ):
        raise KeyRefusedError(
            "this key is of the service's settings: change AFTERCALL_KEYS_BOOTSTRAP and restart it"
        )
    for key in await keyring.store.list_keys():
        if key.id == key_id and access.sees_workspace(key.workspace) and key.revoked_at is None:
            return key
    raise UnknownKeyError("there is no such key; GET /keys and `aftercall keys list` show those")


async def _put_key(
    space: KeySpace, action: str, key: StoredKey, before: StoredKey | None, secret: str
) -> m.IssuedKey:
    keyring, access = space
    entry = AuditEntry(action, key.id, access.principal, key.workspace, keyring.clock())
    await keyring.store.append(entry, key, before)
    await keyring.refresh_keys()
    return m.IssuedKey(key=_known_key(key), secret=f"ac_{key.id}_{secret}" if secret else "")


def _known_key(key: StoredKey) -> m.KnownKey:
    fields = {name: getattr(key, name) for name in m.KnownKey.model_fields}
    return m.KnownKey.model_validate(fields | {"scopes": list(key.scopes)})
