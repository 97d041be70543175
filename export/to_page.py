"""Makes a page that translates: python -m export.to_page ONNX OUT.

ONNX is what `export_onnx` wrote. OUT is a folder for any static server, such
as `python -m http.server --directory OUT`; nothing else is needed, and once it
is loaded no network either. Before: npm install --ignore-scripts in
export/runtimes/javascript.
"""

import argparse
import pathlib
import shutil

from keras_transformer.folders import new_folder

CLIENTS = pathlib.Path(__file__).parent / "runtimes" / "javascript"
# Where they are once npm has installed them, and where the page looks.
PACKAGES = {
    "@huggingface/tokenizers/dist/tokenizers.mjs": "tokenizers.mjs",
    **{
        f"onnxruntime-web/dist/{name}": f"ort/{name}"
        for name in (
            "ort.wasm.min.mjs",
            "ort-wasm-simd-threaded.mjs",
            "ort-wasm-simd-threaded.wasm",
        )
    },
}
MODEL = (
    "metadata.json",
    "source_tokenizer.json",
    "target_tokenizer.json",
    "beam.explicit.onnx",
    "greedy.explicit.onnx",
    "sample.explicit.onnx",
    "score.onnx",
    "align.onnx",
    "weights.bin",
)


def make_page(model, out):
    """Puts page, runtime and model into one folder.

    Args:
        model: the folder that `export_onnx` wrote.
        out: where to; it is written beside and renamed.

    Raises:
        ValueError: if `out` exists, or a file is missing.
    """
    files = {
        **{CLIENTS / "page" / n: n for n in ("index.html", "style.css")},
        CLIENTS / "page" / "page.mjs": "page.mjs",
        CLIENTS / "translator.mjs": "translator.mjs",
        **{CLIENTS / "node_modules" / n: to for n, to in PACKAGES.items()},
        **{pathlib.Path(model) / n: f"model/{n}" for n in MODEL},
    }
    for source in files:
        if not source.is_file():
            raise ValueError(
                f"{str(source)!r} is missing; expected what export_onnx wrote "
                "and, after `npm install --ignore-scripts` in "
                f"{str(CLIENTS)!r}, its packages"
            )
    with new_folder(out) as beside:
        for source, target in files.items():
            (beside / target).parent.mkdir(exist_ok=True)
            shutil.copyfile(source, beside / target)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="folder that export_onnx wrote")
    parser.add_argument("out", help="folder to make")
    arguments = parser.parse_args()
    make_page(arguments.model, arguments.out)


if __name__ == "__main__":
    main()
