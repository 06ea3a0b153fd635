"""What choosing a tool can fail at; each message names the cure."""

from collections.abc import Sequence

_SHOWN = 80
"""Characters of the asker's own name that a message repeats."""


class UnknownNameError(LookupError):
    """There is no namespace or tool of that name. `nearest` are those that were probably meant."""

    def __init__(self, what: str, name: str, nearest: Sequence[str], listed: str) -> None:
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
        cure = f"; did you mean {_either(nearest)}?" if nearest else f"; {listed} lists all"
        super().__init__(f"there is no {what} {shown!r}{cure}")
        self.nearest = tuple(nearest)


class UnknownNamespaceError(UnknownNameError):
    """No tool serves the namespace, and nothing is promoted in it."""

    def __init__(self, namespace: str, nearest: Sequence[str]) -> None:
        super().__init__("namespace", namespace, nearest, "GET /namespaces")


class UnknownToolError(UnknownNameError):
    """No tool is registered under the id."""

    def __init__(self, tool_id: str, nearest: Sequence[str]) -> None:
        super().__init__("tool", tool_id, nearest, "GET /tools")


class NoToolFitsError(LookupError):
    """A namespace has tools, and none of them is to be offered for the scenario."""


def _either(names: Sequence[str]) -> str:
    return " or ".join(repr(name[:_SHOWN]) for name in names)
