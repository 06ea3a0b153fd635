"""The Dockerfile: a small last stage, that nobody runs as root, with all that it copies at hand."""

import json
import re
import shlex
import subprocess
import sys
import venv
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest

from service.environment import unknown_variables
from tests.deploy.compose_file import ROOT, example_environment, read_compose

HEAVY = {"torch", "safetensors", "sentence-transformers", "transformers", "pytest"}
"""Needed for other models, or to test: none of it may be in the image that serves."""

BUILD_TOOLS = {"hatchling", "setuptools", "wheel", "pip"}


class Instruction(NamedTuple):
    """One instruction, its continued lines joined."""

    name: str
    rest: str


class Stage(NamedTuple):
    """What follows one FROM."""

    name: str | None
    image: str
    instructions: list[Instruction]

    def of(self, name: str) -> list[str]:
        """What follows every instruction of a name."""
        return [each.rest for each in self.instructions if each.name == name]

    def one(self, name: str) -> str:
        """What follows the only instruction of a name."""
        [rest] = self.of(name)
        return rest


def read_dockerfile() -> tuple[dict[str, str], list[Stage]]:
    """The arguments before the first stage, and the stages."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        name, rest = line.split(None, 1)
        if name == "ARG" and not stages:
            arguments.update([rest.split("=", 1)])  # type: ignore[list-item]
        elif name == "FROM":
            image, _, stage = rest.partition(" AS ")
            for argument, value in arguments.items():
                image = image.replace(f"${{{argument}}}", value)
            stages.append(Stage(stage or None, image, []))
        else:
            stages[-1].instructions.append(Instruction(name, rest.strip()))
    return arguments, stages


STAGES = read_dockerfile()[1]
PACKAGES, LAST = STAGES


def environment_of(stage: Stage) -> dict[str, str]:
    """The variables that a stage sets."""
    pairs = [word for rest in stage.of("ENV") for word in shlex.split(rest)]
    return dict(pair.split("=", 1) for pair in pairs)


def test_it_does_not_run_as_root() -> None:
    """By a fixed number, the one that the compose file uses too, which owns the data folder."""
    user = LAST.one("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    services = read_compose(example_environment())["services"]
    assert {services[name]["user"] for name in ("service", "worker", "nightly")} == {user}
    number = user.split(":")[0]
    assert any(f"-o {number} " in command for command in LAST.of("RUN"))


def test_the_settings_exist() -> None:
    """Every variable of ours is one that the service reads, and none is a secret."""
    environment = environment_of(LAST)
    assert list(unknown_variables(environment)) == []
    assert not [name for name in environment if re.search("KEY|PASSWORD|URI|TOKEN", name)]
    assert environment["AFTERCALL_DATA_DIR"] == LAST.one("VOLUME")


def test_what_is_copied_is_there_and_not_ignored() -> None:
    """Of this folder: all packages that are built, and nothing that the builder never sees."""
    rules = [
        line
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert rules[0] == "*"
    let_in = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    sources = {source for rest in PACKAGES.of("COPY") for source in rest.split()[:-1]}
    assert sources == let_in
    assert all((ROOT / source).exists() for source in sources)
    built = re.search(
        r"targets\.wheel\]\npackages = \[(.*)\]", (ROOT / "pyproject.toml").read_text()
    )
    assert built is not None
    assert set(re.findall(r'"(\w+)"', built[1])) <= let_in
    for secret in (".env", "sdk/.env"):
        assert any(fnmatch(secret, rule.replace("**/", "*")) for rule in rules[1:])


def pip_words(stage: Stage) -> list[str]:
    """What `pip install` is told in a stage."""
    [command] = [run for run in stage.of("RUN") if "install -c" in run]
    return shlex.split(command.split(" install ", 1)[1])


@pytest.mark.real
def test_no_torch_is_in_the_image(tmp_path: Path) -> None:
    """What pip would install there, asked of pip itself in an empty environment."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    report = tmp_path / "report.json"
    subprocess.run(
        [
            *(sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--quiet"),
            *("--python", str(environment), "install", "--dry-run", "--report", str(report)),
            *pip_words(PACKAGES),
        ],
        cwd=ROOT, check=True, timeout=600, capture_output=True,
    )  # fmt: skip
    chosen = {
        re.sub(r"[-_.]+", "-", each["metadata"]["name"]).lower()
        for each in json.loads(report.read_text())["install"]
    }
    assert {"aftercall", "aftercall-service", "pymongo", "qdrant-client", "onnxruntime"} <= chosen
    assert not chosen & (HEAVY | BUILD_TOOLS)
    assert not [name for name in chosen if name.startswith(("nvidia", "cuda", "triton"))]
