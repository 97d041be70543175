"""The learning rate (paper, section 5.3)."""

import keras
from keras import ops

from keras_transformer.layers.arguments import check_positive


@keras.saving.register_keras_serializable("keras_transformer")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly for `warmup_steps` updates, then falls as `step^-0.5`.

    `factor * D^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)`

    Paper: section 5.3, equation 3. Different: `factor` scales the whole.
    Keras counts iterations from 0, the paper steps from 1: iteration `t` is
    step `t + 1`. To be used with Adam(beta_1=0.9, beta_2=0.98, epsilon=1e-9).

    Args:
        d_model: int, `D`.
        warmup_steps: int, updates until the peak.
        factor: float.
        steps_per_update: int. With gradient accumulation Keras calls a
            schedule once a micro-batch; this many of them are one update.

    Call arguments:
        step: Keras' iteration, an int or a scalar tensor of any number type.

    Returns:
        float32 scalar, the learning rate.

    Raises:
        ValueError: if an int is not positive or `factor` is not above 0.

    Example:

    >>> schedule = WarmupSchedule(d_model=512, warmup_steps=4000)
    >>> [f"{float(schedule(t)):.5e}" for t in (0, 3999, 15999)]
    ['1.74693e-07', '6.98771e-04', '3.49386e-04']
    """

    def __init__(
        self, d_model, warmup_steps=4000, factor=1.0, steps_per_update=1
    ):
        super().__init__()
        check_positive(
            d_model=d_model,
            warmup_steps=warmup_steps,
            steps_per_update=steps_per_update,
        )
        if not isinstance(factor, (int, float)) or not factor > 0:
            raise ValueError(
                f"factor must be a number above 0, got factor={factor!r}"
            )
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.factor = factor
        self.steps_per_update = steps_per_update

    @classmethod
    def from_peak(cls, peak_rate, d_model, warmup_steps, steps_per_update=1):
        """Makes the schedule whose largest rate is `peak_rate`.

        Args:
            peak_rate: float, the rate at update `warmup_steps`.
            d_model: as of the schedule.
            warmup_steps: as of the schedule.
            steps_per_update: as of the schedule.

        Returns:
            `WarmupSchedule`.

        Raises:
            ValueError: if `peak_rate` is not above 0, and as the schedule.
        """
        if not isinstance(peak_rate, (int, float)) or not peak_rate > 0:
            raise ValueError(
                f"peak_rate must be a number above 0, got {peak_rate=!r}"
            )
        check_positive(d_model=d_model, warmup_steps=warmup_steps)
        factor = peak_rate * (d_model * warmup_steps) ** 0.5
        return cls(d_model, warmup_steps, factor, steps_per_update)

    def __call__(self, step):
        update = ops.cast(step, "float32")
        if self.steps_per_update > 1:
            update = ops.floor(update / self.steps_per_update)
        update = update + 1.0
        rate = ops.minimum(ops.rsqrt(update), update * self.warmup_steps**-1.5)
        return self.factor * self.d_model**-0.5 * rate

    def get_config(self):
        return {
            "d_model": self.d_model,
            "warmup_steps": self.warmup_steps,
            "factor": self.factor,
            "steps_per_update": self.steps_per_update,
        }
