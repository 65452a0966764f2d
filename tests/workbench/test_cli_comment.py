"""``llmeval comment``: what it says, how long it gets, and that text of cases does nothing in it."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cmarkgfm
import pytest
from builders import recorded_case, recorded_suite, write_run
from cmarkgfm.cmark import Options
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from pytest_llmeval.cli import main
from pytest_llmeval.core import MetricChange
from pytest_llmeval.reports import CaseReport, RunReport
from pytest_llmeval.workbench import _comment as comment_module
from pytest_llmeval.workbench._case_changes import CaseLine, Change, ReportComparison
from pytest_llmeval.workbench._comment import MARKER, comment_text
from pytest_llmeval.workbench._source_links import SourceLinks

Commented = Callable[..., str]


@pytest.fixture
def commented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commented:
    """Runs the command on two reports and returns what it prints."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "CI_PROJECT_URL"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, code: int = 0) -> str:
        assert main(["comment", *arguments]) == code
        return capsys.readouterr().out

    return run


def cases(right: int, count: int = 40) -> list[dict[str, Any]]:
    return [recorded_case(f"c{n}", f1=float(n < right)) for n in range(count)]


def gate(outcome: str, name: str = "f1 >= 0.5") -> dict[str, Any]:
    return {"gate": name, "outcome": outcome, "value": 0.1, "limit": 0.5, "reason": f"it {outcome}"}


def test_a_comment_begins_with_the_marker_and_the_verdict(commented: Commented, tmp_path: Path) -> None:
    write_run(tmp_path / "r.json", recorded_suite(cases(40), gates=[gate("passed")]))
    assert commented("r.json").splitlines() == [
        "<!-- pytest-llmeval -->",
        "## Evaluation: **Merge**",
        "",
        "40 cases: 40 passed; 1 gate: 1 passed.",
        "",
        "Time: 1.0 s. Run of 2026-01-02 10:00 UTC, commit cccccccccccc.",
        "",
        "<details><summary>Gates (1)</summary>",
        "",
        "| verdict | suite | gate | reason |",
        "| --- | --- | --- | --- |",
        "| passed | s | f1 \\>= 0.5 | it passed |",
        "",
        "</details>",
    ]


@pytest.mark.parametrize(
    ("suite", "verdict"),
    [
        ({"gates": [gate("failed")]}, "**Do not merge**"),
        ({"gates": [gate("not_judged")]}, "**No answer**"),
        (
            {"snapshot": [{"metric": "f1", "kind": "missing", "outcome": "failed", "reason": "gone"}]},
            "**Do not merge**",
        ),
        ({"counts": {"total": 3, "errored": 1}}, "**Do not merge**"),
        ({"counts": {"total": 3, "not_run": 1}}, "**No answer**"),
        ({}, "**Merge**"),
    ],
)
def test_only_a_whole_run_without_failure_has_passed(
    commented: Commented, tmp_path: Path, suite: dict[str, Any], verdict: str
) -> None:
    write_run(tmp_path / "r.json", recorded_suite(cases(2, 3), **suite))
    assert commented("r.json").splitlines()[1].removeprefix("## Evaluation: ").partition(": ")[0] == verdict


def test_a_run_without_suites_or_with_faulty_files_has_not_passed(commented: Commented, tmp_path: Path) -> None:
    write_run(tmp_path / "r.json")
    assert "## Evaluation: **No answer**: no suite ran" in commented("r.json")
    write_run(tmp_path / "r.json", recorded_suite(cases(3)), faults={"b.eval.yaml": ["found x, expected y"]})
    text = commented("r.json")
    assert "\n\n1 faulty file. " in text
    assert "### Faulty files\n\n- b.eval.yaml: found x, expected y\n" in text


def test_falls_rises_and_moves_within_chance_are_told_apart(commented: Commented, tmp_path: Path) -> None:
    def scored(a: int, b: int, c: int, d: int) -> list[dict[str, Any]]:
        return [
            recorded_case(str(n), down=float(n < a), up=float(n < b), cost=float(n < c), luck=float(n < d))
            for n in range(40)
        ]

    lower = {"lower_is_better": ["cost"]}
    write_run(tmp_path / "b.json", recorded_suite(scored(40, 20, 10, 20), **lower), day=1)
    write_run(tmp_path / "r.json", recorded_suite(scored(20, 40, 35, 21), **lower), day=4)
    text = commented("r.json", "--baseline", "b.json")
    assert "Metrics against the baseline: 2 declined, 1 improved, 1 not significant; 30 cases got worse." in text
    assert text.splitlines()[1] == "## Evaluation: **Merge**, but 2 metrics declined"
    fell, _, rose = text.partition("### Declined")[2].partition("<details><summary>Improved (1)")
    assert re.findall(r"^\| s \| (\w+) \| ([\d.]+) \| ([\d.]+) \| (-?[\d.]+) ", fell, re.MULTILINE) == [
        ("down", "1.0000", "0.5000", "-0.5000"),
        ("cost", "0.2500", "0.8750", "0.6250"),
    ]
    rose, _, unclear = rose.partition("<details><summary>Not significant (1)")
    assert re.findall(r"^\| s \| (\w+) ", rose, re.MULTILINE) == ["up"]
    assert re.findall(r"^\| s \| (\w+) ", unclear, re.MULTILINE) == ["luck"]
    assert "Baseline of 2026-01-01 10:00 UTC, commit cccccccccccc, 3 days earlier." in text


def test_metrics_that_did_not_move_are_part_of_the_family(commented: Commented, tmp_path: Path) -> None:
    def scored(right: int, others: int) -> list[dict[str, Any]]:
        same = {f"same{n}": 1.0 for n in range(others)}
        return [recorded_case(str(n), f1=float(n < right), **same) for n in range(40)]

    for others, fell in ((0, "baseline: 1 declined"), (20, "baseline: 1 not significant")):
        write_run(tmp_path / "b.json", recorded_suite(scored(40, others)))
        write_run(tmp_path / "r.json", recorded_suite(scored(32, others)))
        text = commented("r.json", "--baseline", "b.json")
        assert fell in text
        assert ("An interval without 0 is that of one metric alone" in text) == (others > 0)


def test_numbers_without_end_do_not_make_a_comment_long(commented: Commented, tmp_path: Path) -> None:
    huge = int("9" * 4300)
    counts = {"total": huge, "passed": huge}
    suites = [
        recorded_suite(cases(3), suite=name, counts=counts, usage={"calls": huge, "verdicts": 1}) for name in "ab"
    ]
    write_run(tmp_path / "r.json", *suites)
    assert len(commented("r.json")) < 1000


def test_the_worst_regressed_cases_come_with_their_lines(commented: Commented, tmp_path: Path) -> None:
    before = [recorded_case("a", f1=1.0), recorded_case("b", f1=1.0), recorded_case("c", f1=0.5)]
    now = [
        recorded_case("a", f1=0.75),
        recorded_case("b", "failed", f1=0.5) | {"line": 7, "lines": {"text": ["missing", "extra: x"]}},
        recorded_case("c", f1=0.75),
    ]
    write_run(tmp_path / "b.json", recorded_suite(before))
    write_run(tmp_path / "r.json", recorded_suite(now))
    listed = commented("r.json", "--baseline", "b.json").partition("### What got worse\n\n")[2]
    assert listed.partition("\n\n")[0].splitlines() == [
        "- **b** of s (s.eval.yaml:7): passed -\\> failed; f1 1.0000 -\\> 0.5000<br>text: missing<br>text: extra: x",
        "- **a** of s (s.eval.yaml): f1 1.0000 -\\> 0.7500",
    ]


def test_a_case_that_got_worse_shows_where_it_lies_the_question_and_where_the_answers_part(
    commented: Commented, tmp_path: Path
) -> None:
    long = "We take back goods within thirty days if they are unused and have"
    asked = {"input": {"question": "How long?"}, "file": "questions.csv", "line": 6}
    before = (
        recorded_case("a", f1=1.0) | asked | {"prediction": {"answer": f"{long} a receipt.", "sources": ["x" * 300]}}
    )
    now = (
        recorded_case("a", "failed", f1=0.5)
        | asked
        | {"prediction": {"answer": f"{long} no | receipt.", "sources": []}}
    )
    write_run(tmp_path / "b.json", recorded_suite([before]))
    write_run(tmp_path / "r.json", recorded_suite([now]))
    text = commented("r.json", "--baseline", "b.json")
    said = "asked: How long?<br>answer: ... are unused and have <del>a</del> <ins>no \\|</ins> receipt."
    assert f"- **a** of s (questions.csv:6): passed -\\> failed; f1 1.0000 -\\> 0.5000<br>{said}\n" in text
    assert "asked: How long?<br>answered: We take back goods" in commented("r.json")


def test_what_gates_look_at_comes_first_and_seconds_last(commented: Commented, tmp_path: Path) -> None:
    more = {
        "gates": [gate("passed", "f1 >= 0.1")],
        "ranges": {"f1": [0, 1], "em": [0, 1]},
        "lower_is_better": ["target_latency_s"],
    }
    values = {"slow": (1.0, 1.0, 9.0), "other": (1.0, 0.0, 1.0), "gated": (0.9, 1.0, 1.0)}
    start = [recorded_case(name, f1=1.0, em=1.0, target_latency_s=1.0) for name in values]
    end = [recorded_case(name, f1=f1, em=em, target_latency_s=seconds) for name, (f1, em, seconds) in values.items()]
    write_run(tmp_path / "b.json", recorded_suite(start, **more))
    write_run(tmp_path / "r.json", recorded_suite(end, **more))
    listed = commented("r.json", "--baseline", "b.json").partition("### What got worse\n\n")[2]
    rows = listed.partition("\n\n")[0].splitlines()
    assert [row.split("**")[1] for row in rows] == ["gated", "other", "slow"]
    assert "target\\_latency\\_s 1.0000 -\\> 9.0000" in rows[-1]


def test_a_collapse_over_few_cases_is_named_though_it_may_be_chance(commented: Commented, tmp_path: Path) -> None:
    more = {"ranges": {"f1": [0, 1]}}
    write_run(tmp_path / "b.json", recorded_suite(cases(3, 3), **more))
    write_run(tmp_path / "r.json", recorded_suite(cases(0, 3), **more))
    text = commented("r.json", "--baseline", "b.json")
    assert "Metrics against the baseline: 1 not significant; 3 cases got worse." in text
    assert "Not significant, but large: f1 of s 1.0000 -> 0.0000 over 3 cases." in text


def test_without_a_baseline_failing_cases_are_listed(commented: Commented, tmp_path: Path) -> None:
    bad = recorded_case("b", "errored") | {"reason": "no answer", "line": 3}
    write_run(tmp_path / "r.json", recorded_suite([recorded_case("a", f1=1.0), bad]))
    assert "### Failing cases" in (text := commented("r.json"))
    assert text.endswith(
        "- **b** of s (s.eval.yaml:3): errored<br>no answer\n\n```sh\npytest --llmeval s.eval.yaml::b\n```\n"
    )


def test_a_missing_baseline_is_mentioned(commented: Commented, tmp_path: Path) -> None:
    write_run(tmp_path / "r.json", recorded_suite(cases(3)))
    assert "No baseline: gone.json does not exist." in commented("r.json", "--baseline", "gone.json")


def test_a_report_that_cannot_be_used_is_said_in_the_comment(commented: Commented, tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text("{", encoding="utf-8")
    for name in ("cut.json", "gone.json"):
        assert commented(name, code=2).startswith(f"{MARKER}\n## Evaluation: **no report**\n\n- {name}")


def test_a_baseline_that_cannot_be_used_does_not_hide_the_run(commented: Commented, tmp_path: Path) -> None:
    write_run(tmp_path / "r.json", recorded_suite(cases(3)))
    (tmp_path / "cut.json").write_text("{", encoding="utf-8")
    text = commented("r.json", "--baseline", "cut.json", code=2)
    assert text.startswith(f"{MARKER}\n## Evaluation: **Merge**\n\n40 cases: 40 passed.\n")
    assert "No baseline: cut.json:1:2 found the end of the text" in text


def test_what_is_not_compared_is_said(commented: Commented, tmp_path: Path) -> None:
    before, now = recorded_suite(cases(40)), recorded_suite(cases(20)[2:])
    before["metrics"]["f1"]["signature"] = "v:1"
    write_run(tmp_path / "b.json", before, recorded_suite(cases(1), suite="old"))
    write_run(tmp_path / "r.json", now, recorded_suite(cases(1), suite="new"))
    notes = commented("r.json", "--baseline", "b.json").partition("<summary>Not compared (4)</summary>\n\n")[2]
    assert notes.partition("\n\n</details>")[0].splitlines() == [
        "- new \\(s.eval.yaml\\) is only in this run",
        "- old \\(s.eval.yaml\\) is only in the baseline",
        "- s: f1 is computed in another way",
        "- s: 2 cases ran only in the baseline",
    ]


def test_cost_stands_beside_that_of_the_baseline(commented: Commented, tmp_path: Path) -> None:
    usage = {"verdicts": 4, "calls": 3, "judge_cost_usd": 0.25, "target_cost_usd": None}
    write_run(tmp_path / "b.json", recorded_suite(cases(3), usage=usage | {"judge_cost_usd": 0.125}))
    write_run(tmp_path / "r.json", recorded_suite(cases(3), usage=usage))
    text = commented("r.json", "--baseline", "b.json")
    assert text.endswith("| s | 3 | 0.2500 | n/a | 0.1250 + n/a |\n\n</details>\n")
    assert "\nJudge: 3 calls, 0.2500 USD (baseline: 0.1250 USD). Time: 1.0 s (baseline: 1.0 s). Run of" in text
    write_run(tmp_path / "b.json", recorded_suite(cases(3), usage=usage | {"judge_cost_usd": None}))
    assert commented("r.json", "--baseline", "b.json").endswith("| s | 3 | 0.2500 | n/a | n/a |\n\n</details>\n")


def test_a_run_that_cost_nothing_has_no_table_of_costs(commented: Commented, tmp_path: Path) -> None:
    usage = {"verdicts": 0, "calls": 0, "judge_cost_usd": 0, "target_cost_usd": None}
    write_run(tmp_path / "r.json", recorded_suite(cases(3), usage=usage))
    assert "Cost" not in (text := commented("r.json"))
    assert "Judge" not in text


def test_a_comment_can_be_written_to_a_file(commented: Commented, tmp_path: Path) -> None:
    write_run(tmp_path / "r.json", recorded_suite(cases(3)))
    assert commented("r.json", "-o", "c.md") == ""
    assert (tmp_path / "c.md").read_text(encoding="utf-8") == commented("r.json")


HOSTILE = (
    *("@octocat", "a@b.example", "fixes #12", "o/r#12", "GH-12", "!12", "https://x.example", "www.x.example"),
    *("<img src=x>", "<script>", "![i](https://x.example)", "[l](javascript:x)", MARKER, "<!--", "-->", "</td>"),
    *(
        "`",
        "``` `@me`",
        "|",
        "\\|",
        "\\\\|",
        "\\",
        "\\`@me",
        "| --- |",
        "\n\n# h\n",
        "- [ ] t",
        "&lt;",
        "$x$",
        "a *b* _c_",
    ),
    *("\u202e", "\u200b@me", "\x00", "\x1b[31m", "~~~", "```\n", "[^1]", "<details>", "{{ x }}", "👩‍🔬 😀", "日本"),
)
TEXTS = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=8), max_size=5).map(" ".join) | st.lists(
    st.sampled_from(HOSTILE), max_size=4
).map("".join)


def hostile_run(root: Path, texts: list[str], size: int) -> tuple[RunReport, str]:
    """Return a run whose every text is hostile, and its text as an absent baseline."""
    names = [texts[n % len(texts)] + str(n) for n in range(size)]
    listed = [
        recorded_case(name, "failed", f1=0.0)
        | {"reason": f"{texts[-1]}{name}", "line": 3, "lines": {texts[0]: [*texts, name]}}
        for name in names
    ]
    suite = recorded_suite(
        listed,
        suite=texts[0],
        path=texts[-1],
        gates=[gate("failed", name) | {"reason": texts[0]} for name in names],
        snapshot=[{"metric": texts[0], "kind": "fell_beyond", "outcome": "failed", "reason": texts[0]}],
        usage={"verdicts": 1},
    )
    run = {"started_at": texts[0], "commit": texts[0]}
    return RunReport.read(write_run(root / "r.json", suite, faults={texts[0]: texts}, run=run)), texts[-1]


class Shown(HTMLParser):
    """The tags of a page, and its text outside code."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.comments: list[str] = []
        self.said: list[str] = []
        self._code = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag + "".join(name for name, _ in attrs))
        self._code += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "code"

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.said.append(data)


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_text_of_cases_does_nothing(texts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        run, absent = hostile_run(Path(folder), texts, 3)
    written = comment_text(run, absent=absent, links=SourceLinks("https://host.example/o/r", "c" * 40))
    assert written.startswith(MARKER)
    assert written.count(MARKER) == 1
    shown = Shown(cmarkgfm.github_flavored_markdown_to_html(written, Options.CMARK_OPT_UNSAFE))
    known = {"h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "strong", "code", "br", "ul", "li"}
    known |= {"details", "summary", "del", "ins", "ahref", "prelang"}
    assert shown.tags <= known
    assert shown.comments == [MARKER.removeprefix("<!--").removesuffix("-->")]
    for said in shown.said:
        assert re.search(r"@\w|[#!]\d|gh-\d|://|www\.", said, re.IGNORECASE) is None
        assert "\u202e" not in said


@settings(max_examples=10)  # a comparison takes its time
@given(st.lists(TEXTS.map(lambda text: text * 60), min_size=1, max_size=4), st.integers(1, 200))
def test_a_comment_stays_below_60_000_characters(texts: list[str], size: int) -> None:
    with TemporaryDirectory() as folder:
        run, absent = hostile_run(Path(folder), texts, size)
    for written in (comment_text(run, absent=absent), comment_text(run, run)):
        assert len(written) < 60_000


def test_the_longest_texts_stay_below_the_limit_and_what_is_left_out_is_counted(tmp_path: Path) -> None:
    run, absent = hostile_run(tmp_path, ["\U000e0001" * 400], 300)
    written = comment_text(run, absent=absent)
    assert 10_000 < len(written) < 60_000
    assert re.findall(r"^\.\.\. and (\d+) more row", written, re.MULTILINE) == ["2", "287"]
    plain, _ = hostile_run(tmp_path, ["a"], 300)
    assert re.findall(r"^\.\.\. and (\d+ more \w+)", comment_text(plain), re.MULTILINE) == [
        "243 more rows",
        "285 more cases",
    ]


def test_full_sections_stay_below_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = hostile_run(tmp_path, ["*" * 20], 60)
    suite = structs.replace(run.suites[0], suite="*" * 80)
    changes = [Change(suite, "*" * 20, MetricChange("declined", 1.0, 0.5, -0.5, -0.6, -0.4, 0.001, 40))] * 60
    worse = [CaseLine(suite, each, "*" * 290, CaseReport.not_run()) for each in suite.cases]
    found = ReportComparison(
        declined=changes, improved=changes, unclear=changes, regressed=worse, notes=["*" * 290] * 60
    )
    monkeypatch.setattr(comment_module, "compare_runs", lambda *_: found)
    faulty = structs.replace(run, faults={"*" * 290: ["*" * 290] * 60}, suites=[suite] * 60)
    written = comment_text(faulty, faulty)
    assert (written.count("### "), written.count("<details>")) == (4, 9)
    assert 45_000 < len(written) < 60_000


SCREEN = 44
"""Lines that a comment may take before the fold, counted anew: as many as the code estimates, and some slack."""


def lines_before_the_fold(written: str) -> int:
    """Return how many lines of a hundred characters stand before the first fold."""
    visible = re.sub(r"\]\(http[^)]*\)", "]", written.partition("<details>")[0])
    pieces = [piece for line in visible.splitlines() for piece in line.split("<br>") if line]
    return sum(1 + len(each) // 100 for each in pieces)


@pytest.mark.parametrize("size", [1, 6, 200])
def test_what_stands_before_the_fold_fits_a_screen(tmp_path: Path, size: int) -> None:
    words = "the answer has many words that say little " * 9
    asked = {"input": words, "line": 3, "lines": {"text": [words, words, words]}}
    then = [recorded_case(f"c{n}", f1=1.0, em=1.0) | asked | {"prediction": f"before {words}"} for n in range(size)]
    now = [recorded_case(f"c{n}", "failed", f1=0.0, em=0.0) | asked | {"prediction": words} for n in range(size)]
    gates = [gate("failed", f"f1 >= {n}") for n in range(size)]
    write_run(tmp_path / "b.json", recorded_suite(then))
    write_run(tmp_path / "r.json", recorded_suite(now, gates=gates), faults={"b.eval.yaml": [words] * size})
    run, baseline = RunReport.read(tmp_path / "r.json"), RunReport.read(tmp_path / "b.json")
    for written in (comment_text(run, baseline), comment_text(run)):
        assert lines_before_the_fold(written) <= SCREEN
        assert written.count("**c") >= 1  # a case is among them, however much else there is


def test_failures_that_are_new_known_mended_or_as_before_are_told_apart(commented: Commented, tmp_path: Path) -> None:
    then = {"a": "passed", "b": "failed", "c": "known_failure", "d": "errored", "e": "known_failure", "g": "skipped"}
    now = {"a": "failed", "b": "errored", "c": "known_failure", "d": "passed", "e": "passed", "f": "failed"}
    now["g"] = "failed"
    for name, outcomes in (("b.json", then), ("r.json", now)):
        write_run(tmp_path / name, recorded_suite([recorded_case(*each, f1=0.5) for each in outcomes.items()]))
    text = commented("r.json", "--baseline", "b.json")
    assert text.splitlines()[1].startswith("## Evaluation: **Do not merge**: ")
    assert text.splitlines()[3].startswith("3 new failures in 7 cases; 1 still failing. ")
    assert "7 cases: 2 passed, 3 failed, 1 errored, 1 known failure. Metrics against" in text
    assert "Metrics against the baseline: 1 not significant; 2 now pass." in text

    def listed(title: str) -> list[str]:
        section = re.split(rf"{re.escape(title)}[^\n]*\n\n", text)[1].partition("\n\n")[0]
        return re.findall(r"^- \*\*(\w)\*\* of s \(s.eval.yaml\): (.*)$", section, re.MULTILINE)

    new = "failed; not in the baseline"
    assert listed("### What got worse") == [("a", "passed -\\> failed"), ("f", new), ("g", new)]
    assert listed("Still failing (1)") == [("b", "errored")]
    assert listed("Known failures (1)") == [("c", "known failure")]
    assert listed("Now passing (2)") == [("d", "passed"), ("e", "passed")]


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("It takes ten days", "It takes two days", "answer: It takes <del>ten</del> <ins>two</ins> days"),
        ("退款需要十天。", "退款需要两天。", "answer: 退款需要<del>十</del><ins>两</ins>天。"),
        ("It takes ten days", "It takes days", "answer: It takes <del>ten</del> days"),
        ("It takes ten", "No idea, sorry", "```diff\n  - It takes ten\n  + No idea, sorry\n  ```"),
        ("It takes ten", "It takes ten", "answer, as before: It takes ten"),
        ("a b c d e f g h i j k l X", "a b c d e f g h i j k l Y", "... i j k l <del>X</del> <ins>Y</ins>"),
        ("mail me", "mail @octocat", "answer: mail <del>me</del> <ins>`@octocat`</ins>"),
        ("It is a/b", "It is @x|y", "answer: It is <del>a/b</del> <ins>`@x|y`</ins>"),
        ({"reply": "ten", "n": 1}, {"reply": "two", "n": 1}, "```diff\n  - ten\n  + two\n  ```"),
    ],
)
def test_the_words_that_went_and_came_are_marked(
    commented: Commented, tmp_path: Path, old: object, new: object, shown: str
) -> None:
    for name, answer, score in (("b.json", old, 1.0), ("r.json", new, 0.0)):
        write_run(tmp_path / name, recorded_suite([recorded_case("a", f1=score) | {"prediction": answer}]))
    assert f"{shown}\n" in commented("r.json", "--baseline", "b.json")


def test_a_baseline_without_answers_is_said_once(commented: Commented, tmp_path: Path) -> None:
    write_run(tmp_path / "b.json", recorded_suite([recorded_case("a", f1=1.0), recorded_case("b", f1=1.0)]))
    now = [recorded_case(name, "failed", f1=0.0) | {"prediction": "x"} for name in "ab"]
    write_run(tmp_path / "r.json", recorded_suite(now))
    text = commented("r.json", "--baseline", "b.json")
    assert text.count("The baseline's report has no answers of these cases; `--llmeval-texts=all` keeps them.") == 1


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r"}, "https://github.com/o/r"),
        ({"CI_PROJECT_URL": "https://git.example/g/p"}, "https://git.example/g/p/-"),
    ],
)
def test_cases_and_commits_link_to_the_repository_of_the_job(
    commented: Commented, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str
) -> None:
    bad = recorded_case("a", "failed", f1=0.0) | {"file": "my data/q|1.csv", "line": 6}
    write_run(tmp_path / "r.json", recorded_suite([bad]))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    text = commented("r.json")
    commit = "c" * 40
    assert f"- **a** of s ([my data/q\\|1.csv:6]({url}/blob/{commit}/my%20data/q%7C1.csv#L6)): failed\n" in text
    assert f"commit [{commit[:12]}]({url}/commit/{commit})." in text
    assert "](" not in commented("r.json", "--repository", "")


def test_links_name_files_from_the_top_of_the_checkout(
    commented: Commented, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "r.json", recorded_suite([recorded_case("a", "failed", f1=0.0)]))
    folder = tmp_path / "services" / "rag"
    (folder / "evals").mkdir(parents=True)
    (folder / "s.eval.yaml").touch()
    monkeypatch.chdir(folder / "evals")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "o/r")
    text = commented("../../../r.json", "--commit", "abcdef0")
    assert "(https://github.com/o/r/blob/abcdef0/services/rag/s.eval.yaml)" in text


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd"])
def test_a_file_outside_the_repository_has_no_link(commented: Commented, tmp_path: Path, path: str) -> None:
    write_run(tmp_path / "r.json", recorded_suite([recorded_case("a", "failed", f1=0.0)], path=path))
    text = commented("r.json", "--repository", "https://gitlab.example/o/r")
    assert "/blob/" not in text
    assert "(https://gitlab.example/o/r/-/commit/" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--repository", "javascript:x"), "found 'javascript:x', expected a web address such as"),
        (("--repository", "https://h.example/a)b"), "expected a web address such as"),
        (("--commit", "main"), "found 'main', expected the hash of a commit"),
    ],
)
def test_an_address_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["comment", str(tmp_path / "r.json"), *arguments])
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_a_failure_mode_that_was_fixed_and_comes_back_is_named(commented: Commented, tmp_path: Path) -> None:
    def run(name: str, failing: set[int], modes: dict[int, str], count: int) -> None:
        some = [
            {
                **recorded_case(f"c{number}", "failed" if number in failing else "passed", f1=0.5),
                "labels": {"modes": f"other; {modes[number]}"} if number in modes else {},
            }
            for number in range(count)
        ]
        write_run(tmp_path / name, recorded_suite(some))

    window, rude, late = "wrong refund window", "rude", "late"
    modes = {**dict.fromkeys(range(11), window), 11: rude, 12: rude, 13: late, 14: late}
    run("base.json", {11}, modes, 14)
    run(
        "run.json", {1, 2, 3, 11, 12, 14}, modes, 15
    )  # rude never was fixed, and the only case of late that fails is new
    lines = commented("run.json", "--baseline", "base.json").splitlines()
    start = lines.index("### Failure modes that are back")
    assert lines[start + 2 : start + 4] == ["- wrong refund window: back in 3 of 11", ""]
    assert "are back" not in commented("base.json", "--baseline", "run.json")
    assert "are back" not in commented("run.json")


def test_the_first_line_has_the_cause_and_every_case_its_suite_and_system(
    commented: Commented, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = [{"topic": "billing" if n < 10 else "other"} for n in range(40)]
    asked = {"input": "When?", "expected": "On Monday", "prediction": "On Friday", "lines": {"text": ["wrong day"]}}

    def run(name: str, broken: dict[str, set[int]]) -> None:
        write_run(
            tmp_path / name,
            *(
                recorded_suite(
                    [
                        recorded_case(f"c{n}", "failed" if n in bad else "passed", f1=float(n not in bad))
                        | asked
                        | {"labels": labels[n], "input": f"{'When' if n % 2 else 'What day'}?"}
                        | ({"reason": f"f1 {n % 2}, limit >= 0.5"} if n in bad else {})
                        for n in range(40)
                    ],
                    suite=f"s[{system}]",
                    variant=system,
                )
                for system, bad in broken.items()
            ),
        )

    run("b.json", {"large": {30}, "small": {30}})
    run("r.json", {"large": {30}, "small": {*range(8), 12, 30}})
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "o/r")
    monkeypatch.setenv("GITHUB_RUN_ID", "77")
    text = commented("r.json", "--baseline", "b.json", "--repository", "")
    first = (
        "## Evaluation: **Do not merge**: small 9 of 40 cases failed, 5 with f1 0, limit \\>= 0.5 per case; "
        "8 of 9 failures have topic=billing; start with c0"
    )
    assert text.splitlines()[1] == first
    counts = "9 new failures in 40 cases x 2 systems; 2 still failing. "
    assert text.splitlines()[3].startswith(counts)
    assert "[Report](https://github.com/o/r/actions/runs/77#artifacts)." in text
    above, _, folded = text.partition("<details>")
    assert "- **c0** of s\\[small\\] (s.eval.yaml): passed -\\> failed; f1 1.0000 -\\> 0.0000<br>the same in" in above
    assert re.findall(r"the same in .*?: ([c\d, ]+)<br>", above) == ["c2, c4, c6, c12", "c3, c5, c7"]
    assert "```sh\npytest --llmeval 's.eval.yaml::c0[small]'\n```" in above
    still = folded.partition("Still failing (2)")[2]
    assert re.findall(r"- \*\*(\w+)\*\* of s\\\[(\w+)\\\]", still) == [("c30", "large"), ("c30", "small")]
    assert "answer against expected: On <del>Monday</del> <ins>Friday</ins><br>text: wrong day" in still
    assert "[Report](https://x.example/r.html)." in commented("r.json", "--report-url", "https://x.example/r.html")
