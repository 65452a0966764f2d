"""Score files: names, text, reading back, approving."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.baselines import ScoreFile, Stamp, fingerprint
from pytest_llmeval.baselines._comparable import Comparable, EvaluatorPrint
from pytest_llmeval.baselines._files import (
    PendingFile,
    approve,
    is_orphan,
    python_score_file,
)
from pytest_llmeval.baselines._scores import Approval, ApprovedScore, Cases, SuiteScores, TestScores
from pytest_llmeval.core import SuiteError
from pytest_llmeval.data import OwnFiles
from pytest_llmeval.numbers import Shift
from pytest_llmeval.suites import SuiteKey

COMPARABLE = Comparable("c", "d", "", {"text": EvaluatorPrint("text", "1", {"tokenizer": "zh", "list": [1, 2]})})
STAMP = Stamp("2024-02-29", "abc")


def suite_scores(value: float | None = 0.5, **changes: Any) -> SuiteScores:
    score = ApprovedScore(value, 0.25, 0.75, 4, 0, 0, 0, "tok:auto")
    group = replace(score, signature="")
    scores = SuiteScores(
        "s.eval.yaml", "", "", Cases(4, "x"), COMPARABLE, {"f1": score}, {"kind": {"ä\n": {"f1": group}}}
    )
    return replace(scores, **changes)


def approved(value: float | None = 0.5) -> SuiteScores:
    return approve(None, suite_scores(value), STAMP, 20)


def test_a_file_has_one_line_per_metric_sorted_keys_and_a_final_newline() -> None:
    assert approved().text == (
        """\
{
  "cases": {"count": 4, "statistics": "x"},
  "checksum": "sha256:3d4ebbeecc159f79bfaff607f108d1c3",
  "comparable": {
    "cases": "c",
    "data": "d",
    "evaluators": {
      "text": {
        "name": "text",
        "options": {"list": [1, 2], "tokenizer": "zh"},
        "version": "1"
      }
    },
    "judges": {},
    "repeats": "",
    "thresholds": ""
  },
  "groups": {
    "kind": {
      "ä\\n": {
        "f1": {"value": 0.5, "low": 0.25, "high": 0.75, "scored": 4, "undefined": 0, "errored": 0, "missing": 0}
      }
    }
  },
  "history": [
    {"commit": "abc", "time": "2024-02-29", "values": {"f1": 0.5}}
  ],
  "metrics": {
"""
        '    "f1": {"value": 0.5, "low": 0.25, "high": 0.75, "scored": 4, "undefined": 0, "errored": 0, "missing": 0, '
        """"signature": "tok:auto"}
  },
  "schema": 1,
  "suite": "s.eval.yaml",
  "test": "",
  "variant": ""
}
"""
    )


values = st.none() | st.floats(-1e9, 1e9).map(Shift.rounded)


@given(value=values, options=st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans())))
def test_reading_gives_what_was_written(tmp_path_factory: Any, value: float | None, options: dict[str, Any]) -> None:
    comparable = replace(COMPARABLE, evaluators={"text": EvaluatorPrint("text", "1", options)})
    scores = approve(None, suite_scores(value, comparable=comparable), STAMP, 20)
    path = tmp_path_factory.getbasetemp() / "s.scores.json"
    path.write_text(scores.text, encoding="utf-8", newline="\r\n")
    assert ScoreFile(path, "s").parse(SuiteScores) == scores


@given(st.dictionaries(st.text(), st.dictionaries(st.text(), values)))
def test_scores_of_tests_are_read_as_they_were_written(
    tmp_path_factory: Any, tests: dict[str, dict[str, float | None]]
) -> None:
    scores = approve(None, TestScores("test_x.py", tests), STAMP, 20)
    path = tmp_path_factory.getbasetemp() / "t.scores.json"
    path.write_text(scores.text, encoding="utf-8")
    assert ScoreFile(path, "t").parse(TestScores) == scores


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"scored": 4', '"scored": -4', "metrics.f1: found a negative count, expected at least 0"),
        ('"scored": 4', '"scored": true', "found true, expected a whole number"),
        ('"value": 0.5', '"value": NaN', "NaN"),
        ('"value": 0.5', '"value": 0.6', "metrics.f1.value: found 0.6, expected 0.5"),
        (
            '"values": {"f1": 0.5}',
            '"values": {"f1": 0.5, "f2": 1}',
            "history[0].values.f2: found 1.0, expected no value",
        ),
        ('"values": {"f1": 0.5}', '"values": {}', "history[0].values: the value of 'f1' is missing, expected 0.5"),
        (
            '"schema": 1',
            '"schema": 2',
            "schema: found 2, expected 1: the file is from a newer version",
        ),
        ('"schema": 1', '"schema": 0', "schema: found the number 0, expected 1"),
        ('  "schema": 1,\n', "", "schema: found nothing (null), expected 1"),
        ('"suite": "s.eval.yaml"', '"suite": 1', "suite: found the number 1, expected text"),
        ('"test": "",', '"tset": "",', "unknown key tset"),
        ('"errored": 0', '"errored": 9', "checksum: found the text 'sha256:"),
        ('"data": "d"', '"data": "e"', "checksum: found the text 'sha256:"),
        ('  "checksum": "sha256:', '  "checksum": "sha512:', "checksum: found the text 'sha512:"),
        ('"commit": "abc", ', "", "commit is missing"),
    ],
)
def test_an_edited_file_is_told_with_the_place(tmp_path: Path, old: str, new: str, fault: str) -> None:
    path = tmp_path / "s.scores.json"
    text = approved().text
    assert old in text
    edited = text.replace(old, new)
    path.write_text(edited, encoding="utf-8")
    with pytest.raises(SuiteError) as raised:
        ScoreFile(path, "s.scores.json").read_suite()
    assert fault in str(raised.value)
    assert str(raised.value).startswith("s.scores.json:")
    assert "nothing was changed: restore the file from version control" in str(raised.value)
    assert path.read_text(encoding="utf-8") == edited


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\x00\x01", '{"history": []}'])
def test_a_file_that_holds_no_scores_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.scores.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SuiteError, match="nothing was changed"):
        ScoreFile(path, "s.scores.json").read_suite()


def test_a_file_without_checksum_is_told(tmp_path: Path) -> None:
    path = tmp_path / "s.scores.json"
    data = json.loads(approved().text)
    del data["checksum"]
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(SuiteError, match=r"checksum: found nothing .*: the file was changed by hand"):
        ScoreFile(path, "s.scores.json").read_suite()


def test_blanks_and_the_order_of_keys_are_no_change(tmp_path: Path) -> None:
    path = tmp_path / "s.scores.json"
    path.write_text(json.dumps(dict(reversed(json.loads(approved().text).items()))), encoding="utf-8")
    assert ScoreFile(path, "s.scores.json").read_suite() == approved()


def test_every_changed_byte_is_told(tmp_path: Path) -> None:
    path = tmp_path / "s.scores.json"
    data = approved().text.encode()
    for place in range(0, len(data), 5):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(SuiteError):
            ScoreFile(path, "s.scores.json").read_suite()


def test_every_prefix_of_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.scores.json"
    text = approved().text
    for end in range(0, len(text) - 2, 7):
        path.write_text(text[:end], encoding="utf-8")
        with pytest.raises(SuiteError):
            ScoreFile(path, "s.scores.json").read_suite()


def test_no_file_is_no_fault(tmp_path: Path) -> None:
    assert ScoreFile(tmp_path / "none.json", "none.json").read_suite() is None


def test_an_approval_is_remembered_only_if_something_changed() -> None:
    first = approved()
    assert approve(first, suite_scores(), Stamp("2025-01-01", "def"), 20) is first
    second = approve(first, suite_scores(0.6), Stamp("2025-01-01", None), 20)
    assert second.history == (Approval("2024-02-29", "abc", {"f1": 0.5}), Approval("2025-01-01", None, {"f1": 0.6}))


@pytest.mark.parametrize("remembered", [1, 3])
def test_the_history_is_bounded_and_keeps_the_last(remembered: int) -> None:
    scores = approved(0.0)
    for number in range(1, 6):
        scores = approve(scores, suite_scores(number / 10), STAMP, remembered)
    assert [each.values["f1"] for each in scores.history] == [0.3, 0.4, 0.5][-remembered:]


def test_a_value_is_rounded_to_six_decimals_and_never_a_negative_zero() -> None:
    assert Shift.rounded(2 / 3) == 0.666667
    assert str(Shift.rounded(-1e-9)) == "0.0"
    assert Shift.rounded(None) is None


def key(test: str = "", variant: str = "") -> SuiteKey:
    return SuiteKey("evals/capitals.eval.yaml", "evals/capitals.eval.yaml", test, variant)


def test_a_suite_has_its_stem_and_a_variant_a_name_of_its_own() -> None:
    assert ScoreFile.of_suite(key()).path == Path("evals/__llmeval__/capitals.scores.json")
    assert ScoreFile.of_suite(key()).statistics.name == "capitals.cases.jsonl"
    name = ScoreFile.of_suite(key("tests/test_app.py::test_answers", "GPT/4 ü")).path.name
    assert name.startswith("capitals.gpt-4-")
    assert name.endswith(".scores.json")
    assert ScoreFile.of_suite(key("tests/test_app.py::test_answers")).path.name.startswith("capitals.test-answers-")


@given(st.lists(st.tuples(st.text(), st.text()), min_size=2, max_size=2, unique=True))
def test_no_two_variants_share_a_file_whatever_their_ids(ids: list[tuple[str, str]]) -> None:
    one, other = (ScoreFile.of_suite(key(*each)).path.name for each in ids)
    assert one.lower() != other.lower()
    assert one.isascii()
    assert not set(one) & set('/\\:*?"<>|[] ')
    assert len(one) < 100


def test_suites_of_the_same_stem_have_their_full_names(tmp_path: Path) -> None:
    for name in ("a.eval.yaml", "a.eval.json", "b.eval.yaml"):
        (tmp_path / name).touch()
    names = [
        OwnFiles(tmp_path / name).path("scores.json").name for name in ("a.eval.yaml", "a.eval.json", "b.eval.yaml")
    ]
    assert names == ["a.eval.yaml.scores.json", "a.eval.json.scores.json", "b.scores.json"]


def test_a_test_module_beside_a_suite_of_its_stem_has_its_full_name(tmp_path: Path) -> None:
    assert python_score_file(tmp_path / "test_a.py").name == "test_a.scores.json"
    (tmp_path / "test_a.eval.yaml").touch()
    assert python_score_file(tmp_path / "test_a.py").name == "test_a.py.scores.json"


@pytest.mark.parametrize(
    ("name", "content", "orphan"),
    [
        ("gone", '{"suite": "gone.eval.yaml"}', True),
        ("gone.gpt-4-1f0c5ad2b7", '{"suite": "gone.eval.yaml"}', True),
        ("gone.eval.yaml", '{"suite": "gone.eval.yaml"}', True),
        ("test_gone", '{"module": "test_gone.py"}', True),
        ("test_gone.py", '{"module": "test_gone.py"}', True),
        ("here", '{"suite": "here.eval.yaml"}', False),
        ("renamed", '{"suite": "gone.eval.yaml"}', False),
        ("gone", '{"suite": "../gone.eval.yaml"}', False),
        ("gone", '{"suite": ""}', False),
        ("gone", '{"suite": "gone.results"}', False),
        ("gone", '{"suite": 1}', False),
        ("gone", "[]", False),
        ("gone", "{", False),
    ],
)
def test_only_a_file_whose_suite_is_gone_is_an_orphan(tmp_path: Path, name: str, content: str, orphan: bool) -> None:
    (tmp_path / "here.eval.yaml").touch()
    path = tmp_path / "__llmeval__" / f"{name}.scores.json"
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    assert is_orphan(path) is orphan


def test_statistics_are_checked_against_the_scores_whatever_their_line_ends(tmp_path: Path) -> None:
    file = ScoreFile(tmp_path / "s.scores.json", "s.scores.json")
    path = tmp_path / "s.cases.jsonl"
    scores = suite_scores(cases=Cases(2, fingerprint('{"id": "a"}\n{"id": "b"}\n')))
    assert file.statistics_fault(scores) is None
    path.write_bytes(b'{"id": "a"}\r\n{"id": "b"}\r\n')
    assert file.statistics_fault(scores) is None
    path.write_bytes(b'{"id": "a"}\n{"id": "c"}\n')
    assert "restore the file from version control" in str(file.statistics_fault(scores))
    path.write_bytes(b"\xff")
    assert "cannot be read" in str(file.statistics_fault(scores))


def test_writing_leaves_equal_files_alone_and_no_scratch_files(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "s.scores.json"
    pending = PendingFile(ScoreFile(path, path.name), {}, {}, frozenset(), approved, "statistics\n")
    pending.write()
    files = sorted(path.parent.iterdir())
    assert [each.name for each in files] == ["s.cases.jsonl", "s.scores.json"]
    assert files[0].read_text(encoding="utf-8") == "statistics\n"
    before = [each.stat().st_ino for each in files]
    tmp_path.joinpath("folder").chmod(0o500)
    pending.write()
    tmp_path.joinpath("folder").chmod(0o700)
    assert [each.stat().st_ino for each in sorted(path.parent.iterdir())] == before


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "s.json").mkdir()
    pending = PendingFile(ScoreFile(tmp_path / "s.json", "s.json"), {}, {}, frozenset(), approved)
    with pytest.raises(OSError, match="directory"):
        pending.write()
    assert pending.fault == f"{tmp_path / 's.json'}: not written: Is a directory"
    assert json.dumps([path.name for path in tmp_path.iterdir()]) == '["s.json"]'


def pair(path: Path, value: float) -> PendingFile:
    """Return an approval of scores whose statistics are the value."""
    statistics = f"{value}\n"

    def scores() -> SuiteScores:
        new = suite_scores(value, cases=Cases(4, fingerprint(statistics)))
        return approve(ScoreFile(path, path.name).read_suite(), new, STAMP, 20)

    return PendingFile(ScoreFile(path, path.name), {}, {}, frozenset(), scores, statistics)


@pytest.mark.parametrize("step", range(1, 8))
def test_an_approval_cut_off_anywhere_leaves_old_scores_with_old_statistics_or_new_with_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    path = tmp_path / "__llmeval__" / "s.scores.json"
    pair(path, 0.5).write()
    steps = 0

    def counted(done: Any) -> Any:
        def instead(*args: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == step:
                raise KeyboardInterrupt
            return done(*args, **options)

        return instead

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", counted(Path.replace))
        patched.setattr(Path, "unlink", lambda *_, **__: None)  # nobody tidies up after a kill
        patched.setattr(os, "fsync", counted(os.fsync))
        with suppress(KeyboardInterrupt):
            pair(path, 0.6).write()
    found = ScoreFile(path, path.name).read_checked()
    assert found is not None
    value = found.metrics["f1"].value
    assert value in (0.5, 0.6)
    assert ScoreFile(path, path.name).read_statistics(found) == f"{value}\n"
    pair(path, 0.7).write()
    assert sorted(each.name for each in path.parent.iterdir() if not each.name.endswith(".tmp")) == [
        "s.cases.jsonl",
        "s.scores.json",
    ]


def test_approvals_at_the_same_time_leave_one_pair_and_every_approval_in_the_history(tmp_path: Path) -> None:
    path = tmp_path / "s.scores.json"
    values = [number / 10 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda value: pair(path, value).write(), values))
    found = ScoreFile(path, path.name).read_checked()
    assert found is not None
    assert sorted(each.values["f1"] for each in found.history) == values
    assert ScoreFile(path, path.name).read_statistics(found) == f"{found.metrics['f1'].value}\n"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["s.cases.jsonl", "s.scores.json"]
