"""Opening an embedder by its name."""

import pytest

from embeddings.embedders import open_embedder
from embeddings.protocol import EmbeddingError


@pytest.mark.parametrize(("given", "name"), [((), "all-MiniLM-L6-v2"), (("hashing",), "hashing")])
async def test_what_needs_nothing_but_pip_is_opened_by_its_name(given, name):
    """Without a name, all-MiniLM-L6-v2; both have 384 dimensions."""
    embedder = await open_embedder(*given)
    assert (embedder.name, embedder.dimension) == (name, 384)
    assert (await embedder.embed(["text"], "query")).shape == (1, 384)
    await embedder.close()


@pytest.mark.parametrize("model", ["", "minilm", "st:", "onnx:", "all-MiniLM-L6-v2:x", "hashing:5"])
async def test_an_unknown_name_lists_what_is_accepted(model):
    """A typing error in the settings is answered with the names that work."""
    with pytest.raises(EmbeddingError, match=r"all-MiniLM-L6-v2.*onnx:FOLDER.*st:NAME.*hashing"):
        await open_embedder(model)


@pytest.mark.real
@pytest.mark.parametrize("kind", ["onnx", "st"])
async def test_a_folder_without_a_model_is_an_error(kind, tmp_path):
    """A wrong path is an `EmbeddingError` that names it, never a download or a traceback."""
    if kind == "st":
        pytest.importorskip("sentence_transformers")
    folder = tmp_path / "nothing-here"
    folder.mkdir()
    with pytest.raises(EmbeddingError, match="nothing-here"):
        await open_embedder(f"{kind}:{folder}")
