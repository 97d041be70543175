"""Text: tokenizer, parallel corpora and batches for `model.fit`."""

from keras_transformer.text.batches import BatchPlan, batches
from keras_transformer.text.corpus import ParallelCorpus, read_lines
from keras_transformer.text.tokenizer import Tokenizer

__all__ = ["BatchPlan", "ParallelCorpus", "Tokenizer", "batches", "read_lines"]
