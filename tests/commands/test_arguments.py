import argparse

import pytest

from keras_transformer import Translator, cli
from keras_transformer.commands import evaluate, translate
from keras_transformer.decoding import SIGNATURES, STRATEGIES
from tests.support.command_runs import refusal

# What is given on the command line and what reaches the Translator.
GIVEN = {
    "--max-length=7": ("max_length", 7),
    "--max-length -1": ("max_length", -1),
    "--min-length=3": ("min_length", 3),
    "--no-repeat-ngram-size=2": ("no_repeat_ngram_size", 2),
    "--repetition-penalty=1.25": ("repetition_penalty", 1.25),
    "--forbidden-ids 5 11 7": ("forbidden_ids", [5, 11, 7]),
    "--beam-size=5": ("beam_size", 5),
    "--length-penalty=0": ("length_penalty", 0),
    "--length-penalty-form=gnmt": ("length_penalty_form", 0),
    "--length-penalty-form=power": ("length_penalty_form", 1),
    "--coverage-penalty=0.25": ("coverage_penalty", 0.25),
    "--early-stopping": ("early_stopping", True),
    "--temperature=0": ("temperature", 0),
    "--top-k=3": ("top_k", 3),
    "--top-p=0.5": ("top_p", 0.5),
    "--seed=0": ("seed", 0),
}
# Those that only translate takes.
ONLY_TRANSLATE = {
    "--num-hypotheses=3": ("num_hypotheses", 3),
    "--target-prefix=zwölf": ("target_prefix", "zwölf"),
}


def names_of(strategy):
    return {argument.name for argument in SIGNATURES[strategy].inputs[1:]}


def parse(command, *arguments):
    subparsers = argparse.ArgumentParser().add_subparsers()
    return command.add_parser(subparsers).parse_args(["run", *arguments])


@pytest.fixture
def calls(monkeypatch):
    """Replaces the Translator by one that notes what it is given."""
    calls = []

    class Recorder:
        def hypotheses(self, texts, **options):
            calls.append(options)
            return []

        def translate(self, texts, **options):
            calls.append(options)
            return texts

    monkeypatch.setattr(Translator, "load", lambda folder: Recorder())
    monkeypatch.setattr(translate, "read_chunks", lambda *_: [["one"]])
    monkeypatch.setattr("sys.stdin", argparse.Namespace(buffer=None))
    return calls


def test_every_input_of_a_strategy_is_an_option():
    named = {name for name, _ in (GIVEN | ONLY_TRANSLATE).values()}
    assert named == set().union(*map(names_of, STRATEGIES))
    for name in named:
        assert hasattr(parse(translate), name)


@pytest.mark.parametrize("given", [*GIVEN, *ONLY_TRANSLATE])
def test_translate_passes_on_what_is_given_and_nothing_else(calls, given):
    name, value = {**GIVEN, **ONLY_TRANSLATE}[given]
    strategy = next(s for s in STRATEGIES if name in names_of(s))
    command = ["translate", "run", f"--strategy={strategy}"]
    assert cli.main([*command, *given.split()]) == 0
    expected = {
        "strategy": strategy,
        "batch_size": 32,
        "token_log_probs": False,
        "attention": False,
        name: value,
    }
    assert calls == [expected, expected]
    assert type(calls[0][name]) is type(value) or value == 0


@pytest.mark.parametrize("given", GIVEN)
def test_evaluate_takes_the_same_options(calls, tmp_path, given):
    (tmp_path / "x.tsv").write_text("a\ta\n")
    name, value = GIVEN[given]
    strategy = next(s for s in STRATEGIES if name in names_of(s))
    command = [*("evaluate", "run", f"--tsv={tmp_path}/x.tsv")]
    command += [f"--strategy={strategy}", "--batch-size=7"]
    assert cli.main([*command, *given.split()]) == 0
    expected = {"strategy": strategy, "batch_size": 7, name: value}
    assert calls == [expected, expected]


def test_evaluate_gives_each_of_both_strategies_what_it_takes(calls, tmp_path):
    (tmp_path / "x.tsv").write_text("a\ta\n")
    given = [text for text in GIVEN if GIVEN[text][0] in names_of("beam")]
    command = ["evaluate", "run", f"--tsv={tmp_path}/x.tsv"]
    assert cli.main([*command, *" ".join(given).split()]) == 0
    greedy, beam = (set(options) for options in calls[-2:])
    both = {"strategy", "batch_size"}
    assert greedy == names_of("greedy") - {"target_prefix"} | both
    assert beam == (
        names_of("beam") - {"target_prefix", "num_hypotheses"} | both
    )


def test_evaluate_refuses_what_neither_strategy_takes(
    run, loaded, tmp_path, capsys
):
    (tmp_path / "x.tsv").write_text("a\ta\n")
    command = ["evaluate", run, f"--tsv={tmp_path}/x.tsv"]
    line = refusal(capsys, *command, "--top-k=3")
    assert "'beam' takes the options ['beam_size'" in line
    assert line.endswith("got 'top_k'")
    line = refusal(capsys, *command, "--seed=3")
    assert "seed is for strategy" in line


@pytest.mark.parametrize("command", [translate, evaluate])
def test_help_sorts_the_options_by_strategy(command):
    subparsers = argparse.ArgumentParser().add_subparsers()
    text = command.add_parser(subparsers).format_help()
    titles = ["\nevery strategy:\n", "\nbeam:\n", "\nsample:\n"]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    for title, names in zip(
        titles,
        (
            names_of("greedy") - {"target_prefix"},
            names_of("beam") - names_of("greedy") - {"num_hypotheses"},
            names_of("sample") - names_of("greedy"),
        ),
        strict=True,
    ):
        group = text[text.index(title) :].split("\n\n")[0]
        options = [
            line.split()[0]
            for line in group.splitlines()
            if line.startswith("  --")
        ]
        expected = {f"--{name.replace('_', '-')}" for name in names}
        assert set(options) == expected and len(options) == len(expected)
