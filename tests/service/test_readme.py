"""The README's Python example, run as it stands against a true service."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.service.running_service import RunningService

README = Path(__file__).parents[2] / "README.md"


def test_the_readmes_example_works(
    service: RunningService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A newcomer who pastes it sees the call repaired, and both attempts are recorded."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    [source] = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(source.replace("http://127.0.0.1:8799", service.url), names)  # noqa: S102 - our own README
    asyncio.run(names["main"]())
    assert "repaired via reflection" in capsys.readouterr().out
    stored = service.client.get("/status").json()["executions"]
    assert stored >= 2
