"""`aftercall recommendations`: what the evidence suggests to tool builders, as a queue."""

import argparse
from typing import TYPE_CHECKING

from aftercall.cli import one_line
from aftercall.cli.status import add_service, service_url
from aftercall.errors import AftercallError, ConfigurationError, NotFoundError

if TYPE_CHECKING:  # `aftercall --help` loads this module
    from aftercall.client import Client
    from aftercall.models import RecommendationState

_MOST_REASON = 2_000
"""Characters (contract)."""

_MAX_SHOWN = 1_000

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
                _list(client, args)
            else:
                _change(client, args)
        return 0


def _list(client: "Client", args: argparse.Namespace) -> None:
    from aftercall.models import RecommendationList  # noqa: PLC0415  # as above

    found = client.recommendations(state=args.state, tool_id=args.tool)
    if args.json:
        answer = RecommendationList(recommendations=found)
        print(answer.model_dump_json(by_alias=True, indent=2))
        return
    if not found:
        print("nothing is recommended")
    for each in found:
        state = "open again" if each.reopened else each.state
        print(
            f"{each.recommendation_id}  {state}  {each.kind}  "
            f"priority {each.priority:.1f}, confidence {each.confidence:.2f}"
        )
        print(f"    {one_line(each.message, _MAX_SHOWN)}")
        if each.state_reason:
            print(f"    reason given: {one_line(each.state_reason, _MAX_SHOWN)}")


def _change(client: "Client", args: argparse.Namespace) -> None:
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
    print(f"{changed.state}: {one_line(changed.message, _MAX_SHOWN)}")


command = RecommendationsCommand()
