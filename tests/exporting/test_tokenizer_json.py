"""`tokenizer.json` gives the ids of SentencePiece, in Python and in Node."""

import json

import pytest
import sentencepiece
import tokenizers

from keras_transformer import Tokenizer
from keras_transformer.exporting.tokenizer_json import (
    tokenizer_json,
    write_tokenizer_json,
)
from spoken_forms import generate
from tests.support import exports
from tests.support.javascript import ROOT, needs_node, node

UNUSUAL = [
    *exports.STRANGE,
    "  a  b  ",
    "ﬁne … ½ Ⅷ ① ﷺ 각",
    "e\u0301a\u0308 ’‘“”—– ~～",
    "<unk> <s>",
    "\u200bzero",
    "The Quick Brown FOX, 1,234.5!",
]
OPTIONS = {
    "bpe": {},
    "without bytes": {"byte_fallback": False},
    "digits": {"split_digits": True, "user_defined_symbols": ["<2de>", "a b"]},
    "folded": {"normalization": "nmt_nfkc_cf"},
    "unigram": {"model_type": "unigram"},
}
# Characters whose bytes the package of JavaScript cannot spell.
UNSPELT = {"unigram"}


@pytest.fixture(scope="module")
def lines():
    return [line for pair in generate(3, 500) for line in pair]


@pytest.fixture(scope="module", params=OPTIONS)
def tokenizer(request, lines):
    tokenizer = Tokenizer.train_from_lines(lines, 500, **OPTIONS[request.param])
    tokenizer.name = request.param
    return tokenizer


def test_python_gives_the_same_ids_and_texts(tokenizer, lines):
    other = tokenizers.Tokenizer.from_str(
        json.dumps(tokenizer_json(tokenizer.model_proto))
    )
    for line in [*lines, *UNUSUAL]:
        ids = tokenizer.tokenize(line)
        assert other.encode(line, add_special_tokens=False).ids == ids, line
        text = other.decode(ids, skip_special_tokens=False)
        assert text == tokenizer.detokenize(ids)


@needs_node
def test_node_gives_the_same_ids_and_texts(tokenizer, lines, tmp_path):
    write_tokenizer_json(tokenizer, tmp_path / "tokenizer.json")
    lines = [*lines, *([] if tokenizer.name in UNSPELT else UNUSUAL)]
    (tmp_path / "lines.json").write_text(json.dumps(lines))
    found = node(
        ROOT / "tests/support/tokenize_lines.mjs",
        tmp_path / "tokenizer.json",
        tmp_path / "lines.json",
    )
    for line, (ids, text) in zip(lines, json.loads(found), strict=True):
        assert ids == tokenizer.tokenize(line), line
        assert text == tokenizer.detokenize(ids)


def test_nothing_typed_becomes_a_control_piece(tokenizer):
    other = tokenizers.Tokenizer.from_str(
        json.dumps(tokenizer_json(tokenizer.model_proto))
    )
    special = {tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id}
    for text in ("<pad>", "<s>", "</s>", " <s> </s>x<pad>"):
        ids = other.encode(text).ids
        assert ids and not special & set(ids)


def test_other_types_are_refused(tmp_path):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b c"]),
        model_prefix=str(tmp_path / "model"),
        model_type="char",
        vocab_size=6,
        minloglevel=2,
    )
    tokenizer = Tokenizer.load(tmp_path / "model.model")
    with pytest.raises(ValueError, match="type bpe or unigram, got char"):
        write_tokenizer_json(tokenizer, tmp_path / "tokenizer.json")
    assert not (tmp_path / "tokenizer.json").exists()
