"""`keras-transformer train` in a process that may be killed."""

import contextlib
import os

import keras

from keras_transformer import cli


def train(arguments, log):
    """Runs the command without XLA, which takes long to compile."""
    compile_ = keras.Model.compile

    def without_xla(*given, **options):
        compile_(*given, **{**options, "jit_compile": False})

    keras.Model.compile = without_xla
    with open(log, "a") as stream, contextlib.redirect_stdout(stream):
        os.dup2(stream.fileno(), 2)
        code = cli.main(["train", *arguments])
    if code:
        raise SystemExit(code)
