"""What `make generate` writes is checked in, and current."""

import runpy
from pathlib import Path

SDK = Path(__file__).parents[2] / "sdk"


def test_the_synchronous_modules_are_those_of_their_sources() -> None:
    """Whoever changes an asynchronous module runs `make generate`."""
    script = runpy.run_path(str(SDK / "generate_sync.py"))
    stale = [path.name for path, text in script["generated"]().items() if path.read_text() != text]
    assert stale == [], "run `make generate`"
