"""The worked examples of docs/, run as they stand against a true service with the default model."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.service.running_service import hashing_settings, running

DOCS = Path(__file__).parents[2] / "docs"

pytestmark = pytest.mark.real


@pytest.mark.parametrize("page", ["fitness.md", "boundaries.md"])
def test_the_worked_example_prints_what_the_page_says(
    page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """To the letter."""
    text = (DOCS / page).read_text(encoding="utf-8")
    example = r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```"
    [(source, printed)] = re.findall(example, text, re.DOTALL)
    names: dict[str, Any] = {}
    model = {"model": "all-MiniLM-L6-v2"}
    with running(hashing_settings(tmp_path, embedding=model)) as service:
        exec(source.replace("http://127.0.0.1:8799", service.url), names)  # noqa: S102 - our own page
    assert capsys.readouterr().out.strip() == printed.strip()
