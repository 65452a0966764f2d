"""The end of a run without pytest: what is judged, reported, written, and what costs only its own suite."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from builders import Length, finished, length_suite, parse_gate, recorded

from pytest_llmeval import Case, Observation, Sums
from pytest_llmeval.baselines import History, SuiteIdentity
from pytest_llmeval.core import CaseRecord, Fault, FloatArray, GateResult, JudgeCall
from pytest_llmeval.data.files._writing import WritingProcess
from pytest_llmeval.numbers import Threshold
from pytest_llmeval.reports import SuiteReport, published
from pytest_llmeval.reports._overview import cluster_lines
from pytest_llmeval.run import Reported, RunRecord
from pytest_llmeval.run._finishing import changes_by_gates
from pytest_llmeval.run._run_record import UsedJudgements
from pytest_llmeval.suites import LoadedSuite, SnapshotSettings
from pytest_llmeval.targets import Recordings
from pytest_llmeval.targets._recordings import NotRecorded

CASES = (Case("a", expected="x", labels={"kind": "short"}), Case("b", expected="x"))


def measured(name: str, letters: int = 4, **more: Any) -> CaseRecord:
    return CaseRecord(name, observations={"length": Observation({"letters": letters})}, **more)


def absent(name: str) -> CaseRecord:
    return CaseRecord(name, observations={"length": Observation({}, undefined={"length": "no gold"})})


def silent(name: str) -> CaseRecord:
    return CaseRecord(
        name, observations={"length": Observation({}, undefined={"length": "no text"}, abstained=("length",))}
    )


def failed(name: str) -> CaseRecord:
    return CaseRecord(name, outcome="errored", errors={"length": "no"})


def gated(*gates: str, path: str = "/root/s.eval.yaml", **more: Any) -> LoadedSuite:
    return length_suite(*CASES, path=Path(path), gates=tuple(map(parse_gate, gates)), **more)


def judge(suite: LoadedSuite, *records: CaseRecord, **run: Any) -> Reported:
    return finished(recorded(suite, *records, into=RunRecord(**run)), [suite])


def report_of(suite: LoadedSuite, *records: CaseRecord) -> SuiteReport:
    (report,) = judge(suite, *records).report.suites
    return report


def verdicts(run: Reported) -> list[tuple[str, str]]:
    return [(key.display_path, each.outcome) for key, each in run.verdicts]


def test_gates_are_judged_on_the_summed_results() -> None:
    run = judge(gated("length >= 9", "length >= 10"), measured("a"), measured("b", 5))
    (report,) = run.report.suites
    assert [each.outcome for each in report.gates] == ["passed", "failed"]
    assert verdicts(run) == [("s.eval.yaml", "passed"), ("s.eval.yaml", "failed")]
    assert run.failed
    assert report.metrics["length"].value == 9.0


def test_cases_have_the_labels_of_their_suite_and_those_without_result_did_not_run() -> None:
    first, second = judge(gated(), measured("a")).judged.suites[0].records
    assert (first.labels, first.outcome) == ({"kind": "short"}, "passed")
    assert (second.outcome, second.reason) == ("not_run", "not selected")


def test_a_call_that_cases_share_is_counted_once() -> None:
    call = JudgeCall("k", fresh=True)
    (suite,) = judge(gated(), measured("a", calls=[call]), measured("b", calls=[call])).judged.suites
    assert [each.calls[0].fresh for each in suite.records] == [True, False]


@pytest.mark.parametrize(
    ("suite", "broken", "reported"),
    [
        (gated("length >= 1"), "", []),
        (gated("length >= 1"), "a worker crashed", [("s.eval.yaml", "not_judged")]),
        (gated("length >= 1", faults=(Fault("s", 1, 1, "", "no"),), faulty=1), "", [("s.eval.yaml", "not_judged")]),
    ],
    ids=["left out on purpose", "broken", "faulty"],
)
def test_a_gate_that_cannot_be_judged_is_reported_unless_cases_were_left_out_on_purpose(
    suite: LoadedSuite, broken: str, reported: list[tuple[str, str]]
) -> None:
    run = judge(suite, measured("a"), crashed=broken)
    assert [each.outcome for each in run.report.suites[0].gates] == ["not_judged"]
    assert verdicts(run) == reported


@pytest.mark.parametrize(
    ("limits", "records", "noted"),
    [
        (
            {"lenght": Threshold(1)},
            [measured("a"), measured("b")],
            "lenght, so none can miss its threshold (did you mean 'length'?)",
        ),
        ({"length": Threshold(1)}, [absent("a"), absent("b")], "length, so none can miss its threshold"),
        ({"length": Threshold(1)}, [absent("a"), measured("b")], ""),
        ({"length": Threshold(1)}, [silent("a"), silent("b")], ""),
        ({"length": Threshold(1)}, [absent("a"), failed("b")], ""),
        ({"lenght": Threshold(1)}, [measured("a")], ""),
        ({"target_latency_s": Threshold(max=1)}, [measured("a"), measured("b")], ""),
    ],
)
def test_a_threshold_that_no_case_can_miss_is_noted(
    limits: dict[str, Threshold], records: list[CaseRecord], noted: str
) -> None:
    for suite in (gated(thresholds=limits), length_suite(replace(CASES[0], thresholds=limits), CASES[1])):
        notes = judge(suite, *records).notes
        assert [each for each in notes if "threshold" in each] == (
            [f"s.eval.yaml: no case has a value of {noted}"] if noted else []
        )


@dataclass(frozen=True)
class Broken(Length):
    """Cannot be summarised."""

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        raise ZeroDivisionError(f"no letters among {len(sums)} sums")


def test_a_suite_that_cannot_be_judged_fails_and_costs_no_other() -> None:
    good = gated("length >= 1", path="/root/b.eval.yaml")
    bug = gated(path="/root/c.eval.yaml", evaluators={"length": Broken()})
    gone = gated(path="/root/a.eval.yaml")
    run = RunRecord()
    for each in (gone, good, bug):
        recorded(each, measured("a"), measured("b"), into=run)
    found = finished(run, [good, bug])
    assert verdicts(found) == [("a.eval.yaml", "failed"), ("b.eval.yaml", "passed"), ("c.eval.yaml", "failed")]
    assert [each.path for each in found.report.suites] == ["b.eval.yaml"]
    assert found.notes[0] == "a.eval.yaml: not evaluated: the file has gone"
    assert found.notes[1].startswith("c.eval.yaml: not evaluated: evaluator 'length': summarize failed: ZeroDivis")


def test_suites_come_in_order_and_those_that_a_broken_run_did_not_reach_with_them() -> None:
    silent, dropped = gated(path="/root/a.eval.yaml"), gated(path="/root/z.eval.yaml")
    run = RunRecord(crashed="a worker crashed", selected={str(silent.path), "/root/s.eval.yaml"})
    recorded(gated(), measured("a"), into=run, variant="gpt")
    recorded(gated(), measured("a"), into=run, variant="bot")
    assert [each.suite for each in finished(run, [gated(), silent, dropped]).report.suites] == [
        "a",
        "s[bot]",
        "s[gpt]",
    ]


class Kept:
    """Recordings that keep what they are to record."""

    path = Path("p.jsonl")

    def update(self, rows: Sequence[Mapping[str, Any]], complete: set[tuple[str, str]]) -> NotRecorded:
        self.rows, self.complete = rows, complete
        return NotRecorded()


def test_only_suites_all_of_whose_cases_ran_are_complete_and_python_tests_record_nothing() -> None:
    whole = [measured("a"), measured("b")]
    part = gated(path="/root/part.eval.yaml")
    run = recorded(gated(), *whole, variant="gpt")
    recorded(gated(), *whole, into=run, test="test_it")
    recorded(part, measured("a"), into=run)
    kept = Kept()
    finished(run, [gated(), part], recordings=kept)
    assert kept.complete == {("s.eval.yaml", "gpt")}


@pytest.mark.parametrize(
    ("records", "lacking"),
    [
        ([measured("a"), measured("b")], set()),
        ([measured("a"), CaseRecord("b", outcome="errored", errors={"": "no"})], {"b"}),
        ([CaseRecord("a", outcome="skipped"), measured("b")], {"a"}),
    ],
)
def test_renewed_judgements_of_whole_suites_spare_cases_that_lack_a_score(
    monkeypatch: pytest.MonkeyPatch, records: Sequence[CaseRecord], lacking: set[str]
) -> None:
    renewed: list[object] = []
    monkeypatch.setattr(UsedJudgements, "write", lambda _, cases: renewed.append(cases) or ())
    partial = gated(path="/root/part.eval.yaml")
    run = recorded(partial, measured("a"), into=recorded(gated(), *records))
    finished(run, [gated(), partial], judge="refresh")
    assert renewed == [{Path("/root/s.eval.yaml"): lacking}]


def test_the_report_holds_every_suite_and_the_faults_by_file() -> None:
    run = recorded(gated("length >= 1"), measured("a"), measured("b"))
    run.faults = {"z": ["no"], "y": ["none"]}
    report = finished(run, [gated("length >= 1")]).report
    assert (report.run.started_at, report.run.duration_s) == ("2026-01-02T00:00:00+00:00", 1.5)
    assert ([each.suite for each in report.suites], list(report.faults)) == (["s"], ["y", "z"])


def test_the_cases_of_a_suite_are_fingerprinted_once_for_report_and_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[SuiteIdentity] = []
    digests = SuiteIdentity.digests.fget
    monkeypatch.setattr(SuiteIdentity, "digests", property(lambda one: calls.append(one) or digests(one)))
    run = judge(gated("length >= 1"), measured("a"), measured("b"))
    (judged,) = run.judged.suites
    assert judged.measured.run.statistics.digests == judged.measured.run.digests
    assert [each.content for each in run.report.suites[0].cases] == list(judged.measured.run.contents.values())
    assert len(calls) == 1


def asked(size: int, inputs: int, **more: Any) -> LoadedSuite:
    cases = [Case(str(number), input=number % inputs, expected="x") for number in range(size)]
    return length_suite(*cases, path=Path("/root/s.eval.yaml"), **more)


@pytest.mark.parametrize(
    ("size", "inputs", "cluster_by", "shared"),
    [(50, 10, None, 40), (50, 10, "talk", 0), (12, 3, None, 0), (200, 185, None, 0), (200, 180, None, 20)],
)
def test_many_cases_that_share_an_input_are_told_unless_clusters_are_named(
    size: int, inputs: int, cluster_by: str | None, shared: int
) -> None:
    suite = asked(size, inputs, cluster_by=cluster_by)
    report = report_of(suite, *(measured(case.id) for case in suite.cases))
    assert report.shared_inputs == shared
    warned = [line for line in cluster_lines(report) if line.startswith("warning: ")]
    assert len(warned) == bool(shared)
    assert all(f"{shared} of {size} cases have the input of an earlier case" in line for line in warned)


def test_the_report_says_what_clusters_cost() -> None:
    cases = [Case(str(number), expected="x", labels={"talk": str(number // 4)}) for number in range(8)]
    suite = length_suite(*cases, path=Path("/root/s.eval.yaml"), cluster_by="talk")
    records = [measured(case.id, 1 + 3 * (int(case.id) // 4)) for case in cases]
    run = judge(suite, *records).report
    (report,) = run.suites
    assert list(cluster_lines(report)) == ["8 cases in 2 clusters by talk; design effect 7.00 (length)"]
    (written,) = published(run)["suites"]
    assert (written["clusters"]["label"], written["clusters"]["count"]) == ("talk", 2)
    assert written["cases"][5]["cluster"] == "1"


def finish(root: Path, *, update: bool = False, recordings: Recordings | None = None) -> Reported:
    """End a run of one case, whose prediction is ``four``."""
    case = Case("c", input="q", expected="x", prediction="four")
    suite = length_suite(case, path=root / "s.eval.yaml")
    row = Recordings.row("s.eval.yaml", "", case)
    record = CaseRecord("c", observations={"length": Observation({"letters": 4})}, recordings=[row])
    return finished(recorded(suite, record), [suite], root, recordings=recordings, update=update, snapshots=True)


def test_an_approved_run_leaves_scores_and_a_line_of_history(tmp_path: Path) -> None:
    run = finish(tmp_path, update=True)
    assert set(verdicts(run)) == {("s.eval.yaml", "passed")}
    (scores,) = tmp_path.glob("*/s.scores.json")
    assert json.loads(scores.read_text())["metrics"]["length"]["value"] == 4.0
    (line,) = map(json.loads, (History.path_in(tmp_path)).read_text().splitlines())
    assert line["values"]["length"] == 4.0
    assert line["basis"].keys() == {"data", "evaluator", "judge"}


def test_scores_that_cannot_be_written_fail_in_place_of_their_approval(tmp_path: Path) -> None:
    (tmp_path / "__llmeval__").write_text("a file where the folder should be")
    run = finish(tmp_path, update=True)
    ((key, verdict),) = run.verdicts
    assert (key.display_path, verdict.outcome) == ("s.eval.yaml", "failed")
    assert "not written" in verdict.reason


def test_a_history_that_cannot_be_written_is_noted_and_fails_nothing(tmp_path: Path) -> None:
    (History.path_in(tmp_path)).mkdir(parents=True)
    run = finish(tmp_path, update=True)
    assert set(verdicts(run)) == {("s.eval.yaml", "passed")}
    (note,) = run.notes
    assert note.startswith(f"run NOT noted in {History.path_in(tmp_path)}: ")


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
def test_a_note_on_a_disk_that_takes_no_more_names_the_file(tmp_path: Path) -> None:
    import resource

    finish(tmp_path, update=True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        notes = finish(tmp_path, update=True).notes
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert f"run NOT noted in {History.path_in(tmp_path)}: File too large" in notes


def test_predictions_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    assert finish(tmp_path, recordings=Recordings(path, "auto")).notes == []
    assert json.loads(path.read_text())["prediction"] == "four"


def test_predictions_that_cannot_be_written_fail_the_run(tmp_path: Path) -> None:
    (tmp_path / "p").write_text("a file where the folder should be")
    run = finish(tmp_path, recordings=Recordings(tmp_path / "p" / "p.jsonl", "auto"))
    assert verdicts(run)[-1] == ("predictions", "failed")
    assert run.notes[-1].startswith(f"predictions not recorded in {tmp_path / 'p' / 'p.jsonl'}: ")


def test_a_long_list_of_unreadable_predictions_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recordings = Recordings(tmp_path / "p.jsonl", "auto")
    monkeypatch.setattr(recordings, "update", lambda *_: NotRecorded(["a", "b", "c", "d"]))
    (note,) = finish(tmp_path, recordings=recordings).notes
    assert note.endswith("since no later run could read them: 4 ('a', 'b', 'c', ...)")


def test_what_killed_runs_were_about_to_write_is_removed_and_nothing_of_a_living_one(tmp_path: Path) -> None:
    name = ".llmeval-{}-00000000.tmp"
    dead = subprocess.run(
        [
            sys.executable,
            "-c",
            "from pytest_llmeval.data.files._writing import WritingProcess; print(WritingProcess.current().name)",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    for folder in ("__llmeval__", ".llmeval"):
        (tmp_path / folder).mkdir()
        for process in (dead, WritingProcess.current().name):
            (tmp_path / folder / name.format(process)).touch()
    finish(tmp_path)
    assert {each.name for each in tmp_path.glob("*/.*.tmp")} == {name.format(WritingProcess.current().name)}


def test_scores_that_no_suite_has_are_not_approved_in_silence(tmp_path: Path) -> None:
    suite = length_suite(Case("a", prediction="x"), path=tmp_path / "s.eval.yaml")
    run = recorded(suite, CaseRecord("a"))
    note = "no scores were approved: no suite has 'snapshot: true'"
    assert note in finished(run, [suite], tmp_path, update=True).notes
    assert note not in finished(run, [suite], tmp_path).notes
    approved = length_suite(*suite.cases, path=suite.path, snapshot=SnapshotSettings())
    assert note not in finished(run, [approved], tmp_path, update=True).notes


def test_a_gate_on_groups_does_not_decide_about_the_metric_over_all_cases() -> None:
    of_groups = GateResult("drop(f1) <= 0.02 by topic", "undecided", 0.0, 0.02, "few")
    of_group = GateResult("drop(f1) <= 0.02 by topic", "failed", 0.5, 0.02, "fell", fallen=("a",))
    of_all = GateResult("drop(f1) <= 0.02", "failed", 0.5, 0.02, "fell", fallen=("a",))
    assert changes_by_gates([of_groups, of_group]) == {}
    assert changes_by_gates([of_groups, of_all]) == {"f1": "declined"}
