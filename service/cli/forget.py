"""`aftercall forget`: erase what an agent, a session, a key or a time has stated."""

import argparse
import os
from typing import TYPE_CHECKING

from aftercall.cli import Command, read_name
from aftercall.errors import ConfigurationError
from service.cli.options import add_common, note_in_audit, read_moment, run, say_line, start

if TYPE_CHECKING:
    from service.forget import Forgotten
    from service.settings import Settings

_DESCRIPTION = """\
Deletes from the log what they reported and what quotes it, and from this user's recorders what
they still have to send. Then it learns everything again without it, vectors too, and switches to
that. What was learned from expired records is deleted wherever they had a part in it. A running
service keeps answering meanwhile. A recorder on another machine keeps unsent calls there: delete
its spool folder.

If it is killed, run it again.
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--agent", type=read_name, metavar="NAME", help="all calls of this agent")
    parser.add_argument("--session", type=read_name, metavar="ID", help="all calls of this session")
    parser.add_argument("--key", type=read_name, metavar="ID", help="all that came with this key")
    parser.add_argument(
        "--before",
        metavar="TIME",
        type=read_moment,
        help="all from before this time, such as 2026-11-01",
    )
    parser.add_argument(
        "--everything", action="store_true", help="all of a workspace; its keys and the audit stay"
    )
    parser.add_argument(
        "--workspace", type=read_name, metavar="NAME", help="of this workspace (default: default)"
    )
    add_common(parser)


def _run_forget(args: argparse.Namespace) -> int:
    from pydantic import ValidationError  # heavy imports wait: `--help` loads this module

    from service.forget import Forgotten
    from service.keys import DEFAULT_WORKSPACE

    if args.everything and args.workspace is None:
        raise ConfigurationError("--everything empties a workspace: name it with --workspace")
    try:
        whose = Forgotten(
            workspace=args.workspace or DEFAULT_WORKSPACE, agent=args.agent,
            session_id=args.session, before=args.before, key_id=args.key,
            everything=args.everything,
        )  # fmt: skip
    except ValidationError:
        raise ConfigurationError(
            "say whose words go: --agent, --session, --key or --before; or --everything"
        ) from None
    settings = start(args)
    gone = run(settings, forget_now(settings, whose))
    for kind, number in gone.items():
        print(f"{number:>12,} {kind}")
    print("aftercall: forgotten" if gone else "aftercall: nothing of it was there")
    return 0


async def forget_now(settings: "Settings", whose: "Forgotten") -> dict[str, int]:
    """Forget the words and learn all again; return the counts of records by kind."""
    from service.forget import forget_events, learned_without
    from service.rebuild import opened_beside, rebuild_store

    await note_in_audit(settings, whose.workspace, "forget", whose.subject)
    waiting = await _waiting_without(settings, whose)
    async with opened_beside(settings, say_line) as store:
        gone = await forget_events(store, whose)
        is_known = bool(await learned_without(store))
    if is_known:
        await rebuild_store(settings, say_line)
    return {**gone, **({"calls not sent yet": waiting} if waiting else {})}


async def _waiting_without(settings: "Settings", whose: "Forgotten") -> int:
    """Remove the words from the spools of this user's recorders for the service."""
    from aftercall.recording.recorder import forget_waiting
    from aftercall.running import BASE_URL
    from service.databases import opened_control
    from service.keys import DEFAULT_WORKSPACE

    async with opened_control(settings) as control:
        keys = [e.id for e in await control.list_keys() if e.workspace in (whose.workspace, "*")]
    known_as = [*keys, *([""] if whose.workspace == DEFAULT_WORKSPACE else [])]
    server = settings.server
    given = os.environ.get("AFTERCALL_URL"), server.public_url
    urls = {BASE_URL, f"http://{server.host}:{server.port}", *filter(None, given)}
    return sum(
        forget_waiting(url, name, whose.is_waiting)
        for url in urls
        for name in known_as
        if whose.key_id in (None, name)
    )


command = Command(
    "forget",
    "erase what an agent, a session or a key reported, and what was learned from it",
    _add_arguments,
    _run_forget,
)
