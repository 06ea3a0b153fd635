"""Schemas of odd shape: valid calls that are warned of, and wrong types that pass.

    python -m bench.quality.odd_schemas [--calls 100]

Seventeen schemas in shapes that real tools have (`odd_schemas.json`): `nullable` and bounds of
OpenAPI 3.0, `oneOf`, `anyOf`, `allOf` and `$ref` at the root, `patternProperties`, typed
`additionalProperties`, `if`. A generator of its own, which reads no code of the product, makes
valid calls, and of each a wrong one by a value of another type. Both are asked about at `POST
/check` and in the SDK.
"""

import argparse
import copy
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aftercall.adapters.before_call import looks_right
from tests.service.running_service import RunningService, hashing_settings, running

SCHEMAS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_UNIONS = ("oneOf", "anyOf")
_NAMES = {"^x-[a-z]+$": "x-trace", "^S_": "S_1", "^I_": "I_1", "^[a-z]+$": "team"}
"""A name that fits each pattern."""


def valid_call(schema: Any, rng: random.Random) -> Any:
    """Return a value that the schema takes, by what it means."""
    return _value(schema, schema, rng)


def _value(part: Any, root: Any, rng: random.Random) -> Any:
    part = _resolved(part, root)
    if part.get("nullable") and rng.random() < 0.3:
        return None
    if "const" in part:
        return part["const"]
    if "enum" in part:
        return rng.choice(part["enum"])
    wants_object = any(
        key in part for key in ("properties", "patternProperties", *_UNIONS, "allOf")
    )
    kind = part.get("type") or ("object" if wants_object else rng.choice(("string", "integer")))
    if kind == "object":
        return _object(part, root, rng)
    if kind == "array":
        return [_value(part.get("items", {}), root, rng) for _ in range(rng.randrange(4))]
    if kind == "string":
        return rng.choice(("a", "hello", "2026", "x y"))
    low = part.get("minimum", 0) + (1 if part.get("exclusiveMinimum") and kind != "number" else 0)
    high = min(part.get("maximum", low + 100), low + 100)
    if kind == "integer":
        return rng.randint(low, int(high))
    return low + (high - low) * (0.1 + 0.8 * rng.random())


def _object(part: Any, root: Any, rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for form in _chosen(part, root, rng):
        required = form.get("required", ())
        for name, inner in form.get("properties", {}).items():
            if name in required or rng.random() < 0.5:
                found[name] = _value(inner, root, rng)
        for pattern, inner in form.get("patternProperties", {}).items():
            if rng.random() < 0.5:
                found[_NAMES[pattern]] = _value(inner, root, rng)
        more = form.get("additionalProperties")
        if isinstance(more, dict) and rng.random() < 0.7:
            found["further"] = _value(more, root, rng)
    if "if" in part:
        found.setdefault("zip" if found["country"] == "US" else "postal", "a")
    return found


def _chosen(part: Any, root: Any, rng: random.Random) -> Iterator[Any]:
    """The forms that an object has to have at once."""
    part = _resolved(part, root)
    yield part
    for each in part.get("allOf", ()):
        yield from _chosen(each, root, rng)
    for key in _UNIONS:
        if key in part:
            yield from _chosen(rng.choice(part[key]), root, rng)


def _resolved(part: Any, root: Any) -> Any:
    while "$ref" in part:
        found: Any = root
        for step in part["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        part = found
    return part


def wrong_call(call: dict[str, Any], schema: Any, rng: random.Random) -> dict[str, Any] | None:
    """Return the call with a value of another type at the top; None where none is typed there."""
    names = [name for name in call if call[name] is not None and _typed_at(schema, name)]
    if not names:
        return None
    wrong, name = copy.deepcopy(call), rng.choice(names)
    wrong[name] = {"unlikely": [True]} if not isinstance(call[name], dict) else 17
    return wrong


def _typed_at(schema: Any, name: str) -> bool:
    forms = list(_forms(schema, schema))
    parts = [form["properties"][name] for form in forms if name in form.get("properties", {})]
    patterns = {
        _NAMES[p]: q for form in forms for p, q in form.get("patternProperties", {}).items()
    }
    more = [form.get("additionalProperties") for form in forms]
    parts = parts or [patterns[name]] if name in patterns else parts or [m for m in more if m]
    return bool(parts) and all(_resolved(each, schema) for each in parts)


def _forms(part: Any, root: Any) -> Iterator[Any]:
    part = _resolved(part, root)
    yield part
    for key in (*_UNIONS, "allOf"):
        for each in part.get(key, ()):
            yield from _forms(each, root)


def measure(service: RunningService, calls: int, seed: int = 1) -> dict[str, Counter[str]]:
    """Return of each schema how many valid calls were warned of, and how many wrong ones passed."""
    found: dict[str, Counter[str]] = {}
    for name, schema in SCHEMAS.items():
        rng, counts = random.Random(f"{seed} {name}"), Counter[str]()  # calls
        for _ in range(calls):
            call = valid_call(schema, rng)
            counts["valid"] += 1
            verdict = _verdict(service, name, schema, call)
            counts["warned"] += verdict != "pass"
            wrong = wrong_call(call, schema, rng)
            if wrong is not None:
                counts["wrong"] += 1
                counts["passed"] += _verdict(service, name, schema, wrong) == "pass"
                counts["passed in the SDK"] += looks_right(schema, wrong)
        found[name] = counts
    return found


def _verdict(service: RunningService, name: str, schema: Any, call: Any) -> str:
    about = {"agent": "bench", "toolName": f"odd {name}", "parameters": call, "inputSchema": schema}
    answer = service.client.post("/check", json={"call": about})
    answer.raise_for_status()
    verdict: str = answer.json()["verdict"]
    return verdict


def main() -> None:
    """Measure, and print a row for each schema."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100)
    calls = parser.parse_args().calls
    with (
        tempfile.TemporaryDirectory() as folder,
        running(hashing_settings(Path(folder))) as service,
    ):
        found = measure(service, calls)
    total = sum(found.values(), Counter[str]())
    for name, counts in (*found.items(), ("all", total)):
        row = ", ".join(
            f"{counts[key]} {key}"
            for key in ("valid", "warned", "wrong", "passed", "passed in the SDK")
        )
        sys.stdout.write(f"{name}: {row}\n")


if __name__ == "__main__":
    main()
