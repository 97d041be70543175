"""Answers requests with CTranslate2: python run_ctranslate2.py FOLDER IN OUT.

It needs ctranslate2 and sentencepiece, and nothing of the package that
exported.
"""

import json
import pathlib
import sys

import ctranslate2
import sentencepiece

# Of the contract, to the names of CTranslate2.
OPTIONS = {
    "beam_size": "beam_size",
    "num_hypotheses": "num_hypotheses",
    "length_penalty": "length_penalty",
    "max_length": "max_decoding_length",
    "min_length": "min_decoding_length",
}
DEFAULTS = {
    "greedy": {"beam_size": 1, "length_penalty": 0.0},
    "beam": {"beam_size": 4},
}


def answer(model, source, target, signature, inputs):
    """Runs one request; outputs are those of the contract."""
    rows = inputs.pop("source_ids")
    # These it has whether asked or not.
    inputs.pop("length_penalty_form", None)
    inputs.pop("early_stopping", None)
    options = {OPTIONS[name]: value for name, value in inputs.items()}
    special = {source.pad_id(), source.eos_id()}  # CTranslate2 adds eos.
    rows = [[i for i in row if i not in special] for row in rows]
    results = model.translate_batch(
        [source.id_to_piece(row) for row in rows],
        **{
            "max_input_length": 0,  # No limit.
            "min_decoding_length": 0,
            "return_scores": True,
            "return_end_token": True,
            **DEFAULTS[signature],
            **options,
        },
    )
    eos = target.id_to_piece(target.eos_id())
    outputs = {"token_ids": [], "lengths": [], "finished": [], "scores": []}
    for result in results:
        found = result.hypotheses
        ids = [[target.piece_to_id(p) for p in pieces] for pieces in found]
        outputs["token_ids"].append(ids)
        outputs["lengths"].append([len(each) for each in ids])
        outputs["finished"].append([eos in pieces for pieces in found])
        outputs["scores"].append(result.scores)
    if signature == "greedy":
        outputs = {k: [best for [best] in v] for k, v in outputs.items()}
    return {name: {"value": value} for name, value in outputs.items()}


def main(folder, requests_file, answers_file):
    """Answers the requests of a JSON file with another."""
    requests = json.loads(pathlib.Path(requests_file).read_text("utf-8"))
    model = ctranslate2.Translator(folder, intra_threads=1)
    source, target = (
        sentencepiece.SentencePieceProcessor(
            model_file=str(pathlib.Path(folder, f"{side}_tokenizer.model"))
        )
        for side in ("source", "target")
    )
    answers = [
        answer(model, source, target, request["signature"], request["inputs"])
        for request in requests
    ]
    pathlib.Path(answers_file).write_text(
        json.dumps({"interface": None, "answers": answers}), "utf-8"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
