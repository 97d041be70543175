"""What smaller weights cost: `python benchmarks/precision.py RUN ...`.

python benchmarks/precision.py RUN --source test.en --target test.de

Exports RUN as ONNX in float32, float16 and int8, translates the source with
each in ONNX Runtime, and prints size, time and sacrebleu's BLEU. The last line
of output is JSON.
"""

import argparse
import json
import pathlib
import tempfile

import numpy as np
import onnxruntime
import sacrebleu
from turns import timed

from keras_transformer import Translator, export_onnx
from keras_transformer.exporting.onnx_export import PRECISIONS
from keras_transformer.text import read_lines

BATCH_SIZE = 32


def decoder(folder, signature, translator, options):
    """A function of rows of ids to those that a graph generates, but eos."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3  # It warns of every default.
    session = onnxruntime.InferenceSession(
        folder / f"{signature}.onnx", settings, ["CPUExecutionProvider"]
    )

    def decode(rows):
        found = []
        for start in range(0, len(rows), BATCH_SIZE):
            source_ids = translator.pad(rows[start : start + BATCH_SIZE])
            ids, lengths, finished = session.run(
                ["token_ids", "lengths", "finished"],
                {"source_ids": np.array(source_ids, "int32"), **options},
            )
            if signature == "beam":
                ids, lengths, finished = (
                    ids[:, 0],
                    lengths[:, 0],
                    finished[:, 0],
                )
            ends = lengths - finished
            found += [
                i[:end].tolist() for i, end in zip(ids, ends, strict=True)
            ]
        return found

    decode(translator.tokenize_source(["to warm up"]))
    return decode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="folder that Translator.save wrote")
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--tokenize", default="13a", help="as of sacrebleu")
    parser.add_argument("--beam-size", type=int, default=4)
    arguments = parser.parse_args()
    translator = Translator.load(arguments.run)
    source, target = read_lines(arguments.source), read_lines(arguments.target)
    pieces = translator.tokenize_source(source)
    metric = sacrebleu.BLEU(tokenize=arguments.tokenize, force=True)
    weights = 4 * translator.transformer.count_params()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for precision in PRECISIONS:
            folder = pathlib.Path(scratch) / precision
            export_onnx(translator, folder, precision=precision)
            size = sum(file.stat().st_size for file in folder.iterdir())
            held = (folder / "weights.bin").stat().st_size
            for signature, options in (
                ("greedy", {}),
                ("beam", {"beam_size": np.array(arguments.beam_size, "int32")}),
            ):
                decode = decoder(folder, signature, translator, options)
                ids, seconds = timed(decode, pieces)
                texts = translator.target_tokenizer.detokenize(ids)
                bleu = metric.corpus_score(texts, [target]).score
                row = {
                    "precision": precision,
                    "signature": signature,
                    "folder_megabytes": round(size / 1e6, 2),
                    "weights_megabytes": round(held / 1e6, 2),
                    "of_float32_weights": round(held / weights, 3),
                    "seconds": round(seconds, 1),
                    "bleu": round(bleu, 2),
                }
                rows.append(row)
                print(row, flush=True)
    print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
