import hashlib
import os
import stat

import pytest

from keras_transformer.folders import (
    new_folder,
    refuse_existing,
    verify_checksums,
    write_checksums,
)


def tree(folder):
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*")
    )


def test_folder_comes_to_be_when_the_block_ends(tmp_path):
    with new_folder(tmp_path / "a" / "b" / "run") as beside:
        (beside / "x").write_text("x")
        assert not (tmp_path / "a" / "b" / "run").exists()
        assert beside.parent == tmp_path / "a" / "b"
    assert tree(tmp_path) == ["a", "a/b", "a/b/run", "a/b/run/x"]


def test_folder_can_be_read_by_others(tmp_path):
    with new_folder(tmp_path / "run"):
        pass
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o755


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failing_block_leaves_nothing_not_even_parents(tmp_path, error):
    with pytest.raises(error, match="stop"):
        with new_folder(tmp_path / "a" / "b" / "run") as beside:
            (beside / "x").write_text("x")
            raise error("stop")
    assert tree(tmp_path) == []


def test_failing_block_leaves_what_others_wrote(tmp_path):
    with pytest.raises(ValueError, match="stop"):
        with new_folder(tmp_path / "a" / "run"):
            (tmp_path / "a" / "other").write_text("x")
            raise ValueError("stop")
    assert tree(tmp_path) == ["a", "a/other"]


def test_path_that_comes_to_be_meanwhile_is_kept(tmp_path):
    with pytest.raises(ValueError, match="'.*run' exists"):
        with new_folder(tmp_path / "run"):
            (tmp_path / "run").mkdir()
    assert tree(tmp_path) == ["run"]


def test_relative_path_is_beside_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with new_folder("run") as beside:
        (beside / "x").write_text("x")
    assert tree(tmp_path) == ["run", "run/x"]


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link"])
def test_whatever_is_there_is_refused(tmp_path, kind):
    path = tmp_path / "run"
    if kind == "folder":
        path.mkdir()
    elif kind == "file":
        path.write_text("x")
    else:
        path.symlink_to(tmp_path / "nowhere")
    message = f"output folder '{path}' exists; expected a path where nothing"
    with pytest.raises(ValueError, match=message):
        refuse_existing(path)
    with pytest.raises(ValueError, match=message):
        with new_folder(path):
            pytest.fail("the block ran")
    assert tree(tmp_path) == ["run"]


def test_path_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    message = "run' cannot be made; expected '.*/file' to be a folder"
    with pytest.raises(ValueError, match=message):
        refuse_existing(tmp_path / "file" / "a" / "run")


def test_folder_that_the_system_refuses_to_make_is_named(tmp_path):
    name = "x" * 300
    with pytest.raises(ValueError, match=f"a/{name}' cannot be made: .*long"):
        with new_folder(tmp_path / "a" / name):
            pytest.fail("the block ran")
    assert tree(tmp_path) == []


@pytest.fixture
def summed(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "b.bin").write_bytes(b"\x00\xff")
    (tmp_path / "part" / "a b.txt").write_text("ä")
    write_checksums(tmp_path)
    return tmp_path


def test_checksums_have_the_format_of_sha256sum(summed):
    expected = [
        f"{hashlib.sha256(data).hexdigest()}  {name}\n"
        for name, data in (
            ("b.bin", b"\x00\xff"),
            ("part/a b.txt", "ä".encode()),
        )
    ]
    assert (summed / "SHA256SUMS").read_text() == "".join(expected)
    verify_checksums(summed)


def test_checksums_may_be_written_again(summed):
    (summed / "b.bin").write_bytes(b"new")
    write_checksums(summed)
    verify_checksums(summed)


def test_changed_and_missing_files_are_named(summed):
    (summed / "part" / "a b.txt").write_text("o")
    with pytest.raises(ValueError, match="part/a b.txt' has changed"):
        verify_checksums(summed)
    os.remove(summed / "b.bin")
    with pytest.raises(ValueError, match="b.bin' is missing"):
        verify_checksums(summed)


def test_folder_without_checksums_is_refused(tmp_path):
    with pytest.raises(ValueError, match=f"'{tmp_path}' holds no SHA256SUMS"):
        verify_checksums(tmp_path)
