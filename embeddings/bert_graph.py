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
        return _make_bert(config, load_file(folder / WEIGHTS_FILE))
    except (KeyError, OSError, ValueError) as error:
        raise EmbeddingError(f"the weights in {folder} are not those of a BERT: {error}") from error


def packed_graph(file: Path) -> bytes:
    """Return the graph of the bundled model, from the packed weights in the file of its package."""
    found = dict(_read_initializers(memoryview(np.memmap(file, np.uint8, "r").data)))
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
    return _make_bert(_MINILM, weights)


def read_model_file(path: Path) -> Any:
    """Return what a file of a model's folder states."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise EmbeddingError(f"no sentence-transformers model: {path}: {error}") from error


def _make_bert(config: Mapping[str, Any], weights: Weights) -> bytes:
    width = int(config["hidden_size"])
    heads = int(config["num_attention_heads"])
    graph = _Graph()
    add = graph.add

    def plain_weights(name: str) -> NDArray[Any]:
        found = weights[name]
        if isinstance(found, Packed):
            return found.codes * found.scale
        return found

    def word_vectors(name: str) -> str:
        found = weights[name]
        if not isinstance(found, Packed):
            return add("Gather", found, "input_ids")
        codes = add("Gather", found.codes, "input_ids")
        codes = add("Cast", codes, to=_TYPES["float32"])
        scale = add("Gather", found.scale, "input_ids")
        return add("Mul", codes, scale)

    def add_dense(name: str, given: str) -> str:
        found = weights[f"{name}.weight"]
        bias = plain_weights(f"{name}.bias")
        if not isinstance(found, Packed):
            return add("Add", add("MatMul", given, found.T), bias)
        rows, columns = found.codes.shape
        blocks = (rows, columns // BLOCK, BLOCK)
        codes = (found.codes.view(np.uint8) ^ 128).reshape(blocks)  # by 128 more, from 0 on
        scales = np.broadcast_to(found.scale, blocks[:2])
        product = add(
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
        return add("Add", product, bias)

    def add_norm(name: str, *added: Any) -> str:
        scale = plain_weights(f"{name}.weight")
        shift = plain_weights(f"{name}.bias")
        epsilon = float(config.get("layer_norm_eps", 1e-12))
        return add("LayerNormalization", add("Add", *added), scale, shift, epsilon=epsilon)

    def by_head(given: str) -> str:
        parts = add("Reshape", given, np.array([0, 0, heads, width // heads]))
        return add("Transpose", parts, perm=[0, 2, 1, 3])

    def add_layer(name: str, hidden: str, bias: str) -> str:
        query, key, value = (by_head(add_dense(f"{name}.{part}", hidden)) for part in _PARTS[:3])
        nearness = add("MatMul", query, add("Transpose", key, perm=[0, 1, 3, 2]))
        scores = add("Mul", nearness, np.array((width // heads) ** -0.5))
        shares = add("Softmax", add("Add", scores, bias), axis=-1)
        mixed = add("Transpose", add("MatMul", shares, value), perm=[0, 2, 1, 3])
        mixed = add("Reshape", mixed, np.array([0, 0, width]))
        joined = add_dense(f"{name}.{_PARTS[3]}", mixed)
        attended = add_norm(f"{name}.attention.output.LayerNorm", joined, hidden)
        inner = add("Gelu", add_dense(f"{name}.{_PARTS[4]}", attended))
        outer = add_dense(f"{name}.{_PARTS[5]}", inner)
        return add_norm(f"{name}.output.LayerNorm", outer, attended)

    length = add("Slice", add("Shape", "input_ids"), np.array([1]), np.array([2]))
    positions = plain_weights("embeddings.position_embeddings.weight")
    places = add("Slice", positions, np.array([0]), length)
    placed = add("Add", word_vectors("embeddings.word_embeddings.weight"), places)
    kind = plain_weights("embeddings.token_type_embeddings.weight")[0]
    hidden = add_norm("embeddings.LayerNorm", placed, kind)
    # 0 for tokens, a large negative number for padding, of shape (texts, 1, 1, tokens).
    mask = add("Cast", "attention_mask", to=_TYPES["float32"])
    masked = add("Sub", np.array(1.0), add("Unsqueeze", mask, np.array([1, 2])))
    bias = add("Mul", masked, np.array(-1e9))
    for number in range(int(config["num_hidden_layers"])):
        hidden = add_layer(f"encoder.layer.{number}", hidden, bias)
    add("Identity", hidden, name="last_hidden_state")
    return graph.write_model(width)


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
        names = [each if isinstance(each, str) else self._add_constant(each) for each in inputs]
        node = [_field_bytes(1, each) for each in names]
        node += [_field_bytes(2, output), _field_bytes(4, kind), _field_bytes(7, domain)]
        node += [_field_bytes(5, _attribute_bytes(*each)) for each in attributes.items()]
        self._nodes.append(b"".join(node))
        return output

    def write_model(self, width: int) -> bytes:
        """Return the file's content, of a graph whose output is of shape (texts, tokens, width)."""
        tokens = ["texts", "tokens"]
        graph = [_field_bytes(1, each) for each in self._nodes]
        graph += [_field_bytes(2, "bert"), *(part for each in self._constants for part in each)]
        graph += [_field_bytes(11, _value_bytes(name, "int64", tokens)) for name in _GIVEN]
        graph += [_field_bytes(12, _value_bytes("last_hidden_state", "float32", [*tokens, width]))]
        opsets = ((OPSET, ""), (1, "com.microsoft"))
        needs = b"".join(
            _field_bytes(8, _field_bytes(1, name) + _field_bytes(2, each)) for each, name in opsets
        )
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
    return b"".join(_nested_bytes(number, [value.encode() if isinstance(value, str) else value]))


def _nested_bytes(number: int, parts: list[bytes]) -> list[bytes]:
    """Return a field of what these parts come to, in parts."""
    return [_varint_bytes(number << 3 | 2), _varint_bytes(sum(map(len, parts))), *parts]


def _varint_bytes(number: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last have the eighth."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _read_initializers(file: memoryview) -> Iterator[tuple[str, NDArray[Any]]]:
    kinds = {number: name for name, number in _TYPES.items()}
    for number, tensor in _read_fields(
        next(each for number, each in _read_fields(file) if number == 7)
    ):
        if number != 5:
            continue
        fields = list(_read_fields(tensor))
        of = dict(fields)
        shape = [each for number, each in fields if number == 1]
        if of[2] in kinds and 9 in of:
            yield bytes(of[8]).decode(), np.frombuffer(of[9], kinds[of[2]]).reshape(shape)


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
