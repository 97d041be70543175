"""What parts of decoding gain and cost: `python benchmarks/decode_self.py`.

This project beside itself, on a model with random weights:

- what it gains that done sentences leave the running batch, on 32 sentences
  of mixed length (3 to 40 tokens) and, where it can only cost, of equal length;
- what the options of decoding cost that are inputs of the graph but off.

Each output is as long as its source: eos is forbidden, and the length of the
source is the cap of its row. All graphs run in turn, in an order drawn anew
each time, so that whatever else the machine does hits them alike; `ratio` is
the median of the speed beside that of the baseline in the same turn. The last
line of output is JSON.
"""

import argparse
import json
import statistics
from unittest import mock

import keras
import numpy as np
import tensorflow as tf
from turns import timed

from keras_transformer import Transformer, beam_search
from keras_transformer.decoding import Constraints, loop
from keras_transformer.decoding.signatures import (
    SIGNATURES,
    Signature,
    as_function,
)
from keras_transformer.decoding.transformer_step import beam_step
from keras_transformer.exporting.onnx.convert import convert

VOCAB_SIZE = 8_000
SIZES = {"num_layers": 3, "d_model": 256, "num_heads": 4, "d_ff": 1024}
BATCH, BEAM = 32, 4
SHORTEST, LONGEST = 3, 40
# Those of beam search whose value off is their default.
OPTIONS = [
    argument
    for argument in SIGNATURES["beam"].inputs
    if argument.name
    in (
        "length_penalty_form",
        "coverage_penalty",
        "early_stopping",
        "no_repeat_ngram_size",
        "repetition_penalty",
        "target_prefix",
    )
]


def decoder(transformer, options=(), leave=True):
    """Makes a graph that decodes each source to its own length.

    Args:
        transformer: `Transformer`.
        options: `Argument`s of beam search that become inputs.
        leave: bool, whether done sentences leave the running batch.

    Returns:
        `tf.function` and its `Signature`.
    """

    def decode(source_ids, **given):
        not_pad = tf.cast(source_ids != transformer.pad_id, tf.int32)
        together = loop.LEAVE_TOGETHER if leave else 1
        constraints = Constraints(forbidden_ids=range(3))._replace(
            **{n: given.pop(n) for n in Constraints._fields if n in given}
        )
        with mock.patch.object(loop, "LEAVE_TOGETHER", together):
            return beam_search(
                *beam_step(transformer, source_ids, BEAM),
                tf.reduce_sum(not_pad, axis=1),
                beam_size=BEAM,
                constraints=constraints,
                **given,
            )._asdict()

    source_ids = SIGNATURES["beam"].inputs[0]
    signature = Signature((source_ids, *options), SIGNATURES["beam"].outputs)
    return as_function(decode, signature), signature


def sources(lengths):
    generator = np.random.default_rng(1)
    source_ids = np.zeros((len(lengths), max(lengths)), "int32")
    for row, length in zip(source_ids, lengths, strict=True):
        row[:length] = generator.integers(4, VOCAB_SIZE, length)
    return source_ids


def in_onnx_runtime(function, signature, variables):
    import onnxruntime

    model = convert(function, signature, variables)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Threads that wait busily for more work would slow who comes next.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        model.SerializeToString(),
        options,
        ["CPUExecutionProvider"],
    )
    return lambda source_ids: session.run(
        ["lengths"], {"source_ids": source_ids}
    )[0]


def in_tensorflow(function, signature, variables):
    del signature, variables
    return lambda source_ids: function(source_ids)["lengths"].numpy()


def compare_with_itself(repeats):
    """Times all graphs on both kinds of batch, in turn."""
    keras.utils.set_random_seed(1)
    transformer = Transformer(VOCAB_SIZE, **SIZES)
    variants = {
        "stay": decoder(transformer, leave=False),
        "leave": decoder(transformer),
        "leave, options off": decoder(transformer, OPTIONS),
    }
    engines = {"onnxruntime": in_onnx_runtime, "tensorflow": in_tensorflow}
    runs = {
        (engine, variant): start(*graph, transformer.variables)
        for engine, start in engines.items()
        for variant, graph in variants.items()
    }
    mixed = np.linspace(SHORTEST, LONGEST, BATCH).round().astype(int)
    batches = {
        "mixed": sources(np.random.default_rng(2).permutation(mixed)),
        "equal": sources([int(mixed.mean())] * BATCH),
    }
    seconds = {}
    order = np.random.default_rng(3)
    for lengths, source_ids in batches.items():
        expected = (source_ids != 0).sum(axis=1)
        for repeat in range(-1, repeats):  # The first is to warm up.
            for key in order.permutation(list(runs)).tolist():
                key = tuple(key)
                found, elapsed = timed(runs[key], source_ids)
                if found[:, 0].tolist() != expected.tolist():
                    raise RuntimeError(f"{key}: lengths {found[:, 0]}")
                if repeat >= 0:
                    seconds.setdefault((lengths, *key), []).append(elapsed)
    tokens = {name: int((ids != 0).sum()) for name, ids in batches.items()}
    return _report(seconds, tokens)


def _report(seconds, tokens):
    """Prints a table; gives the rows of the JSON."""
    found = []
    print(f"{'engine':12} {'lengths':8} {'variant':20} tokens/s  ratio")
    for (lengths, engine, variant), times in sorted(seconds.items()):
        baseline = "leave" if "options" in variant else "stay"
        base = seconds[lengths, engine, baseline]
        ratio = statistics.median(
            b / t for b, t in zip(base, times, strict=True)
        )
        speed = tokens[lengths] / statistics.median(times)
        print(f"{engine:12} {lengths:8} {variant:20} {speed:8.0f} {ratio:6.3f}")
        found.append(
            {
                "engine": engine,
                "precision": "float32",
                "size": f"d_model {SIZES['d_model']}",
                "batch": BATCH,
                "beam": BEAM,
                "lengths": lengths,
                "variant": variant,
                "tokens_per_second": round(speed, 1),
                "ratio": round(ratio, 3),
            }
        )
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    print(json.dumps({"rows": compare_with_itself(arguments.repeats)}))


if __name__ == "__main__":
    main()
