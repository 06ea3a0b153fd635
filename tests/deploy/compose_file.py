"""The compose file as an engine would read it: merged, with the environment put in."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]

COMPOSE = ROOT / "docker-compose.yml"

_VARIABLE = re.compile(
    r"\$\$|\$\{(?P<name>[A-Z0-9_]+)(?:(?P<kind>:-|:\?)(?P<rest>[^}]*))?\}|(?P<stray>\$)"
)


class UnsetError(Exception):
    """A variable that must be set is not."""


def example_environment() -> dict[str, str]:
    """`.env.example` with its blanks filled in, each with something else."""
    found: dict[str, str] = {}
    for line in (ROOT / ".env.example").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            secret = f"secret{len(found)}of{name.lower().replace('_', '')}"
            is_key = name == "AFTERCALL_KEYS_BOOTSTRAP"
            found[name] = value or (f"ac_{'0a' * 8}_{secret:x<40}" if is_key else secret)
    return found


def blanks() -> set[str]:
    """Variables that `.env.example` leaves to the reader."""
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    return {line[:-1] for line in lines if line.endswith("=")}


def variables() -> dict[str, set[str]]:
    """Every variable of the file, with how it is asked for: '', ':-' or ':?'."""
    found: dict[str, set[str]] = {}
    for match in _VARIABLE.finditer(COMPOSE.read_text(encoding="utf-8")):
        if match["name"]:
            found.setdefault(match["name"], set()).add(match["kind"] or "")
    return found


def passed() -> set[str]:
    """Variables that reach the containers as .env has them, if it has them."""
    told = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return {name for name, value in told["x-settings"].items() if value is None}


def read_compose(environment: Mapping[str, str]) -> dict[str, Any]:
    """The file's content.

    Raises:
        UnsetError: a variable that must be set is not, in the file's own words.
    """
    told: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    filled: dict[str, Any] = _filled(told, environment)
    for service in filled["services"].values():
        given = service.get("environment", {})
        passed = {name for name, value in given.items() if value is None}
        # As Compose does: a name alone takes its value from .env, or is not set.
        service["environment"] = {
            **{name: value for name, value in given.items() if value is not None},
            **{name: environment[name] for name in passed & environment.keys()},
        }
    return filled


def _filled(value: Any, environment: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, environment) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, environment) for item in value]
    return fill(value, environment) if isinstance(value, str) else value


def fill(text: str, environment: Mapping[str, str]) -> str:
    """A text with its variables replaced as Compose does it."""

    def replaced(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        if match["stray"]:
            raise ValueError(f"a dollar sign that is neither doubled nor a variable in {text!r}")
        value = environment.get(match["name"], "")
        if value:
            return value
        if match["kind"] == ":?":
            raise UnsetError(f"{match['name']}: {match['rest']}")
        return match["rest"] or ""

    return _VARIABLE.sub(replaced, text)
