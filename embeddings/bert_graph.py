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

OPSET = 17
"""The first with LayerNormalization."""
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
        return _Graph(config, load_file(folder / WEIGHTS_FILE)).serialised()
    except (KeyError, OSError, ValueError) as error:
        raise EmbeddingError(f"the weights in {folder} are not those of a BERT: {error}") from error


def read_json(path: Path) -> Any:
    """What a file of a model's folder says."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"no sentence-transformers model: {path}: {error}") from error


class _Graph:
    """Nodes and weights, added in the order in which they are computed."""

    def __init__(self, config: dict[str, Any], weights: dict[str, Any]) -> None:
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self._epsilon = float(config["layer_norm_eps"])
        self._heads = int(config["num_attention_heads"])
        self._width = int(config["hidden_size"])
        hidden = self._embeddings()
        bias = self._mask_bias()
        for layer in range(int(config["num_hidden_layers"])):
            hidden = self._layer(f"encoder.layer.{layer}", hidden, bias)
        self._add("Identity", [hidden], name="last_hidden_state")

    def serialised(self) -> bytes:
        import onnx  # noqa: PLC0415 - of an extra
        from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415 - as above

        tokens = ["texts", "tokens"]
        graph = helper.make_graph(
            self._nodes,
            "bert",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, tokens)
                for name in ("input_ids", "attention_mask")
            ],
            [
                helper.make_tensor_value_info(
                    "last_hidden_state", TensorProto.FLOAT, [*tokens, self._width]
                )
            ],
            [numpy_helper.from_array(value, name) for name, value in self._constants.items()],
        )
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString())

    def _add(self, kind: str, inputs: list[str], *, name: str = "", **attributes: Any) -> str:
        from onnx import helper  # noqa: PLC0415 - of an extra

        output = name or f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def _constant(self, value: Any, name: str = "") -> str:
        name = name or f"constant_{len(self._constants)}"
        self._constants[name] = np.ascontiguousarray(value)
        return name

    def _weight(self, name: str) -> str:
        return self._constant(self._weights[name].astype(np.float32), name)

    def _embeddings(self) -> str:
        zero, one = self._constant(np.array([0])), self._constant(np.array([1]))
        length = self._add("Slice", [self._add("Shape", ["input_ids"]), one, self._constant([2])])
        positions = self._add(
            "Slice", [self._weight("embeddings.position_embeddings.weight"), zero, length]
        )
        kind = self._weights["embeddings.token_type_embeddings.weight"][0].astype(np.float32)
        words = self._add(
            "Gather", [self._weight("embeddings.word_embeddings.weight"), "input_ids"]
        )
        placed = self._add("Add", [words, positions])
        return self._norm(self._add("Add", [placed, self._constant(kind)]), "embeddings.LayerNorm")

    def _mask_bias(self) -> str:
        """0 for tokens, a large negative number for padding, of shape (texts, 1, 1, tokens)."""
        mask = self._add("Cast", ["attention_mask"], to=1)
        wide = self._add("Unsqueeze", [mask, self._constant(np.array([1, 2]))])
        missing = self._add("Sub", [self._constant(np.float32(1)), wide])
        return self._add("Mul", [missing, self._constant(np.float32(-1e9))])

    def _layer(self, name: str, hidden: str, bias: str) -> str:
        query, key, value = (
            self._split(self._dense(f"{name}.attention.self.{part}", hidden))
            for part in ("query", "key", "value")
        )
        turned = self._add("Transpose", [key], perm=[0, 1, 3, 2])
        scale = np.float32((self._width // self._heads) ** -0.5)
        scores = self._add("Mul", [self._add("MatMul", [query, turned]), self._constant(scale)])
        weights = self._add("Softmax", [self._add("Add", [scores, bias])], axis=-1)
        mixed = self._add("Transpose", [self._add("MatMul", [weights, value])], perm=[0, 2, 1, 3])
        joined = self._add("Reshape", [mixed, self._constant(np.array([0, 0, self._width]))])
        attended = self._residual(f"{name}.attention.output", joined, hidden)
        inner = self._gelu(self._dense(f"{name}.intermediate.dense", attended))
        return self._residual(f"{name}.output", inner, attended)

    def _residual(self, name: str, inner: str, outer: str) -> str:
        total = self._add("Add", [self._dense(f"{name}.dense", inner), outer])
        return self._norm(total, f"{name}.LayerNorm")

    def _dense(self, name: str, inputs: str) -> str:
        matrix = self._weights[f"{name}.weight"].astype(np.float32).T
        product = self._add("MatMul", [inputs, self._constant(matrix, f"{name}.weight")])
        return self._add("Add", [product, self._weight(f"{name}.bias")])

    def _split(self, hidden: str) -> str:
        shape = self._constant(np.array([0, 0, self._heads, self._width // self._heads]))
        return self._add("Transpose", [self._add("Reshape", [hidden, shape])], perm=[0, 2, 1, 3])

    def _gelu(self, hidden: str) -> str:
        scaled = self._add("Div", [hidden, self._constant(np.float32(2**0.5))])
        risen = self._add("Add", [self._add("Erf", [scaled]), self._constant(np.float32(1))])
        product = self._add("Mul", [hidden, risen])
        return self._add("Mul", [product, self._constant(np.float32(0.5))])

    def _norm(self, hidden: str, name: str) -> str:
        scale, shift = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._add(
            "LayerNormalization", [hidden, scale, shift], axis=-1, epsilon=self._epsilon
        )
