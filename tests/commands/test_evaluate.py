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
    *lines, last = output.splitlines()
    scores = json.loads(last)
    assert list(scores) == ["bleu", "chrf", "ter"]
    assert scores["bleu"]["greedy"] == 100 > scores["bleu"]["beam"]
    assert scores["chrf"]["greedy"] == 100 > scores["chrf"]["beam"]
    assert scores["ter"]["greedy"] == 0 < scores["ter"]["beam"]
    expected = [
        (strategy, name, signature)
        for strategy in ("greedy", "beam")
        for name, signature in (
            ("bleu", "BLEU|nrefs:1|case:lc|eff:no|tok:none|"),
            ("chrf", "chrF2|nrefs:1|case:lc|eff:yes|"),
            ("ter", "TER|nrefs:1|case:lc|tok:tercom|"),
        )
    ]
    for line, (strategy, name, signature) in zip(lines, expected, strict=False):
        assert line.startswith(f"{strategy}: {signature}")
        assert f" = {scores[name][strategy]:.2f}" in line
    assert "translating 3 lines: beam" in errors
    both = {"max_length": 9, "batch_size": 7}
    assert calls == [
        (["a", "", "b"], {"strategy": "greedy", **both}),
        (["a", "", "b"], {"strategy": "beam", "beam_size": 3, **both}),
    ]


def test_evaluate_tells_bleu_by_the_length_of_the_source(
    run, tmp_path, capsys, monkeypatch
):
    lengths = [0, 1, 5, 5, 6, 10, 15, 16, 30, 31, 80, 81, 300]
    lines = [" ".join(["word"] * length) for length in lengths]
    for name in ("s", "t"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")

    def translate(self, texts, strategy, **options):
        """The beam leaves out the last word of every tenth or later."""
        return [
            " ".join(text.split()[: 9 if strategy == "beam" else None])
            for text in texts
        ]

    monkeypatch.setattr(Translator, "translate", translate)
    files = [f"--source={tmp_path}/s", f"--target={tmp_path}/t"]
    assert cli.main(["evaluate", str(run), *files]) == 0
    output = capsys.readouterr().out.splitlines()
    table = output[output.index("BLEU by words of the source:") + 1 : -1]
    rows = [line.split("\t") for line in table]
    assert rows[0] == ["words", "lines", "greedy", "beam"]
    spans = {span: int(count) for span, count, *_ in rows[1:]}
    assert spans == {
        "0-5": 4,
        "6-10": 2,
        "11-15": 1,
        "16-20": 1,
        "21-30": 1,
        "31-40": 1,
        "61-80": 1,
        "81-": 2,
    }
    assert sum(spans.values()) == len(lengths)
    scores = {span: (greedy, beam) for span, _, greedy, beam in rows[1:]}
    assert scores["0-5"] == ("100.00", "100.00")
    assert all(greedy == "100.00" for greedy, _ in scores.values())
    beam = [float(beam) for _, beam in scores.values()]
    assert beam == sorted(beam, reverse=True)
    assert beam[-1] < 1


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
