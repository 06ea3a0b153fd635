"""How fast Harmony text is parsed, in chunks as small as a model streams them.

A mix as gpt-oss writes it: prose in `analysis`, a call and its result, prose in `final`. Beside
the mix stand its parts alone, and the mix with its events (`HarmonyToolCalls` without an executor
that does anything).

    python -m bench.harmony [--json] [--megabytes 4] [--chunk 16] [--repeats 5]
"""

import argparse
import json
import multiprocessing
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable

from aftercall.events import ToolCalls
from aftercall.harmony import HarmonyCall, HarmonyItem, HarmonyParser, HarmonyToolCalls

PROSE = (
    "the user asks for a list of films that were shown in the old cinema so we need to fetch "
    "its page first and then look for titles, where x < 10 and the café is open, perhaps"
)
WORDS = PROSE.split()


def prose(draw: random.Random, words: int) -> str:
    return " ".join(draw.choices(WORDS, k=words)) + "."


def call(draw: random.Random, number: int) -> str:
    arguments = {
        "query": prose(draw, 12),
        "topK": number % 50,
        "filters": {"language": "en", "year": {"from": 1990, "to": 2026}, "tags": ["a", "b"]},
        "note": 'quoted "words" and a marker <|end|> that is data',
    }
    header = "<|start|>assistant<|channel|>commentary to=functions.search <|constrain|>json"
    return f"{header}<|message|>{json.dumps(arguments)}<|call|>"


def result(draw: random.Random) -> str:
    found = json.dumps({"hits": [{"id": n, "text": prose(draw, 8)} for n in range(4)]})
    header = "<|start|>functions.search to=assistant<|channel|>commentary"
    return f"{header}<|message|>{found}<|end|>"


def text(draw: random.Random, channel: str, words: int) -> str:
    return f"<|start|>assistant<|channel|>{channel}<|message|>{prose(draw, words)}<|end|>"


def mix(characters: int) -> tuple[str, int]:
    """The text, and how many calls are in it."""
    draw = random.Random(7)
    parts: list[str] = []
    size = calls = 0
    while size < characters:
        turn = [
            text(draw, "analysis", 150),
            call(draw, calls),
            result(draw),
            text(draw, "final", 120),
        ]
        parts += turn
        size += sum(map(len, turn))
        calls += 1
    return "".join(parts), calls


def alone(characters: int, part: Callable[[random.Random, int], str]) -> str:
    draw = random.Random(7)
    parts: list[str] = []
    size = 0
    while size < characters:
        parts.append(part(draw, len(parts)))
        size += len(parts[-1])
    return "".join(parts)


def megabytes_per_s(
    chunks: list[str],
    feed: Callable[[str], list[HarmonyItem]],
    close: Callable[[], list[HarmonyItem]],
) -> tuple[float, int]:
    """The rate, in 10^6 bytes of UTF-8 a second, and how many calls were read."""
    size = sum(len(chunk.encode()) for chunk in chunks)
    calls = 0
    before = time.perf_counter()
    for chunk in chunks:
        for item in feed(chunk):
            if type(item) is HarmonyCall and item.arguments is not None:
                calls += 1
    calls += sum(isinstance(item, HarmonyCall) for item in close())
    return size / 1e6 / (time.perf_counter() - before), calls


def measure(megabytes: float, chunk: int, repeats: int) -> dict[str, object]:
    characters = int(megabytes * 1e6)
    mixed, expected = mix(characters)
    parts = {
        "mix": mixed,
        "prose": alone(characters, lambda draw, _: text(draw, "analysis", 150)),
        "calls": alone(characters, call),
    }
    runs: dict[str, list[float]] = {}
    for name, whole in parts.items():
        chunks = [whole[at : at + chunk] for at in range(0, len(whole), chunk)]
        for _ in range(repeats):
            parser = HarmonyParser()
            rate, calls = megabytes_per_s(chunks, parser.feed, parser.close)
            runs.setdefault(name, []).append(rate)
            if name == "mix":
                assert calls == expected, f"{calls} of {expected} calls were read"
                told = HarmonyToolCalls(ToolCalls("bench", []))
                rate, _ = megabytes_per_s(chunks, told.feed, told.close)
                runs.setdefault("mix_with_events", []).append(rate)
    return {
        "mb_per_s": {name: statistics.median(rates) for name, rates in runs.items()},
        "runs_mb_per_s": runs,
        "chunk_characters": chunk,
        "megabytes": megabytes,
        "calls_in_mix": expected,
        "repeats": repeats,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {multiprocessing.cpu_count()} cores",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--megabytes", type=float, default=4, help="of each text")
    parser.add_argument("--chunk", type=int, default=16, help="characters fed at once")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    result = measure(options.megabytes, options.chunk, options.repeats)
    if options.json:
        json.dump(result, sys.stdout, indent=2)
        print()
        return
    rates = result["mb_per_s"]
    assert isinstance(rates, dict)
    for name, rate in rates.items():
        print(f"{name:18} {rate:8.2f} MB/s in chunks of {options.chunk} characters")


if __name__ == "__main__":
    main()
