"""The toolbox against a true service and true executables; first seed 002's "Testing the Flow"."""

import sys
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
    Executors,
    NotFoundError,
    PythonExecutor,
    ServiceUnreachableError,
    Toolbox,
    ToolFailedError,
    ToolRefusedError,
    ToolSpec,
)
from aftercall.errors import ConfigurationError
from aftercall.evolution import EvolutionTask, EvolvedCode
from aftercall.models import Promotion, ToolAnnotations
from aftercall.promotions_file import PromotionsFileError
from tests.mongo.mongo_server import free_port
from tests.service.running_service import Recorded, RunningService
from tests.service.test_patterns import put as put_pattern
from tests.service.test_promotions import SEED_FILE

READS = ToolAnnotations(read_only_hint=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workflow's folder: a promotions file, a tool and its evolved version."""
    tools = tmp_path / "tools" / "executable"
    tools.mkdir(parents=True)
    (tools / "test_tool.py").write_text("import sys; print('original', sys.argv[1])")
    (tools / "test_tool_v1_1.py").write_text("import sys; print('evolved', sys.argv[1])")
    (tmp_path / ".tool_promotions.json").write_text(SEED_FILE)
    return tmp_path


@pytest.fixture
def commands(root: Path) -> CommandExecutor:
    return CommandExecutor(
        root, tool_dir=root / "tools" / "executable", commands={"python": sys.executable}
    )


@pytest.fixture
async def client(service: RunningService) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(service.url) as made:
        yield made


def spec(script: str, **fields: Any) -> ToolSpec:
    """A tool that is a script below the folder of tools."""
    implementation = {"command": "python", "args_template": [f"{{tool_dir}}/{script}", "{input}"]}
    return ToolSpec.model_validate({"name": script, "implementation": implementation} | fields)


# Seed 002, "Testing the Flow"


def test_1_evolution_detection(root: Path, commands: CommandExecutor) -> None:
    """A promotions file alone makes `get_tool` return version 1.1.0, and that it is evolved."""
    with Toolbox(
        None, None, commands, agent="seed", promotions=root / ".tool_promotions.json"
    ) as tools:
        tool = tools.get_tool("test_tool")
        assert (tool.version, tool.is_evolved) == ("1.1.0", True)
        with pytest.raises(ServiceUnreachableError):
            tools.get_tool("another_tool")


def test_2_selection_of_the_best(service: RunningService, commands: CommandExecutor) -> None:
    """In a namespace the tool that suits the scenario is found, with version and quality."""
    namespace = f"code_generator_{uuid4().hex[:6]}"
    with Client(service.url) as client:
        client.put_tool(namespace, ToolSpec(name=namespace, version="1.0.0", description="code"))
        about = "generates Python unit tests with pytest"
        other = ToolSpec(name="pytests", namespace=namespace, version="1.0.0", description=about)
        client.put_tool(f"{namespace}_tests", other)
        service.learned()
        for number in range(6):
            said = f"generate Python unit tests with pytest {number}"
            client.mark_failure(namespace, said, "broken", severity="high")
        service.learned()
    with Toolbox(AsyncClient(service.url), None, commands, agent="seed") as tools:
        best = tools.get_best_tool_in_namespace(
            tool_id=namespace, scenario="generate Python unit tests with pytest", use_rag=True
        )
        assert best.tool.tool_id == f"{namespace}_tests"
        assert best.factors.quality == 1.0
        [original] = [c for c in best.candidates if c.tool.tool_id == namespace]
        assert original.factors.quality < 0.5
        with pytest.raises(NotFoundError):
            tools.get_best_tool_in_namespace("no_such_capability_at_all", "x")


async def test_3_execution_of_the_evolved_file(
    client: AsyncClient, root: Path, commands: CommandExecutor
) -> None:
    """The evolved file runs in the original's place, and is recorded as version 1.1.0."""
    await client.put_tool("test_tool", spec("test_tool.py", name="test_tool", version="1.0.0"))
    recorded = Recorded()
    tools = AsyncToolbox(
        client, recorded, commands, agent="seed", promotions=root / ".tool_promotions.json"
    )
    tool = await tools.get_tool("test_tool")
    assert isinstance(tool.implementation, dict)
    assert tool.implementation["evolved_file"] == "tools/executable/test_tool_v1_1.py"
    result = await tools.call_tool("test_tool", "test.py", scenario="check a file")
    assert (result.value, result.tool.version) == ("evolved test.py", "1.1.0")
    original = await tools.call_tool("test_tool", "test.py", use_evolved=False)
    assert (original.value, original.tool.version) == ("original test.py", "1.0.0")
    assert [(e.tool_name, e.tool_version, e.outcome) for e in recorded.executions] == [
        ("test_tool", "1.1.0", "success"), ("test_tool", "1.0.0", "success"),
    ]  # fmt: skip
    assert recorded.executions[0].context == "check a file"
    assert recorded.executions[0].parameters == {"input": "test.py"}
    assert recorded.executions[0].execution_id == result.execution_id


# Promotions


async def test_a_promotion_of_the_service_is_used_too(
    client: AsyncClient, root: Path, commands: CommandExecutor
) -> None:
    """And this machine's file goes before it, since its files are here."""
    name = f"shared_{uuid4().hex[:6]}"
    folder = root / "tools" / "executable"
    for version in ("", "_v1_1", "_v1_2"):
        (folder / f"shared{version}.py").write_text(f"print('shared{version}')")
    await client.put_tool(name, spec("shared.py", version="1.0.0"))
    promotion = Promotion(
        evolved_version="1.2.0",
        evolved_file="tools/executable/shared_v1_2.py",
        original_version="1.0.0",
    )
    await client.promote(name, promotion)
    path = root / "mine.json"
    tools = AsyncToolbox(client, None, commands, agent="a", promotions=path)
    assert (await tools.call_tool(name, "x")).value == "shared_v1_2"
    path.write_text(SEED_FILE.replace("test_tool", name, 1).replace("test_tool", "shared"))
    result = await tools.call_tool(name, "x")
    assert (result.value, result.tool.version) == ("shared_v1_1", "1.1.0")
    path.unlink()
    assert (await tools.call_tool(name, "x", use_evolved=False)).value == "shared"
    best = await tools.get_best_tool_in_namespace(name, "share")
    assert (best.tool.version, best.source) == ("1.2.0", "evolved")


async def test_what_another_machine_evolved_gives_way_to_the_original(
    client: AsyncClient, root: Path, commands: CommandExecutor
) -> None:
    """Its file is not here; the result says so. A promotion of this machine's is an error still."""
    name = f"far_{uuid4().hex[:6]}"
    (root / "tools" / "executable" / "far.py").write_text("print('far')")
    await client.put_tool(name, spec("far.py", version="1.0.0"))
    await client.promote(
        name,
        Promotion(
            evolved_version="1.1.0", evolved_file="tools/far_v1_1.py", original_version="1.0.0"
        ),
    )
    recorded = Recorded()
    tools = AsyncToolbox(client, recorded, commands, agent="b", promotions=root / "mine.json")
    result = await tools.call_tool(name, "x")
    assert (result.value, result.tool.version) == ("far", "1.0.0")
    assert "there is no file" in (result.fallback or "")
    assert [each.tool_version for each in recorded.executions] == ["1.0.0"]


async def test_a_promotion_to_a_missing_file_is_a_clear_error(
    root: Path, commands: CommandExecutor
) -> None:
    """The original is not run in its place, and nothing is recorded; nor with a malformed file."""
    (root / "tools" / "executable" / "test_tool_v1_1.py").unlink()
    recorded = Recorded()
    path = root / ".tool_promotions.json"
    tools = AsyncToolbox(
        None, recorded, commands, agent="a", promotions=path,
        tools={"test_tool": spec("test_tool.py")},
    )  # fmt: skip
    with pytest.raises(ToolRefusedError, match="there is no file"):
        await tools.call_tool("test_tool", "x")
    assert recorded.executions == []
    assert (await tools.call_tool("test_tool", "x", use_evolved=False)).value == "original x"
    path.write_text(SEED_FILE.replace('"1.1.0"', '"new"'))
    with pytest.raises(PromotionsFileError, match="entry 'test_tool'"):
        await tools.call_tool("test_tool", "x")


# Resilient calls


class Family:
    """Tools of one kind, as callables that note when they run."""

    def __init__(self, client: AsyncClient, service: RunningService) -> None:
        self.client = client
        self.service = service
        self.python = PythonExecutor()
        self.recorded = Recorded()
        self.ran: list[str] = []
        self.word = f"zorb{uuid4().hex[:8]}"
        self.scenario = f"please {self.word} the gadget"
        self.toolbox = AsyncToolbox(
            client, self.recorded, Executors(self.python), agent="r", session_id="s-1"
        )

    async def add(self, name: str, ends: Exception | str, **fields: Any) -> str:
        tool_id = f"{self.word}_{name}"
        described = f"{self.word} the gadget, please, {'well ' * (name == 'a')}"
        made = {"name": tool_id, "description": described, "annotations": READS}
        made |= {"tags": [self.word]} | fields
        await self.client.put_tool(tool_id, ToolSpec.model_validate(made))

        def run(text: str) -> str:
            self.ran.append(name)
            if isinstance(ends, Exception):
                raise ends
            return f"{ends} {text}"

        self.python.register(tool_id, run)
        return tool_id

    async def indexed(self) -> None:
        await self.client.record(self.recorded.executions)
        self.service.learned()

    async def call(self, **options: Any) -> Any:
        settings: dict[str, Any] = {"tags": [self.word]} | options  # the service has other tools
        return await self.toolbox.resilient_tool_call(self.scenario, {"text": "x"}, **settings)


@pytest.fixture
def family(client: AsyncClient, service: RunningService) -> Family:
    return Family(client, service)


async def test_the_next_tool_is_tried_and_the_failure_counts_once(family: Family) -> None:
    """What was tried is told in its order; the mark names the recorded execution."""
    bad = await family.add("a", IndexError("list index out of range"))
    good = await family.add("b", "done")
    await family.indexed()
    result = await family.call()
    assert result.success, result
    assert (result.result, result.tool.tool_id) == ("done x", good)
    tried = [each.tool_id for each in result.attempts]
    assert tried[-1] == good
    assert len(family.recorded.executions) == len(tried)
    if bad in tried:  # the ranking decides who goes first
        first = result.attempts[0]
        assert (first.outcome, first.severity, first.mark_problem) == ("failed", "medium", None)
        assert first.execution_id == family.recorded.executions[0].execution_id
    await family.indexed()
    again = await family.call()
    assert again.success
    assert again.attempts[0].tool_id == good
    failures = await family.client.tool_failures(bad, scenario=family.scenario)
    assert len(failures) == tried.count(bad)


async def test_nothing_is_done_twice_after_a_possible_effect(family: Family) -> None:
    """A tool without claims fails: the other one is not tried, unless the caller vouches."""
    none = ToolAnnotations()
    await family.add("a", ConnectionError("lost"), annotations=none)
    await family.add("b", ConnectionError("lost"), annotations=none)
    await family.indexed()
    result = await family.call()
    assert (result.success, len(family.ran)) == (False, 1)
    assert "may have had an effect" in result.why
    assert len(result.skipped) == 1
    assert result.attempts[0].severity == "low"
    vouched = await family.call(may_repeat=True)
    assert (vouched.success, len(family.ran)) == (False, 3)
    assert vouched.why == "all 2 tools that were tried failed"


@pytest.mark.parametrize(
    ("scenario", "options"),
    [("", {}), (" \n ", {}), ("x" * 100_000, {}), ("x", {"max_attempts": 0}),
     ("x", {"max_attempts": 26})],
)  # fmt: skip
async def test_a_question_that_cannot_be_asked_is_refused(
    family: Family, scenario: str, options: dict[str, Any]
) -> None:
    """Before anything runs."""
    with pytest.raises(ValueError, match=r"max_attempts|say something|10000"):
        await family.toolbox.resilient_tool_call(scenario, None, **options)


# A service that is away


async def test_tools_can_be_called_while_the_service_is_away(
    root: Path, commands: CommandExecutor
) -> None:
    """By this program's definitions and the promotions file; choosing and marking say why not."""
    python = PythonExecutor({"shout": lambda text: text.upper()})
    recorded = Recorded()
    tools = {
        "shout": ToolSpec(name="shout", description="shout a text", annotations=READS),
        "test_tool": spec("test_tool.py"),
    }
    async with AsyncClient(f"http://127.0.0.1:{free_port()}", retries=0) as away:
        toolbox = AsyncToolbox(
            away, recorded, Executors(python, commands), agent="a", tools=tools,
            promotions=root / ".tool_promotions.json",
        )  # fmt: skip
        assert (await toolbox.call_tool("shout", "hey")).value == "HEY"
        assert (await toolbox.call_tool("test_tool", "hey")).value == "evolved hey"
        for question in (
            toolbox.get_best_tool_in_namespace("shout", "x"),
            toolbox.find_tools_for_scenario("x"),
            toolbox.resilient_tool_call("x"),
            toolbox.mark_tool_failure("shout", "x", "y"),
            toolbox.get_tool("unknown"),
        ):
            with pytest.raises(ServiceUnreachableError):
                await question
    assert len(recorded.executions) == 2


# The rest


async def test_a_failure_is_raised_with_its_execution(
    client: AsyncClient, commands: CommandExecutor, root: Path
) -> None:
    """The tool's own words, and where they are recorded."""
    (root / "tools" / "executable" / "sad.py").write_text("raise KeyError('colour')")
    recorded = Recorded()
    toolbox = AsyncToolbox(
        client, recorded, commands, agent="a", session_id="s", tools={"sad": spec("sad.py")}
    )
    with pytest.raises(ToolFailedError, match="KeyError: 'colour'") as failure:
        await toolbox.call_tool("sad", {"colour": "red"}, scenario="paint")
    [execution] = recorded.executions
    assert (await client.record(execution)).accepted == 1
    assert failure.value.execution_id == execution.execution_id
    assert (execution.outcome, execution.session_id, execution.sequence) == ("failure", "s", 0)
    assert execution.parameters == {"colour": "red"}


async def test_a_tool_is_defined_here_and_at_the_service(client: AsyncClient) -> None:
    """By one call."""
    name = f"both_{uuid4().hex[:6]}"
    toolbox = AsyncToolbox(client, None, PythonExecutor({name: lambda: 1}), agent="a")
    registered = await toolbox.register_tool(name, ToolSpec(name=name))
    assert registered == await client.get_tool(name)
    assert (await toolbox.call_tool(name)).value == 1


async def test_an_evolver_needs_a_place_for_its_work(client: AsyncClient, tmp_path: Path) -> None:
    """A promotions file, and a tool that is a script of this machine."""

    class Never:
        async def write(self, task: Any) -> Any:
            raise AssertionError(task)

    python = PythonExecutor({"t": lambda: 1})
    with pytest.raises(ConfigurationError, match="needs a promotions file"):
        AsyncToolbox(client, None, python, agent="a", evolver=Never())  # type: ignore[arg-type]  # never asked
    toolbox = AsyncToolbox(client, None, python, agent="a", tools={"t": ToolSpec(name="t")})
    with pytest.raises(ConfigurationError, match="has no evolver"):
        await toolbox.evolve_tool("t", "it fails")


# Evolution


class Author:
    """An evolver that answers with code that it was given, and notes what it was asked."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.tasks: list[EvolutionTask] = []

    async def evolve(self, task: EvolutionTask) -> EvolvedCode:
        self.tasks.append(task)
        return EvolvedCode(self.code, "reads the list from its end")


@pytest.mark.parametrize("heals", [True, False])
async def test_when_all_fail_the_best_is_evolved_and_tried_once_more(
    service: RunningService,
    client: AsyncClient,
    commands: CommandExecutor,
    root: Path,
    *,
    heals: bool,
) -> None:
    """The new version is promoted here and at the service; one that fails too is told."""
    name = f"fragile_{uuid4().hex[:6]}"
    (root / "tools" / "executable" / f"{name}.py").write_text("import sys\nprint(sys.argv[2])\n")
    made = spec(f"{name}.py", name=name, description=f"{name} of lists", annotations=READS)
    await client.put_tool(name, made.model_copy(update={"tags": [name], "version": "1.0.0"}))
    author = Author(f"import sys\nprint(sys.argv[{1 if heals else 3}])\n")
    put_pattern(service, tool_name=name, lesson="A list has a first item and a last one.")
    recorded = Recorded()
    toolbox = AsyncToolbox(
        client, recorded, commands, agent="a", promotions=root / ".tool_promotions.json",
        evolver=author,
    )  # fmt: skip
    service.learned()
    result = await toolbox.resilient_tool_call(f"{name} of lists", "last", tags=[name])
    assert (result.success, result.evolution_tried) == (heals, True)
    assert result.evolution is not None
    assert (result.evolution.status, result.evolution.version) == ("evolved", "1.1.0")
    assert [(e.version, e.outcome) for e in result.attempts] == [
        ("1.0.0", "failed"), ("1.1.0", "success" if heals else "failed"),
    ]  # fmt: skip
    [task] = author.tasks
    assert task.reason == "Evolved to fix: list index out of range"
    assert task.failures[0].error_message == "list index out of range"
    assert task.lessons == ["A list has a first item and a last one."]
    assert [(e.tool_version, e.outcome) for e in recorded.executions] == [
        ("1.0.0", "failure"), ("1.1.0", "success" if heals else "failure"),
    ]  # fmt: skip
    status_there = await client.get_promotion(name)
    assert status_there.evolved_file == f"tools/executable/{name}_v1_1.py"
    assert (await toolbox.get_tool(name)).version == "1.1.0"
    if heals:
        assert (result.result, result.why) == ("last", "the evolved version succeeded")
        assert (await toolbox.call_tool(name, "again")).value == "again"
    else:
        assert result.why.endswith("; so did its evolved version")


async def test_an_evolution_that_fails_is_told(
    service: RunningService, client: AsyncClient, commands: CommandExecutor, root: Path
) -> None:
    """The call fails as it would have, and nothing is promoted."""
    name = f"stuck_{uuid4().hex[:6]}"
    (root / "tools" / "executable" / f"{name}.py").write_text("raise ValueError('no')\n")
    made = spec(f"{name}.py", name=name, description=f"{name} it", annotations=READS, tags=[name])
    await client.put_tool(name, made)
    toolbox = AsyncToolbox(
        client, None, commands, agent="a", evolver=Author("this is no code ("),
        promotions=root / ".tool_promotions.json",
    )  # fmt: skip
    service.learned()
    result = await toolbox.resilient_tool_call(f"{name} it", "x", tags=[name])
    assert (result.success, result.evolution_tried) == (False, True)
    assert result.evolution is not None
    assert result.evolution.status == "rejected"
    assert result.why.startswith("the only tool failed; it was not evolved: ")
    assert (root / ".tool_promotions.json").read_text() == SEED_FILE
