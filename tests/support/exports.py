"""What the tests of the exports share: a model that talks, and comparisons."""

import functools

import keras
import numpy as np

from keras_transformer import (
    MaskedCrossEntropy,
    Tokenizer,
    Transformer,
    Translator,
)
from tests.support.decoding_runs import as_arrays, call

WORDS = "one two three four five six seven eight nine ten eleven".split()
STRANGE = [
    "",
    " \t ",
    "1",
    "</s>",
    "<s> one </s> two <pad>",
    "two\tthree  four\r\n",
    "süß 東京 \U0001f600",
    "\ufeffone\u2028two\u00a0three",
    "nul\0byte",
    "six " * 13,
]


def random_lines(count, seed, longest=6):
    generator = np.random.default_rng(seed)
    return [
        " ".join(generator.choice(WORDS, generator.integers(1, longest + 1)))
        for _ in range(count)
    ]


def sentences():
    """Gives 37 sentences: of the task, longer than it, and strange ones."""
    return [*random_lines(22, 1), *random_lines(5, 2, 17), *STRANGE]


def learn(lines, vocab_size):
    return Tokenizer.train_from_lines(lines, vocab_size)


def train(source_tokenizer, target_tokenizer=None, epochs=9, **options):
    """Trains a model for a moment to say the words in reverse.

    It gets most short lines right and the rest wrong, so that its outputs
    differ, end at different lengths, and sometimes do not end.
    """
    keras.utils.set_random_seed(7)
    model = Transformer(**options)
    translator = Translator(model, source_tokenizer, target_tokenizer)
    lines = random_lines(1500, 3)
    backwards = [" ".join(reversed(line.split())) for line in lines]
    targets = translator.target_tokenizer.tokenize(backwards)
    labels = translator.pad([[*ids, model.eos_id] for ids in targets])
    inputs = {
        "source_ids": translator.pad(translator.tokenize_source(lines)),
        "target_ids": np.pad(labels[:, :-1], ((0, 0), (1, 0)))
        + (np.arange(labels.shape[1]) == 0) * np.int32(model.bos_id),
    }
    model.compile(
        keras.optimizers.Adam(0.004, 0.9, 0.98, 1e-9), MaskedCrossEntropy()
    )
    model.fit(inputs, labels, batch_size=50, epochs=epochs, verbose=0)
    return model


def with_options(model, **changes):
    """Copies a model with other options and the same weights."""
    copy = Transformer.from_config({**model.get_config(), **changes})
    copy.set_weights(model.get_weights())
    return copy


def generate(translator, signature, source_ids, options):
    """Asks the Translator's own functions."""
    function = getattr(translator.generator, signature)
    return call(function, source_ids, **options)


def take(inputs, rows):
    """Takes some rows of inputs that have one for each sentence."""
    return {name: value[rows] for name, value in inputs.items()}


def rows_of(outputs, pad_id=0):
    """Gives each row as (ids, lengths, finished) and its scores.

    Padding beyond a length is checked and cut off, since it depends on the
    neighbours in the batch.
    """
    rows = []
    for i in range(len(outputs["lengths"])):
        lengths = np.atleast_1d(outputs["lengths"][i])
        slots = np.reshape(outputs["token_ids"][i], (len(lengths), -1))
        ids = []
        for slot, length in zip(slots, lengths, strict=True):
            assert (slot[length:] == pad_id).all()
            ids.append(slot[:length].tolist())
        finished = np.atleast_1d(outputs["finished"][i]).tolist()
        rows.append((ids, finished, np.atleast_1d(outputs["scores"][i])))
    return rows


def assert_same_rows(found, expected):
    """Compares ids and ends exactly, and scores to 1e-4.

    A penalty at the end of its range makes scores of millions, hence the
    relative part, which is too small to matter for others.
    """
    assert len(found) == len(expected)
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one[0] == other[0], f"ids of row {i}"
        assert one[1] == other[1], f"ends of row {i}"
        np.testing.assert_allclose(
            one[2],
            other[2],
            atol=1e-4,
            rtol=1e-5,
            err_msg=f"scores of row {i}",
        )


def assert_same_floats(found, expected):
    """Compares outputs of `score` or `align`, of which one may be wider.

    What lies beyond the narrower one must be padding: 0.
    """
    assert set(found) == set(expected)
    for name, value in expected.items():
        other = found[name]
        assert value.dtype == other.dtype == np.float32
        inner = tuple(map(slice, np.minimum(value.shape, other.shape)))
        for array in (value, other):
            assert np.count_nonzero(array) == np.count_nonzero(array[inner])
        np.testing.assert_allclose(
            other[inner], value[inner], atol=1e-4, err_msg=name
        )


def widen(source_ids, columns, pad_id=0):
    """Pads a batch more than it needs."""
    return np.pad(source_ids, ((0, 0), (0, columns)), constant_values=pad_id)


def onnx_runtime(folder):
    """Opens ONNX graphs; gives a function like `generate`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Threads that wait for such small products would take the time of others.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")

    @functools.cache
    def session(signature):
        return onnxruntime.InferenceSession(
            str(folder / f"{signature}.onnx"),
            options,
            providers=["CPUExecutionProvider"],
        )

    def ask(signature, source_ids, options):
        feed = as_arrays({"source_ids": source_ids, **options})
        names = [output.name for output in session(signature).get_outputs()]
        values = session(signature).run(names, feed)
        return dict(zip(names, values, strict=True))

    return ask


def saved_model_runtime(folder):
    """Loads a SavedModel; gives a function like `generate`.

    It calls the signature if every option is given, else the function, which
    knows the defaults.
    """
    import tensorflow as tf

    loaded = tf.saved_model.load(str(folder))

    def ask(signature, source_ids, options):
        function = loaded.signatures[signature]
        specs = function.structured_input_signature[1]
        if len(options) + 1 < len(specs):
            function = getattr(loaded, signature)
        inputs = as_arrays({"source_ids": source_ids, **options})
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        outputs = function(**tensors)
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    return ask
