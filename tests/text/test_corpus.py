import gzip

import pytest

from keras_transformer.text import ParallelCorpus, read_lines


def write(path, data):
    data = data if isinstance(data, bytes) else data.encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_only_a_newline_ends_a_line(tmp_path):
    text = "a\u2028b\nc\x0bd\x0ce\n\x85\x1c\u2029f\rg\n"
    lines = read_lines(write(tmp_path / "x", text))
    assert lines == ["a\u2028b", "c\x0bd\x0ce", "\x85\x1c\u2029f\rg"]


def test_carriage_returns_and_byte_order_mark_vanish(tmp_path):
    text = "\ufeffhello\r\n\r\nx\ufeff\r\r\n"
    assert read_lines(write(tmp_path / "x", text)) == ["hello", "", "x\ufeff\r"]


@pytest.mark.parametrize("text, lines", [("", []), ("\n", [""])])
def test_an_empty_file_has_no_line_and_a_newline_makes_one(
    tmp_path, text, lines
):
    assert read_lines(write(tmp_path / "x", text)) == lines


@pytest.mark.parametrize("name", ["x", "x.gz"])
def test_last_newline_and_compression_make_no_difference(tmp_path, name):
    for text in ("für\n😀", "für\n😀\n"):
        assert read_lines(write(tmp_path / name, text)) == ["für", "😀"]


@pytest.mark.parametrize("name", ["x", "x.gz"])
def test_bad_utf8_is_named_with_file_and_line(tmp_path, name):
    data = b"\xef\xbb\xbfone\r\ntwo\n" + b"ab\xff\xfecd\n" + b"four\n"
    with pytest.raises(ValueError, match=rf"{name}, line 3: .*ff fe 63 64"):
        read_lines(write(tmp_path / name, data))


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(ValueError, match="none.txt: there is no such file"):
        read_lines(tmp_path / "none.txt")
    with pytest.raises(ValueError, match=f"{tmp_path.name}: cannot be read"):
        read_lines(tmp_path)
    packed = gzip.compress(b"some text\n" * 99)
    for data in (b"plain text", packed[:-20], packed[:20] + b"x" + packed[21:]):
        (tmp_path / "x.gz").write_bytes(data)
        with pytest.raises(ValueError, match="x.gz: cannot be read"):
            read_lines(tmp_path / "x.gz")


def test_pairs_with_a_blank_side_leave_both_sides(tmp_path):
    source = write(tmp_path / "s", "a\n\nc\n\u3000\t\ne")
    target = write(tmp_path / "t.gz", "A\nB\nC\nD\n \n")
    corpus = ParallelCorpus.from_files(source, target)
    assert list(corpus) == [("a", "A"), ("c", "C")]
    assert (len(corpus), corpus.dropped) == (2, 3)
    every = ParallelCorpus.from_files(source, target, keep_blank=True)
    assert every.source == ["a", "", "c", "\u3000\t", "e"]
    assert every.target == ["A", "B", "C", "D", " "]
    assert (len(every), every.dropped) == (5, 0)


def test_unequal_counts_are_told_with_both_files(tmp_path):
    source = write(tmp_path / "s.de", "a\nb\nc\n")
    target = write(tmp_path / "t.en.gz", "a\nb\nc\nd\n")
    with pytest.raises(ValueError, match=r"3 in .*s\.de and 4 in .*t\.en\.gz"):
        ParallelCorpus.from_files(source, target)
    with pytest.raises(ValueError, match="got 1 in source and 0 in target"):
        ParallelCorpus(["a"], [])


def test_a_corpus_needs_a_pair(tmp_path):
    empty = write(tmp_path / "none", "")
    with pytest.raises(ValueError, match="none and .*none: .*got 0 lines$"):
        ParallelCorpus.from_files(empty, empty, keep_blank=True)
    with pytest.raises(ValueError, match="got 2 lines, each blank on a side"):
        ParallelCorpus(["a", " "], ["", "b"])


@pytest.mark.parametrize("name", ["x.tsv", "x.tsv.gz"])
def test_tsv_has_a_column_a_side(tmp_path, name):
    path = write(tmp_path / name, "a b\tA\n\tB\nc\tC D\r\n")
    corpus = ParallelCorpus.from_tsv(path)
    assert list(corpus) == [("a b", "A"), ("c", "C D")]
    assert corpus.dropped == 1
    assert len(ParallelCorpus.from_tsv(path, keep_blank=True)) == 3


@pytest.mark.parametrize("line, columns", [("one", 1), ("a\tb\tc", 3)])
def test_another_number_of_columns_is_named_with_its_line(
    tmp_path, line, columns
):
    path = write(tmp_path / "x.tsv", f"a\tA\n{line}\n")
    message = rf"x\.tsv, line 2: expected 2 columns.*, got {columns}$"
    with pytest.raises(ValueError, match=message):
        ParallelCorpus.from_tsv(path)


def test_a_corpus_cannot_be_changed_by_its_callers():
    source = ["a", "b"]
    corpus = ParallelCorpus(source, ["A", "B"])
    source.append("c")
    assert corpus.source == ["a", "b"]
    with pytest.raises(AttributeError):
        corpus.source = []
