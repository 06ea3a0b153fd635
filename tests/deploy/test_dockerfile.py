"""The Dockerfile: a small last stage, that nobody runs as root, with all that it copies at hand."""

import re
import shlex
import tomllib
from fnmatch import fnmatch
from importlib.metadata import distribution
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from service.environment import unknown_variables
from tests.deploy.compose_file import ROOT, example_environment, read_compose

HEAVY = re.compile("torch|safetensors|sentence-transformers|transformers|nvidia|cuda|pytest")
"""Needed for other models, or to test: none of it may be in the image that serves."""


class Stage(NamedTuple):
    """What follows one FROM: instructions by their names, their continued lines joined."""

    instructions: list[list[str]]

    def of(self, name: str) -> list[str]:
        """What follows every instruction of a name."""
        return [rest.strip() for each, rest in self.instructions if each == name]

    def one(self, name: str) -> str:
        """What follows the only instruction of a name."""
        [rest] = self.of(name)
        return rest


def read_stages() -> list[Stage]:
    """The stages of the Dockerfile."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    _, *stages = re.split(r"^FROM .*$", text.replace("\\\n", " "), flags=re.MULTILINE)
    return [
        Stage([line.split(None, 1) for line in stage.splitlines() if line.strip()])
        for stage in stages
    ]


PACKAGES, LAST = read_stages()


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
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) <= let_in
    for secret in (".env", "sdk/.env"):
        assert any(fnmatch(secret, rule.replace("**/", "*")) for rule in rules[1:])


def closure(*wanted: str) -> set[str]:
    """Distributions that come with these, by what those that are installed here require."""
    chosen: set[str] = set()
    waiting = [Requirement(each) for each in wanted]
    while waiting:
        asked = waiting.pop()
        for extra in (*asked.extras, ""):
            if (key := f"{canonicalize_name(asked.name)}[{extra}]") not in chosen:
                chosen.add(key)
                waiting += [
                    each
                    for each in map(Requirement, distribution(asked.name).requires or ())
                    if not each.marker or each.marker.evaluate({"extra": extra})
                ]
    return {each.partition("[")[0] for each in chosen}


def test_no_torch_is_in_the_image() -> None:
    """Nor anything else that serving does not need, of all that pip would install there."""
    [command] = [run for run in PACKAGES.of("RUN") if "install -c" in run]
    *_, sdk, service = shlex.split(command)
    assert (sdk, service) == ("./sdk", ".[servers]")
    chosen = closure("aftercall", "aftercall-service[servers]")
    assert {"aftercall", "aftercall-service", "pymongo", "qdrant-client", "onnxruntime"} <= chosen
    assert not [name for name in chosen if HEAVY.match(name)]
