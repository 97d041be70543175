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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Lets workers side by side take file after file.

    The tests of the exports stay together, since they share the exports.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            folder, _, name = file.rpartition("/")
            together, found, _ = f"{folder}/".partition("/exporting/")
            alone = name == "test_every_option.py"
            return together + found if found and not alone else file

    return Scheduling(config, log)
