"""What every export goes through, and what an entry of `FORMATS` says."""

from collections.abc import Callable
from typing import NamedTuple

from keras_transformer.exporting.parity.check import (
    check_parity,
    require_parity,
)
from keras_transformer.exporting.precision import float32_translator
from keras_transformer.folders import new_folder, write_checksums


class Format(NamedTuple):
    """A format to export to.

    export: function `(translator, folder, **options)` that gives a report.
    require: function that raises ImportError if a package is missing.
    check: function `(translator, **options)` that raises ValueError if the
        format cannot carry them.
    flags: dict of flags of the command to what `argparse` is told of each;
        what they are stored as (`dest`) is an option of `export`.
    by_default: bool, whether the command writes it if it is told no format.
    """

    export: Callable
    require: Callable = lambda: None
    check: Callable = lambda translator, **options: None
    flags: dict = {}
    by_default: bool = False


def write_export(
    translator,
    folder,
    runner,
    write,
    sentences=None,
    copy=float32_translator,
    insist=True,
):
    """Writes an export beside, compares its answers and renames it.

    Args:
        translator: `Translator`.
        folder: where to.
        runner: `Runner` that answers with the export.
        write: function `(translator, folder)` that writes the files and gives
            the names of the signatures that they hold.
        sentences: list of str to compare with; None for those of the run.
        copy: function of a `Translator` that gives the one to export.
        insist: bool, whether every sentence must be equal.

    Returns:
        The report of `check_parity`.

    Raises:
        ValueError: if `folder` exists.
        ParityError: if the export does not answer as the copy does. Then, as
            after any other error, nothing is left behind.
    """
    with new_folder(folder) as beside:
        translator = copy(translator)
        signatures = write(translator, beside)
        write_checksums(beside)
        report = check_parity(translator, beside, runner, signatures, sentences)
        if insist:
            require_parity(report, runner.name)
    return report
