"""What is imported by the tests that need it."""

import importlib
from typing import Any

import pytest


@pytest.fixture(scope="session")
def fitting() -> Any:
    """The module that fits what is shipped; scikit-learn takes a second."""
    return importlib.import_module("bench.quality.fitting")
