"""Translates lines with CTranslate2: python_ctranslate2.py FOLDER < LINES.

A client to copy. FOLDER is what `export_ctranslate2` wrote. It needs
ctranslate2 and sentencepiece, and nothing of the package that trained the
model.
"""

import argparse
import json
import pathlib
import sys

import ctranslate2
import sentencepiece

# The paper's cap on an output: so many tokens more than its source has. Here it
# is that of the longest source of a batch, since CTranslate2 has one for all.
EXTRA_LENGTH = 50


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="what export_ctranslate2 wrote")
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--length-penalty", type=float, default=0.6)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.folder)
    metadata = json.loads((folder / "metadata.json").read_text("utf-8"))
    longest = metadata["max_positions"]
    model = ctranslate2.Translator(str(folder))
    source, target = (
        sentencepiece.SentencePieceProcessor(
            model_file=str(folder / f"{side}_tokenizer.model")
        )
        for side in ("source", "target")
    )
    # Not splitlines(): a line ends at a newline alone.
    lines = sys.stdin.buffer.read().decode("utf-8").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    for start in range(0, len(lines), arguments.batch_size):
        pieces = source.encode(
            lines[start : start + arguments.batch_size], out_type=str
        )
        results = model.translate_batch(
            pieces,
            beam_size=arguments.beam_size,
            length_penalty=arguments.length_penalty,
            min_decoding_length=0,
            # With eos, which a source has too. Longer sources are cut.
            max_decoding_length=min(
                max(map(len, pieces)) + 1 + EXTRA_LENGTH, longest
            ),
            max_input_length=longest,
        )
        for row, result in zip(pieces, results, strict=True):
            text = target.decode(result.hypotheses[0]) if row else ""
            # One line each, whatever the model writes.
            print(text.replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
