"""What the HTML report contains: numbers of the JSON report, texts in compressed pieces, nothing secret."""

import gzip
import json
import random
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from itertools import accumulate
from typing import Any

import pytest
from pages import case, head_of, page_run, report, suite, suite_report

from pytest_llmeval.core import GateResult, MetricValue
from pytest_llmeval.reports.html._data import entry_of, index_of, number_line
from pytest_llmeval.reports.html._page import Page

METRICS = {
    "f1": MetricValue(0.7, None, 0.6, 0.8, 9, 0, 0, 0),
    "pass_rate": MetricValue(1.0, None, 0.9, 1.0, 9, 0, 0, 0),
}


def page_of(*suites: dict[str, Any], **limits: int) -> Page:
    return page_run("", report(*suites)).page(**limits)


def pieces_of(page: Page) -> dict[str, Any]:
    found = re.findall(r'<script type="text/plain" id="(\w+)">(.*?)</script>', page.html)
    return {name: json.loads(gzip.decompress(b64decode(text))) for name, text in found}


@pytest.mark.parametrize(
    ("gate", "line"),
    [
        ({"gate": "f1 >= 0.7"}, {"operator": ">=", "low": 0.6, "high": 0.8}),
        ({"gate": "low(f1) > 0.5"}, {"operator": ">", "low": 0.6, "high": 0.8}),
        ({"gate": "pass_rate >= 0.9"}, {"operator": ">=", "low": 0.9, "high": 1.0}),
        ({"gate": "median(f1) >= 0.7"}, {"operator": ">="}),
        ({"gate": "f1 >= 0.7 by language"}, {"operator": ">="}),
        ({"gate": "f1 >= 0.2 and f1 <= 0.9", "limit": 0.9}, {"operator": "<=", "low": 0.6, "high": 0.8}),
        (
            {"gate": "drop(f1) <= 0.02", "low": -0.01, "high": 0.05},
            {"operator": "<=", "relative": True, "low": -0.01, "high": 0.05},
        ),
        (
            {"gate": "drop(f1) <= 0.02", "low": -0.01, "high": 0.05, "reason": "f1 0.9, unchanged in all 9 cases"},
            {"operator": "<=", "relative": True},
        ),
        ({"gate": "lift(f1) >= 0.1, against a", "low": 0.1}, {"operator": ">=", "relative": True, "low": 0.1}),
        ({"gate": "drift(f1) <= 0.06, non_inferiority by kind"}, {"operator": "<=", "relative": True}),
        ({"gate": "gain(mean(f1)) >= 0.01, against small"}, {"operator": ">=", "relative": True}),
        ({"gate": "summary"}, {}),
        ({"gate": ""}, {}),
    ],
)
def test_the_line_of_a_gate_has_its_operator_and_the_interval_of_its_value(
    gate: dict[str, Any], line: dict[str, Any]
) -> None:
    assert number_line(GateResult(outcome="passed", **gate), METRICS) == line


def test_a_run_fails_by_a_gate_an_approved_score_a_case_or_a_faulty_file() -> None:
    fine = suite([case("a")])
    assert page_run("", report(fine)).report.verdict == "passed"
    assert page_run("", report(fine, suite([case("a", "failed")]))).report.verdict == "failed"
    assert page_run("", report(fine, suite([case("a", "errored")]))).report.verdict == "failed"
    assert (
        page_run("", report(suite([case("a")], gates=[{"gate": "f1 >= 1", "outcome": "failed"}]))).report.verdict
        == "failed"
    )
    assert (
        page_run("", report(suite([case("a")], snapshot=[{"metric": "f1", "outcome": "failed"}]))).report.verdict
        == "failed"
    )
    assert (
        page_run("", report(fine, faults={"b.eval.yaml": ["b.eval.yaml:1: found nothing"]})).report.verdict == "failed"
    )


def test_a_run_that_is_not_whole_or_empty_is_not_judged() -> None:
    assert page_run("", report(suite([case("a"), case("b", "not_run", None)]))).report.verdict == "incomplete"
    assert (
        page_run("", report(suite([case("a")], gates=[{"gate": "f1 >= 1", "outcome": "not_judged"}]))).report.verdict
        == "incomplete"
    )
    assert page_run("", report(suite([case("a", "not_scored", None)]))).report.verdict == "incomplete"
    assert page_run("", report()).report.verdict == "incomplete"


def test_the_pass_rate_is_over_the_cases_that_ran() -> None:
    cases = [case("a"), case("b", "failed"), case("c", "not_run", None), case("d", "skipped", None)]
    rate = entry_of(suite_report(suite(cases)), 0)["pass_rate"]
    assert rate["value"] == 0.5
    assert rate["low"] < 0.5 < rate["high"]
    assert rate["scored"] == 2


def test_a_report_without_counts_is_counted() -> None:
    counts = entry_of(suite_report(suite([case("a"), case("b", "failed")], counts={})), 0)["counts"]
    assert {name: count for name, count in counts.items() if count} == {"total": 2, "passed": 1, "failed": 1}


@pytest.mark.parametrize(
    ("outcomes", "title"),
    [
        (["passed", "undecided", "passed"], "Check before you merge: capitals"),
        (["undecided", "failed"], "Do not merge: capitals"),
        (["passed"], "Merge: capitals"),
        (["passed", "not_judged"], "No answer: capitals"),
    ],
)
def test_the_title_has_the_verdict_and_the_suite(outcomes: list[str], title: str) -> None:
    gates = [{"gate": f"f1 >= 0.{number}", "outcome": outcome} for number, outcome in enumerate(outcomes)]
    assert f"<title>{title}</title>" in page_of(suite([case("a")], gates=gates)).html


def test_columns_keep_what_is_absent_apart_from_zero() -> None:
    index = index_of(
        suite_report(suite([case("a", f1=0.0, labels={"x": "1"}), case("b", "errored", None, reason="no")])).cases, 1
    )
    assert index["metrics"] == {"f1": [0.0, None]}
    assert index["labels"] == {"x": {"values": ["1"], "codes": [0, -1]}}
    assert index["outcomes"] == {"values": ["passed", "errored"], "codes": [0, 1]}
    assert index["reasons"] == ["", "no"]


def test_the_policy_allows_the_script_and_the_style_of_the_page_alone() -> None:
    html = page_of(suite([case("a")])).html
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    assert policy[1].startswith("default-src 'none'; ")
    for tag in ("script", "style"):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        assert text
        digest = b64encode(sha256(text[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1].replace("&#39;", "'")


def test_the_texts_of_cases_stand_in_compressed_pieces_only() -> None:
    page = page_of(suite([case("a", input="a question", prediction="an answer", lines={"text": ["a line"]})]))
    assert not {"a question", "an answer", "a line"} & {
        each for each in ("a question", "an answer") if each in page.html
    }
    pieces = pieces_of(page)
    assert pieces["s0c0"] == [{"lines": {"text": ["a line"]}, "input": "a question", "prediction": "an answer"}]
    assert pieces["s0w"] == []


def test_no_text_of_the_data_ends_its_element_or_begins_markup() -> None:
    hostile = "</script><script>alert(1)</script><!--"
    page = page_of(suite([case("a")], name=hostile, gates=[{"gate": hostile, "outcome": "failed", "reason": hostile}]))
    assert hostile not in page.html
    assert head_of(page.html)["entries"][0]["suite"] == hostile


def test_half_of_a_surrogate_pair_stays_readable() -> None:
    page = page_of(suite([case("a", prediction="x\ud800y")]))
    page.html.encode()
    assert pieces_of(page)["s0c0"][0]["prediction"] == "x\ud800y"


def test_equal_runs_give_equal_pages() -> None:
    assert page_of(suite([case("a", input="x")])) == page_of(suite([case("a", input="x")]))


def test_values_of_secrets_are_masked_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "s3cret-0123456789"
    monkeypatch.setenv("SHOP_API_KEY", secret)
    leaking = case(
        secret, "failed", reason=secret, labels={secret: secret}, details={"x": [secret]}, input={"k": secret}
    )
    page = page_of(suite([leaking], name=secret, gates=[{"gate": secret, "outcome": "failed", "reason": secret}]))
    assert secret not in page.html
    assert secret not in json.dumps(pieces_of(page))
    assert pieces_of(page)["s0i"]["ids"] == ["***"]


def test_a_secret_made_of_digits_damages_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOOR_PASSWORD", "123456789")
    pieces = pieces_of(page_of(suite([case("a", f1=0.123456789, input="it is 123456789", duration_s=1.0)])))
    assert pieces["s0i"]["metrics"] == {"f1": [0.123457]}
    assert pieces["s0c0"][0]["input"] == "it is ***"


def many(count: int) -> list[dict[str, Any]]:
    """Return cases whose texts are as long as those of question answering, in words of a usual vocabulary."""
    chance = random.Random(1)
    words = ["".join(chance.choices("etaoinshrdlucmfw", k=chance.randint(2, 9))) for _ in range(4000)]
    weights = list(accumulate(1 / (rank + 5) for rank in range(len(words))))

    def text(length: int) -> str:
        return " ".join(chance.choices(words, cum_weights=weights, k=length))

    return [
        case(
            f"case-{number}",
            f1=chance.random(),
            labels={"kind": chance.choice("abcde")},
            input={"question": text(20)},
            expected=text(15),
            prediction=text(25),
        )
        for number in range(count)
    ]


@pytest.mark.release
def test_ten_thousand_cases_with_texts_stay_under_three_megabytes() -> None:
    assert len(page_of(suite(many(10_000))).html.encode()) < 3_000_000


def test_a_large_page_says_so_and_a_page_that_is_too_large_leaves_texts_out_step_by_step() -> None:
    failing = case("bad", "failed", 0.0, prediction=random.Random(1).randbytes(10_000).hex())
    cases = [*many(150), failing]
    whole = page_of(suite(cases))
    size = sum(map(len, re.findall(r'id="s\w+">(.*?)</script>', whole.html)))
    assert whole.note == ""
    assert "MB" in page_of(suite(cases), warn_from=1000).note
    noted = [page_of(suite(cases), cut_from=limit) for limit in (size - 1000, 9_000, 1)]
    assert [each.note.partition(",")[0] for each in noted] == [
        "texts of cases that passed are left out",
        "texts are cut to their beginnings",
        "texts are left out",
    ]
    assert all(head_of(each.html)["note"] == each.note for each in noted)
    first, second, last = (
        [text for name, piece in pieces_of(each).items() if "c" in name for text in piece] for each in noted
    )
    assert ("prediction" in first[0], "prediction" in first[-1]) == (False, True)
    assert second[-1]["prediction"].endswith("more characters)")
    assert "prediction" not in last[-1]


def test_head_of_a_page_has_the_beginning_of_a_long_cause() -> None:
    cases = [case("a", "errored", None, reason="JudgeError: the judge replied " + "long " * 200)]
    run = head_of(page_run("", report(suite(cases))).page().html)["runs"][0]
    cause = run["answer"]["headline"]["cause"]
    assert cause.startswith("1 of 1 case failed: JudgeError: the judge replied long")
    assert len(cause) < 170
