"""`aftercall rules`: list learned repairs and suspicious ones, switch them off, remove them."""

import argparse
from typing import TYPE_CHECKING

from aftercall.cli import Command, one_line
from aftercall.errors import AftercallError
from service.cli.options import add_common, note_in_audit, run, say_line, settings_from

if TYPE_CHECKING:
    from aftercall.models import LearnedRule
    from service.settings import Settings

_MAX_SHOWN = 300
_DONE = {"remove": "struck out", "off": "switched off", "on": "switched on"}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Learned repairs. Works beside a running service, on the same store."
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    listed = actions.add_parser("list", help="all, with what is suspicious")
    listed.add_argument("--suspicious", action="store_true", help="only what is")
    explain = actions.add_parser("explain", help="what one rests on")
    remove = actions.add_parser("remove", help="strike one out, with what taught it")
    off = actions.add_parser("off", help="switch one off: neither proposed nor done by itself")
    on = actions.add_parser("on", help="switch one on again")
    for action in (explain, remove, off, on):
        action.add_argument("id", metavar="ID", help="as the list shows it")
    for action in (listed, explain, remove, off, on):
        action.add_argument("--workspace", default="default", help="of this one (default)")
        add_common(action)


def _run_rules(args: argparse.Namespace) -> int:
    settings = settings_from(args)
    run(settings, _do_action(settings, args))
    return 0


async def _do_action(settings: "Settings", args: argparse.Namespace) -> None:
    from service.rebuild import opened_beside  # heavy imports wait: `--help` loads this module
    from service.rules import change_rule, find_bursts, find_rules

    async with opened_beside(settings, lambda _: None) as store:
        found = [each async for each in find_rules(store, args.workspace)]
        if args.action == "list":
            for each, _ in found:
                if each.suspicious or not args.suspicious:
                    print(_write_line(each))
            async for burst in find_bursts(store, args.workspace):
                named = f"{burst.marks} marks of {burst.tool_name!r}"
                print(f"suspicious: {named} by one key in an hour")
            return
        chosen = next((each for each in found if each.told.rule_id == args.id), None)
        if chosen is None:
            raise AftercallError(f"there is no rule {args.id!r}; `aftercall rules list` shows them")
        if args.action != "explain":
            await change_rule(store, chosen, args.action)
            await note_in_audit(settings, args.workspace, f"rule.{args.action}", args.id)
            say_line(f"{_DONE[args.action]}: {one_line(chosen.told.lesson, _MAX_SHOWN)}")
            return
        print(_write_line(chosen.told))
        print(f"    error: {one_line(chosen.told.signature, _MAX_SHOWN)}")
        keys = ", ".join(each or "the owner" for each in chosen.told.keys) or "nobody"
        print(f"    mended by {keys} (marks of keys)")
        for execution_id in chosen.told.execution_ids:
            print(f"    {execution_id}")


def _write_line(rule: "LearnedRule") -> str:
    tool = one_line(rule.tool_name or "any tool")
    warning = "  suspicious: one key alone" if rule.suspicious else ""
    warning += "  (off)" if rule.off else ""
    lesson = one_line(rule.lesson, _MAX_SHOWN)
    return f"{rule.rule_id}  {tool}  {rule.repairs} repairs  {lesson}{warning}"


command = Command(
    "rules",
    "show learned repairs and which are suspicious, and switch them off",
    _add_arguments,
    _run_rules,
)
