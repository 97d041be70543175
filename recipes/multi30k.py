"""English to German on Multi30k, from text files to BLEU.

python recipes/multi30k.py --data data/multi30k --form tok

The sizes are those of Wu et al., 2021 (https://arxiv.org/abs/2105.14462): 4+4
layers, d_model 128, d_ff 256, 4 heads, all embeddings shared. They train it in
post-norm with 10,000 pieces, a rate that falls with the square root of the
step, and the average of ten checkpoints. Here the layers are pre-norm, which
learns far faster when dropout is high; there are 4,000 pieces; each pass over
the 29,000 pairs cuts the words in other ways (BPE-dropout); and the rate falls
to 0. `--quick` trains for a quarter of the epochs, without BPE-dropout.
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
    BatchPlan,
    BleuScore,
    MaskedCrossEntropy,
    Perplexity,
    TokenAccuracy,
    Tokenizer,
    Transformer,
    Translator,
    batches,
)
from multi30k_data import TEST_SETS, load_corpus

PRESETS = {
    "quick": {
        "epochs": 20,
        "bpe_dropout": 0.0,
        "dropout": 0.1,
        "peak_rate": 0.003,
        "warmup_steps": 500,
    },
    "full": {
        "epochs": 80,
        "bpe_dropout": 0.08,
        "dropout": 0.2,
        "peak_rate": 0.003,
        "warmup_steps": 800,
    },
}
VOCAB_SIZE = 4000
BATCH_TOKENS = 2048
BEAM_SIZE = 5
LENGTH_PENALTIES = (0.0, 0.6, 1.0, 1.4)
EPOCHS_BETWEEN_BLEU = 5


def train(data, form, preset, seed):
    keras.utils.set_random_seed(seed)
    corpus = load_corpus(data, form, "train")
    validation = load_corpus(data, form, "val")
    tokenizer = Tokenizer.train_from_lines(
        [*corpus.source, *corpus.target], VOCAB_SIZE
    )
    model = Transformer(
        VOCAB_SIZE, **{**TINY, "dropout": preset["dropout"], "norm_first": True}
    )
    translator = Translator(model, tokenizer)
    plan = BatchPlan(
        corpus,
        tokenizer,
        batch_tokens=BATCH_TOKENS,
        bpe_dropout=preset["bpe_dropout"],
        seed=seed,
    )
    # A rate that falls to 0 leaves nothing for an average of checkpoints to
    # smooth.
    rate = keras.optimizers.schedules.CosineDecay(
        0.0,
        decay_steps=preset["epochs"] * len(plan) - preset["warmup_steps"],
        warmup_target=preset["peak_rate"],
        warmup_steps=preset["warmup_steps"],
    )
    model.compile(
        optimizer=keras.optimizers.Adam(
            rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9
        ),
        loss=MaskedCrossEntropy(label_smoothing=0.1),
        metrics=[TokenAccuracy(), Perplexity()],
        jit_compile=True,
    )
    started = time.time()
    history = model.fit(
        plan.endless(),
        steps_per_epoch=len(plan),
        validation_data=batches(
            validation,
            tokenizer,
            batch_tokens=BATCH_TOKENS,
            num_buckets=2,
            shuffle=False,
        ),
        epochs=preset["epochs"],
        callbacks=[
            BleuScore(
                translator.translate,
                validation.source,
                validation.target,
                every=EPOCHS_BETWEEN_BLEU,
                tokenize=tokenize_rule(form),
            )
        ],
        shuffle=False,  # The batches are shuffled already.
        verbose=2,
    )
    translator.training = {
        "recipe": "multi30k",
        "form": form,
        "seed": seed,
        **preset,
        "batch_tokens": BATCH_TOKENS,
        "updates": int(model.optimizer.iterations.numpy()),
        "parameters": model.count_params(),
        "minutes": round((time.time() - started) / 60, 1),
        "history": {
            name: [round(float(value), 4) for value in values]
            for name, values in history.history.items()
        },
        "examples": validation.source[:100],
    }
    return translator


def tokenize_rule(form):
    """What sacrebleu does to words: nothing where they are split already."""
    return "none" if form == "tok" else "13a"


def choose_length_penalty(translator, data, form, metric):
    """The one with which beam search does best on the validation set."""
    validation = load_corpus(data, form, "val", keep_blank=True)

    def score(alpha):
        found = translator.translate(
            validation.source,
            "beam",
            beam_size=BEAM_SIZE,
            length_penalty=alpha,
        )
        bleu = metric.corpus_score(found, [validation.target]).score
        print(f"validation, length penalty {alpha}: BLEU {bleu:.2f}")
        return bleu

    return max(LENGTH_PENALTIES, key=score)


def evaluate(translator, data, form):
    """Prints sacrebleu's BLEU and signature for greedy and beam search.

    The tok form is tokenised already; the raw form is scored cased and
    detokenised, as sacrebleu wants it.
    """
    metric = sacrebleu.BLEU(
        tokenize=tokenize_rule(form),
        force=form == "tok",  # Else it warns that the text looks tokenised.
    )
    beam = {
        "beam_size": BEAM_SIZE,
        "length_penalty": choose_length_penalty(translator, data, form, metric),
    }
    scores = {}
    for test_set in TEST_SETS:
        test = load_corpus(data, form, test_set, keep_blank=True)
        scores[test_set] = {}
        for strategy, options in (("greedy", {}), ("beam", beam)):
            translations = translator.translate(
                test.source, strategy, **options
            )
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

    preset = dict(PRESETS["quick" if arguments.quick else "full"])
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
