"""The recipe of the paper's experiments, on a thousand small pairs."""

import gzip
import json

import keras
import pytest

import wmt14
from keras_transformer import Translator
from spoken_forms import generate


def test_settings_are_those_of_the_paper():
    base = wmt14.settings("base", "de", 8)
    assert base["steps-per-epoch"] * base["epochs"] == 8 * 100_000
    assert base["batch-tokens"] * 8 == 25_000
    assert (base["dropout"], base["average"]) == (0.1, 5)
    big = wmt14.settings("big", "de", 5)
    assert big["steps-per-epoch"] * big["epochs"] == 5 * 300_000
    assert big["batch-tokens"] * 5 == 25_000
    assert (big["dropout"], big["average"]) == (0.3, 20)
    assert wmt14.settings("big", "fr", 8)["dropout"] == 0.1


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for seed, (name, count) in enumerate(
        [("train", 1000), ("newstest2013", 20), ("newstest2014", 20)]
    ):
        source, target = zip(*generate(seed, count, "train"), strict=True)
        (folder / f"{name}.en").write_text("\n".join(source))
        (folder / f"{name}.de.gz").write_bytes(
            gzip.compress("\n".join(target).encode())
        )
    return folder


def test_a_thousand_pairs_go_the_whole_way(data, tmp_path, capsys, monkeypatch):
    compile_ = keras.Model.compile
    monkeypatch.setattr(
        keras.Model,
        "compile",
        lambda *given, **options: compile_(
            *given, **{**options, "jit_compile": False}
        ),
    )
    run = tmp_path / "run"
    wmt14.main(
        [
            *("--data", str(data), "--output", str(run)),
            *("--vocab-size", "400", "--steps-per-update", "5", "--"),
            *("--num-layers=1", "--d-model=14", "--num-heads=2", "--d-ff=13"),
            *("--epochs=2", "--steps-per-epoch=10", "--average=2"),
        ]
    )
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(line["bleu"]["newstest2014"]) == {"greedy", "beam"}
    translator = Translator.load(run)
    facts = translator.training
    assert facts["epochs_averaged"] == [2, 1]
    assert facts["updates"] == 4
    assert facts["settings"]["batch_tokens"] == 5000
    assert facts["settings"]["factor"] == 1.0
    assert translator.source_tokenizer.vocab_size == 400
