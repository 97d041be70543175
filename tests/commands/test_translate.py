import io
import sys

import pytest

from keras_transformer import Tokenizer, Translator, cli
from keras_transformer.commands import translate as command
from tests.support.command_runs import assert_matches, refusal, start


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
    text = "\ufeffeins\r\nzwölf\n\n" + "x\n" * 5 + "\u2028"
    lines = ["eins", "zwölf", "", *"xxxxx", "\u2028"]
    for stream in (io.BytesIO, Trickle):
        chunks = list(command.read_chunks(stream(text.encode()), 3))
        assert sum(chunks, []) == lines
        assert max(map(len, chunks)) <= 3
    bad = io.BytesIO(b"\n" * 7 + b"\xff")
    with pytest.raises(ValueError, match="standard input, line 8: expected"):
        list(command.read_chunks(bad, 3))


class Conversation(io.BytesIO):
    """Sends the next line once the last one is answered."""

    def __init__(self, output, answered):
        self.output = output
        self.answered = answered
        self.sent = 0

    def read1(self, size=-1):
        lines = self.output.buffer.getvalue().count(b"\n")
        assert lines == (self.sent if self.answered else 0)
        self.sent += 1
        return b"ten\n" if self.sent < 4 else b""


@pytest.mark.parametrize(
    "options, answered",
    [
        (["--strategy=greedy"], True),
        (["--strategy=greedy", "--json"], True),
        (["--strategy=greedy", "--target-prefix-file=prefixes"], True),
        # What is drawn for a line depends on its place among all.
        (["--strategy=sample"], False),
    ],
)
def test_translate_answers_each_line_before_it_reads_on(
    run, loaded, tmp_path, monkeypatch, options, answered
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prefixes").write_text("ONE\n\nTWO\n")
    output = io.TextIOWrapper(io.BytesIO(), "utf-8")
    stdin = io.TextIOWrapper(Conversation(output, answered))
    monkeypatch.setattr(sys, "stdin", stdin)
    monkeypatch.setattr(sys, "stdout", output)
    assert cli.main(["translate", str(run), *options]) == 0
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


def test_translate_takes_the_options_of_beam_search(translator, translate):
    given = (
        "--length-penalty-form=power --coverage-penalty=0.5 --early-stopping "
        "--no-repeat-ngram-size=1 --repetition-penalty=1.5 --max-length=7 "
        "--target-prefix=ONE --forbidden-ids 9 11"
    )
    _, found = translate(b"one two\nten five\n", *given.split())
    options = {
        "length_penalty_form": 1,
        "coverage_penalty": 0.5,
        "early_stopping": True,
        "no_repeat_ngram_size": 1,
        "repetition_penalty": 1.5,
        "max_length": 7,
        "target_prefix": "ONE",
        "forbidden_ids": [9, 11],
    }
    expected = translator.translate(["one two", "ten five"], **options)
    assert found.decode().split("\n") == [*expected, ""]
    assert all(text.startswith("ONE") for text in expected)


# === Sampling ===


def shown(text):
    """A translation as it is shown: on one line, in one column."""
    return text.replace("\n", " ").replace("\r", " ").replace("\t", " ")


SAMPLE = ("--strategy=sample", "--temperature=3", "--max-length=7")


def test_lines_are_drawn_by_their_place_among_all(translator, translate):
    # More than are read and decoded at once.
    texts = ["one two", "ten"] * 19
    data = "\n".join(texts).encode()
    options = (*SAMPLE, "--top-k=291", "--top-p=0.99", "--seed=-5")
    code, found = translate(data, *options, "--batch-size=2")
    expected = translator.translate(
        texts,
        "sample",
        temperature=3.0,
        max_length=7,
        top_k=291,
        top_p=0.99,
        seed=-5,
    )
    assert code == 0
    assert found.decode().split("\n") == [*map(shown, expected), ""]
    assert len(set(expected)) > 30
    assert translate(data, *options, "--batch-size=3") == (0, found)


def test_another_seed_or_none_draws_other_lines(translate):
    found = {
        translate(b"one two\nten\n", *SAMPLE, *seed)
        for seed in (["--seed=5"], ["--seed=6"], [], [])
    }
    assert len(found) == 4
    assert translate(b"one two\nten\n", *SAMPLE, "--seed=5") in found


def test_sampling_nothing_gives_nothing(translate):
    assert translate(b"", *SAMPLE) == (0, b"")
    assert translate(b"\n \n", *SAMPLE) == (0, b"\n\n")


# === A forced start ===

TEXTS = ["one two", "", "ten", "two two", "six"]
PREFIXES = ["TEN", "ONE", "", "TWO", "zwölf\u2028"]


@pytest.fixture
def prefixes(tmp_path):
    """Writes a file of prefixes; gives the option that names it."""

    def write(data):
        (tmp_path / "prefixes").write_bytes(data)
        return f"--target-prefix-file={tmp_path}/prefixes"

    return write


@pytest.mark.parametrize("strategy", ["greedy", "sample"])
def test_each_line_may_have_its_own_prefix(
    translator, translate, prefixes, monkeypatch, strategy
):
    monkeypatch.setattr(command, "_BATCHES_AT_ONCE", 1)
    seed = {"seed": 5} if strategy == "sample" else {}
    expected = translator.translate(
        TEXTS, strategy, target_prefix=PREFIXES, max_length=29, **seed
    )
    for text, prefix, found in zip(TEXTS, PREFIXES, expected, strict=True):
        assert found.startswith(prefix.strip()) if text else found == ""
    options = [f"--strategy={strategy}", "--max-length=29", "--batch-size=2"]
    options += [f"--seed={seed}" for seed in seed.values()]
    lines = "\n".join(PREFIXES).encode()
    for data in (
        lines + b"\n",
        b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n"),
    ):
        code, found = translate(
            "\n".join(TEXTS).encode(), *options, prefixes(data)
        )
        assert code == 0
        assert found.decode().split("\n") == [*map(shown, expected), ""]


@pytest.mark.parametrize(
    "data, prefix_lines, answered, message",
    [
        (
            b"one\n" * 5,
            b"ONE\n" * 3,
            2,
            "{file}: expected as many lines as standard input has, got 3 and "
            "a line 4 on standard input",
        ),
        (b"one\n", b"", 0, "{file}: .* got 0 and a line 1 on standard input"),
        (
            b"one\n" * 3,
            b"ONE\n" * 3 + b"\n",
            3,
            "{file}, line 4: expected as many lines as standard input has, "
            "which ended after 3",
        ),
        (b"", b"\n", 0, "{file}, line 1: .* which ended after 0"),
        (
            b"one\n" * 3,
            b"ONE\nTWO\nX\xff\n",
            2,
            "{file}, line 3: expected UTF-8 text, got the bytes ff",
        ),
    ],
)
def test_prefixes_that_are_not_one_a_line_are_refused(
    translate,
    prefixes,
    capsys,
    monkeypatch,
    data,
    prefix_lines,
    answered,
    message,
):
    monkeypatch.setattr(command, "_BATCHES_AT_ONCE", 1)
    option = prefixes(prefix_lines)
    options = ("--strategy=greedy", "--max-length=5", "--batch-size=2", option)
    code, found = translate(data, *options)
    assert code == 2
    assert found.count(b"\n") == answered
    last = capsys.readouterr().err.splitlines()[-1]
    file = option.removeprefix("--target-prefix-file=")
    assert_matches(last, f"^keras-tr.*: error: {message.format(file=file)}$")


def test_missing_file_of_prefixes_is_named_before_the_model_is_read(
    capsys, monkeypatch
):
    monkeypatch.setattr(Translator, "load", None)
    line = refusal(capsys, "translate", "x", "--target-prefix-file=nowhere")
    assert line == "[Errno 2] No such file or directory: 'nowhere'"


def test_prefix_comes_from_one_place(capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main("translate x --target-prefix a --target-prefix-file b".split())
    assert exit_.value.code == 2
    assert (
        "not allowed with argument --target-prefix" in capsys.readouterr().err
    )


# === Refusals ===


@pytest.mark.parametrize(
    "options, message",
    [
        ("--beam-size 0", "beam_size must be an int from 1 to"),
        ("--num-hypotheses 5", "num_hypotheses must be at most beam_size"),
        ("--num-hypotheses 0", "num_hypotheses must be an int from 1 to"),
        ("--batch-size 0", "batch_size must be an int from 1 to"),
        ("--length-penalty nan", "length_penalty must be a number from -10"),
        ("--coverage-penalty -1", "coverage_penalty must be a number from 0"),
        ("--strategy greedy --beam-size 2", "'greedy' takes the options"),
        ("--top-k 3", "'beam' takes the options"),
        ("--strategy sample --early-stopping", "'sample' takes the options"),
        ("--strategy sample --top-p 0", "top_p must be a number from 1e-06"),
        ("--seed 3", "seed is for strategy=\"sample\", got strategy='beam'"),
        ("--strategy sample --seed 2147483648", "seed must be an int from"),
        ("--forbidden-ids 5 -1", "forbidden_ids must be ints from"),
        (
            "--forbidden-ids 293",
            "from 0 to 292 in an array of rank 1, got forbidden_ids=",
        ),
        ("--json --beam-size 0", "beam_size must be an int from 1 to"),
    ],
)
def test_translate_refuses_options_before_it_reads(
    run, loaded, capsys, monkeypatch, options, message
):
    monkeypatch.setattr(sys, "stdin", None)
    line = refusal(capsys, "translate", run, *options.split())
    assert message in line


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
