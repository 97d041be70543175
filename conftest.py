"""Names that the examples in docstrings use without importing them."""

import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.fixture(autouse=True)
def names_in_examples(doctest_namespace):
    import keras
    import numpy as np

    doctest_namespace.update(keras=keras, np=np, ops=keras.ops)
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        doctest_namespace.update(tf=tf)
