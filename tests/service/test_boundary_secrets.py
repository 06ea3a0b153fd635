"""A secret in every text that tools and users write is told by no endpoint and stored nowhere."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.service.fitness_client import Fitness
from tests.service.running_service import execution, failure, hashing_settings, on_loop, running
from tests.service.statistics.test_failures import consolidated

SECRET = "sk-proj-Zq81mXw4Kd02Lp9Rt5Vb7Nc3Hy6Jf"  # noqa: S105  # it only looks like one
TOLD = f"the key is {SECRET}, said the page"
TOOL = "page_reader"
ANSWERS = (
    f"/tools/{TOOL}/health", f"/tools/{TOOL}", "/tools", "/boundaries",
    "/recommendations?state=all",
    "/corrections?limit=100", "/known-tools?maxTokens=100000",
    "/known-tools?maxTokens=100000&format=markdown", f"/tools/{TOOL}/failures", "/promotions",
    f"/namespaces/{TOOL}/promotion/history", "/patterns", "/stats/patterns", "/stats/fix-first",
    "/stats/totals", "/stats/usage", "/stats/tools", "/stats/reflection", "/stats/criteria",
)  # fmt: skip

COUNTS = {"/suggest", "/patterns", *(each for each in ANSWERS if each.startswith("/stats/"))}
"""Where of what was said nothing is told, or its signature alone."""


def _call(number: int, **fields: Any) -> dict[str, Any]:
    """A call with the secret in all that is not the name of something."""
    make = failure if "error" in fields else execution
    at = datetime.now(UTC) - timedelta(minutes=number)
    return make(
        timestamp=at.isoformat(),
        serverName=None,
        toolName=TOOL,
        sessionId=SECRET,
        context=TOLD,
        parameters={"url": TOLD, "action": SECRET, SECRET: 1, "deep": {"list": [TOLD]}},
        inputSchema={"type": "object", "properties": {"url": {"description": TOLD}}},
        **fields,
    )


def _calls(number: int) -> list[dict[str, Any]]:
    referral = {
        "boundaryAxes": [TOLD, f"axis {number % 2}", "parsing"],
        "observedTaskShape": TOLD,
        "suggestedSplit": [TOLD, "html_parser"],
        "evidence": TOLD,
    }
    breach = {"path": f"/{SECRET}", "mismatch": TOLD, "expected": TOLD, "actual": TOLD}
    errors: list[tuple[str, dict[str, Any]]] = [
        ("wrong_tool_boundary", referral),
        ("low_utility", referral),
        ("contract_violation", breach | {"violations": [breach]}),
        ("TimeoutError", {"why": TOLD}),
        ("ValidationError", {"field": TOLD}),
    ]
    failures = [
        _call(
            number,
            error={
                "type": kind, "message": TOLD, "code": SECRET, "stack": TOLD, "details": details,
            },
        )
        for kind, details in errors
    ]  # fmt: skip
    weak = _call(number, result={TOLD: [], "status": TOLD}, resultStatus="no_results")
    return [*failures, weak, _call(number, result=[], resultStatus=SECRET)]


def test_a_secret_comes_out_nowhere(tmp_path: Path) -> None:
    """Of executions, referrals, contracts, corrections, tools, marks, promotions and reasons."""
    settings = hashing_settings(tmp_path)
    with running(settings) as service:
        client = service.client
        spec = {
            "name": TOOL,
            "version": "1.0.0",
            "description": TOLD,
            "inputSchema": {
                "type": "object",
                "properties": {"url": {"default": SECRET}, "password": {"type": "string"}},
            },
            "implementation": {"code": TOLD, "apiKey": SECRET},
        }
        assert client.put(f"/tools/{TOOL}", json=spec).status_code == 200
        calls = [call for number in range(12) for call in _calls(number)]
        assert service.record(calls).json()["accepted"] == len(calls)
        for call in calls[:3]:
            for kind, about in (
                ("low_utility", {"executionId": call["executionId"]}),
                ("wrong_tool_boundary", {"sessionId": SECRET}),
            ):
                body = {
                    "correctionId": str(uuid4()), "text": TOLD, "kind": kind,
                    "boundaryAxes": [TOLD, "parsing"], **about,
                }  # fmt: skip
                assert client.post("/corrections", json=body).status_code == 202
        fitness = Fitness(service)
        fitness.mark(TOOL, scenario=TOLD, errorMessage=TOLD)
        fitness.promote(TOOL, reason=TOLD, mutation=TOLD)
        consolidated(settings, service)
        on_loop(service, service.context.learning.clusterer.cluster_all())
        read = f"/executions/{calls[0]['executionId']}"
        answers = [client.get(path) for path in (*ANSWERS, read)]
        answers.append(fitness.best_answer(TOOL, TOLD))
        answers.append(client.post("/evolutions/find", json={"scenario": TOLD}))
        recommended = client.get("/recommendations").json()["recommendations"]
        assert {each["kind"] for each in recommended} >= {"repair", "tighten_contract", "split"}
        for each in recommended:
            change = {"state": "dismissed", "reason": TOLD}
            path = f"/recommendations/{each['recommendationId']}"
            answers.append(client.put(path, json=change))
        answers.append(client.get("/recommendations?state=dismissed"))
        for call in calls[:7]:
            asked = {key: call[key] for key in call.keys() - {"outcome", "result", "resultStatus"}}
            if "error" in call:
                answers.append(client.post("/suggest", json={"execution": asked}))
        for answer in answers:
            assert answer.status_code == 200, answer.text
            assert SECRET not in answer.text, answer.url
            assert "[redacted" in answer.text or answer.url.path in COUNTS, answer.url
    files = [path.read_bytes() for path in settings.data.dir.rglob("*") if path.is_file()]
    assert files
    assert not any(SECRET.encode() in each for each in files)
