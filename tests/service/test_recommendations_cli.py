"""`aftercall recommendations` against a true service."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from tests.sdk.scripted_chat_server import ScriptedChatServer, fenced
from tests.service.fitness_client import Fitness, fresh
from tests.service.running_service import Run, RunningService
from tests.service.test_recommendations import failing, learn

COMMAND = "recommendations"


@pytest.fixture
def tool(service: RunningService) -> str:
    """A tool that fails."""
    name = fresh("reader")
    learn(service, name, failing())
    return name


def test_the_queue_is_worked_off(service: RunningService, run: Run, tool: str) -> None:
    """List, take, done, dismiss and reopen; each says what holds."""
    code, said, _ = run("--tool", tool)
    first, message = said.splitlines()
    found, state, kind = first.split()[:3]
    assert (code, state, kind) == (0, "open", "repair")
    assert message.strip().startswith(f'repair "{tool}": 8 of 18 calls failed')
    assert run("take", found)[1].startswith(f'taken: repair "{tool}"')
    assert run("--tool", tool)[1].split()[1] == "taken"
    assert run("take", found, "--service", service.url, url="http://127.0.0.1:9")[0] == 0
    assert run("done", found, "--reason", "fixed in 1.2")[0] == 0
    assert run("--tool", tool) == (0, "nothing is recommended\n", "")
    assert "reason given: fixed in 1.2" in run("--tool", tool, "--state", "done")[1]
    assert run("dismiss", found, "--reason", "a mock")[1].startswith("dismissed: ")
    assert run("reopen", found)[1].startswith("open: ")
    assert run("--tool", tool)[1].split()[1] == "open"


def test_it_is_told_as_json(run: Run, tool: str) -> None:
    """As the service says it."""
    [found] = json.loads(run("--tool", tool, "--json")[1])["recommendations"]
    assert (found["kind"], found["tool"]["toolName"]) == ("repair", tool)


def test_faults_are_told_with_their_cure(run: Run, tool: str) -> None:
    """On stderr, with a code that is not 0."""
    code, said, told = run("take", str(uuid4()))
    assert (code, said) == (1, "")
    assert "`aftercall recommendations --state all` shows their ids" in told
    code, _, told = run("dismiss", run("--tool", tool)[1].split()[0])
    assert code == 2
    assert "--reason" in told
    code, _, told = run("--tool", f"{tool}-of-nobody")
    assert code == 1
    assert "there is no tool" in told
    assert run("--state", "closed")[0] == 2


def test_what_others_said_stays_on_its_line(service: RunningService, run: Run) -> None:
    """No control character reaches the terminal."""
    name = fresh("reader")
    story = failing()
    for each in story.known.own_failures:
        each.message = "first\nsecond\x1b[31m red"
    learn(service, name, story)
    lines = run("--tool", name)[1].splitlines()
    assert len(lines) == 2
    assert "\x1b" not in lines[1]


def test_marks_alone_lead_to_a_repair_and_one_command_to_the_next_version(
    service: RunningService, run: Run, tmp_path: Path
) -> None:
    """Twenty grave marks of a tool that nobody recorded; its script is evolved and promoted."""
    fitness, name = Fitness(service), fresh("shout")
    (tmp_path / "shout.py").write_text("import sys\nprint(sys.argv[1].upper())\n")
    command = {"command": "python", "args_template": ["{tool_dir}/shout.py"]}
    fitness.put(name, implementation=command)
    for _ in range(20):
        fitness.mark(name)
    fitness.learned()
    [found] = json.loads(run("--tool", name, "--json")[1])["recommendations"]
    assert found["kind"] == "repair"
    assert found["message"].startswith(f'repair "{name}": 20 of 20 calls failed')
    assert "20 high marks" in found["message"]
    new = "import sys\nprint(' '.join(sys.argv[1:]).upper())\n"
    with ScriptedChatServer() as chat:
        chat.says(fenced(new))
        said = run(
            "evolve", found["recommendationId"], "--model", "small", "--chat", chat.url,
            "--promotions", str(tmp_path / ".tool_promotions.json"),
        )  # fmt: skip
    assert said[0] == 0, said
    assert said[1].startswith("evolved: ")
    assert (tmp_path / "shout_v1_1.py").read_text() == new
    assert fitness.best(name)["source"] == "evolved"
    assert run("--tool", name)[1].split()[1] == "taken"
    code, _, told = run("evolve", str(uuid4()), "--model", "small")
    assert (code, "is no recommendation about a registered tool" in told) == (1, True)
