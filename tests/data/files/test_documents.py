import gc
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import Fault, SuiteError, suggest
from pytest_llmeval.data import Document, FaultLog, InputFile, render_path
from pytest_llmeval.data.files import documents as reading


def write(folder: Path, name: str, data: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def faults_of(path: Path) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        InputFile(path, path.name).read_document()
    return list(map(str, caught.value.faults))


def jsonl(folder: Path, data: bytes | str) -> tuple[list[tuple[int, Any]], list[str]]:
    faults: list[Fault] = []
    rows = list(InputFile(write(folder, "a.jsonl", data), "a.jsonl").read_jsonl(faults))
    return rows, list(map(str, faults))


def csv(folder: Path, data: bytes | str, **options: Any) -> tuple[list[tuple[int, dict[str, str]]], list[str]]:
    faults: list[Fault] = []
    rows = list(InputFile(write(folder, "a.csv", data), "a.csv").read_csv(faults, **options))
    return rows, list(map(str, faults))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ([], ""),
        (["cases"], "cases"),
        (["cases", 1, "thresholds", "f1"], "cases[1].thresholds.f1"),
        ([3], "[3]"),
        (["labels", "a b", "c"], "labels['a b'].c"),
        (["a.b"], "['a.b']"),
        (["Größe", "question-type"], "Größe.question-type"),
        (["1st"], "['1st']"),
        ([""], "['']"),
    ],
)
def test_path_is_written_as_people_write_it(path: list[str | int], text: str) -> None:
    assert render_path(path) == text


@pytest.mark.parametrize(
    ("word", "options", "text"),
    [
        ("bleu3", ["f1", "bleu2"], " (did you mean 'bleu2'?)"),
        ("RougeL", ["rouge1", "rougeL"], " (did you mean 'rougeL'?)"),
        ("EXPECTED", ["expected"], " (did you mean 'expected'?)"),
        ("zzz", ["f1", "bleu1"], ""),
        ("f1", [], ""),
        ("a" * 81, ["a" * 80], ""),
    ],
)
def test_nearest_option_is_suggested(word: str, options: list[str], text: str) -> None:
    assert suggest(word, options) == text


def test_suggestion_does_not_depend_on_the_order_of_the_options() -> None:
    options = ["bleu1", "BLEU1"]
    assert suggest("bleu", options) == suggest("bleu", options[::-1]) != ""


@pytest.mark.parametrize("name", ["a.yaml", "a.yml", "a.json", "a.JSON"])
def test_mark_and_carriage_returns_are_no_content(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, b'\xef\xbb\xbf{"a":\r\n  "\xc3\xa9",\r\n "b": 1}\r\n')
    document = InputFile(path, name).read_document()
    assert document.data == {"a": "é", "b": 1}
    assert document.locate(["b"]) == (3, 7)
    assert document.locate(["a"], key=True) == (1, 2)


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "found an empty file, expected a suite: a mapping with `cases` or a `source`"),
        (b"\xef\xbb\xbf\n \n", "found an empty file, expected a suite: a mapping with `cases` or a `source`"),
        (b'{"a":\n "b\xffc"}', ":2:4  found byte 0xff at byte offset 9, expected UTF-8"),
        (b'\xef\xbb\xbf{"\xc3\xa9\xff', ":1:4  found byte 0xff at byte offset 7, expected UTF-8"),
        ("{}".encode("utf-16"), ":1:1  found byte 0xff at byte offset 0, expected UTF-8: save it as UTF-8, not UTF-16"),
        (b"{\n\x00}", ":2:1  found a NUL character, expected text"),
    ],
)
def test_file_that_is_no_text_is_refused(tmp_path: Path, name: str, data: bytes, fault: str) -> None:
    separator = "" if fault.startswith(":") else "  "
    assert faults_of(write(tmp_path, name, data)) == [f"{name}{separator}{fault}"]


def test_missing_file_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    write(tmp_path, "capitals.eval.yaml", "a: 1")
    (fault,) = faults_of(tmp_path / "capitols.eval.yaml")
    assert fault == (
        "capitols.eval.yaml  cannot be read: No such file or directory (did you mean 'capitals.eval.yaml'?)"
    )
    assert faults_of(tmp_path / "none" / "a.json") == ["a.json  cannot be read: No such file or directory"]


def test_name_that_no_file_can_have_is_told() -> None:
    assert faults_of(Path("a\0b.yaml")) == ["a\0b.yaml  cannot be read: embedded null byte"]


def test_directory_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").mkdir()
    assert faults_of(tmp_path / "a.yaml") == ["a.yaml  found a directory, expected a file"]


def test_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    faults: list[Fault] = []
    assert list(InputFile(tmp_path / "a.jsonl", "a.jsonl").read_jsonl(faults)) == []
    assert list(map(str, faults)) == ["a.jsonl  found a device or a pipe, expected a file"]


def test_unreadable_file_is_told_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    write(tmp_path, "a.yaml", "a: 1")
    monkeypatch.setattr(Path, "open", refuse)
    assert faults_of(tmp_path / "a.yaml") == ["a.yaml  cannot be read: Permission denied"]
    faults: list[Fault] = []
    assert list(InputFile(tmp_path / "a.yaml", "a.yaml").read_jsonl(faults)) == []
    assert list(map(str, faults)) == ["a.yaml  cannot be read: Permission denied"]


def test_too_large_suite_is_sent_to_jsonl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_SUITE_BYTES", 1 << 20)
    assert InputFile(write(tmp_path, "a.yaml", "a: " + "x" * ((1 << 20) - 3)), "a.yaml").read_document().data
    (fault,) = faults_of(write(tmp_path, "a.yaml", "a: " + "x" * ((1 << 20) - 2)))
    assert fault == (
        "a.yaml  found more than 1 MiB, which is the limit:"
        " put large sets of cases into a JSONL file and name it under `source`"
    )


@pytest.mark.parametrize("was_enabled", [True, False])
def test_garbage_collector_is_as_it_was(tmp_path: Path, was_enabled: bool) -> None:
    try:
        (gc.enable if was_enabled else gc.disable)()
        faults_of(write(tmp_path, "a.yaml", "a: ["))
        InputFile(write(tmp_path, "a.json", "[]"), "a.json").read_json()
        assert gc.isenabled() is was_enabled
    finally:
        gc.enable()


def test_document_without_places_locates_nothing() -> None:
    assert Document("a", {"b": 1}).locate(["b"]) == (0, 0)
    assert str(Document("a", {}).fault(["b"], "found x, expected y")) == "a  b: found x, expected y"


def test_hundred_faults_are_listed_and_the_rest_counted() -> None:
    faults = FaultLog("a.yaml")
    for line in range(1, FaultLog.MAX_LISTED + 51):
        faults.add(line, 1, "", "found x, expected y")
    faults = faults.listed()
    assert len(faults) == FaultLog.MAX_LISTED + 1
    assert str(faults[-1]) == "a.yaml  ... and 50 more"


def test_jsonl_rows_have_their_line_numbers(tmp_path: Path) -> None:
    rows, faults = jsonl(tmp_path, b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n[2]\n"\xe2\x80\xa8"\nnull')
    assert rows == [(1, {"a": 1}), (4, [2]), (5, "\u2028"), (6, None)]
    assert faults == []


FAULTS = Path(__file__).with_name("jsonl_faults.txt")
"""The faults that the test below expects, in their order."""


def test_bad_jsonl_lines_are_told_and_the_others_survive(tmp_path: Path) -> None:
    lines = [
        b'{"id": 1}',
        b"{'id': 2}",
        b'{"id": "\xff"}',
        b'{"a": 1, "a": 2}',
        b'{"a": [NaN, 1e999]}',
        b'{"a": "\\ud800"}',
        b"[" * 2000,
        b'{"a": 1} {"a": 2}',
        b"{",
        b'{"a": "\x00"}',
        b'{"id": 11}',
    ]
    rows, faults = jsonl(tmp_path, b"\n".join(lines))
    assert rows == [(1, {"id": 1}), (11, {"id": 11})]
    assert faults == FAULTS.read_text(encoding="utf-8").splitlines()


def test_only_the_first_hundred_bad_lines_are_listed(tmp_path: Path) -> None:
    rows, faults = jsonl(tmp_path, "x\n" * 250 + "1\n")
    assert rows == [(251, 1)]
    assert len(faults) == FaultLog.MAX_LISTED + 1
    assert faults[-1] == "a.jsonl  ... and 150 more"


def test_too_long_jsonl_line_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InputFile, "MAX_LINE_BYTES", 1 << 20)
    fits = '"' + "x" * ((1 << 20) - 2) + '"'
    rows, faults = jsonl(tmp_path, f'{fits}\n1\n"{"y" * (3 << 20)}"\n"\udc80"\n2\n'.encode(errors="surrogateescape"))
    assert [line for line, _ in rows] == [1, 2, 5]
    assert faults == [
        "a.jsonl:3:1  found a line that is too long, expected at most 1 MiB",
        f"a.jsonl:4:2  found byte 0x80 at byte offset {(4 << 20) + 7}, expected UTF-8",
    ]


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"\n\n \r\n"])
def test_empty_jsonl_file_is_a_fault(tmp_path: Path, data: bytes) -> None:
    assert jsonl(tmp_path, data) == ([], ["a.jsonl  found an empty file, expected one JSON value per line"])


def test_csv_rows_have_the_number_of_their_first_line(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbfid,text\r\n1,"a\r\nb, ""c"""\r\n\r\n2,\r\n'
    assert csv(tmp_path, data) == ([(2, {"id": "1", "text": 'a\nb, "c"'}), (5, {"id": "2", "text": ""})], [])


def test_csv_delimiter_is_an_option(tmp_path: Path) -> None:
    assert csv(tmp_path, "a\tb\n1,2\t3\n", delimiter="\t") == ([(2, {"a": "1,2", "b": "3"})], [])


def test_bad_csv_rows_are_told_and_the_others_survive(tmp_path: Path) -> None:
    rows, faults = csv(tmp_path, 'a,b\n1,2,3\n4\n"5"x,6\n7,8\n9,"10\n11,12\n')
    assert rows == [(5, {"a": "7", "b": "8"})]
    assert faults == [
        "a.csv:2:1  found 3 cells, expected 2 as in the header",
        "a.csv:3:1  found 1 cells, expected 2 as in the header",
        "a.csv:4:1  found a malformed CSV row (',' expected after '\"'), expected matching quotes",
        "a.csv:6:1  found a malformed CSV row (unexpected end of data), expected matching quotes",
    ]


def test_column_that_stands_twice_stops_a_csv_file(tmp_path: Path) -> None:
    assert csv(tmp_path, "a,b,a\n1,2,3\n") == (
        [],
        ["a.csv:1:1  a: found the column 'a' twice, expected it once"],
    )


WINDOWS = ": save it as UTF-8 (it may be Windows text, cp1252)"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "a.csv  found an empty file, expected a line of column names"),
        (b"a\n\xff\n", f"a.csv:2:1  found byte 0xff at byte offset 2, expected UTF-8{WINDOWS}"),
        (b"a\nx\x00\n", "a.csv:2:2  found a NUL character, expected text"),
    ],
)
def test_csv_file_that_is_no_text_is_a_fault(tmp_path: Path, data: bytes, fault: str) -> None:
    assert csv(tmp_path, data) == ([], [fault])


def test_long_csv_cell_is_read_and_the_global_limit_kept(tmp_path: Path) -> None:
    import csv as standard

    before = standard.field_size_limit(1000)
    try:
        rows, faults = csv(tmp_path, f"a\n{'x' * 200_000}\n")
        assert standard.field_size_limit() == 1000
    finally:
        standard.field_size_limit(before)
    assert len(rows[0][1]["a"]) == 200_000
    assert faults == []


def test_readers_yield_lazily_where_a_caller_stops_early(tmp_path: Path) -> None:
    faults: list[Fault] = []
    rows: Iterable[tuple[int, Any]] = InputFile(write(tmp_path, "a.jsonl", "1\nx\n"), "a.jsonl").read_jsonl(faults)
    assert next(iter(rows)) == (1, 1)
    assert faults == []
