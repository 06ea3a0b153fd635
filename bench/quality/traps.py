"""Calls whose obvious repair does harm, and calls whose repair must not wait for anybody.

Tools of seven public MCP servers, with their names and schemas, and some destructive ones of the
bench's own. Each call is refused as jsonschema, pydantic, zod or plain words say it, with and
without the tool's schema and hints. Automatic is what the SDK's rules would send by themselves
(`RetryRules`, up to all its attempts). It is wrong where it is none of the calls that a trap names
as right; most name none.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from aftercall.json_patch import same_json
from aftercall.models import Execution, FailedCall, SuggestRequest, SuggestResponse, ToolAnnotations
from aftercall.reflection.retry_rules import ReflectionPolicy, RetryRules
from bench.quality.brain import WORKSPACE, Brain, Recording, open_brain
from bench.quality.trial import Json
from embeddings.protocol import Embedder

_FILE = Path(__file__).with_suffix(".json")
SURE = 0.80
WORDINGS = ("jsonschema", "pydantic", "zod", "plain")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: its schema, and its hints where its maker gives some."""

    name: str
    server: str
    schema: Json
    hints: ToolAnnotations | None


@dataclass(frozen=True, slots=True)
class Case:
    """A call that fails. `right` are the only calls that may follow by themselves."""

    kind: str
    tool: Tool
    parameters: Json
    right: tuple[Json, ...] = ()
    context: str | None = None
    error: str | None = None
    taught: tuple[tuple[Json, Json], ...] = ()
    """Failed and mended calls of one agent, each in a session of its own."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a case is asked about."""

    wording: str
    with_schema: bool
    with_hints: bool


WAYS = tuple(Way(*each) for each in product(WORDINGS, (True, False), (True, False)))


@dataclass(frozen=True, slots=True)
class Asked:
    """What was done by itself about a case, if anything was."""

    case: Case
    way: Way
    sent: list[Json] = field(default_factory=list)
    answers: list[SuggestResponse] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        """Whether something was sent that is not right; nothing follows what is."""
        return any(not self._is_right(each) and self._is_done(each) for each in self.sent)

    @property
    def right(self) -> bool:
        """Whether the last that was sent is right, and nothing before it was wrong."""
        return bool(self.sent) and self._is_right(self.sent[-1]) and not self.wrong

    @property
    def is_sure(self) -> bool:
        """Whether the first suggestion is lossless, above 0.80 and one that is right."""
        [first, *_] = [*self.answers[0].suggestions, None]
        return (
            first is not None
            and first.change_class == "lossless"
            and first.confidence > SURE
            and self._is_right(first.corrected_parameters or {})
        )

    def _is_done(self, parameters: Json) -> bool:
        """Whether a tool that ignores unknown names does it; what it refuses again does no harm."""
        return Draft202012Validator(_opened(self.case.tool.schema)).is_valid(parameters)

    def _is_right(self, parameters: Json) -> bool:
        return any(same_json(parameters, each) for each in self.case.right)


def cases(part: str) -> list[Case]:
    """The `traps`, or the `harmless` ones."""
    data = json.loads(_FILE.read_text(encoding="utf-8"))
    tools = {name: _tool(name, row) for name, row in data["tools"].items()}
    return [_case(tools, *row) for row in data[part]]


def _case(
    tools: dict[str, Tool], kind: str, tool: str, parameters: Json,
    right: Json | None = None, more: Json | None = None,
) -> Case:  # fmt: skip
    fields = dict(more or {})
    taught = tuple((wrong, then) for wrong, then in fields.pop("taught", ()))
    return Case(kind, tools[tool], parameters, (right,) if right else (), taught=taught, **fields)


def _opened(schema: Any) -> Any:
    """The schema without what it says of unknown names."""
    if isinstance(schema, list):
        return [_opened(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _opened(of) for key, of in schema.items() if key != "additionalProperties"}


def _tool(name: str, row: Json) -> Tool:
    schema = {
        "type": "object",
        "properties": {key.removesuffix("?"): _property(of) for key, of in row["of"].items()},
        "required": [key for key in row["of"] if not key.endswith("?")],
    }
    if not row.get("open"):
        schema["additionalProperties"] = False
    names = ("read_only_hint", "destructive_hint", "idempotent_hint")
    hints = (
        ToolAnnotations(**dict(zip(names, row["hints"], strict=True))) if "hints" in row else None
    )
    return Tool(name, row["server"], schema, hints)


def _property(of: str | Json) -> Json:
    if isinstance(of, dict):
        return of
    if of.startswith("[]"):
        return {"type": "array", "items": {"type": of[2:]}}
    return {"type": of}


def refusal(case: Case, wording: str) -> str:
    """What the server says: its own error, or that of a validator of this kind."""
    if case.error is not None:
        return case.error
    validator = Draft202012Validator(case.tool.schema)
    errors = sorted(validator.iter_errors(case.parameters), key=lambda e: list(map(str, e.path)))
    if not errors:  # a server that takes unknown names refuses them all the same here
        name = next(n for n in case.parameters if n not in case.tool.schema["properties"])
        return f"{case.tool.name}() got an unexpected keyword argument '{name}'"
    match wording:
        case "jsonschema":
            return f"MCP error -32602: Input validation error: {errors[0].message}"
        case "pydantic":
            lines = [line for each in errors for line in _pydantic(each)]
            count = f"{len(errors)} validation error{'s' * (len(errors) > 1)}"
            return "\n".join([f"{count} for call[{case.tool.name}]", *lines])
        case "zod":
            issues = json.dumps([_zod(each) for each in errors])
            return f"MCP error -32602: Invalid arguments for tool {case.tool.name}: {issues}"
        case _:
            return "; ".join(_plain(each) for each in errors)


def _missing(error: ValidationError) -> str:
    return next(name for name in error.validator_value if name not in error.instance)


def _unknown(error: ValidationError) -> list[str]:
    return [name for name in error.instance if name not in error.schema["properties"]]


def _type_name(value: object) -> str:
    names = {str: "string", bool: "boolean", int: "number", float: "number", list: "array"}
    return names.get(type(value), "null" if value is None else "object")


def _pydantic(error: ValidationError) -> Iterator[str]:
    place = ".".join(map(str, error.path))
    shown = f"input_value={error.instance!r}, input_type={type(error.instance).__name__}"
    wanted = error.validator_value
    match error.validator:
        case "required":
            place = ".".join(map(str, [*error.path, _missing(error)]))
            yield f"{place}\n  Missing required argument [type=missing_argument, {shown}]"
        case "additionalProperties":
            for name in _unknown(error):
                at = ".".join(map(str, [*error.path, name]))
                yield (f"{at}\n  Unexpected keyword argument [type=unexpected_keyword_argument, "
                       f"input_value={error.instance[name]!r}, input_type=str]")  # fmt: skip
        case "enum":
            values = " or ".join(map(repr, wanted))
            yield f"{place}\n  Input should be {values} [type=literal_error, {shown}]"
        case "type":
            name = {"array": "list", "object": "dictionary"}.get(wanted, wanted)
            yield f"{place}\n  Input should be a valid {name} [type={name}_type, {shown}]"
        case _:
            way = "greater" if error.validator == "minimum" else "less"
            said = f"Input should be {way} than or equal to {wanted}"
            yield f"{place}\n  {said} [type={way}_than_equal, {shown}]"


def _zod(error: ValidationError) -> Json:
    path, wanted = list(error.path), error.validator_value
    received = _type_name(error.instance)
    match error.validator:
        case "required":
            name = _missing(error)
            of = error.schema["properties"][name].get("type", "string")
            issue = {"code": "invalid_type", "expected": of, "received": "undefined"}
            return {**issue, "path": [*path, name], "message": "Required"}
        case "additionalProperties":
            keys = _unknown(error)
            said = ", ".join(f"'{key}'" for key in keys)
            message = f"Unrecognized key(s) in object: {said}"
            return {"code": "unrecognized_keys", "keys": keys, "path": path, "message": message}
        case "enum":
            values = " | ".join(f"'{each}'" for each in wanted)
            return {"code": "invalid_enum_value", "options": wanted, "received": error.instance,
                    "path": path, "message": f"Invalid enum value. Expected {values}, received "
                    f"'{error.instance}'"}  # fmt: skip
        case "type":
            message = f"Expected {wanted}, received {received}"
            issue = {"code": "invalid_type", "expected": wanted, "received": received}
            return {**issue, "path": path, "message": message}
        case _:
            code = "too_small" if error.validator == "minimum" else "too_big"
            way = "greater" if error.validator == "minimum" else "less"
            message = f"Number must be {way} than or equal to {wanted}"
            issue = {"code": code, error.validator: wanted, "type": "number", "inclusive": True}
            return {**issue, "path": path, "message": message}


def _plain(error: ValidationError) -> str:
    place, wanted = ".".join(map(str, error.path)) or "call", error.validator_value
    match error.validator:
        case "required":
            return f"missing required parameter '{_missing(error)}'"
        case "additionalProperties":
            return f"unknown parameter '{_unknown(error)[0]}'"
        case "enum":
            return f"{place} must be one of {', '.join(wanted)}, got '{error.instance}'"
        case "type":
            return f"{place} must be of type {wanted}, got {_type_name(error.instance)}"
        case _:
            sign = ">=" if error.validator == "minimum" else "<="
            return f"{place} must be {sign} {wanted}, got {error.instance}"


async def measure(
    embedder: Embedder, chosen: Sequence[Case], ways: Sequence[Way] = WAYS
) -> list[Asked]:
    """Ask about every case in every way; what is taught is taught in a memory of its own."""
    found: list[Asked] = []
    for is_taught in (False, True):
        of = [case for case in chosen if bool(case.taught) == is_taught]
        async with open_brain(embedder) as brain:
            if is_taught:
                await brain.learn(_lessons(of))
            found += [await _ask(brain, case, way) for case in of for way in _ways_of(case, ways)]
    return found


def _ways_of(case: Case, ways: Sequence[Way]) -> Iterator[Way]:
    seen = set()
    for way in ways:
        hints = way.with_hints and case.tool.hints is not None
        key = refusal(case, way.wording), way.with_schema, hints
        if key not in seen:
            seen.add(key)
            yield way


def _lessons(chosen: Sequence[Case]) -> list[Execution]:
    recording = Recording([])
    for case in chosen:
        for number, (wrong, then) in enumerate(case.taught):
            of = {
                "agent": "teacher", "session": f"{case.tool.name}/{number}", "context": "",
                "tool": case.tool.name, "server": case.tool.server, "schema": None,
            }  # fmt: skip
            as_case = Case(case.kind, case.tool, wrong)
            recording.add(**of, parameters=wrong, error={"message": refusal(as_case, "jsonschema")})
            recording.add(**of, parameters=then)
    return recording.executions


async def _ask(brain: Brain, case: Case, way: Way) -> Asked:
    """What the SDK's rules send by themselves, until something right is sent."""
    tool, hints = case.tool, case.tool.hints if way.with_hints else None
    rules = RetryRules(
        ReflectionPolicy(), case.parameters, may_repeat=False, jitter=lambda: 0.0,
        tool_name=tool.name, annotations=hints,
    )  # fmt: skip
    asked = Asked(case, way)
    failed = case
    while not (asked.right or asked.wrong):
        error = {"message": refusal(failed, way.wording)}
        if way.wording == "plain" and case.error is None:
            error["code"] = "-32602"
        fields = {
            "agent": "asker", "tool_name": tool.name, "server_name": tool.server,
            "parameters": failed.parameters, "error": error, "context": case.context,
            "input_schema": tool.schema if way.with_schema else None,
        }  # fmt: skip
        call = FailedCall.model_validate(fields)
        request = SuggestRequest(execution=call, annotations=hints)
        answer = await brain.suggester.suggest(WORKSPACE, request)
        asked.answers.append(answer)
        retry = rules.next_retry(call.error, answer)
        if retry is None:
            break
        asked.sent.append(retry.parameters)
        failed = replace(case, parameters=retry.parameters)
    return asked


async def write(embedder: Embedder, folder: Path) -> None:
    """Measure, print the page and write it to `traps.md`."""
    traps, harmless = [await measure(embedder, cases(part)) for part in ("traps", "harmless")]
    page = "\n".join(_page(traps, harmless)) + "\n"
    print(page)
    (folder / "traps.md").write_text(page, encoding="utf-8")


def _page(traps: Sequence[Asked], harmless: Sequence[Asked]) -> Iterator[str]:
    yield from ("# Traps", "")
    yield (__doc__ or "").split("\n\n", 1)[1].rstrip().replace("\n", " ")
    fallen = {id(each.case) for each in traps if each.wrong}
    count = len({id(each.case) for each in traps})
    yield ""
    yield (
        f"**Automatic and wrong: {len(fallen)} of {count} traps** in any way of asking "
        f"({len(traps)} questions)."
    )
    yield from ("", "| traps | n | automatic and wrong |", "|---|---|---|")
    for kind in dict.fromkeys(each.case.kind for each in traps):
        of = {id(each.case) for each in traps if each.case.kind == kind}
        yield f"| {kind} | {len(of)} | {len(fallen & of)} |"
    yield ""
    yield f"{len({id(each.case) for each in harmless})} calls of which the repair must not wait:"
    yield from ("", "| asked | n | automatic and right | ... of the sure ones | wrong |")
    yield "|---|---|---|---|---|"
    for title, with_schema, with_hints in (
        ("with schema and hints", True, True), ("with the schema", True, False),
        ("without a schema", False, None),
    ):  # fmt: skip
        of_way = [
            each
            for each in harmless
            if each.way.with_schema is with_schema and with_hints in (None, each.way.with_hints)
        ]
        sure = [each for each in of_way if each.is_sure]
        shares = (f"{sum(e.right for e in of) / max(1, len(of)):.2f}" for of in (of_way, sure))
        wrong = sum(each.wrong for each in of_way)
        yield f"| {title} | {len(of_way)} | {' | '.join(shares)} | {wrong} |"
    yield from ("", "Sure is what is suggested first, right, lossless and above 0.80.")
