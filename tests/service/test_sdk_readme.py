"""The toolbox block of the SDK's README, run as it stands on an empty service."""

import re
from pathlib import Path
from typing import Any

import pytest

from aftercall import Recorder
from service.settings import DataSettings, Settings
from tests.service.running_service import running

README = Path(__file__).parents[2] / "sdk" / "README.md"

pytestmark = pytest.mark.real


def test_the_toolbox_does_what_the_readme_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What its remarks say is what is printed, on a service that knows nothing yet."""
    monkeypatch.chdir(tmp_path)
    section = README.read_text("utf-8").partition("\n## Toolbox\n")[2]
    [source] = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    promised = re.findall(r"^print\(.*\)  # (.*)$", source, re.MULTILINE)
    with (
        running(Settings(data=DataSettings(dir=tmp_path / "data"))) as service,
        Recorder(base_url=service.url, spool_dir=tmp_path / "spool") as recorder,
    ):
        names: dict[str, Any] = {"recorder": recorder}
        exec(source.replace("http://127.0.0.1:8799", service.url), names)  # noqa: S102 - ours
    assert capsys.readouterr().out.splitlines() == promised
    assert promised == ["HELLO", "True GOOD DAY the first tool succeeded"]
