"""BFCL's executable APIs: gold calls of multi-turn tasks, replayed for real, damaged and judged.

Each task is a session of one user: turns with the user's words (the context), and gold calls that
are executed on the task's own state. A damaged call is executed on a copy of the state; when it
fails, it is a trial. A correction is right when, executed on another copy, it gives the same result
and leaves the same state as the gold call. From `bfcl-eval` on PyPI (Apache-2.0), no network.
"""

import ast
import copy
import hashlib
import importlib
import inspect
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.quality.damage import damaged, damages_of
from bench.quality.sessions import GoldCall, Session
from bench.quality.trial import Damage, Json, Trial, Verdict

DEVELOPMENT = frozenset(
    ("GorillaFileSystem", "MathAPI", "MessageAPI", "TicketAPI", "VehicleControlAPI", "TwitterAPI")
)
FINAL = frozenset(("TravelAPI", "TradingBot"))
"""For the final check only: sessions with these are never looked at while developing."""

_TYPES = {"dict": "object", "float": "number", "tuple": "array"}


def available() -> bool:
    """Whether the package is installed."""
    return find_spec("bfcl_eval") is not None


class Bfcl:
    """The tasks of the development APIs, or those of the APIs kept for the final check."""

    def __init__(self, *, final: bool = False) -> None:
        self._final = final
        self._schemas = _schemas()

    def sessions(self) -> list[Session]:
        """The tasks, replayed."""
        data = _data()
        gold = {
            row["id"]: row["ground_truth"]
            for row in _lines(data / "possible_answer" / "BFCL_v4_multi_turn_base.json")
        }
        return [
            _replayed(task, gold[task["id"]])
            for task in _lines(data / "BFCL_v4_multi_turn_base.json")
            if bool(FINAL & set(task["involved_classes"])) is self._final
        ]

    def schema_of(self, call: GoldCall) -> Json | None:
        """The tool's input schema, in JSON Schema's words."""
        return self._schemas.get(call.tool)

    async def trials_of(
        self, call: GoldCall, others: Sequence[Json], rng: random.Random
    ) -> list[Trial]:
        """The damages that make the call fail; none for helpers of the other split's APIs."""
        if call.server not in (FINAL if self._final else DEVELOPMENT):
            return []
        schema = self.schema_of(call)
        damages = damages_of(call.parameters, schema, others, rng)
        return [trial for each in damages if (trial := trial_of(call, each, schema))]


def _schemas() -> dict[str, Json]:
    found = {}
    for file in sorted((_data() / "multi_turn_func_doc").glob("*.json")):
        for tool in _lines(file):
            found[tool["name"]] = _json_schema(tool["parameters"])
    return found


def trial_of(call: GoldCall, damage: Damage, schema: Json | None) -> Trial | None:
    """The trial of a damaged call; None where it does not fail, or the damage does not apply."""
    sent = damaged(call.parameters, damage)
    if sent is None:
        return None
    effect = run(call, sent)
    if not isinstance(effect, Failure):
        return None
    return Trial(
        session=call.session, tool=call.tool, server=call.server, damaged=sent,
        gold=call.parameters, error=effect.error, context=call.context, schema=schema,
        damage=damage, judge=partial(judge, call), answer=partial(_answer, call),
    )  # fmt: skip


async def _answer(call: GoldCall, parameters: Json) -> Json | None:
    effect = run(call, parameters)
    return effect.error if isinstance(effect, Failure) else None


async def judge(call: GoldCall, parameters: Json) -> Verdict:
    """What the parameters do in the place of the gold call's."""
    return verdict(call, parameters)


def verdict(call: GoldCall, parameters: Json) -> Verdict:
    """The same, at once."""
    effect = run(call, parameters)
    if isinstance(effect, Failure):
        return "fails"
    return "right" if effect == run(call, call.parameters) else "wrong success"


@dataclass(frozen=True, slots=True)
class Failure:
    """What a tool said when it failed."""

    error: Json


@dataclass(frozen=True, slots=True)
class Effect:
    """What a call gave back, and the state it left, both as text."""

    result: str
    state: str


def run(call: GoldCall, parameters: Json) -> Effect | Failure:
    """Execute on a copy of the state before the call."""
    instance = copy.deepcopy(call.state)
    found = _execute(instance, call.tool, parameters)
    if isinstance(found, Failure):
        return found
    return Effect(_snapshot(found), _snapshot(instance))


def _execute(instance: Any, tool: str, parameters: Json) -> Any:
    try:
        found = getattr(instance, tool)(**copy.deepcopy(parameters))
    except Exception as error:  # noqa: BLE001 - whatever the tool raises is what it says
        return Failure({"type": type(error).__name__, "message": str(error) or repr(error)})
    if isinstance(found, dict) and "error" in found:
        return Failure({"type": "Error", "message": str(found["error"])})
    return found


def _replayed(task: Json, turns: list[list[str]]) -> Session:
    instances = {name: _instance(name, task) for name in task["involved_classes"]}
    owners = {
        name: owner
        for owner, instance in instances.items()
        for name, _ in inspect.getmembers(instance, inspect.ismethod)
        if not name.startswith("_")
    }
    calls: list[GoldCall] = []
    for turn, texts in enumerate(turns):
        words = task["question"][turn]
        context = " ".join(each["content"] for each in words if each["role"] == "user")
        for text in texts:
            parsed = _parsed(text, instances, owners)
            if parsed is None:
                continue
            tool, parameters = parsed
            owner = owners[tool]
            before = copy.deepcopy(instances[owner])
            found = _execute(instances[owner], tool, parameters)
            if not isinstance(found, Failure):
                calls.append(
                    GoldCall(
                        session=task["id"],
                        sequence=len(calls),
                        tool=tool,
                        server=owner,
                        parameters=parameters,
                        context=context,
                        result=json.loads(_snapshot(found)),
                        state=before,
                    )
                )
    return Session(task["id"], tuple(calls))


def _instance(name: str, task: Json) -> Any:
    from bfcl_eval.constants import executable_backend_config as backend  # noqa: PLC0415 - optional

    module = importlib.import_module(backend.CLASS_FILE_PATH_MAPPING[name])
    instance = getattr(module, name)()
    if name not in backend.STATELESS_CLASSES:
        config = copy.deepcopy(task["initial_config"].get(name, {}))
        instance._load_scenario(config, long_context=False)  # noqa: SLF001 - as BFCL loads it
    return instance


def _parsed(text: str, instances: Json, owners: dict[str, str]) -> tuple[str, Json] | None:
    """The tool and the named arguments of a call written as Python; None for what is no literal."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    try:
        positional = [ast.literal_eval(each) for each in call.args]
        named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except ValueError:
        return None
    tool = call.func.id
    names = list(inspect.signature(getattr(instances[owners[tool]], tool)).parameters)
    parameters = {**dict(zip(names, positional, strict=False)), **named}
    return tool, json.loads(json.dumps(parameters))


def _snapshot(value: Any) -> str:
    """The value as text; what was seen on the way (a parent folder) is named, not repeated.

    JSON has one kind of number, so 1 and 1.0 are the same.
    """
    return json.dumps(_plain(value, ()), sort_keys=True, default=str)


def _plain(value: Any, seen: tuple[int, ...]) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if id(value) in seen:
        return "<above>"
    below = (*seen, id(value))
    if isinstance(value, datetime):
        return "<time>"  # of the clock on the wall, such as a file's last change
    if isinstance(value, random.Random):
        return hashlib.sha256(repr(value.getstate()).encode()).hexdigest()
    if isinstance(value, dict):
        return {str(key): _plain(item, below) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        items = sorted(value, key=str) if isinstance(value, set) else value
        return [_plain(item, below) for item in items]
    if hasattr(value, "__dict__"):
        return {"<class>": type(value).__name__, **_plain(vars(value), below)}
    return value


def _json_schema(part: Any) -> Any:
    """BFCL's type names in the words of JSON Schema."""
    if not isinstance(part, dict):
        return part
    found = {}
    for key, value in part.items():
        if key == "type" and isinstance(value, str):
            if value != "any":
                found[key] = _TYPES.get(value, value)
        elif key == "properties":
            found[key] = {name: _json_schema(each) for name, each in value.items()}
        else:
            found[key] = _json_schema(value)
    return found


def _data() -> Path:
    import bfcl_eval  # noqa: PLC0415 - optional

    return Path(str(bfcl_eval.__file__)).parent / "data"


def _lines(file: Path) -> list[Json]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
