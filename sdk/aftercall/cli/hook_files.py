"""A coding agent's hooks in its own settings: put there by `aftercall install`, and taken away.

    {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": ".../aftercall hook codex",
                                          "timeout": 10}]}]}}

What else stands there stays; ours are known again by their command. opencode's hook is a file of
its own, put next to the others as it is shipped.
"""

import os
import shlex
import sys
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from aftercall.cli.client_files import HookPlace, known_clients, read_content, resolve_place
from aftercall.cli.entries import Changed, Content, is_own_program
from aftercall.errors import ConfigurationError

PLUGIN_MARK = "// Aftercall's plug-in for "


def add_hooks(content: Content, hooks: HookPlace, command: Sequence[str]) -> Changed:
    """Settings with a hook of ours at each of the client's events.

    `command` is what the client starts: `aftercall hook CLIENT ...`.
    """
    changed, _ = remove_hooks(content)
    held = changed.setdefault("hooks", {})
    if not isinstance(held, dict):
        return content, ["  hooks: left as they are: `hooks` is no object"]
    line = shlex.join(command)
    ours = {"type": "command", "command": line, "timeout": hooks.timeout}
    for event in hooks.events:
        groups = held.setdefault(event, [])
        if not isinstance(groups, list):
            return content, [f"  hooks: left as they are: `{event}` is no list"]
        groups.append({"hooks": [deepcopy(ours)]})
    if changed == content:
        return changed, []
    return changed, [f"  hooks at {', '.join(hooks.events)}\n    + {line}"]


def remove_hooks(content: Content) -> Changed:
    """Settings without our hooks; what that leaves empty is gone too."""
    changed = deepcopy(content)
    held = changed.get("hooks")
    if not isinstance(held, dict):
        return changed, []
    lines = []
    for event, groups in list(held.items()):
        if not isinstance(groups, list):
            continue
        kept = [group for group in map(_without_ours, groups) if group is not None]
        if kept != groups:
            lines.append(f"  hook at {event}: taken away")
            held[event] = kept
            if not kept:
                del held[event]
    if lines and not held:
        del changed["hooks"]
    return changed, lines


def installed_hooks() -> list[tuple[str, str]]:
    """Return the clients that have hooks of ours here, each with what there is to know of them."""
    found = []
    for name, told in known_clients().items():
        if told.hooks is None:
            continue
        path = resolve_place(told.hooks.file or told.hooks.plugin, sys.platform, os.environ)
        try:
            text = path.read_text(encoding="utf-8-sig")
            if told.hooks.plugin:
                is_ours = text.startswith(PLUGIN_MARK)
            else:
                _, lines = remove_hooks(read_content(text))
                is_ours = bool(lines)
        except (OSError, UnicodeDecodeError, ConfigurationError):
            continue
        if is_ours:
            found.append((name, told.hooks.note))
    return found


def _without_ours(group: Any) -> Any:
    """Return a group without our hooks; None where nothing else was in it."""
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return group
    kept = [each for each in group["hooks"] if not _is_ours(each)]
    if len(kept) == len(group["hooks"]):
        return group
    return group | {"hooks": kept} if kept else None


def _is_ours(hook: Any) -> bool:
    line = hook.get("command") if isinstance(hook, dict) else None
    try:
        words = shlex.split(line) if isinstance(line, str) else []
    except ValueError:
        return False
    by_module = words[1:3] == ["-m", "aftercall.cli"]
    start = 3 if by_module else 1
    ours = by_module or (bool(words) and is_own_program(words[0]))
    return ours and words[start : start + 1] == ["hook"]
