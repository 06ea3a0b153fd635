"""What the example's plug-ins do, one line each; run where they are installed."""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from aftercall import Client, FailedCall
from aftercall.models import ExecutionError
from aftercall.redaction import Redactor
from embeddings.embedders import open_embedder
from tests.service.running_service import hashing_settings, running

KEY = "acme_" + "a1B2" * 6


async def _letters() -> str:
    embedder = await open_embedder("letters:8")
    vectors = await embedder.embed(["abc"], "query")
    await embedder.close()
    return str(vectors.shape)


def say(kind: str, shown: object) -> None:
    """Write one line: what kind of plug-in it was, and what it made."""
    sys.stdout.write(f"{kind} {shown}\n")


def _imported(log: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "aftercall.cli", "import", "--dry-run", log],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return " ".join((done.stdout + done.stderr).split())


def main() -> None:
    """Print what each plug-in makes of an example."""
    say("secret", Redactor().text(f"key {KEY} end"))
    say("embedder", asyncio.run(_letters()))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "acme.jsonl"
        lines = [
            {"acme": "call", "number": "1", "tool": "add", "given": {"a": 1}, "gave": 2},
            {"acme": "call", "number": "2", "tool": "add", "given": {"a": "x"}, "broke": "no"},
        ]
        log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        say("log", _imported(log))
        with running(hashing_settings(Path(folder) / "data")) as service:
            with Client(service.url) as client:
                call = FailedCall(
                    agent="ada",
                    tool_name="chapter",
                    parameters={"number": "XIV"},
                    error=ExecutionError(message="number must be an integer"),
                    input_schema={
                        "type": "object",
                        "properties": {"number": {"type": "integer"}},
                        "required": ["number"],
                    },
                )
                suggestions = client.suggest(call).suggestions
                say("proposer", [each.corrected_parameters for each in suggestions])
            hook = {
                "hook": "failed",
                "tool": "open_file",
                "args": {},
                "error": "no path",
                "chat": "1",
            }
            answer = service.client.post("/hooks/example-agent", json=hook)
            say("hook", answer.status_code)


if __name__ == "__main__":
    main()
