"""Greedy search, beam search and sampling inside the graph (section 6.1).

The searches know a model only as a function; `transformer_step` makes that of a
Transformer, and `generator` runs them all.
"""

from keras_transformer.decoding.beam import beam_search
from keras_transformer.decoding.constraints import (
    Constraints,
    penalize_repetition,
    repeated_ngrams,
)
from keras_transformer.decoding.generator import Generator
from keras_transformer.decoding.greedy import greedy_search
from keras_transformer.decoding.option_checks import complete_options
from keras_transformer.decoding.options import STRATEGIES
from keras_transformer.decoding.penalties import (
    LengthPenalty,
    coverage_penalty,
)
from keras_transformer.decoding.sampling import sample
from keras_transformer.decoding.search_state import Hypotheses, SearchState
from keras_transformer.decoding.signatures import SIGNATURES

__all__ = [
    "SIGNATURES",
    "STRATEGIES",
    "Constraints",
    "Generator",
    "Hypotheses",
    "LengthPenalty",
    "SearchState",
    "beam_search",
    "complete_options",
    "coverage_penalty",
    "greedy_search",
    "penalize_repetition",
    "repeated_ngrams",
    "sample",
]
