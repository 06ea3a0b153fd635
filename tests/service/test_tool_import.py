"""`PUT /tools` and `aftercall tools import`: many tools at once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.service.running_service import RunningService, finished

pytestmark = pytest.mark.real


def named(tool_id: str, **more: Any) -> dict[str, Any]:
    return {"toolId": tool_id, "name": tool_id, **more}


def test_tools_are_registered_at_once(service: RunningService) -> None:
    """What is as it was stays; what makes no sense is named; a malformed list is refused whole."""
    tools = [named("bulk.a"), named("bulk.b", evolvedFrom="bulk.b"), named("bulk.c")]
    answer = service.client.put("/tools", json=tools).json()
    assert (answer["registered"], answer["unchanged"]) == (2, 0)
    (rejected,) = answer["rejected"]
    assert rejected["index"] == 1
    assert "circle" in rejected["message"]
    again = service.client.put("/tools", json=[tools[0], named("bulk.c", description="x")]).json()
    assert (again["registered"], again["unchanged"]) == (1, 1)
    for body in ([{"name": "no id"}], {"tools": tools}):
        assert service.client.put("/tools", json=body).status_code == 422
    many = [named(f"t{n}") for n in range(1001)]
    assert service.client.put("/tools", json=many).status_code == 413
    assert service.client.get("/tools/bulk.a").json()["name"] == "bulk.a"


def test_a_list_is_imported_from_a_file(service: RunningService, tmp_path: Path) -> None:
    """A dry run names the tools; importing again changes nothing."""
    file = tmp_path / "tools.json"
    file.write_text(json.dumps({"tools": [{"name": f"t{n}", "inputSchema": {}} for n in range(3)]}))
    command = ("tools", "import", str(file), "--server", "imported", "--service", service.url)
    status, out, _ = finished(*command, "--dry-run")
    assert (status, out.splitlines()[0]) == (0, "imported.t0")
    assert finished(*command)[1] == "3 registered, 0 unchanged, 0 rejected\n"
    assert finished(*command)[1] == "0 registered, 3 unchanged, 0 rejected\n"
    assert "imported.t2" in finished("tools", "list", "--service", service.url)[1].splitlines()
    file.write_text("openapi: 3.0.0")
    status, _, err = finished(*command)
    assert status == 1
    assert "OpenAPI in YAML has to be converted" in err
