"""Keys: who may ask what in which workspace, and the audit of what was done.

A key is `ac_<id>_<secret>`. Its secret has 256 random bits, so that SHA-256 is all it needs to be
stored safely: there is no dictionary to try. Keys are held in memory and read anew every second, so
that a request costs one hash and no question to the store.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, get_args

from aftercall import models as m
from aftercall.change_classes import QUORUM
from aftercall.errors import ConfigurationError
from mongo.protocol import ControlStore, Metadata
from mongo.records import OWNER, AuditEntry, AuditHead, StoredKey
from service.lifecycle import Attention, beside
from service.settings import Settings

logger = logging.getLogger(__name__)
DEFAULT_WORKSPACE = "default"
SCOPES: frozenset[m.Scope] = frozenset(get_args(m.Scope))
REFRESH_S = 1.0
_IDLE_S = 10.0
"""Between two readings while no one asks; the first who does waits for one."""
"""Seconds until a service knows of a key that another process made, changed or revoked."""
_NOTE_USE_S = 60.0
_BURST_S = 5.0
_TOKEN = re.compile(r"ac_([0-9a-f]{16})_([A-Za-z0-9_-]{32,128})", re.ASCII)
BOOTSTRAP = "bootstrap"
KEYS_FACT, AUDIT_FACT, ENDED_FACT = "keys", "audit_head", "ended_sessions"
"""Facts in the log's store, which stays where the control store is lost: that there are keys, the
latest entry of the audit as `POSITION:HASH`, and the sessions that were signed out of."""
_MAX_ENDED = 10_000
_NONCE = 16
_MAX_UNTIL = 12
"""Digits of a session's end in seconds since 1970."""
SIZE_OF_A_REQUEST = 64 * 1024
"""Bytes of a body that count as one more request in a key's rate."""
_MAKE_ONE = 'echo "ac_$(openssl rand -hex 8)_$(openssl rand -hex 32)"'


class UnknownKeyError(LookupError):
    """No such key, or one of another workspace."""


class KeyRefusedError(PermissionError):
    """What is asked for is not this caller's to do; the message states whose it is."""


class InvalidTokenError(Exception):
    """No key that holds; the message states what to do."""


class Access(NamedTuple):
    """Who asks, and what he may: a key, or without keys the machine's owner."""

    principal: str = OWNER
    """As in all events that come of it."""
    workspace: str = m.ALL_WORKSPACES
    scopes: frozenset[m.Scope] = SCOPES
    rate: float | None = None

    def sees(self, workspace: str) -> bool:
        """Return whether what lies in a workspace is there for this caller."""
        return self.workspace in (m.ALL_WORKSPACES, workspace)


ANYBODY = Access()
CONSOLE = Access("console")
"""The command line, which opens the control store itself."""


@dataclass(slots=True)
class _Known:
    key: StoredKey
    access: Access
    tokens: float = 0.0
    refilled_at: float = 0.0
    noted_at: float = 0.0
    """When its use was last written."""
    used_at: datetime | None = None


@dataclass(slots=True)
class Keyring:
    """The keys that hold, in memory; one for each process."""

    store: ControlStore
    bootstrap: StoredKey | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    facts: Metadata | None = None
    """Of the log's store, once that is open."""
    _had_keys: bool = False
    _ended: dict[str, int] = field(default_factory=dict)
    """Sessions that were signed out of, by their digest: when they would have ended."""
    _known: dict[str, _Known] = field(default_factory=dict)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _noting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_required(self) -> bool:
        """Return whether there is a key, or was one: from then on no one is answered without."""
        return self._had_keys or bool(self._known)

    async def attach(self, facts: Metadata) -> None:
        """Note in the log's store that there are keys, and look there whether there were.

        Raises:
            ConfigurationError: there were keys, and the control store has none.
        """
        if not self._known and await facts.get(KEYS_FACT):
            raise ConfigurationError(
                "this store had keys, and their file (control.sqlite3, or the collection KEYS) is "
                "missing or empty, so nobody is answered: restore it from a backup, or make a new "
                "key with `aftercall keys create NAME --scope admin --workspace '*'`"
            )
        self.facts = facts
        await self._note_facts()

    async def detach(self) -> None:
        """Use the log's store no more, which closes before the keys do."""
        async with self._noting:
            self.facts = None

    async def _note_facts(self) -> None:
        async with self._noting:
            if self.facts is not None:
                await self._note_in(self.facts)

    async def _note_in(self, facts: Metadata) -> None:
        # The key of the settings is not one that can be lost with the control store.
        stored = self._known.keys() - {self.bootstrap.id if self.bootstrap else ""}
        if stored and not await facts.get(KEYS_FACT):
            await facts.put(KEYS_FACT, "1")
        head = await self.store.read_head()
        if head.position > noted_head(await facts.get(AUDIT_FACT)).position:
            await facts.put(AUDIT_FACT, f"{head.position}:{head.hash}")
        self._ended |= _sessions(await facts.get(ENDED_FACT))

    async def refresh(self) -> None:
        """Take up what any process changed."""
        # One after the other: a slow one would bring back what stood there before a change.
        async with self._reading:
            keys = await self.store.list_keys()
            if self.bootstrap is not None:
                keys.append(self.bootstrap)
            known = {}
            for key in (replace(each, used_at=None) for each in keys):
                if (before := self._known.get(key.id)) is None or before.key != key:
                    scopes = SCOPES if "admin" in key.scopes else SCOPES & {*key.scopes}
                    access = Access(key.id, key.workspace, scopes, key.rate)
                    before = _Known(key, access, tokens=(key.rate or 0) * _BURST_S)
                known[key.id] = before
            self._known, self._had_keys = known, self.is_required or bool(known)
        await self._note_facts()

    def access(self, token: str) -> Access:
        """Whose key it is; an `InvalidTokenError` where it is no caller's, or does not hold now."""
        if not token:
            raise InvalidTokenError(
                "a key is needed: set AFTERCALL_API_KEY, or send it in the header Authorization, "
                "behind the word Bearer and a space; a gateway, which a client starts without your "
                "variables, takes it by --key-file FILE"
            )
        parts = _TOKEN.fullmatch(token)
        known = self._known.get(parts[1]) if parts else None
        if parts is None or known is None:
            raise InvalidTokenError("this is no key of this service: ask its operator for one")
        key, now = known.key, self.clock()
        given = hash_of(parts[2])
        is_former = key.former_until is not None and now < key.former_until
        fits = hmac.compare_digest(given, key.secret_hash)
        if not fits and not (is_former and hmac.compare_digest(given, key.former_hash)):
            raise InvalidTokenError("this is no key of this service: ask its operator for one")
        return self._live(known, now).access

    def _live(self, known: _Known, now: datetime) -> _Known:
        key = known.key
        if key.revoked_at is not None:
            raise InvalidTokenError("the key was revoked: ask the service's operator for another")
        if key.expires_at is not None and now >= key.expires_at:
            raise InvalidTokenError("the key has expired: ask the service's operator for another")
        known.used_at = now
        return known

    def wait_s(self, access: Access) -> float:
        """Take one request of a key's rate; the seconds until there is one, 0 when there was."""
        if access.rate is None or (known := self._known.get(access.principal)) is None:
            return 0.0
        now = time.monotonic()
        most = max(1.0, access.rate * _BURST_S)
        gained = (now - known.refilled_at) * access.rate
        known.tokens, known.refilled_at = min(most, known.tokens + gained), now
        if known.tokens < 1:
            return (1 - known.tokens) / access.rate
        known.tokens -= 1
        return 0.0

    def charge(self, access: Access, size: int) -> None:
        """Take what the bytes of a body cost from a key's rate; it may come to owe some."""
        if access.rate is not None and (known := self._known.get(access.principal)) is not None:
            known.tokens -= size / SIZE_OF_A_REQUEST

    def session(self, access: Access, seconds: int) -> str:
        """Return what a browser keeps of a key: it holds as long as the key and its secret do."""
        until = int(self.clock().timestamp()) + seconds
        nonce = secrets.token_hex(8)  # so that each sign-in is a session of its own
        return (
            f"{access.principal}.{until}.{nonce}{self._signature(access.principal, until, nonce)}"
        )

    def access_of_session(self, text: str) -> Access | None:
        """Whose session it is; None when it is no caller's, or does not hold now."""
        key_id, _, rest = text.partition(".")
        until, _, signature = rest.partition(".")
        known, now = self._known.get(key_id), self.clock()
        is_time = until.isascii() and until.isdecimal() and len(until) <= _MAX_UNTIL
        if known is None or not is_time or hash_of(text) in self._ended:
            return None
        nonce, signature = signature[:_NONCE], signature[_NONCE:]
        expected = self._signature(key_id, int(until), nonce)
        # As bytes: a cookie may hold any character.
        fits = hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))
        if not fits or int(until) < now.timestamp():
            return None
        try:
            return self._live(known, now).access
        except InvalidTokenError:
            return None

    async def end_session(self, text: str) -> None:
        """Let a session hold no more, in all processes and after a restart."""
        if self.access_of_session(text) is None:
            return
        now = int(self.clock().timestamp())
        self._ended[hash_of(text)] = int(text.split(".")[1])
        if self.facts is not None:
            ended = self._ended | _sessions(await self.facts.get(ENDED_FACT))
            latest = sorted(ended.items(), key=lambda each: -each[1])[:_MAX_ENDED]
            self._ended = {digest: until for digest, until in latest if until >= now}
            await self.facts.put(ENDED_FACT, json.dumps(self._ended))

    def _signature(self, key_id: str, until: int, nonce: str) -> str:
        # By the hash that is stored: no further secret to keep, and a rotation ends all sessions.
        by = self._known[key_id].key.secret_hash.encode()
        return hmac.new(
            by, f"session {key_id} {until} {nonce}".encode("utf-8", "replace"), "sha256"
        ).hexdigest()

    async def note(self, access: Access, workspace: str, action: str, subject: str) -> None:
        """Add to the audit what was done."""
        await self.store.append(
            AuditEntry(action, subject, access.principal, workspace, self.clock())
        )
        await self._note_facts()

    async def note_uses(self) -> None:
        """Write when keys were last used, of each at most once a minute."""
        now, uses = time.monotonic(), {}
        for key_id, known in self._known.items():
            if known.used_at is not None and now - known.noted_at >= _NOTE_USE_S:
                uses[key_id], known.used_at, known.noted_at = known.used_at, None, now
        if uses:
            await self.store.note_used(uses)


def quorum_of(settings: Settings, keyring: Keyring) -> int:
    """Return how many principals' repairs a semantic change wants.

    Without keys all agents are the owner's and teach each other (4-rules.md, Trust).
    """
    return settings.gate.quorum or (QUORUM if keyring.is_required else 1)


def noted_head(text: str | None) -> AuditHead:
    """Return the entry of the audit that the log's store names; position 0 for none."""
    position, _, digest = (text or "0:").partition(":")
    return AuditHead(int(position), digest)


def _sessions(text: str | None) -> dict[str, int]:
    found: dict[str, int] = json.loads(text or "{}")
    return found


def hash_of(secret: str) -> str:
    """Return what is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


@asynccontextmanager
async def open_keyring(
    settings: Settings, store: ControlStore, attention: Attention
) -> AsyncIterator[Keyring]:
    """Keys, kept up to date; a `ConfigurationError` where strangers reach a service without one."""
    keyring = Keyring(store, bootstrap_key(settings))
    await keyring.refresh()
    server = settings.server
    if not (server.is_local or keyring.is_required or server.allow_strangers):
        raise ConfigurationError(
            f"{server.host} can be reached from other machines, and there is no key: make one with "
            "`aftercall keys create NAME --scope admin --workspace '*'` (or set "
            "AFTERCALL_KEYS_BOOTSTRAP), or let anybody read and write by "
            "AFTERCALL_SERVER_ALLOW_STRANGERS=1"
        )

    async def step() -> float:
        # Those that are known hold on: a store that is away must not lock everyone out.
        await keyring.refresh()
        await keyring.note_uses()
        return REFRESH_S

    paced = attention.paced(step, REFRESH_S, _IDLE_S)
    async with beside(paced, "reading the keys anew", REFRESH_S, REFRESH_S):
        yield keyring


def bootstrap_key(settings: Settings) -> StoredKey | None:
    """Return the operator's key of the settings, if any.

    A `ConfigurationError` if it cannot be read.
    """
    text = given.get_secret_value() if (given := settings.keys.bootstrap) is not None else ""
    if not text and (path := settings.keys.bootstrap_file) is not None:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"AFTERCALL_KEYS_BOOTSTRAP_FILE: {error}") from None
    if not text:
        return None
    if (parts := _TOKEN.fullmatch(text.strip())) is None:
        raise ConfigurationError(
            "AFTERCALL_KEYS_BOOTSTRAP is no key: it is ac_, 16 hexadecimal digits, _ and at least "
            f"32 letters and digits of chance, such as from {_MAKE_ONE}"
        )
    long_ago = datetime.fromtimestamp(0, UTC)
    return StoredKey(
        parts[1], BOOTSTRAP, m.ALL_WORKSPACES, ("admin",), hash_of(parts[2]), long_ago
    )  # fmt: skip


# Operations: for the routes and for the command line, which has no service.


async def list_keys(keyring: Keyring, access: Access) -> m.KeyList:
    """Return the keys of the caller's workspace, revoked ones too."""
    keys = await keyring.store.list_keys()
    if keyring.bootstrap is not None:
        keys.insert(0, keyring.bootstrap)
    return m.KeyList(keys=[_shown(key) for key in keys if access.sees(key.workspace)])


async def create_key(keyring: Keyring, access: Access, spec: m.KeySpec) -> m.IssuedKey:
    """Return a new key; for the caller's workspace, or by an operator for any.

    An `UnknownKeyError` where it is for another workspace; a `KeyRefusedError` where the caller has
    no key himself, so that anyone could be he.
    """
    _may_change(access)
    if not access.sees(spec.workspace):
        raise UnknownKeyError(f"there is no workspace {spec.workspace!r} for this key")
    secret = secrets.token_urlsafe(32)
    key = StoredKey(
        id=secrets.token_hex(8),
        name=spec.name,
        workspace=spec.workspace,
        scopes=tuple(sorted(set(spec.scopes))),
        secret_hash=hash_of(secret),
        created_at=keyring.clock(),
        expires_at=spec.expires_at,
        rate=spec.rate,
    )
    return await _put(keyring, access, "key.create", key, None, secret)


async def rotate_key(
    keyring: Keyring, access: Access, key_id: str, rotation: m.KeyRotation
) -> m.IssuedKey:
    """Return a new secret; the former one holds on for a while. Raises as `revoke_key`."""
    before = await _one(keyring, access, key_id)
    now, secret = keyring.clock(), secrets.token_urlsafe(32)
    key = replace(
        before,
        secret_hash=hash_of(secret),
        former_hash=before.secret_hash,
        former_until=now + timedelta(seconds=rotation.overlap_s),
    )
    return await _put(keyring, access, "key.rotate", key, before, secret)


async def revoke_key(keyring: Keyring, access: Access, key_id: str) -> None:
    """End a key at once; it stays listed.

    An `UnknownKeyError` where there is no such key, or it was revoked before; a `KeyRefusedError`
    where it is the bootstrap key, or the caller has none.
    """
    before = await _one(keyring, access, key_id)
    key = replace(before, revoked_at=keyring.clock())
    await _put(keyring, access, "key.revoke", key, before, "")


async def audit(
    keyring: Keyring, access: Access, *, limit: int, before: int | None = None
) -> m.AuditList:
    """Entries of the caller's workspace, or of all for an operator, the latest first."""
    only = None if access.workspace == m.ALL_WORKSPACES else access.workspace
    entries = await keyring.store.list_entries(limit, before=before, workspace=only)
    return m.AuditList(
        entries=[m.AuditRecord.model_validate(each, from_attributes=True) for each in entries]
    )


class Verdict(NamedTuple):
    """What a look at the whole audit has shown."""

    head: AuditHead
    problem: str | None = None
    """The first entry, from the latest on, that is not as it was written; None while all are."""


async def verify_audit(
    store: ControlStore, known: AuditHead | None = None, counted: AuditHead | None = None
) -> Verdict:
    """Return whether every entry is as it was written, and none is missing.

    By `known`, an entry that was noted elsewhere, an audit written again as a whole is found too;
    by `counted`, the latest entry that the log's store names, one whose end was cut off.
    """
    known = counted if known is None else known
    head = noted = await store.read_head()
    if (newest := await store.list_entries(1)) and newest[0].position == noted.position + 1:
        # Its writer was killed, or is about to move the head on.
        head = AuditHead(newest[0].position, newest[0].hash)
    if counted is not None and head.position < counted.position:
        return Verdict(head, f"entry {counted.position} is missing")
    expected = head
    seen = known is None or known.position == 0
    while expected.position:
        if not (page := await store.list_entries(500, before=expected.position + 1)):
            return Verdict(head, f"entry {expected.position} is missing")
        for entry in page:
            if entry.position != expected.position:
                return Verdict(head, f"entry {expected.position} is missing")
            before = AuditHead(entry.position - 1, entry.previous)
            is_chained = entry.chain_to(before).hash == entry.hash == expected.hash
            if not is_chained or (entry.position == noted.position and entry.hash != noted.hash):
                return Verdict(head, f"entry {entry.position} was changed")
            seen = seen or known == (entry.position, entry.hash)
            expected = before
    if not seen and known is not None:
        return Verdict(head, f"entry {known.position} is not the one that was noted")
    return Verdict(head)


def _may_change(access: Access) -> None:
    if access == ANYBODY:
        raise KeyRefusedError(
            "the first key is made on the service's own machine: run `aftercall keys create`"
        )


async def _one(keyring: Keyring, access: Access, key_id: str) -> StoredKey:
    _may_change(access)
    if keyring.bootstrap is not None and key_id == keyring.bootstrap.id and access.sees("*"):
        raise KeyRefusedError(
            "this key is of the service's settings: change AFTERCALL_KEYS_BOOTSTRAP and restart it"
        )
    for key in await keyring.store.list_keys():
        if key.id == key_id and access.sees(key.workspace) and key.revoked_at is None:
            return key
    raise UnknownKeyError("there is no such key; GET /keys and `aftercall keys list` show those")


async def _put(
    keyring: Keyring,
    access: Access,
    action: str,
    key: StoredKey,
    before: StoredKey | None,
    secret: str,
) -> m.IssuedKey:
    entry = AuditEntry(action, key.id, access.principal, key.workspace, keyring.clock())
    await keyring.store.append(entry, key, before)
    await keyring.refresh()
    return m.IssuedKey(key=_shown(key), secret=f"ac_{key.id}_{secret}" if secret else "")


def _shown(key: StoredKey) -> m.KnownKey:
    fields = {name: getattr(key, name) for name in m.KnownKey.model_fields}
    return m.KnownKey.model_validate(fields | {"scopes": list(key.scopes)})
