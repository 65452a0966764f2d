"""The pages of a folder of reports: the list of runs with its trends, and a page for each run."""

import json
import os
from pathlib import Path

import pytest
from pages import Browser, case, report, suite

from pytest_llmeval.cli import main
from pytest_llmeval.core import SuiteError
from pytest_llmeval.workbench._site import list_report

HOSTILE = "<script>window.harmed = true</script>"


def written(path: Path, number: int, value: float) -> Path:
    """Write a report of the run with this number, which has one gated metric, and return its path."""
    metric = {"value": value, "mean": value, "low": value - 0.1, "high": value + 0.1, "scored": 2}
    gate = {"gate": "f1 >= 0.5", "outcome": "passed" if value >= 0.5 else "failed", "value": value, "limit": 0.5}
    data = report(suite([case("a", f1=value)], gates=[{**gate, "reason": "r"}]))
    data["suites"][0]["metrics"] = {"f1": {**metric, "undefined": 0, "errored": 0, "missing": 0}}
    data["run"] |= {"started_at": f"2026-11-{number:02}T09:30:00+00:00", "commit": f"{number:040x}", "branch": HOSTILE}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for number, value in ((3, 0.4), (1, 0.9), (2, 0.7)):
        written(tmp_path / "runs" / f"night {number}" / "report.json", number, value)
    return tmp_path / "runs"


def test_the_list_has_each_run_newest_first_with_verdict_metric_and_link(
    runs: Path, tmp_path: Path, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["html", str(runs), "-o", str(tmp_path / "site")]) == 0
    assert "3 runs, 3 new pages" in capsys.readouterr().out
    browser.driver.get((tmp_path / "site" / "index.html").as_uri())
    rows = browser.texts("tbody tr")
    times = ["2026-11-03 09:30", "2026-11-02 09:30", "2026-11-01 09:30"]
    assert browser.texts("tbody td:nth-child(1)") == times
    assert browser.texts("tbody td:nth-child(2)") == ["failed", "passed", "passed"]
    assert "capitals: f1 0.4000 (0.3000..0.5000)" in rows[0]
    assert HOSTILE in rows[0]
    assert browser.run("return window.harmed") is None
    assert len(str(browser.find("polyline").get_attribute("points")).split()) == 3
    assert len(str(browser.find("polygon").get_attribute("points")).split()) == 6
    browser.find("tbody a").click()
    assert "runs/night%203/report.html" in browser.driver.current_url
    assert browser.complaints() == []


def test_a_list_loads_no_cases(tmp_path: Path) -> None:
    path = written(tmp_path / "run.json", 1, 0.9)
    data = json.loads(path.read_text(encoding="utf-8"))
    data["suites"][0]["cases"] = ["no case"]
    path.write_text(json.dumps(data), encoding="utf-8")
    listed = list_report(path, tmp_path).report
    assert listed.suites[0].metrics["f1"].value == 0.9
    assert listed.suites[0].cases == []
    assert listed.verdict == "passed"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "no JSON report of a run"),
        ("[]", "no JSON report of a run"),
        ('{"run": {}, "suites": [], "schema_version": 99}', "found the schema version 99, expected 1"),
        ('{"other": 1}', "no JSON report of a run"),
    ],
)
def test_a_file_that_is_no_report_is_named_and_the_others_are_listed(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, why: str
) -> None:
    (runs / "odd.json").write_text(text, encoding="utf-8")
    with pytest.raises(SuiteError, match=why):
        list_report(runs / "odd.json", runs)
    assert main(["html", str(runs), "-o", str(tmp_path / "site")]) == 2
    out = capsys.readouterr()
    assert "3 runs" in out.out
    assert str(runs / "odd.json") in out.err
    assert why in out.err
    assert "odd.json" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")


def test_pages_are_written_once_and_again_for_a_newer_report(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site"
    main(["html", str(runs), "-o", str(site)])
    before = (site / "index.html").read_bytes()
    capsys.readouterr()
    main(["html", str(runs), "-o", str(site)])
    assert "0 new pages" in capsys.readouterr().out
    assert (site / "index.html").read_bytes() == before
    later = (site / "runs" / "night 2" / "report.html").stat().st_mtime_ns + 10**9
    os.utime(runs / "night 2" / "report.json", ns=(later, later))
    main(["html", str(runs), "-o", str(site)])
    assert "1 new page\n" in capsys.readouterr().out


def test_only_the_newest_runs_may_have_pages(runs: Path, tmp_path: Path) -> None:
    main(["html", str(runs), "-o", str(tmp_path / "site"), "--pages", "1"])
    pages = [path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")]
    assert sorted(pages) == ["index.html", "runs/night 3/report.html"]
    assert (tmp_path / "site" / "index.html").read_text(encoding="utf-8").count("<a href=") == 1


def test_a_folder_without_reports_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").mkdir()
    assert main(["html", str(tmp_path / "runs"), "-o", str(tmp_path / "site")]) == 2
    assert "there is no JSON report in" in capsys.readouterr().err


def test_a_folder_stands_alone(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["html", str(runs), str(runs), "-o", str(tmp_path / "site")]) == 2
    assert "a folder of reports stands alone" in capsys.readouterr().err
    assert main(["html", str(runs), "-o", str(tmp_path / "site"), "--baseline", "x.json"]) == 2


def test_runs_of_one_time_are_in_the_order_of_their_files(tmp_path: Path) -> None:
    for name in ("b", "a", "index"):
        written(tmp_path / "runs" / f"{name}.json", 1, 0.9)
    main(["html", str(tmp_path / "runs"), "-o", str(tmp_path / "site")])
    page = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert page.index("runs/index.html") < page.index("runs/b.html") < page.index("runs/a.html")
