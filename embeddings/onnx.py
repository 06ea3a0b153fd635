"""The default embedder: an exported model on ONNX Runtime, without torch."""

import asyncio
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from embeddings.models import (
    ONNX_FILE,
    TOKENIZER_FILE,
    ModelRecord,
    fingerprint,
    load_record,
)
from embeddings.protocol import EmbeddingError, Role, ThreadedEmbedder, Vectors

INPUT_NAMES = ("input_ids", "attention_mask")
OUTPUT_NAME = "unit_vector"
"""Names in the graph, given at the export. `embedding` is taken there by the model's own layers."""

DEFAULT_THREADS = 2
"""Two cores: 2.7 ms for a short text of MiniLM, one: 4.1 ms; the service needs the others."""


class OnnxModel:
    """A model loaded from an exported folder; blocking, for one thread at a time.

    Args:
        folder: As made by `embeddings.export`.
        threads: Threads of ONNX Runtime within one operator.

    Raises:
        EmbeddingError: when the files are missing, damaged or not a model.
    """

    def __init__(self, folder: Path, *, threads: int) -> None:
        self.record: ModelRecord = load_record(folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Spinning threads save 0.3 ms of 2.7 while the machine is idle, and double the time when
        # another process wants the cores (6.5 ms instead of 3.2, two cores).
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                str(folder / ONNX_FILE), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        except Exception as error:  # both libraries raise bare exceptions of their own making
            raise EmbeddingError(
                f"the model in {folder} does not load ({error}); delete the folder and start again"
            ) from error
        # The file asks for padding to 128 tokens; we pad to the longest of the batch.
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(self.record.max_length)

    # This family embeds both roles alike.
    def encode(self, texts: list[str], role: Role = "document") -> Vectors:  # noqa: ARG002
        """Unit vectors of the texts, shape (n, dimension), float32."""
        encodings = self._tokenizer.encode_batch(texts)
        width = max(len(encoding.ids) for encoding in encodings)
        ids = np.zeros((len(texts), width), dtype=np.int64)
        mask = np.zeros_like(ids)  # padding is masked, so its id does not matter
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = encoding.ids
            mask[row, : len(encoding.ids)] = 1
        feed = dict(zip(INPUT_NAMES, (ids, mask), strict=True))
        (vectors,) = self._session.run([OUTPUT_NAME], feed)
        return np.asarray(vectors, dtype=np.float32)


class OnnxEmbedder(ThreadedEmbedder):
    """`Embedder` on ONNX Runtime. Construct with `await OnnxEmbedder.open(folder)`."""

    def __init__(self, model: OnnxModel) -> None:
        record = model.record
        super().__init__(
            model.encode,
            name=record.name,
            fingerprint=fingerprint(record.name, record.weights_sha256),
            dimension=record.dimension,
        )

    @classmethod
    async def open(cls, folder: Path, *, threads: int = DEFAULT_THREADS) -> "OnnxEmbedder":
        """Load an exported folder off the event loop; MiniLM takes some 0.3 s.

        Args:
            folder: As made by `embeddings.export`.
            threads: Threads of ONNX Runtime within one operator.

        Raises:
            EmbeddingError: when the files are missing, damaged or not a model.
        """
        return cls(await asyncio.to_thread(OnnxModel, folder, threads=threads))
