"""The history of suites in pages."""

import json
from datetime import UTC, datetime
from pathlib import Path

from msgspec import structs
from pages import Browser, case, head_of, page_run, report, suite

from pytest_llmeval.baselines import History
from pytest_llmeval.cli import main
from pytest_llmeval.reports import Point, Timeline
from pytest_llmeval.reports.html._data import past_points


def point(day: int, f1: float, *, data: str = "a", approved: bool = False) -> Point:
    return Point(datetime(2026, 11, day, tzinfo=UTC), "c" * 40, {"f1": f1}, basis={"data": data}, approved=approved)


PAST = Timeline("s.eval.yaml", "", [point(1, 0.5), point(2, 0.6, approved=True), point(3, 0.7, data="b")])


def test_past_runs_say_what_was_approved_and_what_changed_before_them() -> None:
    points = past_points(PAST)
    assert [each["values"] for each in points] == [{"f1": 0.5}, {"f1": 0.6}, {"f1": 0.7}]
    assert [each["approved"] for each in points] == [False, True, False]
    assert [each["changed"] for each in points] == [[], [], ["data"]]
    assert past_points(None) == []


def test_the_history_of_a_variant_is_found_by_the_name_of_its_suite() -> None:
    whole, small = Timeline("s.eval.yaml", "", []), Timeline("s.eval.yaml", "[small]", [])
    assert History([whole, small], []).timeline_of("s[small]") is small
    assert History([whole, small], []).timeline_of("s") is whole
    assert History([small], []).timeline_of("s") is None


def test_a_page_of_a_report_has_the_history_beside_it(here: Path) -> None:
    Path("report.json").write_text(json.dumps(report(suite([case("a")]))))
    history = here / ".llmeval" / "history.jsonl"
    history.parent.mkdir()
    line = {"time": "2026-11-20T10:00:00+00:00", "commit": None, "values": {"f1": 0.5}, "cases": 1}
    lines = [{**line, "path": path} for path in ("capitals.eval.yaml", "other.eval.yaml")]
    history.write_text("".join(json.dumps(each) + "\n" for each in lines) + "no JSON\n")
    assert main(["html", "report.json"]) == 0
    head = head_of(Path("report.html").read_text(encoding="utf-8"))
    assert [each["values"] for each in head["entries"][0]["history"]] == [{"f1": 0.5}]


def test_the_history_of_a_metric_is_drawn_with_its_approvals_and_breaks(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    run = page_run("", report(suite([case("a")])))
    suites = [structs.replace(each, past=PAST) for each in run.report.suites]
    page.write_text(structs.replace(run, report=structs.replace(run.report, suites=suites)).page().html)
    browser.open(page, "view=numbers")
    assert browser.find(".sparkline").get_attribute("aria-label") == "3 runs, from 0.5000 to 0.7000"
    assert browser.texts(".sparkline .approved title") == ["2026-11-02 00:00 cccccccccccc: 0.6000 (approved)"]
    assert browser.texts(".sparkline .break title") == ["2026-11-03 00:00: changed: data"]
    assert browser.texts(".past summary") == ["History: 3 runs"]
    assert [row.split() for row in browser.texts(".past tbody tr")][1:] == [
        ["2026-11-02", "00:00cccccccccccc0.6000approved"],
        ["2026-11-01", "00:00cccccccccccc0.5000"],
    ]
    assert browser.complaints() == []
