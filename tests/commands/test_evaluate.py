import json

from keras_transformer import Translator, cli
from tests.support.command_runs import assert_matches, refusal


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
