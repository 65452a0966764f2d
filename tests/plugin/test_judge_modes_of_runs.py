"""``--llmeval-judge``: where verdicts come from in a run, and where they are written."""

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from scripted_judges import by_answer, case, entries_of
from servers import LlmServer, reply, status

from pytest_llmeval.cli import main

if TYPE_CHECKING:
    from conftest import Ran
    from scripted_judges import Judged

RECORD = "--llmeval-judge=record"
REPLAY = "--llmeval-judge=replay"
REFRESH = "--llmeval-judge=refresh"
OFF = "--llmeval-judge=off"
FEW_CALLS = "--llmeval-concurrency=1"
WORDS = ["b", "a", "東"]


def _score(ran: "Ran", suite: str = "s") -> object:
    return ran.suites[suite]["metrics"]["judge_score"]["value"]


def _reasons(ran: "Ran", suite: str = "s") -> dict[str, str]:
    return {each["id"]: each["reason"] for each in ran.suites[suite]["cases"]}


def test_auto_asks_once_and_keeps_it_in_the_cache_only_until_record_writes_it_beside_the_suite(
    judged: "Judged", workers: int
) -> None:
    judged.suite("s.eval.yaml", WORDS, gates=["judge_score >= 1"])
    first = judged.project.run(workers=workers)
    assert (first.code, judged.asked()) == (0, {"a": 1, "b": 1, "東": 1})
    assert judged.kept() == ["a", "b", "東"]
    assert not judged.recordings().exists()
    again = judged.project.run(RECORD, workers=workers)
    assert (again.code, judged.asked()) == (0, {})
    assert again.suites["s"]["metrics"] == first.suites["s"]["metrics"]
    assert [each["case"] for each in entries_of(judged.recordings())] == ["a", "b", "東"]
    assert "3 judgements recorded in __llmeval__/s.judgements.jsonl" in again.text
    before = (judged.recordings().read_bytes(), judged.recordings().stat().st_mtime_ns)
    third = judged.project.run(RECORD, workers=workers)
    assert (judged.recordings().read_bytes(), judged.recordings().stat().st_mtime_ns) == before
    assert "recorded in" not in third.text
    assert judged.asked() == {}


def test_recordings_have_the_same_bytes_wherever_they_are_made(judged: "Judged") -> None:
    words = [f"w{number}" for number in range(8)]
    # Two cases ask the same, and so share a verdict: which of them is asked first must not show.
    twins = [case("twin"), {**case("twin"), "id": "another"}]
    judged.suite("s.eval.yaml", [*words, *twins])
    written = []
    for workers in (0, 2, 2):
        shutil.rmtree(judged.cache.parent, ignore_errors=True)
        judged.recordings().unlink(missing_ok=True)
        judged.project.run(RECORD, workers=workers)
        written.append(re.sub(r'"seconds": [\d.]+', '"seconds": 0', judged.recordings().read_text(encoding="utf-8")))
    assert written[0] == written[1] == written[2]
    assert set(judged.asked().values()) == {3}


def test_replay_needs_neither_network_nor_key_nor_cache(judged: "Judged", monkeypatch: pytest.MonkeyPatch) -> None:
    judged.suite("s.eval.yaml", WORDS, gates=["judge_score >= 1"], judge=judged.judge(api_key_env="OPENAI_API_KEY"))
    first = judged.project.run(RECORD)
    judged.asked()
    shutil.rmtree(judged.cache.parent)
    monkeypatch.delenv("OPENAI_API_KEY")
    before = judged.recordings().read_bytes()
    ran = judged.project.run(REPLAY, workers=2)
    assert (ran.code, judged.asked()) == (0, {})
    assert ran.suites["s"]["metrics"] == first.suites["s"]["metrics"]
    assert judged.recordings().read_bytes() == before
    assert not judged.cache.parent.exists()
    usage = ran.suites["s"]["usage"]
    assert (usage["verdicts"], usage["calls"], usage["judge_cost_usd"]) == (3, 0, 0.0)


def test_a_miss_of_replay_names_case_mode_and_what_differs(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", ["a", "b"])
    judged.project.run(RECORD)
    judged.asked()
    judged.suite("s.eval.yaml", [{**case("a"), "prediction": "other"}, "b", "new"], gates=["judge_score >= 0"])
    ran = judged.project.run(REPLAY)
    remedy = "run once with --llmeval-judge=record"
    reasons = _reasons(ran)
    start = "judge: JudgeError: case {!r}: no recorded verdict of mode 'default_binary' ({}); " + remedy
    assert reasons["a"] == start.format("a", "the recorded verdict of this case differs in the answer")
    assert reasons["b"] is None
    assert reasons["new"].startswith(
        "judge: JudgeError: case 'new': no recorded verdict of mode 'default_binary' (no verdict is recorded "
    )
    file = "__llmeval__/s.judgements.jsonl"
    record = f"pytest --llmeval s.eval.yaml --llmeval-judge=record, then commit {file}"
    assert ran.text.count(f"replay: 2 cases lack recorded verdicts: {record}") == 1
    assert (ran.outcomes("s")["a"], ran.gates("s"), ran.code) == ("errored", {"judge_score >= 0": "failed"}, 1)
    other = judged.project.run(REPLAY, "--llmeval-judge-model=openai:n")
    assert "differs in the model (openai:n, recorded openai:m)" in _reasons(other)["b"]
    assert judged.asked() == {}


def test_recording_with_the_key_of_another_question_is_an_error(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", ["a", "b"])
    judged.project.run(RECORD)
    path = judged.project.path / "__llmeval__" / "s.judgements.jsonl"
    first, second = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    first["key"], second["key"] = second["key"], first["key"]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in (first, second)), encoding="utf-8")
    ran = judged.project.run(REPLAY)
    assert ran.code == 1
    for name in ("a", "b"):
        assert "belongs to another question (it differs in the answer" in _reasons(ran)[name]


def test_recordings_with_faults_cost_their_own_suite_only_and_are_left_alone(judged: "Judged") -> None:
    judged.suite("bad.eval.yaml", ["a"])
    judged.suite("good.eval.yaml", ["b"])
    path = judged.project.write("__llmeval__/bad.judgements.jsonl", '{"case": "a"}\n<<<<<<< ours\n')
    before = path.read_bytes()
    ran = judged.project.run(RECORD)
    assert ran.code != 0
    assert ran.outcomes("good") == {"b": "passed"}
    assert "bad" not in ran.suites
    assert "bad.eval.yaml: bad.judgements.jsonl:1:1  mode" in ran.text
    assert "bad.eval.yaml: bad.judgements.jsonl:2:1  found a merge conflict marker" in ran.text
    assert path.read_bytes() == before
    assert judged.asked() == {"b": 1}
    refreshed = judged.project.run(REFRESH)
    assert path.read_bytes() == before
    assert refreshed.code == 1
    assert "judgements not recorded: " in refreshed.text


def test_refresh_asks_for_everything_and_forgets_the_rest_of_suites_that_ran_whole(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", ["a", "b", "gone"])
    judged.project.run(RECORD)
    judged.asked()
    judged.suite("s.eval.yaml", ["a", "b"])
    judged.server.script(reply("no"))
    judged.project.run(REFRESH, "s.eval.yaml::a", workers=2)
    assert judged.asked() == {"a": 1}
    told = {each["case"]: each["reply"] for each in entries_of(judged.recordings())}
    assert told == {"a": "no", "b": "yes", "gone": "yes"}
    whole = judged.project.run(REFRESH, workers=2)
    assert (judged.asked(), _score(whole)) == ({"a": 1, "b": 1}, 0.0)
    assert {each["case"]: each["reply"] for each in entries_of(judged.recordings())} == {"a": "no", "b": "no"}
    shutil.rmtree(judged.recordings().parent)
    assert _score(judged.project.run(workers=2)) == 0.0  # the cache has the new verdicts, too
    assert judged.asked() == {}


def test_refresh_keeps_what_is_recorded_of_cases_that_get_no_verdict(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", ["a", "b", "c"])
    judged.project.run(RECORD)
    judged.suite("s.eval.yaml", ["a", "b", {**case("c"), "tags": ["skip"]}])
    judged.server.script(by_answer({"b": status(500)}, otherwise=reply("no")))
    ran = judged.project.run(REFRESH)
    assert ran.outcomes("s") == {"a": "passed", "b": "errored", "c": "skipped"}
    told = {each["case"]: each["reply"] for each in entries_of(judged.recordings())}
    assert told == {"a": "no", "b": "yes", "c": "yes"}


def test_off_leaves_metrics_of_judges_undefined_and_their_gates_unjudged(judged: "Judged") -> None:
    evaluators = ["text", {"judge": {"mode": "default_binary"}}]
    gates = ["judge_score >= 1", "exact_match >= 1", "judge_cost_usd <= 1"]
    judged.suite("s.eval.yaml", WORDS, evaluators=evaluators, gates=gates, thresholds={"judge_score": 1})
    ran = judged.project.run(OFF)
    metric = ran.suites["s"]["metrics"]["judge_score"]
    assert (metric["value"], metric["undefined"], metric["errored"]) == (None, 3, 0)
    assert ran.gates("s") == {
        "judge_score >= 1": "not_judged",
        "exact_match >= 1": "passed",
        "judge_cost_usd <= 1": "not_judged",
    }
    assert set(ran.outcomes("s").values()) == {"passed"}
    assert (ran.code, judged.asked(), judged.cache.exists()) == (0, {}, False)


def test_the_command_line_goes_before_the_configuration_and_that_before_the_suite(judged: "Judged") -> None:
    models = []
    with LlmServer() as other:
        judged.suite("s.eval.yaml", ["a"])
        judged.project.run()
        models += [call.body["model"] for call in judged.server.calls]
        judged.project.ini("llmeval_judge_model = openai:of-ini\nllmeval_judge_base_url = " + other.base_url)
        judged.project.run()
        judged.project.run("--llmeval-judge-model=openai:of-line", f"--llmeval-judge-base-url={judged.server.base_url}")
        assert [call.body["model"] for call in judged.server.calls] == ["m", "of-line"]
        assert [call.body["model"] for call in other.calls] == ["of-ini"]


def test_a_recording_names_the_case_of_its_own_suite_and_of_several_cases_that_ask_the_same_the_first_by_name(
    judged: "Judged",
) -> None:
    judged.suite("one.eval.yaml", [{**case("x"), "id": "other"}])
    judged.suite("two.eval.yaml", [{**case("x"), "id": "early"}, {**case("x"), "id": "twin"}])
    judged.project.run("one.eval.yaml")
    ran = judged.project.run(RECORD, "two.eval.yaml", workers=2)
    assert judged.asked() == {"x": 1}
    assert "1 judgement recorded in " in ran.text
    assert [each["case"] for each in entries_of(judged.recordings("two"))] == ["early"]


@pytest.mark.parametrize(
    ("ini", "line", "message"),
    [
        ("", "--llmeval-judge=replya", "invalid choice: 'replya' (choose from "),
        ("llmeval_judge = replya", "", "llmeval_judge: found 'replya', expected one of auto, replay, record, refresh"),
        (
            "",
            "--llmeval-judge-model=gpt-5",
            "--llmeval-judge-model: found 'gpt-5', expected PROVIDER:NAME (did you mean",
        ),
        ("", "--llmeval-judge-base-url=host", "--llmeval-judge-base-url: found 'host', expected an address"),
        ("llmeval_concurrency = 0", "", "llmeval_concurrency: found '0', expected a whole number of at least 1"),
        ("", "--llmeval-budget=usd=cheap", "--llmeval-budget: found 'usd=cheap', expected calls=NUMBER, tokens=NUMBER"),
    ],
)
def test_a_wrong_option_is_a_usage_error(judged: "Judged", ini: str, line: str, message: str) -> None:
    judged.suite("s.eval.yaml", ["a"])
    judged.project.ini(ini)
    ran = judged.project.run(*filter(None, [line]))
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert message in ran.text
    assert "Traceback" not in ran.text
    assert judged.asked() == {}


def test_a_cache_that_cannot_be_used_is_told_with_its_option_and_costs_no_stored_verdict(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", ["a", "b"])
    judged.project.run(RECORD, "s.eval.yaml::a")
    judged.asked()
    judged.project.write("cache.txt", "something else\n" * 100)
    ran = judged.project.run("--llmeval-cache=cache.txt")
    assert ran.outcomes("s") == {"a": "passed", "b": "errored"}
    assert "(--llmeval-cache=PATH)" in _reasons(ran)["b"]
    assert judged.asked() == {}


def test_the_keys_of_recordings_are_those_that_the_command_explains(judged: "Judged") -> None:
    from pytest_llmeval.workbench._cache import suite_questions

    path = judged.suite("s.eval.yaml", WORDS)
    judged.project.run(RECORD)
    told = {each.case: each.key for each in suite_questions(path).questions}
    assert {each["case"]: each["key"] for each in entries_of(judged.recordings())} == told
    assert json.loads(judged.recordings().read_text(encoding="utf-8").splitlines()[0])["reply"] == "yes"


def test_verdicts_in_a_directory_are_used_offline_by_workers_and_by_commands(
    judged: "Judged", monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judged.suite("s.eval.yaml", ["a", "b", "c"])
    judged.project.ini("llmeval_cache = directory:verdicts")
    ran = judged.project.run(workers=2)
    assert judged.asked() == {"a": 1, "b": 1, "c": 1}
    folder = judged.project.path / "verdicts"
    files = {file.name: file.read_bytes() for file in folder.glob("*.json")}
    assert len(files) == 3
    assert {each.name for each in folder.iterdir()} == {*files, ".llmeval"}
    assert not judged.cache.exists()
    shutil.rmtree(folder / ".llmeval")  # as a checkout has it
    assert judged.project.run(workers=2).outcomes("s") == ran.outcomes("s")
    assert judged.asked() == {}
    assert {file.name: file.read_bytes() for file in folder.glob("*.json")} == files
    assert judged.project.run(REPLAY).outcomes("s") == dict.fromkeys(ran.outcomes("s"), "errored")
    assert judged.project.run(RECORD).outcomes("s") == ran.outcomes("s")
    assert judged.project.run(REPLAY).outcomes("s") == ran.outcomes("s")
    assert judged.asked() == {}

    monkeypatch.chdir(judged.project.path)
    for action, last in (
        (["stats"], f"directory:verdicts: 3 verdicts, {sum(map(len, files.values()))} bytes"),
        (["verify"], "directory:verdicts: no fault, 3 verdicts"),
        (["export", "all.jsonl"], "all.jsonl: 3 verdicts"),
        (["prune", "--model", "openai:other"], "directory:verdicts: 0 verdicts deleted"),
        (["prune", "--older-than", "0"], "directory:verdicts: 3 verdicts deleted"),
        (["import", "all.jsonl"], "directory:verdicts: 3 verdicts added"),
    ):
        assert main(["cache", *action, "--cache", "directory:verdicts"]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == last
    assert {file.name: file.read_bytes() for file in folder.glob("*.json")} == files

    judged.recordings().unlink()
    damaged = next(iter(files))
    (folder / damaged).write_text("<<<<<<< ours\n", encoding="utf-8")
    ran = judged.project.run("s.eval.yaml")
    assert sorted(ran.outcomes("s").values()) == ["errored", "passed", "passed"]
    assert f"{damaged}: found invalid JSON at line 1, column 1" in ran.text
    assert judged.asked() == {}
