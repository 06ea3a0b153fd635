"""Keys and the audit, as routes over `service.key_changes`, which the command line calls too."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from aftercall import models as m
from service import key_changes
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
    return await key_changes.issue_key(space, spec)


@router.get("/keys", summary="All keys, without their secrets")
async def list_keys(space: KeyAdmin) -> m.KeyList:
    """Return the keys of the caller's workspace, revoked and expired ones too.

    An operator gets the keys of all workspaces.
    """
    return m.KeyList(keys=await key_changes.visible_keys(space))


@router.post("/keys/{keyId}/rotation", summary="Give a key a new secret")
async def rotate_key(space: KeyAdmin, key_id: KeyId, rotation: m.KeyRotation) -> m.IssuedKey:
    """Give a key a new secret; the former one is valid for `overlapS` more seconds.

    So no caller is cut off meanwhile.

    Raises:
        UnknownKeyError: there is no such key, or it was revoked before.
        KeyRefusedError: it is the bootstrap key, or the caller has none.
    """
    return await key_changes.renew_secret(space, key_id, rotation)


@router.delete("/keys/{keyId}", summary="Revoke a key", status_code=204, response_class=Response)
async def revoke_key(space: KeyAdmin, key_id: KeyId) -> None:
    """Revoke a key, at once here and within a second in other processes.

    What it reported stays.

    Raises:
        UnknownKeyError: there is no such key, or it was revoked before.
        KeyRefusedError: it is the bootstrap key, or the caller has none.
    """
    await key_changes.end_key(space, key_id)


@router.get("/audit", summary="Who did what, the latest first", name="audit")
async def read_audit(space: KeyAdmin, query: Annotated[AuditQuery, Query()]) -> m.AuditList:
    """Return changes of keys, tools, promotions and recommendations, exports and deletions."""
    return m.AuditList(entries=await key_changes.visible_entries(space, query.limit, query.before))
