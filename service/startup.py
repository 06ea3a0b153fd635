"""Why the stores cannot be opened, in one line that names the cure."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aftercall.errors import AftercallError
from embeddings.protocol import EmbeddingError
from ingest.seed import SeedCorpusError
from mongo.errors import StoreError, StoreFullError
from retrieval.index.protocol import VectorIndexError


class CannotOpenError(AftercallError):
    """A store, the model or the index cannot be opened; the message names the cure."""


@contextmanager
def one_line(data_dir: Path) -> Iterator[None]:
    """Turn what the rooms raise into one line for the command line; nothing else is caught.

    Raises:
        CannotOpenError: in the rooms' own words, which name their cures.
    """
    try:
        yield
    except StoreFullError as error:
        # The store's words are about one call; here it is the start that did not go through.
        raise CannotOpenError(
            f"no space left for {data_dir}: what is stored there is as it was. Free space on its "
            "volume, or choose another folder with --data-dir, and run this command again"
        ) from error
    except (StoreError, VectorIndexError, EmbeddingError, SeedCorpusError) as error:
        raise CannotOpenError(" ".join(str(error).split())) from error
    except OSError as error:
        place = error.filename or data_dir
        raise CannotOpenError(
            f"cannot use {place}: {error.strerror or error}; choose a folder with --data-dir"
        ) from error
