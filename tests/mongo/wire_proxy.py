"""A way to MongoDB that fails at one statement, as a replica set does when its primary changes.

It reads MongoDB's wire protocol (OP_MSG, and OP_QUERY of the first hello), counts the statements,
and fails at the one that it is told. With `as_set` the driver is shown a replica set of one member,
the proxy: then it writes with transaction numbers, and sends again by itself what may be sent
again. Where the server behind is no set, the proxy takes the numbers off and answers the second
sending as a set would: with what the first one came to. Without `as_set` a set looks like a server
that stands alone.
"""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal, NamedTuple, cast

import bson
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.uri_parser import parse_uri

Document = dict[str, Any]
Fault = Literal[
    "not primary", "stepped down", "interrupted", "interrupted after", "cut before", "cut after"
]
_CODES: dict[str, tuple[int, str]] = {
    "not primary": (10107, "NotWritablePrimary"),
    "stepped down": (189, "PrimarySteppedDown"),
    "interrupted": (11602, "InterruptedDueToReplStateChange"),
    "interrupted after": (11602, "InterruptedDueToReplStateChange"),
}
FAULTS: tuple[Fault, ...] = (*_CODES, "cut before", "cut after")  # type: ignore[arg-type]
"""`after`: the server has done it, the client cannot know."""
_HELLOS = {"hello", "ismaster", "isMaster"}
_NOT_COUNTED = _HELLOS | {"ping", "endSessions", "saslStart", "saslContinue", "killCursors"}
_WRITES = {"insert", "update", "delete", "findAndModify", "create", "createIndexes", "drop"}
_QUERY, _REPLY, _MESSAGE = 2004, 1, 2013
_MORE_TO_COME = 2
_OF_A_SET = (
    "setName", "hosts", "setVersion", "me", "primary", "electionId", "passives", "arbiters", "tags",
    "lastWrite", "secondary",
)  # fmt: skip
"""What a member of a set says of it when it is greeted."""
_AS_IT_IS = CodecOptions(document_class=RawBSONDocument)
SECONDARY = {"isWritablePrimary": False, "ismaster": False, "secondary": True}


class _Message(NamedTuple):
    number: int
    operation: int
    body: bytes

    @property
    def document(self) -> Document:
        """The command or answer, with its sequences of documents in their places."""
        if self.operation == _QUERY:
            name_end = self.body.index(b"\0", 4)
            return dict(bson.decode(self.body[name_end + 9 :]))
        if self.operation == _REPLY:
            return dict(bson.decode(self.body[20:]))
        at, found = 4, Document()
        while at < len(self.body):
            (size,) = struct.unpack_from("<i", self.body, at + 1)
            section = self.body[at + 1 : at + 1 + size]
            if self.body[at] == 0:
                found |= bson.decode(section)
            else:
                name_end = section.index(b"\0", 4)
                documents = bson.decode_all(section[name_end + 1 :], _AS_IT_IS)
                found[section[4:name_end].decode()] = documents
            at += 1 + size
        return found


class WireProxy:
    """Carries statements to a server; its attributes may be set at any time."""

    def __init__(self, host: str, port: int, *, as_set: bool) -> None:
        self._host, self._upstream_port, self._as_set = host, port, as_set
        self._is_set = False
        """Whether the server behind is a member of one."""
        self.port = 0
        self.statements: list[Document] = []
        """Since `fail_at` was called."""
        self.elections = 0
        """Hellos that are still to be answered as a secondary does, after each step down."""
        self.election_length = 0
        self.refuses: Callable[[Document], bool] = lambda _: False
        """Statements that are answered as by a server which does not know them."""
        self.wire_version: int | None = None
        """What a hello says instead of the server's own."""
        self._fail_at: tuple[int, Fault] | None = None
        self._answers: dict[tuple[bytes, int], Document] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """End the connections that are left."""
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def fail_at(self, number: int | None, fault: Fault = "cut after") -> None:
        """Count statements from 0 anew, and fail once, at that one; at none where that is None."""
        self.statements.clear()
        self._fail_at = None if number is None else (number, fault)

    async def serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        """One connection."""
        self._tasks.add(cast("asyncio.Task[Any]", asyncio.current_task()))
        server, to_server = await asyncio.open_connection(self._host, self._upstream_port)
        with contextlib.suppress(asyncio.IncompleteReadError, asyncio.CancelledError, OSError):
            while True:
                message = await _read(client)
                answer = await self._answer(message, server, to_server)
                if answer is None:
                    break
                _write(to_client, message, answer)
                await to_client.drain()
        for each in (to_client, to_server):
            each.transport.abort()

    async def _answer(
        self, message: _Message, server: asyncio.StreamReader, to_server: asyncio.StreamWriter
    ) -> Document | None:
        """What the client is answered; None for a connection that is cut."""
        command = message.document
        name = next(iter(command))
        fault: Fault | None = None
        if name not in _NOT_COUNTED:
            if self._fail_at and len(self.statements) == self._fail_at[0]:
                fault = self._fail_at[1]
            self.statements.append(command)
        if fault == "cut before":
            return None
        if self.refuses(command):
            return {"ok": 0.0, "code": 238, "codeName": "NotImplemented", "errmsg": "not known"}
        if fault in ("not primary", "stepped down", "interrupted"):
            self.elections = self.election_length
            return _failed(fault, command, ok=0.0)
        answer = await self._asked(message, command, server, to_server)
        if name in _HELLOS:
            return self._as_member(answer)
        if fault == "cut after":
            return None
        if fault == "interrupted after":
            self.elections = self.election_length
            if name not in _WRITES:
                return _failed(fault, command, ok=0.0)
            code, word = _CODES[fault]
            concern = {"code": code, "codeName": word, "errmsg": word}
            return answer | _labels(command) | {"writeConcernError": concern}
        return answer

    async def _asked(
        self,
        message: _Message,
        command: Document,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> Document:
        """The server's answer; of a statement that is sent again, the one that it had."""
        again, body = None, message.body
        if "txnNumber" in command and not self._is_set:
            again, body = (bytes(command["lsid"]["id"]), int(command["txnNumber"])), _bare(body)
            if again in self._answers:
                return self._answers[again]
        to_server.write(_packed(message.number, 0, message.operation, body))
        answer = (await _read(server)).document
        if again is not None and answer.get("ok"):
            self._answers[again] = answer
        return answer

    def _as_member(self, hello: Document) -> Document:
        """Without streaming; and as the only member of a set, where one is to be shown."""
        self._is_set = "setName" in hello
        for name in ("topologyVersion", *_OF_A_SET):
            hello.pop(name, None)
        if self._as_set:
            me = f"127.0.0.1:{self.port}"
            hello |= {"setName": "rs", "hosts": [me], "me": me, "primary": me, "setVersion": 1}
        if self.wire_version is not None:
            hello |= {"minWireVersion": 0, "maxWireVersion": self.wire_version}
        if self.elections:
            self.elections -= 1
            hello |= SECONDARY
        return hello


def _bare(body: bytes) -> bytes:
    """A command without its transaction number, which a server that stands alone refuses."""
    at, found = 4, body[:4]
    while at < len(body):
        (size,) = struct.unpack_from("<i", body, at + 1)
        section = body[at + 1 : at + 1 + size]
        if body[at] == 0:
            section = bson.encode(
                {k: v for k, v in bson.decode(section).items() if k != "txnNumber"}
            )
        found += body[at : at + 1] + section
        at += 1 + size
    return found


def _failed(fault: Fault, command: Document, *, ok: float) -> Document:
    code, word = _CODES[fault]
    return {"ok": ok, "code": code, "codeName": word, "errmsg": word, **_labels(command)}


def _labels(command: Document) -> Document:
    return {"errorLabels": ["RetryableWriteError"]} if "txnNumber" in command else {}


async def _read(source: asyncio.StreamReader) -> _Message:
    size, number, _, operation = struct.unpack("<iiii", await source.readexactly(16))
    return _Message(number, operation, await source.readexactly(size - 16))


def _write(to: asyncio.StreamWriter, asked: _Message, answer: Document) -> None:
    if asked.operation == _QUERY:
        head = struct.pack("<iqii", 8, 0, 0, 1)
        to.write(_packed(0, asked.number, _REPLY, head + bson.encode(answer)))
    else:
        body = struct.pack("<iB", 0, 0) + bson.encode(answer)
        to.write(_packed(0, asked.number, _MESSAGE, body))


def _packed(number: int, answers: int, operation: int, body: bytes) -> bytes:
    return struct.pack("<iiii", 16 + len(body), number, answers, operation) + body


@asynccontextmanager
async def wire_proxy_to(uri: str, *, as_set: bool) -> AsyncIterator[tuple[WireProxy, str] | None]:
    """A proxy to a server, and the address through it; None where it cannot be read on the way."""
    parts = None if uri.startswith("mongodb+srv://") else parse_uri(uri)
    if parts is None or parts["options"].get("tls"):
        yield None
        return
    with MongoClient[Document](uri, serverSelectionTimeoutMS=10_000) as client:
        client.admin.command("ping")
        host, port = client.address or parts["nodelist"][0]  # the primary of a set
    proxy = WireProxy(host, port or 27017, as_set=as_set)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    before, _, rest = uri.removeprefix("mongodb://").rpartition("@")
    path, _, query = rest.partition("/")[2].partition("?")
    ours = ("replicaset=", "directconnection=", "servermonitoringmode=")
    wanted = [each for each in query.split("&") if each and not each.lower().startswith(ours)]
    wanted += ["serverMonitoringMode=poll", "replicaSet=rs" if as_set else "directConnection=true"]
    user = f"{before}@" if before else ""
    try:
        yield proxy, f"mongodb://{user}127.0.0.1:{proxy.port}/{path}?{'&'.join(wanted)}"
    finally:
        server.close()
        await proxy.close()
