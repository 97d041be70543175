import json

import pytest

from keras_transformer import Tokenizer, Translator, batches, cli
from keras_transformer.text import ParallelCorpus
from keras_transformer.training import (
    MaskedCrossEntropy,
    Perplexity,
    TokenAccuracy,
)
from keras_transformer.version import __version__
from tests.support.command_runs import (
    SMALL,
    assert_matches,
    pairs,
    refusal,
    tree,
)


def test_train_prints_one_line_of_json_and_nothing_else(trained):
    run, output, errors = trained
    facts = json.loads(output)
    assert output.count("\n") == 1
    assert facts["model"] == str(run)
    assert facts["pairs"] == 50
    assert facts["epochs"] == facts["updates"] == 3
    assert "Epoch 3/3" in errors
    assert "learning the vocabulary\n" in errors
    assert "50 pairs in 1 batches" in errors
    assert "Traceback" not in errors


def test_train_keeps_the_facts_of_the_training(trained):
    run, output, _ = trained
    facts = Translator.load(run).training
    assert facts["settings"]["vocab_size"] == 293
    assert facts["settings"]["size"] == "tiny"
    assert facts["settings"]["peak_rate"] == 0.03
    assert facts["seed"] == 7
    assert facts["examples"] == pairs()[0][:100]
    assert {"keras", "tensorflow", "python"} < set(facts["versions"])
    assert facts["versions"]["keras_transformer"] == __version__
    assert len(facts["history"]["val_perplexity"]) == 3
    assert facts["val_perplexity"] == min(facts["history"]["val_perplexity"])
    printed = json.loads(output)
    assert printed["val_perplexity"] == facts["val_perplexity"]


def test_train_learns(trained):
    history = Translator.load(trained[0]).training["history"]
    assert history["loss"][-1] < history["loss"][0] - 0.1


def test_saved_weights_are_those_that_were_validated(trained, corpus):
    translator = Translator.load(trained[0])
    model, tokenizer = translator.transformer, translator.source_tokenizer
    metrics = [TokenAccuracy(), Perplexity()]
    model.compile(loss=MaskedCrossEntropy(), metrics=metrics)
    valid = ParallelCorpus.from_tsv(corpus / "x.tsv")
    found = model.evaluate(
        batches(valid, tokenizer), verbose=0, return_dict=True
    )
    facts = translator.training
    assert abs(found["token_accuracy"] - facts["val_token_accuracy"]) < 1e-4
    assert found["perplexity"] == pytest.approx(
        facts["val_perplexity"], rel=1e-4
    )


def test_trained_model_is_what_the_options_say(trained):
    config = Translator.load(trained[0]).transformer.get_config()
    assert config["d_model"] == 14
    assert config["source_vocab_size"] == 293
    assert config["dropout"] == 0.1  # of --size tiny
    assert config["tying"] == "all"


def test_train_takes_separate_tokenizers_of_sentencepiece(
    corpus, tmp_path, capsys, uncompiled
):
    source, target = pairs()
    Tokenizer.train_from_lines(source, 283).save(tmp_path / "s.model")
    Tokenizer.train_from_lines(target, 281).save(tmp_path / "t.model")
    code = cli.main(
        [
            *("train", f"--tsv={corpus}/x.tsv", *SMALL, "--epochs=1"),
            f"--source-tokenizer={tmp_path}/s.model",
            f"--target-tokenizer={tmp_path}/t.model",
            *("--norm-first", "--mixed-precision", "--verbose=0"),
            f"--output={tmp_path}/new/run",
        ]
    )
    output, errors = capsys.readouterr()
    assert code == 0, errors
    assert json.loads(output)["epoch_kept"] == 1
    translator = Translator.load(tmp_path / "new" / "run")
    config = translator.transformer.get_config()
    assert config["norm_first"] is True
    assert config["tying"] == "target"
    assert translator.transformer.dtype_policy.name == "mixed_bfloat16"
    assert translator.source_tokenizer.vocab_size == 283
    assert translator.target_tokenizer.vocab_size == 281
    assert translator.training["examples"] == source[:100]


def test_train_goes_on_from_a_saved_model(
    trained, corpus, tmp_path, capsys, uncompiled
):
    before = Translator.load(trained[0])
    code = cli.main(
        [
            *("train", f"--tsv={corpus}/x.tsv", f"--from={trained[0]}"),
            *(f"--valid-tsv={corpus}/x.tsv", "--dropout=0.25", "--epochs=2"),
            *("--peak-rate=0.001", "--warmup-steps=3", "--verbose=0"),
            f"--output={tmp_path}/run",
        ]
    )
    output, errors = capsys.readouterr()
    assert code == 0, errors
    assert f"starting from {trained[0]}, " in errors
    assert "learning the vocabulary" not in errors
    after = Translator.load(tmp_path / "run")
    expected = {**before.transformer.get_config(), "dropout": 0.25}
    found = after.transformer.get_config()
    assert {**found, "name": None} == {**expected, "name": None}
    assert (
        after.source_tokenizer.model_proto
        == before.source_tokenizer.model_proto
    )
    # It starts where the other ended: small steps leave it near, and better.
    for one, other in zip(
        before.transformer.get_weights(),
        after.transformer.get_weights(),
        strict=True,
    ):
        assert 0 < abs(one - other).max() < 0.01
    facts = json.loads(output)
    assert facts["val_loss"] < before.training["val_loss"]
    assert after.training["settings"]["start"] == str(trained[0])
    assert facts["updates"] == 2


def test_train_from_a_saved_model_wants_a_rate(
    trained, corpus, tmp_path, capsys
):
    line = refusal(
        capsys,
        *("train", f"--tsv={corpus}/x.tsv", f"--from={trained[0]}"),
        f"--output={tmp_path}/run",
    )
    assert line == (
        f"--from {trained[0]} begins a new schedule; expected --peak-rate or "
        "--factor too"
    )


@pytest.mark.parametrize(
    "option",
    [
        *("--vocab-size=300", "--model-type=bpe", "--separate-vocabularies"),
        *("--source-tokenizer=s", "--size=tiny"),
        *("--num-layers=1", "--d-model=14", "--num-heads=2", "--d-ff=13"),
        *("--norm-first", "--tying=all"),
    ],
)
def test_train_refuses_what_a_saved_model_has_decided(
    trained, corpus, tmp_path, capsys, option
):
    line = refusal(
        capsys,
        *("train", f"--tsv={corpus}/x.tsv", f"--from={trained[0]}", option),
        *("--peak-rate=0.001", f"--output={tmp_path}/run"),
    )
    assert line == (
        f"{option.partition('=')[0]} is decided by the model of "
        f"--from {trained[0]}; expected one of the two"
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--source {c}/s", "expected --source and --target, or --tsv alone"),
        ("--source {c}/s --target {c}/t.gz --tsv {c}/x.tsv", "--tsv alone"),
        ("--tsv {c}/x.tsv --valid-source {c}/s", "and --valid-target, or"),
        ("--source {c}/s --target {c}/short", "got 50 in .*s and 2 in .*short"),
        ("--source {c}/no --target {c}/s", "{c}/no: there is no such file"),
        ("--tsv {c}/empty", "{c}/empty: expected a sentence pair .*got 0"),
        ("--source {c}/s --target {c}/bad", "{c}/bad, line 3: expected UTF-8"),
        ("--tsv {c}/short", "{c}/short, line 1: expected 2 columns"),
        ("--tsv {c}/x.tsv --valid-tsv {c}/no", "{c}/no: there is no such"),
        ("--tsv {c}/x.tsv", "vocab_size: the text allows .* got 10000"),
        ("--tsv {c}/x.tsv --vocab-size 9", "special pieces need .* got 9"),
        ("{ok} --d-model 30 --num-heads 4", "d_model.*30.*num_heads.*4"),
        ("{ok} --num-layers 0", "num_layers must be .*num_layers=0"),
        ("{ok} --dropout 1", "dropout .*1"),
        ("{ok} --label-smoothing 1.5", "label_smoothing .*1.5"),
        ("{ok} --warmup-steps 0", "warmup_steps .*warmup_steps=0"),
        ("{ok} --factor 0", "factor must be a number above 0"),
        ("{ok} --batch-tokens 5", "batch_tokens=5 is less than the longest"),
        ("{ok} --max-length 2", "max_length=2 leaves none of the 50 pairs"),
        ("{ok} --epochs 0", "--epochs must be at least 1, got 0"),
        ("{ok} --ema 1", r"--ema must be in \[0, 1\), got 1.0"),
        ("{ok} --patience 0 --valid-tsv {c}/x.tsv", "--patience must be at"),
        ("{ok} --patience 3", "--patience needs validation; expected"),
        ("{ok} --average 0", "--average must be at least 1, got 0"),
        ("{ok} --keep -1", "--keep must be at least 0, got -1"),
        ("{ok} --steps-per-update 0", "--steps-per-update must be at least 1"),
        (
            "{ok} --steps-per-epoch 5 --steps-per-update 2",
            "--steps-per-epoch must be a multiple of --steps-per-update 2, .*5",
        ),
        ("{ok} --bleu-every 2", "--bleu-every needs validation; expected"),
        (
            "{ok} --valid-tsv {c}/x.tsv --bleu-every 3 --patience 2",
            "--patience must be at least --bleu-every 3, got 2: in between",
        ),
        (
            "{ok} --decay cosine --epochs 1",
            "--decay cosine needs more updates than --warmup-steps 500, got 1",
        ),
        ("{ok} --bpe-dropout 2", "bpe_dropout: expected 0 to 1, got 2.0"),
        (
            "{ok} --model-type unigram --bpe-dropout 0.1",
            "bpe_dropout: expected a tokenizer whose model is bpe",
        ),
        ("{ok} --separate-vocabularies --tying all", "--tying all needs one"),
        ("{ok} --source-tokenizer {c}/s", "--vocab-size is for .* learned"),
        ("{ok} --target-tokenizer {c}/s", "expected --source-tokenizer too"),
        (
            "--tsv {c}/x.tsv --source-tokenizer {c}/s",
            "{c}/s: cannot load a tokenizer: expected the bytes of a Sent",
        ),
        (
            "--tsv {c}/x.tsv --source-tokenizer {c}/no-pad.model",
            "{c}/no-pad.model: the tokenizer has no pad_id, which the model",
        ),
        (
            "--tsv {c}/x.tsv --source-tokenizer {c}/other.model "
            "--target-tokenizer {c}/usual.model",
            "the source tokenizer has eos_id=3, the model eos_id=2; they must",
        ),
    ],
)
def test_train_refuses_and_leaves_nothing(
    corpus, tmp_path, capsys, arguments, message
):
    (corpus / "short").write_text("one\ntwo\n")
    (corpus / "empty").write_text("")
    (corpus / "bad").write_bytes(b"one\ntwo\nth\xffree\n" + b"four\n" * 47)
    lines = sum(pairs(), [])
    for name, ids in (
        ("usual", {}),
        ("other", {"eos_id": 3, "unk_id": 2}),
        ("no-pad", {"pad_id": -1}),
    ):
        if name in arguments:
            tokenizer = Tokenizer.train_from_lines(lines, 293, **ids)
            tokenizer.save(corpus / f"{name}.model")
    ok = f"--tsv {corpus}/x.tsv --vocab-size 293"
    before = tree(corpus)
    given = arguments.format(c=corpus, ok=ok).split()
    line = refusal(
        capsys, "train", *SMALL, *given, f"--output={tmp_path}/new/run"
    )
    assert_matches(line, message.format(c=corpus))
    assert tree(corpus) == before
    assert tree(tmp_path) == []


def test_train_refuses_an_output_that_exists_before_it_reads(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "kept").write_text("x")
    before = tree(tmp_path)
    line = refusal(capsys, "train", "--tsv=nowhere", f"--output={tmp_path}/run")
    assert line == (
        f"output folder '{tmp_path}/run' exists; expected a path where "
        "nothing is"
    )
    line = refusal(
        capsys, "train", "--tsv=nowhere", f"--output={tmp_path}/run/kept/run"
    )
    assert f"expected '{tmp_path}/run/kept' to be a folder" in line
    assert tree(tmp_path) == before


@pytest.mark.parametrize("epochs, left", [(1, None), (3, "epoch-00001")])
def test_training_that_diverges_names_the_batch_and_the_last_checkpoint(
    corpus, tmp_path, capsys, uncompiled, epochs, left
):
    steps = "--steps-per-epoch=1" if left else "--steps-per-epoch=3"
    line = refusal(
        capsys,
        *("train", f"--tsv={corpus}/x.tsv", "--vocab-size=293", *SMALL, steps),
        *("--peak-rate=1e30", "--warmup-steps=1", f"--epochs={epochs}"),
        f"--output={tmp_path}/run",
    )
    where = "batch 1 of epoch 2" if left else "batch 2 of epoch 1"
    assert_matches(
        line,
        rf"diverged: the loss became nan at update 2 \({where}: 50 rows of "
        r"\d+ source and \d+ target ids, the pairs \d+, \d+, \d+, ... of the "
        r"corpus\); expected finite numbers; try a lower learning rate",
    )
    folder = tmp_path / "run.checkpoints"
    if left:
        assert line.endswith(
            f"the last good checkpoint, which --from takes, is {folder / left}"
        )
        Translator.load(folder / left)
    else:
        assert line.endswith("there is no checkpoint yet")
        assert tree(tmp_path) == []


def test_interrupted_training_is_quiet_and_leaves_nothing(
    corpus, tmp_path, capsys, monkeypatch
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("keras.Model.fit", interrupt)
    code = cli.main(
        [
            *("train", f"--tsv={corpus}/x.tsv", "--vocab-size=293", *SMALL),
            f"--output={tmp_path}/run",
        ]
    )
    output, errors = capsys.readouterr()
    assert code == 130
    assert output == ""
    assert "rror" not in errors and "Interrupt" not in errors
    assert tree(tmp_path) == []
