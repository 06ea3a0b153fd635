"""Values in the form, or of the list, that the tool states.

And what the session and the context may put in their place.
"""

from dataclasses import replace
from typing import Any

import pytest

from retrieval.answers.proposers.case import Case
from retrieval.knowledge.session.session_calls import session_call
from retrieval.knowledge.tool.links import Links
from tests.retrieval.cases import answer_to, make_case, object_schema

TEXT = {"type": "string"}
STATE = {"type": "string", "enum": ["open", "closed"]}
DAY = {"type": "string", "format": "date"}


def best(case: Case, message: str) -> Any:
    """The parameters of the first suggestion; None where there is none."""
    found = answer_to(case, message).response.suggestions
    return found[0].corrected_parameters if found else None


@pytest.mark.parametrize(
    ("sent", "message", "part", "meant"),
    [
        ("March 5, 2026", "Invalid input at value", DAY, "2026-03-05"),
        ("March 5, 2026", "Bad request", DAY, "2026-03-05"),
        ("1,500 USD", "Expected number, received NaN", {"type": "number"}, 1500),
        ("`open`", "Bad request", STATE, "open"),
        ("opened", "invalid value", STATE, "open"),
        ("5 March 2026 14:30 UTC",
         "invalid timestamp (supported formats: YYYY-MM-DDThh:mm:ssZ or YYYY-MM-DD)", TEXT,
         "2026-03-05T14:30:00Z"),
        ("5 March 2026", "Bad request",
         {"type": "string", "description": "Day of the trip, as YYYY-MM-DD"}, "2026-03-05"),
        ("`Docs`", "cd: '`Docs`': No such file or directory", TEXT, "Docs"),
        (" Docs\n", "404 Not Found", TEXT, "Docs"),
        (["OPEN", "closed"], "data/value/0 must be equal to one of the allowed values",
         {"type": "array", "items": STATE}, ["open", "closed"]),
        (["drivar", "rear_left"], "KeyError: 'drivar'",
         {"type": "array", "items": TEXT,
          "description": "Doors. [Enum]: ['driver', 'passenger', 'rear_left']"},
         ["driver", "rear_left"]),
        # Two days, a placeholder, two numbers, a day without its time: nothing is made up.
        *(
            (sent, "invalid value", part, None)
            for sent, part in (
                ("03/04/2026", DAY), ("<the day>", DAY), ("tomorrow", DAY), ("{{state}}", STATE),
                ("5-10", {"type": "number"}),
                ("2026-03-05", {"type": "string", "format": "date-time"}),
            )
        ),
    ],
)  # fmt: skip
def test_a_value_gets_the_stated_form_whatever_the_error_says(
    sent: Any, message: str, part: dict[str, Any], meant: Any
) -> None:
    """The schema shows what is wrong where the error does not."""
    case = make_case({"value": sent}, message, schema=object_schema(value=part))
    assert best(case, message) == (meant and {"value": meant})


@pytest.mark.parametrize("nothing", [None, "null", "undefined", "None", ""])
def test_an_optional_parameter_that_says_nothing_is_left_out(nothing: str | None) -> None:
    """A required one is not."""
    call, message = {"q": "a", "state": nothing}, "state is not one of ['open', 'closed']"
    optional = make_case(call, message, schema=object_schema(["q"], q="string", state=STATE))
    required = make_case(call, message, schema=object_schema(q="string", state=STATE))
    assert best(optional, message) == {"q": "a"}
    assert best(required, message) is None


def test_what_is_no_path_is_not_put_into_a_folder() -> None:
    """A branch that is not there is no file of the repository."""
    message = "Ref 'feature/logn' did not resolve to an object"
    calls = [session_call("git_log", {"repo_path": "/srv/repo"}, {})]
    call = {"repo_path": "/srv/repo", "revision": "feature/logn"}
    case = make_case(call, message, schema=object_schema(repo_path="string", revision="string"))
    assert best(replace(case, session=lambda: calls), message) is None


def test_a_refused_value_is_not_what_the_session_sent_before() -> None:
    """Who asks for another file does not mean the last one again, however often it did."""
    links, name = Links(), "file"
    read = [session_call("read", {name: "/a/root.go"}, {})]
    for _ in range(9):
        links.learn_values({name: "/a/root.go"}, read)
    case = make_case({name: "/b/client.py"}, "no such file", schema=object_schema(file="string"))
    asked = replace(case, session=lambda: read, links=links)
    assert best(asked, "no such file") is None
    assert best(replace(asked, parameters={name: "/a/rot.go"}), "no such file") == {
        name: "/a/root.go"
    }


def test_what_a_program_printed_is_no_bound_of_its_call() -> None:
    """A linter shows a line of a file; a tool's own words of the same bound count."""
    call = {"command": "lint", "timeout": 60000}
    schema = object_schema(command="string", timeout="number")
    for message, meant in (
        ("must be <= 0", {**call, "timeout": 0}),
        ("Exit code 1\nscan.go:254: Errors unhandled\n  scanned must be <= 0", None),
    ):
        assert best(make_case(call, message, schema=schema), message) == meant


def test_a_value_under_a_name_in_another_style_is_not_of_a_wrong_type() -> None:
    """The tool saw no number because it saw none; what is wrong is the name."""
    message = "Invalid arguments for tool think: Invalid input: expected number, received NaN at "
    message += "thoughtNumber\nInvalid input: expected number, received NaN at totalThoughts"
    schema = object_schema(thoughtNumber="integer", totalThoughts="integer")
    case = make_case({"thought_number": 1, "total_thoughts": 3}, message, schema=schema)
    assert best(case, message) == {"thoughtNumber": 1, "totalThoughts": 3}


@pytest.mark.parametrize("name", ["query", "file_hash", "revision", "url", "command", "regex"])
def test_words_of_the_context_are_no_query_hash_or_address(name: str) -> None:
    """However near they stand to the name."""
    message = f"'{name}' is a required property"
    case = make_case({"title": "x"}, message, schema=object_schema(title="string", **{name: TEXT}))
    context = f"Publish it, with the {name} 'Publish'"
    assert best(replace(case, context=context), message) is None


def test_a_name_in_the_context_is_no_choice_of_a_tool() -> None:
    """A kind or a mode is the tool's own word, unless the context says which it is."""
    message = "branch_type Field required"
    case = make_case({"repo": "a"}, message, schema=object_schema(repo="string", branch_type=TEXT))
    for context, meant in (
        ("the notes for the Tokyo team", None), ("the branch type 'local'", "local"),
    ):  # fmt: skip
        found = best(replace(case, context=context), message)
        assert found == (meant and {"repo": "a", "branch_type": meant})
