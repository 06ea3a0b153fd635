"""Opening an embedder by its name."""

import pytest

from embeddings.cache import open_embedder
from embeddings.protocol import EmbeddingError


async def test_hashing_needs_nothing(tmp_path):
    """`hashing` opens without a model, a cache or a download."""
    embedder = await open_embedder("hashing", cache_dir=tmp_path)
    assert (await embedder.embed(["text"], "query")).shape == (1, embedder.dimension)
    await embedder.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real
async def test_the_default_is_the_bundled_model(onnx_folder):
    """Without a name, all-MiniLM-L6-v2 with 384 dimensions."""
    embedder = await open_embedder(cache_dir=onnx_folder.parent)
    assert (embedder.name, embedder.dimension) == ("all-MiniLM-L6-v2", 384)
    await embedder.close()


@pytest.mark.parametrize("model", ["", "minilm", "st:", "onnx:", "all-MiniLM-L6-v2:x", "hashing:5"])
async def test_an_unknown_name_lists_what_is_accepted(model, tmp_path):
    """A typing error in the settings is answered with the names that work."""
    with pytest.raises(EmbeddingError, match=r"all-MiniLM-L6-v2.*onnx:FOLDER.*st:NAME.*hashing"):
        await open_embedder(model, cache_dir=tmp_path)


@pytest.mark.real
@pytest.mark.parametrize("kind", ["onnx", "st"])
async def test_a_folder_without_a_model_is_an_error(kind, tmp_path):
    """A wrong path is an `EmbeddingError` that names it, never a download or a traceback."""
    folder = tmp_path / "nothing-here"
    folder.mkdir()
    with pytest.raises(EmbeddingError, match="nothing-here"):
        await open_embedder(f"{kind}:{folder}", cache_dir=tmp_path / "cache")
