"""Which cases the overview shows, and how gates look."""

from typing import Any

import pytest
from pages import case, page_run, report, suite, suite_report

from pytest_llmeval.reports.html._data import MOST_SHOWN, entry_of, worst_changes

GATES = [{"gate": "f1 >= 0.5", "outcome": "passed"}]


def scored(
    name: str, outcome: str = "passed", f1: float | None = 1.0, speed: float = 1.0, **more: Any
) -> dict[str, Any]:
    return case(name, outcome, **more) | {"metrics": {"f1": f1, "speed": speed}}


def shown(now: list[dict[str, Any]], before: list[dict[str, Any]] | None = None, **more: Any) -> list[tuple[str, ...]]:
    """Return ids, kinds and metrics of the cases that are shown."""
    found = worst_changes(
        suite_report(suite(now, gates=GATES, **more)), suite_report(suite(before)) if before else None, 9
    )
    return [(now[each["place"]]["id"], each["kind"], each.get("metric", "")) for each in found["cases"]]


def test_the_case_that_the_head_names_comes_first() -> None:
    cases = [scored("worst", "failed", 0.0), scored("named", "failed", 0.3), scored("other", "failed", 0.1)]
    found = worst_changes(suite_report(suite(cases, gates=GATES)), None, 3, "named")
    assert [each["place"] for each in found["cases"]] == [1, 0, 2]
    assert [each["place"] for each in worst_changes(suite_report(suite(cases, gates=GATES)), None, 3)["cases"]] == [
        0,
        2,
        1,
    ]


def test_new_failures_come_before_falls_other_metrics_and_rises_and_old_failures_are_apart() -> None:
    before = [scored(name) for name in ("other", "fell", "broke", "worse", "same")]
    before += [scored("old", "failed", 0.2), scored("rose", f1=0.5), scored("still", "failed", 0.6)]
    now = [
        scored("other", speed=0.1),
        scored("fell", f1=0.8),
        scored("broke", "failed", 0.7),
        scored("worse", "failed", 0.1),
        scored("same"),
        scored("old", "failed", 0.2),
        scored("rose"),
        scored("still", "failed", 0.1),
    ]
    assert shown(now, before) == [
        ("worse", "new_failure", "f1"),
        ("broke", "new_failure", "f1"),
        ("fell", "fell", "f1"),
        ("other", "fell", "speed"),
        ("rose", "rose", "f1"),
        ("still", "still_failing", "f1"),
        ("old", "still_failing", "f1"),
    ]
    found = worst_changes(suite_report(suite(now, gates=GATES)), suite_report(suite(before)), 2)
    counts = {name: found[name] for name in ("failing", "still", "fell", "rose", "compared")}
    assert counts == {"failing": 2, "still": 2, "fell": 2, "rose": 1, "compared": True}
    assert found["cases"][0] == {
        "place": 3,
        "kind": "new_failure",
        "metric": "f1",
        "now": 0.1,
        "before": 1.0,
        "gated": True,
    }


def test_a_case_that_fell_in_a_metric_of_no_gate_is_behind_and_says_so() -> None:
    before = [scored("slow"), scored("wrong")]
    now = [scored("slow", speed=0.0), scored("wrong", f1=0.9)]
    assert shown(now, before) == [("wrong", "fell", "f1"), ("slow", "fell", "speed")]
    assert (
        worst_changes(suite_report(suite(now, gates=GATES)), suite_report(suite(before)), 2)["cases"][1]["gated"]
        is False
    )


def test_a_metric_whose_approved_score_was_not_kept_counts_as_a_gated_one() -> None:
    before, now = [scored("slow"), scored("wrong")], [scored("slow", speed=0.0), scored("wrong", f1=0.9)]
    kept = [{"metric": "speed", "outcome": "failed"}]
    assert shown(now, before, snapshot=kept)[0] == ("slow", "fell", "speed")


def test_without_another_run_failing_cases_are_shown_the_farthest_from_the_best_first() -> None:
    now = [
        scored("fine"),
        scored("near", "failed", 0.6),
        scored("far", "errored", 0.1),
        scored("none", "errored", None),
    ]
    assert shown(now, ranges={"f1": [0.0, 1.0]}) == [
        ("far", "failing", "f1"),
        ("near", "failing", "f1"),
        ("none", "failing", ""),
    ]


def test_a_missed_limit_shows_why_a_case_fails_where_no_gated_score_fell() -> None:
    now = [scored("a", "failed", unmet=["speed"])]
    assert shown(now, [scored("a")]) == [("a", "new_failure", "speed")]


def test_where_less_is_better_a_rise_is_a_fall() -> None:
    before, now = [scored("a", speed=1.0)], [scored("a", speed=3.0)]
    assert shown(now, before, lower_is_better=["speed"]) == [("a", "fell", "speed")]
    assert shown(now, before) == [("a", "rose", "speed")]


@pytest.mark.parametrize("outcome", ["known_failure", "xfailed", "skipped", "not_run"])
def test_excused_cases_and_those_that_did_not_run_are_left_out(outcome: str) -> None:
    assert shown([scored("a", outcome, 0.0)], [scored("a")]) == []


@pytest.mark.parametrize(
    ("failing", "outcome", "alike"),
    [(10, "failed", [None, None, None]), (11, "failed", [[1], None]), (3, "errored", [[1], None])],
)
def test_cases_with_one_reason_are_one_if_they_errored_or_many_fail(
    failing: int, outcome: str, alike: list[list[int] | None]
) -> None:
    reasons = ("f1 0, limit >= 0.5", "f1 0, limit >= 0.5", "f1 0.1, limit >= 0.5")
    now = [scored(f"c{number}", outcome, 0.0, reason=reason) for number, reason in enumerate(reasons)]
    found = worst_changes(suite_report(suite(now, gates=GATES)), None, failing)
    assert [each.get("alike") for each in found["cases"]] == alike
    assert [each.get("times") for each in found["cases"]] == [ids and len(ids) for ids in alike]
    assert found["failing"] == 3


def test_equal_cases_stay_in_order_and_five_are_shown() -> None:
    now = [scored(f"c{number}", "failed", 0.0) for number in range(9)]
    assert [name for name, *_ in shown(now)] == ["c0", "c1", "c2", "c3", "c4"]
    assert MOST_SHOWN == 5


@pytest.mark.parametrize(
    ("gate", "look"),
    [
        ({"gate": "f1 >= 0.5", "outcome": "passed", "value": 0.6, "limit": 0.5}, "passed"),
        ({"gate": "drop(f1) <= 0.02", "outcome": "passed", "value": 0.01, "limit": 0.02}, "passed"),
        ({"gate": "drop(f1) <= 0.02", "outcome": "passed", "value": 0.02, "limit": 0.02}, "passed"),
        ({"gate": "drop(f1) <= 0.02", "outcome": "passed", "value": 0.4, "limit": 0.02}, "within_chance"),
        ({"gate": "gain(f1) >= 0.02", "outcome": "passed", "value": 0.01, "limit": 0.02}, "within_chance"),
        ({"gate": "drop(f1) <= 0.02", "outcome": "undecided", "value": 0.4, "limit": 0.02}, "undecided"),
        ({"gate": "drop(f1) <= 0.02", "outcome": "failed", "value": 0.4, "limit": 0.02}, "failed"),
        ({"gate": "drop(f1) <= 0.02", "outcome": "passed", "value": None, "limit": 0.02}, "passed"),
    ],
)
def test_a_gate_beyond_its_limit_never_looks_as_one_that_is_kept(gate: dict[str, Any], look: str) -> None:
    (found,) = entry_of(suite_report(suite([case("a")], gates=[gate])), 0)["gates"]
    assert (found["look"], found["metric"]) == (look, "f1")


def test_only_the_subject_of_a_page_has_cases_in_the_overview() -> None:
    run, base = report(suite([scored("a", "failed", 0.1)])), report(suite([scored("a")]))
    html = page_run("now", run, pairs=[1]).page(page_run("base", base, is_baseline=True)).html
    assert 'id="s0w"' in html
    assert 'id="s1w"' not in html
