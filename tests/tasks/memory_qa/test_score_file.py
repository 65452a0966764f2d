"""The file of scores that `batch_judge` keeps: what it is keyed by, when it is written, who may write it."""

import json
import logging
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from builders import RESULTS, Scripted, kept, plain, result, scored
from servers import PATIENCE

from pytest_llmeval import SuiteError
from pytest_llmeval.core import BudgetError, JudgeError
from pytest_llmeval.judges import JudgeRequest, JudgeScoreFile
from pytest_llmeval.tasks.memory_qa import EvalResult, batch_judge, import_cache

LOG = "pytest_llmeval.tasks.memory_qa._answers"


def test_results_without_verdict_have_no_score_are_logged_and_are_judged_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "scores.json"
    judge = Scripted([*scored(0.2), "maybe", *scored(0.4), JudgeError("server down"), *scored(1)])
    with caplog.at_level(logging.WARNING, LOG):
        assert batch_judge(RESULTS, llm=judge, cache_path=path) == [0.2, None, 0.4, None, 1.0]
    assert "2 of 5 answers have no verdict; the first: " in caplog.text
    assert "the judge replied 'maybe'" in caplog.text
    assert kept(path) == {"s/q0": 0.2, "s/q2": 0.4, "s/q4": 1.0}
    again = Scripted(scored(0, 0.6, 0, 0.8, 0))
    assert batch_judge(RESULTS, llm=again, cache_path=path) == [0.2, 0.6, 0.4, 0.8, 1.0]
    assert len(again.prompts) == 2


def test_a_complete_file_needs_no_judge_and_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "scores.json"
    (tmp_path / "plain").touch()
    first = batch_judge(RESULTS, llm=Scripted(scored(0, 0.2, 0.4, 0.6, 0.8)), cache_path=path)
    text, changed = path.read_text(), path.stat().st_mtime_ns
    never = Scripted([AssertionError("asked")] * 5)
    assert batch_judge(RESULTS, llm=never, cache_path=str(path)) == first
    assert never.prompts == []
    assert (path.read_text(), path.stat().st_mtime_ns) == (text, changed)
    assert batch_judge(RESULTS, llm=None, cache_path=path) == first
    assert [each.name for each in path.parent.iterdir()] == ["scores.json"]
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode  # as private as any file of the user
    assert re.sub("#[0-9a-f]{16}", "#", text) == (
        '{\n "s/q0#": 0.0,\n "s/q1#": 0.2,\n "s/q2#": 0.4,\n "s/q3#": 0.6,\n "s/q4#": 0.8\n}\n'
    )


def test_scores_under_question_ids_are_read_and_get_full_keys(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text('{"q0": 0.5, "s/q1": 0.25, "other": 1, "问题": 0}')
    judge = Scripted([AssertionError("asked"), AssertionError("asked"), *scored(0.2)])
    assert batch_judge(RESULTS[:3], llm=judge, cache_path=path) == [0.5, 0.25, 0.2]
    assert kept(path) == {"other": 1, "s/q0": 0.5, "s/q1": 0.25, "s/q2": 0.2, "问题": 0}
    assert "问题" in path.read_text(encoding="utf-8")
    assert len(json.loads(path.read_text(encoding="utf-8"))) == 5
    assert batch_judge(RESULTS[:3], llm=None, cache_path=path) == [0.5, 0.25, 0.2]


def test_a_score_with_a_full_key_goes_before_one_under_an_id(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    batch_judge(RESULTS[:1], llm=Scripted(scored(0.2)), cache_path=path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"q0": 0.9}))
    assert batch_judge(RESULTS[:1], llm=None, cache_path=path) == [0.2]
    assert kept(path) == {"s/q0": 0.2}


@pytest.mark.parametrize(
    ("text", "results", "message"),
    [
        ('{"q0": 0.5}', [result(0, sample="a"), result(0, sample="b")], "'q0', of several results; expected"),
        ('{"q0": 0.5}', [result(0), result(0, answer="Rome")], "'q0', of several results; expected"),
        ('{"a_q0": 0.5, "a_q1": 1}', RESULTS, "found 2 question ids, such as 'a_q0', of no result; expected"),
    ],
)
def test_ids_that_cannot_be_told_apart_are_reported_and_nothing_is_asked_or_written(
    tmp_path: Path, text: str, results: list[EvalResult], message: str
) -> None:
    path = tmp_path / "scores.json"
    path.write_text(text)
    judge = Scripted([AssertionError("asked")] * 5)
    with pytest.raises(SuiteError, match=message) as caught:
        batch_judge(results, llm=judge, cache_path=path)
    assert "qa.import_cache" in str(caught.value)
    assert (judge.prompts, path.read_text()) == ([], text)


def test_import_cache_copies_what_can_be_told_apart(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text('{"q0": 0.5, "a/q1": 0.75, "q1": 1, "gone": 0}')
    results = [result(0, sample="a"), result(1, sample="a"), result(1, sample="b")]
    assert import_cache(old, results, new) == ["q1", "gone"]
    assert kept(new) == {"a/q0": 0.5, "a/q1": 0.75}
    assert old.read_text() == '{"q0": 0.5, "a/q1": 0.75, "q1": 1, "gone": 0}'
    assert batch_judge(results, llm=Scripted(["", *scored(0.1)]), cache_path=new) == [0.5, 0.75, 0.1]
    old.write_text('{"q0": 0.1, "b/q1": 1}')
    assert import_cache(str(old), results, str(new)) == []
    assert kept(new) == {"a/q0": 0.5, "a/q1": 0.75, "b/q1": 0.1}


def test_no_result_gets_the_score_of_another_conversation_answer_or_mode(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    results = [result(0, sample="a"), result(1, sample="b"), result(0, sample="c"), result(1, answer="x", sample="b")]
    for wanted, each in enumerate(results):
        score = wanted / 10
        assert batch_judge([each], llm=Scripted(scored(score, score)), cache_path=path) == [score]
    assert batch_judge([results[0]], llm=plain, mode="preference", cache_path=path) == [1.0]
    never = Scripted([AssertionError("asked")] * 2)
    assert batch_judge(results, llm=never, cache_path=path) == [0.0, 0.1, 0.2, 0.3]


def test_results_that_are_alike_in_everything_are_judged_once(tmp_path: Path) -> None:
    judge = Scripted(scored(0.2, 0.4))
    results = [RESULTS[0], RESULTS[1], RESULTS[0]]
    assert batch_judge(results, llm=judge, cache_path=tmp_path / "scores.json") == [0.2, 0.4, 0.2]
    assert len(judge.prompts) == 2


def test_judging_with_one_file_at_the_same_time_loses_no_score(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    files = [JudgeScoreFile.open(path) for _ in range(4)]
    for number, file in enumerate(files):
        file.add(str(number), 1.0)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(JudgeScoreFile.save, files))
    assert json.loads(path.read_text()) == dict.fromkeys("0123", 1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found an empty file"),
        ('{"q0": 0.5', "expected"),
        ('{"q0": 0.5, "q0": 1}', "q0"),
        ('{"q0": NaN}', "NaN"),
        ("[0.5]", "found a list, expected an object of question ids and scores"),
        ('{"q0": 2}', r"scores.json:1:8  q0: found 2, expected a score from 0 to 1"),
        ('{"q0": 0.5, "q1": "1"}', r'q1: found "1", expected a score from 0 to 1'),
        ('{"q0": true}', "q0: found true, expected a score from 0 to 1"),
        ('{"q0": null}', "q0: found null, expected a score from 0 to 1"),
    ],
)
def test_a_damaged_file_is_an_error_and_stays_as_it_is(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "scores.json"
    path.write_text(text)
    judge = Scripted(scored(1, 1, 1, 1, 1))
    with pytest.raises(SuiteError, match=message):
        batch_judge(RESULTS, llm=judge, cache_path=path)
    assert path.read_text() == text
    assert judge.prompts == []


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), BudgetError("spent")])
def test_what_is_judged_when_a_run_is_stopped_is_kept(tmp_path: Path, stop: BaseException) -> None:
    path = tmp_path / "scores.json"
    judge = Scripted([*scored(0, 0.2, 0.4), stop, *scored(1)])
    with pytest.raises(type(stop)):
        batch_judge(RESULTS, llm=judge, cache_path=path, max_workers=1)
    assert kept(path) == {"s/q0": 0.0, "s/q1": 0.2, "s/q2": 0.4}
    assert batch_judge(RESULTS, llm=Scripted(scored(0, 0, 0, 0.6, 1)), cache_path=path) == [0.0, 0.2, 0.4, 0.6, 1.0]


def test_ctrl_c_keeps_what_is_judged_and_does_not_wait_for_what_is_not(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    waiting = threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def llm(request: JudgeRequest) -> str:
        if "Where? 3" in str(request):
            signal.pthread_kill(main, signal.SIGINT)
            waiting.wait(PATIENCE)
        return '{"score": 1}'

    with pytest.raises(KeyboardInterrupt):
        batch_judge(RESULTS, llm=llm, cache_path=path, max_workers=1)
    assert not waiting.is_set()
    waiting.set()
    assert kept(path) == {"s/q0": 1.0, "s/q1": 1.0, "s/q2": 1.0}


def test_the_file_is_written_now_and_then_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    results = [replace(RESULTS[0], question_id=str(number)) for number in range(40)]
    lengths: list[int] = []

    def llm(request: JudgeRequest) -> str:
        del request
        lengths.append(len(json.loads(path.read_text())) if path.exists() else 0)
        return '{"score": 1}'

    batch_judge(results, llm=llm, cache_path=path, max_workers=1)
    assert sorted(set(lengths)) == [0, 32]


def test_a_file_that_cannot_be_written_leaves_no_scratch_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = JudgeScoreFile.open(tmp_path / "scores.json")
    file.add("q", 1.0)

    def refuse(path: Path, target: Path) -> Path:
        raise PermissionError(13, "no", f"{path} to {target}")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError):
        file.save()
    assert list(tmp_path.iterdir()) == []
