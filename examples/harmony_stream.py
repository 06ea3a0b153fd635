"""A stream of gpt-oss with tool calls in it: parsed as it comes, run, told, and mended."""

import os
from contextvars import ContextVar
from tempfile import TemporaryDirectory
from time import sleep

from aftercall import Client, Recorder, ToolAnnotations
from aftercall.adapters.functions import reflecting
from aftercall.events import CallbackSink, ToolCalls
from aftercall.harmony import Dispatcher, HarmonyResult, HarmonyToolCalls

URL = os.environ.get("AFTERCALL_URL", "http://127.0.0.1:8799")
SESSION: ContextVar[str] = ContextVar("session", default="harmony")


def stream_of(branch: str) -> list[str]:
    """What the model says, in pieces as small as they come."""
    text = (
        "<|start|>assistant<|channel|>analysis<|message|>I look it up.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.latest_commits "
        f'<|constrain|>json<|message|>{{"branch": "{branch}"}}<|call|>'
    )
    return [text[start : start + 7] for start in range(0, len(text), 7)]


def main() -> None:
    """Two sessions find the right branch by themselves; the third is helped."""
    with (
        TemporaryDirectory() as spool,
        Client(URL) as client,
        Recorder(base_url=URL, spool_dir=spool) as recorder,
    ):

        @reflecting(
            client=client,
            recorder=recorder,
            agent="harmony-example",
            server_name="harmony-example",
            session_id=SESSION.get,
            annotations=ToolAnnotations(read_only_hint=True),  # only then is it called again
        )
        def latest_commits(branch: str) -> list[str]:
            """What was committed last."""
            if branch != "trunk":
                raise LookupError(f"unknown branch {branch!r}")
            return [f"commit {number} of {branch}" for number in range(2)]

        tools = Dispatcher({"latest_commits": latest_commits})
        for user in ("ada", "ben", "cyd"):
            SESSION.set(f"harmony-{user}")
            told = CallbackSink(lambda event: print(f"  {event.event} {event.tool} {event.seq}"))
            calls = HarmonyToolCalls(ToolCalls(f"request-{user}", [told], agent=user), tools)
            for branch in ["main"] if user == "cyd" else ["main", "trunk"]:
                for item in calls.stream(stream_of(branch)):
                    if isinstance(item, HarmonyResult):
                        print(f"{user}: {item.text}")
            recorder.flush()
            while client.status().pending_indexing:  # learned from within a second
                sleep(0.05)


if __name__ == "__main__":
    main()
