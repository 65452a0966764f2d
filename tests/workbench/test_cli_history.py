"""``llmeval history``: the last runs of a suite, in 80 columns."""

from collections.abc import Callable
from pathlib import Path

import pytest
from builders import note_runs, run_line, write_approvals
from wcwidth import wcswidth

from pytest_llmeval.cli import main

SUITE = "suite: support\nevaluators: [text]\ncases: [{id: a, expected: x, prediction: x}]\n"

Shown = Callable[..., list[str]]


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shown:
    """A project with one suite; runs the command and returns the lines that it prints."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.eval.yaml").write_text(SUITE, encoding="utf-8")

    def run(*arguments: str, code: int = 0, error: bool = False) -> list[str]:
        assert main(["history", *arguments]) == code
        return capsys.readouterr()[error].splitlines()

    return run


def test_runs_are_shown_with_values_intervals_gates_and_commits(shown: Shown, tmp_path: Path) -> None:
    gates = {"f1 >= 0.4": "passed", "drop(f1) <= 0.02": "failed", "f1 >= 0.9": "not_judged"}
    note_runs(
        tmp_path,
        run_line(1, 0.5, basis={"data": "a"}, intervals={"f1": [0.25, 0.75]}, gates={"f1 >= 0.4": "passed"}),
        run_line(2, None, basis={"data": "b"}, gates=gates),
        run_line(3, 0.25, commit=None),
    )
    write_approvals(tmp_path, [{"time": "2026-01-03", "values": {"f1": 0.25}}])
    assert shown("s.eval.yaml") == [
        "s.eval.yaml: 3 runs, 1 approval",
        "",
        "f1",
        "when              commit    value        interval  gates",
        "2026-01-01 10:00  0101010  0.5000  0.2500..0.7500  passed 1",
        "-- changed: data --",
        "2026-01-02 10:00  0202020     n/a                  FAILED 1/2",
        "2026-01-03 10:00           0.2500                              approved",
        "",
        "failed gates",
        "2026-01-02 10:00  drop(f1) <= 0.02",
    ]


@pytest.mark.parametrize("name", ["support", "s", "s.eval.yaml"])
def test_a_suite_is_found_by_its_name_in_the_file_or_that_of_the_file(shown: Shown, tmp_path: Path, name: str) -> None:
    note_runs(tmp_path, run_line(1))
    assert shown(name)[0] == "s.eval.yaml: 1 run, 0 approvals"


def test_the_history_of_a_suite_is_found_from_any_folder(
    shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_runs(tmp_path, run_line(1))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert shown("../s.eval.yaml")[0] == "s.eval.yaml: 1 run, 0 approvals"


def test_the_runs_of_a_suite_that_is_gone_are_shown(shown: Shown, tmp_path: Path) -> None:
    note_runs(tmp_path, run_line(1, path="gone/old.eval.yaml"))
    assert shown("gone/old.eval.yaml")[0] == "gone/old.eval.yaml: 1 run, 0 approvals"


def test_an_unknown_or_ambiguous_name_is_refused(shown: Shown, tmp_path: Path) -> None:
    expected = "no suite 'suport' here (did you mean 'support'?): name a suite, or its file"
    assert shown("suport", code=2, error=True) == [expected]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "t.eval.yaml").write_text(SUITE, encoding="utf-8")
    assert shown("support", code=2, error=True) == [
        "found 2 suites 'support', expected one: s.eval.yaml, b/t.eval.yaml"
    ]


def test_a_suite_without_runs_is_said_to_have_none(shown: Shown) -> None:
    (line,) = shown("s", code=1, error=True)
    assert line == "s.eval.yaml: no runs and no approvals: they are noted for suites with 'snapshot'"


def test_an_unknown_metric_is_refused(shown: Shown, tmp_path: Path) -> None:
    note_runs(tmp_path, run_line(1))
    (line,) = shown("s", "--metric", "f2", code=2, error=True)
    assert line == "unknown metric f2, did you mean f1?"


def test_of_many_runs_the_last_are_shown(shown: Shown, tmp_path: Path) -> None:
    note_runs(tmp_path, *(run_line(day) for day in range(1, 29)))
    lines = shown("s", "--last", "2")
    assert lines[0] == "s.eval.yaml: 28 runs, 0 approvals; the last 2"
    assert [line[:10] for line in lines[4:]] == ["2026-01-27", "2026-01-28"]
    assert len(shown("s")) == 24


def test_of_many_metrics_three_are_shown_and_the_others_named(shown: Shown, tmp_path: Path) -> None:
    note_runs(tmp_path, run_line(1, values=dict.fromkeys("abcde", 0.5)))
    lines = shown("s")
    assert [line for line in lines if len(line) == 1] == ["a", "b", "c"]
    assert lines[-1] == "2 more metrics (--metric NAME): d, e"
    assert [line for line in shown("s", "--metric", "e", "--metric", "a") if len(line) == 1] == ["a", "e"]


def test_left_out_lines_are_counted_and_named(shown: Shown, tmp_path: Path) -> None:
    note_runs(tmp_path, "{", run_line(1), '"\x1b[31m\u202e"')
    first, *others = shown("s", error=True)
    assert first == "left out for 2 faults:"
    assert [line.partition(" ")[0] for line in others] == [
        ".llmeval/history.jsonl:1:2",
        ".llmeval/history.jsonl:3:2",
    ]
    assert "\x1b" not in "".join(others)


def test_nothing_is_wider_than_80_columns(shown: Shown, tmp_path: Path) -> None:
    wide = "\u202ewide name 東京" * 30
    values = {wide: -99_999.5, "x" * 200: 1e300}
    gates = {wide: "failed", **{str(n): "failed" for n in range(120)}}
    more = {"intervals": {wide: [-99_999.5, -99_999.5]}, "gates": gates, "variant": wide, "commit": "\u202e東" * 9}
    note_runs(tmp_path, run_line(1, values=values, **more), run_line(2, values=values, **more))
    lines = shown("s")
    assert max(map(wcswidth, lines)) <= 80
    assert "\u202e" not in "".join(lines)


def test_the_picture_shows_the_same_runs(shown: Shown, tmp_path: Path) -> None:
    note_runs(tmp_path, *(run_line(day) for day in range(1, 10)))
    shown("s", "--last", "4", "--svg", "h.svg")
    assert (tmp_path / "h.svg").read_text(encoding="utf-8").count("<g>") == 4
