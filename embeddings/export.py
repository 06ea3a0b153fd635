"""Export a model to ONNX, once: `python -m embeddings.export MODEL_DIR TARGET --name NAME`.

Runs in a process of its own, so that the one that serves never imports torch. MODEL_DIR is a
sentence-transformers folder of a BERT-like model with mean pooling; TARGET is the folder to make
(see `embeddings.models`). Two processes that export the same target wait for one another.
"""

import argparse
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from embeddings.embedders import INPUT_NAMES, OUTPUT_NAME, OnnxModel
from embeddings.models import (
    ONNX_FILE,
    OPTIONAL_PACKAGES,
    RECORD_FILE,
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    ModelRecord,
    load_record,
    sha256,
)
from embeddings.protocol import EmbeddingError, Vectors

MIN_COSINE = 0.9999
"""Between the export and torch, for every check text; fp32 on both sides gives 0.9999998."""
CHECK_BATCHES: tuple[tuple[str, ...], ...] = (
    ("Invalid parameter: topK must be <= 10",),
    ("", "a", "Unknown timezone 'Europe/Zurch'. Did you mean 'Europe/Zurich'?"),
    (
        "HTTP 429 Too Many Requests: retry after 30 seconds",
        "git_show(revision='HEAD~~99') failed: fatal: ambiguous argument, unknown revision",
        "parameters: {'repo_path': '/srv/notes', 'max_count': 'ten'} " * 40,
    ),
)
"""Batches of one and of several, from an empty text to one beyond the window."""


def export_model(model_dir: Path, target: Path, *, name: str) -> None:
    """Make the folder `target`; does nothing when it is there already."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.with_name(f".{target.name}.lock")):
        if target.exists():
            load_record(target)  # somebody else was first; damaged files are reported, not hidden
            return
        work = target.with_name(f".{target.name}.part")
        shutil.rmtree(work, ignore_errors=True)  # of an export that was killed
        work.mkdir()
        try:
            _export(model_dir, work, name=name)
            work.rename(target)
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _export(model_dir: Path, work: Path, *, name: str) -> None:
    max_length = _max_length(model_dir)
    _require_plain_layers(model_dir)
    network, dimension = _torch_network(model_dir)
    _write_onnx(network, work / ONNX_FILE)
    shutil.copyfile(model_dir / TOKENIZER_FILE, work / TOKENIZER_FILE)
    record = ModelRecord(
        name=name,
        dimension=dimension,
        max_length=max_length,
        weights_sha256=sha256(model_dir / WEIGHTS_FILE),
        onnx_sha256=sha256(work / ONNX_FILE),
        tokenizer_sha256=sha256(work / TOKENIZER_FILE),
        exported_with={package: version(package) for package in OPTIONAL_PACKAGES},
        verified_cosine=0.0,
    )
    _write_record(work, record)
    cosine = _verify(network, model_dir, OnnxModel(work, threads=2))
    _write_record(work, record.model_copy(update={"verified_cosine": cosine}))


def _torch_network(model_dir: Path) -> tuple[Any, int]:
    import torch  # noqa: PLC0415 - this module's constants are read where torch is not installed
    from transformers import AutoModel  # noqa: PLC0415 - as above

    class UnitVectors(torch.nn.Module):  # type: ignore[misc]  # torch is untyped to mypy here
        def __init__(self, model: Any) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            hidden = self.model(input_ids=input_ids, attention_mask=attention_mask)[0]
            mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
            mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(mean, dim=1)

    # The attention kernels of torch do not export; "eager" is plain matrix products.
    model = AutoModel.from_pretrained(model_dir, attn_implementation="eager")
    return UnitVectors(model).eval(), int(model.config.hidden_size)


def _write_onnx(network: Any, path: Path) -> None:
    import torch  # noqa: PLC0415 - see _torch_network

    ids = torch.randint(1_000, 2_000, (2, 8))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", min=2, max=512)}
    program = torch.onnx.export(
        network,
        (ids, mask),
        dynamo=True,
        dynamic_shapes=(axes, axes),
        input_names=list(INPUT_NAMES),
        output_names=[OUTPUT_NAME],
        verbose=False,
    )
    program.save(str(path), external_data=False)


def _verify(network: Any, model_dir: Path, model: OnnxModel) -> float:
    """Smallest cosine between the export and torch with the model's own tokenizer."""
    import torch  # noqa: PLC0415 - see _torch_network
    from transformers import AutoTokenizer  # noqa: PLC0415 - see _torch_network

    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    worst = 1.0
    for batch in CHECK_BATCHES:
        encoded = tokenizer(
            list(batch),
            padding=True,
            truncation=True,
            max_length=model.record.max_length,
            return_tensors="pt",
        )
        with torch.inference_mode():
            expected: Vectors = network(encoded["input_ids"], encoded["attention_mask"]).numpy()
        cosines = np.einsum("ij,ij->i", expected, model.encode(list(batch)))
        worst = min(worst, float(cosines.min()))
    if not worst >= MIN_COSINE:  # also refuses NaN
        raise EmbeddingError(
            f"the exported model does not agree with torch (cosine {worst:.6f}); "
            f"use it as 'st:{model_dir}', or install other versions of {OPTIONAL_PACKAGES}"
        )
    return worst


def _max_length(model_dir: Path) -> int:
    settings = _read_json(model_dir / "sentence_bert_config.json")
    value = settings.get("max_seq_length")
    if not isinstance(value, int):
        raise EmbeddingError(f"{model_dir} does not say its max_seq_length; use 'st:{model_dir}'")
    return value


def _require_plain_layers(model_dir: Path) -> None:
    """Refuse what this export would leave out: other pooling, further layers."""
    cure = f"use it as 'st:{model_dir}'"
    modules = _read_json(model_dir / "modules.json")
    kinds = [str(module.get("type")).rsplit(".", 1)[-1] for module in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise EmbeddingError(f"{model_dir} has the layers {kinds}, which are not exported; {cure}")
    pooling = _read_json(model_dir / "1_Pooling" / "config.json")
    modes = [key for key, value in pooling.items() if key.startswith("pooling_mode_") and value]
    if pooling.get("pooling_mode") != "mean" and modes != ["pooling_mode_mean_tokens"]:
        raise EmbeddingError(f"{model_dir} does not pool by the mean alone; {cure}")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"no sentence-transformers model: {path}: {error}") from error


def _write_record(folder: Path, record: ModelRecord) -> None:
    (folder / RECORD_FILE).write_text(record.model_dump_json(indent=2) + "\n")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: 0 when the target is there and verified, else 1 with the reason on stderr."""
    parser = argparse.ArgumentParser(prog="python -m embeddings.export", description=__doc__)
    parser.add_argument("model_dir", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--name", help="what to call the model; the target's name by default")
    options = parser.parse_args(arguments)
    # The model is local; without this transformers asks a hub about it.
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        export_model(options.model_dir, options.target, name=options.name or options.target.name)
    except (EmbeddingError, OSError, ImportError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
