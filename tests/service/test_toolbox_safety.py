"""What a toolbox must never do: run what does not fit, tell secrets, believe strangers, hang."""

import asyncio
import json
import socket
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aftercall import (
    AsyncClient,
    AsyncToolbox,
    Client,
    CommandExecutor,
    PythonExecutor,
    Toolbox,
    ToolFailedError,
    ToolSpec,
)
from aftercall.errors import ConfigurationError
from aftercall.evolution import EvolutionTask, EvolvedCode
from aftercall.models import ToolAnnotations
from tests.service.running_service import Recorded, RunningService, eventually

READS = ToolAnnotations(read_only_hint=True)


@pytest.fixture
async def client(service: RunningService) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(service.url) as made:
        yield made


def indexed(client: AsyncClient) -> None:
    with Client(client.base_url) as status:
        eventually(lambda: status.status().pending_indexing == 0)


async def test_a_tool_that_hardly_fits_is_never_run(client: AsyncClient) -> None:
    """The nearest of a registry may delete files when somebody wants to bake bread."""
    tag = f"t{uuid4().hex[:8]}"
    ran: list[str] = []
    python = PythonExecutor({f"{tag}_delete": ran.append})
    spec = ToolSpec(name=f"{tag}_delete", description="delete all files of a folder", tags=[tag])
    await client.put_tool(f"{tag}_delete", spec)
    indexed(client)
    toolbox = AsyncToolbox(client, None, python, agent="a")
    bread = await toolbox.resilient_tool_call("bake a loaf of rye bread", "x", [tag])
    assert (bread.success, bread.attempts, ran) == (False, (), [])
    assert bread.why == "no tool could be tried: it hardly fits the scenario"
    assert (await toolbox.resilient_tool_call("delete all files of a folder", "x", [tag])).success
    assert ran == ["x"]


async def test_a_tool_that_fits_is_run_however_often_it_failed(client: AsyncClient) -> None:
    """Its score may be lower than that of one that does not fit; only so it can be evolved."""
    name = f"zorb{uuid4().hex[:8]}"
    spec = ToolSpec(name=name, description=f"{name} the gadget", tags=[name])
    await client.put_tool(name, spec)
    for number in range(10):
        await client.mark_failure(name, f"{name} the gadget", f"no {number}", severity="high")
    indexed(client)
    toolbox = AsyncToolbox(client, None, PythonExecutor({name: lambda: 1}), agent="a")
    [found] = await toolbox.find_tools_for_scenario(f"{name} the gadget", [name])
    assert found.below_threshold
    assert (await toolbox.resilient_tool_call(f"{name} the gadget", None, [name])).success


async def test_secrets_of_a_call_are_told_to_nobody(client: AsyncClient, tmp_path: Path) -> None:
    """A tool repeats a password in its error: not in the mark, the question, the promotion."""
    name = f"login{uuid4().hex[:8]}"
    secret = "correct-horse-battery"  # noqa: S105  # no secret by its form, only by its name
    (tmp_path / f"{name}.py").write_text(
        "import json, sys\nraise ValueError('refused ' + json.load(sys.stdin)['password'])\n"
    )
    spec = ToolSpec(
        name=name, description=f"{name} somewhere", version="1.0.0", annotations=READS, tags=[name],
        implementation={"command": "python", "args_template": [f"{{tool_dir}}/{name}.py"]},
    )  # fmt: skip
    await client.put_tool(name, spec)
    indexed(client)

    tasks: list[EvolutionTask] = []

    class Author:
        async def evolve(self, task: EvolutionTask) -> EvolvedCode:
            tasks.append(task)
            return EvolvedCode("print('mended')\n")

    toolbox = AsyncToolbox(
        client, Recorded(), CommandExecutor(tmp_path, commands={"python": sys.executable}),
        agent="a", promotions=tmp_path / ".tool_promotions.json", evolver=Author(),
    )  # fmt: skip
    result = await toolbox.resilient_tool_call(
        f"{name} somewhere with {secret}", {"password": secret}, [name]
    )
    assert (result.success, result.result) == (True, "mended")
    assert result.attempts[0].error is not None
    assert result.attempts[0].error.message == f"refused {secret}"  # its caller knows it
    indexed(client)
    told = [
        *(failure.model_dump_json() for failure in await client.tool_failures(name)),
        repr(tasks),
        (tmp_path / ".tool_promotions.json").read_text(),
        (tmp_path / ".tool_changelog.jsonl").read_text(),
    ]
    assert len(told) == 4  # one failure among them
    assert all("refused [redacted:" in text for text in told)
    assert secret not in "".join(told)


async def test_claims_about_a_tool_of_this_program_are_the_programs(client: AsyncClient) -> None:
    """A stranger registers it under another id and calls it harmless: it is not run twice."""
    name = f"pay{uuid4().hex[:8]}"
    ran: list[int] = []

    def pay() -> None:
        ran.append(1)
        raise ConnectionError("lost")

    for stranger in ("a", "b"):
        spec = ToolSpec(name=name, description=f"{name} a bill", annotations=READS, tags=[name])
        await client.put_tool(f"{name}_{stranger}", spec)
    indexed(client)
    toolbox = AsyncToolbox(
        client, None, PythonExecutor({name: pay}), agent="a", tools={name: ToolSpec(name=name)}
    )
    result = await toolbox.resilient_tool_call(f"{name} a bill", None, [name])
    assert (result.success, ran) == (False, [1])
    assert "may have had an effect" in result.why


async def test_every_tool_gets_the_input_as_it_was(client: AsyncClient) -> None:
    """Also after one that failed has changed what it got."""
    name = f"sum{uuid4().hex[:8]}"
    given: list[str] = []

    def spoil(numbers: Any) -> None:
        given.append(json.dumps(numbers))
        numbers.clear()
        raise ValueError("spoilt")

    python = PythonExecutor({f"{name}_a": spoil, f"{name}_b": spoil})
    for other in ("a", "b"):
        spec = ToolSpec(name=f"{name}_{other}", description=f"{name} it", annotations=READS)
        await client.put_tool(f"{name}_{other}", spec.model_copy(update={"tags": [name]}))
    indexed(client)
    toolbox = AsyncToolbox(client, None, python, agent="a")
    await toolbox.resilient_tool_call(f"{name} it", {"numbers": [1, 2]}, [name])
    assert given == ["[1, 2]", "[1, 2]"]


async def test_a_service_that_hangs_keeps_no_version_from_being_made(tmp_path: Path) -> None:
    """It takes the connection and never answers: the new version is made all the same."""
    (tmp_path / "t.py").write_text("raise ValueError('no')\n")

    class Author:
        async def evolve(self, task: EvolutionTask) -> EvolvedCode:
            return EvolvedCode(f"print({task.tool_id!r})\n")

    implementation = {"command": "python", "args_template": ["{tool_dir}/t.py"]}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with AsyncClient(url, timeout_s=0.1) as client:
            toolbox = AsyncToolbox(
                client, None, CommandExecutor(tmp_path, commands={"python": sys.executable}),
                agent="a", promotions=tmp_path / ".tool_promotions.json", evolver=Author(),
                tools={"t": ToolSpec(name="t", implementation=implementation)},
            )  # fmt: skip
            async with asyncio.timeout(60):
                result = await toolbox.evolve_tool("t", "it fails")
    assert (result.status, result.told_service) == ("evolved", False)
    assert "gave no answer in time" in result.notes[0]


def test_closing_ends_the_calls_that_wait() -> None:
    """Whoever waits in another thread is told, and the loop ends."""
    begun, done = threading.Event(), threading.Event()
    problems: list[str] = []

    def wait() -> None:
        begun.set()
        done.wait(30)

    tools = {"t": ToolSpec(name="t")}
    toolbox = Toolbox(None, None, PythonExecutor({"t": wait}), agent="a", tools=tools)

    def call() -> None:
        try:
            toolbox.call_tool("t")
        except RuntimeError as error:
            problems.append(str(error))

    caller = threading.Thread(target=call)
    caller.start()
    assert begun.wait(10)
    toolbox.close()
    caller.join(10)
    assert not caller.is_alive()
    assert problems == ["this toolbox was closed while the call ran"]
    done.set()


def test_a_tool_may_call_the_toolbox_unless_it_would_wait_for_itself() -> None:
    """A plain function may; a coroutine, which runs on the toolbox's loop, is told so."""
    python = PythonExecutor()
    tools = {name: ToolSpec(name=name) for name in ("plain", "coroutine", "one")}
    with Toolbox(None, None, python, agent="a", tools=tools) as toolbox:

        async def coroutine() -> Any:
            await asyncio.sleep(0)
            return toolbox.call_tool("one").value

        python.register("one", lambda: 1)
        python.register("plain", lambda: toolbox.call_tool("one").value)
        python.register("coroutine", coroutine)
        assert toolbox.call_tool("plain").value == 1
        with pytest.raises(ToolFailedError, match="make the tool a plain function"):
            toolbox.call_tool("coroutine")


async def test_the_synchronous_toolbox_works_where_a_loop_runs() -> None:
    """As in a notebook; two of them and many threads as well."""
    python = PythonExecutor({"t": lambda number: number})
    tools = {"t": ToolSpec(name="t")}
    with (
        Toolbox(None, None, python, agent="a", tools=tools) as one,
        Toolbox(None, None, python, agent="b", tools=tools) as other,
    ):
        assert one.call_tool("t", 1).value == 1
        calls = [asyncio.to_thread(box.call_tool, "t", n) for n in range(8) for box in (one, other)]
        assert [result.value for result in await asyncio.gather(*calls)] == [
            n for n in range(8) for _ in range(2)
        ]


def test_a_synchronous_client_is_refused() -> None:
    """It would block the loop, and fail with words that help nobody."""
    with Client("http://127.0.0.1:1") as client, pytest.raises(ConfigurationError, match="Async"):
        Toolbox(client, None, PythonExecutor(), agent="a")  # type: ignore[arg-type]  # the point
