"""The command line's frame, and `aftercall status`."""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from aftercall import cli
from aftercall.cli import frame
from aftercall.cli.status import show_duration
from aftercall.errors import ConfigurationError
from aftercall.recording.recorder import count_waiting
from aftercall.recording.spool import Spool
from tests.sdk.loopback import Loopback, answer

AFTERCALL = str(Path(sys.executable).parent / "aftercall")


class Greet:
    """A command of some other distribution."""

    name = "greet"
    help = "say hello to 100% of the people"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--who", required=True)

    def run(self, args: argparse.Namespace) -> int:
        if args.who == "nobody":
            raise ConfigurationError("there is nobody to greet; give a name with --who")
        if args.who == "stranger":
            raise KeyboardInterrupt
        sys.stdout.write(f"hello {args.who}\n")
        return 3 if args.who == "three" else 0


class Sick:
    """A command whose options cannot be declared."""

    name = "sick"
    help = "not well"

    def add_arguments(self, _: argparse.ArgumentParser) -> None:
        raise RuntimeError("no options today")

    def run(self, _: argparse.Namespace) -> int:
        return 0


greet, sick = Greet(), Sick()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One command that works and three that are broken, each in its way."""
    values = {
        "greet": f"{__name__}:greet",
        "sick": f"{__name__}:sick",
        "gone": "no_such_module_anywhere:command",
        "empty": f"{__name__}:AFTERCALL",
    }
    entries = [EntryPoint(name, value, frame.GROUP) for name, value in values.items()]
    monkeypatch.setattr(
        frame, "entry_points", lambda group: entries if group == frame.GROUP else []
    )


STATUS = {
    "version": "0.1.0", "ready": True, "executions": 12345, "tools": 14, "pendingIndexing": 37,
    "documents": 1204, "seedPatterns": 52, "embedder": "all-MiniLM-L6-v2", "logStore": "sqlite",
    "vectorIndex": "qdrant-edge", "uptimeS": 11525.0,
}  # fmt: skip


@pytest.fixture
def service() -> Iterator[Loopback]:
    with Loopback() as running:
        running.fail(answer(json.dumps(STATUS).encode()))
        yield running


def run(*words: str) -> int:
    """The exit code, whichever way it is given."""
    try:
        return cli.main(words)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.usefixtures("installed")
def test_the_commands_of_all_distributions_are_listed_in_a_line_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A broken one is named with its reason and does not keep the others away."""
    assert run("--help") == 0
    shown = capsys.readouterr()

    assert "say hello to 100% of the people" in shown.out
    assert "the command 'gone' cannot be loaded: ModuleNotFoundError: No module" in shown.err
    assert "the command 'sick' cannot be loaded: RuntimeError: no options today" in shown.err


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["greet", "--who", "world"], 0), (["greet", "--who", "three"], 3),
        (["greet", "--who", "nobody"], 1), (["greet", "--who", "stranger"], 130), (["greet"], 2),
        (["greet", "--wo"], 2), (["sick"], 1), (["gone", "--with", "options"], 1), (["empty"], 1),
        (["unheard-of"], 2), ([], 2), (["--version"], 0),
    ],
)  # fmt: skip
def test_exit_codes(words: Sequence[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """0 done (or the command's own), 1 failed, 2 wrong command line, 130 interrupted.

    Our errors are the message in one line, with neither a traceback nor the class's name.
    """
    assert run(*words) == code
    if "nobody" in words:
        said = "aftercall: there is nobody to greet; give a name with --who\n"
        assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("words", [("promotions", "remove"), ("recommendations", "evolve")])
def test_what_is_to_be_named_is_not_empty(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words, "") == 2
    assert "the name is empty" in capsys.readouterr().err


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("words", "meant"),
    [(["gret"], "greet"), (["greet", "--who", "ann", "--whom", "ann"], "--who"), (["xyz"], None)],
)
def test_a_slip_is_told_what_was_meant(
    words: Sequence[str], meant: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command, or an option of the command."""
    with pytest.raises(SystemExit):
        cli.main(words)
    shown = capsys.readouterr().err
    assert shown.endswith(f"Did you mean {meant}?\n") if meant else "Did you mean" not in shown


@pytest.mark.usefixtures("installed")
def test_only_the_command_that_is_meant_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow or broken neighbour does not touch a command that works."""
    loaded: list[str] = []
    load = EntryPoint.load

    def noted(entry: EntryPoint) -> object:
        loaded.append(entry.name)
        return load(entry)

    monkeypatch.setattr(EntryPoint, "load", noted)
    run("greet", "--who", "world")

    assert loaded == ["greet"]


READABLE = [
    ": ready, up 3 h 12 min\n", "executions             12,345\n", "registered tools       14\n",
    "37   (stored safely; answers do not use them yet)", "all-MiniLM-L6-v2",
]  # fmt: skip


@pytest.mark.parametrize(
    ("option", "shown"), [([], READABLE), (["--json"], ['"pendingIndexing": 37'])]
)
def test_status_is_readable(
    service: Loopback, capsys: pytest.CaptureFixture[str], option: list[str], shown: list[str]
) -> None:
    """State, age and counts at a glance, and what a backlog means; for machines as on the wire."""
    assert run("status", *option, "--service", service.url) == 0
    told = capsys.readouterr().out
    assert told.startswith("{" if option else f"Aftercall 0.1.0 at {service.url}: ready")
    assert [each for each in shown if each not in told] == []


def test_status_names_calls_that_were_recorded_without_a_key(
    service: Loopback,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No recorder with a key sends them; calls of the own key are sent by the next one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("AFTERCALL_API_KEY", f"ac_{'0' * 16}_{'x' * 43}")
    for known_as, lines in (("", [b"{}"] * 3), ("0" * 16, [b"{}"] * 2)):
        _, folder = count_waiting(service.url, known_as)
        Spool(folder, max_bytes=1_000).append(lines)
    assert run("status", "--service", service.url) == 0
    own, foreign = (
        line for line in capsys.readouterr().out.splitlines() if line.startswith("  not sent yet")
    )
    assert f"2 calls wait in {folder};" in own
    bare = count_waiting(service.url, "")[1]
    assert "3 calls that were recorded without a key" in foreign
    assert f"`aftercall import {bare}` records them with your key" in foreign


def test_without_a_service_status_names_the_cure(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, one line, and what to do."""
    with Loopback() as gone:
        url = gone.url
    assert run("status", "--service", url) == 1
    shown = capsys.readouterr()

    assert shown.out == ""
    assert shown.err.startswith(f"aftercall: no service at {url} (")
    assert "`aftercall serve`" in shown.err
    assert len(shown.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (8, "8 s"), (725, "12 min 5 s"), (3600, "1 h"), (273_600, "3 d 4 h")],
)
def test_durations_are_told_in_their_two_largest_units(seconds: float, text: str) -> None:
    """Nobody wants to divide by 3,600."""
    assert show_duration(seconds) == text


def test_the_names_of_the_package_are_imported_when_they_are_used() -> None:
    """Each name of `__all__` has a home, and importing the package imports none of them."""
    program = (
        "import sys, aftercall; assert 'pydantic' not in sys.modules; "
        "missing = [name for name in aftercall.__all__ if not hasattr(aftercall, name)]; "
        "print(missing, sorted(aftercall._HOME_OF) == sorted(aftercall.__all__))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "[] True\n"
