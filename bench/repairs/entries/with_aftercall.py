"""Aftercall over HTTP: a fresh service with its default settings, and the SDK's client and rules.

Offered is its first suggestion, followed what `RetryRules` sends with nobody asked (with
`--followed` nothing else is answered). About a good call `/check` is asked. What two agents fixed
is recorded as their calls, and learned before the third one asks.
"""

import json
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from aftercall.client import Client
from aftercall.models import Call, Execution, ExecutionError, FailedCall, ToolAnnotations
from aftercall.reflection.retry_rules import ReflectionPolicy, RetryRules, apply_changes
from bench.service import serving

_NOTHING = {"call": None}
_POLL_S = 0.05


def about(question):
    """Return the fields of a call that the question knows."""
    return {"server_name": question["server"], "tool_name": question["tool"],
            "context": question.get("context"), "input_schema": question["schema"]}  # fmt: skip


def claims(question):
    """Return the hints of the tool; None where it gives none."""
    hints = {name: value for name, value in question.get("annotations", {}).items()
             if name.endswith("Hint")}  # fmt: skip
    return ToolAnnotations.model_validate(hints) if hints else None


def teach(client, question):
    """Record what the two agents sent, and wait until it is learned."""
    executions = []
    for at, each in enumerate(question["examples"]):
        start = datetime.now(UTC) - timedelta(minutes=10 - at)
        of = {"agent": f"agent-{at}", "session_id": str(uuid4()), **about(question)}
        failed = {"parameters": each["call"], "outcome": "failure", "error": each["error"]}
        fixed = {"parameters": each["fixed"], "outcome": "success"}
        for sequence, fields in enumerate((failed, fixed)):
            moment = start + timedelta(seconds=5 * sequence)
            executions.append(
                Execution(execution_id=str(uuid4()), timestamp=moment, sequence=sequence,
                          **fields, **of)
            )  # fmt: skip
    client.record(executions)
    while client.status().pending_indexing:
        time.sleep(_POLL_S)


def answer(client, question, *, only_followed):
    """Return what Aftercall offers about a failed call, and whether it follows that."""
    hints = claims(question)
    if question["error"] is None:
        checked = client.check(
            Call(agent="asker", parameters=question["call"], **about(question)), annotations=hints
        )
        is_repair = checked.verdict == "repair"
        return {"call": apply_changes(question["call"], checked.changes) if is_repair else None}
    call = FailedCall(agent="asker", parameters=question["call"], error=question["error"],
                      **about(question))  # fmt: skip
    answered = client.suggest(call, annotations=hints)
    rules = RetryRules(ReflectionPolicy(), question["call"], may_repeat=False, jitter=lambda: 0.0,
                       tool_name=question["tool"], annotations=hints)  # fmt: skip
    retry = rules.next_retry(ExecutionError.model_validate(question["error"]), answered)
    if only_followed:
        return _NOTHING if retry is None else {"call": retry.parameters}
    first = next(iter(answered.suggestions), None)
    if first is None or first.action != "change_parameters":
        return _NOTHING
    return {"call": apply_changes(question["call"], first.changes), "follow": retry is not None}


def main():
    only_followed = "--followed" in sys.argv[1:]
    taught = set()
    with tempfile.TemporaryDirectory(prefix="aftercall-repairs-") as name:
        folder = Path(name)
        with (
            serving(folder / "data", folder / "service.log") as service,
            Client(service.url) as client,
        ):
            for line in sys.stdin:
                question = json.loads(line)
                tool = (question["server"], question["tool"])
                if question.get("examples") and tool not in taught:
                    taught.add(tool)
                    teach(client, question)
                print(json.dumps(answer(client, question, only_followed=only_followed)), flush=True)
            service.stop()


if __name__ == "__main__":
    main()
