"""Each simulated tool takes what is right, refuses what its schema refuses, and says why."""

from collections.abc import Callable
from functools import partial
from random import Random

import jsonschema
import pytest

from service.demo.simulated_tools import (
    PASSING,
    CallMoment,
    SimTool,
    Slip,
    ToolFault,
    all_tools,
    tools_on,
)

TOOLS = all_tools()
CHANCE = PASSING | {"conflict", "little_use", "wrong_tool"}
"""How a right call may fail: by the moment, by what is there, by what was asked for."""

SLIPS = [
    pytest.param(
        tool, slip, id=f"{tool.tool_id}-{tool.spec.version}-{number}-{slip.kind}-{slip.name}"
    )
    for tool in TOOLS
    for number, slip in enumerate(tool.slips)
]


def moment(dice: Random, day: int = 0) -> CallMoment:
    return CallMoment(day, 0.5, may_write=True, dice=dice)


def is_valid(tool: SimTool, parameters: object) -> bool:
    return bool(jsonschema.Draft202012Validator(tool.spec.input_schema).is_valid(parameters))


def fault_of(ask: Callable[[], object]) -> ToolFault | None:
    """How a call failed; None when it did not."""
    try:
        ask()
    except ToolFault as fault:
        return fault
    return None


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{tool.tool_id}-{tool.spec.version}")
def test_a_right_call_fails_by_chance_alone(tool: SimTool) -> None:
    """What agents want is within the schema, and hidden rules leave it alone."""
    dice = Random(1)  # noqa: S311  # repeatable, no secret
    wishes = [tool.draw_wish(dice) for _ in range(300)]
    faults = [
        fault_of(partial(tool.answer_call, wish.parameters, moment(dice, tool.since)))
        for wish in wishes
    ]
    assert all(is_valid(tool, wish.parameters) for wish in wishes)
    assert {fault.kind for fault in faults if fault is not None} <= CHANCE
    assert faults.count(None) > 180


@pytest.mark.parametrize(("tool", "slip"), SLIPS)
def test_a_slip_is_refused_as_the_schema_says(tool: SimTool, slip: Slip) -> None:
    """The tool's own check agrees with a validator's, and what is meant is right."""
    dice = Random(2)  # noqa: S311  # as above
    made = [
        done for _ in range(80) if (done := slip.make_slip(tool.draw_wish(dice).parameters, dice))
    ]
    assert made, "the slip never applies"
    refused = 0
    for sends, means in made:
        assert is_valid(tool, means)
        checked = fault_of(partial(tool.check_schema, sends))
        assert (checked is None) == is_valid(tool, sends)
        called = fault_of(partial(tool.answer_call, sends, moment(dice, tool.since)))
        refused += called is not None and called.kind not in CHANCE
    assert refused > 0.2 * len(made), "the tool takes nearly all of them"


def test_the_catalogue_is_what_the_documentation_says() -> None:
    """33 tools on eight servers, competing in namespaces; two of them in two versions."""
    places = {tool.place for tool in TOOLS}
    assert (len(places), len({tool.spec.server_name for tool in TOOLS}), len(TOOLS)) == (33, 8, 35)
    serving = [tool.spec.namespace for tool in tools_on(0)]
    assert {name: serving.count(name) for name in ("search", "translation", "currency")} == {
        "search": 3,
        "translation": 2,
        "currency": 2,
    }
    for day in range(30):
        names = [tool.place for tool in tools_on(day)]
        assert len(names) == len(set(names)) == len(places), f"day {day}"
