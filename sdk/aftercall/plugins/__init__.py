"""Plug-ins in other languages, shipped as data: what a client cannot start as a command."""

from importlib.resources import files


def plugin_text(name: str) -> str:
    """Return a plug-in's source by its file name, such as `opencode.js`."""
    return (files("aftercall.plugins") / name).read_text(encoding="utf-8")
