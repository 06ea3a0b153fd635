"""Typed outcomes: made, serialised, coerced, logged, and carried through what runs tools."""

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from aftercall import (
    CommandExecutor,
    ContractViolationError,
    ExecutionError,
    Outcome,
    PythonExecutor,
    Tool,
    Toolbox,
    ToolFailedError,
    ToolRefusedError,
    ToolSpec,
    Violation,
)
from aftercall.models import Referral
from aftercall.outcomes import log_line, referral_of, typed_error
from aftercall.reflection.results import read_exception
from tests.sdk.scripted_advice import TWINS, Records, Telling, reflected_by

WEAK = {"status": "success_no_parse", "items": []}
AT = "2026-02-20T14:30:00Z"


def boundary(**fields: Any) -> Outcome[Any]:
    told: dict[str, Any] = {"boundary_axes": ["transport", "extraction"], "evidence": "it is HTML"}
    return Outcome.wrong_tool_boundary("a page has to be fetched first", **(told | fields))


def test_a_success_has_a_value_and_perhaps_a_word_for_it() -> None:
    """And stays one, however weak the word sounds."""
    found = Outcome.ok([], status="success_no_parse")
    assert (found.is_ok, found.status, found.error) == (True, "success_no_parse", None)
    assert found.unwrap() == found.value == []


AXES = ["transport", "extraction"]
SPLIT = ["http_get", "read_titles"]


@pytest.mark.parametrize(
    ("made", "kind", "details", "referral"),
    [
        (
            boundary(suggested_split="http_get -> read_titles", confidence=0.9),
            "wrong_tool_boundary",
            {
                "boundaryAxes": AXES, "suggestedSplit": SPLIT, "evidence": "it is HTML",
                "confidence": 0.9,
            },
            Referral(boundary_axes=AXES, suggested_split=SPLIT, evidence="it is HTML"),
        ),
        (Outcome.wrong_tool_boundary("not mine", boundary_axes=[]), "wrong_tool_boundary", {},
         Referral()),
        (Outcome.error("DiskFull", "no room", details={"evidence": [1]}, path="/var"), "DiskFull",
         {"evidence": [1], "path": "/var"}, None),
        (Outcome.error("lowUtility", "a menu", Evidence="no years"), "low_utility",
         {"evidence": "no years"}, Referral(evidence="no years")),
    ],
    ids=["all it knows, and more", "without evidence", "of another type", "in another spelling"],
)  # fmt: skip
def test_a_referral_says_what_it_knows_in_the_form_of_the_wire(
    made: Outcome[Any], kind: str, details: dict[str, Any], referral: Referral | None
) -> None:
    """It says nothing where it knows nothing; other types keep their details as they are."""
    assert (made.error.type, made.error.details) == (kind, details)
    assert referral_of(made.error) == referral


def test_a_failure_is_raised_with_its_error() -> None:
    """And an exception that carries an error is read as that error, not as its class."""
    found = boundary()
    with pytest.raises(ToolFailedError, match="wrong_tool_boundary: a page has") as failed:
        found.unwrap()
    assert failed.value.error == found.error
    assert read_exception(failed.value) == found.error
    masked = read_exception(failed.value, message="Error calling tool")
    assert (masked.type, masked.message, masked.details) == (
        "wrong_tool_boundary", "Error calling tool", {},
    )  # fmt: skip


@pytest.mark.parametrize(
    "returned",
    [
        WEAK, {"status": "failed", "items": []}, {"status": "error"}, {"outcome": "error"},
        {"error": {"type": "Timeout"}}, {"error_type": "low_utility"},
        {"status": "ok", "error_type": "low_utility"}, {"status": "error", "message": "no luck"},
        {"status": "error", "error": "no luck"}, {"status": "error", "error_type": 7},
        {"status": "error", "error_type": " "}, {"status": ["error"], "error_type": "x"},
        {"job": 7, "status": "error", "error": {"type": "Timeout", "message": "late"}},
        [{"status": "error", "error_type": "low_utility"}], "error: low_utility",
        '{"outcome": "error", "error": {"type": "low_utility"}}', None, 0, {},
        # The body of an API's answer, what an error tracker and a queue of jobs say of others.
        {"status": "error", "errorType": "bad_data", "error": "parse error"},
        {"status": "error", "error_type": "ValueError", "message": "bad", "stack": "..."},
        {"status": "error", "error": {"type": "Timeout", "message": "late"}},
        {"outcome": "error", "error": {"type": "Timeout", "at": "noon"}},
        {"value": 1, "status": None, "failure": {"type": "Timeout"}},
        {"value": None, "status": None, "failure": {"type": "Timeout", "part": "valve"}},
        {"value": None, "status": None, "failure": "a valve"},
    ],
)  # fmt: skip
def test_no_success_becomes_a_failure_by_reading_its_text(returned: object) -> None:
    """Weak, empty, prose about errors, or a report on something that failed: it succeeded."""
    found = Outcome.coerce(returned)
    assert found.is_ok
    assert found.value is returned


@pytest.mark.parametrize(
    "returned",
    [
        {"status": "error", "error_type": "low_utility", "message": "a menu"},
        {"outcome": "ERROR", "errorType": "LowUtility", "error": "a menu"},
        {"status": "error", "error": {"type": "low_utility", "message": "a menu"}},
        {"status": "error", "error-type": "low_utility", "message": "a menu", "metadata": {}},
    ],
)
def test_a_mapping_that_says_so_is_a_typed_error(returned: dict[str, Any]) -> None:
    """In any style of keys, flat or nested."""
    assert Outcome.coerce(returned) == Outcome.low_utility("a menu")


@pytest.mark.parametrize("made", [Outcome.to_dict, TypeAdapter(Any).dump_python])
def test_a_serialised_outcome_is_read_back(made: Callable[[Outcome[Any]], Any]) -> None:
    """Of any type: as `to_dict` writes it, and as FastMCP writes what a tool returns."""
    for error in (Outcome.error("DiskFull", "no room", path="/var"), boundary()):
        assert Outcome.coerce(made(error)) == error
    assert Outcome.coerce(made(Outcome.ok([], status="partial"))).status == "partial"


def test_where_the_call_has_failed_a_mapping_says_how() -> None:
    """Then there is no success to lose, and any type counts."""
    told = {"status": "error", "errorType": "bad_data", "error": "parse error"}
    assert typed_error(told, has_failed=True) == ExecutionError(
        type="bad_data", message="parse error"
    )
    job = {"job": 7, "status": "error", "error": {"type": "Timeout", "message": "late"}}
    assert typed_error(job, has_failed=True) is None


class Hostile(dict[str, object]):
    """Raises whatever is asked of it."""

    def _no(self, *_: object) -> Any:
        raise RuntimeError("no")

    __len__ = __iter__ = __getitem__ = __bool__ = get = items = keys = _no


def test_outcomes_and_their_exceptions_cross_processes() -> None:
    """As `ProcessPoolExecutor` sends them; an exception that cannot be read breaks the pool."""
    error = boundary().error
    assert pickle.loads(pickle.dumps(boundary())) == boundary()  # noqa: S301  # our own
    raised = (
        ToolFailedError(error, ran=False),
        ToolRefusedError("not here"),
        ContractViolationError([Violation("/titles", "min_items", 1, 0)]),
    )
    for each in raised:
        each.__dict__["aftercall"] = each  # as reflection leaves it, one thing leads to another
        found = pickle.loads(pickle.dumps(each))  # noqa: S301  # our own
        assert type(found) is type(each)
        assert (str(found), found.error, found.ran) == (str(each), each.error, each.ran)
    assert found.violations == raised[2].violations


def test_metadata_of_a_typed_error_may_stand_anywhere() -> None:
    """Beside the message, under `details`, under `metadata`, in the error: nothing is lost."""
    error = typed_error(
        {
            "status": "error", "boundary-axes": "transport", "error": {
                "type": "wrong_tool_boundary", "message": {"text": "no"}, "hint": 1,
                "details": {"evidence": "x"},
            },
            "metadata": {"suggestedSplit": ["a", "b"]}, "elapsed": 2,
        }
    )  # fmt: skip
    assert error.message == '{"text": "no"}'
    assert error.details == {
        "boundaryAxes": ["transport"], "suggestedSplit": ["a", "b"], "evidence": "x",
        "hint": 1, "elapsed": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "read"),
    [("partial", "partial"), ("", None), (" ", None), ("a\nb", None), ("x" * 101, None), (7, None)],
)
def test_the_status_is_a_word_on_one_line(status: object, read: str | None) -> None:
    """What is none is left where it is."""
    assert Outcome.coerce({"status": status}).status == read


def test_a_log_line_is_short_and_holds_no_secrets() -> None:
    """One line, bounded, and no text of the tool can pass for a field."""
    line = log_line(boundary(suggested_split=["a", "b"]), tool="read")
    assert line == (
        'outcome=error tool="read" type="wrong_tool_boundary" axes=["transport","extraction"] '
        'split=2 evidence=yes message="a page has to be fetched first"'
    )
    secret = "sk-proj-" + "a1B2" * 12
    hostile = Outcome.error("x" * 300, f'{secret}\noutcome=ok " type=low_utility' + "y" * 5_000)
    line = log_line(hostile, tool="t\n" * 500)
    assert len(line) <= 500
    assert "\n" not in line
    assert secret not in line
    assert '\\" type=low_utility' in line
    assert log_line(Outcome.ok({"a": "secret"}, status="done")) == 'outcome=ok status="done"'


@pytest.mark.parametrize("twin", TWINS)
async def test_a_weak_success_is_recorded_as_the_success_that_it_is(twin: str) -> None:
    """Seed 003's regression: outcome, result and status are the tool's own, through both twins."""
    found, _, records = await reflected_by(twin, Telling(WEAK))
    [execution] = records.executions
    assert found.succeeded
    assert found.result is WEAK
    assert (execution.outcome, execution.error) == ("success", None)
    assert (execution.result, execution.result_status) == (WEAK, "success_no_parse")
    outcome = Outcome.ok([], status="success_no_parse")
    found, _, records = await reflected_by(twin, Telling(outcome))
    [execution] = records.executions
    assert found.result is outcome
    assert (execution.result, execution.result_status) == ([], "success_no_parse")


def test_a_weak_success_of_a_toolbox_stays_one() -> None:
    """Through `PythonExecutor` and `Toolbox`: the value, what is recorded, and the status."""
    records = Records()
    executors = PythonExecutor({"films": lambda: WEAK, "titles": boundary})
    tools = {name: ToolSpec(name=name) for name in ("films", "titles")}
    with Toolbox(None, records, executors, agent="a", tools=tools) as toolbox:
        found = toolbox.call_tool("films")
        assert (found.value, found.status) == (WEAK, "success_no_parse")
        with pytest.raises(ToolFailedError) as failed:
            toolbox.call_tool("titles")
    weak, referred = records.executions
    assert (weak.outcome, weak.result, weak.result_status) == ("success", WEAK, "success_no_parse")
    assert referred.outcome == "failure"
    assert referred.error == failed.value.error == boundary().error


async def test_a_script_tells_typed_outcomes_as_json(tmp_path: Path) -> None:
    """On standard output, whatever its exit status; other JSON is its result."""
    commands = CommandExecutor(tmp_path, commands={"python": sys.executable})

    def script(printed: str, status: int) -> Tool:
        (tmp_path / "tool.py").write_text(f"print({printed!r}); raise SystemExit({status})")
        return Tool(
            tool_id="t", name="t", updated_at=AT,
            implementation={"command": "python", "args_template": ["{tool_dir}/tool.py"]},
        )  # fmt: skip

    typed = '{"outcome": "error", "error": {"type": "low_utility", "message": "a menu"}}'
    for status in (0, 3):
        with pytest.raises(ToolFailedError) as failed:
            await commands.execute(script(typed, status), None)
        assert failed.value.error == Outcome.low_utility("a menu").error
    found = await commands.execute(script('{"status": "success_no_parse", "items": []}', 0), None)
    assert (found.value, found.status) == (WEAK, "success_no_parse")
