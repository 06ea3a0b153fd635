"""The shipped corpus: common mistakes and lessons, so that day one is useful."""

from ingest.seed.loader import SeedCorpusError, index_seed, load_seed

__all__ = ["SeedCorpusError", "index_seed", "load_seed"]
