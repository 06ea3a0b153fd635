"""Which version a toolbox takes: by id, namespace and machine, with the service and without it."""

import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from aftercall import AsyncClient, AsyncToolbox, CommandExecutor, PythonExecutor, ToolSpec
from aftercall.evolution import EvolutionTask, EvolvedCode
from aftercall.models import Promotion
from aftercall.promotions_file import read_promotions, write_promotions
from tests.service.running_service import RunningService

READS_STDIN = "import json, sys\nprint({word!r}, json.load(sys.stdin)['text'])\n"


class Home:
    """A folder with a tool that reads standard input, alone in its namespace, and a toolbox."""

    def __init__(self, folder: Path, client: AsyncClient) -> None:
        self.client = client
        self.name = f"reader_{uuid4().hex[:8]}"
        self.namespace = f"{self.name}_space"
        self.promotions = folder / ".tool_promotions.json"
        self.folder = folder
        self.write("original", "")
        self.executor = CommandExecutor(folder, commands={"python": sys.executable})
        self.toolbox = self.another()

    def another(self, client: AsyncClient | None = None, **options: object) -> AsyncToolbox:
        return AsyncToolbox(
            client or self.client, None, self.executor, agent="a", promotions=self.promotions,
            **options,  # type: ignore[arg-type]  # options of this test
        )  # fmt: skip

    def write(self, word: str, version: str) -> str:
        file = self.folder / f"{self.name}{version}.py"
        file.write_text(READS_STDIN.format(word=word))
        return file.name

    async def register(self) -> None:
        implementation = {"command": "python", "args_template": [f"{{tool_dir}}/{self.name}.py"]}
        spec = ToolSpec(
            name=self.name, namespace=self.namespace, version="1.0.0",
            implementation=implementation,
        )  # fmt: skip
        await self.client.put_tool(self.name, spec)

    def promotion(self, version: str) -> Promotion:
        file = self.write(version, f"_v{version.replace('.', '_')}")
        return Promotion(
            evolved_version=version, evolved_file=file, original_version="1.0.0",
            promoted_at=datetime(2026, 1, 1, tzinfo=UTC),
        )  # fmt: skip


@pytest.fixture
async def home(service: RunningService, tmp_path: Path) -> AsyncIterator[Home]:
    async with AsyncClient(service.url) as client:
        made = Home(tmp_path, client)
        await made.register()
        yield made


async def test_what_is_in_force_is_asked_for_by_id_or_namespace(home: Home) -> None:
    """What the service promoted, until that is taken back; else what this machine did."""
    names = (home.name, home.namespace)
    await home.client.promote(home.name, home.promotion("1.1.0"))
    for name in names:
        assert (await home.toolbox.call_tool(name, {"text": "x"})).value == "1.1.0 x"
    await home.client.remove_promotion(home.name)
    assert (await home.toolbox.get_tool(home.name)).version == "1.0.0"
    write_promotions(home.promotions, {home.namespace: home.promotion("1.2.0")})
    for name in names:
        result = await home.toolbox.call_tool(name, {"text": "x"})
        assert (result.value, result.tool.tool_id) == ("1.2.0 x", home.name)


async def test_the_first_candidate_is_the_answer_here_too(home: Home) -> None:
    """With the version that this machine's file promotes, in both places."""
    write_promotions(home.promotions, {home.name: home.promotion("1.3.0")})
    best = await home.toolbox.get_best_tool_in_namespace(home.namespace, "read a text")
    assert best.tool.version == "1.3.0"
    assert best.candidates[0].tool == best.tool


async def test_a_failure_is_marked_for_the_version_that_runs_here(home: Home) -> None:
    """Though the service has not heard of it; a version that is named goes first."""
    write_promotions(home.promotions, {home.name: home.promotion("1.3.0")})
    mark = home.toolbox.mark_tool_failure
    assert (await mark(home.name, "read", "broken")).version == "1.3.0"
    assert (await mark(home.name, "read", "broken", version="1.0.0")).version == "1.0.0"


async def test_a_tool_evolves_where_it_was_promoted(home: Home) -> None:
    """Also when another tool has joined its namespace: what was mended before is not lost."""
    answers = iter(["first", "second"])

    tasks: list[EvolutionTask] = []

    class Author:
        async def evolve(self, task: EvolutionTask) -> EvolvedCode:
            tasks.append(task)
            return EvolvedCode(READS_STDIN.format(word=next(answers)))

    toolbox = home.another(evolver=Author())
    await toolbox.evolve_tool(home.name, "it fails")
    other = ToolSpec(name="other", namespace=home.namespace, version="1.0.0")
    await home.client.put_tool(f"{home.name}_other", other)
    await toolbox.evolve_tool(home.name, "it fails again")
    assert list(read_promotions(home.promotions)) == [home.name]
    assert "first" in tasks[1].source
    assert (await toolbox.call_tool(home.name, {"text": "x"})).value == "second x"


async def test_what_is_not_recorded_has_no_execution(home: Home) -> None:
    """So that no mark names a call that nobody knows."""
    toolbox = AsyncToolbox(
        None, None, PythonExecutor({"t": lambda: 1}), agent="a", tools={"t": ToolSpec(name="t")}
    )
    assert (await toolbox.call_tool("t")).execution_id is None
    assert home.promotions.exists() is False
