"""Any number of rows of any length, decoded in batches of like length."""

import numpy as np

from keras_transformer.decoding.signatures import SIGNATURES


def decode_rows(generator, strategy, rows, options, batch_size):
    """Decodes rows of ids.

    Args:
        generator: `Generator`.
        strategy: "beam", "greedy" or "sample".
        rows: dict of the inputs that have one row a sentence, `source_ids`
            among them: name to a list of lists of ints.
        options: dict of the other inputs; rows take the place of theirs.
        batch_size: int, how many rows to decode at once.

    Returns:
        For each row a list of hypotheses, best first, as triples: token ids
        (list of int), score (float), finished (bool). Of a row without any
        it is a hypothesis of no ids, with score minus infinity.
    """
    found = [None] * len(rows["source_ids"])
    for chunk in _chunks(rows["source_ids"], batch_size):
        inputs = {
            name: pad_rows([values[i] for i in chunk], generator.pad_id)
            for name, values in rows.items()
        }
        outputs = getattr(generator, strategy)(**{**options, **inputs})
        outputs = {name: tensor.numpy() for name, tensor in outputs.items()}
        if strategy != "beam":
            outputs = {name: value[:, None] for name, value in outputs.items()}
        for row, i in enumerate(chunk):
            found[i] = _hypotheses(
                {name: values[row] for name, values in outputs.items()}
            )
    return found


def teacher_force_rows(generator, signature, source, target, batch_size):
    """Runs `score` or `align` over rows of ids.

    Args:
        generator: `Generator`.
        signature: "score" or "align".
        source: list of lists of ints.
        target: list of lists of ints, one for each.
        batch_size: int, how many rows to run at once.

    Returns:
        A list of float32 arrays, `(T,)` of `score` or `(T, S)` of `align`,
        without padding.
    """
    output = SIGNATURES[signature].outputs[0].name
    found = [None] * len(source)
    for chunk in _chunks(target, batch_size):
        arrays = getattr(generator, signature)(
            pad_rows([source[i] for i in chunk], generator.pad_id),
            pad_rows([target[i] for i in chunk], generator.pad_id),
        )[output].numpy()
        for array, i in zip(arrays, chunk, strict=True):
            lengths = (len(target[i]), len(source[i]))
            found[i] = array[tuple(map(slice, lengths[: array.ndim]))]
    return found


def pad_rows(rows, pad_id):
    """Fills rows of ids up to an int32 array `(B, S)`."""
    width = max((len(row) for row in rows), default=0)
    padded = np.full((len(rows), width), pad_id, np.int32)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return padded


def _hypotheses(row):
    found = []
    for ids, length, score, finished in zip(
        row["token_ids"],
        row["lengths"],
        row["scores"],
        row["finished"],
        strict=True,
    ):
        if not np.isneginf(score):  # Else an empty slot.
            found.append((ids[:length].tolist(), float(score), bool(finished)))
    return found or [([], float("-inf"), False)]


def _chunks(rows, batch_size):
    """Splits the indices of rows; rows of like length share a batch."""
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
