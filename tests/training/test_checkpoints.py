"""Folders of epochs, without a model that matters."""

import keras
import numpy as np
import pytest

from keras_transformer.folders import new_folder, write_checksums
from keras_transformer.training import Checkpoints, Replay, latest_checkpoint
from tests.support.training import compile_model, fit, uniform_model

BATCH = tuple(np.ones((2, 3), int) for _ in range(2))


def save(path, facts):
    with new_folder(path) as beside:
        (beside / "facts").write_text(repr(facts))
        write_checksums(beside)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def run(*callbacks, epochs, **options):
    model = compile_model(uniform_model())
    return fit(model, [BATCH], epochs, callbacks=list(callbacks), **options)


def test_the_last_and_the_best_are_kept(tmp_path):
    scores = [3.0, 9.0, 7.0, None, 9.0, 1.0, 2.0]
    checkpoints = Checkpoints(
        tmp_path / "run",
        save,
        keep_last=2,
        keep_best=3,
        rank=lambda epoch, logs: scores[epoch],
    )
    run(checkpoints, epochs=7)
    # Of equal ones the earlier is better.
    assert checkpoints.best(3) == [1, 4, 2]
    assert checkpoints.best(99) == [1, 4, 2, 0, 6, 5]
    assert names(tmp_path / "run") == [
        f"epoch-{n:05d}" for n in (2, 3, 5, 6, 7)
    ]
    checkpoints.prune(1)
    assert names(tmp_path / "run") == ["epoch-00007"]
    checkpoints.prune(0)
    assert not (tmp_path / "run").exists()


def test_facts_are_what_is_needed_to_go_on(tmp_path):
    found = []
    stopping = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: setattr(
            stopping.model, "stop_training", epoch == 3
        )
    )
    before = [{"loss": 5.0}, {"loss": 4.0}]
    checkpoints = Checkpoints(
        tmp_path,
        lambda path, facts: found.append((path, facts)),
        history=before,
    )
    run(stopping, checkpoints, epochs=9, initial_epoch=2)
    assert [path.name for path, _ in found] == ["epoch-00003", "epoch-00004"]
    assert [facts["epoch"] for _, facts in found] == [3, 4]
    assert [facts["stopped"] for _, facts in found] == [False, True]
    history = found[-1][1]["history"]
    assert history[:2] == before and len(history) == 4
    assert len(before) == 2
    assert isinstance(history[-1]["loss"], float)


def test_what_is_whole_is_found_and_the_rest_is_told(tmp_path, caplog):
    assert latest_checkpoint(tmp_path / "none") is None
    run(Checkpoints(tmp_path, save, keep_last=3), epochs=3)
    assert latest_checkpoint(tmp_path).name == "epoch-00003"
    (tmp_path / "epoch-00003" / "facts").write_text("half")
    (tmp_path / "epoch-00002" / "SHA256SUMS").unlink()
    assert caplog.messages == []
    assert latest_checkpoint(tmp_path).name == "epoch-00001"
    changed, unsigned = caplog.messages
    assert changed.startswith(
        f"checkpoint {tmp_path / 'epoch-00003'} is passed over: "
    )
    assert "facts' has changed" in changed
    assert "holds no SHA256SUMS" in unsigned


def test_leftovers_are_removed_and_a_damaged_epoch_is_written_again(tmp_path):
    half = tmp_path / ".epoch-00002.abc"
    half.mkdir()
    (tmp_path / "epoch-00001").mkdir()
    run(Checkpoints(tmp_path, save), epochs=1)
    assert names(tmp_path) == ["epoch-00001"]
    assert latest_checkpoint(tmp_path)


def test_early_stopping_goes_on_where_it_was():
    losses = [5.0, 3.0, 4.0, 4.0, 4.0, 4.0]

    def train(start):
        stopping = keras.callbacks.EarlyStopping("x", mode="min", patience=3)
        log = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: logs.update(x=losses[epoch])
        )
        before = [{"x": loss} for loss in losses[:start]]
        history = run(
            log,
            stopping,
            Replay([stopping], before),
            epochs=6,
            initial_epoch=start,
        )
        return start + len(history["loss"]), stopping.best_epoch

    assert [train(start) for start in range(4)] == [(5, 1)] * 4


@pytest.mark.parametrize(
    "options, message",
    [
        ({"keep_last": 0}, "keep_last"),
        ({"keep_best": -1}, "keep_best must be 0 or more, got -1"),
    ],
)
def test_numbers_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Checkpoints("x", save, **options)
