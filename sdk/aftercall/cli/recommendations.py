"""`aftercall recommendations`: what the evidence suggests to tool builders, as a queue."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from aftercall.cli import Command, one_line, read_name
from aftercall.cli.status import add_service
from aftercall.client import AsyncClient, Client
from aftercall.errors import AftercallError, ConfigurationError, NotFoundError
from aftercall.evolution import ChatEvolver, EvolutionResult
from aftercall.executors.command import CommandExecutor
from aftercall.models import Recommendation, RecommendationList, RecommendationState
from aftercall.toolbox import AsyncToolbox

_MAX_SHOWN = 1_000
_LONGEST_REASON = 2_000
"""Characters that `RecommendationChange.reason` takes."""
_STATES = ("open", "taken", "done", "dismissed", "all")
_ACTIONS: dict[str, tuple[RecommendationState, str]] = {
    "take": ("taken", "say that somebody works on one"),
    "done": ("done", "say that it is fixed; it opens again when its evidence returns"),
    "dismiss": ("dismissed", "say why nothing has to be done; it stays dismissed"),
    "reopen": ("open", "put one back into the queue"),
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_service(parser)
    parser.add_argument(
        "--state", choices=_STATES, help="only those in that state (default: open and taken)"
    )
    parser.add_argument(
        "--tool", metavar="TOOL", type=read_name, help="only those about a tool or a namespace"
    )
    parser.add_argument("--json", action="store_true", help="the answer as JSON")
    actions = parser.add_subparsers(metavar="ACTION", dest="action")

    def add_action(name: str, text: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(name, help=text, description=text)
        # A default would hide what was given before the action.
        add_service(added, default=argparse.SUPPRESS)
        added.add_argument("id", type=read_name, metavar="ID", help="as the list shows it")
        return added

    for name, (_, text) in _ACTIONS.items():
        add_action(name, text).add_argument(
            "--reason",
            type=_read_reason,
            required=name == "dismiss",
            help="stays with it" if name == "dismiss" else "stays with it; optional",
        )
    evolve = add_action(
        "evolve", "write the tool's next version with a chat model, check it, and promote it"
    )
    evolve.add_argument(
        "--promotions", type=Path, default=Path(".tool_promotions.json"), metavar="FILE",
        help="of this machine; scripts lie below its folder (default: .tool_promotions.json)",
    )  # fmt: skip
    evolve.add_argument(
        "--chat", metavar="URL", default="http://127.0.0.1:11434/v1",
        help="of an OpenAI-like API (default: Ollama's, http://127.0.0.1:11434/v1)",
    )  # fmt: skip
    evolve.add_argument("--model", required=True, help="the chat model's name")
    evolve.add_argument(
        "--key-from", metavar="VARIABLE", help="the environment variable that holds the API's key"
    )


def _read_reason(text: str) -> str:
    if len(text) > _LONGEST_REASON:
        raise argparse.ArgumentTypeError(f"it may have {_LONGEST_REASON:,} characters at most")
    return text


def _run_command(args: argparse.Namespace) -> int:
    with Client(args.service) as client:
        return {None: _list_recommendations, "evolve": _evolve_tool}.get(
            args.action, _change_state
        )(client, args)


def _list_recommendations(client: Client, args: argparse.Namespace) -> int:
    found = client.recommendations(state=args.state, tool_id=args.tool)
    if args.json:
        print(RecommendationList(recommendations=found).model_dump_json(by_alias=True, indent=2))
        return 0
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
    return 0


def _evolve_tool(client: Client, args: argparse.Namespace) -> int:
    queue = client.recommendations(state="all")
    found = next((each for each in queue if each.recommendation_id == args.id), None)
    if found is None or found.tool is None or found.tool.tool_id is None:
        raise ConfigurationError(
            f"{args.id!r} is no recommendation about a registered tool; "
            "`aftercall recommendations --state all --json` shows ids and tools"
        )
    result = asyncio.run(_evolve_found(found, found.tool.tool_id, args))
    print(f"{result.status}: {one_line(result.why, _MAX_SHOWN)}")
    if result.status != "evolved":
        return 1
    client.change_recommendation(args.id, "taken", reason=f"evolved to {result.version}")
    return 0


async def _evolve_found(
    found: Recommendation, tool_id: str, args: argparse.Namespace
) -> EvolutionResult:
    key = os.environ.get(args.key_from) if args.key_from else None
    commands = dict.fromkeys(("python", "python3"), sys.executable)
    async with AsyncClient(args.service) as client:
        toolbox = AsyncToolbox(
            client,
            None,
            CommandExecutor(args.promotions.resolve().parent, commands=commands),
            agent="aftercall recommendations",
            promotions=args.promotions,
            evolver=ChatEvolver(args.chat, args.model, api_key=key),
        )
        return await toolbox.evolve_tool(tool_id, found.message)


def _change_state(client: Client, args: argparse.Namespace) -> int:
    state, _ = _ACTIONS[args.action]
    try:
        changed = client.change_recommendation(args.id, state, reason=args.reason)
    except NotFoundError as error:
        raise AftercallError(
            f"{error.message}; `aftercall recommendations --state all` shows their ids"
        ) from error
    print(f"{changed.state}: {one_line(changed.message, _MAX_SHOWN)}")
    return 0


command = Command(
    "recommendations",
    "show recommendations for the makers of tools, and set their state",
    _add_arguments,
    _run_command,
)
