"""`aftercall promotions`: which evolved versions hold at a service, in files and back."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aftercall import promotions_file
from aftercall.cli import Command, one_line, read_name
from aftercall.cli.status import add_service
from aftercall.client import Client
from aftercall.errors import AftercallError, ConfigurationError, NotFoundError
from aftercall.models import Promotion


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    actions: Any = parser.add_subparsers(metavar="ACTION", dest="action", required=True)

    def add_action(
        name: str, text: str, do: "Callable[[Client, argparse.Namespace], None]"
    ) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(name, help=text, description=text)
        add_service(added)
        added.set_defaults(do=do)
        return added

    add_action(
        "export", "write all promotions to a file, or print them", _export_file
    ).add_argument("file", nargs="?", metavar="FILE", help="printed when left out")
    load = add_action("import", "replace all promotions by those of a file", _import_file)
    load.add_argument("file", metavar="FILE")
    load.add_argument(
        "--root", metavar="DIR", help="where the evolved files are (default: FILE's folder)"
    )
    load.add_argument(
        "--no-file-check", action="store_true", help="do not look for the evolved files"
    )
    add_action("list", "list what is promoted", _list_promotions)
    for name, text, do in (
        ("history", "what was promoted and taken back in a namespace, latest first", _show_history),
        ("rollback", "go back to what held before the latest change", _roll_back),
        ("remove", "let the original serve a namespace again", _remove_promotion),
    ):
        add_action(name, text, do).add_argument("namespace", type=read_name, metavar="NAMESPACE")


def _run_command(args: argparse.Namespace) -> int:
    with Client(args.service) as client:
        try:
            args.do(client, args)
        except NotFoundError as error:
            raise AftercallError(
                f"{error.message}; `aftercall promotions list` shows what is promoted"
            ) from error
    return 0


def _export_file(client: Client, args: argparse.Namespace) -> None:
    promotions = client.export_promotions()
    if args.file is None:
        sys.stdout.write(promotions_file.render_promotions(promotions))
        return
    promotions_file.write_promotions(Path(args.file), promotions)
    print(f"{_count_things(len(promotions), 'promotion')} written to {args.file}")


def _import_file(client: Client, args: argparse.Namespace) -> None:
    path = Path(args.file)
    try:
        promotions = promotions_file.read_promotions(path)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; nothing was imported") from error
    root = Path(args.root) if args.root else path.resolve().parent
    if missing := {} if args.no_file_check else promotions_file.missing_files(promotions, root):
        lines = "".join(f"\n  {name}: {problem}" for name, problem in missing.items())
        raise ConfigurationError(
            f"{_count_things(len(missing), 'promoted file')} cannot be used; nothing was imported. "
            f"Give their folder with --root DIR, or pass --no-file-check:{lines}"
        )
    receipt = client.import_promotions(promotions)
    for what in ("added", "changed", "removed", "unchanged"):
        names = getattr(receipt, what)
        listed = f" ({', '.join(map(one_line, names))})" if names and what != "unchanged" else ""
        print(f"{what}: {len(names):,}{listed}")
    if receipt.unknown_namespaces:
        unknown = ", ".join(map(one_line, receipt.unknown_namespaces))
        print(f"no tool is registered yet for: {unknown}")


def _list_promotions(client: Client, _: argparse.Namespace) -> None:
    if not (promotions := client.export_promotions()):
        print("nothing is promoted")
    width = max((len(one_line(name)) for name in promotions), default=0)
    for name, promotion in promotions.items():
        at = promotion.promoted_at.date() if promotion.promoted_at else "?"
        versions = f"{promotion.original_version} -> {promotion.evolved_version}"
        print(f"{one_line(name):<{width}}  {versions:<18}  {at}  {one_line(promotion.reason)}")


def _show_history(client: Client, args: argparse.Namespace) -> None:
    if not (changes := client.promotion_history(args.namespace).changes):
        print("nothing was ever promoted there")
    for change in changes:
        action = change.action.replace("_", " ")
        print(
            f"{change.at:%Y-%m-%d %H:%M:%S}  {action:<11}  {_describe_promotion(change.promotion)}"
        )


def _roll_back(client: Client, args: argparse.Namespace) -> None:
    latest = client.rollback_promotion(args.namespace).changes[0]
    print(f"{one_line(args.namespace)}: {_describe_promotion(latest.promotion)}")


def _remove_promotion(client: Client, args: argparse.Namespace) -> None:
    client.remove_promotion(args.namespace)
    print(f"{one_line(args.namespace)}: {_describe_promotion(None)}")


def _describe_promotion(promotion: Promotion | None) -> str:
    if promotion is None:
        return "the original serves"
    file = f" ({one_line(promotion.evolved_file)})" if promotion.evolved_file else ""
    return f"{promotion.evolved_version} stands in for {promotion.original_version}{file}"


def _count_things(number: int, thing: str) -> str:
    if number == 1:
        return f"{number:,} {thing}"
    return f"{number:,} {thing}s"


command = Command(
    "promotions",
    "show, export, import and take back promoted versions of tools",
    _add_arguments,
    _run_command,
)
