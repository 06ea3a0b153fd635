"""Models on ONNX Runtime: that each is the model it says it is, intact, and needs no torch."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from embeddings.embedders import OnnxEmbedder, OnnxModel, open_embedder
from embeddings.models import BUNDLED_TOKENIZER, bundled_graph, bundled_model, local_model
from embeddings.protocol import EmbeddingError
from tests.embeddings.tool_errors import GROUPS

ROOT = Path(__file__).parents[2]

TEXTS = [text for group in GROUPS for text in group]

SERVE = """
import asyncio, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "transformers", "sentence_transformers", "onnx",
                                  "safetensors", "sklearn", "scipy"}:
            raise ImportError(f"{name} is not for serving")

sys.meta_path.insert(0, Refuse())
from embeddings.embedders import open_embedder

async def main():
    embedder = await open_embedder()
    vectors = await embedder.embed(["served without torch"], "query")
    await embedder.close()
    print(vectors.shape)

asyncio.run(main())
"""

TINY = {
    "model_type": "bert", "hidden_act": "gelu", "hidden_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 2, "intermediate_size": 64, "layer_norm_eps": 1e-12,
}  # fmt: skip


def tiny_weights() -> dict[str, np.ndarray]:
    """Random weights of a BERT of two layers."""
    draw = np.random.RandomState(7)
    shapes = {
        "embeddings.word_embeddings.weight": (30_522, 32),
        "embeddings.position_embeddings.weight": (64, 32),
        "embeddings.token_type_embeddings.weight": (2, 32),
        "embeddings.LayerNorm.weight": (32,),
        "embeddings.LayerNorm.bias": (32,),
    }
    for layer in ("encoder.layer.0", "encoder.layer.1"):
        for name, out, given in (
            *((f"attention.self.{part}", 32, 32) for part in ("query", "key", "value")),
            ("attention.output.dense", 32, 32),
            ("intermediate.dense", 64, 32),
            ("output.dense", 32, 64),
        ):
            shapes[f"{layer}.{name}.weight"] = (out, given)
            shapes[f"{layer}.{name}.bias"] = (out,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{layer}.{name}.weight"] = shapes[f"{layer}.{name}.bias"] = (32,)
    return {
        name: draw.normal(scale=0.3, size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small sentence-transformers folder with mean pooling."""
    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    (folder / "1_Pooling").mkdir(parents=True)
    shutil.copy(BUNDLED_TOKENIZER, folder)
    modules = [{"type": f"sentence_transformers.models.{each}"} for each in MODULES]
    for name, content in {
        "config.json": TINY,
        "modules.json": modules,
        "sentence_bert_config.json": {"max_seq_length": 48},
        "1_Pooling/config.json": {"pooling_mode_mean_tokens": True},
    }.items():
        (folder / name).write_text(json.dumps(content))
    save_file(tiny_weights(), folder / "model.safetensors")
    return folder


MODULES = ("Transformer", "Pooling", "Normalize")


@pytest.mark.real
@pytest.mark.parametrize(("which", "least"), [("bundled", 0.995), ("onnx", 0.9999)])
async def test_our_runtimes_agree_with_sentence_transformers(
    published, torch_embedder, which, least
):
    """Own tokenizer, graph and batching give the vectors of the library, short texts and long."""
    texts = [*TEXTS, "", "word " * 600, "日本語 \u202e é", "x" * 3_000]
    ours = await OnnxEmbedder.open(
        bundled_model if which == "bundled" else lambda: local_model(published)
    )
    ours_said, theirs_said = [
        await each.embed(texts, "document") for each in (ours, torch_embedder)
    ]
    cosines = np.einsum("ij,ij->i", ours_said, theirs_said)
    assert cosines.min() > least
    assert cosines.mean() > 0.999
    assert (ours.fingerprint == torch_embedder.fingerprint) == (which == "onnx")
    await ours.close()


def test_the_small_graph_is_the_one_of_the_package():
    """Sums in blocks of eight bits move a vector by a cosine of 0.0002; memory falls by 70 MiB."""
    batches = [*TEXTS, "", "日本語 \u202e é"], ["word " * 600]  # all are as wide as the longest
    files = replace(bundled_model(), graph=bundled_graph().read_bytes())
    models = OnnxModel(bundled_model(), threads=1), OnnxModel(files, threads=1)
    packed, unpacked = (np.concatenate([*map(each.encode_texts, batches)]) for each in models)
    cosines = np.einsum("ij,ij->i", packed, unpacked)
    assert cosines.mean() > 0.9997
    assert cosines.min() > 0.998  # of the empty text; of others 0.9996


def test_serving_imports_no_torch_and_no_fitting_library():
    """A process that cannot import them opens the model and embeds."""
    found = subprocess.run(
        [sys.executable, "-c", SERVE], capture_output=True, text=True, check=False
    )
    assert found.stderr == ""
    assert found.stdout.strip() == "(1, 384)"


@pytest.mark.parametrize("which", ["graph", "tokenizer"])
def test_a_changed_file_is_refused(tmp_path, which):
    """Damage on the disk, or another model put in its place, is an error that names the cure."""
    changed = tmp_path / "changed"
    shutil.copy(bundled_graph() if which == "graph" else BUNDLED_TOKENIZER, changed)
    with changed.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"#")
    with pytest.raises(EmbeddingError, match=r"pip install --force-reinstall"):
        bundled_model(**{which: changed})
    with pytest.raises(EmbeddingError, match="cannot read"):
        bundled_model(**{which: tmp_path / "missing"})


BY_HAND = {
    "one": [0.1214, -0.2404, 0.449, -0.2642, 0.0451, -0.0267, -0.0447, -0.043],
    "two words": [0.1293, -0.2455, 0.4476, -0.2645, 0.0458, -0.0284, -0.0389, -0.0533],
}
"""The beginnings of their vectors by the tiny model, worked out in NumPy, layer for layer."""


async def test_a_bert_of_ones_own_is_served_as_its_layers_say(tiny_model):
    """`onnx:FOLDER` gives the vectors that the layers give when they are computed by hand."""
    embedder = await open_embedder(f"onnx:{tiny_model}")
    vectors = await embedder.embed(list(BY_HAND), "document")
    await embedder.close()
    assert embedder.fingerprint.startswith("tiny-bert@")
    np.testing.assert_allclose(vectors[:, :8], list(BY_HAND.values()), atol=1.5e-4)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}, "does not pool by the mean"),
        ("modules.json", [{"type": "x.Transformer"}, {"type": "x.Dense"}], "layers"),
        ("config.json", TINY | {"hidden_act": "relu"}, "no plain BERT"),
        ("sentence_bert_config.json", {}, "max_seq_length"),
    ],
)
async def test_another_kind_of_model_is_refused(tiny_model, tmp_path, file, content, said):
    """What would be left out makes another model; the error names the way that works."""
    folder = tmp_path / "other"
    shutil.copytree(tiny_model, folder)
    (folder / file).write_text(json.dumps(content))
    with pytest.raises(EmbeddingError, match=rf"{said}.*'st:"):
        await open_embedder(f"onnx:{folder}")


def test_the_runtime_reports_nothing_to_its_maker(tmp_path: Path) -> None:
    """Its own telemetry would leave an identity and a queue in the user's cache."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("ORT_")}
    subprocess.run(
        [sys.executable, "-c", "import embeddings.embedders"],
        env=environ | dict.fromkeys(("HOME", "XDG_CACHE_HOME"), str(tmp_path)),
        cwd=ROOT, check=True, timeout=60,
    )  # fmt: skip
    assert list(tmp_path.rglob("*")) == []
