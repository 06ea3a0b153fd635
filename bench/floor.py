"""The floor of `/suggest`: one ONNX embedding and one index query, and nothing around them.

    python -m bench.floor --vectors COPY --failures FILE --cache-dir MODELS

Run by `bench/service.py` in a process of its own, over a copy of the service's own vectors, while
the service idles. The embedding is the model's blocking call without cache, thread hop or event
loop; the query is one dense and sparse question to the index through its adapter, which hops to a
thread because Qdrant Edge holds the GIL. Both get the very texts that the service embeds for the
same failures. Prints milliseconds as JSON.
"""

import argparse
import asyncio
import json
import time
from pathlib import Path

from aftercall.models import FailedCall
from embeddings.embedders import DEFAULT_THREADS, OnnxEmbedder, OnnxModel
from embeddings.models import bundled_model
from embeddings.text import question_text, terms_text
from retrieval.index.edge import EdgeIndex
from retrieval.index.protocol import IndexQuery
from retrieval.knowledge.reading.reader import read_error

WARM_UP = 20


def text_of(call: FailedCall) -> str:
    """The text that the service embeds for a failed call."""
    signature = read_error(call.error, call.parameters).signature
    return question_text(call.tool_name, call.parameters, call.context, signature)


async def measure(vectors: Path, calls: list[FailedCall]) -> dict[str, list[float]]:
    """Milliseconds of each embedding, of each query, and of both together."""
    model = OnnxModel(bundled_model(), threads=DEFAULT_THREADS)
    named = await OnnxEmbedder.open()
    owner = json.loads((vectors / "index.json").read_text())["owner"]
    index = await EdgeIndex.open(
        vectors, dimension=named.dimension, fingerprint=named.fingerprint, owner=owner
    )
    await named.close()
    times: dict[str, list[float]] = {"embedding": [], "query": [], "both": []}
    try:
        for number, call in enumerate([*calls[:WARM_UP], *calls]):
            text = text_of(call)
            started = time.perf_counter()
            vector = model.encode_texts([text])[0]
            embedded = time.perf_counter()
            query = IndexQuery(
                workspaces=("default",), kind="success", vector=vector, terms=terms_text(text),
                limit=5, tool_name=call.tool_name, server_name=call.server_name,
            )  # fmt: skip
            await index.search_points([query])
            done = time.perf_counter()
            if number >= WARM_UP:
                times["embedding"].append((embedded - started) * 1000)
                times["query"].append((done - embedded) * 1000)
                times["both"].append((done - started) * 1000)
    finally:
        await index.close()
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--failures", type=Path, required=True)
    args = parser.parse_args()
    calls = [FailedCall.model_validate(item) for item in json.loads(args.failures.read_text())]
    print(json.dumps(asyncio.run(measure(args.vectors, calls))))


if __name__ == "__main__":
    main()
