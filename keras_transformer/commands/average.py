"""`keras-transformer average`: one model from several of one training."""

import json

from keras_transformer.folders import refuse_existing
from keras_transformer.training import average_weights
from keras_transformer.translator import Translator


def add_parser(subparsers):
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "average",
        help="average the weights of models",
        description="Writes a model whose weights are the mean of those of "
        "others, which must have the same sizes and tokenizers. Prints a line "
        "of JSON.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "models", metavar="RUN", nargs="+", help="folder of a model"
    )
    parser.add_argument(
        "--output", required=True, metavar="RUN", help="folder to write"
    )
    return parser


def run(arguments, output):
    """Averages and saves."""
    refuse_existing(arguments.output)
    first = Translator.load(arguments.models[0])
    expected = _identity(first)

    def weights():
        yield first.transformer.get_weights()
        for folder in arguments.models[1:]:
            other = Translator.load(folder)
            for name, value in _identity(other).items():
                if value != expected[name]:
                    raise ValueError(
                        f"{folder}: its {name} differs from that of "
                        f"{arguments.models[0]}; expected models of one "
                        "training"
                    )
            yield other.transformer.get_weights()

    first.transformer.set_weights(average_weights(weights()))
    training = {"averaged": list(arguments.models)}
    # The other facts, such as scores, are of the first alone.
    if "examples" in first.training:
        training["examples"] = first.training["examples"]
    first.training = training
    first.save(arguments.output)
    facts = {"model": arguments.output, "averaged": len(arguments.models)}
    print(json.dumps(facts, ensure_ascii=False), file=output)


def _identity(translator):
    """What two models must have in common, by name."""
    config = translator.transformer.get_config()
    config.pop("name", None)
    return {
        **config,
        "source tokenizer": translator.source_tokenizer.model_proto,
        "target tokenizer": translator.target_tokenizer.model_proto,
    }
