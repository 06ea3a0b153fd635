"""Executors: what the registry says is data; hostile inputs, limits and failures, with true tools.

Every command line here is a real process.
"""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from aftercall.executors import (
    CommandExecutor,
    Executors,
    PythonExecutor,
    ToolFailedError,
    ToolRefusedError,
)
from aftercall.json_values import JsonObject, JsonValue
from aftercall.models import Tool

ECHO = "import json, sys\nprint(json.dumps(sys.argv[1:]))\n"


def tool(implementation: JsonValue = None, **fields: Any) -> Tool:
    spec = {"tool_id": "t", "name": "t", "updated_at": datetime(2026, 1, 1, tzinfo=UTC)}
    return Tool.model_validate(spec | {"implementation": implementation} | fields)


def python_tool(*items: str, **fields: Any) -> Tool:
    return tool({"command": "python", "args_template": list(items)}, **fields)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "echo.py").write_text(ECHO)
    (tmp_path / "outside.py").write_text(ECHO)
    return tmp_path


@pytest.fixture
def commands(folder: Path) -> CommandExecutor:
    allowed = {"python": sys.executable, "version": sys.executable}
    return CommandExecutor(folder, tool_dir=folder / "tools", commands=allowed)


async def fails(
    executor: Any, a_tool: Tool, data: JsonValue = None, **options: Any
) -> ToolFailedError:
    with pytest.raises(ToolFailedError) as failure:
        await executor.execute(a_tool, data, **options)
    return failure.value


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(pid: int) -> bool:
    """Whether a process that was killed ends, which the kernel does a moment later."""
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:  # noqa: ASYNC110  # a process tells no event
        await asyncio.sleep(0.01)
    return not alive(pid)


# Command lines: what an input can do


HOSTILE = [
    "; rm -rf /", "$(touch pwned)", "`touch pwned`", "&& touch pwned", "| cat", "> pwned", "*",
    "a\nb\r\nc", "../../etc/passwd", "{tool_dir}", "{evolved_file}", "{input}", '"quoted"',
    "'", "\\", "%s %n", "", " ", "ü\U0001f600", "\x1b[31m", "a" * 100_000,
]  # fmt: skip


async def test_an_input_is_exactly_one_argument(commands: CommandExecutor, folder: Path) -> None:
    """Whatever it holds; there is no shell, and it is looked through for nothing."""
    for text in HOSTILE[:3]:
        echo = python_tool("{tool_dir}/echo.py", "first", "{input}", "last")
        assert (await commands.execute(echo, text)).value == ["first", text, "last"]
    named = {f"n{number}": text for number, text in enumerate(HOSTILE)}
    echo = python_tool("{tool_dir}/echo.py", *(f"{{{name}}}" for name in named))
    assert (await commands.execute(echo, named)).value == HOSTILE
    assert sorted(os.listdir(folder)) == ["outside.py", "tools"]  # noqa: PTH208  # names alone


@pytest.mark.parametrize("text", ["--help", "-x", "-", "--", "-rf"])
async def test_an_input_cannot_become_an_option(commands: CommandExecutor, text: str) -> None:
    """It is refused before the tool runs, unless the template says that options are over."""
    failure = await fails(commands, python_tool("{tool_dir}/echo.py", "{input}"), text)
    assert not failure.ran
    assert "begins with a hyphen" in str(failure)
    behind = python_tool("{tool_dir}/echo.py", "--", "{input}")
    assert (await commands.execute(behind, text)).value == ["--", text]
    named = python_tool("{tool_dir}/echo.py", "--text={input}")
    assert (await commands.execute(named, text)).value == [f"--text={text}"]


@pytest.mark.parametrize(
    ("data", "said"),
    [({"a": "x\0y"}, "NUL"), ({"b": 1}, "needs 'a' in its input"), ("text", "must be an object")],
)
async def test_an_input_that_does_not_fit_is_rejected_before_the_tool_runs(
    commands: CommandExecutor, data: JsonValue, said: str
) -> None:
    """So another tool may be tried."""
    failure = await fails(commands, python_tool("{tool_dir}/echo.py", "x{a}"), data)
    assert (failure.ran, failure.error.type) == (False, "InvalidInput")
    assert said in str(failure)


async def test_members_of_an_input_go_where_they_are_named(commands: CommandExecutor) -> None:
    """Text as it is, anything else as JSON; what is not named stays out."""
    echo = python_tool("{tool_dir}/echo.py", "{a}/{b}", "{c}", "{input}", '{"x": 1}')
    data: JsonValue = {"a": "ü", "b": 1.5, "c": ["x", None], "input": 3, "tool_dir": "/etc"}
    [first, second, whole, literal] = (await commands.execute(echo, data)).value  # type: ignore[misc]  # a list of four
    assert (first, second, literal) == ("ü/1.5", '["x", null]', '{"x": 1}')
    assert whole == '{"a": "ü", "b": 1.5, "c": ["x", null], "input": 3, "tool_dir": "/etc"}'


async def test_an_input_that_the_template_does_not_name_goes_to_standard_input(
    commands: CommandExecutor, folder: Path
) -> None:
    """However large; a tool that does not read it is not hurt."""
    (folder / "tools" / "count.py").write_text(
        "import json, sys\nprint(len(json.load(sys.stdin)['text']))"
    )
    data: JsonValue = {"text": "x" * 3_000_000}
    assert (await commands.execute(python_tool("{tool_dir}/count.py"), data)).value == 3_000_000
    assert (await commands.execute(python_tool("{tool_dir}/echo.py"), data)).value == []


# Command lines: what a registry can do


EVOLVED: JsonObject = {"command": "python", "args_template": ["{tool_dir}/echo.py"]}
NO_FILES = {
    "tools/gone.py": "there is no file", "../x.py": "names no file", "/etc/x.py": "names no file",
    "link.py": "lies outside", "tools": "there is no file", "": "names no file",
}  # fmt: skip


@pytest.mark.parametrize(
    ("implementation", "said"),
    [
        ({"command": "/bin/sh", "args_template": ["-c", "id"]}, "not allowed here"),
        ({"command": sys.executable, "args_template": ["{tool_dir}/echo.py"]}, "not allowed"),
        ({"command": "sh", "args_template": ["{tool_dir}/echo.py"]}, "allowed: python, version"),
        ({"command": ["python"], "args_template": ["{tool_dir}/echo.py"]}, "not allowed here"),
        ({"command": "python", "args_template": ["-c", "print(1)"]}, "must name the script"),
        ({"command": "python", "args_template": ["-m", "this"]}, "must name the script"),
        ({"command": "python", "args_template": ["{input}"]}, "must name the script"),
        ({"command": "python", "args_template": ["echo.py"]}, "must name the script"),
        ({"command": "python", "args_template": ["{tool_dir}/{input}.py"]}, "must name the script"),
        ({"command": "python", "args_template": ["x{tool_dir}/echo.py"]}, "must name the script"),
        ({"command": "python", "args_template": []}, "must name the script"),
        ({"command": "python", "args_template": "{tool_dir}/echo.py"}, "a list of texts"),
        ({"command": "python", "args_template": ["{tool_dir}/echo.py", 5]}, "a list of texts"),
        ({"command": "python"}, "a list of texts"),
        ({"command": "python", "args_template": ["{tool_dir}/../outside.py"]}, "names no file"),
        ({"command": "python", "args_template": ["{tool_dir}//etc/passwd"]}, "names no file"),
        ({"command": "python", "args_template": ["{tool_dir}/gone.py"]}, "there is no file"),
        ({"command": "python", "args_template": ["{tool_dir}/out.py"]}, "lies outside"),
        ({"command": "python", "args_template": ["{tool_dir}/folder"]}, "there is no file"),
        ({"command": "python", "args_template": ["{evolved_file}"]}, "no version is promoted"),
        (
            {"command": "python", "args_template": ["{tool_dir}/echo.py", "x={tool_dir}/../o"]},
            "names no file",
        ),
        (
            {"command": "python", "args_template": ["{tool_dir}/echo.py", "{tool_dir}x"]},
            "must come a slash",
        ),
        ({"args_template": ["{tool_dir}/echo.py"], "command": None}, "not allowed here"),
        (
            {"command": "version", "args_template": ["-V"], "evolved_file": "outside.py"},
            "no place for the evolved file",
        ),
        *((EVOLVED | {"evolved_file": name}, said) for name, said in NO_FILES.items()),
    ],
)
async def test_what_is_not_allowed_here_is_refused(
    commands: CommandExecutor, folder: Path, implementation: JsonValue, said: str
) -> None:
    """The registry picks among what this machine allows, and widens nothing.

    An evolved file must lie below the root; the original is not run in its place.
    """
    (folder / "tools" / "out.py").symlink_to(folder / "outside.py")
    (folder / "tools" / "folder").mkdir()
    (folder / "link.py").symlink_to(__file__)
    refusal = await fails(commands, tool(implementation))
    assert isinstance(refusal, ToolRefusedError)
    assert said in str(refusal)
    assert not refusal.ran


@pytest.mark.parametrize("name", ["../outside.py", "/etc/passwd", "a/../../outside.py", "link.txt"])
async def test_an_input_cannot_name_a_file_outside(
    commands: CommandExecutor, folder: Path, name: str
) -> None:
    """Neither by its text nor through a symbolic link."""
    (folder / "tools" / "link.txt").symlink_to(folder / "outside.py")
    failure = await fails(
        commands, python_tool("{tool_dir}/echo.py", "{tool_dir}/{name}"), {"name": name}
    )
    assert (failure.ran, "not allowed" in str(failure)) == (False, True)


# Command lines: evolved files


async def test_the_evolved_file_takes_the_place_of_the_script(
    commands: CommandExecutor, folder: Path
) -> None:
    """By itself, by its placeholder, and when nothing else is known (seed 002)."""
    (folder / "tools" / "echo_v1_1.py").write_text(ECHO.replace("[1:]", "[1:] + ['evolved']"))
    evolved = {"command": "python", "evolved_file": "tools/echo_v1_1.py"}
    for template in (["{tool_dir}/echo.py", "{input}"], ["{evolved_file}", "{input}"]):
        made = tool(evolved | {"args_template": template})
        assert (await commands.execute(made, "x")).value == ["x", "evolved"]
    bare = tool({"evolved_file": "tools/echo_v1_1.py"})
    assert commands.fits(bare)
    assert (await commands.execute(bare, "x")).value == ["x", "evolved"]


# Command lines: results, failures, limits


def script(folder: Path, source: str) -> Tool:
    (folder / "tools" / "s.py").write_text(source)
    return python_tool("{tool_dir}/s.py")


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("print('[1, {\"a\": null}]')", [1, {"a": None}]),
        ("print('two\\nlines')", "two\nlines"),
        ("pass", ""),
        ("print(10**30)", "1000000000000000000000000000000"),
        ("print('NaN')", "NaN"),
        ("import sys; sys.stdout.buffer.write(b'\\xff\\0x')", "\ufffd\ufffdx"),
        ("print('[' * 50000)", "[" * 50000),
    ],
)
async def test_output_is_json_or_text(
    commands: CommandExecutor, folder: Path, source: str, value: JsonValue
) -> None:
    """And always a plain JSON value."""
    assert (await commands.execute(script(folder, source), None)).value == value


@pytest.mark.parametrize(
    ("source", "kind", "message", "code"),
    [
        ("[][1]", "IndexError", "list index out of range", "1"),
        ("import json; json.loads('{')", "JSONDecodeError", "Expecting property name", "1"),
        ("import sys; sys.exit('no such language')", "ExitStatus", "no such language", "1"),
        ("import sys; print('on stdout'); sys.exit(3)", "ExitStatus", "3: on stdout", "3"),
        ("import sys; sys.exit(2)", "ExitStatus", "it wrote nothing", "2"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "Killed", "SIGSEGV", "SIGSEGV"),
    ],
)
async def test_a_failure_is_told_in_the_tools_own_words(
    commands: CommandExecutor, folder: Path, source: str, kind: str, message: str, code: str
) -> None:
    """By the last line where it names the kind of error, else by the end of what it wrote."""
    failure = await fails(commands, script(folder, source))
    assert (failure.ran, failure.error.type, failure.error.code) == (True, kind, code)
    assert message in failure.error.message


async def test_output_without_end_is_stopped(commands: CommandExecutor, folder: Path) -> None:
    """The tool is killed as soon as it has written more than is taken."""
    made = script(folder, "import sys\nwhile True: sys.stdout.write('x' * 10000)")
    failure = await fails(commands, made, timeout_s=60)
    assert failure.error.type == "OutputTooLarge"
    assert "4,194,304 bytes" in str(failure)


CHILD = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pids", "w").write(f"{child.pid}")
"""


async def test_a_timeout_kills_the_tool_and_its_children(
    commands: CommandExecutor, folder: Path
) -> None:
    """Nothing of it is left, not even what ignores being asked to end."""
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    made = script(folder, stubborn + CHILD + "time.sleep(600)")
    for seconds in (2, 10, 60):
        failure = await fails(commands, made, timeout_s=seconds)
        assert (failure.error.type, failure.ran) == ("Timeout", True)
        written = folder / "pids"
        if written.exists() and written.read_text():  # else its child was not there yet
            break
    assert await gone(int((folder / "pids").read_text()))


async def test_a_caller_that_goes_away_kills_the_tool(
    commands: CommandExecutor, folder: Path
) -> None:
    """Cancelling waits until it is gone."""
    made = script(folder, CHILD + "time.sleep(600)")
    running = asyncio.ensure_future(commands.execute(made, None))
    written = folder / "pids"
    while not (written.exists() and written.read_text()):  # noqa: ASYNC110  # as above
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await gone(int((folder / "pids").read_text()))


async def test_children_end_with_their_tool(commands: CommandExecutor, folder: Path) -> None:
    """One that holds the output open does not hold up the result, either."""
    made = script(folder, CHILD + "print('done')")
    assert (await commands.execute(made, None, timeout_s=60)).value == "done"
    assert await gone(int((folder / "pids").read_text()))


async def test_the_environment_is_minimal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets of this process are none of a tool's business; what is given is added."""
    monkeypatch.setenv("A_SECRET", "swordfish")
    executor = CommandExecutor(
        folder, tool_dir=folder / "tools", commands={"python": sys.executable}, env={"MINE": "1"}
    )
    made = script(folder, "import os, json; print(json.dumps([dict(os.environ), os.getcwd()]))")
    environment, cwd = (await executor.execute(made, None)).value  # type: ignore[misc]  # a pair
    assert set(environment) - {"LC_CTYPE"} == {"PATH", "LANG", "MINE"}
    assert cwd == str(folder)


# Python callables


def greet(name: str, *, polite: bool = False) -> str:
    return f"{'Good day' if polite else 'Hi'}, {name}"


async def wait_and_greet(name: str) -> str:
    await asyncio.sleep(0)
    return greet(name)


def fail(**_: object) -> None:
    raise LookupError("nothing there")


@pytest.mark.parametrize(
    ("function", "data", "value"),
    [
        (greet, {"name": "Ada", "polite": True}, "Good day, Ada"),
        (greet, "Ada", "Hi, Ada"),
        (wait_and_greet, {"name": "Ada"}, "Hi, Ada"),
        (lambda: wait_and_greet("Bo"), None, "Hi, Bo"),
        (lambda: {"when": datetime(2026, 1, 1, tzinfo=UTC)}, None, None),
        (len, [1, 2], 2),
    ],
)
async def test_callables_are_called(
    function: Callable[..., Any], data: JsonValue, value: JsonValue
) -> None:
    """Plain and asynchronous, by keyword and by position; what they return becomes plain JSON."""
    result = (await PythonExecutor({"t": function}).execute(tool(), data)).value
    assert result == value if value is not None else isinstance(result, dict)


@pytest.mark.parametrize("data", [{"nam": "Ada"}, {}, None, {"name": "a", "more": 1}])
async def test_what_does_not_fit_a_signature_is_rejected(data: JsonValue) -> None:
    """Before the callable runs; a TypeError of its own is its failure."""
    failure = await fails(PythonExecutor({"t": greet}), tool(), data)
    assert (failure.ran, failure.error.type) == (False, "InvalidInput")
    own = await fails(PythonExecutor({"t": lambda name: name + 1}), tool(), {"name": "a"})
    assert (own.ran, own.error.type) == (True, "TypeError")


async def test_a_callable_that_takes_too_long_fails() -> None:
    """An asynchronous one is stopped, a thread is left behind; the loop is held up by neither."""
    release = asyncio.Event()
    stopped: list[str] = []

    async def hang() -> None:
        try:
            await release.wait()
        finally:
            stopped.append("async")

    assert (
        await fails(PythonExecutor({"t": hang}), tool(), timeout_s=0.05)
    ).error.type == "Timeout"
    assert stopped == ["async"]
    freed = threading.Event()
    blocked = PythonExecutor({"t": freed.wait})
    try:
        failure = await fails(blocked, tool(), timeout_s=0.05)
        assert (failure.error.type, failure.ran) == ("Timeout", True)
    finally:
        freed.set()


async def test_a_promoted_version_is_never_the_originals_callable() -> None:
    """Other code was promoted; only a callable registered for that version will do."""
    executor = PythonExecutor({"t": lambda: "original"})
    promoted = tool({"evolved_file": "t_v1_1.py"}, version="1.1.0", is_evolved=True)
    assert not executor.fits(promoted)
    assert isinstance(await fails(executor, promoted), ToolRefusedError)
    executor.register("t", lambda: "evolved", version="1.1")
    assert (await executor.execute(promoted, None)).value == "evolved"
    assert (await executor.execute(tool(version="1.0.0"), None)).value == "original"


# MCP, and choosing


async def test_tools_of_mcp_servers_are_called() -> None:
    """Results, `isError`, rejected calls, unknown servers; over one kept connection."""
    from fastmcp import FastMCP

    from aftercall.executors.mcp import McpExecutor

    server: FastMCP[None] = FastMCP("hall")

    @server.tool
    def shout(text: str) -> str:
        if text == "hush":
            raise ValueError("no shouting here")
        return text.upper()

    @server.tool
    def pair() -> dict[str, int]:
        return {"a": 1, "b": 2}

    async with McpExecutor({"hall": server}) as executor:
        named = tool(name="shout", server_name="hall")
        assert (await executor.execute(named, {"text": "hey"})).value == "HEY"
        assert (await executor.execute(named, {"text": "you"})).value == "YOU"
        assert (await executor.execute(tool(name="pair", server_name="hall"), None)).value == {
            "a": 1, "b": 2,
        }  # fmt: skip
        failure = await fails(executor, named, {"text": "hush"})
        assert (failure.ran, "no shouting here" in failure.error.message) == (True, True)
        assert not (await fails(executor, named, ["a list"])).ran
        foreign = tool(name="shout", server_name="other")
        assert not executor.fits(foreign)
        assert isinstance(await fails(executor, foreign, {}), ToolRefusedError)
        assert not executor.fits(tool({"evolved_file": "x.py"}, name="shout", server_name="hall"))


async def test_the_first_executor_that_fits_runs_a_tool(commands: CommandExecutor) -> None:
    """A callable of this process before the registry's command; with none, a refusal."""
    echo = python_tool("{tool_dir}/echo.py", "{input}")
    python = PythonExecutor({"t": lambda text: f"callable {text}"})
    both, alone = Executors(python, commands), Executors(commands)
    assert (await both.execute(echo, "x")).value == "callable x"
    assert (await alone.execute(echo, "x")).value == ["x"]
    assert both.script_of(echo) is None
    assert alone.script_of(echo) == commands.tool_dir / "echo.py"
    assert not alone.fits(tool())
    refusal = await fails(alone, tool())
    assert "register a callable" in str(refusal)
