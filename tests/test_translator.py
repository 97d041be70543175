import doctest
import json
import math
import re

import keras
import numpy as np
import pytest

from keras_transformer import Tokenizer, Transformer, Translator, translator
from keras_transformer.decoding import SIGNATURES, STRATEGIES
from keras_transformer.decoding.options import RANGES
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
# Their numbers of pieces, eos included, are primes.
PAIRS = {
    "seven": "three four five",  # 3 and 11
    TEXTS[1]: "two two",  # 29 and 5
    "no such word": "eleven twelve",  # 13 and 7
}
SHAPES = [(11, 3), (5, 29), (7, 13)]
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
        ({"batch_size": 0}, r"batch_size must be an int from 1 .*size=0"),
        ({"batch_size": 2.0}, r"batch_size must be an int .*batch_size=2.0"),
        (
            {"num_hypotheses": 5},
            r"at most beam_size, got num_hypotheses=5, beam_size=4",
        ),
        ({"beam": 4}, r"'beam' takes the options \['beam_size', .*got 'beam'"),
        (
            {"strategy": "greedy", "beam_size": 4},
            r"'greedy' takes the options \['forbidden_ids', 'max_length', "
            r"'min_length', .*\], got 'beam_size'",
        ),
        ({"temperature": 2.0}, r"'beam' takes the .*got 'temperature'"),
        ({"strategy": "sample", "top": 1}, r"'top_k', 'top_p'\], got 'top'"),
    ],
)
def test_options_that_do_not_fit_are_named(one, options, message):
    for call in (one.translate, one.hypotheses):
        with pytest.raises(ValueError, match=message):
            call([], **options)


def strategies_with(name):
    return [
        strategy
        for strategy in STRATEGIES
        if name in [argument.name for argument in SIGNATURES[strategy].inputs]
    ]


def test_every_option_that_is_a_number_has_a_range():
    numbers = {
        argument.name
        for strategy in STRATEGIES
        for argument in SIGNATURES[strategy].inputs
        if argument.shape == ()
    }
    assert numbers == set(RANGES)


def is_whole(name):
    return isinstance(RANGES[name][0], int)


def values_out_of_range(name):
    smallest, largest = RANGES[name]
    if is_whole(name):
        values = [smallest - 1, largest + 1, 1.5, 1.0]
    else:
        values = [math.nextafter(smallest, -99), math.nextafter(largest, 999)]
    if RANGES[name] != (0, 1):
        values += [True, np.True_]
    return [*values, math.nan, math.inf, -math.inf, "1", None, [1]]


@pytest.mark.parametrize("name", RANGES)
def test_number_out_of_range_is_named(one, name):
    smallest, largest = RANGES[name]
    kind = "an int" if is_whole(name) else "a number"
    expected = f"{name} must be {kind} from {smallest:g} to {largest:.10g}"
    for value in values_out_of_range(name):
        message = re.escape(f"{expected}, got {name}={value!r}")
        for strategy in strategies_with(name):
            with pytest.raises(ValueError, match=f"^{message}$"):
                one.hypotheses([], strategy, **{name: value})


@pytest.mark.parametrize("name", RANGES)
def test_both_ends_of_a_range_are_in_it(one, name):
    for value in RANGES[name]:
        # As wide as that many hypotheses need.
        width = {"beam_size": value} if name == "num_hypotheses" else {}
        for strategy in strategies_with(name):
            assert one.hypotheses([], strategy, **width, **{name: value}) == []


def test_flag_may_be_a_bool(one):
    found = [
        one.translate("seven", early_stopping=value, max_length=5)
        for value in (True, 1, np.True_)
    ]
    assert len(set(found)) == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "ids",
    [[293], [5, -1], [[5], [6, 7]], [5.0], ["5"], [True], None, "5", 5, [[5]]],
)
def test_forbidden_ids_that_are_none_are_refused(one, strategy, ids):
    message = (
        "forbidden_ids must be ints from 0 to 292 in an array of rank 1, got "
        f"forbidden_ids={ids!r}"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        one.hypotheses(["one"], strategy, forbidden_ids=ids)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_forbidden_ids_are_never_generated(one, strategy):
    options = {"seed": 5} if strategy == "sample" else {}
    options["max_length"] = 7
    [[free]] = one.hypotheses(["seven"], strategy, **options)
    forbidden = np.array(free.token_ids)
    found = one.hypotheses(TEXTS, strategy, forbidden_ids=forbidden, **options)
    ids = {i for [best] in found for i in best.token_ids}
    assert ids and not ids & set(free.token_ids)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_text_for_which_nothing_is_allowed_has_no_translation(one, strategy):
    found = one.hypotheses(
        ["seven", ""],
        strategy,
        forbidden_ids=list(range(2, 293)),
        token_log_probs=True,
        attention=True,
    )
    scores = [best.score for [best] in found]
    assert scores == [float("-inf"), 0.0]
    for [best] in found:
        assert (best.text, best.token_ids, best.finished) == ("", [], False)
        assert len(best.token_log_probs) == len(best.attention) == 0


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


# === A forced start ===


def ids_of(rows):
    return [[best.token_ids for best in row] for row in rows]


def short_options(strategy):
    """Options that are quick and draw the same each time."""
    options = {"strategy": strategy, "max_length": 11}
    return {**options, "seed": 5} if strategy == "sample" else options


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_translation_begins_with_the_prefix(one, strategy):
    options = short_options(strategy)
    if strategy == "beam":
        options["num_hypotheses"] = 3
    prefix = one.target_tokenizer.tokenize("two ten")
    rows = one.hypotheses(TEXTS, target_prefix="two ten", **options)
    for text, row in zip(TEXTS, rows, strict=True):
        for best in row:
            if text.strip():
                assert best.token_ids[: len(prefix)] == prefix
                assert len(best.token_ids) > len(prefix)
                assert best.text.startswith("two ten")
            else:
                assert best.token_ids == []
    assert ids_of(rows) != ids_of(one.hypotheses(TEXTS, **options))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_text_may_have_its_own_prefix(one, strategy):
    options = short_options(strategy)
    prefixes = ["eleven twelve", "", "one", "ten", "six", "", "two"]
    expected = ids_of(one.hypotheses(TEXTS, target_prefix=prefixes, **options))
    free = ids_of(one.hypotheses(TEXTS, **options))
    for text, prefix, [ids], [free_ids] in zip(
        TEXTS, prefixes, expected, free, strict=True
    ):
        pieces = one.target_tokenizer.tokenize(prefix if text.strip() else "")
        assert ids[: len(pieces)] == pieces
        assert (ids == free_ids) == (pieces == [])
    for batch_size in (1, 2, 11):
        found = one.hypotheses(
            TEXTS, target_prefix=prefixes, batch_size=batch_size, **options
        )
        assert ids_of(found) == expected


def test_prefix_that_is_empty_or_none_forces_nothing(one):
    expected = one.translate("seven", max_length=7)
    for prefix in (None, "", " ", [""]):
        found = one.translate("seven", max_length=7, target_prefix=prefix)
        assert found == expected
    assert one.hypotheses([], target_prefix=[]) == []
    assert one.hypotheses([], target_prefix="one") == []


@pytest.mark.parametrize(
    "prefix, message",
    [
        (["one"], "target_prefix must be a str, or one for each text, got 1"),
        ([], "or one for each text, got 0 for 2 texts"),
        (["one"] * 3, "or one for each text, got 3 for 2 texts"),
        (["one", None], "target_prefix must be .* got list: .*None"),
        (b"one", "target_prefix must be .* got bytes: .*one"),
        (7, "target_prefix must be .* got int: '7'"),
    ],
)
def test_prefix_that_does_not_fit_is_named(one, prefix, message):
    for strategy in STRATEGIES:
        with pytest.raises(ValueError, match=message):
            one.translate(["one", "two"], strategy, target_prefix=prefix)


# === Seeds ===

SAMPLE = {"strategy": "sample", "max_length": 11}


def test_same_seed_draws_the_same_texts_and_another_one_others(one):
    first = one.translate(TEXTS, seed=5, **SAMPLE)
    assert one.translate(TEXTS, seed=5, **SAMPLE) == first
    other = one.translate(TEXTS, seed=6, **SAMPLE)
    for text, one_text, other_text in zip(TEXTS, first, other, strict=True):
        assert (one_text == other_text) == (not text.strip())


def test_texts_differ_by_their_place_and_not_by_their_batch(one):
    texts = ["seven"] * 3 + TEXTS
    expected = one.translate(texts, seed=5, **SAMPLE)
    assert len(set(expected[:4])) == 4
    for batch_size in (1, 2, 11):
        found = one.translate(texts, batch_size=batch_size, seed=5, **SAMPLE)
        assert found == expected
    # What comes later changes nothing.
    assert one.translate(texts[:5], seed=5, **SAMPLE) == expected[:5]


def test_seed_of_a_text_is_that_of_the_call_and_its_place(one):
    texts = ["seven", "two two", "seven"]
    rows = one.hypotheses(texts, seed=-7, **SAMPLE)
    for place, ([best], ids) in enumerate(
        zip(rows, one.tokenize_source(texts), strict=True)
    ):
        found = one.generator.sample([ids], [[-7, place]], max_length=11)
        assert found["token_ids"].numpy()[0].tolist() == best.token_ids


def test_without_a_seed_each_call_draws_anew(one):
    texts = ["seven", "no such word"]
    found = [tuple(one.translate(texts, **SAMPLE)) for _ in range(3)]
    assert len(set(found)) == 3


@pytest.mark.parametrize("seed", [-(2**31), 2**31 - 1, np.int64(5)])
def test_seed_may_be_any_int32(one, seed):
    assert one.translate("seven", seed=seed, **SAMPLE) != ""


@pytest.mark.parametrize(
    "seed", [-(2**31) - 1, 2**31, 1.0, math.nan, True, "7", [7]]
)
def test_seed_that_is_no_int32_is_named(one, seed):
    message = f"seed must be an int from .* to 2147483647, got seed={seed!r}"
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        one.translate([], "sample", seed=seed)


@pytest.mark.parametrize("strategy", ["beam", "greedy"])
def test_seed_is_refused_where_nothing_is_drawn(one, strategy):
    message = f'for strategy="sample", got strategy={strategy!r}, seed=0'
    with pytest.raises(ValueError, match=f"^seed is {message}$"):
        one.translate([], strategy, seed=0)


# === Scores and attention ===


def log_softmax(logits):
    logits = np.asarray(logits, "float64")
    logits -= logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def test_score_is_that_of_the_model(one):
    [found] = one.score(["two two"], ["eleven twelve"])
    [source] = one.tokenize_source(["two two"])
    target = [*one.target_tokenizer.tokenize("eleven twelve"), 2]
    assert found.token_ids == target
    inputs = {
        "source_ids": np.array([source]),
        "target_ids": np.array([[1, *target[:-1]]]),
    }
    logits = one.transformer(inputs, training=False)[0]
    expected = log_softmax(logits)[range(len(target)), target]
    assert found.token_log_probs.dtype == np.float32
    np.testing.assert_allclose(found.token_log_probs, expected, atol=1e-4)
    assert found.score == pytest.approx(expected.sum(), abs=1e-4)


def test_score_is_the_sum_of_its_pieces_in_any_batch(one):
    texts, translations = [*TEXTS, "two"], [*TEXTS[::-1], "  "]
    expected = one.score(texts, translations)
    for translation, score in zip(translations, expected, strict=True):
        ids = one.target_tokenizer.tokenize(translation)
        assert score.token_ids == [*ids, 2]
        assert score.token_log_probs.shape == (len(ids) + 1,)
        assert score.token_log_probs.max() < 0
        assert score.score == pytest.approx(score.token_log_probs.sum())
    for batch_size in (1, 3):
        found = one.score(texts, translations, batch_size)
        for score, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(
                score.token_log_probs, other.token_log_probs, atol=1e-4
            )


def test_score_of_a_translation_is_that_of_the_hypothesis(one):
    texts, translations = list(PAIRS), list(PAIRS.values())
    expected = one.score(texts, translations)
    attention = one.align(texts, translations)
    for strategy in STRATEGIES:
        options = {"length_penalty": 0} if strategy == "beam" else {}
        rows = one.hypotheses(
            texts,
            strategy,
            target_prefix=translations,
            forbidden_ids=list(range(3, 293)),  # Nothing but eos may follow.
            token_log_probs=True,
            attention=True,
            **options,
        )
        for i, [best] in enumerate(rows):
            assert best.text == translations[i]
            assert best.token_ids == expected[i].token_ids
            assert best.finished
            assert best.score == pytest.approx(expected[i].score, abs=1e-3)
            np.testing.assert_array_equal(
                best.token_log_probs, expected[i].token_log_probs
            )
            np.testing.assert_array_equal(best.attention, attention[i])


def test_alignment_spreads_each_piece_over_the_source(one):
    texts, translations = list(PAIRS), list(PAIRS.values())
    expected = one.align(texts, translations)
    assert [array.shape for array in expected] == SHAPES
    for array in expected:
        assert array.dtype == np.float32 and array.min() > 0
        np.testing.assert_allclose(array.sum(axis=1), 1, atol=1e-5)
        assert np.ptp(array, axis=1).min() > 1e-3
    for batch_size in (1, 2):
        found = one.align(texts, translations, batch_size)
        for array, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(array, other, atol=1e-5)


def test_alignment_is_the_mean_over_heads(one):
    [found] = one.align(["two two"], ["eleven twelve"])
    _, weights = one.transformer.decode(
        np.array(one.tokenize_source(["two two"])),
        np.array([[1, *one.target_tokenizer.tokenize("eleven twelve")]]),
        return_weights=True,
    )
    assert weights.shape == (1, 2, 7, 5)
    expected = np.mean(weights[0], axis=0)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_blank_text_aligns_to_its_end(one):
    [array] = one.align([""], [""])
    assert array.tolist() == [[1.0]]
    [array] = one.align([" "], ["two two"])
    assert array.tolist() == [[1.0]] * 5


@pytest.mark.parametrize("name", ["score", "align"])
@pytest.mark.parametrize(
    "texts, translations, options, message",
    [
        (
            ["one", "two"],
            ["one"],
            {},
            "^translations must be one for each text, got 1 for 2 texts$",
        ),
        ([], ["one"], {}, "one for each text, got 1 for 0 texts"),
        (["one"], "one", {}, "translations must be a list of str, got str"),
        (["one"], [7], {}, "translations must be a list of str, got list"),
        ("one", ["one"], {}, "texts must be a list of str, got str: 'one'"),
        ([], [], {"batch_size": 0}, "batch_size must be .* got batch_size=0"),
    ],
)
def test_pairs_that_do_not_fit_are_named(
    one, name, texts, translations, options, message
):
    with pytest.raises(ValueError, match=message):
        getattr(one, name)(texts, translations, **options)


def test_no_pairs_have_no_scores(one):
    assert one.score([], []) == one.align([], []) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_hypotheses_tell_of_each_piece_if_asked(one, strategy):
    options = short_options(strategy)
    if strategy == "beam":
        options |= {"num_hypotheses": 3, "length_penalty": 0}
    plain = one.hypotheses(TEXTS, **options)
    found = one.hypotheses(
        TEXTS, token_log_probs=True, attention=True, **options
    )
    sources = one.tokenize_source(TEXTS)
    for source, row, plain_row in zip(sources, found, plain, strict=True):
        for best, plain_best in zip(row, plain_row, strict=True):
            assert best[:4] == plain_best[:4]
            assert plain_best[4:] == (None, None)
            length = len(best.token_ids)
            assert best.token_log_probs.shape == (length,)
            assert best.token_log_probs.sum() == pytest.approx(
                best.score, abs=1e-3
            )
            assert best.attention.shape == (length, len(source))
            sums = best.attention.sum(axis=1)
            np.testing.assert_allclose(sums, 1, atol=1e-5)


def test_hypotheses_tell_only_what_is_asked(one):
    [[best]] = one.hypotheses(["one"], "greedy", token_log_probs=True)
    assert best.token_log_probs is not None and best.attention is None
    [[best]] = one.hypotheses(["one"], "greedy", attention=True)
    assert best.token_log_probs is None and best.attention is not None


# === Special ids, saving and loading ===


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


def test_one_embedding_for_ids_of_two_meanings_is_warned_of():
    other = learn(lines=["eins zwei drei vier fünf", "sechs sieben acht neun"])
    made = dict(source_vocab_size=293, target_vocab_size=293, **SIZES)
    model = Transformer(tying="all", **made)
    sides = learn(), other
    ids = range(293)
    pieces = [each.pieces(ids) for each in sides]
    first = next(i for i in ids if pieces[0][i] != pieces[1][i])
    message = (
        'the model has tying="all", one embedding for both tokenizers, but id '
        f"{first} is {pieces[0][first]!r} of the source and "
        f"{pieces[1][first]!r} of the target; expected one vocabulary, or a "
        'model made with tying="target" or tying="none"'
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        Translator(model, *sides)
    assert caught[0].filename == __file__
    # None of these warns, which the settings of pytest would make an error:
    # equal pieces, embeddings of their own, one tokenizer.
    Translator(model, learn(), learn())
    Translator(Transformer(**made), *sides)
    Translator(model, other)


def test_a_run_trained_with_ids_of_two_meanings_still_loads(tmp_path):
    other = learn(lines=["eins zwei drei vier fünf", "sechs sieben acht neun"])
    model = Transformer(293, 293, tying="all", **SIZES)
    with pytest.warns(UserWarning, match="one embedding for both"):
        Translator(model, learn(), other).save(tmp_path / "run")
    with pytest.warns(UserWarning, match="one embedding for both"):
        loaded = Translator.load(tmp_path / "run")
    assert loaded.transformer.get_config()["tying"] == "all"


def test_a_run_that_names_an_unknown_function_is_refused(tmp_path):
    @keras.saving.register_keras_serializable("gone", "norm")
    def norm(**arguments):
        return keras.layers.RMSNormalization(**arguments)

    make_translator(make_norm=norm).save(tmp_path / "run")
    Translator.load(tmp_path / "run")
    registered = keras.saving.get_custom_objects()
    del registered["gone>norm"]
    message = re.escape(
        "make_norm='gone>norm' is not registered; first import the module "
        "that registers it with keras.saving.register_keras_serializable"
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        Translator.load(tmp_path / "run")


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
