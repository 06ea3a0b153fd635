"""What routes ask for: the open services and the caller's workspace.

They are coroutines although they await nothing: FastAPI sends plain functions to a thread pool.
"""

from typing import Annotated

from fastapi import Depends, Request

from service.context import Context, Lifecycle
from service.http.problems import UnavailableError

DEFAULT_WORKSPACE = "default"


async def current_workspace() -> str:
    """The workspace of the caller: one for all until there are keys; no route names it itself."""
    return DEFAULT_WORKSPACE


async def current_lifecycle(request: Request) -> Lifecycle:
    """Where the process is between its start and its end."""
    lifecycle: Lifecycle = request.app.state.lifecycle
    return lifecycle


async def open_context(request: Request) -> Context:
    """The open services.

    Raises:
        UnavailableError: while they are being opened or closed.
    """
    lifecycle = await current_lifecycle(request)
    if lifecycle.context is None:
        raise UnavailableError("not_ready", f"the service is {lifecycle.phase}; try again shortly")
    return lifecycle.context


CurrentWorkspace = Annotated[str, Depends(current_workspace)]
CurrentLifecycle = Annotated[Lifecycle, Depends(current_lifecycle)]
CurrentContext = Annotated[Context, Depends(open_context)]
