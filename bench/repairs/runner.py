"""Asks an entry: a command that answers JSON lines, or a URL that answers JSON."""

import json
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx2

from bench.repairs.judge import Answer

SECONDS = 120.0
"""For one answer, the start of the entry included."""
_SHOWN = 2_000
Json = dict[str, Any]


class EntryError(RuntimeError):
    """An entry that broke the protocol; the message says how, and what it printed."""


def ask_command(
    command: Sequence[str] | str, questions: Sequence[Json], *, folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Answer]:  # fmt: skip
    """Start a command, write it a question a line, and read an answer a line.

    Args:
        command: the words of the command; a text is split as a shell would.
        questions: what `Case.question` holds.
        folder: where it runs; the caller's own where None.
        environment: its variables; the caller's own where None.

    Raises:
        EntryError: the command ended early, was silent for `SECONDS`, or answered something else.
    """
    words = shlex.split(command) if isinstance(command, str) else command
    with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=printed, cwd=folder,
            env=environment, text=True, encoding="utf-8",
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            return [_answer(process, question) for question in questions]
        except EntryError as error:
            printed.seek(0)
            raise EntryError(f"{error}\n{printed.read()[-_SHOWN:]}".rstrip()) from None
        finally:
            _end(process, process.stdin)
            process.stdout.close()


def ask_url(url: str, questions: Sequence[Json]) -> list[Answer]:
    """Post each question to a URL as JSON.

    Raises:
        EntryError: the URL did not answer with 200 and an answer.
    """
    with httpx2.Client(timeout=SECONDS) as client:
        return [_posted(client, url, question) for question in questions]


def read_answer(text: str, question: Json) -> Answer:
    """Return the answer that a line or body holds.

    Raises:
        EntryError: it is no object with `call`, an object or null; `follow` is a boolean.
    """
    name = question["id"]
    try:
        told = json.loads(text)
    except ValueError:
        raise EntryError(f"the answer to {name} is no JSON: {text[:200]!r}") from None
    if not isinstance(told, dict) or not isinstance(told.get("call", 0), dict | None):
        wanted = 'an object such as {"call": {...}} or {"call": null}'
        raise EntryError(f"the answer to {name} has to be {wanted}, not {text[:200]!r}")
    follow = told.get("follow", True)
    if not isinstance(follow, bool):
        raise EntryError(f"`follow` in the answer to {name} has to be true or false")
    return Answer(told["call"], follow)


def _answer(process: "subprocess.Popen[str]", question: Json) -> Answer:
    name = question["id"]
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
    except OSError:
        raise EntryError(f"the entry ended before {name}") from None
    with _limited(process) as is_late:
        line = process.stdout.readline()
    if is_late.is_set():
        raise EntryError(f"no answer to {name} in {SECONDS:.0f} s")
    if not line:
        raise EntryError(f"the entry ended at {name}")
    return read_answer(line, question)


@contextmanager
def _limited(process: "subprocess.Popen[str]") -> Iterator[threading.Event]:
    """Kill the process if what is done inside takes too long."""
    is_late = threading.Event()

    def kill() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(SECONDS, kill)
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()


def _end(process: "subprocess.Popen[str]", questions: IO[str]) -> None:
    try:
        questions.close()
        process.wait(timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        process.kill()
        process.wait()


def _posted(client: httpx2.Client, url: str, question: Json) -> Answer:
    try:
        response = client.post(url, json=question)
    except httpx2.HTTPError as error:
        raise EntryError(f"{url} does not answer {question['id']}: {error}") from error
    if response.status_code != httpx2.codes.OK:
        raise EntryError(f"{url} answers {question['id']} with {response.status_code}")
    return read_answer(response.text, question)
