"""The learning rate of `keras-transformer train`."""

import keras

from keras_transformer.training import WarmupSchedule

# By --size: the paper's, and one that fits some ten thousand pairs.
_WARMUP_STEPS = {"tiny": 500, "base": 4000, "big": 4000}
# The paper's rate suits large models; a small one learns faster with more.
_TINY_PEAK_RATE = 0.002


def add_schedule(group):
    """Adds the arguments."""
    group.add_argument(
        "--warmup-steps",
        type=int,
        help="updates until the peak of the learning rate; default 500 for "
        "tiny and --from, 4000 otherwise",
    )
    rate = group.add_mutually_exclusive_group()
    rate.add_argument(
        "--peak-rate",
        type=float,
        help="largest learning rate; default 0.002 for tiny",
    )
    rate.add_argument(
        "--factor",
        type=float,
        help="instead: of the paper's learning rate; default 1 for base, big",
    )
    group.add_argument(
        "--decay",
        choices=("inverse-sqrt", "cosine"),
        default="inverse-sqrt",
        help="after the peak: as the paper has it (default), or as a cosine "
        "that ends at 0 with the last update",
    )


def make_schedule(
    d_model,
    steps,
    *,
    epochs,
    steps_per_update,
    size,
    warmup_steps,
    peak_rate,
    factor,
    decay,
):
    """Makes the Keras `LearningRateSchedule` of these settings.

    An epoch has so many `steps`, which are batches. A `size` of None is that
    of a model to start from.

    Raises:
        ValueError: if one is out of range.
    """
    if warmup_steps is None:
        warmup_steps = _WARMUP_STEPS[size or "tiny"]
    if peak_rate is None and factor is None:
        if size == "tiny":
            peak_rate = _TINY_PEAK_RATE
        else:
            factor = 1.0
    if factor is None:
        schedule = WarmupSchedule.from_peak(
            peak_rate, d_model, warmup_steps, steps_per_update
        )
    else:
        schedule = WarmupSchedule(
            d_model, warmup_steps, factor, steps_per_update
        )
    if decay == "inverse-sqrt":
        return schedule
    warmup = warmup_steps * steps_per_update  # In batches.
    total = epochs * steps
    if total <= warmup:
        raise ValueError(
            f"--decay cosine needs more updates than --warmup-steps "
            f"{warmup_steps}, got {total // steps_per_update}"
        )
    return keras.optimizers.schedules.CosineDecay(
        0.0,
        decay_steps=total - warmup,
        warmup_target=float(schedule(warmup - 1)),
        warmup_steps=warmup,
    )
