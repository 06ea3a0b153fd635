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
from typing import TYPE_CHECKING, Any

from aftercall.cli import Command, one_line, read_name, read_number
from aftercall.errors import AftercallError
from service.cli.options import add_common, add_force, refuse_existing, run, say_line, settings_from

if TYPE_CHECKING:
    from aftercall.models import IssuedKey, KnownKey
    from service.keys import KeySpace

_SCOPES = ("record", "suggest", "read", "admin")
_MOST_DAYS = 36_500
"""A hundred years; a key for ever names no days."""
_MOST_RATE, _MOST_OVERLAP_S, _MOST_ENTRIES = 1_000_000, 30 * 86_400, 1_000
"""Bounds of `KeySpec.rate`, `KeyRotation.overlap_s` and `GET /audit`, said before they are sent."""
_AS_LISTED = "as the list shows it"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Keys of a service. Once there is one, every request needs a key; a running service "
        "notices changes within a second."
    )
    actions = parser.add_subparsers(metavar="ACTION", dest="action", required=True)

    def add_action(name: str, do: Callable[..., None], text: str) -> argparse.ArgumentParser:
        added: argparse.ArgumentParser = actions.add_parser(name, help=text)
        added.set_defaults(do=do)
        return added

    create = add_action("create", _create_key, "make a key; its secret is shown once, on stdout")
    create.add_argument("name", metavar="NAME", type=read_name, help="whose it is, in words")
    create.add_argument(
        "--workspace", default="default",
        help="the one that it reads and writes (default); '*' for all of them, an operator's key",
    )  # fmt: skip
    create.add_argument(
        "--scope", choices=_SCOPES, action="append",
        help="may be given again; without it record, suggest and read",
    )  # fmt: skip
    create.add_argument(
        "--days", type=read_number(0, _MOST_DAYS, whole=False, above=True),
        help="days that it holds; for ever without",
    )  # fmt: skip
    create.add_argument(
        "--rate", type=read_number(0, _MOST_RATE, whole=False, above=True),
        help="requests a second; any number without",
    )  # fmt: skip
    listed = add_action("list", _list_keys, "all keys, without their secrets")
    rotate = add_action("rotate", _rotate_key, "give a key a new secret, shown once, on stdout")
    rotate.add_argument("id", metavar="ID", help=_AS_LISTED)
    rotate.add_argument(
        "--overlap-s", type=read_number(0, _MOST_OVERLAP_S), default=3600,
        help="seconds that the former secret still holds (3600)",
    )  # fmt: skip
    revoke = add_action("revoke", _revoke_key, "end a key at once")
    revoke.add_argument("id", metavar="ID", help=_AS_LISTED)
    exported = add_action("export", _export_keys, "write all keys and the audit into one file")
    exported.add_argument("file", metavar="FILE", type=Path, help="readable by its owner only")
    add_force(exported)
    restored = add_action("import", _import_keys, "restore such a file where there are no keys")
    restored.add_argument("file", metavar="FILE", type=Path)
    for action in (create, listed, rotate, revoke, exported, restored):
        add_common(action)


def _run_keys(args: argparse.Namespace) -> int:
    args.do(args)
    return 0


# Each action imports what it needs: `aftercall --help` loads this module.


def _create_key(args: argparse.Namespace) -> None:
    from aftercall.models import KeySpec
    from service.key_changes import issue_key

    days = args.days
    given: dict[str, Any] = {
        "name": args.name,
        "workspace": args.workspace,
        "scopes": args.scope or ["record", "suggest", "read"],
        "expires_at": None if days is None else datetime.now(UTC) + timedelta(days=days),
        "rate": args.rate,
    }

    async def create_key(space: "KeySpace") -> None:
        _print_issued(await issue_key(space, KeySpec(**given)))

    _with_keys(args, create_key)


def _list_keys(args: argparse.Namespace) -> None:
    from service.key_changes import visible_keys

    async def print_keys(space: "KeySpace") -> None:
        for key in await visible_keys(space):
            print(_write_line(key))

    _with_keys(args, print_keys)


def _rotate_key(args: argparse.Namespace) -> None:
    from aftercall.models import KeyRotation
    from service.key_changes import renew_secret

    async def rotate_key(space: "KeySpace") -> None:
        _print_issued(await renew_secret(space, args.id, KeyRotation(overlap_s=args.overlap_s)))

    _with_keys(args, rotate_key)


def _revoke_key(args: argparse.Namespace) -> None:
    from service.key_changes import end_key

    async def revoke_key(space: "KeySpace") -> None:
        await end_key(space, args.id)
        say_line(f"revoked {args.id}; what it reported stays")

    _with_keys(args, revoke_key)


def _export_keys(args: argparse.Namespace) -> None:
    from service.archive import open_written
    from service.key_archive import pack_keys

    refuse_existing(args)

    async def export_keys(space: "KeySpace") -> None:
        with open_written(str(args.file), packed=False) as stream:
            stream.write(await pack_keys(space.keyring.store))
        say_line(f"keys and audit are in {args.file}; secrets are not, only their hashes")

    _with_keys(args, export_keys)


def _import_keys(args: argparse.Namespace) -> None:
    from service.key_archive import restore_keys

    try:
        content = args.file.read_bytes()
    except OSError as error:
        raise AftercallError(f"cannot read {args.file}: {error.strerror}") from None

    async def import_keys(space: "KeySpace") -> None:
        count = await restore_keys(space.keyring.store, content)
        say_line(f"restored {count} keys with their audit; their secrets hold as before")

    _with_keys(args, import_keys)


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


def _with_keys(args: argparse.Namespace, work: "Callable[[KeySpace], Awaitable[None]]") -> None:
    from pydantic import ValidationError

    from aftercall.explain import explain_error
    from aftercall.models import KeySpec
    from mongo.errors import StoreError
    from service.databases import opened_control, opened_store
    from service.key_archive import KeyArchiveError
    from service.keys import (
        CONSOLE,
        KeyRefusedError,
        Keyring,
        KeySpace,
        UnknownKeyError,
        bootstrap_key,
    )
    from service.lifecycle import COMMAND_PATIENCE_S

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
            await work(KeySpace(keyring, CONSOLE))

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
    parser.add_argument(
        "--limit", type=read_number(1, _MOST_ENTRIES), default=100, help="entries at most (100)"
    )
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
    from service.key_changes import visible_entries

    position, _, noted = (args.noted or "").partition(":")
    if args.noted and not (position.isdecimal() and noted):
        raise AftercallError("--noted is POSITION:HASH, as --verify printed it")
    known = AuditHead(int(position), noted) if args.noted else None
    problems: list[str] = []

    async def do_audit(space: "KeySpace") -> None:
        if args.verify:
            keyring = space.keyring
            facts = keyring.facts
            counted = None if facts is None else await facts.get(keys.AUDIT_FACT)
            verdict = await keys.verify_audit(keyring.store, known, keys.noted_head(counted))
            print(f"{verdict.head.position}:{verdict.head.hash}")
            if verdict.problem:
                problems.append(verdict.problem)
            return
        for each in await visible_entries(space, args.limit):
            print(
                f"{each.position:>6}  {each.at:%Y-%m-%d %H:%M:%S}  {each.principal:<16}  "
                f"{each.workspace:<16}  {each.action:<24} {one_line(each.subject)}"
            )

    _with_keys(args, do_audit)
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
