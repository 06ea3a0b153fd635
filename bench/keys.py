"""What a key costs a request: `python -m bench.keys [--requests N]`.

Two services in this process, one with 1,000 keys and one without any, are asked the same small
question in turn, over one connection each. The difference of the medians is what the guard, the
scope and the copy of the context take.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx2

ROOT = Path(__file__).parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from aftercall.models import KeySpec  # noqa: E402  # after the path
from service.api.keys import create_key  # noqa: E402
from service.keys import CONSOLE, KeySpace  # noqa: E402
from tests.service.running_service import hashing_settings, on_loop, running  # noqa: E402

KEYS = 1_000


def measure(requests: int) -> dict[str, float]:
    """Microseconds: medians without and with keys, and of the check of a key alone."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running(hashing_settings(Path(folder) / "open")) as free,
        running(hashing_settings(Path(folder) / "guarded")) as guarded,
    ):
        keys = guarded.context.keys
        spec = KeySpec(name="bench", workspace="default", scopes=["read"])
        for _ in range(KEYS):
            secret = on_loop(guarded, create_key(KeySpace(keys, CONSOLE), spec)).secret
        headers = {"authorization": f"Bearer {secret}"}
        times: dict[str, list[float]] = {"without": [], "with": []}
        with httpx2.Client(base_url=guarded.url, headers=headers) as client:
            asked = {"without": free.client, "with": client}
            for number in range(requests):
                for name, each in asked.items():
                    started = time.perf_counter()
                    each.get("/tools").raise_for_status()
                    if number >= requests // 10:
                        times[name].append(time.perf_counter() - started)
        started = time.perf_counter()
        for _ in range(requests):
            keys.find_access(secret)
        alone = (time.perf_counter() - started) / requests
    found = {name: statistics.median(each) * 1e6 for name, each in times.items()}
    return {**found, "difference": found["with"] - found["without"], "check alone": alone * 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5_000)
    for name, value in measure(parser.parse_args().requests).items():
        print(f"{name:<12} {value:8.1f} us")


if __name__ == "__main__":
    main()
