import pytest

from keras_transformer.text import Tokenizer

LINES = [
    "a quick brown fox jumps over the lazy dog",
    "the dog sleeps, the fox jumps and jumps",
    "zwei hunde schlafen über dem zaun, 12 von 345",
] * 7


def train(vocab_size=300, **options):
    return Tokenizer.train_from_lines(LINES, vocab_size, **options)


def test_special_ids_are_those_asked_for():
    def ids(made):
        return made.pad_id, made.bos_id, made.eos_id, made.unk_id

    tokenizer = train()
    assert ids(tokenizer) == (0, 1, 2, 3)
    assert ids(train(pad_id=3, bos_id=5, eos_id=1, unk_id=0)) == (3, 5, 1, 0)
    assert ids(train(pad_id=-1)) == (-1, 1, 2, 3)
    assert tokenizer.vocab_size == 300
    assert tokenizer.pieces([0, 1, 2, 3]) == ["<pad>", "<s>", "</s>", "<unk>"]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_training_twice_gives_the_same_bytes(kind):
    protos = [train(model_type=kind).model_proto for _ in range(2)]
    assert protos[0] == protos[1]
    assert protos[0] != train(297, model_type=kind).model_proto


def test_a_vocabulary_too_large_names_the_largest():
    with pytest.raises(ValueError, match="vocab_size: .*, got 9000") as caught:
        train(vocab_size=9000)
    largest = int(str(caught.value).split("allows ")[1].split()[0])
    assert train(vocab_size=largest).vocab_size == largest
    with pytest.raises(ValueError, match=f"{largest} pieces at most"):
        train(vocab_size=largest + 1)


def test_a_vocabulary_too_small_names_the_least():
    with pytest.raises(ValueError, match="need 2.. at least, got 71"):
        train(vocab_size=71)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"pad_id": 2}, "different ids below vocab_size=300.*'pad_id': 2"),
        ({"eos_id": 300}, "ids below vocab_size=300.*'eos_id': 300"),
        ({"bos_id": -2}, "or -1 for none.*'bos_id': -2"),
        ({"unk_id": -1}, "unk_id: a vocabulary needs one"),
        ({"user_defined_symbols": ["<s>"]}, "'<s>' is a special piece"),
        ({"user_defined_symbols": "a,b"}, "expected a list of str, got 'a,b'"),
        ({"normalization": "nfkd"}, "could not learn .*nfkd"),
        ({"model_type": "bytes"}, "could not learn .*bytes"),
        ({"character_coverage": 3.0}, "could not learn .*coverage"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        train(**options)


def test_text_is_needed_to_train(tmp_path):
    (tmp_path / "empty").write_bytes(b"\n \n")
    with pytest.raises(ValueError, match="got no line that is not blank"):
        Tokenizer.train([tmp_path / "empty"], 300)
    with pytest.raises(ValueError, match="nowhere: there is no such file"):
        Tokenizer.train([tmp_path / "nowhere"], 300)
