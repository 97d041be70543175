"""The Transformer as a search sees it: a step function and its first state."""

import tensorflow as tf

from keras_transformer.decoding.search_state import SearchState
from keras_transformer.layers import Step
from keras_transformer.layers.attention import HIDDEN_SCORE


def single_step(transformer, source_ids):
    """Prepares a search with one hypothesis a sentence.

    Args:
        transformer: `Transformer`.
        source_ids: int32 `(B, S)`, padded.

    Returns:
        The function `step(token_ids, position, state)` and its first
        `SearchState`; see `keras_transformer.decoding.search_state`.
    """
    sentence, caches = transformer.start(source_ids)

    def step(token_ids, position, state):
        logits, caches, attention = transformer.step(
            token_ids, Step(position), state.sentence, state.shared
        )
        return logits, state._replace(shared=caches), attention

    return step, SearchState(sentence, shared=caches)


def beam_step(transformer, source_ids, beam_size):
    """Prepares a search with `K` hypotheses a sentence, which share a cache.

    Each adds its position to it. What follows a hypothesis when the search
    reorders them is its lineage alone, which hides what is not of its own
    prefix: a number for each position instead of keys and values. What that
    costs is that each is compared with the positions of all `K`.

    Args:
        transformer: `Transformer`.
        source_ids: int32 `(B, S)`, padded.
        beam_size: int or int32 scalar, `K`.

    Returns:
        As of `single_step`.
    """
    sentence, caches = transformer.start(source_ids)
    slots = tf.range(beam_size)
    own = tf.where(slots[:, None] == slots[None, :], 0.0, HIDDEN_SCORE)

    def step(token_ids, position, state):
        batch = tf.shape(state.sentence["mask"])[0]
        lineage = tf.concat(
            [state.hypothesis, tf.tile(own, [batch, 1])], axis=1
        )
        at = Step(position, batch, tf.reshape(lineage, [batch, beam_size, -1]))
        logits, caches, attention = transformer.step(
            token_ids, at, state.sentence, state.shared
        )
        return logits, SearchState(state.sentence, lineage, caches), attention

    nothing = tf.zeros((tf.shape(source_ids)[0], 0))
    return step, SearchState(sentence, hypothesis=nothing, shared=caches)
