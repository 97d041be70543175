"""A SentencePiece model in the `tokenizer.json` format of Hugging Face.

JavaScript reads it, and the `tokenizers` package of Python and Rust. It holds
no added tokens, since these would let a user type a control piece.
"""

import base64
import json

from sentencepiece import sentencepiece_model_pb2

_BLANK = "\u2581"  # Stands for a blank inside a piece.
_UNK_SURFACE = " \u2047 "
# Before a piece that no text may match: its own blanks are replaced.
_UNTYPABLE = " "

_Piece = sentencepiece_model_pb2.ModelProto.SentencePiece
_TrainerSpec = sentencepiece_model_pb2.TrainerSpec
# Pieces that text becomes; the others are control, unknown and byte pieces.
_OF_TEXT = (_Piece.NORMAL, _Piece.USER_DEFINED)


def write_tokenizer_json(tokenizer, path):
    """Writes `tokenizer.json`.

    The ids are those of the tokenizer. Exceptions: half-width Japanese voiced
    marks are not joined; a typed `<0x41>` becomes a byte in a unigram model;
    JavaScript's package knows the rule `nmt_nfkc` and takes it for every
    other one but `identity`, and unigram models spell nothing in bytes there.

    Args:
        tokenizer: `Tokenizer`, of type "bpe" or "unigram".
        path: `pathlib.Path` of the file.

    Raises:
        ValueError: if the model is of another type.
    """
    content = tokenizer_json(tokenizer.model_proto)
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def tokenizer_json(model_proto):
    """Gives the content of `tokenizer.json`.

    Args:
        model_proto: bytes of a SentencePiece model.

    Returns:
        Dict that JSON can hold.

    Raises:
        ValueError: if the model is of another type than "bpe" or "unigram".
    """
    proto = sentencepiece_model_pb2.ModelProto.FromString(model_proto)
    model_type = proto.trainer_spec.model_type
    if model_type not in (_TrainerSpec.BPE, _TrainerSpec.UNIGRAM):
        raise ValueError(
            "tokenizer.json can hold a SentencePiece model of type bpe or "
            f"unigram, got {_TrainerSpec.ModelType.Name(model_type).lower()}"
        )
    is_bpe = model_type == _TrainerSpec.BPE
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": _normalizer(proto.normalizer_spec),
        "pre_tokenizer": {
            "type": "Metaspace",
            "replacement": _BLANK,
            "prepend_scheme": "always"
            if proto.normalizer_spec.add_dummy_prefix
            else "never",
            "split": False,
        },
        "post_processor": None,
        "decoder": _decoder(proto),
        "model": _bpe(proto) if is_bpe else _unigram(proto),
    }


def _normalizer(spec):
    steps = []
    if spec.precompiled_charsmap:
        charsmap = base64.b64encode(spec.precompiled_charsmap).decode("ascii")
        steps.append({"type": "Precompiled", "precompiled_charsmap": charsmap})
    if spec.name.endswith("_cf"):
        # Packages that know no map of characters do not fold case.
        steps.append({"type": "Lowercase"})
    if spec.remove_extra_whitespaces:
        steps += [
            # Blanks alone, where a Strip would take tabs too; ^ and $ stand
            # for ends of lines in some languages.
            _replace({"Regex": r"(?<![\s\S]) +| +(?![\s\S])"}, ""),
            _replace({"Regex": " {2,}"}, " "),
        ]
    return {"type": "Sequence", "normalizers": steps}


def _decoder(proto):
    steps = [
        _replace({"String": _name_of_unk(proto)}, _UNK_SURFACE),
        _replace({"String": _BLANK}, " "),
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if proto.normalizer_spec.add_dummy_prefix:
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"type": "Sequence", "decoders": steps}


def _replace(pattern, content):
    return {"type": "Replace", "pattern": pattern, "content": content}


def _bpe(proto):
    """Byte-pair encoding: SentencePiece joins the pair of the best score.

    That is the one whose union has the lowest id; merges name both halves.
    """
    vocab = {piece.piece: i for i, piece in enumerate(proto.pieces)}
    normal = {p.piece for p in proto.pieces if p.type in _OF_TEXT}
    ranked = sorted(
        (p for p in proto.pieces if p.type in _OF_TEXT and len(p.piece) > 1),
        key=lambda piece: (-piece.score, vocab[piece.piece]),
    )
    merges = [
        [piece.piece[:cut], piece.piece[cut:]]
        for piece in ranked
        for cut in range(1, len(piece.piece))
        if piece.piece[:cut] in normal and piece.piece[cut:] in normal
    ]
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": _name_of_unk(proto),
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": proto.trainer_spec.byte_fallback,
        "ignore_merges": False,
        "vocab": vocab,
        "merges": merges,
    }


def _unigram(proto):
    """A unigram model: pieces and their log-probabilities."""
    unseen = (_Piece.CONTROL, _Piece.UNKNOWN)
    return {
        "type": "Unigram",
        "unk_id": proto.trainer_spec.unk_id,
        "byte_fallback": proto.trainer_spec.byte_fallback,
        "vocab": [
            [_UNTYPABLE * (piece.type in unseen) + piece.piece, piece.score]
            for piece in proto.pieces
        ],
    }


def _name_of_unk(proto):
    unigram = proto.trainer_spec.model_type == _TrainerSpec.UNIGRAM
    name = proto.pieces[proto.trainer_spec.unk_id].piece
    return _UNTYPABLE * unigram + name
