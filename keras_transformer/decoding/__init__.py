"""Greedy and beam search inside the graph (paper, section 6.1).

The searches know a model only as a function; `generator` alone knows the
Transformer.
"""

from keras_transformer.decoding.beam import beam_search
from keras_transformer.decoding.generator import Generator
from keras_transformer.decoding.greedy import greedy_search
from keras_transformer.decoding.length_penalty import gnmt_penalty
from keras_transformer.decoding.options import STRATEGIES, complete_options
from keras_transformer.decoding.signatures import SIGNATURES
from keras_transformer.decoding.state import Hypotheses, SearchState

__all__ = [
    "SIGNATURES",
    "STRATEGIES",
    "Generator",
    "Hypotheses",
    "SearchState",
    "beam_search",
    "complete_options",
    "gnmt_penalty",
    "greedy_search",
]
