"""The first view: verdict, gates, what broke; and narrow screens."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from axe_selenium_python import Axe
from msgspec import structs
from pages import Browser, case, page_run, report, suite

from pytest_llmeval.core import MetricChange
from pytest_llmeval.reports import Changes, PageRun

GATES = [
    {"gate": "f1 >= 0.2", "outcome": "passed", "value": 0.6, "limit": 0.2, "reason": "f1 is 0.6000"},
    {"gate": "drop(f1) <= 0.02", "outcome": "passed", "value": 0.4, "limit": 0.02, "low": -0.1, "high": 0.9},
    {"gate": "drop(em) <= 0.02", "outcome": "undecided", "value": 0.4, "limit": 0.02, "low": -0.1, "high": 0.9},
    {"gate": "f1 >= 0.9", "outcome": "failed", "value": 0.6, "limit": 0.9, "reason": "f1 is 0.6000, expected >= 0.9"},
]
KEPT = {"metric": "f1", "kind": "fell_beyond", "outcome": "failed", "value": 0.6, "approved": 1.0}
CHANGE = MetricChange("not_significant", 1.0, 0.6, -0.4, -0.9, 0.1, 0.2, 3)
CHANGES = Changes("approved scores", {"f1": CHANGE, "em": CHANGE})
QUESTION = {"question": "How long does a refund take?"}


def before_and_now() -> list[PageRun]:
    old = "Refunds take up to 30 days after the return has reached us."
    new = {"text": old.replace("30", "14"), "sources": ["manual"]}
    cases = [
        case("broke", "failed", 0.2, reason="f1 0.2000, limit >= 0.5", input=QUESTION, prediction=new),
        case("fell", f1=0.6, input="Where?", prediction="Here"),
        case("fine", f1=1.0, input="Who?", prediction="You"),
    ]
    base = [case("broke", prediction={"text": old}), case("fell", prediction="Here"), case("fine")]
    reason = "fell from 1.0000 to 0.6000, worse by 0.4000; tolerance 0"
    made = suite(cases, gates=GATES, snapshot=[{**KEPT, "reason": reason}])
    current = page_run("", report(made), pairs=[1])
    suites = [structs.replace(each, changes=CHANGES) for each in current.report.suites]
    return [
        structs.replace(current, report=structs.replace(current.report, suites=suites)),
        page_run("approved run", report(suite(base)), is_baseline=True),
    ]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "overview.html"
    now, before = before_and_now()
    path.write_text(now.page(before).html, encoding="utf-8")
    return path


@pytest.fixture
def narrow(browser: Browser) -> Iterator[Browser]:
    with sized(browser, 390):
        yield browser


@pytest.fixture
def wide(browser: Browser) -> Iterator[Browser]:
    with sized(browser, 1280):
        yield browser


@contextmanager
def sized(browser: Browser, width: int) -> Iterator[None]:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    yield
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def styles(browser: Browser, selector: str, *names: str) -> list[list[str]]:
    found: list[list[str]] = browser.run(
        "return [...document.querySelectorAll(arguments[0])]"
        ".map((each) => arguments[1].map((name) => getComputedStyle(each)[name]))",
        selector,
        names,
    )
    return found


def test_what_broke_stands_beside_the_gates_with_question_both_answers_and_reason(wide: Browser, page: Path) -> None:
    browser = wide
    browser.open(page)
    assert browser.find("h1").text == "Do not merge: f1 is 0.6, expected >= 0.9 for the suite; start with broke"
    assert browser.find(".counted").text == "1 of 3 cases fails; the failure is new"
    assert browser.driver.title == "Do not merge: capitals"
    assert browser.texts(".worst h3") == ["What broke before now"]
    assert browser.texts(".broke .top a") == ["broke", "fell"]
    first = browser.find(".broke").text
    assert all(each in first for each in ("new failure", "f1 1.0000 → 0.2000", QUESTION["question"], "f1 0.2"))
    assert (browser.texts(".broke del"), browser.texts(".broke ins")) == (["30"], ["14"])
    assert browser.texts(".broke[data-kind=fell] .answer") == ["Here (the same answer)"]
    tops = browser.run(
        "return ['.gates', '.broken'].map((each) => document.querySelector(each).getBoundingClientRect().top)"
    )
    assert abs(tops[0] - tops[1]) < 2
    browser.run("document.querySelector('.broke a').click()")
    browser.until("document.querySelector('.case')")
    assert browser.view == "#view=cases&case=0/broke"
    assert browser.complaints() == []


def test_passed_within_chance_undecided_and_failed_gates_differ_without_colour(browser: Browser, page: Path) -> None:
    browser.open(page)
    looks = [each.partition(":")[0] for each in browser.texts(".gate p")]
    assert looks == ["failed", "failed", "undecided", "not significant", "passed"]
    assert browser.texts(".gate > .sign") == ["✗", "✗", "?", "≈", "✓"]
    shown = styles(browser, ".gate", "borderLeftStyle", "borderLeftColor")
    assert [style for style, _ in shown] == ["double", "double", "dotted", "dashed", "solid"]
    passed = shown[-1][1]
    assert passed not in [colour for _, colour in shown[:-1]]
    drawn = styles(browser, ".numberline", "color")
    assert drawn[1] == drawn[2] != drawn[3]


def test_a_gate_that_failed_by_a_fall_begins_with_the_cases_and_the_label_that_explain_it(
    browser: Browser, tmp_path: Path
) -> None:
    cause = "f1 fell 0.9000 -> 0.7000 (limit 0.05). 9 cases worse, 7 of 7 with topic=api: a, b and 7 more. p 0.0042."
    gate = {"gate": "drop(f1) <= 0.05", "outcome": "failed", "value": 0.2, "limit": 0.05, "cause": cause}
    run = page_run("", report(suite([case("a")], gates=[{**gate, "reason": "significant, p 0.0042", "fallen": ["a"]}])))
    (tmp_path / "page.html").write_text(run.page().html, encoding="utf-8")
    browser.open(tmp_path / "page.html")
    shown, statistics = browser.texts(".gate.failed p")
    assert shown.startswith(
        "failed: f1 fell 0.9000 -> 0.7000 (limit 0.05). 9 cases worse, 7 of 7 with topic=api: a, b and"
    )
    assert statistics == "significant, p 0.0042"


def test_an_approved_score_that_was_not_kept_is_red_with_its_reason_wherever_it_is_listed(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    assert "approved f1" in browser.texts(".gate.failed code")
    assert browser.texts(".changes .kind") == ["not kept", "not significant"]
    assert browser.texts(".changes td small") == ["fell from 1.0000 to 0.6000, worse by 0.4000; tolerance 0"]
    (red,) = styles(browser, ".changes .kind.failed", "color")
    assert red == styles(browser, ".gate.failed .look", "color")[0]


@pytest.mark.parametrize(
    ("now", "before", "title", "kinds"),
    [
        ([1.0, 0.9], [1.0, 0.5], "No case failed. What moved most:", ["rose"]),
        ([1.0, 0.4], [0.5, 0.9], "No case failed. What moved most:", ["fell", "rose"]),
        ([1.0, 1.0], [1.0, 1.0], "No case failed, and no score moved.", []),
        ([1.0, 1.0], None, "No case failed.", []),
    ],
)
def test_without_a_failure_the_overview_says_so_and_shows_what_moved(
    browser: Browser, tmp_path: Path, now: list[float], before: list[float] | None, title: str, kinds: list[str]
) -> None:
    def made(scores: list[float]) -> dict[str, Any]:
        return report(suite([case(f"c{place}", f1=score) for place, score in enumerate(scores)]))

    runs = [page_run("", made(now), pairs=[None if before is None else 1])]
    runs += [page_run("base", made(before), is_baseline=True)] if before else []
    (tmp_path / "page.html").write_text(runs[0].page(*runs[1:]).html, encoding="utf-8")
    browser.open(tmp_path / "page.html")
    assert browser.texts(".worst h3") == [title]
    assert browser.run("return [...document.querySelectorAll('.broke')].map((each) => each.dataset.kind)") == kinds


def test_on_a_narrow_screen_before_and_now_stand_below_the_name_of_the_metric(narrow: Browser, page: Path) -> None:
    narrow.open(page)
    boxes = narrow.run(
        "return ['name', 'before', 'now']"
        ".map((name) => document.querySelector(`.changes td.${name}`).getBoundingClientRect().toJSON())"
    )
    name, before, now = boxes
    assert before["top"] >= name["bottom"] - 1
    assert abs(before["top"] - now["top"]) < 3
    assert all(each["left"] >= 0 and each["right"] <= 390 for each in boxes)
    assert not narrow.run("return document.querySelector('[data-more-after]')")
    signs = narrow.run(
        "return [...document.querySelectorAll('.named')]"
        ".map((each) => [...each.children].map((one) => one.getBoundingClientRect().top))"
    )
    assert all(abs(sign - text) < 8 for sign, text in signs)


def test_a_table_that_goes_on_beyond_its_edge_shows_it_until_its_end(narrow: Browser, tmp_path: Path) -> None:
    headers = ["true / predicted", *(f"a rather long class {number}" for number in range(6))]
    table = {"title": "Kinds", "headers": headers, "rows": [["a rather long class 0", 1, 2, 3, 4, 5, 6]]}
    (tmp_path / "page.html").write_text(page_run("", report(suite([case("a")], tables=[table]))).page().html)
    narrow.open(tmp_path / "page.html", "view=numbers")
    marked = (
        "['data-more-before', 'data-more-after']"
        ".map((name) => document.querySelector('[aria-label=Kinds]').hasAttribute(name))"
    )
    narrow.until(f"String({marked}) === 'false,true'")
    assert styles(narrow, "[data-more-after]", "maskImage")[0] != ["none"]
    narrow.run("document.querySelector('[aria-label=Kinds]').scrollLeft = 40")
    narrow.until(f"String({marked}) === 'true,true'")
    narrow.run("document.querySelector('[aria-label=Kinds]').scrollLeft = 10000")
    narrow.until(f"String({marked}) === 'true,false'")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.release)])
def test_assistive_software_finds_no_obstacle_in_what_broke(browser: Browser, page: Path, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.open(page)
    axe = Axe(browser.driver)
    axe.inject()
    found = axe.run(options={"resultTypes": ["violations"]})["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in serious] == []


def test_an_error_has_its_question_and_passed_suites_say_what_did_not_pass(browser: Browser, tmp_path: Path) -> None:
    texts = {"input": "Who?", "expected": "You", "reason": "TimeoutError: 30 s"}
    errored = [case("a", "errored", None, **texts), case("c", "errored", None, **texts), case("b"), case("d")]
    gate = {"gate": "f1 >= 0.5", "outcome": "failed", "value": 1.0, "limit": 0.5, "reason": "2 cases errored"}
    first = suite(errored, "first", gates=[gate])
    first["metrics"]["f1"]["errored"] = 2
    calm = [suite([case("a"), case("b", "skipped", None)], name) for name in ("calm", "quiet")]
    (tmp_path / "page.html").write_text(page_run("", report(first, *calm)).page().html, encoding="utf-8")
    browser.open(tmp_path / "page.html")
    assert browser.find("h1").text == "Do not merge: first 2 of 4 cases errored: TimeoutError: 30 s; start with a"
    assert browser.driver.title == "Do not merge: first, calm, quiet"
    assert browser.texts(".gate .figure") == ["2 of 4 scored"]
    assert browser.texts(".broke .question") == ["Who?"]
    assert browser.texts(".broke .answer") == ["expected: You"]
    assert "the same in 1 more case: c" in browser.texts(".broke")[0]
    assert "1/2 (1 skipped)" in browser.texts("tbody tr")[0]


def test_answers_that_share_little_are_apart_and_gates_that_passed_are_folded(browser: Browser, tmp_path: Path) -> None:
    texts = {"input": "Who?", "expected": "It takes ten days.", "reason": "f1 0.0000, limit >= 0.5"}
    cases = [case("a", "failed", 0.0, **texts, prediction="No idea, sorry!"), case("b")]
    gates = [{"gate": f"f1 >= 0.{number}", "outcome": "passed"} for number in range(1, 5)]
    failed = {"gate": "f1 >= 0.9", "outcome": "failed", "reason": "f1 is 0.5000, expected >= 0.9"}
    whole = report(suite(cases, gates=[*gates, failed]))
    (tmp_path / "page.html").write_text(page_run("", whole).page().html, encoding="utf-8")
    browser.open(tmp_path / "page.html")
    assert browser.texts(".broke .answer") == ["It takes ten days.", "No idea, sorry!"]
    assert len(browser.texts(".front .gates:not(details .gates) > li")) == 1
    assert browser.texts(".front details:has(.gates) summary") == ["4 gates passed"]
