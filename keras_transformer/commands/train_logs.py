"""What `keras-transformer train` shows in TensorBoard beyond numbers."""

import keras
import tensorflow as tf


class TranslationText(keras.callbacks.Callback):
    """Writes some validation sentences to TensorBoard, as `BleuScore` put them.

    It goes after the `BleuScore`.

    Args:
        bleu_score: `BleuScore`.
        log_dir: folder, a subfolder of that of `keras.callbacks.TensorBoard`.
        count: int, how many.
    """

    def __init__(self, bleu_score, log_dir, count=5):
        super().__init__()
        self.bleu_score = bleu_score
        self.log_dir = str(log_dir)
        self.count = count
        self._writer = None

    def on_epoch_end(self, epoch, logs=None):
        if not self.bleu_score.is_due(epoch):
            return
        if self._writer is None:
            self._writer = tf.summary.create_file_writer(self.log_dir)
        rows = zip(
            self.bleu_score.source,
            self.bleu_score.translations,
            self.bleu_score.target,
            strict=True,
        )
        lines = ["| source | translation | reference |", "|---|---|---|"]
        for _, row in zip(range(self.count), rows, strict=False):
            cells = (cell.replace("|", "&#124;") for cell in row)
            lines.append(f"| {' | '.join(cells)} |")
        with self._writer.as_default():
            tf.summary.text("translations", "\n".join(lines), step=epoch)
        self._writer.flush()

    def on_train_end(self, logs=None):
        if self._writer is not None:
            self._writer.close()
            self._writer = None
