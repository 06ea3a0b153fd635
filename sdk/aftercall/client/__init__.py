"""The clients: `Client` and `AsyncClient`, one method per endpoint of the service."""

from aftercall._generated.client import Client
from aftercall.client.async_client import AsyncClient

__all__ = ["AsyncClient", "Client"]
