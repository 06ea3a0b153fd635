"""`aftercall promotions`: which evolved versions hold at a service, in files and back."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from aftercall.cli.status import add_service, service_url
from aftercall.errors import AftercallError, ConfigurationError, NotFoundError

if TYPE_CHECKING:  # `aftercall --help` loads this module
    from aftercall.client import Client
    from aftercall.models import Promotion, PromotionHistory


class PromotionsCommand:
    """Exports, imports, lists and takes back promotions."""

    name = "promotions"
    help = "show, export, import and take back promoted versions of tools"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """One subcommand for each thing to do."""
        actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
        export = _action(actions, "export", "write all promotions to a file, or print them")
        export.add_argument("file", nargs="?", metavar="FILE", help="printed when left out")
        load = _action(actions, "import", "let exactly the promotions of a file hold")
        load.add_argument("file", metavar="FILE")
        load.add_argument("--dry-run", action="store_true", help="say what would change, only")
        load.add_argument(
            "--root", metavar="DIR", help="where the evolved files are (default: FILE's folder)"
        )
        load.add_argument(
            "--no-file-check", action="store_true", help="do not look for the evolved files"
        )
        _action(actions, "list", "list what is promoted")
        for name, text in (
            ("history", "what was promoted and taken back in a namespace, latest first"),
            ("rollback", "go back to what held before the latest change"),
            ("remove", "let the original serve a namespace again"),
        ):
            _action(actions, name, text).add_argument("namespace", metavar="NAMESPACE")

    def run(self, args: argparse.Namespace) -> int:
        """Do it.

        Raises:
            AftercallError: a file is wrong, or the service is not there or says no.
        """
        from aftercall.client import Client  # noqa: PLC0415  # `aftercall --help` loads this module

        with Client(service_url(args)) as client:
            if args.action == "export":
                return _export(client, args)
            if args.action == "import":
                return _import(client, args)
            if args.action == "list":
                return _list(client)
            return _of_namespace(client, args)


def _action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text)
    add_service(parser)
    return parser


def _export(client: "Client", args: argparse.Namespace) -> int:
    from aftercall.promotions_file import (  # noqa: PLC0415  # as above
        render_promotions,
        write_promotions,
    )

    promotions = client.export_promotions()
    if args.file is None:
        sys.stdout.write(render_promotions(promotions))
        return 0
    write_promotions(Path(args.file), promotions)
    sys.stdout.write(f"{_count(len(promotions), 'promotion')} written to {args.file}\n")
    return 0


def _import(client: "Client", args: argparse.Namespace) -> int:
    from aftercall.promotions_file import missing_files, read_promotions  # noqa: PLC0415  # as above

    path = Path(args.file)
    try:
        promotions = read_promotions(path)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}; nothing was imported") from error
    if not args.no_file_check:
        root = Path(args.root) if args.root else path.resolve().parent
        missing = missing_files(promotions, root)
        if missing:
            lines = "".join(f"\n  {each.namespace}: {each.problem}" for each in missing)
            raise ConfigurationError(
                f"{_count(len(missing), 'promoted file')} cannot be used; nothing was imported. "
                f"Give their folder with --root DIR, or pass --no-file-check:{lines}"
            )
    if args.dry_run:
        from aftercall.client.async_client import PROMOTION_TEXTS  # noqa: PLC0415  # as above
        from aftercall.redaction import DEFAULT_REDACTOR  # noqa: PLC0415  # as above

        redactor = client.redactor or DEFAULT_REDACTOR
        sent = {name: redactor.fields(p, PROMOTION_TEXTS) for name, p in promotions.items()}
        _tell_changes("would be ", **_changes(client.export_promotions(), sent))
        return 0
    receipt = client.import_promotions(promotions)
    _tell_changes(
        "",
        added=receipt.added,
        changed=receipt.changed,
        removed=receipt.removed,
        unchanged=receipt.unchanged,
    )
    if receipt.unknown_namespaces:
        names = ", ".join(map(_shown, receipt.unknown_namespaces))
        sys.stdout.write(f"no tool is registered yet for: {names}\n")
    return 0


def _list(client: "Client") -> int:
    promotions = client.export_promotions()
    if not promotions:
        sys.stdout.write("nothing is promoted\n")
        return 0
    width = max(len(_shown(name)) for name in promotions)
    for name, promotion in promotions.items():
        at = promotion.promoted_at.date() if promotion.promoted_at else "?"
        versions = f"{promotion.original_version} -> {promotion.evolved_version}"
        sys.stdout.write(
            f"{_shown(name):<{width}}  {versions:<18}  {at}  {_shown(promotion.reason)}\n"
        )
    return 0


def _of_namespace(client: "Client", args: argparse.Namespace) -> int:
    namespace = args.namespace
    if not namespace:
        raise ConfigurationError("the name of a namespace must not be empty")
    try:
        if args.action == "history":
            _tell_history(client.promotion_history(namespace))
        elif args.action == "rollback":
            latest = client.rollback_promotion(namespace).changes[0]
            sys.stdout.write(f"{_shown(namespace)}: {_holds(latest.promotion)}\n")
        else:
            client.remove_promotion(namespace)
            sys.stdout.write(f"{_shown(namespace)}: {_holds(None)}\n")
    except NotFoundError as error:
        raise AftercallError(
            f"{error.message}; `aftercall promotions list` shows what is promoted"
        ) from error
    return 0


def _tell_history(history: "PromotionHistory") -> None:
    if not history.changes:
        sys.stdout.write("nothing was ever promoted there\n")
    for change in history.changes:
        action = change.action.replace("_", " ")
        moment = change.at.strftime("%Y-%m-%d %H:%M:%S")
        sys.stdout.write(f"{moment}  {action:<11}  {_holds(change.promotion)}\n")


def _holds(promotion: "Promotion | None") -> str:
    if promotion is None:
        return "the original serves"
    file = f" ({_shown(promotion.evolved_file)})" if promotion.evolved_file else ""
    return f"{promotion.evolved_version} stands in for {promotion.original_version}{file}"


def _changes(
    held: Mapping[str, "Promotion"], wanted: Mapping[str, "Promotion"]
) -> dict[str, list[str]]:
    """What an import would do, by the text that the file has for each entry."""
    from aftercall.promotions_file import render_promotions  # noqa: PLC0415  # as above

    def same(name: str) -> bool:
        return render_promotions({name: held[name]}) == render_promotions({name: wanted[name]})

    both = [name for name in wanted if name in held]
    return {
        "added": [name for name in wanted if name not in held],
        "changed": [name for name in both if not same(name)],
        "removed": [name for name in held if name not in wanted],
        "unchanged": [name for name in both if same(name)],
    }


def _tell_changes(verb: str, **changes: list[str]) -> None:
    for what, names in changes.items():
        listed = f" ({', '.join(map(_shown, names))})" if names and what != "unchanged" else ""
        sys.stdout.write(f"{verb}{what}: {len(names):,}{listed}\n")


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _shown(text: str) -> str:
    """On one line and without control characters: names come from whoever promoted."""
    line = " ".join(text.split())
    return "".join(char if char.isprintable() else "\ufffd" for char in line)[:200]


command = PromotionsCommand()
