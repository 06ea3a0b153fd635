"""A BERT of a sentence-transformers folder as an ONNX graph, from its weights alone: no torch.

The graph maps `input_ids` and `attention_mask`, int64 of shape (texts, tokens), to
`last_hidden_state`, float32 of shape (texts, tokens, dimension). Source of the layers: Devlin et
al., "BERT" (2019), as `transformers` computes them: absolute positions, GELU by the error function,
normalisation after each sum. Needs the extra `model` (`onnx`, `safetensors`).
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from aftercall.explain import how_to_install
from embeddings.protocol import EmbeddingError

OPSET = 20
"""The first with Gelu."""
IR_VERSION = 10
WEIGHTS_FILE = "model.safetensors"


def bert_graph(folder: Path) -> bytes:
    """The serialised graph; about as large as the weights, made in under a second for 90 MB.

    Raises:
        EmbeddingError: when the folder holds no BERT, or the extra `model` is not installed.
    """
    try:
        import onnx  # noqa: F401, PLC0415 - of an extra
        from safetensors.numpy import load_file  # noqa: PLC0415 - as above
    except ImportError as error:
        raise EmbeddingError(
            f"a graph of {folder} is made with onnx and safetensors: "
            + how_to_install("model", of_service=True)
        ) from error
    config = read_json(folder / "config.json")
    kind = (config.get("model_type"), config.get("hidden_act"))
    if kind != ("bert", "gelu") or config.get("position_embedding_type") not in {None, "absolute"}:
        raise EmbeddingError(f"{folder} is no plain BERT ({kind}); use it as 'st:{folder}'")
    try:
        return _graph(config, load_file(folder / WEIGHTS_FILE))
    except (KeyError, OSError, ValueError) as error:
        raise EmbeddingError(f"the weights in {folder} are not those of a BERT: {error}") from error


def read_json(path: Path) -> Any:
    """What a file of a model's folder says."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"no sentence-transformers model: {path}: {error}") from error


def _graph(config: dict[str, Any], weights: dict[str, Any]) -> bytes:
    import onnx  # noqa: PLC0415 - of an extra
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 - as above

    width, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(value: Any) -> str:
        array = np.ascontiguousarray(value)
        if array.dtype.kind == "f":
            array = array.astype(np.float32)
        constants.append(numpy_helper.from_array(array, f"constant_{len(constants)}"))
        return f"constant_{len(constants) - 1}"

    def add(kind: str, *inputs: Any, name: str = "", **attributes: Any) -> str:
        """A node; of its inputs those that are no names are constants."""
        output = name or f"node_{len(nodes)}"
        names = [each if isinstance(each, str) else constant(each) for each in inputs]
        nodes.append(helper.make_node(kind, names, [output], **attributes))
        return output

    def dense(name: str, given: str) -> str:
        product = add("MatMul", given, weights[f"{name}.weight"].T)
        return add("Add", product, weights[f"{name}.bias"])

    def norm(name: str, *added: Any) -> str:
        scale, shift = weights[f"{name}.weight"], weights[f"{name}.bias"]
        epsilon = float(config["layer_norm_eps"])
        return add("LayerNormalization", add("Add", *added), scale, shift, epsilon=epsilon)

    def by_head(given: str) -> str:
        parts = add("Reshape", given, [0, 0, heads, width // heads])
        return add("Transpose", parts, perm=[0, 2, 1, 3])

    def layer(name: str, hidden: str, bias: str) -> str:
        query, key, value = (
            by_head(dense(f"{name}.attention.self.{part}", hidden))
            for part in ("query", "key", "value")
        )
        nearness = add("MatMul", query, add("Transpose", key, perm=[0, 1, 3, 2]))
        scores = add("Mul", nearness, (width // heads) ** -0.5)
        shares = add("Softmax", add("Add", scores, bias), axis=-1)
        mixed = add("Transpose", add("MatMul", shares, value), perm=[0, 2, 1, 3])
        joined = dense(f"{name}.attention.output.dense", add("Reshape", mixed, [0, 0, width]))
        attended = norm(f"{name}.attention.output.LayerNorm", joined, hidden)
        inner = add("Gelu", dense(f"{name}.intermediate.dense", attended))
        return norm(f"{name}.output.LayerNorm", dense(f"{name}.output.dense", inner), attended)

    words, places, kinds = (
        weights[f"embeddings.{each}_embeddings.weight"]
        for each in ("word", "position", "token_type")
    )
    length = add("Slice", add("Shape", "input_ids"), [1], [2])
    placed = add("Add", add("Gather", words, "input_ids"), add("Slice", places, [0], length))
    hidden = norm("embeddings.LayerNorm", placed, kinds[0])
    # 0 for tokens, a large negative number for padding, of shape (texts, 1, 1, tokens).
    mask = add("Unsqueeze", add("Cast", "attention_mask", to=TensorProto.FLOAT), [1, 2])
    bias = add("Mul", add("Sub", 1.0, mask), -1e9)
    for number in range(int(config["num_hidden_layers"])):
        hidden = layer(f"encoder.layer.{number}", hidden, bias)
    add("Identity", hidden, name="last_hidden_state")
    tokens = ["texts", "tokens"]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "bert",
        [info(name, TensorProto.INT64, tokens) for name in ("input_ids", "attention_mask")],
        [info("last_hidden_state", TensorProto.FLOAT, [*tokens, width])],
        constants,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())
