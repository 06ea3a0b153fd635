"""Modules whose extra is not installed."""

import importlib
import re
import sys

import pytest

from aftercall.errors import ConfigurationError


@pytest.mark.parametrize(
    ("module", "missing", "cure"),
    [
        ("adapters.langgraph", "langchain.agents.middleware", "./sdk[langgraph]"),
        ("adapters.openai_agents", "agents", "./sdk[openai-agents]"),
        ("adapters.fastmcp", "mcp_types", "./sdk[gateway]"),
        ("tracing", "opentelemetry", "./sdk[otel]"),
        ("metrics", "prometheus_client", "./sdk[metrics]"),
    ],
)
def test_the_error_names_what_to_install(
    module: str, missing: str, cure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the extra: the package of one of them is not called as its module is."""
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, f"aftercall.{module}", raising=False)
    with pytest.raises((ImportError, ConfigurationError), match=re.escape(cure)):
        importlib.import_module(f"aftercall.{module}")
