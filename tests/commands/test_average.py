import json

import numpy as np
import pytest

from keras_transformer import Tokenizer, Transformer, Translator, cli
from tests.support.command_runs import pairs, refusal

SIZES = {"num_layers": 1, "d_model": 6, "num_heads": 2, "d_ff": 7}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train_from_lines(pairs()[0], 281)


def save(path, tokenizer, shift=0.0, **options):
    model = Transformer(281, **{**SIZES, **options})
    model.set_weights(
        [
            np.full_like(array, place + shift)
            for place, array in enumerate(model.get_weights())
        ]
    )
    facts = {"examples": ["one two"], "val_perplexity": 7.5 + shift}
    Translator(model, tokenizer, training=facts).save(path)
    return str(path)


def test_average_writes_the_mean_of_the_weights(tokenizer, tmp_path, capsys):
    runs = [
        save(tmp_path / str(shift), tokenizer, shift) for shift in (0.5, 2, 5)
    ]
    output = f"{tmp_path}/new/mean"
    assert cli.main(["average", *runs, "--output", output]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts == {"model": output, "averaged": 3}
    mean = Translator.load(output)
    for place, array in enumerate(mean.transformer.get_weights()):
        np.testing.assert_array_equal(array, place + 2.5)
    assert mean.training == {"examples": ["one two"], "averaged": runs}
    assert mean.source_tokenizer.model_proto == tokenizer.model_proto


@pytest.mark.parametrize(
    "options, message",
    [
        ({"d_ff": 5}, "its d_ff differs from that of"),
        ({"dropout": 0.3}, "its dropout differs from that of"),
    ],
)
def test_average_refuses_other_models(
    tokenizer, tmp_path, capsys, options, message
):
    one = save(tmp_path / "one", tokenizer)
    other = save(tmp_path / "other", tokenizer, **options)
    line = refusal(capsys, "average", one, other, f"--output={tmp_path}/mean")
    assert line == (
        f"{other}: {message} {one}; expected models of one training"
    )
    assert not (tmp_path / "mean").exists()


def test_average_refuses_other_tokenizers(tokenizer, tmp_path, capsys):
    one = save(tmp_path / "one", tokenizer)
    swapped = Tokenizer.train_from_lines(pairs()[1], 281)
    other = save(tmp_path / "other", swapped)
    line = refusal(capsys, "average", one, other, f"--output={tmp_path}/mean")
    assert f"{other}: its source tokenizer differs" in line


def test_average_replaces_nothing(tokenizer, tmp_path, capsys):
    one = save(tmp_path / "one", tokenizer)
    line = refusal(capsys, "average", one, f"--output={one}")
    assert one in line and "exists" in line
