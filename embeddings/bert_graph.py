"""A BERT as an ONNX graph that ONNX Runtime keeps as small as its weights: written here, no torch.

The graph maps `input_ids` and `attention_mask`, int64 of shape (texts, tokens), to
`last_hidden_state`, float32 of shape (texts, tokens, dimension). Source of the layers: Devlin et
al., "BERT" (2019), as `transformers` computes them: absolute positions, GELU by the error function,
normalisation after each sum.

The weights come from a folder of sentence-transformers, or from the package of the bundled model.
Its own graph unpacks all weights to 32 bits before the first text; this one leaves them at eight,
multiplies by blocks (`MatMulNBits`), and unpacks of the words only those of the text.

An ONNX file is a protobuf message of few kinds of fields, which is written and read at the end.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aftercall.explain import how_to_install
from embeddings.protocol import EmbeddingError

OPSET = 20
"""The first with Gelu."""
IR_VERSION = 10
WEIGHTS_FILE = "model.safetensors"
BLOCK = 32
"""Inputs of a sum in eight bits that share a scale; twice as many cost twice the precision."""
_INTEGERS = 4
"""`accuracy_level`: what is multiplied is rounded to eight bits, a scale a block. With floats
(level 1) the cosine is 1.0000 instead of 0.9998, and one short text takes twice as long."""
_PARTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
"""A layer's matrices in the order in which they are needed."""
_PREFIX = "inner."
"""Of the names in the package's graph."""
_MINILM = {"hidden_size": 384, "num_attention_heads": 12, "num_hidden_layers": 6}


@dataclass(frozen=True, slots=True)
class Packed:
    """Weights in eight bits: `codes`, int8 of shape (rows, columns), times `scale`, (rows, 1)."""

    codes: NDArray[np.int8]
    scale: NDArray[np.float32]


Weights = Mapping[str, "NDArray[Any] | Packed"]
"""By the names that `transformers` gives them; matrices of shape (out, in)."""


def folder_graph(folder: Path) -> bytes:
    """Return the graph of a BERT in a folder, about as large as its weights.

    An `EmbeddingError` where the folder holds no BERT, or the extra `model` is not installed.
    """
    try:
        from safetensors.numpy import load_file  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise EmbeddingError(
            f"the weights in {folder} are read with safetensors: "
            + how_to_install("model", of_service=True)
        ) from error
    config = read_model_file(folder / "config.json")
    kind = (config.get("model_type"), config.get("hidden_act"))
    if kind != ("bert", "gelu") or config.get("position_embedding_type") not in {None, "absolute"}:
        raise EmbeddingError(f"{folder} is no plain BERT ({kind}); use it as 'st:{folder}'")
    try:
        return _Bert(config, load_file(folder / WEIGHTS_FILE)).make_model()
    except (KeyError, OSError, ValueError) as error:
        raise EmbeddingError(f"the weights in {folder} are not those of a BERT: {error}") from error


def packed_graph(file: Path) -> bytes:
    """Return the graph of the bundled model, from the packed weights in the file of its package."""
    content = memoryview(np.memmap(file, np.uint8, "r").data)
    found = dict(_read_initializers(content))
    packed = {}
    for key, codes in found.items():
        name = key.removesuffix("_q")
        if name != key:
            packed[name] = Packed(codes, found[f"{name}_scale"])
    # Matrices have lost their names, not their order; they are of shape (in, out).
    matrices = (each for name, each in packed.items() if name.startswith("val_"))
    weights: dict[str, NDArray[Any] | Packed] = {}
    for layer in range(_MINILM["num_hidden_layers"]):
        for part in _PARTS:
            each = next(matrices)
            name = f"encoder.layer.{layer}.{part}.weight"
            weights[name] = Packed(each.codes.T, each.scale.reshape(-1, 1))
    plain: dict[str, NDArray[Any] | Packed] = {**found, **packed}
    for name, value in plain.items():
        weights.setdefault(name.removeprefix(_PREFIX), value)
    return _Bert(_MINILM, weights).make_model()


def read_model_file(path: Path) -> Any:
    """Return what a file of a model's folder states."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"no sentence-transformers model: {path}: {error}") from error


# ONNX in protobuf: https://onnx.ai/onnx/repo-docs/IR.html, and the numbers of fields in onnx.proto3

_TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int64": 7}
"""Of tensors' elements (`TensorProto.DataType`)."""


class _Graph:
    """Nodes and constants, in the order in which they are added."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[list[bytes]] = []

    def add(
        self, kind: str, *inputs: Any, name: str = "", domain: str = "", **attributes: Any
    ) -> str:
        """Return a node, and the name of its output; inputs are names, or arrays as constants."""
        output = name or f"node_{len(self._nodes)}"
        node = b""
        for each in inputs:
            given = each if isinstance(each, str) else self._add_constant(each)
            node += _field_bytes(1, given)
        node += _field_bytes(2, output) + _field_bytes(4, kind) + _field_bytes(7, domain)
        for attribute in attributes.items():
            node += _field_bytes(5, _attribute_bytes(*attribute))
        self._nodes.append(node)
        return output

    def write_model(self, width: int) -> bytes:
        """Return the file's content, of a graph whose output is of shape (texts, tokens, width)."""
        tokens = ["texts", "tokens"]
        graph = [_field_bytes(1, each) for each in self._nodes]
        graph.append(_field_bytes(2, "bert"))
        graph.extend(chain.from_iterable(self._constants))
        graph += [_field_bytes(11, _value_bytes(name, "int64", tokens)) for name in _GIVEN]
        graph += [_field_bytes(12, _value_bytes("last_hidden_state", "float32", [*tokens, width]))]
        opsets = ((OPSET, ""), (1, "com.microsoft"))
        needs = b""
        for version, name in opsets:
            needs += _field_bytes(8, _field_bytes(1, name) + _field_bytes(2, version))
        # The weights are joined once: 23 MB, and each time that they are copied takes 15 ms.
        return b"".join((_field_bytes(1, IR_VERSION), needs, *_nested_bytes(7, graph)))

    def _add_constant(self, array: NDArray[Any]) -> str:
        if array.dtype.kind == "f":
            array = array.astype(np.float32)
        name = f"constant_{len(self._constants)}"
        dims = [_field_bytes(1, each) for each in array.shape]
        of = [
            _field_bytes(2, _TYPES[array.dtype.name]),
            _field_bytes(8, name),
            *_nested_bytes(9, [array.tobytes()]),
        ]
        self._constants.append(_nested_bytes(5, dims + of))
        return name


class _Bert(_Graph):
    """A BERT's layers, from its configuration and weights."""

    def __init__(self, config: Mapping[str, Any], weights: Weights) -> None:
        super().__init__()
        self._config = config
        self._weights = weights
        self._width = int(config["hidden_size"])
        self._heads = int(config["num_attention_heads"])
        self._head_width = self._width // self._heads

    def make_model(self) -> bytes:
        """Return the file's content."""
        add = self.add
        shape = add("Shape", "input_ids")
        length = add("Slice", shape, np.array([1]), np.array([2]))
        positions = self._plain_weights("embeddings.position_embeddings.weight")
        places = add("Slice", positions, np.array([0]), length)
        words = self._word_vectors("embeddings.word_embeddings.weight")
        placed = add("Add", words, places)
        kind = self._plain_weights("embeddings.token_type_embeddings.weight")[0]
        hidden = self._add_norm("embeddings.LayerNorm", placed, kind)
        # 0 for tokens, a large negative number for padding, of shape (texts, 1, 1, tokens).
        mask = add("Cast", "attention_mask", to=_TYPES["float32"])
        mask = add("Unsqueeze", mask, np.array([1, 2]))
        masked = add("Sub", np.array(1.0), mask)
        bias = add("Mul", masked, np.array(-1e9))
        for number in range(int(self._config["num_hidden_layers"])):
            hidden = self._add_layer(f"encoder.layer.{number}", hidden, bias)
        add("Identity", hidden, name="last_hidden_state")
        return self.write_model(self._width)

    def _plain_weights(self, name: str) -> NDArray[Any]:
        found = self._weights[name]
        if isinstance(found, Packed):
            return found.codes * found.scale
        return found

    def _word_vectors(self, name: str) -> str:
        found = self._weights[name]
        if not isinstance(found, Packed):
            return self.add("Gather", found, "input_ids")
        codes = self.add("Gather", found.codes, "input_ids")
        codes = self.add("Cast", codes, to=_TYPES["float32"])
        scale = self.add("Gather", found.scale, "input_ids")
        return self.add("Mul", codes, scale)

    def _add_dense(self, name: str, given: str) -> str:
        found = self._weights[f"{name}.weight"]
        bias = self._plain_weights(f"{name}.bias")
        if not isinstance(found, Packed):
            return self.add("Add", self.add("MatMul", given, found.T), bias)
        rows, columns = found.codes.shape
        blocks = (rows, columns // BLOCK, BLOCK)
        codes = (found.codes.view(np.uint8) ^ 128).reshape(blocks)  # by 128 more, from 0 on
        scales = np.broadcast_to(found.scale, blocks[:2])
        product = self.add(
            "MatMulNBits",
            given,
            codes,
            scales,
            domain="com.microsoft",
            K=columns,
            N=rows,
            bits=8,
            block_size=BLOCK,
            accuracy_level=_INTEGERS,
        )
        return self.add("Add", product, bias)

    def _add_norm(self, name: str, *added: Any) -> str:
        scale = self._plain_weights(f"{name}.weight")
        shift = self._plain_weights(f"{name}.bias")
        epsilon = float(self._config.get("layer_norm_eps", 1e-12))
        total = self.add("Add", *added)
        return self.add("LayerNormalization", total, scale, shift, epsilon=epsilon)

    def _by_head(self, given: str) -> str:
        shape = np.array([0, 0, self._heads, self._head_width])
        parts = self.add("Reshape", given, shape)
        return self.add("Transpose", parts, perm=[0, 2, 1, 3])

    def _add_layer(self, name: str, hidden: str, bias: str) -> str:
        add = self.add
        add_dense = self._add_dense
        add_norm = self._add_norm
        of_query, of_key, of_value, of_output, of_inner, of_outer = _PARTS
        query = self._by_head(add_dense(f"{name}.{of_query}", hidden))
        key = self._by_head(add_dense(f"{name}.{of_key}", hidden))
        value = self._by_head(add_dense(f"{name}.{of_value}", hidden))
        turned = add("Transpose", key, perm=[0, 1, 3, 2])
        nearness = add("MatMul", query, turned)
        scale = np.array(self._head_width**-0.5)
        scores = add("Mul", nearness, scale)
        masked = add("Add", scores, bias)
        shares = add("Softmax", masked, axis=-1)
        mixed = add("MatMul", shares, value)
        mixed = add("Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = add("Reshape", mixed, np.array([0, 0, self._width]))
        joined = add_dense(f"{name}.{of_output}", mixed)
        attended = add_norm(f"{name}.attention.output.LayerNorm", joined, hidden)
        inner = add_dense(f"{name}.{of_inner}", attended)
        inner = add("Gelu", inner)
        outer = add_dense(f"{name}.{of_outer}", inner)
        return add_norm(f"{name}.output.LayerNorm", outer, attended)


_GIVEN = ("input_ids", "attention_mask")


def _value_bytes(name: str, kind: str, shape: Sequence[str | int]) -> bytes:
    dims = b"".join(
        _field_bytes(1, _field_bytes(2 if isinstance(each, str) else 1, each)) for each in shape
    )
    return _field_bytes(1, name) + _field_bytes(
        2, _field_bytes(1, _field_bytes(1, _TYPES[kind]) + _field_bytes(2, dims))
    )


def _attribute_bytes(name: str, value: float | list[int]) -> bytes:
    number, kind = {float: (2, 1), int: (3, 2), list: (8, 7)}[type(value)]
    values = value if isinstance(value, list) else [value]
    return (
        _field_bytes(1, name)
        + b"".join(_field_bytes(number, each) for each in values)
        + _field_bytes(20, kind)
    )


def _field_bytes(number: int, value: float | str | bytes) -> bytes:
    """Return a field of a message: a number, a text, or what a message of its own comes to."""
    if isinstance(value, int):
        return _varint_bytes(number << 3) + _varint_bytes(value % 2**64)
    if isinstance(value, float):
        return _varint_bytes(number << 3 | 5) + struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return b"".join(_nested_bytes(number, [content]))


def _nested_bytes(number: int, parts: list[bytes]) -> list[bytes]:
    """Return a field of what these parts come to, in parts."""
    length = sum(map(len, parts))
    return [_varint_bytes(number << 3 | 2), _varint_bytes(length), *parts]


def _varint_bytes(number: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last have the eighth."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _read_initializers(file: memoryview) -> Iterator[tuple[str, NDArray[Any]]]:
    kinds = {number: name for name, number in _TYPES.items()}
    graph = next(each for number, each in _read_fields(file) if number == 7)
    for number, tensor in _read_fields(graph):
        if number != 5:
            continue
        fields = list(_read_fields(tensor))
        of = dict(fields)
        shape = [each for number, each in fields if number == 1]
        kind = kinds.get(of[2])
        if kind is not None and 9 in of:
            values = np.frombuffer(of[9], kind)
            yield bytes(of[8]).decode(), values.reshape(shape)


def _read_fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message that are numbers or bytes, which are all that a graph has."""
    place = 0

    def read_varint() -> int:
        nonlocal place
        number = shift = 0
        while True:
            byte = message[place]
            place += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while place < len(message):
        key = read_varint()
        if key & 7 == 0:
            yield key >> 3, read_varint()
            continue
        length = {1: 8, 5: 4}.get(key & 7) or read_varint()
        place += length
        yield key >> 3, message[place - length : place]
