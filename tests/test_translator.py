import doctest
import json

import numpy as np
import pytest

from keras_transformer import Tokenizer, Transformer, Translator, translator
from keras_transformer.folders import write_checksums
from tests.support.small_models import randomize

LINES = [
    "one two three four five",
    "six seven eight nine ten",
    "eleven twelve thirteen",
]
TEXTS = [
    "seven",
    "one two three four five six seven eight nine ten",
    "",
    "two two",
    " \t ",
    "no such word",
    "ten nine eight",
]
SIZES = {
    "num_layers": 2,
    "d_model": 14,
    "num_heads": 2,
    "d_ff": 13,
    "dropout": 0.1,
}


def learn(vocab_size=293, lines=LINES, **options):
    return Tokenizer.train_from_lines(lines * 7, vocab_size, **options)


def make_translator(source=None, target=None, training=None, **changes):
    source = source or learn()
    sizes = {**SIZES, "source_vocab_size": source.vocab_size, **changes}
    if target:
        sizes = {
            "target_vocab_size": target.vocab_size,
            "tying": "target",
            **sizes,
        }
    model = randomize(Transformer(**sizes), seed=3)
    return Translator(model, source, target, training)


@pytest.fixture(scope="module")
def one():
    return make_translator(training={"seed": 7, "examples": ["one", "zwölf"]})


@pytest.fixture
def saved(one, tmp_path):
    one.save(tmp_path / "run")
    return tmp_path / "run"


def change_json(path, **changes):
    values = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**values, **changes}), "utf-8")
    write_checksums(path.parent)


def test_n_texts_give_n_texts_and_blank_ones_nothing(one):
    found = one.translate(TEXTS)
    assert [bool(text) for text in found] == [
        bool(text.strip()) for text in TEXTS
    ]
    assert len(set(found)) > 4
    assert one.translate([]) == []


def test_one_text_gives_one_text(one):
    assert one.translate("seven") == one.translate(["seven"])[0] != ""
    assert one.translate("") == ""


@pytest.mark.parametrize("strategy", ["beam", "greedy"])
def test_batches_change_neither_order_nor_result(one, strategy):
    expected = [one.translate(text, strategy) for text in TEXTS]
    for batch_size in (1, 2, 3, 7, 11):
        assert one.translate(TEXTS, strategy, batch_size) == expected


def test_hypotheses_are_sorted_and_different(one):
    found = one.hypotheses(TEXTS, beam_size=5, num_hypotheses=3)
    assert len(found) == len(TEXTS)
    for text, row in zip(TEXTS, found, strict=True):
        scores = [hypothesis.score for hypothesis in row]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(hypothesis.token_ids) for hypothesis in row}) == (
            3 if text.strip() else 1
        )
    assert [row[0].text for row in found] == one.translate(TEXTS, beam_size=5)


def test_blank_text_is_told_as_unfinished_and_empty(one):
    [[hypothesis]] = one.hypotheses([""], num_hypotheses=3)
    assert hypothesis == translator.Translation("", 0.0, [], False)


def test_ids_end_in_eos_exactly_when_finished(one):
    rows = one.hypotheses(["seven"], num_hypotheses=4)
    rows += one.hypotheses(["seven"], "greedy", max_length=5)
    for hypothesis in sum(rows, []):
        assert (hypothesis.token_ids[-1] == 2) == hypothesis.finished
        assert 2 not in hypothesis.token_ids[:-1]
        assert not {0, 1} & set(hypothesis.token_ids)
        ids = [i for i in hypothesis.token_ids if i != 2]
        assert hypothesis.text == one.target_tokenizer.detokenize(ids)


def test_default_length_is_source_and_fifty(one):
    ids = one.tokenize_source(["seven"])[0]
    # More is asked for than the cap allows, so the cap decides.
    [[cut]] = one.hypotheses(["seven"], "greedy", min_length=999)
    assert len(cut.token_ids) == len(ids) + 50
    assert not cut.finished
    [[short]] = one.hypotheses(["seven"], max_length=3, min_length=3)
    assert len(short.token_ids) == 3


def test_batch_is_sources_with_eos_and_padding(one):
    rows = one.tokenize_source(["", "two two"])
    assert rows[0] == [2] and rows[1][-1] == 2 and len(rows[1]) > 1
    padded = one.pad(rows)
    assert padded.dtype == np.int32
    assert padded.tolist() == [[2, *[0] * (len(rows[1]) - 1)], rows[1]]


def test_ids_beyond_the_tokenizer_are_never_generated():
    tokenizer = learn(281)
    larger = make_translator(tokenizer, source_vocab_size=613)
    for row in larger.hypotheses(TEXTS, num_hypotheses=4):
        for hypothesis in row:
            assert all(i < 281 for i in hypothesis.token_ids)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"strategy": "best"}, r"strategy must be one of .*strategy='best'"),
        ({"batch_size": 0}, r"batch_size must be .* at least 1, .*size=0"),
        ({"batch_size": 2.0}, r"batch_size must be an int .*batch_size=2.0"),
        ({"beam_size": 0}, r"beam_size must be .* at least 1, .*_size=0"),
        ({"beam_size": True}, r"beam_size must be an int .*beam_size=True"),
        ({"beam_size": "4"}, r"beam_size must be an int .*beam_size='4'"),
        ({"num_hypotheses": 0}, r"num_hypotheses must be .*hypotheses=0"),
        (
            {"num_hypotheses": 5},
            r"at most beam_size, got num_hypotheses=5, beam_size=4",
        ),
        ({"max_length": -2}, r"max_length must be .* least -1, .*length=-2"),
        ({"min_length": -1}, r"min_length must be .* least 0, .*length=-1"),
        ({"max_length": 2**31}, r"max_length must be an int32, at most 21474"),
        ({"length_penalty": 11}, r"in \[-10, 10\], got length_penalty=11"),
        ({"length_penalty": float("nan")}, r"got length_penalty=nan"),
        ({"length_penalty": "x"}, r"must be a number .*length_penalty='x'"),
        ({"beam": 4}, r"'beam' takes the options \['beam_size', .*got 'beam'"),
        (
            {"strategy": "greedy", "beam_size": 4},
            r"'greedy' takes the options \['max_length', 'min_length'\], "
            r"got 'beam_size'",
        ),
    ],
)
def test_options_that_do_not_fit_are_named(one, options, message):
    for call in (one.translate, one.hypotheses):
        with pytest.raises(ValueError, match=message):
            call([], **options)


def test_numbers_of_numpy_are_numbers(one):
    expected = one.translate("seven", beam_size=3, length_penalty=0.5)
    options = {
        "beam_size": np.int64(3),
        "length_penalty": np.float32(0.5),
        "batch_size": np.int32(1),
    }
    assert one.translate("seven", **options) == expected


@pytest.mark.parametrize("texts", [["one", None], [b"one"], 7])
def test_what_is_no_text_is_refused(one, texts):
    with pytest.raises(ValueError, match="texts must be a list of str, got"):
        one.translate(texts)
    with pytest.raises(ValueError, match="a list of str, got str: 'one'"):
        one.hypotheses("one")


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    "ids, message",
    [
        ({"eos_id": 4}, "has eos_id=4, the model eos_id=2; they must agree"),
        ({"pad_id": -1}, "has pad_id=-1, the model pad_id=0"),
        ({"bos_id": 3, "unk_id": 1}, "has bos_id=3, the model bos_id=1"),
        ({"unk_id": 4}, "has unk_id=4, the model unk_id=3"),
    ],
)
def test_special_ids_must_agree(side, ids, message):
    tokenizers = {"source": learn(), "target": learn(), side: learn(**ids)}
    model = Transformer(293, **SIZES)
    with pytest.raises(ValueError, match=f"the {side} tokenizer {message}"):
        Translator(model, tokenizers["source"], tokenizers["target"])


def test_tokenizer_must_not_know_more_than_the_model():
    model = Transformer(283, 281, tying="none", **SIZES)
    Translator(model, learn(283), learn(281))
    message = "target tokenizer knows 283 pieces, .* target_vocab_size=281"
    with pytest.raises(ValueError, match=message):
        Translator(model, learn(283))
    message = "source tokenizer knows 293 pieces, .* source_vocab_size=283"
    with pytest.raises(ValueError, match=message):
        Translator(model, learn(293), learn(281))


def assert_equal_weights(first, second):
    pairs = zip(
        first.transformer.get_weights(),
        second.transformer.get_weights(),
        strict=True,
    )
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


def assert_equal_greedy(first, second):
    found = second.hypotheses(TEXTS, "greedy", max_length=5)
    assert found == first.hypotheses(TEXTS, "greedy", max_length=5)


def test_saved_translator_loads_the_same(one, saved):
    loaded = Translator.load(str(saved))
    assert_equal_weights(one, loaded)
    assert loaded.hypotheses(TEXTS) == one.hypotheses(TEXTS)
    assert loaded.training == {"seed": 7, "examples": ["one", "zwölf"]}
    assert loaded.source_tokenizer is loaded.target_tokenizer
    assert sorted(path.name for path in saved.iterdir()) == [
        "SHA256SUMS",
        "config.json",
        "model.weights.h5",
        "tokenizer.model",
        "training.json",
    ]


def test_folder_may_be_moved(one, saved):
    moved = saved.parent / "ünïcode folder"
    saved.rename(moved)
    assert_equal_weights(one, Translator.load(moved))


def test_separate_tokenizers_stay_separate(tmp_path):
    target = learn(281, [line.upper() for line in LINES])
    two_tokenizers = make_translator(target=target, num_layers=1)
    two_tokenizers.save(tmp_path / "run")
    assert not (tmp_path / "run" / "tokenizer.model").exists()
    loaded = Translator.load(tmp_path / "run")
    assert_equal_weights(two_tokenizers, loaded)
    assert loaded.source_tokenizer.vocab_size == 293
    assert loaded.target_tokenizer.vocab_size == 281
    assert_equal_greedy(two_tokenizers, loaded)


def test_config_holds_every_choice_of_the_model(tmp_path):
    made = make_translator(
        num_layers=1,
        d_k=5,
        d_v=3,
        activation="gelu",
        norm_first=True,
        tying="none",
        output_bias=True,
        attention_dropout=0.1,
    )
    made.save(tmp_path / "run")
    loaded = Translator.load(tmp_path / "run")
    assert loaded.transformer.get_config() == made.transformer.get_config()
    assert_equal_weights(made, loaded)
    assert_equal_greedy(made, loaded)


def test_mixed_precision_model_saves_and_loads(tmp_path):
    mixed = make_translator(dtype="mixed_bfloat16", num_layers=1)
    mixed.save(tmp_path / "run")
    loaded = Translator.load(tmp_path / "run")
    assert loaded.transformer.dtype_policy.name == "mixed_bfloat16"
    assert loaded.transformer.weights[0].dtype == "float32"
    assert_equal_weights(mixed, loaded)
    assert_equal_greedy(mixed, loaded)


def test_save_refuses_a_folder_that_exists(one, saved):
    before = (saved / "SHA256SUMS").read_bytes()
    with pytest.raises(ValueError, match="run' exists; expected a path where"):
        one.save(saved)
    assert (saved / "SHA256SUMS").read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["run"]


def test_failing_save_leaves_nothing(tmp_path):
    unsaveable = make_translator()

    def no_space(path):
        raise OSError("no space left")

    unsaveable.transformer.save_weights = no_space
    with pytest.raises(OSError, match="no space left"):
        unsaveable.save(tmp_path / "new" / "run")
    assert list(tmp_path.iterdir()) == []


def test_facts_that_json_cannot_hold_are_refused_at_once():
    message = "training must hold what JSON can, got .*object"
    with pytest.raises(ValueError, match=message):
        make_translator(training={"model": object()})
    with pytest.raises(ValueError, match="training must hold what JSON can"):
        make_translator(training={"loss": float("nan")})


def test_folder_of_something_else_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        message = f"Translator.save wrote, got '{path}', which holds no config"
        with pytest.raises(ValueError, match=message):
            Translator.load(path)


@pytest.mark.parametrize(
    "name", ["config.json", "model.weights.h5", "tokenizer.model"]
)
def test_changed_file_is_named(saved, name):
    data = bytearray((saved / name).read_bytes())
    data[len(data) // 2] ^= 1
    (saved / name).write_bytes(data)
    with pytest.raises(ValueError, match=f"{name}' has changed"):
        Translator.load(saved)


@pytest.mark.parametrize(
    "name", ["training.json", "model.weights.h5", "tokenizer.model"]
)
def test_missing_file_is_named(saved, name):
    (saved / name).unlink()
    with pytest.raises(ValueError, match=f"{name}' is missing"):
        Translator.load(saved)


def test_newer_format_is_refused(saved):
    change_json(saved / "config.json", format=2)
    message = "config.json' has format 2, this version reads up to 1; install"
    with pytest.raises(ValueError, match=message):
        Translator.load(saved)


def test_tokenizer_of_another_run_is_refused(saved):
    learn(eos_id=4).save(saved / "tokenizer.model")
    write_checksums(saved)
    message = "source tokenizer has eos_id=4, the model eos_id=2"
    with pytest.raises(ValueError, match=message):
        Translator.load(saved)


def test_examples_in_the_docstrings_hold():
    failed, tried = doctest.testmod(translator)
    assert tried > 0 and failed == 0
