"""Plug-ins: what other distributions add to Aftercall, each as an entry point of one group.

`docs/plugins.md` has the groups, and `examples/plugin` a distribution with one of each. A plug-in
runs with the rights of the process that loads it: install only what you trust. One that cannot be
loaded is named in the log and left out; everything else goes on.
"""

import logging
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from importlib.resources.abc import Traversable
from typing import Any, Literal, TypeAlias, TypeVar

logger = logging.getLogger(__name__)
PluginT = TypeVar("PluginT")
Group: TypeAlias = Literal["proposers", "log_forms", "hook_clients", "secret_forms", "embedders"]


@cache
def load_plugins(group: Group) -> Mapping[str, Any]:
    """Return the plug-ins of a group by their names, sorted; loaded once for a process."""
    loaded: dict[str, Any] = {}
    for entry in sorted(entry_points(group=f"aftercall.{group}"), key=lambda entry: entry.name):
        try:
            loaded[entry.name] = entry.load()
        except Exception as problem:  # noqa: BLE001  # another distribution's fault, of any kind
            _leave_out(group, entry.name, problem)
    return loaded


@cache
def load_tables(group: Group) -> Mapping[str, dict[str, Any]]:
    """Return the TOML tables of a group's plug-ins by name; each plug-in is the path of a file."""
    tables: dict[str, dict[str, Any]] = {}
    for name, file in load_plugins(group).items():
        try:
            tables[name] = tomllib.loads(_read_text(file))
        except (OSError, ValueError, TypeError) as problem:
            _leave_out(group, name, problem)
    return tables


def use_each(group: Group, plugins: Mapping[str, PluginT], use: Callable[[PluginT], None]) -> None:
    """Use each plug-in of a group; one that fails in it is named in the log and left out.

    Args:
        group: the group that they are of.
        plugins: what was loaded, by name.
        use: checks a plug-in first and takes it over last, so that half of one is never used.
    """
    for name, plugin in plugins.items():
        try:
            use(plugin)
        except Exception as problem:  # noqa: BLE001  # another distribution's fault, of any kind
            _leave_out(group, name, problem)


def _read_text(file: object) -> str:
    if not isinstance(file, Traversable):
        raise TypeError("it is no path of a TOML file, as `importlib.resources.files` gives it")
    return file.read_text(encoding="utf-8")


def _leave_out(group: Group, name: str, problem: Exception) -> None:
    logger.warning(
        "the plug-in %r of aftercall.%s is left out: %s: %s; update or uninstall it",
        name, group, type(problem).__name__, problem,
    )  # fmt: skip
