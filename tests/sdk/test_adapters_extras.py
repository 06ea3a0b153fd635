"""Adapters of frameworks that are not installed."""

import importlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("adapter", "missing", "cure"),
    [
        ("langgraph", "langchain.agents.middleware", "./sdk[langgraph]"),
        ("openai_agents", "agents", "./sdk[openai-agents]"),
        ("fastmcp", "mcp_types", "./sdk[gateway]"),
    ],
)
def test_the_error_names_what_to_install(
    adapter: str, missing: str, cure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the extra: the package of one of them is not called as its module is."""
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, f"aftercall.adapters.{adapter}", raising=False)
    with pytest.raises(ModuleNotFoundError) as raised:
        importlib.import_module(f"aftercall.adapters.{adapter}")
    assert f"'{cure}'" in str(raised.value)
    assert raised.value.name == missing


@pytest.mark.parametrize("adapter", ["functions", "hooks"])
def test_the_adapters_without_an_extra_import_no_framework(adapter: str) -> None:
    """A program that decorates functions pays for none, installed or not."""
    script = (
        f"import sys, aftercall.adapters.{adapter}\n"
        "frameworks = {'agents', 'fastmcp', 'langchain', 'langgraph', 'mcp', 'mcp_types', "
        "'opentelemetry', 'prometheus_client'}\n"
        "sys.exit(', '.join(sorted(frameworks.intersection(sys.modules))) or 0)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
