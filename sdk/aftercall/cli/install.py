"""`aftercall install` and `uninstall`: the gateway in front of a client's servers, and its hooks.

Each change is shown before it is made. The first one keeps a copy of the file next to it, which is
put back where nothing else has changed since; a file that was not there is removed again.
"""

import argparse
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from aftercall.cli import Command
from aftercall.cli.client_files import (
    ClientPlaces,
    HookPlace,
    client_files,
    known_clients,
    read_content,
    resolve_place,
    write_content,
)
from aftercall.cli.entries import Changed, Content, unwrap_servers, wrap_servers, wrapped_names
from aftercall.cli.hook_files import PLUGIN_MARK, add_hooks, remove_hooks
from aftercall.cli.status import add_service
from aftercall.client.transport import checked_base_url
from aftercall.errors import ConfigurationError
from aftercall.explain import how_to_install
from aftercall.files import replace_file, user_folder
from aftercall.plugins import plugin_text
from aftercall.running import KEY_VARIABLE, URL_VARIABLE

MODES = ("repair", "advise", "shadow", "off")
_COPY = ".before-aftercall"


@dataclass(frozen=True, slots=True)
class _Job:
    """What is done to a file: its servers, its hooks, or both."""

    path: Path
    client: ClientPlaces
    has_servers: bool
    hooks: HookPlace | None = None

    def wrap_content(
        self, content: Content, command: Sequence[str], more: Sequence[str] = ()
    ) -> Changed:
        """Return the content with the gateway in front of its servers."""
        told = self.client
        if not self.has_servers:
            return content, []
        return wrap_servers(content, command, more, keys=told.keys, form=told.form)

    def unwrap_content(self, content: Content) -> Changed:
        """Return the content without it."""
        told = self.client
        return (
            unwrap_servers(content, keys=told.keys, form=told.form)
            if self.has_servers
            else (content, [])
        )


def _find_jobs(client: str) -> Iterator[_Job]:
    """Yield the files of a client that are there, and that of its hooks where the client is."""
    told = known_clients().get(client, ClientPlaces(client, ()))
    hooks = told.hooks
    at = resolve_place(hooks.file, sys.platform, os.environ) if hooks and hooks.file else None
    is_there = at is not None and at.parent.is_dir()
    plugin = (
        resolve_place(hooks.plugin, sys.platform, os.environ) if hooks and hooks.plugin else None
    )
    has_plugins = plugin is not None and plugin.parent.parent.is_dir()
    try:
        paths = client_files(client)
    except ConfigurationError:
        if not is_there and not has_plugins:
            raise
        paths = []
    for path in paths:
        same = at is not None and path.resolve() == at.resolve()
        yield _Job(path, told, has_servers=True, hooks=hooks if same else None)
    if at is not None and is_there and all(path.resolve() != at.resolve() for path in paths):
        yield _Job(at, told, has_servers=False, hooks=hooks)


def _own_command() -> list[str]:
    """Return what starts this Aftercall again, from wherever a client starts it."""
    if {".cache", "Caches"} & set(Path(sys.prefix).parts):
        raise ConfigurationError(
            "this Aftercall runs from a cache that may be emptied, and your servers with it: "
            "install it to stay, by `uv tool install` or `pipx install` from the repository"
        )
    if importlib.util.find_spec("fastmcp") is None:
        raise ConfigurationError(f"the gateway is not installed: {how_to_install('gateway')}")
    script = Path(sys.executable).with_name("aftercall")
    return [str(script)] if script.exists() else [sys.executable, "-m", "aftercall.cli"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--client",
        required=True,
        metavar="CLIENT",
        help=f"{', '.join(known_clients())}, or the path of a file like theirs",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would be changed")
    parser.add_argument("--yes", action="store_true", help="change it without asking")


def _add_install_arguments(parser: argparse.ArgumentParser) -> None:
    _add_arguments(parser)
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="how calls are handled: repaired (the default), advised on, or only watched",
    )
    parser.add_argument(
        "--no-hooks", dest="hooks", action="store_false", help="leave the client's hooks alone"
    )
    add_service(parser, otherwise=f"{URL_VARIABLE}, or what the gateway finds or starts")
    parser.add_argument(
        "--key-file",
        type=Path,
        metavar="FILE",
        help="a file that holds the key of the service (default: one is made of AFTERCALL_API_KEY)",
    )


def _run_install(args: argparse.Namespace) -> int:
    command = _own_command()
    more = ["--mode", args.mode] if args.mode else []
    # Clients start servers without the variables of this shell.
    if service := args.service or os.environ.get(URL_VARIABLE):
        more += ["--service", str(checked_base_url(service)).rstrip("/")]
    key = os.environ.get(KEY_VARIABLE)
    kept_in = user_folder("XDG_CONFIG_HOME", ".config") / "api-key" if key else None
    if key_file := args.key_file or kept_in:
        more += ["--key-file", str(key_file.absolute())]
    behind: list[str] = []

    def change_content(job: _Job, content: Content) -> Changed:
        changed, lines = job.wrap_content(content, command, more)
        if job.has_servers:
            behind.extend(wrapped_names(changed, keys=job.client.keys, form=job.client.form))
        if job.hooks is not None and args.hooks:
            left_out = [word for name in dict.fromkeys(behind) for word in ("--except", name)]
            words = [*command, "hook", job.client.name, *more, *left_out]
            changed, told = add_hooks(changed, job.hooks, words)
            lines += [*told, *([f"  {job.hooks.note}"] if told and job.hooks.note else [])]
        return changed, lines

    code = _change_files(args, change_content)
    if args.hooks:
        code = max(code, _change_plugin(args, is_wanted=True))
    if key and kept_in is not None and key_file == kept_in and not code and not args.dry_run:
        kept_in.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(kept_in, key.encode(), mode=0o600)
        print(f"{KEY_VARIABLE} is kept in {kept_in}, which only you can read")
    return code


def _remove_all(job: _Job, content: Content) -> Changed:
    """Return a configuration without the gateway and our hooks."""
    changed, lines = job.unwrap_content(content)
    if job.hooks is None:
        return changed, lines
    changed, told = remove_hooks(changed)
    return changed, [*lines, *told]


def _run_uninstall(args: argparse.Namespace) -> int:
    return max(_change_files(args, _remove_all), _change_plugin(args, is_wanted=False))


def _change_plugin(args: argparse.Namespace, *, is_wanted: bool) -> int:
    """Put a client's plug-in next to its own, or take it away; a foreign file of its name stays."""
    told = known_clients().get(args.client)
    if told is None or told.hooks is None or not told.hooks.plugin:
        return 0
    path = resolve_place(told.hooks.plugin, sys.platform, os.environ)
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    text = plugin_text(told.hooks.source) if is_wanted else ""
    if before == text or not path.parent.parent.is_dir():
        return 0
    if before and not before.startswith(PLUGIN_MARK):
        print(f"{path}\n  left as it is: it is not Aftercall's")
        return 0
    print(f"{path}\n  {'+ the plug-in' if text else '- the plug-in'} of Aftercall")
    if (code := _ask_user(args)) is not None:
        return code
    if text:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
    else:
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    return 0


def _change_files(args: argparse.Namespace, change: Callable[[_Job, Content], Changed]) -> int:
    code = 0
    for job in list(_find_jobs(args.client)):
        try:
            code = max(code, _change_file(job, change, args))
        except ConfigurationError as error:
            raise ConfigurationError(f"{job.path}: {error}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{job.path}: {error}; this file is as it was") from error
    return code


def _ask_user(args: argparse.Namespace) -> int | None:
    """Return whether a change is made: None to go on, else the exit code."""
    if args.dry_run:
        return 0
    if args.yes:
        return None
    if not sys.stdin.isatty():
        print("  say --yes to change it")
    elif input("  change it? [y/N] ").strip().lower() in ("y", "yes"):
        return None
    print("  nothing is changed")
    return 1


def _change_file(
    job: _Job, change: Callable[[_Job, Content], Changed], args: argparse.Namespace
) -> int:
    path = job.path.resolve()
    before = path.read_bytes() if path.exists() else b""
    mark = b"\xef\xbb\xbf" if before.startswith(b"\xef\xbb\xbf") else b""
    text = before[len(mark) :].decode() if path.exists() else _EMPTY
    content = read_content(text, path.suffix)
    changed, lines = change(job, content)
    print("\n".join([str(path), *lines]))
    if changed == content:
        print("  nothing to change")
        return 0
    if (code := _ask_user(args)) is not None:
        return code
    if path.exists() and path.read_bytes() != before:
        raise ConfigurationError("it was changed meanwhile; nothing is done, run this again")
    copy = path.with_name(path.name + _COPY)
    bare = _remove_all(job, content)[0]
    if not changed and bare != content and not copy.exists():
        path.unlink()  # it was made by `install`, and holds nothing of anyone
        print("  removed")
        return 0
    if before and (bare == content or (bare and not copy.exists())):
        shutil.copy2(path, copy)
    after = mark + write_content(changed, text, path.suffix).encode()
    replace_file(path, copy.read_bytes() if _is_as_before(job, changed, copy) else after)
    kept = f"; a copy of it before the first change: {copy}" if copy.exists() else ""
    print(f"  changed{kept}. Restart the client")
    return 0


_EMPTY = "{}\n"
"""What a file of hooks holds that is not there yet."""


def _is_as_before(job: _Job, changed: Content, copy: Path) -> bool:
    """Return whether a copy states the same; one without arguments is one with none of them."""
    if not copy.exists():
        return False
    content = read_content(
        copy.read_text(encoding="utf-8-sig"), copy.with_name(copy.name.removesuffix(_COPY)).suffix
    )
    there_and_back = job.unwrap_content(job.wrap_content(content, ["aftercall"])[0])[0]
    return changed in (content, there_and_back)


install = Command(
    "install",
    "put the gateway in front of a client's MCP servers, and hooks around its own tools",
    _add_install_arguments,
    _run_install,
)
uninstall = Command(
    "uninstall", "take the gateway and the hooks away from a client", _add_arguments, _run_uninstall
)
