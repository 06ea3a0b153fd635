"""docker-compose.yml does what it promises, as far as it can be seen without an engine."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.environment import list_settings, read_settings, unknown_variables
from tests.deploy.compose_file import (
    COMPOSE,
    UnsetError,
    blanks,
    example_environment,
    passed,
    read_compose,
    variables,
)
from tests.sdk.loopback import Loopback, page

OURS = ("service", "worker", "nightly")
HARDENED = {"cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"], "read_only": True}


@pytest.fixture
def environment() -> dict[str, str]:
    return example_environment()


@pytest.fixture
def compose(environment: dict[str, str]) -> dict[str, Any]:
    return read_compose(environment)


@pytest.fixture
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = compose["services"]
    return found


def test_every_image_is_pinned(services: dict[str, dict[str, Any]]) -> None:
    """To a release, never to what is newest on the day."""
    for service in services.values():
        assert re.search(r":v?\d+\.\d+\.\d+(-[a-z]+)?$", service["image"])
    assert services["mongo"]["image"] == services["mongo-init"]["image"]
    assert len({services[name]["image"] for name in OURS}) == 1


def test_nobody_is_root_and_nobody_can_become_it(services: dict[str, dict[str, Any]]) -> None:
    """Fixed numbers, no capabilities, a root that cannot be written."""
    for name, service in services.items():
        user, group = service["user"].split(":")
        assert min(int(user), int(group)) > 0, name
        assert {key: service[key] for key in HARDENED} == HARDENED, name
        for place in service["tmpfs"]:
            path, _, options = place.partition(":")
            assert path == "/tmp" or f"uid={user},gid={group},mode=0700" in options, name


def test_ours_wait_until_the_stores_are_ready(services: dict[str, dict[str, Any]]) -> None:
    """For the health of what has one, and for the end of what ends."""
    for name in OURS:
        waits = {other: how["condition"] for other, how in services[name]["depends_on"].items()}
        assert waits == {
            "mongo": "service_healthy",
            "mongo-init": "service_completed_successfully",
            "qdrant": "service_healthy",
        }
    assert "healthcheck" not in services["mongo-init"]


def test_only_the_service_can_be_reached_and_only_from_this_machine(
    services: dict[str, dict[str, Any]], environment: dict[str, str]
) -> None:
    """Unless somebody says otherwise in .env."""
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"service": ["127.0.0.1:8799:8799"]}
    del environment["AFTERCALL_BIND"], environment["AFTERCALL_PORT"]
    assert read_compose(environment)["services"]["service"]["ports"] == ["127.0.0.1:8799:8799"]


def test_no_secret_is_in_the_file_and_none_may_be_missing(environment: dict[str, str]) -> None:
    """`.env.example` names all there are; what it leaves blank must be set, and nothing else."""
    assert set(environment) - passed() == set(variables())
    must = {name for name, kinds in variables().items() if ":?" in kinds}
    assert must == blanks()
    assert all(kinds == {":?"} for name, kinds in variables().items() if name in must)
    for name in must:
        with pytest.raises(UnsetError, match=r"set it in \.env"):
            read_compose(environment | {name: ""})


def test_every_setting_reaches_every_process(environment: dict[str, str]) -> None:
    """What the file does not fix itself is passed on from .env, and no secret of another server."""
    fixed = {
        name for each in OURS for name in read_compose(environment)["services"][each]["environment"]
    }
    known = {row.variable for row in list_settings(read_settings())}
    of_the_image = {"AFTERCALL_DATA_DIR", "AFTERCALL_KEYS_BOOTSTRAP_FILE"}
    assert known - fixed - passed() == of_the_image | {"AFTERCALL_QDRANT_GRPC_PORT"}
    assert passed() <= known
    environment["AFTERCALL_PRIVACY_ALLOWLISTS"] = '{"*": ["query"]}'
    for name in OURS:
        given = read_compose(environment)["services"][name]["environment"]
        assert given["AFTERCALL_PRIVACY_ALLOWLISTS"] == '{"*": ["query"]}'
        assert not {"AFTERCALL_MONGO_ROOT_PASSWORD", "AFTERCALL_MONGO_REPLICA_KEY"} & given.keys()


def test_the_file_is_one_by_the_schema_of_compose() -> None:
    """As its own tools check it."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    checked = subprocess.run([*command, COMPOSE], check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_it_starts_on_any_machine_and_says_what_memory_it_takes(
    services: dict[str, dict[str, Any]],
) -> None:
    """A limit of processors that a machine has not is refused by the engine."""
    sizes = {"g": 1024, "m": 1}
    memory = {
        name: int(each["mem_limit"][:-1]) * sizes[each["mem_limit"][-1]]
        for name, each in services.items()
    }
    assert all("cpus" not in each for each in services.values())
    total = sum(memory.values()) - memory["mongo-init"]
    for place in (COMPOSE, COMPOSE.parent / "docs" / "operations.md"):
        assert f"{total / 1024:.1f} GiB of memory" in place.read_text(encoding="utf-8")


def test_the_key_of_hashes_is_one_and_lasts(services: dict[str, dict[str, Any]]) -> None:
    """In a volume that all replicas share; what is elsewhere in their folder goes with them."""
    for name in OURS:
        key = Path(services[name]["environment"]["AFTERCALL_PRIVACY_HASH_KEY_FILE"])
        assert services[name]["volumes"] == [f"hashes:{key.parent}"]
        assert not any(str(key).startswith(f"{each.partition(':')[0]}/")
                       for each in services[name]["tmpfs"])  # fmt: skip


@pytest.mark.parametrize("name", OURS)
def test_the_settings_exist_and_are_accepted(
    services: dict[str, dict[str, Any]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No misspelt variable, no impossible value."""
    given = services[name]["environment"]
    assert list(unknown_variables(given)) == []
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    settings = read_settings()
    assert {row.variable for row in list_settings(settings)} >= set(given)
    assert settings.qdrant.url == "http://qdrant:6333"


def test_each_thing_is_done_in_one_place(
    services: dict[str, dict[str, Any]], environment: dict[str, str]
) -> None:
    """The service leaves learning to the worker, and the night to its own container."""
    told = services["service"]["environment"]
    assert told["AFTERCALL_INDEXING_HERE"] == "false"
    assert float(told["AFTERCALL_NIGHTLY_EVERY_H"]) == 0
    assert services["nightly"]["command"] == ["nightly", "--every", "24h"]
    # All three mean the same stores.
    shared = [
        {k: v for k, v in services[name]["environment"].items() if "MONGO" in k or "QDRANT" in k}
        for name in OURS
    ]
    assert shared[0] == shared[1] == shared[2]
    key = services["qdrant"]["environment"]["QDRANT__SERVICE__API_KEY"]
    assert shared[0]["AFTERCALL_QDRANT_API_KEY"] == key
    assert (
        services["mongo-init"]["environment"]["MONGO_PASSWORD"] in shared[0]["AFTERCALL_MONGO_URI"]
    )


def test_mongo_starts_with_a_private_key_file(
    services: dict[str, dict[str, Any]], tmp_path: Path, environment: dict[str, str]
) -> None:
    """Its command, run as it is written but for the place: twice, as after a restart."""
    mongo = services["mongo"]
    mongod = tmp_path / "bin" / "mongod"
    mongod.parent.mkdir()
    mongod.write_text('#!/bin/bash\necho "$@"\necho "${MONGO_REPLICA_KEY:-no key}"\n')
    mongod.chmod(0o755)
    [script] = mongo["command"]
    command = [*mongo["entrypoint"], script.replace("/data/configdb", str(tmp_path))]
    for _ in range(2):
        ran = subprocess.run(
            command,
            env=mongo["environment"] | {"PATH": f"{mongod.parent}:{os.environ['PATH']}"},
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        told, key = ran.stdout.splitlines()
        assert f"--keyFile {tmp_path}/keyfile" in told
        assert key == "no key"
        keyfile = tmp_path / "keyfile"
        assert stat.S_IMODE(keyfile.stat().st_mode) == 0o400
        assert keyfile.read_text() == environment["AFTERCALL_MONGO_REPLICA_KEY"]


def checked(test: list[str], port: int) -> int:
    """The exit status of a health check, asked at another port."""
    command = [word.replace("6333", str(port)) for word in test[1:]]
    environment = {**os.environ, "AFTERCALL_SERVER_PORT": str(port)}
    return subprocess.run(command, env=environment, check=False, capture_output=True).returncode


@pytest.mark.parametrize("name", ["qdrant", "service"])
def test_a_health_check_tells_ready_from_not(
    services: dict[str, dict[str, Any]], name: str
) -> None:
    """With nothing but what its image has: bash, head and grep, or Python."""
    test = services[name]["healthcheck"]["test"]
    with Loopback() as server:
        for status, expected in ((200, 0), (503, 1)):
            server.fail(page(status), times=1)
            assert checked(test, server.port) == expected
    assert checked(test, server.port) != 0
