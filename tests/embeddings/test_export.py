"""Exporting a model: once, whole, and only when it agrees with torch.

A BERT of two layers with random weights stands in for a real one where 90 MB would only be slow.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from embeddings.cache import open_embedder
from embeddings.models import TOKENIZER_FILE, load_record
from embeddings.protocol import EmbeddingError

pytestmark = pytest.mark.real

MAKE_TINY = """
import sys
from transformers import BertConfig, BertModel
config = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                    intermediate_size=64, vocab_size=30522, max_position_embeddings=64)
BertModel(config).save_pretrained(sys.argv[1])
"""

DISAGREE = """
import sys
from embeddings import export
export.MIN_COSINE = 1.5
sys.exit(export.main(sys.argv[1:]))
"""


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory, bundled_source) -> Path:
    """A small sentence-transformers folder with mean pooling."""
    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    subprocess.run([sys.executable, "-c", MAKE_TINY, str(folder)], check=True, capture_output=True)
    for file in (TOKENIZER_FILE, "tokenizer_config.json", "modules.json", "vocab.txt"):
        shutil.copy(bundled_source / file, folder)
    shutil.copytree(bundled_source / "1_Pooling", folder / "1_Pooling")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 48}))
    return folder


def _command(model: Path, target: Path) -> list[str]:
    return [sys.executable, "-m", "embeddings.export", str(model), str(target), "--name", "tiny"]


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


def test_two_processes_that_export_at_once_make_one_folder(tiny_model, tmp_path):
    """The second waits and finds it done; nothing half-made is left."""
    target = tmp_path / "target"
    processes = [
        subprocess.Popen(
            _command(tiny_model, target), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    assert _names(tmp_path) == {"target"}
    record = load_record(target)
    assert record.name == "tiny"
    assert record.dimension == 32
    assert record.max_length == 48
    assert record.verified_cosine >= 0.9999


def test_an_export_that_disagrees_with_torch_is_not_kept(tiny_model, tmp_path):
    """A miscompiled model would be silently wrong for ever; it is an error instead."""
    target = tmp_path / "target"
    found = subprocess.run(
        [sys.executable, "-c", DISAGREE, str(tiny_model), str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1
    assert "does not agree with torch" in found.stderr
    assert _names(tmp_path) == set()


async def test_a_folder_of_ones_own_is_exported_and_served(tiny_model, tmp_path):
    """`onnx:FOLDER` exports any BERT-like folder once, says so, and then loads it."""
    said: list[str] = []
    for _ in range(2):
        embedder = await open_embedder(
            f"onnx:{tiny_model}", cache_dir=tmp_path, on_progress=said.append
        )
        vectors = await embedder.embed(["one", "two words"], "document")
        await embedder.close()
        assert vectors.shape == (2, 32)
        assert embedder.fingerprint.startswith("tiny-bert@")
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert said == ["exporting the model tiny-bert once (about 10 s)"]


async def test_a_model_that_pools_otherwise_is_refused(tiny_model, tmp_path):
    """What the export would leave out makes another model; the error names the way that works."""
    folder = tmp_path / "cls-model"
    shutil.copytree(tiny_model, folder)
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})
    )
    with pytest.raises(EmbeddingError, match=r"does not pool by the mean.*'st:"):
        await open_embedder(f"onnx:{folder}", cache_dir=tmp_path / "cache")
    assert _names(tmp_path / "cache") == set()
