"""Translating a validation set while `fit` trains."""

import keras

from keras_transformer.layers.arguments import check_positive


class BleuScore(keras.callbacks.Callback):
    """Translates a validation set and logs its BLEU, for the others to see.

    `EarlyStopping`, `ModelCheckpoint` and `WeightAveraging` that go after it
    may monitor it, with mode "max"; `SwapEMAWeights` goes before it.

    Args:
        translate: function from a list of str to the list of their
            translations, such as `translator.translate`.
        source: list of str.
        target: list of str, the references, one a source.
        every: int, translate after each so many epochs, and after the last;
            in between the score logged is the latest.
        name: str, what it is logged as.
        tokenize: str, how sacrebleu splits words; "none" for text that is
            split already.
        lowercase: bool, whether to compare in lower case.

    Raises:
        ValueError: if `source` and `target` differ in length or are empty, or
            `every` is not positive.
    """

    def __init__(
        self,
        translate,
        source,
        target,
        *,
        every=1,
        name="val_bleu",
        tokenize="13a",
        lowercase=False,
    ):
        super().__init__()
        check_positive(every=every)
        if not source or len(source) != len(target):
            raise ValueError(
                "source and target must be lists of equal length, at least 1, "
                f"got {len(source)} and {len(target)}"
            )
        from sacrebleu.metrics import BLEU

        self.translate = translate
        self.source = list(source)
        self.target = list(target)
        self.every = every
        self.name = name
        self.score = 0.0
        self.translations = []
        self._metric = BLEU(
            tokenize=tokenize,
            lowercase=lowercase,
            force=tokenize == "none",  # Else it warns of tokenised text.
        )

    def on_train_begin(self, logs=None):
        self.score = 0.0

    def is_due(self, epoch):
        """Whether the validation set is translated after this epoch."""
        last = epoch + 1 == self.params.get("epochs")
        return last or (epoch + 1) % self.every == 0

    def on_epoch_end(self, epoch, logs=None):
        logs = {} if logs is None else logs
        if self.name in logs:  # Of an epoch that is replayed.
            self.score = logs[self.name]
            return
        if self.is_due(epoch):
            self.score = self.evaluate()
        logs[self.name] = self.score

    def evaluate(self):
        """Translates the validation set; gives its BLEU."""
        self.translations = self.translate(self.source)
        return self._metric.corpus_score(self.translations, [self.target]).score
