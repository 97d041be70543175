"""Parallel text: lines of one language beside their translations."""

import codecs
import gzip
import os
import zlib


def read_lines(path):
    r"""Reads the lines of a text file, one sentence a line.

    A line ends at `"\n"` and nowhere else: `str.splitlines` and some readers
    also split at U+2028, `"\x0b"` or `"\x85"`, which puts every later line
    beside the wrong translation. A `"\r"` before the line end and a
    byte-order mark at the start of the file are dropped; whether the last
    line ends in a newline makes no difference.

    Args:
        path: name of a UTF-8 text file; gzip if it ends in `.gz`.

    Returns:
        List of str, empty for an empty file.

    Raises:
        ValueError: the file cannot be read, is not gzip although its name
            says so, or holds bytes that are not UTF-8 (with the line number).
    """
    data = _read_bytes(path).removeprefix(codecs.BOM_UTF8)
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {number}: expected UTF-8 text, got the bytes "
            f"{data[error.start : error.start + 4].hex(' ')}"
        ) from error
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _read_bytes(path):
    opener = gzip.open if os.fspath(path).endswith(".gz") else open
    try:
        with opener(path, "rb") as file:
            return file.read()
    except FileNotFoundError as error:
        raise ValueError(f"{path}: there is no such file") from error
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error


class ParallelCorpus:
    """Sentence pairs, line by line, for training and for scoring.

    A pair with a blank side teaches nothing but silence, so it leaves both
    sides together and is counted in `dropped`. Scoring compares line n with
    line n and needs every line: pass `keep_blank=True` there.

    Args:
        source: sequence of str, the sentences to translate.
        target: sequence of str, their translations, as many.
        keep_blank: whether pairs with a blank side stay.
        names: what errors call the two sides.

    Raises:
        ValueError: the sides differ in length, or no pair is left.

    Example:
    >>> corpus = ParallelCorpus(["ja", "", "nein"], ["yes", "so", "no"])
    >>> list(corpus), corpus.dropped
    ([('ja', 'yes'), ('nein', 'no')], 1)
    """

    def __init__(
        self, source, target, *, keep_blank=False, names=("source", "target")
    ):
        if len(source) != len(target):
            raise ValueError(
                "both sides of a corpus need the same number of lines, got "
                f"{len(source)} in {names[0]} and {len(target)} in {names[1]}"
            )
        pairs = zip(source, target, strict=True)
        kept = [
            pair
            for pair in pairs
            if keep_blank or (pair[0].strip() and pair[1].strip())
        ]
        if not kept:
            blank = ", each blank on a side" if len(source) else ""
            raise ValueError(
                f"{names[0]} and {names[1]}: expected a sentence pair at "
                f"least, got {len(source)} lines{blank}"
            )
        self._source = [pair[0] for pair in kept]
        self._target = [pair[1] for pair in kept]
        self._dropped = len(source) - len(kept)

    @classmethod
    def from_files(cls, source_path, target_path, *, keep_blank=False):
        """Reads two files whose lines are translations of each other.

        Args:
            source_path: text file, plain or `.gz`, read by `read_lines`.
            target_path: likewise, with as many lines.
            keep_blank: whether pairs with a blank side stay.

        Returns:
            `ParallelCorpus`.

        Raises:
            ValueError: a file is missing, empty or not UTF-8, or the counts
                differ; the message names the files.
        """
        return cls(
            read_lines(source_path),
            read_lines(target_path),
            keep_blank=keep_blank,
            names=(source_path, target_path),
        )

    @classmethod
    def from_tsv(cls, path, *, keep_blank=False):
        """Reads one file of two columns, source and target, split by a tab.

        Args:
            path: text file, plain or `.gz`, read by `read_lines`.
            keep_blank: whether pairs with a blank side stay.

        Returns:
            `ParallelCorpus`.

        Raises:
            ValueError: the file is missing, empty or not UTF-8, or a line
                has another number of columns; the message names both.
        """
        pairs = [line.split("\t") for line in read_lines(path)]
        for number, columns in enumerate(pairs, start=1):
            if len(columns) != 2:
                raise ValueError(
                    f"{path}, line {number}: expected 2 columns split by a "
                    f"tab, got {len(columns)}"
                )
        return cls(
            [columns[0] for columns in pairs],
            [columns[1] for columns in pairs],
            keep_blank=keep_blank,
            names=(f"column 1 of {path}", f"column 2 of {path}"),
        )

    @property
    def source(self):
        """List of str, the sentences to translate."""
        return self._source

    @property
    def target(self):
        """List of str, the translations, in the order of `source`."""
        return self._target

    @property
    def dropped(self):
        """Number of pairs left out because a side was blank."""
        return self._dropped

    def __len__(self):
        return len(self._source)

    def __iter__(self):
        return zip(self._source, self._target, strict=True)

    def __repr__(self):
        return f"ParallelCorpus({len(self)} pairs, {self.dropped} dropped)"
