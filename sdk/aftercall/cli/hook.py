"""`aftercall hook CLIENT`: what a coding agent's hook states goes to the service, its answer back.

The client starts this process for every call of a tool. It ends with 0 whatever happens (Gemini CLI
refuses the tool at 2 and above), prints the answer's JSON or nothing, and is over within `_ENDS_S`,
since two of the clients wait without end. Slow imports are left out: no HTTP
library, no argparse, no pathlib (ADR 61).
"""

import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress

from aftercall.places import user_place
from aftercall.running import KEY_VARIABLE, URL_VARIABLE, joined_service

_ENDS_S = 3.0
"""A learned answer takes milliseconds; a person waits for each hook."""
_CONNECT_S = 0.5
_MAX_BODY = 8 * 1024 * 1024
"""The bytes that the service takes (contract)."""
_TAIL = 96 * 1024
"""Bytes of the end of a transcript: some twenty calls."""
_OPTIONS = ("--service", "--key-file", "--mode", "--except")
_NEVER_WORKS = (404, 422)
"""Answers to a client or an option that does not exist; the message lists those that do."""
TRANSCRIPT_EVENTS = {"codex": ("PreToolUse", "PostToolUse"), "qwen": ("UserPromptSubmit",)}
"""Events at which the client's transcript states more than the payload: exit codes, failed patches
and calls that were refused before any hook."""
TRANSCRIPT = "aftercallTranscript"
"""The member of a payload that holds the end of the transcript, as text."""


class _UsageError(Exception):
    """The command line is wrong."""


def run_hook(words: list[str]) -> int:
    """Answer one event of a client: `[CLIENT, options...]`; always 0.

    `--except SERVER` passes over the MCP servers that have a gateway of their own.
    """
    signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, _ENDS_S)
    try:
        client, *options = words
        given = _read_options(options)
        payload = sys.stdin.buffer.read(_MAX_BODY + 1)
        body = _make_body(client, payload)
        if body and (answer := _ask_service(client, body, given)):
            sys.stdout.buffer.write(answer)
            sys.stdout.flush()
    except _UsageError as problem:
        _print_line(str(problem))
    except Exception as problem:  # noqa: BLE001  # a hook never stands in the way of a call
        _print_line(f"{type(problem).__name__}: {problem}")
    return 0


def _read_options(words: list[str]) -> dict[str, list[str]]:
    given: dict[str, list[str]] = {name: [] for name in _OPTIONS}
    for name, value in zip(words[::2], words[1::2], strict=False):
        if name not in given:
            options = ", ".join(_OPTIONS)
            raise _UsageError(f"{name} is no option of `aftercall hook`; there are {options}")
        given[name].append(value)
    if len(words) % 2:
        raise _UsageError(f"{words[-1]} needs a value")
    return given


def _make_body(client: str, payload: bytes) -> bytes:
    """Return the payload, with the end of the client's transcript where that states more."""
    if not payload.strip():
        return b""
    if len(payload) > _MAX_BODY:
        return b""
    if not any(each.encode() in payload for each in TRANSCRIPT_EVENTS.get(client, ())):
        return payload
    event = json.loads(payload)
    has_transcript = event.get("hook_event_name") in TRANSCRIPT_EVENTS[client]
    if has_transcript and not event.get("prompt"):
        event[TRANSCRIPT] = _end_of(event.get("transcript_path"))
    return json.dumps(event).encode()


def _end_of(path: object) -> str:
    """Return the last lines of a transcript. The client names its own file; no other is read."""
    if not isinstance(path, str) or not path.endswith(".jsonl"):
        return ""
    if not os.path.isfile(path):  # noqa: PTH113
        return ""
    with open(path, "rb") as file:  # noqa: PTH123
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL))
        whole = file.read(_TAIL)
    if size > _TAIL:
        _, _, whole = whole.partition(b"\n")
    return whole.decode("utf-8", "replace")


def _ask_service(client: str, body: bytes, given: dict[str, list[str]]) -> bytes:
    """Return what the service answers to print, or nothing."""
    if given["--service"]:
        url = given["--service"][-1]
    else:
        url = os.environ.get(URL_VARIABLE) or joined_service()
    words = [f"mode={_quote_url(each)}" for each in given["--mode"][-1:]]
    words += [f"except={_quote_url(each)}" for each in given["--except"]]
    path = f"/hooks/{_quote_url(client)}"
    if words:
        path += "?" + "&".join(words)
    headers = {"Content-Type": "application/json", "Connection": "close"}
    key = _read_key(given["--key-file"])
    if key:
        headers["Authorization"] = f"Bearer {key}"
    post = _post_securely
    if url.startswith("http://"):
        post = _post_body
    try:
        status, answer = post(url.rstrip("/"), path, headers, body)
    except OSError as problem:
        _say_once(f"no service at {url} ({problem}): calls go on without Aftercall")
        return b""
    if status in _NEVER_WORKS:
        _print_line(f"`aftercall hook {client}`: {_read_refusal(answer)}")
        return b""
    if status != 200:
        _say_once(f"the service at {url} answered {status}: {_read_refusal(answer)}")
        return b""
    _forget_said()
    if answer.strip() in (b"", b"{}", b"null"):
        return b""
    return answer


def _read_refusal(answer: bytes) -> str:
    """Return the message of a service's error, or the beginning of what else answered."""
    with suppress(ValueError, TypeError, KeyError):
        return str(json.loads(answer)["error"]["message"])
    return answer[:200].decode("utf-8", "replace")


def _post_body(url: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    """Return one request over a plain socket.

    `http.client` takes longer to import than to answer.
    """
    place, _, prefix = url.removeprefix("http://").partition("/")
    host, port = _host_and_port(place)
    if prefix:
        path = f"/{prefix}{path}"
    lines = [f"POST {path} HTTP/1.1", f"Host: {place}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    head = "\r\n".join(lines).encode("latin-1")
    with socket.create_connection((host, port), _CONNECT_S) as connection:
        connection.settimeout(_ENDS_S)
        connection.sendall(head + body)
        parts = []
        while part := connection.recv(65_536):
            parts.append(part)
    answer = b"".join(parts)
    top, _, content = answer.partition(b"\r\n\r\n")
    _, status, *_ = top.split(b" ", 2)
    return int(status), content


def _host_and_port(place: str) -> tuple[str, int]:
    host, colon, port = place.rpartition(":")
    if not colon or port.endswith("]"):
        return place.strip("[]"), 80
    return host.strip("[]"), int(port)


def _post_securely(url: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    from urllib.request import Request, urlopen  # noqa: PLC0415  # of services elsewhere alone

    if not url.startswith("https://"):
        raise ValueError(f"{url} is no address of a service")
    with urlopen(Request(url + path, body, headers), timeout=_ENDS_S) as answer:  # noqa: S310
        return answer.status, answer.read()


def _quote_url(text: str) -> str:
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "-_.") else _percent_encode(char)
        for char in text
    )


def _percent_encode(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))


def _read_key(files: list[str]) -> str:
    """Return the key of the service: of a file, the environment, or where `install` keeps it."""
    if not files and (key := os.environ.get(KEY_VARIABLE)):
        return key
    path = files[-1] if files else user_place("XDG_CONFIG_HOME", ".config") + "/api-key"
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return ""


def _away_file() -> str:
    return user_place("XDG_STATE_HOME", ".local/state") + "/hook-away"


def _say_once(line: str) -> None:
    """Say that the service is away, until it was there again."""
    with suppress(OSError):
        folder = os.path.dirname(_away_file())  # noqa: PTH120
        os.makedirs(folder, exist_ok=True, mode=0o700)  # noqa: PTH103
        with open(_away_file(), "x", encoding="utf-8") as file:  # noqa: PTH123
            file.write(f"{time.time():.0f}\n")
        _print_line(line)


def _forget_said() -> None:
    if os.path.exists(_away_file()):  # noqa: PTH110
        with suppress(OSError):
            os.unlink(_away_file())  # noqa: PTH108


def _print_line(line: str) -> None:
    print(f"aftercall: {' '.join(line.split())[:300]}", file=sys.stderr)
