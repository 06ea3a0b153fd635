"""`aftercall keys`: make, list, rotate and revoke keys; `aftercall audit`: read and verify it.

Both open the control store itself, next to a running service too: it takes several processes, and
services look at it every second. Anyone who may read its folder, or has MongoDB's address, is an
operator.
"""

import argparse
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from aftercall.cli import Command, one_line
from aftercall.errors import AftercallError
from aftercall.files import replace_file
from service.cli.options import add_common, run, say_line, settings_from

if TYPE_CHECKING:
    from aftercall.models import IssuedKey, KnownKey
    from service.keys import Keyring

_SCOPES = ("record", "suggest", "read", "admin")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Keys of a service. Once there is one, every request needs a key; a running service "
        "notices changes within a second."
    )
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    create = actions.add_parser("create", help="make a key; its secret is shown once, on stdout")
    create.add_argument("name", metavar="NAME", help="whose it is, in words")
    create.add_argument(
        "--workspace", default="default",
        help="the one that it reads and writes (default); '*' for all of them, an operator's key",
    )  # fmt: skip
    create.add_argument(
        "--scope", choices=_SCOPES, action="append",
        help="may be given again; without it record, suggest and read",
    )  # fmt: skip
    create.add_argument("--days", type=_read_days, help="days that it holds; for ever without")
    create.add_argument("--rate", type=float, help="requests a second; any number without")
    listed = actions.add_parser("list", help="all keys, without their secrets")
    rotate = actions.add_parser("rotate", help="give a key a new secret, shown once, on stdout")
    rotate.add_argument("id", metavar="ID", help="as the list shows it")
    rotate.add_argument(
        "--overlap-s", type=int, default=3600,
        help="seconds that the former secret still holds (3600)",
    )  # fmt: skip
    revoke = actions.add_parser("revoke", help="end a key at once")
    revoke.add_argument("id", metavar="ID", help="as the list shows it")
    exported = actions.add_parser("export", help="write all keys and the audit into one file")
    exported.add_argument("file", metavar="FILE", type=Path, help="readable by its owner only")
    restored = actions.add_parser("import", help="restore such a file where there are no keys")
    restored.add_argument("file", metavar="FILE", type=Path)
    for action in (create, listed, rotate, revoke, exported, restored):
        add_common(action)


def _read_days(text: str) -> float:
    days = float(text)
    if not days > 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return days


def _run_keys(args: argparse.Namespace) -> int:
    from aftercall.models import KeyRotation, KeySpec  # heavy imports wait for `--help`
    from service.api import keys
    from service.key_archive import pack_keys, restore_keys
    from service.keys import CONSOLE, KeySpace

    content = _read_file(args.file) if args.action == "import" else b""

    async def do_action(keyring: "Keyring") -> None:
        space = KeySpace(keyring, CONSOLE)
        if args.action == "create":
            spec = KeySpec(
                name=args.name,
                workspace=args.workspace,
                scopes=args.scope or ["record", "suggest", "read"],
                expires_at=None
                if args.days is None
                else datetime.now(UTC) + timedelta(days=args.days),
                rate=args.rate,
            )
            _print_issued(await keys.create_key(space, spec))
        elif args.action == "rotate":
            rotation = KeyRotation(overlap_s=args.overlap_s)
            _print_issued(await keys.rotate_key(space, args.id, rotation))
        elif args.action == "revoke":
            await keys.revoke_key(space, args.id)
            say_line(f"revoked {args.id}; what it reported stays")
        elif args.action == "export":
            try:
                replace_file(args.file, await pack_keys(keyring.store), mode=0o600)
            except OSError as error:
                raise AftercallError(f"cannot write {args.file}: {error.strerror}") from None
            say_line(f"keys and audit are in {args.file}; secrets are not, only their hashes")
        elif args.action == "import":
            count = await restore_keys(keyring.store, content)
            say_line(f"restored {count} keys with their audit; their secrets hold as before")
        else:
            for key in (await keys.list_keys(space)).keys:
                print(_write_line(key))

    _with_keyring(args, do_action)
    return 0


def _read_file(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise AftercallError(f"cannot read {file}: {error.strerror}") from None


def _print_issued(issued: "IssuedKey") -> None:
    key = issued.key
    say_line(
        f"key {key.id} of {one_line(key.name)!r}: {', '.join(key.scopes)} in the workspace "
        f"{key.workspace}; this is its only showing, keep it as a password. While there is a key, "
        "every request needs one: give gateways theirs by `--key-file FILE`"
    )
    print(issued.secret)


def _write_line(key: "KnownKey") -> str:
    state = "holds"
    if key.revoked_at is not None:
        state = f"revoked {key.revoked_at:%Y-%m-%d}"
    elif key.expires_at is not None:
        over = key.expires_at <= datetime.now(UTC)
        state = f"{'expired' if over else 'until'} {key.expires_at:%Y-%m-%d %H:%M}"
    used = "never used" if key.used_at is None else f"used {key.used_at:%Y-%m-%d %H:%M}"
    scopes = ",".join(key.scopes)
    return f"{key.id}  {key.workspace:<16} {scopes:<26} {state:<22} {used:<22} {one_line(key.name)}"


def _with_keyring(args: argparse.Namespace, work: "Callable[[Keyring], Awaitable[None]]") -> None:
    from pydantic import ValidationError

    from aftercall.explain import explain_error
    from aftercall.models import KeySpec
    from mongo.errors import StoreError
    from service.key_archive import KeyArchiveError
    from service.keys import KeyRefusedError, Keyring, UnknownKeyError, bootstrap_key
    from service.lifecycle import COMMAND_PATIENCE_S
    from service.stores import opened_control, opened_store

    settings = settings_from(args)

    async def open_keyring() -> None:
        async with AsyncExitStack() as stack:
            control = await stack.enter_async_context(
                opened_control(settings, patience_s=COMMAND_PATIENCE_S)
            )
            keyring = Keyring(control, bootstrap_key(settings))
            try:
                log = await stack.enter_async_context(
                    opened_store(settings, beside=True, patience_s=COMMAND_PATIENCE_S)
                )
                keyring.facts = log.metadata
            except StoreError:
                pass  # a log that is not there yet needs no note of its keys
            await work(keyring)

    try:
        run(settings, open_keyring())
    except (KeyRefusedError, UnknownKeyError, KeyArchiveError) as error:
        raise AftercallError(str(error)) from None
    except ValidationError as error:
        raise AftercallError(explain_error(error, KeySpec)) from None


def _add_audit_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Who did what to keys, tools, promotions and recommendations, and what was exported or "
        "deleted; the latest first."
    )
    parser.add_argument("--limit", type=int, default=100, help="entries at most (100)")
    parser.add_argument(
        "--verify", action="store_true",
        help="see that no entry was changed or is missing; prints the latest as POSITION:HASH",
    )  # fmt: skip
    parser.add_argument(
        "--noted", metavar="POSITION:HASH",
        help="with --verify: an entry that you noted elsewhere; so an audit that was written anew "
        "as a whole is found too",
    )  # fmt: skip
    add_common(parser)


def _run_audit(args: argparse.Namespace) -> int:
    from mongo.records import AuditHead
    from service import keys
    from service.api.keys import AuditQuery, read_audit

    position, _, noted = (args.noted or "").partition(":")
    if args.noted and not (position.isdecimal() and noted):
        raise AftercallError("--noted is POSITION:HASH, as --verify printed it")
    known = AuditHead(int(position), noted) if args.noted else None
    problems: list[str] = []

    async def do_audit(keyring: "Keyring") -> None:
        if args.verify:
            facts = keyring.facts
            counted = None if facts is None else await facts.get(keys.AUDIT_FACT)
            verdict = await keys.verify_audit(keyring.store, known, keys.noted_head(counted))
            print(f"{verdict.head.position}:{verdict.head.hash}")
            if verdict.problem:
                problems.append(verdict.problem)
            return
        space = keys.KeySpace(keyring, keys.CONSOLE)
        for each in (await read_audit(space, AuditQuery(limit=args.limit))).entries:
            print(
                f"{each.position:>6}  {each.at:%Y-%m-%d %H:%M:%S}  {each.principal:<16}  "
                f"{each.workspace:<16}  {each.action:<24} {one_line(each.subject)}"
            )

    _with_keyring(args, do_audit)
    if problems:
        say_line(f"the audit is not as it was written: {problems[0]}")
        return 1
    return 0


command = Command(
    "keys", "make, list, rotate, revoke, export and restore keys", _add_arguments, _run_keys
)
audit_command = Command(
    "audit", "show who did what, and check that nobody changed the audit",
    _add_audit_arguments, _run_audit,
)  # fmt: skip
