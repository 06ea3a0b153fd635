"""Telling the service which tools there are: in the background, and until it has heard.

A service that is away never holds the gateway up. What it has not heard is told when it is back,
and when it has been away everything is told again: it may have come back with an empty store.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import mcp_types
from pydantic import ValidationError

from aftercall.bounded import bounded_text
from aftercall.errors import AftercallError, ApiError, RateLimitedError, ServiceFailedError
from aftercall.json_values import make_json_value
from aftercall.models.calls import ToolAnnotations
from aftercall.models.tools import Tool, ToolSpec

CHECK_EVERY_S = 30.0
"""How often the service is looked at, so that its return is noticed."""

_MAX_DESCRIPTION_CHARS = 20_000

_logger = logging.getLogger(__name__)


class ToolRegistry(Protocol):
    """The two methods of `AsyncClient` that registration needs."""

    async def put_tool(self, tool_id: str, spec: ToolSpec) -> Tool:
        """`PUT /tools/{toolId}`."""

    async def ready(self) -> bool:
        """Whether the service is there and ready."""


class ToolRegistrar:
    """Keeps the service's list of tools like the gateway's. Run `run` in a task.

    Args:
        registry: the service.
        check_every_s: seconds between looks at the service; a tenth of it while it is away.
    """

    def __init__(self, registry: ToolRegistry, *, check_every_s: float = CHECK_EVERY_S) -> None:
        self._registry = registry
        self._check_every_s = check_every_s
        self._wanted: dict[str, ToolSpec] = {}
        self._told: dict[str, ToolSpec] = {}
        self._changed = asyncio.Event()
        self._is_away = False

    def offer(self, server_name: str, listed: Sequence[mcp_types.Tool]) -> None:
        """Take the tools of a server over; those that are new or changed will be told."""
        for tool in listed:
            spec, tool_id = _spec(server_name, tool), f"{server_name}.{tool.name}"
            if spec is not None and self._wanted.get(tool_id) != spec:
                self._wanted[tool_id] = spec
                self._changed.set()

    async def run(self) -> None:
        """Tell the service what changed, until cancelled."""
        while True:
            self._changed.clear()
            await self._tell()
            pause_s = self._check_every_s if not self._is_away else self._check_every_s / 10
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), pause_s)
            await self._look()

    def _pending(self) -> dict[str, ToolSpec]:
        return {id_: spec for id_, spec in self._wanted.items() if self._told.get(id_) != spec}

    async def _look(self) -> None:
        """Notice that the service went away; on its return everything counts as untold."""
        self._note(is_there=await self._is_ready())

    def _note(self, *, is_there: bool) -> None:
        if is_there and self._is_away:
            self._told.clear()
            _logger.warning("the Aftercall service is back")
        elif not is_there and not self._is_away:
            _logger.warning(
                "the Aftercall service does not answer; calls pass through without suggestions "
                "until it does (start it with `aftercall serve`)"
            )
        self._is_away = not is_there

    async def _is_ready(self) -> bool:
        try:
            return await self._registry.ready()
        except AftercallError:
            return False

    async def _tell(self) -> None:
        for tool_id, spec in self._pending().items():
            try:
                await self._registry.put_tool(tool_id, spec)
            except (RateLimitedError, ServiceFailedError):
                return  # not now; asked again at the next look
            except ApiError as error:
                # The service will not take this one however often it is asked.
                _logger.warning("tool %s is not registered: %s", tool_id, error)
            except AftercallError:
                self._note(is_there=False)
                return
            self._told[tool_id] = spec


def _spec(server_name: str, tool: mcp_types.Tool) -> ToolSpec | None:
    claims = tool.annotations.model_dump(exclude_none=True) if tool.annotations else {}
    try:
        return ToolSpec.model_validate(
            {
                "name": tool.name,
                "server_name": server_name,
                "description": bounded_text(tool.description or "", _MAX_DESCRIPTION_CHARS),
                "input_schema": make_json_value(tool.input_schema),
                "annotations": ToolAnnotations.model_validate(claims),
            }
        )
    except ValidationError as error:
        fields = ", ".join(str(e["loc"]) for e in error.errors(include_input=False))
        _logger.warning("tool %s of %s is not registered: %s", tool.name, server_name, fields)
        return None
