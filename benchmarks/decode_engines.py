"""The engines of `decode.py`, each a function `(Case) -> (ids, seconds)`.

None imports what another needs, and each has two threads.
"""

import functools
import json
import statistics
from typing import NamedTuple

import numpy as np
from turns import timed

THREADS = 2
PAD_ID, BOS_ID, EOS_ID = 0, 1, 2
# Of `length ^ alpha`, with a stop at as many ends as there are beams; KerasHub
# has neither.
LENGTH_PENALTY = 0.6
NEVER = -1e9
# What takes less is repeated: one neighbour on the machine would be all.
LEAST_SECONDS = 0.5


def make_engine(name, folder, least_seconds=LEAST_SECONDS):
    """Loads an engine.

    Args:
        name: "ENGINE PRECISION", such as "onnxruntime int8".
        folder: `pathlib.Path`, what `decode_model.make` wrote.
        least_seconds: float, how long to repeat what takes less.

    Returns:
        A function of `Case` to a list of lists of ids, without eos, and the
        seconds it took, the median of all times.
    """
    engine, precision = name.split()
    decode = {
        "onnxruntime": onnxruntime,
        "tensorflow": tensorflow,
        "ctranslate2": ctranslate2,
        "keras_hub": keras_hub,
        "transformers": transformers,
    }[engine](folder, precision)

    def answer(case):
        once, seconds = decode(case), []
        while not seconds or sum(seconds) < least_seconds:
            ids, elapsed = timed(once)
            seconds.append(elapsed)
        return [_cut(row) for row in ids], statistics.median(seconds)

    return answer


def _cut(row):
    ids = list(map(int, row))
    return ids[: ids.index(EOS_ID)] if EOS_ID in ids else ids


def _options(case):
    options = {"max_length": np.array(case.length, "int32")}
    if case.fixed:  # Not even at its end.
        options["min_length"] = np.array(case.length + 1, "int32")
    if case.beam > 1:
        options.update(
            beam_size=np.array(case.beam, "int32"),
            length_penalty=np.array(LENGTH_PENALTY, "float32"),
            length_penalty_form=np.array(1, "int32"),
            early_stopping=np.array(1, "int32"),
        )
    return options


def _best(found, lengths, beam):
    if beam > 1:
        found, lengths = found[:, 0], lengths[:, 0]
    return [row[:length] for row, length in zip(found, lengths, strict=True)]


def onnxruntime(folder, precision):
    """What `export_onnx` wrote, in ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3  # It warns of every default.

    @functools.cache
    def session_of(name):
        return onnxruntime.InferenceSession(
            folder / f"onnx_{precision}" / f"{name}.onnx",
            options,
            ["CPUExecutionProvider"],
        )

    def decode(case):
        feed = {"source_ids": case.source_ids, **_options(case)}
        session = session_of("beam" if case.beam > 1 else "greedy")
        return lambda: _best(
            *session.run(["token_ids", "lengths"], feed), case.beam
        )

    return decode


def tensorflow(folder, precision):
    """What `export_saved_model` wrote, in TensorFlow."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  Its operators are in the graph.

    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    model = tf.saved_model.load(folder / "saved_model")

    def decode(case):
        run = model.beam if case.beam > 1 else model.greedy

        def once():
            found = run(case.source_ids, **_options(case))
            return _best(
                found["token_ids"].numpy(), found["lengths"].numpy(), case.beam
            )

        return once

    return decode


def ctranslate2(folder, precision):
    """What `export_ctranslate2` wrote, in CTranslate2."""
    import ctranslate2

    model = ctranslate2.Translator(
        str(folder / "ctranslate2"),
        compute_type=precision,
        inter_threads=1,
        intra_threads=THREADS,
    )
    vocabulary = json.loads(
        (folder / "ctranslate2" / "shared_vocabulary.json").read_text("utf-8")
    )
    numbers = {piece: number for number, piece in enumerate(vocabulary)}

    def decode(case):
        pieces = [
            [vocabulary[i] for i in row if i not in (PAD_ID, EOS_ID)]
            for row in case.source_ids
        ]

        def once():
            results = model.translate_batch(
                pieces,
                beam_size=case.beam,
                length_penalty=LENGTH_PENALTY,
                max_decoding_length=case.length,
                min_decoding_length=case.length if case.fixed else 0,
            )
            return [
                [numbers[piece] for piece in result.hypotheses[0]]
                for result in results
            ]

        return once

    return decode


def keras_hub(folder, precision):
    """KerasHub's samplers over the step of the same model, compiled by XLA."""
    import keras_hub
    import tensorflow as tf

    from keras_transformer import Translator
    from keras_transformer.layers import GrowingCache, Step
    from keras_transformer.layers.attention import HIDDEN_SCORE

    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    model = Translator.load(folder / "run").transformer

    class Buffer(NamedTuple):
        """A cache whose size is fixed, as XLA needs it."""

        cache: GrowingCache
        here: tf.Tensor  # Bool, the slot to write to.

        def append(self, new):
            return GrowingCache(
                tf.where(self.here, new.keys, self.cache.keys),
                tf.where(self.here, new.values, self.cache.values),
            )

    @functools.partial(tf.function, jit_compile=True)
    def generate(source_ids, sampler, beam, length, fixed):
        batch = source_ids.shape[0]
        eos = tf.one_hot(EOS_ID, model.target_vocab_size) * NEVER
        slots = tf.range(length)
        sentence, caches = model.start(source_ids)
        # Its beams are rows like others, each with a sentence of its own.
        sentence = tf.nest.map_structure(
            lambda tensor: tf.repeat(tensor, beam, axis=0), sentence
        )
        caches = tf.nest.map_structure(
            lambda tensor: tf.pad(
                tensor, [[0, 0], [0, 0], [0, length], [0, 0]]
            ),
            caches,
        )

        def following(prompt, caches, index):
            here = tf.equal(slots, index - 1)[:, None]
            unseen = tf.where(slots < index, 0.0, HIDDEN_SCORE)
            logits, caches, _ = model.step(
                tf.gather(prompt, index - 1, axis=1),
                Step(index - 1, batch * beam, unseen[None, None]),
                sentence,
                [Buffer(cache, here) for cache in caches],
            )
            return logits + eos if fixed else logits, None, caches

        prompt = tf.one_hot([0] * batch, length + 1, dtype=tf.int32) * BOS_ID
        return sampler(
            following,
            prompt,
            cache=caches,
            index=1,
            stop_token_ids=None if fixed else (EOS_ID,),
        )[:, 1:]

    samplers = {1: keras_hub.samplers.GreedySampler()}

    def decode(case):
        if case.beam not in samplers:
            samplers[case.beam] = keras_hub.samplers.BeamSampler(case.beam)
        source_ids = tf.constant(case.source_ids)
        return lambda: generate(
            source_ids, samplers[case.beam], case.beam, case.length, case.fixed
        ).numpy()

    return decode


def transformers(folder, precision):
    """Hugging Face's Marian model with the same weights, in PyTorch."""
    import torch
    import transformers

    torch.set_num_threads(THREADS)
    weights = dict(np.load(folder / "marian.npz"))
    layers = sum(name.endswith(".fc1.bias") for name in weights) // 2
    vocab_size, d_model = weights["model.shared.weight"].shape
    (d_ff,) = weights["model.encoder.layers.0.fc1.bias"].shape
    facts = json.loads((folder / "run" / "config.json").read_text("utf-8"))
    heads = facts["transformer"]["num_heads"]
    config = transformers.MarianConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=d_ff,
        decoder_ffn_dim=d_ff,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=len(
            weights["model.encoder.embed_positions.weight"]
        ),
        pad_token_id=PAD_ID,
        bos_token_id=BOS_ID,
        eos_token_id=EOS_ID,
        decoder_start_token_id=BOS_ID,
        forced_eos_token_id=None,
    )
    model = transformers.MarianMTModel(config).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6
    model.load_state_dict(
        {name: torch.from_numpy(value) for name, value in weights.items()}
    )

    def decode(case):
        source_ids = torch.from_numpy(case.source_ids).long()

        def once():
            with torch.inference_mode():
                ids = model.generate(
                    source_ids,
                    attention_mask=(source_ids != PAD_ID).long(),
                    num_beams=case.beam,
                    do_sample=False,
                    max_new_tokens=case.length,
                    min_new_tokens=case.length if case.fixed else 0,
                    length_penalty=LENGTH_PENALTY,
                    early_stopping=case.beam > 1,
                    # What the other engines may generate.
                    bad_words_ids=None,
                )
            return ids[:, 1:].numpy()

        return once

    return decode
