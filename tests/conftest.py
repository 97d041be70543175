"""What every test starts from."""

import random

import pytest

SEED = 20170612


@pytest.fixture(scope="session", autouse=True)
def fixed_seed_of_the_session():
    """Seeds Keras and its backend.

    Once, since TensorFlow forgets its compiled kernels when it is seeded.
    """
    import keras

    keras.utils.set_random_seed(SEED)


@pytest.fixture(autouse=True)
def fixed_seed():
    """Seeds Python, which Keras draws its seeds from, and NumPy.

    So a failure can be repeated.
    """
    import numpy as np

    random.seed(SEED)
    np.random.seed(SEED)
