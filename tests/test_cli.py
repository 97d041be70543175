import gzip
import io
import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest

from keras_transformer import Tokenizer, Translator, batches, cli
from keras_transformer.commands import export
from keras_transformer.exporting import ParityError
from keras_transformer.text import ParallelCorpus
from keras_transformer.training import (
    MaskedCrossEntropy,
    Perplexity,
    TokenAccuracy,
)
from keras_transformer.version import __version__

WORDS = "one two three four five six seven eight nine ten eleven".split()
SMALL = (
    "--num-layers=1 --d-model=14 --num-heads=2 --d-ff=13 --epochs=3"
).split()


def pairs(count=50):
    generator = np.random.default_rng(5)
    rows = [generator.choice(WORDS, 5) for _ in range(count)]
    return [" ".join(row) for row in rows], [
        " ".join(row[::-1]).upper() for row in rows
    ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    source, target = pairs()
    (folder / "s").write_text("\n".join(source), "utf-8")
    (folder / "t.gz").write_bytes(gzip.compress("\n".join(target).encode()))
    rows = zip(source, target, strict=True)
    (folder / "x.tsv").write_text("\n".join(map("\t".join, rows)), "utf-8")
    return folder


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    """The folder of a run, its standard output and its standard error."""
    run = tmp_path_factory.mktemp("runs") / "run"
    output, errors = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", output)
        patch.setattr(sys, "stderr", errors)
        code = cli.main(
            [
                *("train", f"--output={run}", "--vocab-size=293", *SMALL),
                *(f"--source={corpus}/s", f"--target={corpus}/t.gz"),
                *(f"--valid-tsv={corpus}/x.tsv", "--seed=7"),
                *("--warmup-steps=2", "--peak-rate=0.03", "--ema=0.5"),
            ]
        )
    assert code == 0, errors.getvalue()
    return run, output.getvalue(), errors.getvalue()


@pytest.fixture
def run(trained):
    return trained[0]


@pytest.fixture(scope="module")
def translator(trained):
    return Translator.load(trained[0])


@pytest.fixture
def loaded(translator, monkeypatch):
    """Lets the command load at once what is loaded already."""
    monkeypatch.setattr(Translator, "load", lambda folder: translator)


@pytest.fixture
def translate(run, loaded, monkeypatch):
    """Runs the subcommand on bytes; gives exit code and bytes."""

    def call(data, *options):
        output = io.TextIOWrapper(io.BytesIO(), "utf-8")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        monkeypatch.setattr(sys, "stdout", output)
        code = cli.main(["translate", str(run), *options])
        return code, output.buffer.getvalue()

    return call


@pytest.fixture
def uncompiled(monkeypatch):
    """Leaves XLA out, since it takes long to compile."""
    compile_ = keras.Model.compile

    def without_xla(*arguments, **options):
        compile_(*arguments, **{**options, "jit_compile": False})

    monkeypatch.setattr(keras.Model, "compile", without_xla)


def refusal(capsys, *arguments):
    """Runs what must be refused; gives the line on standard error."""
    code = cli.main([str(argument) for argument in arguments])
    output, errors = capsys.readouterr()
    assert code == 2
    assert output == ""
    assert errors.count("keras-transformer: error: ") == 1
    last = errors.splitlines()[-1]
    assert last.startswith("keras-transformer: error: ")
    return last.removeprefix("keras-transformer: error: ")


def tree(folder):
    return sorted(str(path) for path in folder.rglob("*"))


# === train ===


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


def assert_matches(line, pattern):
    with pytest.raises(ValueError, match=pattern):
        raise ValueError(line)


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


def test_training_that_diverges_is_not_saved(
    corpus, tmp_path, capsys, uncompiled
):
    line = refusal(
        capsys,
        *("train", f"--tsv={corpus}/x.tsv", "--vocab-size=293", *SMALL),
        *("--peak-rate=1e30", "--warmup-steps=1", f"--output={tmp_path}/run"),
    )
    assert_matches(line, r"diverged in epoch \d, so nothing is saved")
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


# === translate ===


def test_translate_gives_a_line_for_each_line(translator, translate):
    texts = ["one two", "", "ten", " \t ", "nine\u2028eight", "\x85\x0b\x1c"]
    code, found = translate("\n".join(texts).encode() + b"\n")
    assert code == 0
    expected = translator.translate(texts)
    assert found.decode("utf-8").split("\n") == [*expected, ""]
    assert found.count(b"\n") == 6


def test_translate_tolerates_windows_and_a_missing_last_newline(translate):
    _, expected = translate(b"one two\n\nten\n")
    for data in (
        b"one two\r\n\r\nten\r\n",
        b"\xef\xbb\xbfone two\n\nten",
        b"one two\r\n\nten\r",
    ):
        assert translate(data) == (0, expected)


@pytest.mark.parametrize("data, lines", [(b"", 0), (b"\n", 1), (b"\n\n ", 3)])
def test_translate_of_nothing_is_nothing(translate, data, lines):
    assert translate(data) == (0, b"\n" * lines)


def test_translate_passes_its_options_on(translator, translate):
    given = "--strategy=greedy --max-length=3 --min-length=2 --batch-size=2"
    _, found = translate(b"one\ntwo\nten five\n", *given.split())
    expected = translator.translate(
        ["one", "two", "ten five"], "greedy", max_length=3, min_length=2
    )
    assert found.decode().splitlines() == expected


def test_translate_gives_n_lines_a_sentence_for_n_hypotheses(
    translator, translate
):
    options = ("--num-hypotheses=3", "--beam-size=5", "--length-penalty=0")
    code, found = translate(b"one two\n\nten\n", *options)
    rows = [row.split("\t") for row in found.decode().split("\n")[:-1]]
    assert code == 0
    assert [len(row) for row in rows] == [2] * 9
    assert rows[3:6] == [["0.000000", ""], ["-inf", ""], ["-inf", ""]]
    expected = translator.hypotheses(
        ["ten"], beam_size=5, num_hypotheses=3, length_penalty=0
    )[0]
    assert [text for _, text in rows[6:]] == [row.text for row in expected]
    assert [float(score) for score, _ in rows[6:]] == pytest.approx(
        [row.score for row in expected], abs=1e-4
    )


def test_newlines_and_tabs_within_a_translation_become_blanks(
    translate, monkeypatch
):
    def detokenize(self, ids):
        return "a\nb\tc\r\u2028d"

    monkeypatch.setattr(Tokenizer, "detokenize", detokenize)
    expected = "a b c \u2028d"
    assert translate(b"one\ntwo\n")[1].decode() == f"{expected}\n" * 2
    _, found = translate(b"one\ntwo\n", "--num-hypotheses=2")
    rows = found.decode().split("\n")[:-1]
    assert [row.split("\t")[1:] for row in rows] == [[expected]] * 4


def test_translate_names_the_line_that_is_not_utf8(translate, capsys):
    code, found = translate(b"one\ntwo\nth\xff\xfeee\n")
    assert (code, found) == (2, b"")
    assert capsys.readouterr().err.splitlines()[-1] == (
        "keras-transformer: error: standard input, line 3: expected UTF-8 "
        "text, got the bytes ff fe 65 65"
    )


class Trickle(io.BytesIO):
    """A pipe that holds one byte at a time."""

    def read1(self, size=-1):
        return self.read(1)


def test_lines_are_found_however_they_arrive():
    from keras_transformer.commands.translate import read_chunks

    text = "\ufeffeins\r\nzwölf\n\n" + "x\n" * 5 + "\u2028"
    lines = ["eins", "zwölf", "", *"xxxxx", "\u2028"]
    for stream in (io.BytesIO, Trickle):
        chunks = list(read_chunks(stream(text.encode()), 3))
        assert sum(chunks, []) == lines
        assert max(map(len, chunks)) <= 3
    bad = io.BytesIO(b"\n" * 7 + b"\xff")
    with pytest.raises(ValueError, match="standard input, line 8: expected"):
        list(read_chunks(bad, 3))


def test_translate_answers_each_line_before_it_reads_on(
    run, loaded, monkeypatch
):
    class Conversation(io.BytesIO):
        """Sends the next line once the last one is answered."""

        sent = 0

        def read1(self, size=-1):
            assert output.buffer.getvalue().count(b"\n") == self.sent
            self.sent += 1
            return b"ten\n" if self.sent < 4 else b""

    output = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Conversation()))
    monkeypatch.setattr(sys, "stdout", output)
    assert cli.main(["translate", str(run), "--strategy=greedy"]) == 0
    assert output.buffer.getvalue().count(b"\n") == 3


def test_translate_is_quiet_when_nobody_reads(run, loaded, monkeypatch, capfd):
    class Closed(io.BytesIO):
        def write(self, data):
            raise BrokenPipeError

    output = io.TextIOWrapper(Closed(), "utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
    monkeypatch.setattr(sys, "stdout", output)
    assert cli.main(["translate", str(run)]) == 141
    assert "rror" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "options, message",
    [
        ("--beam-size 0", "beam_size must be an int of at least 1, got"),
        ("--num-hypotheses 5", "num_hypotheses must be at most beam_size"),
        ("--num-hypotheses 0", "num_hypotheses must be an int of at least 1"),
        ("--batch-size 0", "batch_size must be an int of at least 1, got"),
        ("--length-penalty nan", "length_penalty must be a number in"),
        ("--strategy greedy --beam-size 2", "'greedy' takes the options"),
    ],
)
def test_translate_refuses_options_before_it_reads(
    run, loaded, capsys, monkeypatch, options, message
):
    monkeypatch.setattr(sys, "stdin", None)
    line = refusal(capsys, "translate", run, *options.split())
    assert message in line


@pytest.mark.parametrize(
    "command", [["translate"], ["evaluate", "--tsv=x.tsv"], ["export", "out"]]
)
def test_folder_that_is_no_run_is_refused(
    corpus, tmp_path, capsys, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.tsv").write_text("a\tb\n")
    name, *rest = command
    line = refusal(capsys, name, "nowhere", *rest)
    assert "got 'nowhere', which holds no config.json" in line
    assert tree(tmp_path) == [f"{tmp_path}/x.tsv"]


# === evaluate ===


def test_evaluate_prints_scores_with_signature_and_json(
    run, tmp_path, capsys, monkeypatch
):
    target = ["One two three four", "", "Five six seven eight"]
    (tmp_path / "s").write_text("a\n\nb\n")
    (tmp_path / "t").write_text("\n".join(target) + "\n")
    calls = []

    def translate(self, texts, **options):
        calls.append((texts, options))
        right = options["strategy"] == "greedy"
        return [line.lower() if right else line[:7] for line in target]

    monkeypatch.setattr(Translator, "translate", translate)
    code = cli.main(
        [
            *("evaluate", str(run), f"--source={tmp_path}/s"),
            *(f"--target={tmp_path}/t", "--lowercase", "--tokenize=none"),
            *("--beam-size=3", "--max-length=9", "--batch-size=7"),
        ]
    )
    output, errors = capsys.readouterr()
    assert code == 0, errors
    greedy, beam, last = output.splitlines()
    assert greedy.startswith("greedy: BLEU|nrefs:1|case:lc|eff:no|tok:none|")
    assert beam.startswith("beam: BLEU|nrefs:1|case:lc|eff:no|tok:none|")
    scores = json.loads(last)["bleu"]
    assert list(scores) == ["greedy", "beam"]
    assert scores["greedy"] == 100 > scores["beam"]
    assert " = 100.00 " in greedy
    assert f" = {scores['beam']:.2f} " in beam
    assert "translating 3 lines: beam" in errors
    both = {"max_length": 9, "batch_size": 7}
    assert calls == [
        (["a", "", "b"], {"strategy": "greedy", **both}),
        (["a", "", "b"], {"strategy": "beam", "beam_size": 3, **both}),
    ]


def test_evaluate_takes_one_strategy_and_its_options(
    run, loaded, corpus, capsys
):
    options = "--strategy=greedy --max-length=3".split()
    files = [f"--tsv={corpus}/x.tsv"]
    assert cli.main(["evaluate", str(run), *files, *options]) == 0
    output = capsys.readouterr().out
    assert list(json.loads(output.splitlines()[-1])["bleu"]) == ["greedy"]
    assert "tok:13a" in output and "case:mixed" in output
    line = refusal(
        capsys, "evaluate", run, *files, *options, "--length-penalty=1"
    )
    assert "'greedy' takes the options" in line


def test_evaluate_refuses_sides_of_different_length(
    run, corpus, tmp_path, capsys
):
    (tmp_path / "t").write_text("one\n\n")
    line = refusal(
        capsys,
        *("evaluate", run, f"--source={corpus}/s", f"--target={tmp_path}/t"),
    )
    assert_matches(line, f"got 50 in {corpus}/s and 2 in {tmp_path}/t")


# === export ===


@pytest.fixture
def exported(monkeypatch):
    """Replaces both exporters; gives the list of their calls."""
    calls = []

    def exporter(name):
        def record(translator, folder, sentences=None):
            calls.append((name, translator.training["seed"], str(folder)))
            return {"beam": {"equal": 20, "of": 20}}

        return record

    for name in ("saved_model", "onnx"):
        monkeypatch.setattr(export, f"export_{name}", exporter(name))
    return calls


def test_export_calls_each_exporter_and_prints_parity(
    run, tmp_path, capsys, exported
):
    assert cli.main(["export", str(run), str(tmp_path)]) == 0
    folders = {name: f"{tmp_path}/{name}" for name in ("saved_model", "onnx")}
    assert exported == [(name, 7, path) for name, path in folders.items()]
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "format": name,
            "folder": path,
            "parity": {"beam": {"equal": 20, "of": 20}},
        }
        for name, path in folders.items()
    ]


def test_export_takes_formats_once(run, tmp_path, exported):
    code = cli.main(["export", str(run), str(tmp_path), "--to", "onnx", "onnx"])
    assert code == 0
    assert [name for name, *_ in exported] == ["onnx"]


def test_export_refuses_before_it_writes(run, tmp_path, capsys, exported):
    (tmp_path / "onnx").mkdir()
    line = refusal(capsys, "export", run, tmp_path)
    assert f"output folder '{tmp_path}/onnx' exists" in line
    assert exported == []
    assert tree(tmp_path) == [f"{tmp_path}/onnx"]


def test_export_names_the_extra_before_it_writes(
    run, tmp_path, capsys, exported, monkeypatch
):
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    line = refusal(capsys, "export", run, tmp_path)
    assert line == (
        "exporting to ONNX needs the extra 'export': "
        "pip install 'keras-transformer-seq2seq[export]'"
    )
    assert exported == []


def test_export_that_answers_otherwise_is_an_error(
    run, tmp_path, capsys, monkeypatch
):
    def differ(translator, folder, sentences=None):
        raise ParityError("onnx: 19 of 20\nsentences")

    monkeypatch.setattr(export, "export_onnx", differ)
    line = refusal(capsys, "export", run, tmp_path, "--to", "onnx")
    assert line == "onnx: 19 of 20 sentences"


def test_export_writes_a_saved_model_that_is_equal(run, tmp_path, capsys):
    out = tmp_path / "new" / "out"
    assert cli.main(["export", str(run), str(out), "--to=saved_model"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["parity"]) == {"greedy", "beam", "translate"}
    for figures in result["parity"].values():
        assert figures["equal"] == figures["of"] == 32
    assert (out / "saved_model" / "saved_model.pb").is_file()


# === The command itself ===


def test_version_is_printed(capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"keras-transformer {__version__}\n"


@pytest.mark.parametrize(
    "command", [[], ["train"], ["translate"], ["evaluate"], ["export"]]
)
def test_help_is_printed(capsys, command):
    with pytest.raises(SystemExit) as exit_:
        cli.main([*command, "--help"])
    assert exit_.value.code == 0
    usage = " ".join(["usage: keras-transformer", *command])
    assert capsys.readouterr().out.startswith(usage)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("", "the following arguments are required: COMMAND"),
        ("fly", "invalid choice: 'fly'"),
        ("train", "the following arguments are required: --output"),
        ("train --output x --peak-rate 1 --factor 1", "not allowed with"),
        ("train --output x --epoch 1", "unrecognized arguments: --epoch"),
        ("translate x --beam-size y", "invalid int value: 'y'"),
        ("export x y --to torch", "invalid choice: 'torch'"),
    ],
)
def test_arguments_that_do_not_parse_exit_with_2(capsys, arguments, message):
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments.split())
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def start(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "keras_transformer.cli", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        **options,
    )


def test_command_talks_and_ends_quietly_in_a_process_of_its_own(
    run, translator
):
    with start("translate", run, "--strategy=greedy") as process:
        process.stdin.write(b"one two\n\n")
        process.stdin.flush()
        found = [process.stdout.readline() for _ in range(2)]
        process.stdout.close()
        process.stdout = None
        _, errors = process.communicate(b"one\n")
    expected = translator.translate("one two", "greedy")
    assert [line.decode("utf-8") for line in found] == [f"{expected}\n", "\n"]
    assert process.returncode == 141
    assert b"Broken" not in errors and b"Traceback" not in errors


def test_command_refuses_in_a_process_of_its_own():
    with start("translate", "nowhere") as process:
        output, errors = process.communicate()
    assert process.returncode == 2
    assert output == b""
    assert b"Traceback" not in errors
    assert errors.splitlines()[-1].startswith(b"keras-transformer: error: ")
