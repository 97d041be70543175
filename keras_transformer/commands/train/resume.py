"""Where an interrupted `keras-transformer train` goes on."""

import dataclasses
import hashlib
import logging
import pathlib

from keras_transformer.training import latest_checkpoint
from keras_transformer.translator import Translator

_logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Progress:
    """What is done already.

    Attributes:
        folder: `pathlib.Path` of the checkpoints.
        checkpoint: `pathlib.Path` of the one to go on from, or None.
        translator: `Translator` that it holds, or None.
        epoch: int, epochs that are done.
        history: list of dicts, their logs.
        stopped: bool, whether the training has ended early.
        minutes: float, that it has taken.
    """

    folder: pathlib.Path
    checkpoint: pathlib.Path | None = None
    translator: Translator | None = None
    epoch: int = 0
    history: list = dataclasses.field(default_factory=list)
    stopped: bool = False
    minutes: float = 0.0

    @classmethod
    def find(cls, folder, facts):
        """Looks for a training that was interrupted.

        Args:
            folder: `pathlib.Path` of the checkpoints, which need not exist.
            facts: dict with `settings`, `data` and `versions` of this run.

        Returns:
            `Progress`.

        Raises:
            ValueError: if the training there had other settings or texts.
        """
        checkpoint = latest_checkpoint(folder)
        if checkpoint is None:
            return cls(folder)
        translator = Translator.load(checkpoint)
        before = translator.training
        differences = [
            f"{name} was {_shown(old)}, is {_shown(new)}"
            for part in ("settings", "data")
            for name, old, new in _differences(before[part], facts[part])
        ]
        if differences:
            raise ValueError(
                f"{folder} holds a training with other settings: "
                f"{'; '.join(differences)}; expected the same, to go on with "
                "it; or remove that folder, or give another --output"
            )
        for name, old, new in _differences(
            before["versions"], facts["versions"]
        ):
            _logger.warning(
                "the checkpoints were written with %s %s, this is %s: the "
                "weights may come out otherwise",
                *(name, old, new),
            )
        _logger.info("going on from %s", checkpoint)
        done = ("epoch", "history", "stopped", "minutes")
        reached = {name: before[name] for name in done}
        return cls(folder, checkpoint, translator, **reached)


def checkpoint_folder(output):
    """Where the checkpoints of the run are that is to be at `output`."""
    output = pathlib.Path(output)
    return output.with_name(f"{output.name}.checkpoints")


def digest(corpus):
    """A short name for the texts of a corpus, or None for None."""
    if corpus is None:
        return None
    sha256 = hashlib.sha256()
    for lines in (corpus.source, corpus.target):
        for line in lines:
            sha256.update(line.encode() + b"\n")
        sha256.update(b"\0")
    return sha256.hexdigest()[:16]


def _differences(old, new):
    """Names and both values of what differs between two dicts."""
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def _shown(value):
    return "not given" if value is None else value
