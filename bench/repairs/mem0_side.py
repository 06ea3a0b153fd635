"""mem0's half of `bench/repairs/mem0.py`; runs in mem0's own environment and prints JSON.

    python -m bench.repairs.mem0_side FOLDER < TEXTS.json

`memories` are added one by one as they are (`infer=False`: no language model reads them), then
`questions` are searched. mem0 gets our model through its LangChain door, so that both embed alike;
its vectors are in Qdrant's local mode, as it comes.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from embeddings.embedders import DEFAULT_THREADS, OnnxModel
from embeddings.models import bundled_model

WARM_UP = 20


def main() -> None:
    """Add, search, print the milliseconds of each."""
    folder = Path(sys.argv[1])
    os.environ.update(MEM0_TELEMETRY="False", MEM0_DIR=str(folder), OPENAI_API_KEY="unused")
    texts = json.load(sys.stdin)
    memory = _memory(folder)
    adds = _times(lambda text: memory.add(text, user_id="agents", infer=False), texts["memories"])
    searches = _times(
        lambda text: memory.search(text, filters={"user_id": "agents"}, top_k=5), texts["questions"]
    )
    print(json.dumps({"addMs": adds, "searchMs": searches}))


def _times(call: Callable[[str], Any], texts: list[str]) -> list[float]:
    """Milliseconds of each call; the first are left out."""
    times = []
    for text in texts:
        started = time.perf_counter()
        call(text)
        times.append((time.perf_counter() - started) * 1000)
    return times[WARM_UP:]


def _memory(folder: Path) -> Any:
    from langchain_core.embeddings import Embeddings  # noqa: PLC0415 - of mem0's environment
    from mem0 import Memory  # type: ignore[import-not-found]  # noqa: PLC0415

    model = OnnxModel(bundled_model(), threads=DEFAULT_THREADS)

    class Ours(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            vectors: list[list[float]] = model.encode_texts(texts).tolist()
            return vectors

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    return Memory.from_config(
        {
            "embedder": {"provider": "langchain", "config": {"model": Ours()}},
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "path": str(folder / "qdrant"),
                    "embedding_model_dims": model.dimension,
                    "on_disk": True,
                },
            },
            "history_db_path": str(folder / "history.db"),
        }
    )


if __name__ == "__main__":
    main()
