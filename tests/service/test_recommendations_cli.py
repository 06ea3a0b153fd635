"""`aftercall recommendations` against a true service."""

import json
from uuid import uuid4

import pytest

from tests.service.fitness_client import fresh
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
