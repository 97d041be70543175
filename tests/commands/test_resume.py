"""An interrupted training goes on and ends as if nothing had happened."""

import json
import multiprocessing
import shutil
import time

import h5py
import numpy as np
import pytest

from keras_transformer import Translator, cli
from keras_transformer.training import latest_checkpoint
from tests.support.command_runs import SMALL, refusal, tree
from tests.support.train_process import train

# All that has a state: dropout, the optimizer's moments, accumulated
# gradients and moving average, the order of the batches, other pieces each
# time, a schedule, the best epochs and the patience left.
STATEFUL = (
    "--vocab-size=293 --num-layers=1 --d-model=14 --num-heads=2 --d-ff=13 "
    "--dropout=0.2 --epochs=13 --batch-tokens=97 --steps-per-epoch=6 "
    "--steps-per-update=2 --ema=0.7 --decay=cosine "
    "--warmup-steps=5 --peak-rate=0.01 --patience=30 "
    "--average=3 --seed=3"
).split()


def on(corpus):
    return [
        *(f"--tsv={corpus}/x.tsv", f"--valid-tsv={corpus}/x.tsv"),
    ]


def weights(folder):
    return Translator.load(folder).transformer.get_weights()


def same(one, other):
    return all(map(np.array_equal, one, other))


def facts(folder):
    kept = Translator.load(folder).training
    timed = ("minutes", "tokens_per_second")
    return {
        "history": {n: v for n, v in kept["history"].items() if n not in timed},
        **{
            name: value
            for name, value in kept.items()
            if name not in ("history", *timed)
        },
    }


@pytest.fixture(scope="module")
def processes():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.support.train_process"])
    return context


def test_a_training_killed_ten_times_ends_with_the_same_weights(
    corpus, tmp_path, processes
):
    log = tmp_path / "log"

    def begin(run):
        process = processes.Process(
            target=train,
            args=([*STATEFUL, *on(corpus), f"--output={tmp_path}/{run}"], log),
        )
        process.start()
        return process

    whole = begin("whole")
    whole.join()
    assert whole.exitcode == 0, log.read_text()

    rng = np.random.default_rng()
    folder = tmp_path / "broken.checkpoints"
    for attempt in range(10):
        process = begin("broken")
        # Mostly it may write another checkpoint before, or it never ends.
        while process.is_alive() and attempt not in (2, 5):
            names = [path.name for path in folder.glob("epoch-*")]
            if max(names, default="") > f"epoch-{attempt:05d}":
                break
            time.sleep(0.02)
        process.join(rng.uniform(0, 1))
        process.kill()
        process.join()
    last = begin("broken")
    last.join()
    assert last.exitcode == 0, log.read_text()
    assert log.read_text().count("going on from") >= 5
    assert same(weights(tmp_path / "broken"), weights(tmp_path / "whole"))
    assert facts(tmp_path / "broken") == facts(tmp_path / "whole")
    assert not folder.exists()


@pytest.fixture
def interrupted(corpus, tmp_path, capsys, uncompiled, monkeypatch):
    """A training of three epochs that stopped as it was to save them."""
    arguments = [
        *("train", *on(corpus), "--vocab-size=293", *SMALL),
        *("--batch-tokens=97", "--verbose=0", f"--output={tmp_path}/run"),
    ]
    save = Translator.save

    def fail(translator, folder, optimizer=False):
        if not optimizer:
            raise KeyboardInterrupt
        save(translator, folder, optimizer)

    with monkeypatch.context() as patch:
        patch.setattr(Translator, "save", fail)
        assert cli.main(arguments) == 130
    capsys.readouterr()
    return arguments


def test_checkpoints_are_models_to_use(interrupted, tmp_path):
    folder = tmp_path / "run.checkpoints"
    assert sorted(path.name for path in folder.iterdir()) == [
        "epoch-00002",
        "epoch-00003",
    ]
    translator = Translator.load(folder / "epoch-00002")
    assert translator.training["epoch"] == 2
    assert len(translator.training["history"]) == 2
    assert len(translator.translate(["one two", ""])) == 2


def test_checkpoints_keep_the_settings_that_older_ones_have(
    interrupted, tmp_path
):
    # One more or less, and no checkpoint written before would go on.
    settings = (
        "average batch_tokens bleu_every bleu_tokenize bpe_dropout d_ff "
        "d_model decay dropout ema epochs factor label_smoothing max_length "
        "mixed_precision model_type norm_first num_heads num_layers patience "
        "peak_rate seed select separate_vocabularies size source "
        "source_tokenizer start steps_per_epoch steps_per_update target "
        "target_tokenizer tsv tying valid_source valid_target valid_tsv "
        "vocab_size warmup_steps"
    )
    last = latest_checkpoint(tmp_path / "run.checkpoints")
    kept = Translator.load(last).training["settings"]
    assert sorted(kept) == settings.split()
    assert kept["size"] == "tiny" and kept["model_type"] is None


def test_a_finished_training_is_only_saved(
    interrupted, tmp_path, capsys, monkeypatch
):
    def refuse(*_, **__):
        raise AssertionError("nothing is left to train")

    monkeypatch.setattr("keras.Model.fit", refuse)
    last = weights(tmp_path / "run.checkpoints" / "epoch-00003")
    assert cli.main(interrupted) == 0
    output, errors = capsys.readouterr()
    assert "going on from" in errors
    assert json.loads(output)["epochs"] == 3
    assert same(weights(tmp_path / "run"), last)
    assert not (tmp_path / "run.checkpoints").exists()


@pytest.mark.parametrize("damage", ["truncated", "missing"])
def test_a_damaged_checkpoint_is_passed_over(
    interrupted, tmp_path, capsys, damage
):
    last = tmp_path / "run.checkpoints" / "epoch-00003"
    expected = weights(last)
    file = last / "model.weights.h5"
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1000])
    assert cli.main(interrupted) == 0
    errors = capsys.readouterr().err
    assert f"checkpoint {last} is passed over: " in errors
    assert "epoch-00002\n" in errors.partition("going on from")[2]
    assert same(weights(tmp_path / "run"), expected)


def test_what_a_killed_process_left_half_written_is_removed(
    interrupted, tmp_path, capsys
):
    folder = tmp_path / "run.checkpoints"
    shutil.rmtree(folder / "epoch-00003")
    beside = folder / ".epoch-00003.x1y2z3"
    beside.mkdir()
    (beside / "model.weights.h5").write_bytes(b"half")
    assert cli.main([*interrupted, "--keep=3"]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "epoch-00002",
        "epoch-00003",
    ]


def test_other_settings_are_refused_with_all_differences(
    interrupted, corpus, tmp_path, capsys
):
    before = tree(tmp_path)
    rows = (corpus / "x.tsv").read_text().splitlines()
    (tmp_path / "y.tsv").write_text("\n".join([*rows[1:], rows[0]]))
    line = refusal(
        capsys,
        *(interrupted + [f"--valid-tsv={tmp_path}/y.tsv"]),
        *("--epochs=5", "--label-smoothing=0.2", "--peak-rate=0.1"),
        *("--keep=1", "--verbose=2"),  # These may differ.
    )
    (tmp_path / "y.tsv").unlink()
    assert line.startswith(
        f"{tmp_path}/run.checkpoints holds a training with other settings: "
        "epochs was 3, is 5; label_smoothing was 0.1, is 0.2; peak_rate was "
        f"not given, is 0.1; valid_tsv was {corpus}/x.tsv, is "
        f"{tmp_path}/y.tsv; validation was "
    )
    assert line.endswith(
        "; expected the same, to go on with it; or remove that folder, or "
        "give another --output"
    )
    assert tree(tmp_path) == before


def test_texts_that_changed_are_refused(interrupted, tmp_path, capsys, corpus):
    rows = (corpus / "x.tsv").read_text()
    try:
        (corpus / "x.tsv").write_text(rows.replace("ONE", "EINS"))
        line = refusal(capsys, *interrupted)
    finally:
        (corpus / "x.tsv").write_text(rows)
    assert "settings: training was " in line
    assert "; validation was " in line


def test_a_full_disk_leaves_the_checkpoint_before(
    corpus, tmp_path, capsys, uncompiled, monkeypatch
):
    arguments = [
        *("train", *on(corpus), "--vocab-size=293", *SMALL),
        *("--batch-tokens=97", "--verbose=0", f"--output={tmp_path}/run"),
    ]
    save_weights = "keras.Model.save_weights"
    whole = []

    def save_once(model, path, **options):
        with h5py.File(path, "w") as file:
            file["x"] = np.zeros(9)
        if whole:
            raise OSError(28, "No space left on device")
        whole.append(path)
        path.unlink()
        original(model, path, **options)

    import keras

    original = keras.Model.save_weights
    with monkeypatch.context() as patch:
        patch.setattr(save_weights, save_once)
        line = refusal(capsys, *arguments)
    assert "No space left on device" in line
    folder = tmp_path / "run.checkpoints"
    assert latest_checkpoint(folder) == folder / "epoch-00001"
    assert [path.name for path in folder.iterdir()] == ["epoch-00001"]
    assert cli.main(arguments) == 0
    assert Translator.load(tmp_path / "run").training["epochs"] == 3


def test_the_patience_that_is_left_goes_on(
    corpus, tmp_path, capsys, uncompiled, monkeypatch
):
    monkeypatch.setattr("keras_transformer.BleuScore.evaluate", lambda _: 1.0)
    arguments = [
        *("train", *on(corpus), "--vocab-size=293", *SMALL, "--epochs=9"),
        *("--bleu-every=1", "--patience=2", "--verbose=0"),
        f"--output={tmp_path}/run",
    ]
    save = Translator.save

    def interrupt(translator, folder, optimizer=False):
        save(translator, folder, optimizer)
        if folder.name == "epoch-00002":
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Translator, "save", interrupt)
        assert cli.main(arguments) == 130
    capsys.readouterr()
    assert cli.main(arguments) == 0
    # The first epoch is the best; two more do not beat it.
    assert json.loads(capsys.readouterr().out)["epochs"] == 3
