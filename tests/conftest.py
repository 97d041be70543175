"""What every test starts from."""

import pytest


@pytest.fixture(autouse=True)
def fixed_seed():
    """Seeds Python, NumPy and Keras, so that a failure can be repeated."""
    import keras

    keras.utils.set_random_seed(20170612)
