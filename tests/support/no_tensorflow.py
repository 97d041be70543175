"""A pytest plugin under which TensorFlow seems not to be installed.

`python -m pytest -p tests.support.no_tensorflow`; scripts import it first.
"""

import sys
from importlib.abc import MetaPathFinder

FORBIDDEN = ("tensorflow", "tensorflow_text", "keras_hub", "keras_nlp")


class _Refusal(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in FORBIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, _Refusal())
