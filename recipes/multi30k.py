"""English to German on Multi30k, from text files to BLEU.

python recipes/multi30k.py --data data/multi30k --form tok --quick

`--quick` trains for about half an hour on two CPU cores, with a shorter
warmup than the published runs; without it the settings follow Wu et al., 2021
(https://arxiv.org/abs/2105.14462): 2.6M parameters, joint vocabulary of 10,000
pieces, all embeddings shared, warmup of 2,000 updates; but 4,096 tokens an
update instead of twice that, and a moving average of the weights instead of
the mean of the last checkpoints.
The last line of output is JSON with the BLEU of each test set.
"""

import argparse
import json
import logging
import pathlib
import time

import keras
import sacrebleu

from keras_transformer import (
    TINY,
    MaskedCrossEntropy,
    Perplexity,
    TokenAccuracy,
    Tokenizer,
    Transformer,
    Translator,
    WarmupSchedule,
    batches,
)
from multi30k_data import TEST_SETS, load_corpus

PRESETS = {
    "quick": {
        "epochs": 20,
        "batch_tokens": 2048,
        "dropout": 0.1,
        "peak_rate": 0.002,
        "warmup_steps": 500,
        "ema_momentum": 0.998,
    },
    "published": {
        "epochs": 63,
        "batch_tokens": 4096,
        "dropout": 0.3,
        "peak_rate": 0.005,
        "warmup_steps": 2000,
        "ema_momentum": 0.999,
    },
}
VOCAB_SIZE = 10_000


def train(data, form, preset, seed):
    keras.utils.set_random_seed(seed)
    corpus = load_corpus(data, form, "train")
    validation = load_corpus(data, form, "val")
    tokenizer = Tokenizer.train_from_lines(
        [*corpus.source, *corpus.target], VOCAB_SIZE
    )
    model = Transformer(VOCAB_SIZE, **{**TINY, "dropout": preset["dropout"]})
    model.compile(
        optimizer=keras.optimizers.Adam(
            WarmupSchedule.from_peak(
                preset["peak_rate"], model.d_model, preset["warmup_steps"]
            ),
            beta_1=0.9,
            beta_2=0.98,
            epsilon=1e-9,
            # fit ends with the moving average of the weights, which stands
            # in for the paper's average of the last checkpoints.
            use_ema=True,
            ema_momentum=preset["ema_momentum"],
        ),
        loss=MaskedCrossEntropy(label_smoothing=0.1),
        metrics=[TokenAccuracy(), Perplexity()],
        jit_compile=True,
    )
    size = preset["batch_tokens"]
    started = time.time()
    history = model.fit(
        batches(corpus, tokenizer, batch_tokens=size, num_buckets=6, seed=seed),
        validation_data=batches(
            validation,
            tokenizer,
            batch_tokens=size,
            num_buckets=2,
            shuffle=False,
        ),
        epochs=preset["epochs"],
        shuffle=False,  # The batches are shuffled already.
        verbose=2,
    )
    facts = {
        "recipe": "multi30k",
        "form": form,
        "seed": seed,
        **preset,
        "updates": int(model.optimizer.iterations.numpy()),
        "minutes": round((time.time() - started) / 60, 1),
        "history": {
            name: [round(float(value), 4) for value in values]
            for name, values in history.history.items()
        },
        "examples": validation.source[:100],
    }
    return Translator(model, tokenizer, training=facts)


def evaluate(translator, data, form):
    """Prints sacrebleu's BLEU and signature for greedy and beam search.

    The tok form is tokenised already; the raw form is scored cased and
    detokenised, as sacrebleu wants it.
    """
    tokenized = form == "tok"
    metric = sacrebleu.BLEU(
        tokenize="none" if tokenized else "13a",
        force=tokenized,  # Else it warns that the text looks tokenised.
    )
    scores = {}
    for test_set in TEST_SETS:
        test = load_corpus(data, form, test_set, keep_blank=True)
        scores[test_set] = {}
        for strategy in ("greedy", "beam"):
            translations = translator.translate(test.source, strategy)
            score = metric.corpus_score(translations, [test.target])
            scores[test_set][strategy] = round(score.score, 2)
            print(test_set, strategy, score, metric.get_signature())
        for i in (0, 1, 2):
            print(f"  {test.source[i]}\n    {translations[i]}")
    return scores


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data",
        default="data/multi30k",
        help="folder with raw/ or tok/; what is missing is downloaded",
    )
    parser.add_argument("--form", choices=("raw", "tok"), default="raw")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--epochs", type=int, help="instead of the preset's")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", help="run folder, new")
    arguments = parser.parse_args()

    preset = dict(PRESETS["quick" if arguments.quick else "published"])
    preset["epochs"] = arguments.epochs or preset["epochs"]
    output = pathlib.Path(
        arguments.output
        or f"runs/multi30k_{arguments.form}_{time.strftime('%Y%m%d_%H%M%S')}"
    )
    if output.exists():
        parser.error(f"--output {output} exists; expected a new folder")
    logging.basicConfig(level=logging.INFO, format="%(message)s")

    translator = train(arguments.data, arguments.form, preset, arguments.seed)
    translator.save(output)
    print(f"saved {output}, trained {translator.training['minutes']} minutes")
    scores = evaluate(translator, arguments.data, arguments.form)
    print(json.dumps({"bleu": scores}))


if __name__ == "__main__":
    main()
