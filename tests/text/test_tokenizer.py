import gzip
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

from keras_transformer.text import Tokenizer

LINES = [
    "a quick brown fox jumps over the lazy dog",
    "the dog sleeps, the fox jumps and jumps",
    "zwei hunde schlafen über dem zaun, 12 von 345",
] * 7

NASTY = (
    ["", " ", "  \t ", "hello", "  a   b ", "a\tb", "a\nb", "a\r\n", "\r"]
    + ["\ufeffhello", "a\ufeffb", "a\u2028b\x85\x0bc", "a\u00a0b\u3000c"]
    + ["</s>", "<pad>", "<s>", "<unk>", "<s> a </s>", "<0x41>", "<0x00>"]
    + ["\x00", "a\x00b", "\x00\x00a\x00", "😀", "hello 😀 world", "👩‍👩‍👧"]
    + ["𠮷𪚥", "e\u0301 \u00e9", "\u0301", "\u200b", "\ufffd", "\u2047"]
    + ["\u2581", "\u2581a \u2581 b", "\u2585", "\ufdfa", "\u2026\u2460"]
    + ["\U0010ffff", "\ue000", "x" * 4001, "12,345.678"]
)
KINDS = {
    "bpe": {},
    "unigram": {"model_type": "unigram", "vocab_size": 300},
    "identity": {"normalization": "identity"},
    "no bytes": {"byte_fallback": False, "vocab_size": 70},
    "symbols": {"user_defined_symbols": ["<de>", "\n"]},
    "digits": {"split_digits": True, "pad_id": 3, "unk_id": 0},
}


def train(**options):
    vocab_size = options.pop("vocab_size", 320)
    return Tokenizer.train_from_lines(LINES, vocab_size, **options)


@pytest.fixture(scope="module")
def tokenizer():
    return train()


def random_texts(count):
    rng = random.Random(5)
    ranges = [(1, 0x7F), (0x20, 0x2FF), (0, 0xD7FF), (0xE000, 0x10FFFF)]
    return [
        "".join(
            chr(rng.randint(*rng.choice(ranges)))
            for _ in range(rng.randrange(13))
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_python_and_graph_give_the_same_ids_and_texts(kind):
    import tensorflow as tf

    tokenizer = train(**KINDS[kind])
    texts = NASTY + random_texts(997)
    rows = tokenizer.tokenize(texts)
    assert rows == [tokenizer.tokenize(text) for text in texts]
    assert max(map(len, rows)) > 3000

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)])
    def both_ways(texts):
        ids = tokenizer.tokenize_tensor(texts)
        return ids, tokenizer.detokenize_tensor(ids)

    ids, back = both_ways(tf.constant(texts))
    assert ids.dtype == tf.int32
    assert ids.to_list() == rows
    expected = tokenizer.detokenize(rows)
    assert [text.decode("utf-8") for text in back.numpy()] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_no_typed_text_becomes_a_special_id(kind):
    tokenizer = train(**KINDS[kind])
    specials = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}
    assert len(specials) == 3
    for ids in tokenizer.tokenize(NASTY + random_texts(499)):
        assert not specials & set(ids)


def test_any_ids_give_the_same_valid_text_in_python_and_graph(tokenizer):
    import tensorflow as tf

    rng = random.Random(7)
    rows = [
        [rng.choice([rng.randrange(320), rng.randrange(260)]) for _ in range(n)]
        for n in range(17)
        for _ in range(29)
    ]
    expected = tokenizer.detokenize(rows)
    ragged = tf.ragged.constant(rows, tf.int32, ragged_rank=1)
    texts = tokenizer.detokenize_tensor(ragged).numpy()
    assert [text.decode("utf-8") for text in texts] == expected
    dense = tf.constant([rows[-1], rows[-2]])
    texts = tokenizer.detokenize_tensor(dense).numpy()
    assert [text.decode("utf-8") for text in texts] == expected[:-3:-1]


def test_a_saved_graph_tokenizes_without_this_package(tmp_path, tokenizer):
    import tensorflow as tf

    module = tf.Module()
    module.tokenizer = tokenizer.tensor_tokenizer
    module.round_trip = tf.function(
        lambda texts: tokenizer.detokenize_tensor(
            tokenizer.tokenize_tensor(texts)
        ),
        input_signature=[tf.TensorSpec((None,), tf.string)],
    )
    tf.saved_model.save(module, str(tmp_path / "model"))
    code = (
        "import sys, tensorflow as tf, tensorflow_text\n"
        f"module = tf.saved_model.load({str(tmp_path / 'model')!r})\n"
        "texts = module.round_trip(tf.constant(['a  fox \\U0001f600', '']))\n"
        "assert 'keras_transformer' not in sys.modules\n"
        "print(ascii([text.decode() for text in texts.numpy()]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=tmp_path
    )
    assert done.stdout.decode().strip() == r"['a fox \U0001f600', '']"


def test_training_and_tokenizing_in_python_need_no_tensorflow_text():
    code = (
        "import sys\n"
        "sys.modules['tensorflow_text'] = None\n"
        "from keras_transformer.text.tokenizer import Tokenizer\n"
        "made = Tokenizer.train_from_lines(['a b c'], 265)\n"
        "print(made.detokenize(made.tokenize('b d')))\n"
        "try:\n"
        "    made.tokenize_tensor(['a'])\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    root = pathlib.Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "b d"
    assert lines[1].endswith("pip install tensorflow-text")


def test_files_plain_or_packed_train_as_their_lines_do(tmp_path, tokenizer):
    text = "\n".join(LINES[:11]) + "\n"
    (tmp_path / "a").write_text(text, encoding="utf-8")
    packed = gzip.compress("\r\n".join(LINES[11:]).encode())
    (tmp_path / "b.gz").write_bytes(packed)
    made = Tokenizer.train([tmp_path / "a", tmp_path / "b.gz"], 320)
    assert made.model_proto == tokenizer.model_proto
    one = Tokenizer.train(str(tmp_path / "a"), 296, model_type="unigram")
    assert one.vocab_size == 296


def test_saving_and_loading_keeps_the_model(tmp_path, tokenizer):
    tokenizer.save(tmp_path / "x.model")
    loaded = Tokenizer.load(tmp_path / "x.model")
    assert loaded.model_proto == tokenizer.model_proto
    assert loaded.tokenize(NASTY) == tokenizer.tokenize(NASTY)


@pytest.mark.parametrize(
    "text, kept",
    [
        ("hello 😀 world", "hello 😀 world"),
        ("𠮷 ÿ \x00", "𠮷 ÿ \x00"),
        ("</s> <pad> <0x41>", "</s> <pad> <0x41>"),
        ("  a \t\n  b\r\n", "a b"),
        ("e\u0301\u2026\u2460", "\u00e9...1"),
        ("a\u2581b", "a b"),
    ],
)
def test_text_comes_back_as_documented(tokenizer, text, kept):
    assert tokenizer.detokenize(tokenizer.tokenize(text)) == kept


def test_identity_keeps_compatibility_characters():
    tokenizer = train(normalization="identity")
    for text in ("\u2026\u2460", "e\u0301", "a\tb\nc", "\ufeffa"):
        assert tokenizer.detokenize(tokenizer.tokenize(text)) == text


def test_without_byte_fallback_unknown_characters_leave_a_mark():
    tokenizer = train(byte_fallback=False, vocab_size=70)
    ids = tokenizer.tokenize("the 😀 dog")
    assert tokenizer.unk_id in ids
    assert tokenizer.detokenize(ids).split() == ["the", "\u2047", "dog"]


def test_control_ids_give_nothing_and_broken_bytes_a_replacement(tokenizer):
    ids = tokenizer.tokenize("the fox")
    assert tokenizer.detokenize([1, *ids, 2, 0, 0]) == "the fox"
    assert tokenizer.detokenize([]) == tokenizer.detokenize([1, 2, 0]) == ""
    smile = tokenizer.tokenize("😀")
    assert tokenizer.pieces(smile)[-4:] == [
        "<0xF0>",
        "<0x9F>",
        "<0x98>",
        "<0x80>",
    ]
    broken = tokenizer.detokenize([*smile[:-1], *ids])
    assert broken == "\ufffd\ufffd\ufffd the fox"


def test_detokenize_takes_arrays_and_nested_lists(tokenizer):
    ids = tokenizer.tokenize(["the fox", "a dog", ""])
    texts = ["the fox", "a dog", ""]
    assert tokenizer.detokenize(ids) == texts
    assert tokenizer.detokenize(map(np.array, ids[:2])) == texts[:2]
    assert tokenizer.detokenize(np.array(ids[0], "int32")) == "the fox"
    assert tokenizer.pieces(np.array(ids[0])) == tokenizer.pieces(ids[0])
    assert tokenizer.pieces([]) == []


@pytest.mark.parametrize("bad", [320, -1, 2**40])
def test_an_id_outside_the_vocabulary_is_named(tokenizer, bad):
    message = f"ids: {bad} is outside the vocabulary, expected 0 to 319"
    for call in (tokenizer.detokenize, tokenizer.pieces):
        with pytest.raises(ValueError, match=message):
            call([5, bad])
    with pytest.raises(ValueError, match=message):
        tokenizer.detokenize([[5], [7, bad]])


def test_what_is_no_text_is_refused(tokenizer):
    with pytest.raises(ValueError, match="texts: expected str, got 3"):
        tokenizer.tokenize(["a", 3])
    with pytest.raises(ValueError, match="text that UTF-8 can hold"):
        tokenizer.tokenize(["a", "\ud800"])


def test_what_is_no_model_is_refused(tmp_path):
    for data in (b"", b"junk", b"hello world\n"):
        (tmp_path / "x").write_bytes(data)
        count = len(data)
        with pytest.raises(ValueError, match=f"x: .*model, got {count} bytes"):
            Tokenizer.load(tmp_path / "x")
    with pytest.raises(ValueError, match="y: cannot load a tokenizer"):
        Tokenizer.load(tmp_path / "y")
