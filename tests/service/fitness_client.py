"""What the tests of choosing a tool ask of a running service."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx2

from tests.service.running_service import RunningService, execution, failure

SCENARIO = "translate the harbour report into Spanish"


def fresh(name: str) -> str:
    """A name that no other test of the module uses."""
    return f"{name}-{uuid4().hex[:8]}"


@dataclass(frozen=True)
class Fitness:
    """The endpoints for choosing a tool."""

    service: RunningService

    @property
    def client(self) -> httpx2.Client:
        return self.service.client

    def learned(self) -> None:
        """Wait until all that is durable is usable."""
        self.service.learned()

    def put(self, tool_id: str, **fields: Any) -> dict[str, Any]:
        """Register a tool named like its id, of version 1.0.0 unless said otherwise."""
        spec = {"name": tool_id, "version": "1.0.0", "description": "Translates a text.", **fields}
        answer = self.client.put(f"/tools/{tool_id}", json=spec)
        assert answer.status_code == 200, answer.text
        tool: dict[str, Any] = answer.json()
        return tool

    def mark(self, tool_id: str, severity: str = "high", **fields: Any) -> dict[str, Any]:
        """Mark a failure."""
        body = {
            "scenario": SCENARIO, "errorMessage": "IndexError", "severity": severity, **fields,
        }  # fmt: skip
        answer = self.client.post(f"/tools/{tool_id}/failures", json=body)
        assert answer.status_code == 202, answer.text
        marked: dict[str, Any] = answer.json()
        return marked

    def record(self, tool: str, *, ok: bool, context: str = SCENARIO, **fields: Any) -> None:
        """Record an execution of a tool without a server."""
        make = execution if ok else failure
        now = datetime.now(UTC).isoformat()
        sent = make(
            **{"toolName": tool, "serverName": None, "context": context, "timestamp": now, **fields}
        )
        assert self.service.record(sent).status_code == 202

    def best_answer(
        self, namespace: str, scenario: str = SCENARIO, **query: Any
    ) -> httpx2.Response:
        """GET /namespaces/{namespace}/best."""
        return self.client.get(
            f"/namespaces/{namespace}/best", params={"scenario": scenario, **query}
        )

    def best(self, namespace: str, scenario: str = SCENARIO, **query: Any) -> dict[str, Any]:
        """What is answered when a tool fits."""
        answer = self.best_answer(namespace, scenario, **query)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def candidate(self, namespace: str, tool_id: str, **query: Any) -> dict[str, Any]:
        """One candidate of a namespace."""
        found = self.best(namespace, **query)["candidates"]
        [wanted] = [each for each in found if each["tool"]["toolId"] == tool_id]
        assert isinstance(wanted, dict)
        return wanted

    def find(self, scenario: str = SCENARIO, **fields: Any) -> dict[str, Any]:
        """POST /tools/find."""
        answer = self.client.post("/tools/find", json={"scenario": scenario, **fields})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def promote(self, namespace: str, **fields: Any) -> httpx2.Response:
        """PUT the promotion of version 1.1.0 in place of 1.0.0, unless said otherwise."""
        body = {
            "evolvedVersion": "1.1.0", "originalVersion": "1.0.0",
            "evolvedFile": "tools/it_v1_1.py", "reason": "timeout", "mutation": "add caching",
            **fields,
        }  # fmt: skip
        return self.client.put(f"/namespaces/{namespace}/promotion", json=body)
