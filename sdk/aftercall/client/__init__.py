"""The clients: `Client` and `AsyncClient`, one method per endpoint of the service."""

from aftercall.client.async_client import AsyncClient
from aftercall.client.sync_client import Client

__all__ = ["AsyncClient", "Client"]
