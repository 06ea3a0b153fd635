"""The embedder's protocol: text to unit vectors."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""Shape (n, dimension), dtype float32, each row of unit length: the dot product is the cosine."""

Role = Literal["query", "document"]
"""Whether a text asks or is looked for; some models embed the two differently."""


class EmbeddingError(Exception):
    """A model is missing, damaged or unusable; the message names the cure."""


class Embedder(Protocol):
    """Turns texts into vectors, off the event loop."""

    @property
    def name(self) -> str:
        """The model's name, such as `all-MiniLM-L6-v2`."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the vectors would: name and hash of the weights. Kept with the index."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Vectors of the texts, in order; an empty sequence gives shape (0, dimension).

        Texts beyond the model's window are cut. Never blocks the event loop.

        Raises:
            EmbeddingError: when the model cannot run.
        """
        ...

    async def close(self) -> None:
        """Release threads and memory; closing twice does nothing."""
        ...
