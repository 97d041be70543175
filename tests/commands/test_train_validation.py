"""What `train` does with a validation set, and what TensorBoard shows."""

import json
import shutil

import numpy as np
import pytest
import sacrebleu

from keras_transformer import (
    ParallelCorpus,
    Translator,
    average_weights,
    cli,
)
from tests.support.command_runs import SMALL, pairs


def events(folder):
    """Values by tag, of all event files in a folder."""
    from tensorboard.backend.event_processing import event_accumulator

    found = event_accumulator.EventAccumulator(str(folder))
    found.Reload()
    return {
        tag: [event.tensor_proto for event in found.Tensors(tag)]
        for tag in found.Tags()["tensors"]
    }


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_bleu_chooses_averages_and_is_shown(
    corpus, tmp_path, capsys, uncompiled
):
    code = cli.main(
        [
            *("train", f"--tsv={corpus}/x.tsv", "--vocab-size=293", *SMALL),
            *(f"--valid-tsv={corpus}/x.tsv", "--epochs=5", "--bleu-every=2"),
            *("--bleu-tokenize=none", "--average=2", "--keep=9"),
            *("--peak-rate=0.03", "--warmup-steps=2", "--verbose=0"),
            f"--tensorboard={tmp_path}/logs",
            f"--output={tmp_path}/run",
        ]
    )
    output, errors = capsys.readouterr()
    assert code == 0, errors
    facts = json.loads(output)
    translator = Translator.load(tmp_path / "run")
    history = translator.training["history"]

    # The epochs with a score of their own are 2, 4 and 5.
    bleu = history["val_bleu"]
    assert len(bleu) == 5 and bleu[0] == 0 and bleu[1] == bleu[2]
    best = sorted((1, 3, 4), key=lambda epoch: (-bleu[epoch], epoch))[:2]
    assert facts["epochs_averaged"] == [epoch + 1 for epoch in best]
    assert facts["epoch_kept"] == best[0] + 1
    folder = tmp_path / "run.checkpoints"
    assert len(list(folder.iterdir())) == 5
    kept = [
        Translator.load(folder / f"epoch-{epoch + 1:05d}") for epoch in best
    ]
    for found, expected in zip(
        translator.transformer.get_weights(),
        average_weights(t.transformer.get_weights() for t in kept),
        strict=True,
    ):
        np.testing.assert_array_equal(found, expected)

    # The scores printed are those of the average.
    valid = ParallelCorpus.from_tsv(corpus / "x.tsv")
    score = sacrebleu.corpus_bleu(
        translator.translate(valid.source),
        [valid.target],
        tokenize="none",
        force=True,
    ).score
    assert facts["val_bleu"] == pytest.approx(score, abs=1e-3)
    assert facts["tokens_per_second"] > 0

    train = events(tmp_path / "logs" / "train")
    assert {"epoch_loss", "epoch_learning_rate", "epoch_token_accuracy"} <= set(
        train
    )
    assert len(train["epoch_loss"]) == 5
    assert "epoch_bleu" in events(tmp_path / "logs" / "validation")
    ((tag, texts),) = (
        (tag, values)
        for tag, values in events(tmp_path / "logs" / "translations").items()
    )
    assert tag.startswith("translations")
    lines = texts[0].string_val[0].decode().splitlines()
    source, target = pairs()
    assert len(texts) == 3
    assert lines[0] == "| source | translation | reference |"
    assert lines[2].startswith(f"| {source[0]} | ")
    assert lines[2].endswith(f" | {target[0]} |")
    shutil.rmtree(folder)
