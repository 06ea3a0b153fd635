"""Keys and the audit; the first key is made on the command line.

These operations need the keys and their caller alone, so that the command line has them without a
service.
"""

import secrets
from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from aftercall import models as m
from mongo.records import AuditEntry, StoredKey
from service.keys import ANYBODY, Access, KeyRefusedError, KeySpace, UnknownKeyError, hash_of
from service.requests import JsonRoute, KeyAdmin

router = APIRouter(tags=["keys"], route_class=JsonRoute)
KeyId = Annotated[
    str, Path(alias="keyId", min_length=1, max_length=64, description="From `GET /keys`.")
]


class AuditQuery(m.WireModel):
    """Which entries of the audit are wanted."""

    limit: int = Field(default=100, ge=1, le=1000)
    before: int | None = Field(
        default=None, ge=1, le=2**53, description="Only entries of a position below."
    )


@router.post("/keys", summary="Make a key", status_code=201)
async def create_key(space: KeyAdmin, spec: m.KeySpec) -> m.IssuedKey:
    """Make a key; its secret is in this answer only.

    Only an operator makes a key for another workspace.

    Raises:
        UnknownKeyError: the key is for another workspace.
        KeyRefusedError: the caller has no key, so that anyone could be the caller.
    """
    keyring, access = space
    _may_change(access)
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


@router.get("/keys", summary="All keys, without their secrets")
async def list_keys(space: KeyAdmin) -> m.KeyList:
    """Return the keys of the caller's workspace, revoked and expired ones too.

    An operator gets the keys of all workspaces.
    """
    keyring, access = space
    keys = await keyring.store.list_keys()
    if keyring.bootstrap is not None:
        keys.insert(0, keyring.bootstrap)
    return m.KeyList(keys=[_known_key(key) for key in keys if access.sees_workspace(key.workspace)])


@router.post("/keys/{keyId}/rotation", summary="Give a key a new secret")
async def rotate_key(space: KeyAdmin, key_id: KeyId, rotation: m.KeyRotation) -> m.IssuedKey:
    """Give a key a new secret; the former one is valid for `overlapS` more seconds.

    So no caller is cut off meanwhile.

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


@router.delete("/keys/{keyId}", summary="Revoke a key", status_code=204, response_class=Response)
async def revoke_key(space: KeyAdmin, key_id: KeyId) -> None:
    """Revoke a key, at once here and within a second in other processes.

    What it reported stays.

    Raises:
        UnknownKeyError: there is no such key, or it was revoked before.
        KeyRefusedError: it is the bootstrap key, or the caller has none.
    """
    before = await _find_key(space, key_id)
    key = replace(before, revoked_at=space.keyring.clock())
    await _put_key(space, "key.revoke", key, before, "")


@router.get("/audit", summary="Who did what, the latest first", name="audit")
async def read_audit(space: KeyAdmin, query: Annotated[AuditQuery, Query()]) -> m.AuditList:
    """Return changes of keys, tools, promotions and recommendations, exports and deletions."""
    keyring, access = space
    only = None if access.workspace == m.ALL_WORKSPACES else access.workspace
    entries = await keyring.store.list_entries(query.limit, before=query.before, workspace=only)
    return m.AuditList(
        entries=[m.AuditRecord.model_validate(each, from_attributes=True) for each in entries]
    )


def _may_change(access: Access) -> None:
    if access == ANYBODY:
        raise KeyRefusedError(
            "the first key is made on the service's own machine: run `aftercall keys create`"
        )


async def _find_key(space: KeySpace, key_id: str) -> StoredKey:
    keyring, access = space
    _may_change(access)
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
