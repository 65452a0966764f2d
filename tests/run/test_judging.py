"""Judging a finished run without pytest: summaries, gates, what is reported, and what costs only its own suite."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from lengths import Length, key_of, length_suite

from pytest_llmeval import Case, Observation, Sums
from pytest_llmeval.core.errors import Fault
from pytest_llmeval.core.observation import FloatArray
from pytest_llmeval.core.results import CaseRecord, JudgeCall
from pytest_llmeval.reports.data import RunReport
from pytest_llmeval.reports.json import to_json
from pytest_llmeval.reports.overview import cluster_lines
from pytest_llmeval.run.collected import CollectedRun, CollectedSuite, SuiteResults
from pytest_llmeval.run.judging import JudgedRun, judge_run
from pytest_llmeval.scoring.gates import parse_gate
from pytest_llmeval.scoring.limits import Limit
from pytest_llmeval.snapshots.keeper import Keeper
from pytest_llmeval.snapshots.mode import SnapshotMode
from pytest_llmeval.suite.suite import Suite

CASES = (Case("a", expected="x", labels={"kind": "short"}), Case("b", expected="x"))


def measured(name: str, letters: int = 4, **more: Any) -> CaseRecord:
    return CaseRecord(name, observations={"length": Observation({"letters": letters})}, **more)


def absent(name: str) -> CaseRecord:
    return CaseRecord(name, observations={"length": Observation({}, undefined={"length": "no gold"})})


def failed(name: str) -> CaseRecord:
    return CaseRecord(name, outcome="errored", errors={"length": "no"})


def gated(*gates: str, path: str = "/root/s.eval.yaml", **more: Any) -> Suite:
    return length_suite(*CASES, path=Path(path), gates=tuple(map(parse_gate, gates)), **more)


def collected(suite: Suite, *records: CaseRecord, **key: str) -> CollectedSuite:
    return CollectedSuite(SuiteResults(key_of(suite, **key), suite.total, {each.id: each for each in records}), suite)


def judge(*suites: CollectedSuite, **more: Any) -> JudgedRun:
    run = CollectedRun(datetime(2026, 1, 2, tzinfo=UTC), "abc", suites, **more)
    return judge_run(run, Keeper(SnapshotMode()))


def verdicts(judged: JudgedRun) -> list[tuple[str, str]]:
    return [(key.shown, each.outcome) for key, each in judged.verdicts]


def test_gates_are_judged_on_the_summed_results() -> None:
    judged = judge(collected(gated("length >= 9", "length >= 10"), measured("a"), measured("b", 5)))
    assert [each.outcome for each in judged.suites[0].report.gates] == ["passed", "failed"]
    assert verdicts(judged) == [("s.eval.yaml", "passed"), ("s.eval.yaml", "failed")]
    assert judged.suites[0].report.result.metrics["length"].value == 9.0


def test_cases_have_the_labels_of_their_suite_and_those_without_result_did_not_run() -> None:
    judged = judge(collected(gated(), measured("a")))
    first, second = judged.suites[0].report.result.records
    assert (first.labels, first.outcome) == ({"kind": "short"}, "passed")
    assert (second.outcome, second.reason) == ("not_run", "not selected")


def test_a_call_that_cases_share_is_counted_once() -> None:
    call = JudgeCall("k", fresh=True)
    judged = judge(collected(gated(), measured("a", calls=[call]), measured("b", calls=[call])))
    assert [each.calls[0].fresh for each in judged.suites[0].report.result.records] == [True, False]


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
    suite: Suite, broken: str, reported: list[tuple[str, str]]
) -> None:
    judged = judge(collected(suite, measured("a")), broken=broken)
    assert [each.outcome for each in judged.suites[0].report.gates] == ["not_judged"]
    assert verdicts(judged) == reported


@pytest.mark.parametrize(
    ("limits", "records", "noted"),
    [
        (
            {"lenght": Limit(1)},
            [measured("a"), measured("b")],
            "lenght, so none can miss its threshold (did you mean 'length'?)",
        ),
        ({"length": Limit(1)}, [absent("a"), absent("b")], "length, so none can miss its threshold"),
        ({"length": Limit(1)}, [absent("a"), measured("b")], ""),
        ({"length": Limit(1)}, [absent("a"), failed("b")], ""),
        ({"lenght": Limit(1)}, [measured("a")], ""),
        ({"target_latency_s": Limit(max=1)}, [measured("a"), measured("b")], ""),
    ],
)
def test_a_threshold_that_no_case_can_miss_is_noted(
    limits: dict[str, Limit], records: list[CaseRecord], noted: str
) -> None:
    for suite in (gated(thresholds=limits), length_suite(replace(CASES[0], thresholds=limits), CASES[1])):
        notes = judge(collected(suite, *records)).notes
        assert list(notes) == ([f"s.eval.yaml: no case has a value of {noted}"] if noted else [])


@dataclass(frozen=True)
class Broken(Length):
    """Cannot be summarised."""

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        raise ZeroDivisionError(f"no letters among {len(sums)} sums")


def test_a_suite_that_cannot_be_judged_fails_and_costs_no_other() -> None:
    good = gated("length >= 1", path="/root/b.eval.yaml")
    bug = gated(path="/root/c.eval.yaml", evaluators={"length": Broken()})
    gone = CollectedSuite(SuiteResults(key_of(gated(path="/root/a.eval.yaml")), 2, {}), fault="the file has gone")
    judged = judge(gone, collected(good, measured("a"), measured("b")), collected(bug, measured("a"), measured("b")))
    assert verdicts(judged) == [("a.eval.yaml", "failed"), ("b.eval.yaml", "passed"), ("c.eval.yaml", "failed")]
    assert [each.key.shown for each in judged.suites] == ["b.eval.yaml"]
    assert judged.notes[0] == "a.eval.yaml: not judged: the file has gone"
    assert judged.notes[1].startswith("c.eval.yaml: not judged: evaluator 'length': summarize failed: ZeroDivision")


def test_only_suites_all_of_whose_cases_ran_are_complete_and_python_tests_record_nothing() -> None:
    whole = [measured("a"), measured("b")]
    suites = [
        collected(gated(), *whole, variant="gpt"),
        collected(gated(), *whole, test="test_it"),
        collected(gated(path="/root/part.eval.yaml"), measured("a")),
    ]
    assert judge(*suites).complete() == {("s.eval.yaml", "gpt")}


@pytest.mark.parametrize(
    ("records", "lacking"),
    [
        ([measured("a"), measured("b")], set()),
        ([measured("a"), CaseRecord("b", outcome="errored", errors={"": "no"})], {"b"}),
        ([CaseRecord("a", outcome="skipped"), measured("b")], {"a"}),
    ],
)
def test_cases_of_whole_suites_that_lack_a_score_are_listed(records: Sequence[CaseRecord], lacking: set[str]) -> None:
    partial = gated(path="/root/part.eval.yaml")
    judged = judge(collected(gated(), *records), collected(partial, measured("a")))
    assert judged.lacking() == {Path("/root/s.eval.yaml"): lacking}


def test_the_report_holds_every_suite_and_the_faults_by_file() -> None:
    suite = collected(gated("length >= 1"), measured("a"), measured("b"))
    run = CollectedRun(datetime(2026, 1, 2, tzinfo=UTC), "abc", [suite])
    report = judge_run(run, Keeper(SnapshotMode())).report(run, duration_s=1.5, faults={"z": ["no"], "y": ["none"]})
    assert (report.started_at, report.commit, report.duration_s) == ("2026-01-02T00:00:00+00:00", "abc", 1.5)
    assert ([each.suite for each in report.suites], list(report.faults)) == (["s"], ["y", "z"])


def asked(size: int, inputs: int, **more: Any) -> Suite:
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
    report = judge(collected(suite, *(measured(case.id) for case in suite.cases))).suites[0].report
    assert report.shared_inputs == shared
    warned = [line for line in cluster_lines(report) if line.startswith("warning: ")]
    assert len(warned) == bool(shared)
    assert all(f"{shared} of {size} cases have the input of an earlier case" in line for line in warned)


def test_the_report_says_what_clusters_cost() -> None:
    cases = [Case(str(number), expected="x", labels={"talk": str(number // 4)}) for number in range(8)]
    suite = length_suite(*cases, path=Path("/root/s.eval.yaml"), cluster_by="talk")
    records = [measured(case.id, 1 + 3 * (int(case.id) // 4)) for case in cases]
    report = judge(collected(suite, *records)).suites[0].report
    assert list(cluster_lines(report)) == ["8 cases in 2 clusters by talk; design effect 7.00 (length)"]
    (written,) = to_json(RunReport("", 0.0, "", None, [report]))["suites"]
    assert (written["clusters"]["label"], written["clusters"]["count"]) == ("talk", 2)
    assert written["cases"][5]["cluster"] == "1"
