"""A base is read back as it was stored; what another program left there is no base."""

import json
from typing import Any

import numpy as np
import pytest

from retrieval.usage.base import decoded, encoded
from retrieval.usage.counts import SHAPES, TableName
from retrieval.usage.table import Table
from tests.retrieval.usage.usage_samples import TOOL, base_of, failed, stored

BASE = base_of([stored(1), failed(2), stored(3, agent="bob")])


def changed(**fields: Any) -> str:
    return json.dumps(json.loads(encoded(BASE)) | fields)


def with_row(name: TableName, *keys: int) -> str:
    """A fact in which a table is one row of these keys behind an hour."""
    told = json.loads(encoded(BASE))
    columns = [np.array([each]) for each in (490_000, *keys)]
    counts = tuple(np.array([1]) for _ in range(SHAPES[name][1]))
    told["tables"][name] = Table(tuple(columns), counts).stored().model_dump()
    return json.dumps(told)


def test_a_base_reads_back() -> None:
    read = decoded(encoded(BASE), TOOL.workspace)
    assert read is not None
    assert encoded(read) == encoded(BASE)
    assert decoded(with_row("tools", 1), TOOL.workspace) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        '{"windows":{}}',
        encoded(BASE)[:-40],
        changed(through=-1),
        changed(through=10**30),
        changed(tools=[["", "search"]]),
        changed(agents=[""]),
        changed(tables={}),
        with_row("tools", 2),
        with_row("agents", -1),
        with_row("agent_tools", 1, 7),
        with_row("categories", 99),
        with_row("durations", -700),
        with_row("tool_durations", 1, 100_000),
        with_row("marks", 9),
    ],
    ids=[
        "empty",
        "null",
        "before",
        "cut-off",
        "through-below",
        "through-beyond",
        "server",
        "agent",
        "no-tables",
        "tool",
        "agent-number",
        "tool-of-agent",
        "category",
        "bucket",
        "bucket-of-tool",
        "mark",
    ],
)
def test_what_is_no_base_is_not_believed(text: str) -> None:
    """Of the version before, cut off, or with numbers of names that are not there."""
    assert decoded(text, TOOL.workspace) is None
