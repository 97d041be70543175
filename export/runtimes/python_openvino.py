"""Translates lines with OpenVINO: python_openvino.py FOLDER < LINES.

A client to copy. FOLDER is what `export_onnx` wrote. It needs openvino,
numpy and sentencepiece, and nothing of the package that trained the model.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import openvino
import sentencepiece

SETTINGS = {
    # Even where the CPU would choose bfloat16.
    "INFERENCE_PRECISION_HINT": "f32",
    # Its fused attention goes wrong from the 16th step of a loop on.
    "SNIPPETS_MODE": "DISABLE",
}


class OpenVINOTranslator:
    """Text to text over `beam.explicit.onnx`.

    OpenVINO takes the defaults of `beam.onnx` for constants.
    """

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        metadata = json.loads((folder / "metadata.json").read_text("utf-8"))
        self.ids = metadata["special_ids"]
        self.inputs = metadata["signatures"]["beam"]["inputs"]
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(
                model_file=str(folder / f"{side}_tokenizer.model")
            )
            for side in ("source", "target")
        )
        core = openvino.Core()
        model = core.read_model(folder / "beam.explicit.onnx")
        self.beam = core.compile_model(model, "CPU", SETTINGS)
        # OpenVINO takes no empty option; these say the same.
        self.nothing = {
            "target_prefix": [[self.ids["pad"]]],
            "forbidden_ids": [-1],
        }

    def translate(self, texts, **options):
        """Returns the best translation of each text.

        `options` are the inputs of the graph: `beam_size` and the like.
        """
        rows = [ids + [self.ids["eos"]] for ids in self.source.encode(texts)]
        width = max(map(len, rows), default=0)
        source_ids = np.full((len(rows), width), self.ids["pad"], np.int32)
        for row, ids in zip(source_ids, rows, strict=True):
            row[: len(ids)] = ids
        given = {"source_ids": source_ids, **self.nothing, **options}
        # There are no defaults: every input is fed.
        outputs = self.beam(
            {
                each["name"]: np.array(
                    given.get(each["name"], each["default"]), each["dtype"]
                )
                for each in self.inputs
            }
        )
        found = {o.get_any_name(): outputs[o] for o in self.beam.outputs}
        ends = found["lengths"] - found["finished"]  # Without eos.
        return [
            self.target.decode(found["token_ids"][i, 0, : ends[i, 0]].tolist())
            for i in range(len(texts))
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="what export_onnx wrote")
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    translator = OpenVINOTranslator(arguments.folder)
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
