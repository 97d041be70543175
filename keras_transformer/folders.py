"""Folders that are whole or not there at all."""

import contextlib
import hashlib
import os
import pathlib
import shutil
import tempfile

CHECKSUMS = "SHA256SUMS"


@contextlib.contextmanager
def new_folder(path):
    """Makes a folder beside `path` and renames it when all went well.

    Args:
        path: where the folder is to be. Parents are made.

    Yields:
        `pathlib.Path` of a folder to write into. If the block raises, it is
        removed, as are the parents that were made, and `path` does not come
        to be.

    Raises:
        ValueError: if `path` exists or cannot be made.
    """
    path = pathlib.Path(path)
    refuse_existing(path)
    missing = [above for above in path.parents if not above.exists()]
    beside = None
    try:
        beside = _make_beside(path)
        yield beside
        refuse_existing(path)
        beside.rename(path)
    except BaseException:
        if beside:
            shutil.rmtree(beside, ignore_errors=True)
        for above in missing:  # The inner ones first, and only if empty.
            with contextlib.suppress(OSError):
                above.rmdir()
        raise


def refuse_existing(path):
    """Raises ValueError if something is at `path`, or nothing can be."""
    if os.path.lexists(path):
        raise ValueError(
            f"output folder {str(path)!r} exists; expected a path where "
            "nothing is"
        )
    above = pathlib.Path(path).absolute().parent
    while not os.path.lexists(above):
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise ValueError(
            f"output folder {str(path)!r} cannot be made; expected "
            f"{str(above)!r} to be a folder that can be written"
        )


def _make_beside(path):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise ValueError(
            f"output folder {str(path)!r} cannot be made: {error}"
        ) from error
    beside = pathlib.Path(beside)
    beside.chmod(0o755)  # mkdtemp lets nobody else read it.
    return beside


def write_checksums(folder):
    """Writes `SHA256SUMS` over all files, in the format of `sha256sum`."""
    folder = pathlib.Path(folder)
    names = sorted(
        file.relative_to(folder).as_posix()
        for file in folder.rglob("*")
        if file.is_file() and file.name != CHECKSUMS
    )
    lines = [f"{_sha256(folder / name)}  {name}\n" for name in names]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def verify_checksums(folder):
    """Compares a folder with its `SHA256SUMS`.

    Raises:
        ValueError: naming the first file that is missing or has changed.
    """
    folder = pathlib.Path(folder)
    sums = folder / CHECKSUMS
    if not sums.is_file():
        raise ValueError(f"{str(folder)!r} holds no {CHECKSUMS}")
    lines = sums.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        expected, gap, name = line.partition("  ")
        if not gap:
            raise ValueError(
                f"{str(sums)!r}, line {number}: expected a SHA-256, two "
                f"blanks and a name, got {line!r}"
            )
        file = folder / name
        if not file.is_file():
            raise ValueError(f"{str(file)!r} is missing")
        if _sha256(file) != expected:
            raise ValueError(
                f"{str(file)!r} has changed: its SHA-256 is not the one in "
                f"{CHECKSUMS}"
            )


def _sha256(file):
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
