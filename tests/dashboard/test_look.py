"""Looks: addresses that lead where they say."""

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercall.models import ToolName, UsageWindow
from service.dashboard.html import is_local
from service.dashboard.look import Look
from service.lifecycle import Shared


def look(
    window: UsageWindow = "24h",
    workspace: str = "default",
    query: dict[str, str] | None = None,
    context: Any = None,
) -> Look:
    return Look(
        context=context, workspace=workspace, window=window, path="/tools",
        query=query or {}, named={}, workspaces=[workspace], shared=Shared(),
    )  # fmt: skip


def test_a_link_keeps_window_and_workspace() -> None:
    """What is not said is not repeated, so that addresses stay short."""
    assert look().link_path("/tools") == "/dashboard/tools"
    assert look("7d", "a b").link_path("/") == "/dashboard/?window=7d&workspace=a+b"
    assert look("7d").link_path("/tools", window="24h") == "/dashboard/tools"
    asked = look("7d", query={"window": "7d", "tool": "a&b"})
    assert asked.link_again(window="30d") == "/dashboard/tools?window=30d&tool=a%26b"


def test_a_tool_is_led_to_by_its_id_else_by_its_names() -> None:
    named = ToolName(tool_name="a/b", server_name="s")
    assert look().link_tool(named) == "/dashboard/tool?name=a%2Fb&server=s"
    assert look().link_tool(named.model_copy(update={"tool_id": "x"})) == "/dashboard/tools/x"


@given(st.text(min_size=1))
def test_a_link_holds_any_id(tool_id: str) -> None:
    """As one path below the dashboard, or beside it where a browser would change the path."""
    href = look().link_path(f"/tools/{tool_id}")
    parts = urlsplit(href)
    assert href.isascii()
    assert is_local(href)
    assert not set(href) & set("<>\"'\\ \n")
    assert not {".", ".."} & set(unquote(parts.path).split("/"))
    moved = parse_qs(parts.query, keep_blank_values=True).get("at")
    at = moved[0] if moved else unquote(parts.path).removeprefix("/dashboard/tools/")
    assert at == tool_id.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("tool_id", ["..", "../../executions", "a/../b", ".", "a\nb", "a\u2028b"])
def test_what_would_leave_the_page_goes_beside_the_path(tool_id: str) -> None:
    assert urlsplit(look().link_path(f"/tools/{tool_id}")).path == "/dashboard/tools/-"
