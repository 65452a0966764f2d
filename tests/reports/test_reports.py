"""What a run says of itself: JSON, Markdown and the terminal, from one report."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import gate_of, parse_gate
from msgspec import structs
from wcwidth import wcswidth

from pytest_llmeval import Case, Observation, get_evaluator, score
from pytest_llmeval.core import CaseRecord
from pytest_llmeval.core.wording import is_visible
from pytest_llmeval.numbers import summarize
from pytest_llmeval.reports import (
    KindOutcome,
    RunReport,
    RunStart,
    SuiteReport,
    Survival,
    WrittenReports,
    published,
    render,
    text,
)
from pytest_llmeval.reports._json import write_data
from pytest_llmeval.reports._markdown import append_markdown, to_markdown, write_markdown

EVALUATORS = {"text": get_evaluator("text", metrics=["exact_match", "f1"])}


def record(name: str, value: float | None, **more: Any) -> CaseRecord:
    if value is None:
        return CaseRecord(name, **more)
    counts = {"f1": value, "f1.n": 1, "exact_match": 0.0, "exact_match.n": 1}
    return CaseRecord(name, observations={"text": Observation(counts)}, duration_s=0.0012345678, **more)


def report(
    records: Sequence[CaseRecord],
    gates: Sequence[str | Mapping[str, Any]] = (),
    total: int | None = None,
    incomplete: str = "",
) -> RunReport:
    result = summarize(EVALUATORS, records, group_by=["kind"])
    parsed = [parse_gate(each) if isinstance(each, str) else gate_of(each) for each in gates]
    suite = SuiteReport.of_result(
        "capitals",
        "suites/capitals.eval.yaml",
        result,
        [gate.judge(result, incomplete) for gate in parsed],
        len(records) if total is None else total,
    )
    return RunReport(run=RunStart("2024-06-07T08:09:10+00:00", 1.234, "0.1.0", "0123456789abcdef"), suites=[suite])


SMALL = report(
    [
        record("paris", 0.5, labels={"kind": "easy"}),
        record(
            "b|c <script>`x`\n**d**", 1.0, outcome="failed", labels={"kind": "a|b\n<c>"}, reason="f1 | <b>low</b>\n`x`"
        ),
        record("東京", None, outcome="errored", errors={"": "no"}, reason="ValueError: no", labels={"kind": "easy"}),
        record("later", None, outcome="not_run", reason="not selected", labels={"kind": "easy"}),
    ],
    ["f1 >= 0.7", {"metric": "f1", "min": 0.7, "by": "kind", "max_errors": 1}, "mean(f1) >= 0.7"],
    total=5,
)

SUITE_KEYS = {"suite", "path", "counts", "metrics", "groups", "gates", "cases", "error_buckets"}
METRIC_KEYS = {"value", "mean", "low", "high", "scored", "undefined", "errored", "missing", "signature"}


def test_the_json_report_has_exactly_the_promised_keys() -> None:
    data = published(SMALL)
    assert set(data) == {"schema_version", "run", "suites"}
    assert data["schema_version"] == 1
    assert set(data["run"]) == {"started_at", "duration_s", "version", "commit"}
    (suite,) = data["suites"]
    assert set(suite) == SUITE_KEYS
    assert suite["counts"] == {"total": 5, "passed": 1, "failed": 1, "errored": 1, "skipped": 0, "not_run": 2}
    assert {name: set(metric) for name, metric in suite["metrics"].items()} == {
        "exact_match": METRIC_KEYS,
        "f1": METRIC_KEYS,
    }
    for group in suite["groups"]["kind"].values():
        assert set(group) == {"cases", "metrics"}
        assert set(group["metrics"]["f1"]) == METRIC_KEYS
    assert [set(gate) for gate in suite["gates"]] == [{"gate", "outcome", "value", "limit", "reason", "line"}] * 3
    assert [set(case) for case in suite["cases"]] == [
        {"id", "outcome", "metrics", "details", "reason", "duration_s", "labels"}
    ] * 4


def test_the_json_report_gives_null_for_what_does_not_exist() -> None:
    data = published(report([record("a", None, outcome="errored", errors={"": "no"})], ["f1 >= 0"]))
    suite = data["suites"][0]
    assert suite["metrics"]["f1"] == {
        "value": None,
        "mean": None,
        "low": None,
        "high": None,
        "scored": 0,
        "undefined": 0,
        "errored": 1,
        "missing": 0,
        "signature": "tok:auto|case:lower|v:1",
    }
    assert suite["gates"][0]["value"] is None
    assert suite["cases"][0] == {
        "id": "a",
        "outcome": "errored",
        "metrics": {},
        "details": {"errors": {"prediction": "no"}},
        "reason": None,
        "duration_s": 0.0,
    }


def test_the_json_file_is_strict_json_in_full_precision(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_data(report([record("a", 1 / 3), record("東京", 0.1)]), path)
    written = path.read_bytes()
    assert b"\r" not in written
    assert "東京".encode() in written
    data = json.loads(written, parse_constant=lambda name: pytest.fail(f"found {name}"))
    assert data["suites"][0]["cases"][0]["metrics"]["f1"] == 1 / 3
    assert data["suites"][0]["cases"][0]["duration_s"] == 0.001235


@pytest.mark.parametrize("levels", range(7))
def test_json_reports_are_indented_as_by_the_standard_library(tmp_path: Path, levels: int) -> None:
    data: Any = {
        "numbers": [1e-8, 1e16, -0.0, 1 / 3, 10**30, True, None],
        "empty": [{}, [], "", ()],
        "東京 \u202e\u3164\U000e0001": '\x7f\x1b\n\t"\\ é 你好\u3000',
        "half": ["\ud83d", {"\udc00": 1}],
        "many": [{"n": number} for number in range(70)],
    }
    for level in range(levels):
        data = {"a": data} if level % 2 else [data, 1]
    write_data(data, tmp_path / "r.json")
    expected = json.dumps(data, ensure_ascii=False, indent=1) + "\n"
    escaped = (each if each == "\n" or is_visible(each) else json.dumps(each)[1:-1] for each in expected)
    assert (tmp_path / "r.json").read_bytes().decode() == "".join(escaped)


def test_lone_surrogates_survive_as_json_escapes(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_data(report([record("a", 0.5, outcome="failed", reason="half \ud83d of a pair")]), path)
    assert b"half \\ud83d of a pair" in path.read_bytes()
    assert json.loads(path.read_text(encoding="utf-8"))["suites"][0]["cases"][0]["reason"] == "half \ud83d of a pair"


GOLDEN_MARKDOWN = r"""# Evaluation report

**Do not merge**: 1 of 5 cases errored: ValueError: no; start with "東京"

cases: 1 passed, 1 failed, 1 errored, 2 not run; gates: 3 failed

2024-06-07T08:09:10+00:00, 1.2 s, pytest-llmeval-suite 0.1.0, commit `0123456789ab`

| verdict    | suite    | cases   | gates   | metrics of gates         |
|------------|----------|---------|---------|--------------------------|
| **FAILED** | capitals | 1/5     | 0/3     | f1 0.7500 0.0000..1.0000 |

## capitals

suites/capitals.eval.yaml: 5 cases: 1 passed, 1 failed, 1 errored, 2 not run; pass rate 0.3333

### Gates

| verdict    | gate               | reason                                                                                              |
|------------|--------------------|-----------------------------------------------------------------------------------------------------|
| **FAILED** | f1 \>= 0.7         | 1 case errored; errored cases: 東京                                                                 |
| **FAILED** | f1 \>= 0.7 by kind | 1 of 2 groups fail: easy: f1 is 0.5000, expected \>= 0.7; 1 case not run; worst cases: paris 0.5000 |
| **FAILED** | mean\(f1\) \>= 0.7 | 1 case errored; errored cases: 東京                                                                 |

### Failing cases

| case                           | outcome   | reason                     |
|--------------------------------|-----------|----------------------------|
| b\|c \<script\>\`x\` \*\*d\*\* | failed    | f1 \| \<b\>low\</b\> \`x\` |
| 東京                           | errored   | ValueError: no             |

<details>
<summary><code>capitals</code>: metrics, groups, kinds of errors, worst cases</summary>

| metric       | value   | 95% interval   | mean   | scored   | errors   | not run   |
|--------------|---------|----------------|--------|----------|----------|-----------|
| exact\_match | 0.0000  | 0.0000..0.6576 | 0.0000 | 2        | 1        | 1         |
| f1           | 0.7500  | 0.0000..1.0000 | 0.7500 | 2        | 1        | 1         |

### By kind

| kind       | cases   | f1     | exact\_match   |
|------------|---------|--------|----------------|
| a\|b \<c\> | 1       | 1.0000 | 0.0000         |
| easy       | 3       | 0.5000 | 0.0000         |

### Cases

| case                           | outcome   | f1     | exact\_match   |
|--------------------------------|-----------|--------|----------------|
| paris                          | passed    | 0.5000 | 0.0000         |
| b\|c \<script\>\`x\` \*\*d\*\* | failed    | 1.0000 | 0.0000         |
| 東京                           | errored   | n/a    | n/a            |
| later                          | not run   | n/a    | n/a            |

</details>
"""  # noqa: E501 (a table is as wide as its cells)


def test_markdown_of_a_small_run_with_hostile_ids() -> None:
    assert to_markdown(SMALL) == GOLDEN_MARKDOWN


@pytest.mark.parametrize(
    ("raw", "written"),
    [
        ("plain 東京 é", "plain 東京 é"),
        ("a|b", r"a\|b"),
        ("<script>alert(1)</script>", r"\<script\>alert\(1\)\</script\>"),
        ("two\nlines\tand \r more", "two lines and more"),
        ("`code` **bold** [link](x) ![image]", r"\`code\` \*\*bold\*\* \[link\]\(x\) \!\[image\]"),
        ("# heading ~~gone~~ &amp; $x$ @ me", r"\# heading \~\~gone\~\~ \&amp; \$x\$ \@ me"),
        ("ask @me", "`ask @me`"),
        ("fixes #12, GH-12 and !12 <!-- x -->", r"`fixes #12, GH-12 and !12 <\!-- x -->`"),
        ("close ~bug", "`close ~bug`"),
        ('~"to do"', '`~"to do"`'),
        ("in %v1", "`in %v1`"),
        ("&1", "`&1`"),
        ("$1 or !1", "`$1 or !1`"),
        ("[vulnerability:3]", "`[vulnerability:3]`"),
        ("95% of ~ & $ !", r"95% of \~ \& \$ \!"),
        ("back\\slash", r"back\\slash"),
        ("x" * 301, "x" * 300 + "..."),
        ("", ""),
    ],
)
def test_any_text_is_shown_in_markdown_and_does_nothing_else(raw: str, written: str) -> None:
    assert text(raw) == written


def test_every_table_of_the_markdown_has_as_many_cells_in_every_row() -> None:
    for block in to_markdown(SMALL).split("\n\n"):
        if block.startswith("|"):
            widths = {line.replace("\\|", "").count("|") for line in block.splitlines()}
            assert len(widths) == 1


def test_a_suite_of_many_cases_has_no_table_of_them() -> None:
    def written(cases: int) -> bool:
        return "### Cases" in to_markdown(report([record(f"case-{number}", 0.1) for number in range(cases)]))

    assert [written(cases) for cases in (1, 2, 20, 21)] == [False, True, True, False]


def test_many_failing_cases_are_cut() -> None:
    some = [record(f"case-{number}", 0.1, outcome="failed", reason="low") for number in range(60)]
    written = to_markdown(report(some))
    assert "| case-49" in written
    assert "| case-50" not in written
    assert "... and 10 more." in written


def test_a_run_without_suites_says_so() -> None:
    assert to_markdown(RunReport(run=RunStart("now", 0.1, "1"))) == (
        "# Evaluation report\n\nnow, 100 ms, pytest-llmeval-suite 1\n\nNo suite ran.\n"
    )


def test_faults_of_files_are_listed_and_many_are_cut() -> None:
    run = RunReport(
        run=RunStart("now", 0.1, "1"), faults={"a|b.eval.yaml": [f"a:{line}:1  <b> {line}" for line in range(52)]}
    )
    assert published(run)["faults"]["a|b.eval.yaml"][1] == "a:1:1  <b> 1"
    table = to_markdown(run).partition("## Faulty files\n\n")[2].splitlines()
    assert table[2].split() == ["|", "a\\|b.eval.yaml", "|", "a:0:1", "\\<b\\>", "0", "|"]
    assert len(table) == 2 + 50 + 2
    assert table[-1] == "... and 2 more."


def test_a_markdown_file_is_replaced_and_a_summary_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "r.md"
    path.write_text("before\n")
    append_markdown(SMALL, path)
    assert path.read_text(encoding="utf-8") == "before\n" + to_markdown(SMALL)
    write_markdown(report([record("half \ud83d", 0.1, outcome="failed")]), path)
    assert "half \\\\ud83d" in path.read_text(encoding="utf-8")


def lines(run: RunReport, verbosity: int = 0, width: int = 80) -> list[str]:
    return [line.text for line in render(run, verbosity=verbosity, width=width)]


def test_the_terminal_shows_metrics_and_gates() -> None:
    assert lines(SMALL) == [
        "capitals  (suites/capitals.eval.yaml)",
        "5 cases: 1 passed, 1 failed, 1 errored, 2 not run; pass rate 0.3333",
        "metric        value    95% interval    mean  scored  errors  not run",
        "exact_match  0.0000  0.0000..0.6576  0.0000       2       1        1",
        "f1           0.7500  0.0000..1.0000  0.7500       2       1        1",
        "errors: could not be measured",
        "gate FAILED  f1 >= 0.7  (1 case errored)",
        "  errored cases: 東京",
        "gate FAILED  f1 >= 0.7 by kind  (1 of 2 groups fail: easy: f1 is 0.5000, expected >= 0.7; 1 case not run)",
        "  worst cases: paris 0.5000",
        "gate FAILED  mean(f1) >= 0.7  (1 case errored)",
        "",
        'Do not merge: 1 of 5 cases errored: ValueError: no; start with "東京"',
        "cases: 1 passed, 1 failed, 1 errored, 2 not run; gates: 3 failed",
    ]


def test_more_verbosity_shows_groups_and_less_only_gates_that_fail() -> None:
    assert lines(SMALL, 1)[6:10] == [
        "",
        "kind      cases      f1  exact_match",
        r"a|b\n<c>      1  1.0000       0.0000",
        "easy          3  0.5000       0.0000",
    ]
    passed = report([record("a", 0.5)], ["f1 >= 0.1", "f1 >= 0.9"])
    assert lines(passed, -1) == ["gate FAILED  capitals: f1 >= 0.9  (f1 is 0.5000, expected >= 0.9)"]


def test_gates_that_are_not_judged_are_told_once_at_every_verbosity() -> None:
    waiting = report([record("a", 0.5)], ["f1 >= 0.1", "f1 >= 0.9"], incomplete="1 of 3 cases ran")
    assert lines(waiting).count("capitals: 2 of 2 gates not evaluated: 1 of 3 cases ran") == 1
    assert lines(waiting, 1).count("2 of 2 gates not evaluated: 1 of 3 cases ran") == 1
    assert lines(waiting, -1) == ["capitals: 2 of 2 gates not evaluated: 1 of 3 cases ran"]


def test_colours_tell_passed_failed_and_waiting_apart() -> None:
    run = report([record("a", 0.5)], ["f1 >= 0.1", "f1 >= 0.9"])
    assert [line.colour for line in render(run, verbosity=0, width=80)][-5:] == ["green", "red", "", "red", "red"]
    waiting = report([record("a", 0.5)], ["f1 >= 0.1"], incomplete="x")
    assert next(iter(render(waiting, verbosity=-1, width=80))).colour == "yellow"


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("verbosity", [0, 1])
@pytest.mark.parametrize(
    ("name", "answer"), [("text", "It was in May 2022"), ("classification", "joy"), ("classification", ["joy"] * 3)]
)
def test_no_line_of_the_shipped_metrics_is_wider_than_the_terminal(
    name: str, answer: Any, verbosity: int, width: int
) -> None:
    cases = [
        Case(str(number), expected=answer, prediction=answer, labels={"question_type": kind})
        for number, kind in enumerate(["single_session_preference", "multi_hop"] * 2)
    ]
    result = score(get_evaluator(name), cases, group_by=["question_type"])
    run = RunReport(run=RunStart("now", 1.0, "1"), suites=[SuiteReport.of_result("s", "s.eval.yaml", result, [], 4)])
    assert max(map(len, lines(run, verbosity, width))) <= width


def test_columns_of_wide_characters_are_aligned() -> None:
    some = [record(str(number), 0.5, labels={"kind": kind}) for number, kind in enumerate(["東京", "é", "서울 시"])]
    table = lines(report(some), 1)[6:10]
    assert len({wcswidth(line) for line in table}) == 1


def test_names_are_never_broken() -> None:
    name = "a very long name of a group that no column of a table can hold"
    assert any(
        line.startswith(f"{name}      1") for line in lines(report([record("a", 0.5, labels={"kind": name})]), 1)
    )


def test_text_from_data_cannot_command_the_terminal() -> None:
    hostile = record("x", 0.5, labels={"kind": "\x1b[31mred\x07\u202e\n"})
    for line in lines(report([hostile], [{"metric": "f1", "min": 0.9, "by": "kind"}]), 1):
        assert line.isprintable()


def test_of_many_metrics_those_that_gates_judge_are_listed_first() -> None:
    evaluator = get_evaluator("classification")
    cases = [Case(str(row), expected=label, prediction=label) for row, label in enumerate("abcdef")]
    result = score(evaluator, cases)
    gate = parse_gate("recall[f] > 1").judge(result)
    suite = SuiteReport.of_result("many", "many.eval.yaml", result, [gate], len(cases))
    run = RunReport(run=RunStart("", 0, ""), suites=[suite])
    assert any(line.startswith("recall[f]  ") for line in lines(run))
    assert not any(line.startswith("recall[e]  ") for line in lines(run))
    assert f"{len(result.metrics) - 16} more metrics: -vv" in lines(run)
    assert any(line.startswith("recall[e]  ") for line in lines(run, 1))


def test_each_suite_may_have_a_report_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    run = SMALL
    # Not all systems tell capitals apart in names of files, and some have devices of such names.
    others = [structs.replace(run.suites[0], suite=name) for name in ("a/b[c]", "a/b[c]", "A/B[C]", "aux")]
    both = structs.replace(run, suites=[*run.suites, *others])
    written = WrittenReports.write(both, [tmp_path / "{suite}" / "summary.txt"]).written
    names = [run.suites[0].suite, "a-b[c]", "a-b[c]-2", "A-B[C]-3", "_aux"]
    assert written == [tmp_path / name / "summary.txt" for name in names]
    assert [path.read_text(encoding="utf-8").splitlines()[0] for path in written] == [
        "capitals  (suites/capitals.eval.yaml)",
        *(f"{name}  (suites/capitals.eval.yaml)" for name in ("a/b[c]", "a/b[c]", "A/B[C]", "aux")),
    ]


def test_a_suite_of_one_case_has_no_long_list_of_single_numbers() -> None:
    evaluator = get_evaluator("retrieval")

    def rows(number: int) -> int:
        cases = [Case(str(place), "q", ["a"], [{"fact": "a"}]) for place in range(number)]
        suite = SuiteReport.of_result("s", "s.eval.yaml", score(evaluator, cases), [], number)
        lines = [
            line.text
            for line in render(RunReport(run=RunStart("now", 1.0, "1"), suites=[suite]), verbosity=1, width=100)
        ]
        return sum(line.startswith("gold_") for line in lines)

    assert rows(1) < 10 < rows(2)


@pytest.mark.parametrize(
    ("kind", "heading"),
    [
        (KindOutcome("swap", mutants=4, survived=1), "Mutants of qa</code> 4, 25% survive<"),
        (KindOutcome("swap", mutants=4, undecided=4), "Mutants of qa</code> 4<"),
    ],
)
def test_markdown_says_which_share_of_the_mutants_survives_if_any_was_decided(kind: KindOutcome, heading: str) -> None:
    report = RunReport(run=RunStart("2026-01-02T00:00:00+00:00", 1.0), mutation=[Survival("qa", kinds=[kind])])
    assert heading in to_markdown(report)
