"""Decoding functions of one Transformer: the only place that knows both."""

import keras
import tensorflow as tf

from keras_transformer.decoding.beam import beam_search
from keras_transformer.decoding.greedy import greedy_search
from keras_transformer.decoding.options import PENALTY_LIMIT
from keras_transformer.decoding.signatures import SIGNATURES, as_function
from keras_transformer.decoding.state import SearchState

# The paper's cap on the output (section 6.1): source length + 50.
EXTRA_LENGTH = 50


class Generator:
    """Decodes with a Transformer, in Python and in every export alike.

    `greedy` and `beam` are `tf.function`s whose options are tensors, so that
    one trace serves all calls and the exports take the same options as
    inputs. They follow `keras_transformer.decoding.signatures.SIGNATURES`.

    Values that a graph cannot refuse are mended, everywhere alike: an id
    outside the source vocabulary counts as unk; `beam_size` is at least 1;
    `num_hypotheses` at least 1 and at most `beam_size`; `length_penalty` is
    kept in [-10, 10]; `min_length` is at least 0; a negative `max_length`
    means each row's own source length (ids other than pad) + 50. A source
    without a piece (eos or padding alone) generates nothing: length 0, score
    0, not finished.

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
        self.forbidden_ids = [
            transformer.pad_id,
            transformer.bos_id,
            *range(target_vocab_size, largest),
        ]
        self.greedy = as_function(self._greedy, SIGNATURES["greedy"])
        self.beam = as_function(self._beam, SIGNATURES["beam"])

    def _greedy(self, source_ids, max_length, min_length):
        source_ids, max_lengths = self._prepare(source_ids, max_length)
        result = greedy_search(
            self._step,
            self._start(source_ids),
            max_lengths,
            min_length=min_length,
            **self._special_ids(),
        )
        return result._asdict()

    def _beam(
        self,
        source_ids,
        beam_size,
        num_hypotheses,
        length_penalty,
        max_length,
        min_length,
    ):
        source_ids, max_lengths = self._prepare(source_ids, max_length)
        beam_size = tf.maximum(beam_size, 1)
        result = beam_search(
            self._step,
            self._start(source_ids),
            max_lengths,
            beam_size=beam_size,
            num_hypotheses=tf.clip_by_value(num_hypotheses, 1, beam_size),
            length_penalty=tf.clip_by_value(
                length_penalty, -PENALTY_LIMIT, PENALTY_LIMIT
            ),
            min_length=min_length,
            **self._special_ids(),
        )
        return result._asdict()

    def _prepare(self, source_ids, max_length):
        """Mends the ids and finds the largest length of each row."""
        model = self.transformer
        known = tf.logical_and(
            source_ids >= 0, source_ids < model.source_vocab_size
        )
        source_ids = tf.where(known, source_ids, model.unk_id)
        not_pad = source_ids != model.pad_id
        pieces = tf.logical_and(not_pad, source_ids != model.eos_id)
        source_lengths = tf.reduce_sum(tf.cast(not_pad, tf.int32), axis=1)
        max_lengths = tf.where(
            max_length < 0,
            source_lengths + EXTRA_LENGTH,
            tf.zeros_like(source_lengths) + max_length,
        )
        return source_ids, tf.where(
            tf.reduce_any(pieces, axis=1), max_lengths, 0
        )

    def _start(self, source_ids):
        return SearchState(*self.transformer.start(source_ids))

    def _step(self, token_ids, position, state):
        logits, caches, _ = self.transformer.step(
            token_ids, position, state.sentence, state.hypothesis
        )
        return logits, SearchState(state.sentence, caches)

    def _special_ids(self):
        return {
            "pad_id": self.transformer.pad_id,
            "bos_id": self.transformer.bos_id,
            "eos_id": self.transformer.eos_id,
            "forbidden_ids": self.forbidden_ids,
        }
