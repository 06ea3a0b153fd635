"""What a page is: a path below `/dashboard`, a title, and who builds it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aftercall.errors import AftercallError
from service.dashboard.look import Look


class NothingHereError(AftercallError):
    """404: what the address names is not there."""

    def __init__(self, what: str, cure: str) -> None:
        """Both are shown as text, so they may hold what a tool or a caller said.

        Args:
            what: what is missing, a sentence.
            cure: what to do, a sentence.
        """
        super().__init__(what)
        self.what = what
        self.cure = cure


@dataclass(frozen=True, slots=True)
class Page:
    """One kind of page."""

    path: str
    """Below `/dashboard`, with parameters in Starlette's form: `/tools/{tool_id:path}`."""
    title: str
    """Its heading, and the first part of what the browser calls it."""
    build: Callable[[Look], Awaitable[None]]
    """Fills the page. It may raise `NothingHereError`; what else it raises is logged, and the page
    says that it cannot be shown."""
    nav: str | None = None
    """What the navigation calls it; None: it is not in there."""
