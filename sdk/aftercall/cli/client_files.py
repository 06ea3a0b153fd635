"""Where MCP clients keep their configurations, and their texts: JSON, TOML and YAML.

TOML and YAML keep their comments and their order; JSON is written again in its order and with its
indentation, without comments: the copy has them.
"""

import json
import os
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

from aftercall.cli.entries import FORMS, Content, EntryForm
from aftercall.errors import ConfigurationError
from aftercall.explain import require_extra
from aftercall.json_values import read_jsonc

_VARIABLE = re.compile(r"\{(\w+)\|([^}]*)\}")


@dataclass(frozen=True, slots=True)
class HookPlace:
    """Where a client's hooks are written."""

    file: str = ""
    events: Sequence[str] = ()
    timeout: int = 10
    """In the client's own unit."""
    note: str = ""
    plugin: str = ""
    """A file that is put next to the client's own, instead."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class ClientPlaces:
    """Where a client keeps its servers and hooks."""

    name: str
    files: Sequence[str]
    keys: Sequence[Sequence[str]] = ()
    form: EntryForm = FORMS["usual"]
    hooks: HookPlace | None = field(default=None)


@cache
def known_clients() -> dict[str, ClientPlaces]:
    """Return the clients of `clients.toml` by name."""
    text = (files("aftercall.cli") / "clients.toml").read_text(encoding="utf-8")
    return {
        name: ClientPlaces(
            name,
            told["files"],
            told.get("servers", ()),
            FORMS[told.get("form", "usual")],
            HookPlace(**told["hooks"]) if "hooks" in told else None,
        )
        for name, told in tomllib.loads(text).items()
    }


def resolve_place(told: str, platform: str, environ: Mapping[str, str]) -> Path:
    """Return the path that a place of `clients.toml` means here."""
    home = Path.home()
    of_linux = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    settings = home / "Library/Application Support" if platform == "darwin" else of_linux
    path = _VARIABLE.sub(lambda found: environ.get(found[1]) or found[2], told)
    path = path.replace("@settings", str(settings)).replace("@config", str(of_linux))
    if path.startswith("./"):
        return Path.cwd() / path[2:]
    return home / path[2:] if path.startswith("~/") else Path(path)


def client_files(
    client: str, platform: str = sys.platform, environ: Mapping[str, str] = os.environ
) -> list[Path]:
    """Return where a client keeps its servers, the user's file first; a path stands for itself."""
    known = known_clients()
    if client not in known:
        if not Path(client).is_file():
            near = get_close_matches(client, known, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise ConfigurationError(f"{client} is no file, and none of {', '.join(known)}{meant}")
        return [Path(client)]
    places = [resolve_place(each, platform, environ) for each in known[client].files]
    if not (found := [path for path in places if path.is_file()]):
        raise ConfigurationError(
            f"{client} has no configuration here: looked for {' and '.join(map(str, places))}; "
            "start the client once, or give a file of it instead: --client FILE"
        )
    return found


def read_content(text: str, suffix: str = ".json") -> Content:
    """Return the content of a file, whose JSON may hold comments and last commas.

    Raises:
        ConfigurationError: it cannot be read, or holds no object.
    """
    kind = {".toml": "TOML", ".yaml": "YAML", ".yml": "YAML"}.get(suffix, "JSON")
    try:
        content = _read_text(text, kind)
    except (ValueError, _yaml_error()) as error:
        what = " ".join(str(error).split())
        raise ConfigurationError(
            f"cannot be read as {kind} ({what}); nothing is changed"
        ) from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"holds no {kind} object; nothing is changed")
    return content


def write_content(content: Content, like: str, suffix: str = ".json") -> str:
    """Return the text of a content, with the indentation and the line ends of another."""
    if suffix == ".toml":
        with require_extra("gateway", "TOML"):
            import tomlkit  # noqa: PLC0415  # the extra

        return tomlkit.dumps(content)
    if suffix in (".yaml", ".yml"):
        stream = StringIO()
        _make_yaml(like).dump(content, stream)
        return stream.getvalue()
    indent = re.search(r"\n([ \t]+)\S", like)
    text = json.dumps(content, indent=indent and indent[1], ensure_ascii=like.isascii())
    text += "\n" if like.endswith("\n") else ""
    return text.replace("\n", "\r\n") if "\r\n" in like else text


def _read_text(text: str, kind: str) -> Any:
    if kind == "JSON":
        return read_jsonc(text)
    if kind == "TOML":
        with require_extra("gateway", "TOML"):
            import tomlkit  # noqa: PLC0415  # the extra

        return tomlkit.parse(text)
    return _make_yaml(text).load(text)


def _make_yaml(like: str) -> Any:
    """Return a reader and writer that keeps comments, quotes and the indentation of lists."""
    with require_extra("gateway", "YAML"):
        from ruamel.yaml import YAML  # noqa: PLC0415  # the extra

    made = YAML()
    made.preserve_quotes = True
    made.width = 4096
    is_indented = re.search(r"^[ ]*\w[^\n]*:[ ]*\n([ ]+)- ", like, re.MULTILINE)
    if is_indented:
        made.indent(mapping=2, sequence=4, offset=2)
    return made


def _yaml_error() -> type[Exception]:
    try:
        from ruamel.yaml.error import YAMLError  # noqa: PLC0415  # the extra
    except ImportError:
        return ValueError
    found: type[Exception] = YAMLError
    return found
