import json
from pathlib import Path
from typing import Any

import pytest
from project import Loaded, load_source
from pydantic import TypeAdapter, ValidationError

from pytest_llmeval.core import MISSING, Case, Fault, LlmevalError
from pytest_llmeval.data import Source
from pytest_llmeval.suites import Registry

pytestmark = pytest.mark.usefixtures("here")


def load(folder: Path, name: str, data: str, **options: Any) -> Loaded:
    """Load a file by the source of its suffix."""
    (folder / name).write_bytes(data.encode())
    return load_source(name.rpartition(".")[2], folder, path=name, **options)


def good(folder: Path, name: str, data: str, **options: Any) -> list[Case]:
    cases, faults = load(folder, name, data, **options)
    assert faults == []
    return cases


def jsonl(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_every_format_gives_its_source() -> None:
    for name in Registry.installed().sources:
        source = Registry.installed().source(name)
        assert issubclass(source, Source)
        assert source.format == name


def test_unknown_format_is_told_with_the_nearest() -> None:
    message = r"^unknown source json1, did you mean json\?$"
    with pytest.raises(LlmevalError, match=message):
        Registry.installed().source("json1")


@pytest.mark.parametrize("name", Registry.installed().sources)
@pytest.mark.parametrize("options", [{"path": 1}, {}, {"path": "a", "nope": 1}, {"path": "a", "predictions": 3}])
def test_options_are_strictly_typed(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Registry.installed().source(name)).validate_json(json.dumps(options), strict=True)


@pytest.mark.parametrize("fields", [{"id": 1}, {"nope": "x"}, {"labels": ["x"]}, {"input": {"a": 1}}])
def test_field_maps_are_strictly_typed(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Registry.installed().source("jsonl")).validate_json(
            json.dumps({"path": "a", "fields": fields}), strict=True
        )


FULL = {
    "id": "a",
    "input": {"q": 1},
    "expected": ["x", "y"],
    "prediction": None,
    "labels": {"question_type": "temporal", "hops": 2, "hard": True, "none": None},
    "tags": ["smoke", "slow"],
    "thresholds": {"f1": 0.5, "bleu1": {"min": 0.1, "max": 0.9}},
}
FULL_CASE = Case(
    id="a",
    input={"q": 1},
    expected=["x", "y"],
    prediction=None,
    labels={"question_type": "temporal", "hops": "2", "hard": "true"},
    tags=("smoke", "slow"),
    thresholds={"f1": 0.5, "bleu1": {"min": 0.1, "max": 0.9}},
    line=2,
)


def test_rows_with_the_keys_of_a_case_need_no_map(tmp_path: Path) -> None:
    assert good(tmp_path, "a.jsonl", "\n" + jsonl(FULL, {"input": "q"})) == [
        FULL_CASE,
        Case(id="2", input="q", line=3),
    ]
    assert good(tmp_path, "a.json", "[\n" + json.dumps(FULL) + ",\n{}]") == [FULL_CASE, Case(id="2", line=3)]


def test_a_whole_number_with_a_fraction_is_the_id_of_that_number(tmp_path: Path) -> None:
    assert [case.id for case in good(tmp_path, "a.jsonl", '{"id": 264.0}\n{"id": "265.0"}\n')] == ["264", "265.0"]


def test_absent_prediction_is_missing_and_null_is_an_answer(tmp_path: Path) -> None:
    cases = good(tmp_path, "a.jsonl", jsonl({"id": 1}, {"id": 2, "prediction": None}, {"id": 3, "prediction": ""}))
    assert [case.prediction for case in cases] == [MISSING, None, ""]
    assert [case.id for case in cases] == ["1", "2", "3"]


def test_csv_has_columns_for_parts_and_for_labels_and_thresholds(tmp_path: Path) -> None:
    data = (
        "id,input,expected,prediction,labels.question_type,labels.hops,thresholds.f1,tags\r\n"
        'a,"q\r\n1",x,,temporal,2,0.5,"smoke, slow"\r\n'
        "b,q2,,y,,,,\r\n"
    )
    assert good(tmp_path, "a.csv", "\ufeff" + data) == [
        Case(
            id="a",
            input="q\n1",
            expected="x",
            prediction="",
            labels={"question_type": "temporal", "hops": "2"},
            tags=("smoke", "slow"),
            thresholds={"f1": 0.5},
            line=2,
        ),
        Case(id="b", input="q2", expected=None, prediction="y", line=4),
    ]


def test_csv_delimiter_is_an_option(tmp_path: Path) -> None:
    assert good(tmp_path, "a.csv", "id;input\na;1,2\n", delimiter=";") == [Case(id="a", input="1,2", line=2)]


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n"])
def test_impossible_delimiter_is_a_fault(tmp_path: Path, delimiter: str) -> None:
    _, faults = load(tmp_path, "a.csv", "id\n1\n", delimiter=delimiter)
    assert faults == [
        f"a.csv  delimiter: found the text {delimiter!r}, expected one character other than a quote or a line break"
    ]


ROW = {
    "qid": 7,
    "question": "q",
    "context": {"text": "c", "docs": ["d0", "d1"]},
    "answer": "x",
    "output": "y",
    "meta": {"type": "temporal", "level": 3, "a.b": "z"},
    "meta.x": "literal",
    "marks": "smoke, slow",
    "limit": 0.5,
    "input": "ignored",
}


def test_fields_name_columns_and_dotted_paths(tmp_path: Path) -> None:
    fields = {
        "id": "qid",
        "input": {"question": "question", "text": "context.text", "doc": "context.docs.1"},
        "expected": "answer",
        "prediction": "output",
        "labels": {"question_type": "meta.type", "level": "meta.level", "x": "meta.x"},
        "tags": "marks",
        "thresholds": {"f1": "limit"},
    }
    case = Case(
        id="7",
        input={"question": "q", "text": "c", "doc": "d1"},
        expected="x",
        prediction="y",
        labels={"question_type": "temporal", "level": "3", "x": "literal"},
        tags=("smoke", "slow"),
        thresholds={"f1": 0.5},
        line=1,
    )
    assert good(tmp_path, "a.jsonl", jsonl(ROW), fields=fields) == [case]
    assert good(tmp_path, "a.json", json.dumps([ROW]), fields=fields) == [case]


def test_fields_of_a_csv_file(tmp_path: Path) -> None:
    fields = {"id": "qid", "input": "question", "labels": {"question_type": "type"}, "thresholds": {"f1": "min f1"}}
    data = "qid,question,type,min f1,expected,other\n7,q,temporal,0.5,x,z\n"
    assert good(tmp_path, "a.csv", data, fields=fields) == [
        Case(
            id="7",
            input="q",
            expected="x",
            labels={"question_type": "temporal"},
            thresholds={"f1": 0.5},
            line=2,
        )
    ]


def test_labels_and_thresholds_may_be_objects_of_another_name(tmp_path: Path) -> None:
    cases = good(
        tmp_path,
        "a.jsonl",
        jsonl({"meta": {"kind": "x"}, "limits": {"f1": 1}}),
        fields={"labels": "meta", "thresholds": "limits"},
    )
    assert cases == [Case(id="1", labels={"kind": "x"}, thresholds={"f1": 1}, line=1)]


def test_unmapped_parts_keep_their_own_column_and_other_columns_are_passed_over(tmp_path: Path) -> None:
    cases = good(tmp_path, "a.jsonl", jsonl({"id": "a", "question": "q", "z": 1}), fields={"input": "question"})
    assert cases == [Case(id="a", input="q", line=1)]


def test_items_names_the_list_inside_an_object(tmp_path: Path) -> None:
    data = '{"version": 1,\n"data": {"rows": [\n{"id": "a"}]}}'
    assert good(tmp_path, "a.json", data, items="data.rows") == [Case(id="a", line=3)]


@pytest.mark.parametrize(
    ("data", "items", "fault"),
    [
        ("{}", None, "a.json:1:1  found an object, expected a list of objects"),
        (
            '{"a": 1, "rows": []}',
            None,
            "a.json:1:1  found an object, expected a list of objects: name it under `items`, such as 'rows'",
        ),
        ('{"a": {"b": 3}}', "a.b", "a.json:1:13  a.b: found the number 3, expected a list of objects"),
        ('{"a": {}}', "a.c.d", "a.json:1:7  a.c.d: found null, expected a list of objects"),
        ("[]", None, "a.json  the file has no row"),
        ("[1", None, "a.json:1:3  found the end of the text, expected ',' or the closing bracket"),
    ],
)
def test_json_without_a_list_of_objects_is_a_fault(tmp_path: Path, data: str, items: str | None, fault: str) -> None:
    assert load(tmp_path, "a.json", data, items=items) == ([], [fault])


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ([1], "found a list, expected an object"),
        (None, "found null, expected an object"),
        ({"id": None}, "id: found null, expected text or a whole number"),
        ({"id": 1.5}, "id: found the number 1.5, expected text or a whole number"),
        ({"id": True}, "id: found true, expected text or a whole number"),
        ({"id": ["a"]}, "id: found a list, expected text or a whole number"),
        ({"id": ""}, "id: found an empty id, expected an id that can name the case on the command line"),
        (
            {"id": "a::b"},
            (
                "id: found the id 'a::b' with '::', which pytest splits at,"
                " expected an id that can name the case on the command line"
            ),
        ),
        ({"id": " a"}, "id: found the id ' a' with surrounding spaces,"),
        ({"id": "a\x07b"}, "id: found the id 'a\\x07b' with a control character,"),
        ({"id": "__file__"}, "id: found the id '__file__', a name that Python reserves,"),
        ({"labels": 3}, "labels: found the number 3, expected an object"),
        ({"labels": {"a": ["x"]}}, "labels.a: found a list, expected text"),
        ({"labels": {"a": {}}}, "labels.a: found an object, expected text"),
        ({"tags": [1]}, "tags: found a list, expected a list of texts"),
        ({"tags": {}}, "tags: found an object, expected a list of texts"),
        ({"thresholds": 0.5}, "thresholds: found the number 0.5, expected an object"),
        (
            {"thresholds": {"f1": "0.5"}},
            "thresholds.f1: found the text '0.5', expected a number, or an object with `min` or `max`",
        ),
        ({"thresholds": {"f1": True}}, "thresholds.f1: found true, expected a number, or an object with"),
        (
            {"expcted": "x"},
            (
                "found the key 'expcted', expected one of: id, input, messages, expected, prediction, labels, tags, "
                "thresholds, checks, always (or a map under `fields`) (did you mean 'expected'?)"
            ),
        ),
    ],
)
def test_bad_rows_are_told_with_their_line_and_good_rows_survive(tmp_path: Path, row: Any, fault: str) -> None:
    cases, faults = load(tmp_path, "a.jsonl", jsonl({"id": "good"}, row, {"id": "late"}))
    assert [case.id for case in cases if case.id != "2"] == ["good", "late"]
    assert len(faults) == 1
    assert faults[0].startswith(f"a.jsonl:2:1  {fault}")
    text = "[" + ",\n ".join(map(json.dumps, [{"id": "good"}, row, {"id": "late"}])) + "]"
    cases, faults = load(tmp_path, "a.json", text)
    assert [case.id for case in cases if case.id != "2"] == ["good", "late"]
    assert len(faults) == 1
    separator = "." if fault.startswith(("id", "labels", "tags", "thresholds")) else ": "
    assert faults[0].startswith(f"a.json:2:2  [1]{separator}{fault}")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ("id,input\n,q\n", "a.csv:2:1  id: found an empty id, expected"),
        ("id,labels\na,x\n", "a.csv:2:1  labels: found the text 'x', expected an object"),
        ("id,thresholds.f1\na,high\n", "a.csv:2:1  thresholds.f1: found the text 'high', expected a number"),
        ("id,thresholds.f1\na,nan\n", "a.csv:2:1  thresholds.f1: found the text 'nan', expected a number"),
        ("id,inptu\na,b\n", "a.csv:1:1  found the column 'inptu', expected one of: id, input,"),
        ("Question,id\na,b\n", "a.csv:1:1  found the column 'Question', expected one of"),
        ("id;input\na;b\n", "a.csv:1:1  found one column, 'id;input', expected several: set delimiter: \";\""),
        ("id\tinput\na\tb\n", "a.csv:1:1  found one column, 'id\\tinput', expected several: set delimiter: \"\\t\""),
        ("sep=;\nid;input\na;b\n", "a.csv:1:1  found 'sep=;', which only Excel reads, expected the names of columns"),
        (",id\n1,b\n", "a.csv:1:1  found a column without a name, expected one of"),
        ("id,input\na,b,c\n", "a.csv:2:1  found 3 cells, expected 2 as in the header"),
        ("id,input\n", "a.csv  the file has no row"),
        ("id,input\na\n", "a.csv:2:1  found 1 cells, expected 2 as in the header"),
    ],
)
def test_bad_csv_rows_are_told_with_their_line(tmp_path: Path, data: str, fault: str) -> None:
    _, faults = load(tmp_path, "a.csv", data)
    assert len(faults) == 1
    assert faults[0].startswith(fault)


def test_ids_that_stand_twice_are_told_with_both_lines(tmp_path: Path) -> None:
    cases, faults = load(tmp_path, "a.jsonl", jsonl({"id": "é"}, {"id": "b"}, {"id": "e\u0301"}))
    assert [case.line for case in cases] == [1, 2]
    assert faults == ["a.jsonl:3:1  id: found the id 'é' twice, expected it once (first in line 1)"]


def test_unknown_key_is_told_once_for_all_rows(tmp_path: Path) -> None:
    _, faults = load(tmp_path, "a.jsonl", jsonl(*[{"topic": index} for index in range(500)]))
    assert len(faults) == 1


def test_mapped_column_that_no_row_has_is_told_once(tmp_path: Path) -> None:
    rows = jsonl(*[{"qid": index, "question": "q"} for index in range(500)])
    fields = {"id": "qid", "input": "qestion", "labels": {"type": "meta.type"}}
    _, faults = load(tmp_path, "a.jsonl", rows, fields=fields)
    assert faults == [
        ("a.jsonl  unknown column 'meta.type', which `fields.labels` names, expected one of: qid, question"),
        (
            "a.jsonl  unknown column 'qestion', which `fields.input` names,"
            " expected one of: qid, question (did you mean 'question'?)"
        ),
    ]


def test_mapped_id_or_input_that_one_row_lacks_is_told_there(tmp_path: Path) -> None:
    rows = jsonl({"qid": "a", "q": "x"}, {"qid": "b"}, {"q": "y"})
    _, faults = load(tmp_path, "a.jsonl", rows, fields={"id": "qid", "input": "q", "expected": "qid"})
    assert faults == [
        "a.jsonl:2:1  q: the value is missing: `fields.input` names it",
        "a.jsonl:3:1  qid: the value is missing: `fields.id` names it",
    ]


def test_bad_lines_and_bad_rows_of_a_file_are_told_together(tmp_path: Path) -> None:
    cases, faults = load(tmp_path, "a.jsonl", '{"id": "a"}\n{bad}\n{"id": 1.5}\n')
    assert [case.id for case in cases] == ["a"]
    assert [fault.partition("  ")[0] for fault in faults] == ["a.jsonl:2:2", "a.jsonl:3:1"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_missing_data_file_is_a_fault(tmp_path: Path, name: str) -> None:
    faults: list[Fault] = []
    source = TypeAdapter(Registry.installed().source(name.rpartition(".")[2])).validate_python({"path": f"sub/{name}"})
    assert source.load(tmp_path, faults) == []
    assert list(map(str, faults)) == [f"sub/{name}  cannot be read: No such file or directory"]


def test_paths_are_relative_to_the_suite_and_shown_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "a.jsonl").write_text("x\n")
    source = Registry.installed().source("jsonl")(path="a.jsonl")
    faults: list[Fault] = []
    source.load(tmp_path / "evals", faults)
    assert faults[0].file == str(Path("evals", "a.jsonl"))
    faults.clear()
    Registry.installed().source("jsonl")(path=str(tmp_path / "evals" / "a.jsonl")).load(Path("elsewhere"), faults)
    assert faults[0].file == str(Path("evals", "a.jsonl"))
    monkeypatch.chdir(tmp_path / "evals")
    faults.clear()
    source.load(tmp_path, faults)
    assert faults[0].file == str(tmp_path / "a.jsonl")


@pytest.mark.parametrize("blank", [",,", " , ,", '"","",""', ",,,,", "\t,\u3000,"])
@pytest.mark.parametrize("place", ["first", "between", "last"])
def test_a_row_of_blank_cells_is_no_row(tmp_path: Path, blank: str, place: str) -> None:
    rows = ["id,input,prediction", "a,q,", "b,r,x"]
    rows[{"first": 0, "between": 2, "last": 3}[place] : 0] = [blank]
    cases = good(tmp_path, "a.csv", "\n".join(rows) + "\n")
    assert [(case.id, case.prediction) for case in cases] == [("a", ""), ("b", "x")]
    assert [case.line for case in cases] == [rows.index("a,q,") + 1, rows.index("b,r,x") + 1]


def test_commas_at_the_end_of_lines_make_no_columns(tmp_path: Path) -> None:
    cases = good(tmp_path, "a.csv", "id,input,\na,q,\nb,r\n")
    assert [(case.id, case.input) for case in cases] == [("a", "q"), ("b", "r")]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"PK\x03\x04\x14\x00\xff", "it is a workbook of Excel or a ZIP file; in Excel, save it as CSV UTF-8"),
        (b"PK\x03\x04\x14\x00", "it is a workbook of Excel or a ZIP file; in Excel, save it as CSV UTF-8"),
        (b"\xd0\xcf\x11\xe0", "it is an old workbook of Excel"),
        ("id,input\na,q\n".encode("utf-16"), "save it as UTF-8, not UTF-16"),
        ("id,input\na,q\n".encode("utf-16-le"), "save it as UTF-8, not UTF-16"),
        ("id,input\na,caf\xe9\n".encode("cp1252"), "save it as UTF-8 (it may be Windows text, cp1252)"),
    ],
)
def test_a_table_that_is_no_utf_8_is_told_with_what_it_is(tmp_path: Path, data: bytes, fault: str) -> None:
    (tmp_path / "a.csv").write_bytes(data)
    _, faults = load_source("csv", tmp_path, path="a.csv")
    assert len(faults) == 1
    assert fault in faults[0]
