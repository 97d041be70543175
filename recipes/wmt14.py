"""The paper's own experiments: WMT 2014, English to German and to French.

python recipes/wmt14.py --data data/wmt14_de --target de --size base

`--data` is a folder with `train`, `newstest2013` and `newstest2014`, each as
`NAME.en` and `NAME.de` (or `.fr`), plain or `.gz`. A folder that does not exist
is filled by tensorflow-datasets (`pip install -e '.[wmt]'`). All pairs are held
in memory.

The settings are those of sections 5 and 6.1 of the paper, see `settings`. It
trained the base model for 12 hours and the big one for 3.5 days on 8 P100
GPUs. A training that was interrupted goes on when the same command is started
again. The last line of output is JSON with the BLEU of newstest2014.
"""

import argparse
import gzip
import itertools
import json
import logging
import pathlib

import sacrebleu

from keras_transformer import ParallelCorpus, Tokenizer, Translator, cli

SPLITS = {
    "train": "train",
    "newstest2013": "validation",
    "newstest2014": "test",
}
LINES_TO_LEARN_FROM = 4_000_000


def settings(size, target, steps_per_update):
    """The arguments of `keras-transformer train`.

    Args:
        size: "base" or "big" (table 3).
        target: "de" or "fr".
        steps_per_update: int, batches that an update adds up; the paper had
            one on each of 8 GPUs.

    Returns:
        dict of str to str or number.
    """
    base = size == "base"
    # Section 6.1: checkpoints every 10 minutes, at 0.4 and 1.0 seconds an
    # update (5.2); 1,500 does not divide the updates of the base model.
    updates_per_checkpoint = 1_250 if base else 600
    # 5.2.
    updates = 100_000 if base else 300_000
    return {
        "size": size,
        # 5.4 and 6.1: 0.1, but 0.3 for the big model to German.
        "dropout": 0.3 if not base and target == "de" else 0.1,
        "label-smoothing": 0.1,  # 5.4
        # 5.1: about 25,000 source and 25,000 target tokens an update; here
        # with the padding.
        "batch-tokens": 25_000 // steps_per_update,
        "steps-per-update": steps_per_update,
        # 5.3, equation 3. Adam has its betas and epsilon in any case.
        "warmup-steps": 4_000,
        "factor": 1.0,
        "steps-per-epoch": updates_per_checkpoint * steps_per_update,
        "epochs": updates // updates_per_checkpoint,
        "average": 5 if base else 20,  # 6.1
        "select": "last",
    }


# 5.1: 37,000 byte-pair tokens of both languages for German, 32,000 word
# pieces for French; those are byte-pair tokens too here, and both counts
# include the 256 bytes that spell what is not in the text.
VOCAB_SIZES = {"de": 37_000, "fr": 32_000}
# 6.1. The longest output, input length + 50, is the default.
DECODING = {"beam_size": 4, "length_penalty": 0.6}


def find_file(data, name, language):
    path = pathlib.Path(data) / f"{name}.{language}"
    return path if path.exists() else path.with_name(f"{path.name}.gz")


def download(data, target):
    """Writes what tensorflow-datasets gives as files of lines."""
    import tensorflow_datasets

    beside = pathlib.Path(f"{data}.part")
    beside.mkdir(parents=True, exist_ok=True)
    for name, split in SPLITS.items():
        pairs = tensorflow_datasets.as_numpy(
            tensorflow_datasets.load(
                f"wmt14_translate/{target}-en", split=split
            )
        )
        paths = [
            beside / f"{name}.{language}.gz" for language in ("en", target)
        ]
        with (
            gzip.open(paths[0], "wb") as source,
            gzip.open(paths[1], "wb") as translations,
        ):
            for pair in pairs:
                for stream, language in (
                    (source, "en"),
                    (translations, target),
                ):
                    stream.write(b" ".join(pair[language].split()) + b"\n")
    beside.rename(data)


def learn_tokenizer(data, target, vocab_size, path):
    """Learns one vocabulary from every n-th pair."""
    if path.exists():
        return
    corpus = ParallelCorpus.from_files(
        *(find_file(data, "train", language) for language in ("en", target))
    )
    step = -(-2 * len(corpus) // LINES_TO_LEARN_FROM)
    lines = itertools.chain(corpus.source[::step], corpus.target[::step])
    path.parent.mkdir(parents=True, exist_ok=True)
    Tokenizer.train_from_lines(lines, vocab_size).save(path)


def evaluate(run, data, target):
    """BLEU of newstest2014, cased and detokenised.

    The paper does not say how it counts; scores of that time are often of
    tokenised text with compounds split, which are higher.
    """
    translator = Translator.load(run)
    test = ParallelCorpus.from_files(
        *(
            find_file(data, "newstest2014", language)
            for language in ("en", target)
        ),
        keep_blank=True,
    )
    metric = sacrebleu.BLEU()
    scores = {}
    for strategy, options in (("greedy", {}), ("beam", DECODING)):
        translations = translator.translate(test.source, strategy, **options)
        score = metric.corpus_score(translations, [test.target])
        scores[strategy] = round(score.score, 2)
        print(strategy, score, metric.get_signature())
    return scores


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of the texts")
    parser.add_argument("--target", choices=("de", "fr"), default="de")
    parser.add_argument("--size", choices=("base", "big"), default="base")
    parser.add_argument(
        "--steps-per-update",
        type=int,
        default=8,
        help="batches that an update adds up, default %(default)s; fewer if "
        "the memory allows larger ones",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", help="run folder")
    parser.add_argument(
        "--vocab-size", type=int, help="instead of the paper's, for a trial"
    )
    parser.add_argument(
        "rest",
        nargs="*",
        metavar="OPTION",
        help="after --, options of keras-transformer train that replace the "
        "paper's, such as --mixed-precision",
    )
    arguments = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    data, target = arguments.data, arguments.target
    if not pathlib.Path(data).exists():
        download(data, target)
    run = pathlib.Path(
        arguments.output or f"runs/wmt14_{target}_{arguments.size}"
    )
    tokenizer = run.with_name(f"{run.name}.tokenizer")
    learn_tokenizer(
        data, target, arguments.vocab_size or VOCAB_SIZES[target], tokenizer
    )
    options = {
        "source": find_file(data, "train", "en"),
        "target": find_file(data, "train", target),
        "valid-source": find_file(data, "newstest2013", "en"),
        "valid-target": find_file(data, "newstest2013", target),
        "source-tokenizer": tokenizer,
        "seed": arguments.seed,
        "output": run,
        **settings(arguments.size, target, arguments.steps_per_update),
    }
    code = cli.main(
        [
            "train",
            *(f"--{name}={value}" for name, value in options.items()),
            *arguments.rest,
        ]
    )
    if code:
        raise SystemExit(code)
    scores = evaluate(run, data, target)
    print(json.dumps({"bleu": {"newstest2014": scores}}))


if __name__ == "__main__":
    main()
