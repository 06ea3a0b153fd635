"""A digest of 3,000 answers over a fixed history: the same before and after what only makes faster.

    python -m bench.answers [--executions 8000]

Records and learns the history of `bench/history.py` in this process, with vectors by hashing, and
asks `/suggest` about 1,500 failures that it does not have, 500 that repeat one of it, and 1,000 of
another history of the same tools. Ids and times are left out. Run it in two checkouts on one day:
the history ends with the day before.
"""

import argparse
import asyncio
import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2

from aftercall.models import Execution
from bench import history
from bench.scale import batches
from service.context import Context, Lifecycle, open_context
from service.server import create_app
from service.settings import (
    DataSettings,
    EmbeddingSettings,
    IndexingSettings,
    NightlySettings,
    Settings,
)

NEW, REPEATED, OTHER = 1_500, 500, 1_000
_OF_THE_RUN = frozenset({"suggestionId", "tookMs"})

Json = dict[str, Any]


def questions(begins: datetime) -> Iterator[Json]:
    """Yield the failures that are asked about."""
    yield from history.new_failures(NEW)
    yield from history.repeated_failures(REPEATED)
    others = history.executions(20 * OTHER, seed=99, start=begins)
    failed = ({**each} for each in others if each["outcome"] == "failure")
    for each in islice(failed, OTHER):
        yield {name: each[name] for name in each.keys() - {"executionId", "timestamp"}}


def lasting(answer: Any) -> Any:
    """Return an answer without what differs from run to run."""
    if isinstance(answer, dict):
        return {name: lasting(each) for name, each in answer.items() if name not in _OF_THE_RUN}
    if isinstance(answer, list):
        return [lasting(each) for each in answer]
    return round(answer, 6) if isinstance(answer, float) else answer


async def digest(executions: int) -> tuple[str, Counter[str]]:
    """Return the digest of all answers, and how often each action came first."""
    begins = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begins -= timedelta(days=28)
    with tempfile.TemporaryDirectory(prefix="aftercall-answers-") as name:
        settings = Settings(
            data=DataSettings(dir=Path(name)),
            embedding=EmbeddingSettings(model="hashing"),
            nightly=NightlySettings(every_h=0),
            indexing=IndexingSettings(here=False),
        )
        async with open_context(settings) as context:
            for batch in batches(history.executions(executions, start=begins), 500):
                calls = [Execution.model_validate(each) for each in batch]
                await context.intake.accept_executions("default", calls)
            await context.indexer.catch_up()
            return await _asked(settings, context, begins)


async def _asked(
    settings: Settings, context: Context, begins: datetime
) -> tuple[str, Counter[str]]:
    found, first = hashlib.sha256(), Counter[str]()
    transport = httpx2.ASGITransport(app=create_app(settings, Lifecycle(context=context)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for each in questions(begins):
            answer = (await client.post("/suggest", json={"execution": each})).json()
            found.update(json.dumps(lasting(answer), sort_keys=True).encode())
            first.update(one["action"] for one in answer["suggestions"][:1])
    return found.hexdigest(), first


def main() -> None:
    """Print the digest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executions", type=int, default=8_000)
    found, first = asyncio.run(digest(parser.parse_args().executions))
    print(f"{found}  {NEW + REPEATED + OTHER:,} answers, first of each: {dict(first)}")


if __name__ == "__main__":
    main()
