"""Keys: who may do what in which workspace, and the audit of what was done.

A key is `ac_<id>_<secret>`. Its secret has 256 random bits, so that SHA-256 is all it needs to be
stored safely: there is no dictionary to try. Keys are held in memory and read again every second,
so that a request costs one hash and no question to the store.
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
from datetime import UTC, datetime
from typing import NamedTuple, get_args

from aftercall import models as m
from aftercall.change_classes import QUORUM
from aftercall.errors import ConfigurationError
from mongo.protocol import ControlStore, Metadata
from mongo.records import OWNER, AuditEntry, AuditHead, StoredKey
from service.lifecycle import Attention, keep_doing
from service.settings import Settings

logger = logging.getLogger(__name__)
DEFAULT_WORKSPACE = "default"
SCOPES: frozenset[m.Scope] = frozenset(get_args(m.Scope))
REFRESH_S = 1.0
_IDLE_S = 10.0
"""Seconds between two readings while no request comes; the first request waits for a reading."""
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
    """There is no such key, or it belongs to another workspace."""


class KeyRefusedError(PermissionError):
    """The caller may not do this with keys; the message names who may."""


class InvalidTokenError(Exception):
    """The token is no valid key; the message names the cure."""


class Access(NamedTuple):
    """The caller and its rights: those of a key, or without keys those of the machine's owner."""

    principal: str = OWNER
    """The principal in all events that it causes."""
    workspace: str = m.ALL_WORKSPACES
    scopes: frozenset[m.Scope] = SCOPES
    rate: float | None = None

    def sees_workspace(self, workspace: str) -> bool:
        """Return whether the caller may see a workspace."""
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
    """The keys of a service, in memory; one keyring for each process."""

    store: ControlStore
    bootstrap: StoredKey | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    facts: Metadata | None = None
    """Facts in the log's store, once that is open."""
    _had_keys: bool = False
    _ended: dict[str, int] = field(default_factory=dict)
    """Sessions that were signed out of, by their digest: when they would have ended."""
    _known: dict[str, _Known] = field(default_factory=dict)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    _noting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def is_required(self) -> bool:
        """Return whether there is or was a key: from then on each request needs one."""
        return self._had_keys or bool(self._known)

    async def attach_facts(self, facts: Metadata) -> None:
        """Note in the log's store that there are keys, and check there whether there were keys.

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

    async def detach_facts(self) -> None:
        """Stop using the log's store, which closes before the keys do."""
        async with self._noting:
            self.facts = None

    async def _note_facts(self) -> None:
        async with self._noting:
            if self.facts is not None:
                await self._note_in(self.facts)

    async def _note_in(self, facts: Metadata) -> None:
        # The key of the settings cannot be lost with the control store.
        stored = self._known.keys() - {self.bootstrap.id if self.bootstrap else ""}
        if stored and not await facts.get(KEYS_FACT):
            await facts.put(KEYS_FACT, "1")
        head = await self.store.read_head()
        if head.position > noted_head(await facts.get(AUDIT_FACT)).position:
            await facts.put(AUDIT_FACT, f"{head.position}:{head.hash}")
        self._ended |= _read_sessions(await facts.get(ENDED_FACT))

    async def refresh_keys(self) -> None:
        """Read the keys again, with the changes of other processes."""
        # One reading at a time: a slow one would bring back keys from before a change.
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

    def find_access(self, token: str) -> Access:
        """Return the rights that a token gives.

        Raises:
            InvalidTokenError: no key has this token, or its key is revoked or expired.
        """
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
        return self._check_live(known, now).access

    def _check_live(self, known: _Known, now: datetime) -> _Known:
        key = known.key
        if key.revoked_at is not None:
            raise InvalidTokenError("the key was revoked: ask the service's operator for another")
        if key.expires_at is not None and now >= key.expires_at:
            raise InvalidTokenError("the key has expired: ask the service's operator for another")
        known.used_at = now
        return known

    def wait_s(self, access: Access) -> float:
        """Take one request from a key's rate; return the seconds to wait, 0 if there is no need."""
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

    def charge_bytes(self, access: Access, size: int) -> None:
        """Take the cost of a body's bytes from a key's rate, which may fall below 0."""
        if access.rate is not None and (known := self._known.get(access.principal)) is not None:
            known.tokens -= size / SIZE_OF_A_REQUEST

    def make_session(self, access: Access, seconds: int) -> str:
        """Return a browser's session for a key; it holds as long as the key and its secret do."""
        until = int(self.clock().timestamp()) + seconds
        nonce = secrets.token_hex(8)  # so that each sign-in is a session of its own
        signature = self._sign_session(access.principal, until, nonce)
        return f"{access.principal}.{until}.{nonce}{signature}"

    def access_of_session(self, text: str) -> Access | None:
        """Return the rights that a session gives; None if it is unknown or not valid any more."""
        key_id, _, rest = text.partition(".")
        until, _, signature = rest.partition(".")
        known, now = self._known.get(key_id), self.clock()
        is_time = until.isascii() and until.isdecimal() and len(until) <= _MAX_UNTIL
        if known is None or not is_time or hash_of(text) in self._ended:
            return None
        nonce, signature = signature[:_NONCE], signature[_NONCE:]
        expected = self._sign_session(key_id, int(until), nonce)
        # As bytes: a cookie may hold any character.
        fits = hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))
        if not fits or int(until) < now.timestamp():
            return None
        try:
            return self._check_live(known, now).access
        except InvalidTokenError:
            return None

    async def end_session(self, text: str) -> None:
        """End a session, in all processes and also after a restart."""
        if self.access_of_session(text) is None:
            return
        now = int(self.clock().timestamp())
        self._ended[hash_of(text)] = int(text.split(".")[1])
        if self.facts is not None:
            ended = self._ended | _read_sessions(await self.facts.get(ENDED_FACT))
            latest = sorted(ended.items(), key=lambda each: -each[1])[:_MAX_ENDED]
            self._ended = {digest: until for digest, until in latest if until >= now}
            await self.facts.put(ENDED_FACT, json.dumps(self._ended))

    def _sign_session(self, key_id: str, until: int, nonce: str) -> str:
        # The stored hash signs: no further secret to keep, and a rotation ends all sessions.
        by = self._known[key_id].key.secret_hash.encode()
        return hmac.new(
            by, f"session {key_id} {until} {nonce}".encode("utf-8", "replace"), "sha256"
        ).hexdigest()

    async def note_action(self, access: Access, workspace: str, action: str, subject: str) -> None:
        """Add an action to the audit."""
        await self.store.append(
            AuditEntry(action, subject, access.principal, workspace, self.clock())
        )
        await self._note_facts()

    async def note_uses(self) -> None:
        """Write when keys were last used, for each key at most once a minute."""
        now, uses = time.monotonic(), {}
        for key_id, known in self._known.items():
            if known.used_at is not None and now - known.noted_at >= _NOTE_USE_S:
                uses[key_id], known.used_at, known.noted_at = known.used_at, None, now
        if uses:
            await self.store.note_used(uses)


class KeySpace(NamedTuple):
    """Where an operation on keys works: the keys, and the caller's rights."""

    keyring: Keyring
    access: Access


def quorum_of(settings: Settings, keyring: Keyring) -> int:
    """Return how many principals' repairs a semantic change wants.

    Without keys all agents are the owner's and teach each other (4-rules.md, Trust).
    """
    return settings.gate.quorum or (QUORUM if keyring.is_required else 1)


def noted_head(text: str | None) -> AuditHead:
    """Return the entry of the audit that the log's store names; position 0 for none."""
    position, _, digest = (text or "0:").partition(":")
    return AuditHead(int(position), digest)


def _read_sessions(text: str | None) -> dict[str, int]:
    found: dict[str, int] = json.loads(text or "{}")
    return found


def hash_of(secret: str) -> str:
    """Return the hash of a secret, which is stored instead of it."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


@asynccontextmanager
async def open_keyring(
    settings: Settings, store: ControlStore, attention: Attention
) -> AsyncIterator[Keyring]:
    """Yield the keys, and keep them up to date until the block ends.

    Raises:
        ConfigurationError: other machines can reach the service, and it has no key.
    """
    keyring = Keyring(store, bootstrap_key(settings))
    await keyring.refresh_keys()
    server = settings.server
    if not (server.is_local or keyring.is_required or server.allow_strangers):
        raise ConfigurationError(
            f"{server.host} can be reached from other machines, and there is no key: make one with "
            "`aftercall keys create NAME --scope admin --workspace '*'` (or set "
            "AFTERCALL_KEYS_BOOTSTRAP), or let anybody read and write by "
            "AFTERCALL_SERVER_ALLOW_STRANGERS=1"
        )

    async def refresh_once() -> float:
        # Known keys stay valid: a store that is away must not lock everyone out.
        await keyring.refresh_keys()
        await keyring.note_uses()
        return REFRESH_S

    paced = attention.paced(refresh_once, REFRESH_S, _IDLE_S)
    async with keep_doing(paced, "reading the keys anew", REFRESH_S, REFRESH_S):
        yield keyring


def bootstrap_key(settings: Settings) -> StoredKey | None:
    """Return the operator's key of the settings, if any.

    Raises:
        ConfigurationError: the key of the settings cannot be read.
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


class Verdict(NamedTuple):
    """The result of checking the whole audit."""

    head: AuditHead
    problem: str | None = None
    """The first entry, from the latest on, that is not as it was written; None while all are."""


async def verify_audit(
    store: ControlStore, known: AuditHead | None = None, counted: AuditHead | None = None
) -> Verdict:
    """Return whether every entry is as it was written, and no entry is missing.

    `known` is an entry that was noted elsewhere: by it an audit that was written again as a whole
    is found. `counted` is the latest entry that the log's store names: by it an audit whose end was
    cut off is found.
    """
    known = counted if known is None else known
    head = noted = await store.read_head()
    for newest in await store.list_entries(1):
        if newest.position == noted.position + 1:
            # Its writer was killed, or is about to move the head on.
            head = AuditHead(newest.position, newest.hash)
    if counted is not None and head.position < counted.position:
        return Verdict(head, f"entry {counted.position} is missing")
    expected = head
    seen = known is None or known.position == 0
    while expected.position:
        page = await store.list_entries(500, before=expected.position + 1)
        if not page:
            return Verdict(head, f"entry {expected.position} is missing")
        for entry in page:
            position = entry.position
            if position != expected.position:
                return Verdict(head, f"entry {expected.position} is missing")
            before = AuditHead(position - 1, entry.previous)
            computed = entry.chain_to(before).hash
            is_changed = not computed == entry.hash == expected.hash
            if position == noted.position:
                is_changed |= entry.hash != noted.hash
            if is_changed:
                return Verdict(head, f"entry {position} was changed")
            seen = seen or known == (position, entry.hash)
            expected = before
    if not seen and known is not None:
        return Verdict(head, f"entry {known.position} is not the one that was noted")
    return Verdict(head)
