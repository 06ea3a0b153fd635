"""Keys for the tests: made in a running service as the command line makes them."""

from collections.abc import Sequence
from typing import Any

import httpx2

from aftercall.models import KeySpec, Scope
from service.api.keys import create_key
from service.keys import CONSOLE, KeySpace
from tests.service.running_service import RunningService, on_loop

ALL: tuple[Scope, ...] = ("record", "suggest", "read", "admin")


def new_key(
    service: RunningService, workspace: str, scopes: Sequence[Scope] = ALL, **more: Any
) -> str:
    """A key with its secret."""
    spec = KeySpec(name=f"of {workspace}", workspace=workspace, scopes=list(scopes), **more)
    return on_loop(service, create_key(KeySpace(service.context.keys, CONSOLE), spec)).secret


def bearer(key: str) -> dict[str, str]:
    """The header that carries a key."""
    return {"authorization": f"Bearer {key}"}


def client_of(service: RunningService, key: str) -> httpx2.Client:
    """Asks with a key; the caller closes it."""
    return httpx2.Client(base_url=service.url, timeout=200, headers=bearer(key))


def key_id(key: str) -> str:
    """The part of a key that is no secret."""
    return key.split("_")[1]
