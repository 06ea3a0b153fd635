"""The examples, as they are, against a true service."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.running_service import RunningService, hashing_settings, running

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(path.name for path in EXAMPLES.glob("*.py"))

HELPED = {
    "decorators.py": "cyd: ['commit 0 of trunk'",
    "fastmcp_middleware.py": 'cyd: ["commit 0 of trunk","commit 1 of trunk","commit 2 of trunk"] '
    "(repaired via reflection)",
    "gateway_hooks.py": 'cyd: 1. replace "/branch": "main" -> "trunk"',
    "harmony_stream.py": 'cyd: ["commit 0 of trunk","commit 1 of trunk"]',
    "langgraph_agent.py": 'cyd: ["commit 0 of trunk", "commit 1 of trunk", "commit 2 of trunk"] '
    "repaired via reflection",
    "langgraph_toolnode.py": 'cyd: ["commit 0 of trunk", "commit 1 of trunk", '
    '"commit 2 of trunk"] repaired via reflection',
    "openai_agents_tools.py": "cyd: ['commit 0 of trunk', 'commit 1 of trunk']",
}
"""What the third agent gets of each, which the first two did not have."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    settings = hashing_settings(tmp_path_factory.mktemp("service"))
    with running(settings) as started:
        yield started


@pytest.mark.real
@pytest.mark.parametrize("name", FILES)
def test_the_third_agent_is_helped_by_what_two_found_out(
    name: str, service: RunningService, tmp_path: Path
) -> None:
    """Each example runs as it is, warns of nothing, and shows a repair learned from calls."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name],
        cwd=tmp_path,
        env={
            **{
                k: v
                for k, v in os.environ.items()
                if not k.startswith(("LANGSMITH", "LANGCHAIN", "OPENAI"))
            },
            "AFTERCALL_URL": service.url,
            "XDG_STATE_HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert HELPED[name] in ran.stdout
    for earlier in ("ada", "ben"):
        assert re.search(rf"^{earlier}: .*unknown branch 'main'", ran.stdout, re.MULTILINE)
    assert not re.search(r"^cyd: .*Error.*unknown branch", ran.stdout, re.MULTILINE)
    assert "not recorded" not in ran.stderr


def test_every_example_is_told_of() -> None:
    """examples/README.md has a line for each file, and no line for a file that is not there."""
    told = re.findall(
        r"^\| \[(\w+\.py)\]\(\1\)", (EXAMPLES / "README.md").read_text(), re.MULTILINE
    )
    assert sorted(told) == FILES
