"""`aftercall known-tools` against a true service."""

from aftercall import Client, ToolSpec
from tests.service.fitness_client import fresh
from tests.service.running_service import Run, RunningService

COMMAND = "known-tools"


def test_it_prints_what_the_service_says(service: RunningService, run: Run) -> None:
    """The block or the page, of the tools that are named or serve a namespace, or of all."""
    one, two, namespace = fresh("one"), fresh("two"), fresh("capability")
    with Client(service.url) as client:
        for name in (one, two):
            client.put_tool(name, ToolSpec(name=name, namespace=namespace))
    code, said, _ = run("--tool", one, "--tool", two)
    assert code == 0
    assert said.startswith("<known_tools>\n")
    assert said.endswith("</known_tools>\n")
    assert said.count("<tool ") == 2
    assert run("--namespace", namespace)[1].count("<tool ") == 2
    assert one in run()[1]
    assert run("--tool", one, "--markdown")[1].startswith("# Known tools\n")
    assert "1 more tool left out." in run("--tool", one, "--tool", two, "--max-tokens", "80")[1]


def test_faults_are_told_in_one_line_each(run: Run) -> None:
    """A tool that nobody knows, a number out of range, a service that is not there."""
    code, said, told = run("--tool", "no_such_tool_at_all")
    assert (code, said) == (1, "")
    assert "there is no tool 'no_such_tool_at_all'" in told
    for words in (("--max-tokens", "10"), ("--tool", ""), ("--namespace", "")):
        code, said, told = run(*words)
        assert (code, said, told.count("\n")) == (1, "", 1), words
    assert run("--max-tokens", "many")[0] == 2
    code, _, told = run(url="http://127.0.0.1:1")
    assert (code, "no service at" in told) == (1, True)
