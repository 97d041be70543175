"""Translates lines with ONNX Runtime: python_onnxruntime.py FOLDER < LINES.

A client to copy. FOLDER is what `export_onnx` wrote. It needs onnxruntime,
numpy and sentencepiece, and nothing of the package that trained the model.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import onnxruntime
import sentencepiece


class OnnxTranslator:
    """Text to text over `beam.onnx`."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        metadata = json.loads((folder / "metadata.json").read_text("utf-8"))
        self.ids = metadata["special_ids"]
        self.source = sentencepiece.SentencePieceProcessor(
            model_file=str(folder / "source_tokenizer.model")
        )
        self.target = sentencepiece.SentencePieceProcessor(
            model_file=str(folder / "target_tokenizer.model")
        )
        inputs = metadata["signatures"]["beam"]["inputs"]
        self.types = {each["name"]: each["dtype"] for each in inputs}
        options = onnxruntime.SessionOptions()
        # Else it warns of every option that has a default.
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            str(folder / "beam.onnx"), options, ["CPUExecutionProvider"]
        )

    def translate(self, texts, **options):
        """Returns the best translation of each text.

        `options` are the inputs of the graph: `beam_size` and the like.
        """
        rows = [ids + [self.ids["eos"]] for ids in self.source.encode(texts)]
        width = max(map(len, rows), default=0)
        source_ids = np.full((len(rows), width), self.ids["pad"], np.int32)
        for row, ids in zip(source_ids, rows, strict=True):
            row[: len(ids)] = ids
        feed = {"source_ids": source_ids}
        for name, value in options.items():
            # Numbers are 0-d arrays; what is not fed keeps its default.
            feed[name] = np.array(value, self.types[name])
        token_ids, lengths, finished = self.session.run(
            ["token_ids", "lengths", "finished"], feed
        )
        ends = lengths - finished  # Without eos.
        return [
            self.target.decode(token_ids[i, 0, : ends[i, 0]].tolist())
            for i in range(len(texts))
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="what export_onnx wrote")
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    translator = OnnxTranslator(arguments.folder)
    # Not splitlines(): a line ends at a newline alone.
    lines = sys.stdin.buffer.read().decode("utf-8").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    for start in range(0, len(lines), arguments.batch_size):
        texts = lines[start : start + arguments.batch_size]
        for text in translator.translate(texts, beam_size=arguments.beam_size):
            # One line each, whatever the model writes.
            print(text.replace("\n", " "), flush=True)


if __name__ == "__main__":
    main()
