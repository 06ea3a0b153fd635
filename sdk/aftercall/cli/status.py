"""`aftercall status`: is the service there, and how far is it."""

import argparse
import sys
from collections.abc import Iterator

from aftercall import errors
from aftercall.cli import Command, discover_commands
from aftercall.cli.hook_files import installed_hooks
from aftercall.client import Client
from aftercall.client.transport import service_url
from aftercall.explain import HOW_TO_SERVE
from aftercall.recording.recorder import count_waiting
from aftercall.running import BASE_URL, URL_VARIABLE


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_service(parser)
    parser.add_argument("--json", action="store_true", help="the answer as JSON")


def _run_command(args: argparse.Namespace) -> int:
    url = service_url(args.service)
    try:
        with Client(url, retries=0) as client:
            status = client.status()
    except errors.ServiceFailedError as error:
        # It starts, stops or is in trouble: its own words, and which service stated them.
        raise errors.AftercallError(
            f"the service at {url} cannot say how it is: {error}"
        ) from error
    except errors.ServiceTimeoutError:
        raise  # it is there; its own message states what to look at
    except errors.ServiceUnreachableError as error:
        cure = (
            "Start one with `aftercall serve`; `aftercall gateway` starts one by itself"
            if "serve" in discover_commands()
            else HOW_TO_SERVE[:1].upper() + HOW_TO_SERVE[1:]
        )
        raise errors.ServiceUnreachableError(
            f"no service at {url} ({error.__cause__ or error}). {cure}, or name another with "
            f"--service URL or {URL_VARIABLE}"
        ) from error
    if args.json:
        sys.stdout.write(status.model_dump_json(by_alias=True, indent=2) + "\n")
        return 0
    waiting = f"{status.pending_indexing:,}"
    if status.pending_indexing:
        waiting += "   (stored safely; answers do not use them yet)"
    if status.indexing_lag_s:
        waiting += f", the oldest for {show_duration(status.indexing_lag_s)}"
    vectors = "unknown" if status.vectors is None else f"{status.vectors:,}"
    if not status.consistent:
        vectors += "   (they do not agree with the log store)"
    rows = [
        ("executions", f"{status.executions:,}"),
        ("waiting to be indexed", waiting),
        ("registered tools", f"{status.tools:,}"),
        ("distinct documents", f"{status.documents:,}"),
        ("vectors", vectors),
        ("shipped patterns", f"{status.seed_patterns:,}"),
        ("embedder", status.embedder),
        ("log store", status.log_store),
        ("vector index", status.vector_index),
    ]
    state = "ready" if status.ready else "NOT READY YET"
    lines = [f"Aftercall {status.version} at {url}: {state}, up {show_duration(status.uptime_s)}"]
    lines += [f"  {label:<22} {text}" for label, text in rows]
    if status.indexing == "workers":
        lines.append(f"  {'learning':<22} by `aftercall worker` alone")
    if status.linger_s is not None:
        ends = f"it ends {show_duration(status.linger_s)} after the last one left"
        lines.append(f"  {'started':<22} by a gateway; {ends}")
    lines += [f"  {'left out by calls':<22} {said}" for said in status.missing]
    for name, note in installed_hooks():
        lines.append(f"  {'hooks of':<22} {name}{'   (' + note + ')' if note else ''}")
    lines += [f"  {'not sent yet':<22} {text}" for text in _unsent_calls(client)]
    if status.problem:
        lines.append(f"  {'PROBLEM':<22} {status.problem}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _unsent_calls(client: Client) -> Iterator[str]:
    """Yield a line for each spool of this user that holds calls for the service."""
    number, folder = count_waiting(client.base_url, client.key_id)
    if number:
        yield f"{number:,} calls wait in {folder}; the next recorder or gateway sends them"
    number, folder = count_waiting(client.base_url, "")
    if number and client.key_id:
        yield (
            f"{number:,} calls that were recorded without a key wait in {folder}: "
            f"`aftercall import {folder}` records them with your key; then delete the folder"
        )


def add_service(
    parser: argparse.ArgumentParser,
    *,
    default: str | None = None,
    otherwise: str = f"{URL_VARIABLE}, or {BASE_URL}",
) -> None:
    """`--service`, for every command that talks to the service; `otherwise` is for its help."""
    parser.add_argument(
        "--service",
        metavar="URL",
        default=default,
        help=f"where the service is (default: {otherwise})",
    )


def show_duration(seconds: float) -> str:
    """Return a duration in its two largest units: `3 d 4 h`, `12 min 5 s`, `8 s`."""
    left = int(seconds)
    parts = []
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


command = Command(
    "status",
    "show whether the service runs and how much it still has to learn",
    _add_arguments,
    _run_command,
)
