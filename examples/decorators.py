"""Plain functions: `@reflecting` records every call and mends what others have mended before."""

import os
from contextvars import ContextVar
from tempfile import TemporaryDirectory
from time import sleep

from aftercall import Client, Recorder, ToolAnnotations
from aftercall.adapters.functions import reflecting

URL = os.environ.get("AFTERCALL_URL", "http://127.0.0.1:8799")
SESSION: ContextVar[str] = ContextVar("session", default="decorators")


def main() -> None:
    """Two colleagues find the right branch by themselves; the third is helped."""
    with (
        TemporaryDirectory() as spool,
        Client(URL) as client,
        Recorder(base_url=URL, spool_dir=spool) as recorder,
    ):

        @reflecting(
            client=client,
            recorder=recorder,
            agent="decorators-example",
            server_name="decorators-example",
            session_id=SESSION.get,
            annotations=ToolAnnotations(read_only_hint=True),  # only then is it called again
        )
        def latest_commits(branch: str, count: int = 3) -> list[str]:
            """What was committed last."""
            if branch != "trunk":
                raise LookupError(f"unknown branch {branch!r}")
            return [f"commit {number} of {branch}" for number in range(count)]

        for colleague in ("ada", "ben", "cyd"):
            SESSION.set(f"decorators-{colleague}")
            try:
                print(f"{colleague}: {latest_commits('main')}")
            except LookupError as error:
                print(f"{colleague}: {error}; tries another branch: {latest_commits('trunk')}")
            recorder.flush()
            while client.status().pending_indexing:  # learned from within a second
                sleep(0.05)


if __name__ == "__main__":
    main()
