"""Numbers, comparison, languages and accessibility of the HTML report in a real browser."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from axe_selenium_python import Axe
from builders import parse_gate
from pages import Browser, case, page_run, report, suite
from selenium.webdriver.support.ui import WebDriverWait
from servers import PATIENCE

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.cli import main
from pytest_llmeval.run._judging import JUDGES_OFF

CALL = {"name": "lookup", "arguments": {"topic": "refunds"}, "result": "30 days", "status": "ok"}
TURNS = [{"role": "user", "content": "How long?"}, {"role": "assistant", "content": "30 days", "tool_calls": [CALL]}]


def metric(value: float) -> dict[str, Any]:
    known = {"value": value, "mean": value, "low": value - 0.1, "high": value + 0.1, "scored": 2}
    return {**known, "undefined": 0, "errored": 0, "missing": 0, "signature": ""}


def run(scores: list[float], **more: Any) -> dict[str, Any]:
    cases = [
        case(
            f"c{place}",
            "passed" if score >= 0.5 else "failed",
            score,
            labels={"kind": "even" if place % 2 == 0 else "odd"},
            input="q",
            expected={"total": 3, "name": "x"},
            prediction={"name": "x", "total": 3 if score >= 0.5 else 4},
        )
        for place, score in enumerate(scores)
    ]
    cases[0] |= {"prediction": {"messages": TURNS, "tool_calls": [CALL]}}
    asked = {"evaluator": "judge", "mode": "binary", "question": {"answer": "Is it so?"}, "reply": '{"score": 0}'}
    cases[1]["judgings"] = [{**asked, "score": 0.0, "cost_usd": 0.00125}]
    cases[1]["details"] = {"repeats": {"times": 3, "passed": 1, "status": "flaky", "spread": {}}}
    groups = {
        "kind": {
            "even": {"cases": 2, "metrics": {"f1": metric(0.9)}},
            "odd": {"cases": 2, "metrics": {"f1": metric(0.2)}},
        }
    }
    matrix = {"title": "Kinds", "headers": ["true / predicted", "even", "odd"], "rows": [["even", 1, 1], ["odd", 0, 2]]}
    cells = [[0, 1, ["c0"]], [0, 2, ["c2"]], [1, 2, ["c1", "c3"]]]
    gates = [{"gate": "f1 >= 0.9", "outcome": "failed", "value": 0.6, "limit": 0.9, "reason": "f1 is 0.6"}]
    return report(suite(cases, groups=groups, tables=[{**matrix, "cases": cells}], gates=gates, **more))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "run.json").write_text(json.dumps(run([1.0, 0.0, 0.9, 0.4] + [0.2] * 16)))
    (folder / "base.json").write_text(json.dumps(run([0.5, 0.8, 0.9, 0.3] + [0.9] * 16)))
    arguments = [
        "html",
        str(folder / "run.json"),
        "--baseline",
        str(folder / "base.json"),
        "-o",
        str(folder / "page.html"),
    ]
    assert main(arguments) == 0
    return folder / "page.html"


def test_what_fell_against_the_baseline_is_on_the_first_screen(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.texts(".changes .kind.fell") == ["declined", "declined"]
    assert browser.texts(".changes h3") == ["Against base.json"]


def test_cells_of_matrices_and_groups_lead_to_their_cases(browser: Browser, page: Path) -> None:
    browser.open(page, "view=numbers")
    browser.run("document.querySelector('.matrix.right.heat4 a').click()")
    browser.settle()
    assert browser.ids() == ["c1", "c3"]
    browser.go("view=numbers")
    browser.run("[...document.querySelectorAll('td a')].find((each) => each.textContent === 'even').click()")
    browser.settle()
    assert {*browser.texts(".rows .id")} == {f"c{n}" for n in range(0, 20, 2)}


def test_cases_are_filtered_by_their_change_and_by_their_repeats(browser: Browser, page: Path) -> None:
    browser.open(page, "view=cases")
    for change, found in (("better", ["c3", "c0"]), ("equal", ["c2"])):
        browser.choose("change", change)
        assert browser.ids() == found
    browser.choose("change", "")
    browser.choose("repeats", "flaky")
    assert browser.ids() == ["c1"]


def test_the_comparison_is_of_a_suite_that_has_another_run(browser: Browser, tmp_path: Path) -> None:
    now = report(suite([case("a")], "alone"), suite([case("a", f1=0.5)], "compared"))
    before = report(suite([case("a")], "compared"))
    runs = [page_run("now", now, pairs=[None, 2]), page_run("base", before, is_baseline=True)]
    (tmp_path / "page.html").write_text(runs[0].page(*runs[1:]).html, encoding="utf-8")
    browser.open(tmp_path / "page.html", "view=numbers")
    browser.find(".tabs a[href*=comparison]").click()
    browser.settle()
    assert browser.texts(".suites option:checked") == ["compared"]
    assert "now against base" in browser.texts("main h2")


def test_the_comparison_lists_regressed_cases_and_opens_both_answers(browser: Browser, page: Path) -> None:
    browser.open(page, "view=comparison")
    assert browser.texts("main h2")[2] == "Regressed or worse (17)"
    assert browser.run("return document.querySelectorAll('.scatter .dot.rose').length") == 2
    browser.run("document.querySelector('.moved summary').click()")
    browser.until("document.querySelector('.moved del')")
    assert browser.texts(".moved del") == ['"total": 3']
    assert browser.texts(".moved ins") == ['"total": 4']


def test_a_case_shows_differences_of_json_turns_and_calls_of_tools(browser: Browser, page: Path) -> None:
    browser.open(page, "view=cases&case=0/c1")
    assert browser.texts(".case pre.json del")[0] == '"total": 3'
    said = browser.find(".case").text
    assert all(
        each in said for each in ("1 of 3 passed: flaky", "judge · binary · score 0.0000 · 0.001250 USD", "Is it so?")
    )
    browser.go("view=cases&case=0/c0")
    browser.until("document.querySelector('.case h2').textContent.includes('c0')")
    assert browser.texts(".turns .role")[:2] == ["user", "assistant"]
    assert browser.texts(".case > section .timeline .tool") == ["lookup"]


def test_the_interface_is_chinese_where_the_browser_prefers_it(browser: Browser, page: Path) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setUserAgentOverride", {"userAgent": "x", "acceptLanguage": "zh-CN"})
    try:
        browser.open(page)
        assert browser.texts(".tabs a") == ["概览", "数据", "用例", "比较"]
        assert browser.run("return document.documentElement.lang") == "zh"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setUserAgentOverride", {"userAgent": "x", "acceptLanguage": "en-US"})


def test_usual_sentences_of_the_data_are_said_in_chinese_and_others_as_they_are(
    browser: Browser, tmp_path: Path
) -> None:
    result = score(get_evaluator("text", metrics=["f1"]), [Case("a", expected="x", prediction="x")])
    reasons = [parse_gate(gate).judge(result, "").reason for gate in ("f1 >= 0.5", "f1 <= 0.5", "em >= 1")]
    reasons += [parse_gate("f1 >= 0.5").judge(result, why).reason for why in ("1 of 4 cases ran", JUDGES_OFF)]
    gates = [{"gate": "g", "outcome": "failed", "value": None, "reason": each} for each in reasons]
    made = page_run("run", report(suite([case("a")], gates=gates))).page(cut_from=1)
    (tmp_path / "page.html").write_text(made[0], encoding="utf-8")
    browser.driver.execute_cdp_cmd("Emulation.setUserAgentOverride", {"userAgent": "x", "acceptLanguage": "zh-CN"})
    try:
        browser.open(tmp_path / "page.html")
        assert browser.texts(".gate p") == [
            "未通过: f1 为 1.0000",
            "未通过: f1 为 1.0000，应 <= 0.5",
            f"未通过: {reasons[2]}",
            "未通过: 未判定：4 个用例中只运行了 1 个",
            "未通过: 未判定：评审已关闭",
        ]
        assert browser.texts(".note") == ["页面会过大，因此不含文本"]
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setUserAgentOverride", {"userAgent": "x", "acceptLanguage": "en-US"})


@pytest.mark.parametrize(
    ("view", "scheme"),
    [
        ("", "light"),
        ("view=numbers", "light"),
        ("view=comparison", "light"),
        ("view=cases&case=0/c1", "dark"),
        *(
            pytest.param(view, scheme, marks=pytest.mark.release)
            for view, scheme in (
                ("view=cases", "light"),
                ("view=cases&case=0/c1", "light"),
                ("", "dark"),
                ("view=numbers", "dark"),
            )
        ),
    ],
)
def test_assistive_software_finds_no_serious_obstacle(browser: Browser, page: Path, view: str, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.open(page, view)
    axe = Axe(browser.driver)
    axe.inject()
    found = [
        each
        for each in axe.run(options={"resultTypes": ["violations"]})["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found] == []


def test_no_view_is_wider_than_a_narrow_screen(browser: Browser, page: Path) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for view in ("", "view=numbers", "view=cases", "view=comparison", "view=cases&case=0/c0"):
            browser.open(page, view)
            assert browser.run(
                "const {scrollWidth, clientWidth} = document.documentElement; return scrollWidth <= clientWidth"
            ), view
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


COUNTED = """
window.unpacked = 0;
const Unpacking = window.DecompressionStream;
window.DecompressionStream = class extends Unpacking { constructor(form) { super(form); window.unpacked += 1; } };
"""


def test_a_large_page_unpacks_the_columns_of_its_cases_and_the_pieces_of_cases_in_sight(
    browser: Browser, tmp_path: Path
) -> None:
    cases = [case(f"c{place}", f1=place / 10_000, input="q" * 100) for place in range(10_000)]
    (tmp_path / "large.html").write_text(page_run("", report(suite(cases))).page().html)
    script = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTED})
    try:
        browser.open(tmp_path / "large.html", "view=cases&sort=-f1")
        assert browser.run("return window.unpacked") == 2
        assert 10 < len(browser.ids()) < 60
        browser.run("document.querySelector('.scroller').scrollTop = 5000 * 36")
        browser.until("document.querySelector('[data-row=\"5000\"]')")
        assert "c4999" in browser.ids()
        assert len(browser.ids()) < 60
        browser.go("view=cases&case=0/c17")
        browser.until("document.querySelector('.case')")
        assert browser.run("return window.unpacked") == 4
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_a_case_shows_the_answers_of_all_systems_and_is_filtered_by_system(browser: Browser, tmp_path: Path) -> None:
    systems = [
        suite([case("c", f1=score, prediction=f"of {name}")], f"s[{name}]", path="s.eval.yaml", variant=name)
        for name, score in (("small", 0.25), ("large", 0.75))
    ]
    (tmp_path / "systems.html").write_text(page_run("", report(*systems)).page().html)
    browser.open(tmp_path / "systems.html", "view=cases")
    browser.choose("system", "large")
    assert browser.run("return document.querySelector('[data-case]').getAttribute('href')").endswith("case=1%2Fc")
    browser.go("view=cases&case=0/c")
    browser.until("document.querySelector('.case .aligned')")
    assert browser.texts(".aligned .heads .figure") == ["f1 0.2500", "f1 0.7500"]
    assert browser.texts(".aligned del") == ["small"]
    assert browser.texts(".aligned ins") == ["large"]
    assert browser.texts(".command code") == ["pytest --llmeval 's.eval.yaml::c[small]'"]


@pytest.fixture(scope="module")
def systems_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two systems, of which one has ten new failures."""

    def answers(broken: Mapping[str, int]) -> dict[str, Any]:
        made = []
        for system, bad in broken.items():
            cases = [
                case(
                    f"c{n}",
                    "failed" if n < bad else "passed",
                    float(n >= bad),
                    input=f"Question {n // 2}?",
                    prediction="=No, <b>" if n < bad else "Yes",
                    reason="f1 0.0000, limit >= 0.5" if n < bad else None,
                    labels={"topic": "billing" if n < 12 else "other"},
                )
                for n in range(40)
            ]
            made.append(suite(cases, f"s[{system}]", path="s.eval.yaml", variant=system))
        value = {"low": None, "high": None}
        against = {"baseline": 0.975, "difference": -0.25, "low": -0.4, "high": -0.1, "cases": 40, "notes": []}
        counts = {"p_value": 0.01, "wins": 0, "ties": 30, "losses": 10, "value": 0.725}
        rows = [
            {"system": "large", "cases": 40, "metrics": {"f1": {"value": 0.975, **value}}},
            {
                "system": "small",
                "cases": 40,
                "metrics": {"f1": {"value": 0.725, **value}},
                "differences": {"f1": {**against, **counts}},
            },
        ]
        compared = {"suite": "s", "path": "s.eval.yaml", "reference": "large", "confidence": 0.95}
        systems = [{**compared, "compare_by": ["f1"], "systems": rows}]
        data = report(*made, systems=systems)
        data["run"] |= {"branch": "shorter", "pull_request": "12"}
        return data

    runs = [
        page_run("now", answers({"large": 1, "small": 11}), pairs=[2, 3]),
        page_run("base", answers({"large": 1, "small": 1}), is_baseline=True),
    ]
    path = tmp_path_factory.mktemp("pages") / "systems.html"
    path.write_text(runs[0].page(*runs[1:]).html, encoding="utf-8")
    return path


def open_gates(*outcomes: str) -> list[dict[str, Any]]:
    return [
        {"gate": f"f1 >= 0.{n}", "outcome": outcome, "reason": "few cases"} for n, outcome in enumerate(outcomes, 1)
    ]


PAST = {
    "gate": "drop(f1) <= 0.02",
    "outcome": "passed",
    "value": 0.05,
    "limit": 0.02,
    "reason": "f1 0.9000 -> 0.8500",
    "known": "f1 0.9000 -> 0.8500",
    "moved": "0.9000 -> 0.8500",
}
"""A gate that passed beyond its limit, as chance explains the fall."""


@pytest.mark.parametrize(
    ("more", "look", "words"),
    [
        ({"can_fail": False}, "not_judged", "No answer: no limit, check, gate or approved score can fail"),
        (
            {"gates": open_gates("passed", "undecided", "passed")},
            "undecided",
            "Check before you merge: nothing failed, but 1 of 3 gates could not decide",
        ),
        (
            {"gates": open_gates("undecided", "undecided")},
            "undecided",
            "Check before you merge: nothing failed, but 2 of 2 gates could not decide",
        ),
        ({"gates": open_gates("not_judged")}, "not_judged", "No answer: 1 of 1 gate few cases"),
        ({"gates": open_gates("passed")}, "passed", "Merge: 1 case, 1 gate passed"),
        ({"gates": [PAST]}, "passed", "Merge: 1 case, 1 gate passed"),
    ],
    ids=["no limits", "some undecided", "all undecided", "not evaluated", "passed", "passed by chance"],
)
def test_the_head_says_what_could_not_be_told(
    browser: Browser, tmp_path: Path, more: Mapping[str, Any], look: str, words: str
) -> None:
    path = tmp_path / "page.html"
    path.write_text(page_run("", report(suite([case("a", "passed", 1.0)], **more))).page().html, encoding="utf-8")
    browser.open(path)
    assert browser.find("h1").text.startswith(words)
    assert browser.find(f".banner.{look}")
    links = look == "undecided" or PAST in more.get("gates", ())
    assert browser.texts(".banner a") == (["capitals"] if links else [])


@pytest.mark.parametrize("uncalibrated", [["judge_score"], []])
def test_the_head_says_that_no_person_has_checked_the_judge_that_fails_a_run(
    browser: Browser, tmp_path: Path, uncalibrated: list[str]
) -> None:
    gate = {"gate": "judge_score >= 0.9", "outcome": "failed", "value": 0.5, "reason": "0.5000, expected >= 0.9"}
    path = tmp_path / "page.html"
    data = report(suite([case("a", "passed", 1.0)], gates=[gate], uncalibrated=uncalibrated))
    path.write_text(page_run("", data).page().html, encoding="utf-8")
    browser.open(path)
    assert ("no human labels confirm the judge" in browser.find(".banner").text) == bool(uncalibrated)


def test_the_cause_comes_first_then_what_broke_then_the_systems(browser: Browser, systems_page: Path) -> None:
    browser.open(systems_page)
    assert browser.find(".counted").text == "12 of 80 cases fail; 10 of the failures are new"
    assert all(each in browser.find(".meta").text for each in ("branch shorter", "pull request 12"))
    assert browser.find("h1").text.startswith("Do not merge: small 10 of 40 cases failed")
    assert "s: 2 systems" in browser.texts("section.suite > h2")[1:]
    said = browser.texts("section.systems p")[0]
    assert said.startswith("large is better than small in f1: ")
    assert said.endswith(", 10 of 10 cases that differ.")
    assert browser.texts("section.systems td.significant") == ["▼ -0.2500"]
    assert browser.texts(".worst > .broken .top a")[:2] == ["c1"]
    assert browser.texts(".worst > .broken .top small")[:2] == ["small"]
    assert "the same in 9 more cases: " in browser.texts(".worst > .broken .broke")[0]
    assert browser.texts(".command code") == ["pytest --llmeval s.eval.yaml --lf -v"]
    assert browser.texts("details.still > summary") == ["1 case failed before as well"] * 2


def test_a_narrow_table_of_systems_has_the_ends_of_ids(browser: Browser, systems_page: Path) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.open(systems_page, "view=cases&rows=systems&outcome=failed")
        browser.until("document.querySelector('.matrixed .rows .id')")
        fits = """
            const cell = document.querySelector('.matrixed .rows .id');
            cell.querySelector('bdi').textContent = 'shipping-question-001';
            return cell.scrollWidth <= cell.clientWidth && cell.scrollHeight <= cell.clientHeight;
        """
        assert browser.run(fits)
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_cases_are_seen_by_system_taken_along_and_named_with_their_system(
    browser: Browser, systems_page: Path, tmp_path: Path
) -> None:
    browser.open(systems_page, "view=cases&rows=systems&outcome=failed")
    assert browser.texts("#count") == ["11 of 40 cases"]
    browser.until("document.querySelector('.excerpt')?.textContent")
    assert browser.texts(".row.head [role=columnheader]") == ["case", "large", "small"]
    assert browser.texts("[data-row='1'] .answer") == ["✓ 1.0000 Yes", "✗ 0.0000 =No, <b>"]
    browser.go("view=cases&outcome=failed&change=regressed")
    browser.find("[name=rerun]").click()
    command = browser.texts(".rerun code")[0]
    assert command.startswith("pytest --llmeval 's.eval.yaml::c1[small]' 's.eval.yaml::c2[small]'")
    saved = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.driver.execute_cdp_cmd("Page.setDownloadBehavior", saved)
    browser.find("[name=csv]").click()
    # While it downloads, the browser keeps its name with an empty file.
    table = tmp_path / "cases.csv"
    WebDriverWait(browser.driver, PATIENCE, 0.02).until(lambda _: table.exists() and table.stat().st_size)
    rows = table.read_text(encoding="utf-8").splitlines()
    assert rows[0] == "case,suite,system,outcome,f1,label.topic,reason,input,expected,prediction"
    assert rows[1] == 'c1,s,small,failed,0,billing,"f1 0.0000, limit >= 0.5",Question 0?,,"\'=No, <b>"'
    assert len(rows) == 11

    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        browser.until("document.querySelector(\"[data-row='0'] .of\")?.checkVisibility()")  # the rows are drawn anew
        assert browser.texts("[data-row='0'] .id") == ["c1 small +9 equal"]
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.press("?")
    assert "next, previous case" in browser.find("dialog").text
    browser.press("ESCAPE")
    browser.until("!document.querySelector('dialog')")
    browser.go("view=numbers")
    label = "40 cases by f1 from 0 to 1: 11, 0, 0, 0, 0, 0, 0, 0, 0, 29"
    assert browser.run("return document.querySelectorAll('.histogram')[1].getAttribute('aria-label')") == label
    browser.run("document.querySelectorAll('.histogram')[1].querySelector('rect').dispatchEvent(new Event('click'))")
    browser.settle()
    assert browser.texts("#count") == ["11 of 80 cases"]
    browser.go("view=cases&case=1/c1")
    browser.until("document.querySelector('.case .copy')")
    assert len(browser.texts(".case .copy")) == 3
    granted = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.driver.execute_cdp_cmd("Browser.grantPermissions", granted)
    browser.find("section > .copy").click()
    browser.until("document.querySelector('section > .copy + [role=status]').textContent === 'copied'")
    read = "navigator.clipboard.readText().then(arguments[0])"
    assert browser.driver.execute_async_script(read) == "Question 0?"
    assert browser.complaints() == []


def test_strengths_of_systems_stand_below_their_table(browser: Browser, tmp_path: Path) -> None:
    names = ("small", "large", "odd")
    systems = [suite([case("c")], f"s[{name}]", path="s.eval.yaml", variant=name) for name in names]
    rows = [
        {"system": name, "cases": 1, "metrics": {"f1": {"value": 1.0, "low": None, "high": None}}} for name in names
    ]
    strengths = {
        "label": "pairwise",
        "systems": [{"system": f"<b>{name}", "value": 0.5, "low": -1.0, "high": 2.0} for name in names],
        "ties": 0.5,
        "pairs": 3,
        "cases": 1,
    }
    compared = {"suite": "s", "path": "s.eval.yaml", "reference": "small", "confidence": 0.95, "compare_by": ["f1"]}
    data = report(*systems, systems=[{**compared, "systems": rows, "strengths": [strengths]}])
    (tmp_path / "strengths.html").write_text(page_run("", data).page().html)
    browser.open(tmp_path / "strengths.html", "view=numbers")
    assert "Strengths by pairwise (Bradley-Terry with ties)" in browser.texts("section h2")
    assert [each for each in browser.texts("tbody tr") if each.startswith("<b>")] == [
        f"<b>{name}0.5000-1.0000..2.0000" for name in names
    ]


def test_mutants_have_a_tab_of_their_own_where_there_are_some(browser: Browser, tmp_path: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    kind = {"name": "number", "why": hostile, "advice": "", "mutants": 4, "survived": 1, "undecided": 0, "rate": 0.25}
    mutants = {
        "suite": hostile,
        "left_out": [hostile],
        "kinds": [{**kind, "low": 0.05, "high": 0.7}],
        "rewrites": [{**kind, "name": "case", "survived": 0, "low": 0.0, "high": 0.5}],
        "gates": [
            {"gate": "f1 >= 0.9", "share": 0.25, "sure_share": 0.5, "never": False, "unjudged": ""},
            {"gate": "bias >= 0", "share": None, "sure_share": None, "never": True, "unjudged": ""},
        ],
    }
    path = tmp_path / "m.html"
    path.write_text(page_run("", {**run([1.0, 0.2]), "mutation": [mutants]}).page().html, encoding="utf-8")
    browser.open(path, "view=mutants")
    assert browser.texts("nav.tabs a[aria-current]") == ["Mutants"]
    assert browser.texts("#main h2") == [hostile]
    assert browser.texts("#main ul.findings li") == [
        f"number: 1 of 4 pass although {hostile}",
        "gate bias >= 0: passes even if all answers are broken: raise it, or judge another metric",
    ]
    cells = browser.texts("#main td")
    assert cells[:6] == ["number", hostile, "4", "25%", "5%..70%", "0"]
    assert cells[-3:] == ["bias >= 0", "never fails", "–"]
    assert browser.complaints() == []
    path.write_text(page_run("", run([1.0, 0.2])).page().html, encoding="utf-8")
    browser.open(path, "view=mutants")
    assert "Mutants" not in browser.texts("nav.tabs a")
    assert browser.texts("section.suite h2, details.suite summary")
