"""Keys and the audit; the first key is made on the command line."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from aftercall.models import AuditList, IssuedKey, KeyList, KeyRotation, KeySpec, WireModel
from service import keys
from service.requests import Administering, JsonRoute

router = APIRouter(tags=["keys"], route_class=JsonRoute)
KeyId = Annotated[
    str, Path(alias="keyId", min_length=1, max_length=64, description="From `GET /keys`.")
]


class _AuditQuery(WireModel):
    limit: int = Field(default=100, ge=1, le=1000)
    before: int | None = Field(
        default=None, ge=1, le=2**53, description="Only entries of a position below."
    )


@router.post("/keys", summary="Make a key", status_code=201)
async def create_key(spec: KeySpec, space: Administering) -> IssuedKey:
    """Its secret is in this answer only. A key for another workspace is an operator's to make."""
    return await keys.create_key(space.context.keys, space.context.caller, spec)


@router.get("/keys", summary="All keys, without their secrets")
async def list_keys(space: Administering) -> KeyList:
    """Of the caller's workspace, revoked and expired ones too; of all for an operator."""
    return await keys.list_keys(space.context.keys, space.context.caller)


@router.post("/keys/{keyId}/rotation", summary="Give a key a new secret")
async def rotate_key(key_id: KeyId, rotation: KeyRotation, space: Administering) -> IssuedKey:
    """The former secret holds on for `overlapS` seconds, so that no one is cut off meanwhile."""
    return await keys.rotate_key(space.context.keys, space.context.caller, key_id, rotation)


@router.delete("/keys/{keyId}", summary="Revoke a key", status_code=204, response_class=Response)
async def revoke_key(key_id: KeyId, space: Administering) -> None:
    """At once here, within a second in other processes; what it reported stays."""
    await keys.revoke_key(space.context.keys, space.context.caller, key_id)


@router.get("/audit", summary="Who did what, the latest first")
async def audit(query: Annotated[_AuditQuery, Query()], space: Administering) -> AuditList:
    """Changes of keys, tools, promotions and recommendations, exports and deletions."""
    caller = space.context.caller
    return await keys.audit(space.context.keys, caller, limit=query.limit, before=query.before)
