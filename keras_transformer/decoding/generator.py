"""Decoding functions of one Transformer, as exports and Python call them."""

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.decoding.beam import beam_search
from keras_transformer.decoding.constraints import Constraints
from keras_transformer.decoding.greedy import greedy_search
from keras_transformer.decoding.logits import log_prob_of
from keras_transformer.decoding.option_checks import clip_numbers
from keras_transformer.decoding.options import EXTRA_LENGTH
from keras_transformer.decoding.sampling import sample
from keras_transformer.decoding.signatures import SIGNATURES, as_function
from keras_transformer.decoding.transformer_step import beam_step, single_step


class Generator:
    """Decodes with a Transformer, in Python and in every export alike.

    `greedy`, `beam`, `sample`, `score` and `align` are `tf.function`s whose
    options are tensors, so that one trace serves all calls and the exports
    take the same options as inputs. They follow
    `keras_transformer.decoding.signatures.SIGNATURES`; the options are those
    of `greedy_search`, `beam_search` and `sample`.

    - `score` gives the log-probability of each of `target_ids` (pieces and
      eos) after those before it, 0 on padding, and their sum;
    - `align` gives, for each of them, the attention to each source position
      when it was predicted: the mean over the heads of the last layer's
      cross-attention, 0 on padding.

    Values that a graph cannot refuse are mended, everywhere alike: an option
    outside its range counts as the nearest value in it
    (`keras_transformer.decoding.options.RANGES`), `num_hypotheses` at most as
    `beam_size`; an id outside the vocabulary, or a forced or scored bos,
    counts as unk; a forbidden id outside it forbids nothing. A negative
    `max_length` means each row's own source length (ids other than pad) +
    50. A source without a piece (eos or padding alone) generates nothing:
    length 0, score 0, not finished.

    Args:
        transformer: `Transformer`, on the TensorFlow backend.
        target_vocab_size: int, the number of ids the target tokenizer knows,
            if the model's vocabulary is larger (rounded up). Ids beyond are
            never generated, nor are pad and bos.

    Raises:
        ValueError: if Keras runs on another backend, or
            `target_vocab_size` is larger than the model's or leaves no eos.
    """

    def __init__(self, transformer, target_vocab_size=None):
        if keras.backend.backend() != "tensorflow":
            raise ValueError(
                "decoding needs KERAS_BACKEND=tensorflow, got "
                f"KERAS_BACKEND={keras.backend.backend()}"
            )
        largest = transformer.target_vocab_size
        if target_vocab_size is None:
            target_vocab_size = largest
        if not transformer.eos_id < target_vocab_size <= largest:
            raise ValueError(
                f"target_vocab_size must be above eos_id={transformer.eos_id} "
                f"and at most that of the model, {largest}, got "
                f"target_vocab_size={target_vocab_size}"
            )
        self.transformer = transformer
        self.pad_id = transformer.pad_id
        self.target_vocab_size = target_vocab_size
        self.forbidden_ids = np.arange(
            target_vocab_size, largest, dtype=np.int32
        )
        self.greedy = as_function(self._greedy, SIGNATURES["greedy"])
        self.beam = as_function(self._beam, SIGNATURES["beam"])
        self.sample = as_function(self._sample, SIGNATURES["sample"])
        self.score = as_function(self._score, SIGNATURES["score"])
        self.align = as_function(self._align, SIGNATURES["align"])

    def _greedy(self, source_ids, **options):
        return self._search(greedy_search, source_ids, options)

    def _beam(self, source_ids, **options):
        return self._search(beam_search, source_ids, options)

    def _sample(self, source_ids, seed, **options):
        return self._search(sample, source_ids, options, seed)

    def _search(self, search, source_ids, options, *arguments):
        """Runs a search with the options of its signature."""
        options = clip_numbers(**options)
        source_ids, max_lengths = self._prepare(
            source_ids, options.pop("max_length")
        )
        constraints = Constraints(
            **{name: options.pop(name) for name in Constraints._fields}
        )
        model = self.transformer
        if search is beam_search:
            step, state = beam_step(model, source_ids, options["beam_size"])
        else:
            step, state = single_step(model, source_ids)
        result = search(
            step,
            state,
            max_lengths,
            *arguments,
            constraints=constraints._replace(
                target_prefix=self._known(constraints.target_prefix),
                forbidden_ids=tf.concat(
                    [self.forbidden_ids, constraints.forbidden_ids], axis=0
                ),
            ),
            pad_id=model.pad_id,
            bos_id=model.bos_id,
            eos_id=model.eos_id,
            **options,
        )
        return result._asdict()

    def _score(self, source_ids, target_ids):
        source_ids, _ = self._prepare(source_ids, -1)
        target_ids = self._known(target_ids)
        inputs = {
            "source_ids": source_ids,
            "target_ids": self._shifted(target_ids),
        }
        logits = tf.cast(self.transformer(inputs, training=False), tf.float32)
        log_probs = tf.where(
            target_ids == self.transformer.pad_id,
            0.0,
            log_prob_of(logits, target_ids),
        )
        return {
            "token_log_probs": log_probs,
            "scores": tf.reduce_sum(log_probs, axis=1),
        }

    def _align(self, source_ids, target_ids):
        source_ids, _ = self._prepare(source_ids, -1)
        target_ids = self._known(target_ids)
        _, weights = self.transformer.decode(
            source_ids, self._shifted(target_ids), return_weights=True
        )
        attention = tf.reduce_mean(tf.cast(weights, tf.float32), axis=1)
        real = tf.expand_dims(target_ids, 2) != self.transformer.pad_id
        return {"attention": tf.where(real, attention, 0.0)}

    def _prepare(self, source_ids, max_length):
        """Mends the ids and finds the largest length of each row."""
        model = self.transformer
        known = (source_ids >= 0) & (source_ids < model.source_vocab_size)
        source_ids = tf.where(known, source_ids, model.unk_id)
        not_pad = source_ids != model.pad_id
        pieces = not_pad & (source_ids != model.eos_id)
        source_lengths = tf.reduce_sum(tf.cast(not_pad, tf.int32), axis=1)
        max_lengths = tf.where(
            max_length < 0,
            source_lengths + EXTRA_LENGTH,
            tf.zeros_like(source_lengths) + max_length,
        )
        return source_ids, tf.where(
            tf.reduce_any(pieces, axis=1), max_lengths, 0
        )

    def _known(self, target_ids):
        """Turns target ids that are never generated into unk."""
        known = (target_ids >= 0) & (target_ids < self.target_vocab_size)
        known &= target_ids != self.transformer.bos_id
        return tf.where(known, target_ids, self.transformer.unk_id)

    def _shifted(self, target_ids):
        """Makes the decoder's input: bos, and the ids but the last."""
        bos = tf.fill((tf.shape(target_ids)[0], 1), self.transformer.bos_id)
        return tf.concat([bos, target_ids], axis=1)[:, :-1]
