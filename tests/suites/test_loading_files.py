"""The files that a suite file names: expected values, predictions, sources; and what may be wrong with them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from project import load_text

from pytest_llmeval import MISSING, SuiteError
from pytest_llmeval.numbers import Threshold
from pytest_llmeval.suites import LoadedSuite, Registry, load_suite

F1 = "evaluators: [{text: {metrics: [f1]}}]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the suite, inside the root."""
    inner = tmp_path / "root" / "suites"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    return inner


def load(folder: Path, rest: str) -> LoadedSuite:
    return load_text(F1 + rest, folder, root=folder.parent)


def faults(folder: Path, rest: str) -> list[str]:
    try:
        return [str(fault) for fault in load(folder, rest).faults]
    except SuiteError as error:
        return [str(fault) for fault in error.faults]


def one_case(name: str, part: str = "expected_file") -> str:
    return f"cases:\n  - {{id: good, expected: x}}\n  - {{id: a, {part}: {json.dumps(name)}}}\n"


@pytest.mark.parametrize(
    ("name", "content", "value"),
    [
        ("a.txt", b"Paris\n", "Paris\n"),
        ("a.txt", b"\xef\xbb\xbfParis", "Paris"),
        ("a.txt", b"", ""),
        ("a.json", b'["Paris", 1, null]', ["Paris", 1, None]),
        ("../up.json", b'"inside the root"', "inside the root"),
        ("東京 a.txt", "答え".encode(), "答え"),
    ],
)
def test_expected_and_prediction_files_are_read_relative_to_the_suite(
    folder: Path, name: str, content: bytes, value: Any
) -> None:
    (folder / name).write_bytes(content)
    case = load(folder, f"cases: [{{id: a, prediction_file: '{name}'}}]\n").cases[0]
    assert case.prediction == value
    if isinstance(value, str):
        assert load(folder, f"cases: [{{id: a, expected_file: '{name}'}}]\n").cases[0].expected == value


def test_without_a_prediction_the_target_is_asked_and_null_is_a_prediction(folder: Path) -> None:
    cases = load(folder, "cases: [{id: a, expected: x}, {id: b, expected: x, prediction: null}]\n").cases
    assert [case.prediction for case in cases] == [MISSING, None]


@pytest.mark.parametrize("part", ["expected_file", "prediction_file"])
@pytest.mark.parametrize("name", ["../../outside.txt", "/etc/hostname", "sub/../../../outside.txt"])
def test_a_file_outside_the_root_is_not_read(folder: Path, part: str, name: str) -> None:
    (folder.parents[1] / "outside.txt").write_text("secret")
    found = faults(folder, one_case(name, part))
    assert len(found) == 1
    assert found[0].startswith("s.eval.yaml:4:")
    assert found[0].endswith(
        f"cases[1].{part}: found {name!r}, which is outside the folder 'root', expected a file inside it"
    )


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_that_leads_outside_the_root_is_not_followed(folder: Path, kind: str) -> None:
    outside = folder.parents[1] / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    if kind == "file":
        (folder / "link.txt").symlink_to(outside / "secret.txt")
    else:
        (folder / "link").symlink_to(outside)
    name = "link.txt" if kind == "file" else "link/secret.txt"
    found = faults(folder, one_case(name))
    assert [each.partition(": found ")[2] for each in found] == [
        f"{name!r}, which is outside the folder 'root', expected a file inside it"
    ]


def test_a_link_inside_the_root_is_followed(folder: Path) -> None:
    (folder.parent / "real.txt").write_text("Paris")
    (folder / "link.txt").symlink_to(folder.parent / "real.txt")
    assert load(folder, "cases: [{id: a, expected_file: link.txt}]\n").cases[0].expected == "Paris"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.txt", "'absent.txt': cannot be read: No such file or directory"),
        ("absent.json", "'absent.json': cannot be read: No such file or directory"),
        ("answr.txt", "(did you mean 'answer.txt'?)"),
        (".", "'.': found a directory, expected a file"),
        ("pipe", "'pipe': found a device or a pipe, expected a file"),
        ("a\0b", "found 'a\\x00b', which cannot be read (embedded null byte), expected a file"),
        ("latin.txt", "found 'latin.txt' with byte 0xe9 at offset 3, expected UTF-8"),
        ("loop.txt", "'loop.txt'"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_at_the_key_that_names_it(folder: Path, name: str, message: str) -> None:
    (folder / "answer.txt").write_text("x")
    (folder / "latin.txt").write_bytes("café".encode("latin-1"))
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    os.mkfifo(folder / "pipe")
    found = faults(folder, one_case(name))
    assert len(found) == 1
    assert found[0].startswith("s.eval.yaml:4:28  cases[1].expected_file: ")
    assert message in found[0]


def test_faults_inside_a_json_file_are_told_with_its_own_line(folder: Path) -> None:
    (folder / "a.json").write_text('{\n  "x": NaN\n}')
    found = faults(folder, one_case("a.json"))
    assert found == ["a.json:2:8  x: found NaN, expected a finite number (or null)"]


def test_giving_both_a_value_and_its_file_is_told(folder: Path) -> None:
    (folder / "a.txt").write_text("x")
    found = faults(folder, "cases: [{id: a, prediction: null, prediction_file: a.txt}]\n")
    assert found == [
        (
            "s.eval.yaml:2:35  cases[0].prediction_file: found both 'prediction' and 'prediction_file', "
            "expected one of them"
        )
    ]


def test_cases_of_a_source_stand_behind_those_of_the_file(folder: Path) -> None:
    (folder / "d.jsonl").write_text(
        '{"id": "b", "expected": "x", "thresholds": {"f1": 0.5}}\n{"id": "c", "expected": "y"}\n'
    )
    (folder / "p.jsonl").write_text('{"id": "c", "prediction": "y"}\n')
    suite = load(
        folder, "cases: [{id: a, expected: x}]\nsource: {format: jsonl, path: d.jsonl, predictions: p.jsonl}\n"
    )
    assert [(case.id, case.prediction) for case in suite.cases] == [("a", MISSING), ("b", MISSING), ("c", "y")]
    assert suite.cases[1].thresholds == {"f1": Threshold(min=0.5)}


def test_thresholds_of_a_row_are_checked_and_told_with_its_line(folder: Path) -> None:
    (folder / "d.jsonl").write_text(
        '{"id": "a", "expected": "x"}\n{"id": "b", "expected": "x", "thresholds": {"f2": 1}}\n'
    )
    found = faults(folder, "source: {format: jsonl, path: d.jsonl}\n")
    assert found == ["d.jsonl:2:1  thresholds.f2: unknown metric f2, did you mean f1?"]


def test_an_id_that_the_source_repeats_is_told(folder: Path) -> None:
    (folder / "d.jsonl").write_text('{"id": "a", "expected": "x"}\n')
    found = faults(folder, "cases: [{id: a, expected: x}]\nsource: {format: jsonl, path: d.jsonl}\n")
    assert len(found) == 1
    assert "found the id 'a' twice, expected it once (first in line 2)" in found[0]


@pytest.mark.parametrize(
    ("predictions", "message"),
    [
        (None, "p.jsonl  cannot be read: No such file or directory"),
        ('{"id": "x", "prediction": 1}\n', "p.jsonl:1:1  found 1 id that no case has ('x'), expected ids such as 'a'"),
        ('{"id": "a", "prediction": 1}\n{"id": "a", "prediction": 2}\n', "p.jsonl:2:1  found a second answer to 'a'"),
        ('{"id": "a"}\n', "p.jsonl:1:1  found the keys 'id', expected `prediction` or `hypothesis` or `answer`"),
        ('{"id": "a", "predi', "p.jsonl:1:13  found "),
    ],
)
def test_a_faulty_predictions_file_is_told(folder: Path, predictions: str | None, message: str) -> None:
    (folder / "d.jsonl").write_text('{"id": "a", "expected": "x"}\n')
    if predictions is not None:
        (folder / "p.jsonl").write_text(predictions)
    found = faults(folder, "source: {format: jsonl, path: d.jsonl, predictions: p.jsonl}\n")
    assert len(found) == 1
    assert found[0].startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cases: [\n", "s.eval.yaml:"),
        ("cases: []\ncases: []\n", "s.eval.yaml:3:1  cases: found the key 'cases' twice, expected it once"),
        ("cases: !!python/object:os.system []\n", "s.eval.yaml:2:8  cases: found the tag"),
    ],
)
def test_a_file_that_is_no_plain_yaml_is_told_with_its_place(folder: Path, text: str, message: str) -> None:
    found = faults(folder, text)
    assert len(found) == 1
    assert found[0].startswith(message)


def test_a_suite_file_that_does_not_exist_is_told(folder: Path) -> None:
    with pytest.raises(SuiteError, match="cannot be read"):
        load_suite(folder / "absent.eval.yaml", Registry.installed(), root=folder)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("{format: [jsonl], path: a.jsonl}", "source.format: found a list of 1, expected the name of a format"),
        ("{format: {jsonl: a.jsonl}}", "source.format: found "),
        (
            "{format: json_v3, gold: ['../../**/*.json']}",
            "gold: found the pattern '../../**/*.json', which leads outside of ",
        ),
    ],
)
def test_a_source_of_no_format_or_outside_of_the_root_is_a_fault(folder: Path, source: str, fault: str) -> None:
    assert fault in faults(folder, f"source: {source}\n")[0]


def test_rows_have_the_messages_of_a_conversation(folder: Path) -> None:
    (folder / "d.jsonl").write_text(
        '{"id": "a", "messages": ["Hello", {"role": "assistant", "content": "Yes?"}, "Are you open?"]}\n'
        '{"id": "b", "input": "Hello"}\n'
    )
    suite = load(folder, "source: {format: jsonl, path: d.jsonl}\n")
    assert [case.conversation for case in suite.cases] == [True, False]
    assert suite.cases[0].input == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "Are you open?"},
    ]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ('"messages": "Hello"', "messages: found the text 'Hello', expected a list of messages"),
        ('"messages": ["Hello"], "input": "x"', "messages: found both an input and messages, expected one of them"),
        ('"messages": []', "messages: found an empty list, expected at least one message"),
        ('"messages": [{"role": "user"}]', "messages[0]: content is missing"),
        (
            '"messages": [{"role": "assistant", "content": "x"}]',
            "messages: found a last message of the assistant, expected one of the user, which the target answers",
        ),
    ],
)
def test_a_fault_of_a_rows_messages_has_its_line(folder: Path, row: str, fault: str) -> None:
    (folder / "d.jsonl").write_text(f'{{"id": "a", "input": "x"}}\n{{"id": "b", {row}}}\n')
    assert faults(folder, "source: {format: jsonl, path: d.jsonl}\n")[0] == f"d.jsonl:2:1  {fault}"
