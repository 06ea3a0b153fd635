"""`aftercall forget`: erase what an agent, a session, a key or a time has said."""

import argparse
from datetime import datetime
from typing import TYPE_CHECKING

from aftercall.cli import Command
from aftercall.errors import ConfigurationError
from service.cli.options import add_common, note, say, start

if TYPE_CHECKING:
    from service.forget import Forgotten
    from service.settings import Settings

_DESCRIPTION = """\
Deletes what they have reported, and what quotes it, from the log; learns everything anew without
it beside what answers, vectors too, then switches and removes the former. Of what expired records
taught, each row that bears a mark of them goes whole. A running service goes on meanwhile. What a
recorder of theirs still has in its spool is on its own machine: delete the spool's folder there.

Killed at any point, run it again.
"""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = _DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--agent", metavar="NAME", help="what this agent did")
    parser.add_argument("--session", metavar="ID", help="what was done in this session")
    parser.add_argument("--key", metavar="ID", help="all that came with this key")
    parser.add_argument(
        "--before", metavar="TIME", type=_moment, help="what came earlier, such as 2026-11-01"
    )
    parser.add_argument("--workspace", default="default", help="of this workspace (default)")
    add_common(parser)


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; give 2026-11-01T08:00Z") from None


def _run(args: argparse.Namespace) -> int:
    import asyncio  # heavy imports wait: `aftercall --help` loads this module

    from service.forget import Forgotten
    from service.lifecycle import one_line

    if not any((args.agent, args.session, args.key, args.before)):
        raise ConfigurationError("say whose words go: --agent, --session, --key or --before")
    settings = start(args)
    whose = Forgotten(args.workspace, args.agent, args.session, args.before, args.key)
    with one_line(settings.data.dir):
        gone = asyncio.run(forgotten(settings, whose))
    for kind, number in gone.items():
        print(f"{number:>12,} {kind}")
    print("aftercall: forgotten" if gone else "aftercall: nothing of it was there")
    return 0


async def forgotten(settings: "Settings", whose: "Forgotten") -> dict[str, int]:
    """Forget it and learn all anew; how many records of each kind went."""
    from service.forget import forget
    from service.rebuild import opened_beside, rebuild

    # No name of an agent or a session: the audit keeps no personal values.
    subject = whose.principal or ("a time" if whose.before else "an agent or session")
    await note(settings, whose.workspace, "forget", subject)
    async with opened_beside(settings, say) as store:
        gone = await forget(store, whose)
    if gone:
        await rebuild(settings, say, carries=False)
    return gone


command = Command(
    "forget",
    "erase what an agent, a session, a key or a time has said, and what was learned of it",
    _add_arguments,
    _run,
)
