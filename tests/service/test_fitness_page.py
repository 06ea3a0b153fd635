"""docs/fitness.md's example, run as it stands against a true service with the default model."""

import re
from pathlib import Path
from typing import Any

import pytest

from embeddings.model_files import default_cache_dir
from tests.service.running_service import hashing_settings, running

PAGE = Path(__file__).parents[2] / "docs" / "fitness.md"

pytestmark = pytest.mark.real


def test_the_worked_example_prints_what_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scores and factors, before and after a failure is marked."""
    text = PAGE.read_text(encoding="utf-8")
    [source] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [printed] = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    model = {"model": "all-MiniLM-L6-v2", "cache_dir": default_cache_dir()}
    with running(hashing_settings(tmp_path, embedding=model)) as service:
        exec(source.replace("http://127.0.0.1:8799", service.url), names)  # noqa: S102 - our own page
    assert capsys.readouterr().out.strip() == printed.strip()
