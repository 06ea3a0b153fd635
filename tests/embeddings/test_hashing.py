"""The embedder without a model."""

import numpy as np

from embeddings.embedders import hashed_vector


def test_vectors_are_the_same_on_every_machine():
    """The hash is fixed, not Python's salted one: stored vectors stay valid."""
    expected = [0.1055, -0.1055, 0.3517, 0.1055, 0.3517, -0.7587, -0.1407, -0.3517]
    np.testing.assert_allclose(hashed_vector("topK", 8), expected, atol=1e-4)


def test_case_and_convention_do_not_matter():
    """`topK`, `TopK` and `top_k` are one name."""
    assert hashed_vector("TopK", 384) @ hashed_vector("top_k", 384) > 0.999


def test_a_shared_part_of_a_word_brings_texts_nearer():
    """n-grams see `parameter` in `parameters`."""
    word = hashed_vector("parameters", 384)
    assert word @ hashed_vector("parameter", 384) > word @ hashed_vector("revision", 384) + 0.3
