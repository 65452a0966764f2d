"""``llmeval html``: JSON reports as a page."""

import json
from pathlib import Path
from typing import Any

import pytest
from pages import case, head_of, report, suite

from pytest_llmeval.cli import main


def write(name: str, scores: list[float], **more: Any) -> str:
    cases = [case(f"c{place}", f1=score) for place, score in enumerate(scores)]
    Path(name).write_text(json.dumps(report(suite(cases, **more))), encoding="utf-8")
    return name


def shown(page: str) -> dict[str, Any]:
    return head_of(Path(page).read_text(encoding="utf-8"))


@pytest.mark.usefixtures("here")
def test_the_page_stands_beside_the_report_unless_told_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    report_ = write("run.json", [1.0])
    assert main(["html", report_]) == 0
    assert capsys.readouterr().out == "wrote run.html\n"
    assert main(["--json", "html", report_, "-o", "other.html"]) == 0
    assert json.loads(capsys.readouterr().out)["result"] == {"written": ["other.html"], "note": ""}
    assert Path("run.html").read_bytes() == Path("other.html").read_bytes()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("now", "then", "kind"),
    [
        ([0.1] * 20, [0.9] * 20, "fell"),
        ([0.9] * 20, [0.1] * 20, "rose"),
        ([0.9, 0.1, 0.5], [0.1, 0.9, 0.4], "unclear"),
        ([0.5] * 20, [0.5] * 20, "same"),
    ],
)
def test_a_change_is_named_by_what_its_interval_shows(now: list[float], then: list[float], kind: str) -> None:
    main(["html", write("run.json", now), "--baseline", write("base.json", then)])
    changes = shown("run.html")["entries"][0]["changes"]
    assert changes["against"] == "base.json"
    assert {each["metric"]: each["kind"] for each in changes["metrics"]} == {"f1": kind, "pass_rate": "same"}


@pytest.mark.usefixtures("here")
def test_less_of_a_metric_of_which_less_is_better_is_a_rise() -> None:
    run = write("run.json", [0.1] * 20, lower_is_better=["f1"])
    main(["html", run, "--baseline", write("base.json", [0.9] * 20, lower_is_better=["f1"])])
    assert shown("run.html")["entries"][0]["changes"]["metrics"][0]["kind"] == "rose"


@pytest.mark.usefixtures("here")
def test_a_second_report_is_compared_with_and_shown_as_well() -> None:
    main(["html", write("new.json", [1.0, 0.5]), write("old.json", [0.5])])
    head = shown("new.html")
    assert [(each["label"], each["baseline"]) for each in head["runs"]] == [("new.json", False), ("old.json", False)]
    assert [each["pair"] for each in head["entries"]] == [1, None]
    assert head["entries"][0]["changes"]["notes"] == ["1 case only in this run"]


@pytest.mark.usefixtures("here")
def test_what_is_no_report_is_refused_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.json").write_text('{"schema_version": 1, "suites": [{"suite": 3}]}')
    assert main(["html", "broken.json"]) == 2
    assert main(["html", "absent.json"]) == 2
    said = capsys.readouterr().err
    assert "broken.json:1:" in said
    assert "absent.json" in said
    assert not Path("broken.html").exists()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("more", [{"gates": 3}, {"gates": ["f1"]}, {"snapshot": {}}, {"tables": "x"}, {"groups": []}])
def test_a_damaged_report_is_refused_or_drawn_but_never_crashes(more: dict[str, Any]) -> None:
    assert main(["html", write("run.json", [1.0], **more)]) in (0, 2)
