"""`aftercall recommendations`: what the evidence suggests to tool builders, as a queue."""

import argparse
import sys
from typing import TYPE_CHECKING

from aftercall.cli.status import add_service, service_url
from aftercall.errors import AftercallError, ConfigurationError, NotFoundError

if TYPE_CHECKING:  # `aftercall --help` loads this module
    from aftercall.client import Client
    from aftercall.models import Recommendation, RecommendationState

_MOST_REASON = 2_000
"""Characters (contract)."""

_STATES = ("open", "taken", "done", "dismissed", "all")

_ACTIONS: "dict[str, tuple[RecommendationState, str]]" = {
    "take": ("taken", "say that somebody works on one"),
    "done": ("done", "say that it is mended; it opens again when its evidence returns"),
    "dismiss": ("dismissed", "say why nothing is to be done about it; it stays dismissed"),
    "reopen": ("open", "put one back into the queue"),
}


class RecommendationsCommand:
    """Lists recommendations, and says what is done about one."""

    name = "recommendations"
    help = "show what the evidence suggests to tool builders, and say what is done about it"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The list, or one subcommand for each thing to do."""
        add_service(parser)
        parser.add_argument(
            "--state", choices=_STATES, help="only those in that state (default: open and taken)"
        )
        parser.add_argument("--tool", metavar="TOOL", help="only those about a tool or a namespace")
        parser.add_argument("--json", action="store_true", help="the answer as JSON")
        actions = parser.add_subparsers(metavar="ACTION", dest="action")
        for name, (_, text) in _ACTIONS.items():
            action = actions.add_parser(name, help=text, description=text)
            # A default would hide what was given before the action.
            action.add_argument(
                "--service", metavar="URL", default=argparse.SUPPRESS, help="where the service is"
            )
            action.add_argument("id", metavar="ID", help="as the list shows it")
            action.add_argument(
                "--reason",
                required=name == "dismiss",
                help="stays with it" if name == "dismiss" else "stays with it; optional",
            )

    def run(self, args: argparse.Namespace) -> int:
        """Do it.

        Raises:
            AftercallError: the service is not there or says no.
        """
        from aftercall.client import Client  # noqa: PLC0415  # `aftercall --help` loads this module

        with Client(service_url(args)) as client:
            if args.action is None:
                return _list(client, args)
            return _change(client, args)


def _list(client: "Client", args: argparse.Namespace) -> int:
    from aftercall.models import RecommendationList  # noqa: PLC0415  # as above

    found = client.recommendations(state=args.state, tool_id=args.tool)
    if args.json:
        answer = RecommendationList(recommendations=found)
        sys.stdout.write(answer.model_dump_json(by_alias=True, indent=2) + "\n")
        return 0
    if not found:
        sys.stdout.write("nothing is recommended\n")
    for each in found:
        sys.stdout.write("\n".join(_lines(each)) + "\n")
    return 0


def _change(client: "Client", args: argparse.Namespace) -> int:
    state, _ = _ACTIONS[args.action]
    if not args.id:
        raise ConfigurationError("ID must not be empty; `aftercall recommendations` shows them")
    if len(args.reason or "") > _MOST_REASON:
        raise ConfigurationError(f"--reason may have {_MOST_REASON:,} characters at most")
    try:
        changed = client.change_recommendation(args.id, state, reason=args.reason)
    except NotFoundError as error:
        raise AftercallError(
            f"{error.message}; `aftercall recommendations --state all` shows their ids"
        ) from error
    sys.stdout.write(f"{changed.state}: {_shown(changed.message)}\n")
    return 0


def _lines(found: "Recommendation") -> list[str]:
    state = "open again" if found.reopened else found.state
    lines = [
        f"{found.recommendation_id}  {state}  {found.kind}  "
        f"priority {found.priority:.1f}, confidence {found.confidence:.2f}",
        f"    {_shown(found.message)}",
    ]
    if found.state_reason:
        lines.append(f"    reason given: {_shown(found.state_reason)}")
    return lines


def _shown(text: str) -> str:
    """On one line and without control characters: it may quote what a tool or a user said."""
    line = " ".join(text.split())
    return "".join(char if char.isprintable() else "\ufffd" for char in line)[:1_000]


command = RecommendationsCommand()
