"""``llmeval merge``: what belongs together is judged, everything else is refused by name."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import origin, ran, write_suite
from msgspec import structs

from pytest_llmeval import Observation
from pytest_llmeval.cli import main
from pytest_llmeval.core import CaseRecord
from pytest_llmeval.run import ResultOptions

COUNT = 3
REPORTS = ["report.json", str(Path("deep", "report.html")), "scores.csv"]


@pytest.fixture
def project(here: Path) -> Path:
    """A suite, and the files of its three shards."""
    write_suite(here)
    for index in range(1, COUNT + 1):
        write(here, f"{index}/{COUNT}")
    return here


def write(root: Path, shard: str, name: str = "", only: tuple[str, ...] = (), ran_as: Any = None, **more: Any) -> Path:
    path = root / "parts" / f"{name or shard.partition('/')[0]}.llmeval"
    origin(root, shard, **more).write_shard(path, ran(root, shard, only, **(ran_as or {})), root)
    return path


def test_shards_are_judged_together_and_reported(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "merge", "parts", *(f"--report={each}" for each in REPORTS)]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert (result["why"], result["written"]) == ([], REPORTS)
    assert [(each["cases"], each["gates"][0]["outcome"]) for each in result["suites"]] == [(5, "passed")]
    report = json.loads((project / "report.json").read_text(encoding="utf-8"))
    assert report["suites"][0]["counts"]["passed"] == 5
    assert report["run"]["duration_s"] == 7.5
    assert (project / "deep" / "report.html").is_file()
    assert len((project / "scores.csv").read_text(encoding="utf-8").splitlines()) == 1 + 5


def test_the_suites_may_be_above_the_current_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "deep" / "er").mkdir(parents=True)
    monkeypatch.chdir(project / "deep" / "er")
    assert main(["merge", str(project / "parts")]) == 0
    monkeypatch.chdir("/")
    assert main(["merge", str(project / "parts"), f"--rootdir={project}"]) == 0


def test_a_gate_that_fails_decides_the_exit_code(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_suite(project, gates=["exact_match >= 0.9"])
    for index in range(1, COUNT + 1):
        write(project, f"{index}/{COUNT}")
    assert main(["merge", "parts"]) == 1
    assert "gate FAILED  exact_match >= 0.9" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ran_as", "line"),
    [
        ({"failures": {"test_x.py::test_x"}}, "exit code 1: 1 other test failed in the shards"),
        ({"uncollected": True}, "exit code 1: tests could not be collected"),
        ({"unfinished": {"s.eval.json::p"}}, "exit code 1: 1 selected test of eval suites did not run"),
        ({"faults": {"t.eval.yaml": ["t.eval.yaml  wrong"]}}, ""),
    ],
)
def test_what_went_wrong_in_a_shard_decides_the_exit_code(
    project: Path, capsys: pytest.CaptureFixture[str], ran_as: dict[str, Any], line: str
) -> None:
    write(project, "2/3", ran_as=ran_as)
    assert main(["merge", "parts"]) == 1
    assert line in capsys.readouterr().err


def test_shards_of_which_none_collected_tests_are_refused(here: Path) -> None:
    write_suite(here)
    write(here, "1/1", only=("nothing",), items=0, ran_as={"ended": "SIGTERM"})
    assert main(["merge", "parts"]) == 1


def test_gates_that_a_shard_requires_are_required_of_all(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_suite(here, gates=[])
    write(here, "1/1")
    assert main(["merge", "parts"]) == 0
    assert main(["merge", "parts", "--require-gates"]) == 1
    write(here, "1/1", require_gates=True)
    assert main(["merge", "parts"]) == 1
    assert "no gate was judged" in capsys.readouterr().err


def test_shards_without_results_do_not_pass(here: Path) -> None:
    write_suite(here)
    write(here, "1/1", only=("nothing",))
    assert main(["merge", "parts"]) == 5
    write(here, "1/1", only=("nothing",), ran_as={"failures": {"test_x.py::test_x"}})
    assert main(["merge", "parts"]) == 1


def _remove(root: Path) -> None:
    (root / "parts" / "2.llmeval").unlink()


def _double(root: Path) -> None:
    shutil.copy(root / "parts" / "2.llmeval", root / "parts" / "2b.llmeval")


def _cut(root: Path) -> None:
    path = root / "parts" / "2.llmeval"
    path.write_bytes(path.read_bytes()[:-20])


def _edit(root: Path) -> None:
    write_suite(root, gates=["exact_match >= 0.1"])


def _edit_data(root: Path) -> None:
    path = root / "s.eval.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"b"', '"c"'), encoding="utf-8")


def _gone(root: Path) -> None:
    (root / "s.eval.json").unlink()


def _with(shard: str = "2/3", **more: Any) -> Callable[[Path], object]:
    return lambda root: write(root, shard, "2", **more)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (_remove, "the file of shard 2/3 is missing: name the files of all 3 shards"),
        (_double, "parts/2b.llmeval: found shard 2/3 again, expected it once: parts/2.llmeval has it"),
        (_cut, "parts/2.llmeval: found a file that is cut or damaged, expected a whole shard file"),
        (_edit, "parts/2.llmeval: found a run of s.eval.json that differs in suite file, expected what"),
        (_edit_data, "parts/2.llmeval: found a run of s.eval.json that differs in suite file, expected"),
        (_gone, "parts/2.llmeval: s.eval.json cannot be judged here: "),
        (_with(commit="abc"), "parts/2.llmeval: found commit abc, expected none, which is checked out here"),
        (_with(versions={"numpy": "1.0"}), "parts/2.llmeval: found numpy 1.0, expected "),
        (
            _with(options=ResultOptions(judge_model="a:b")),
            "parts/2.llmeval: found judge-model 'a:b', expected None as in",
        ),
        (_with(options=ResultOptions(selection="-k x")), "parts/2.llmeval: found selection '-k x', expected '' as in"),
        (
            _with(collected="sha256:1"),
            "parts/2.llmeval: found all tests over cases '5 tests with fingerprint",
        ),
        (
            _with(collected="sha256:0", items=0, ran_as={"ended": "SIGTERM"}),
            "parts/2.llmeval: found a run that ended before it had collected tests (SIGTERM), expected a whole one",
        ),
        (_with("2/4"), "parts/2.llmeval: found shard 2/4, expected one of 3, as in the other files"),
        (_with(""), "parts/2.llmeval: found a run without --llmeval-shard, expected a shard like the others"),
    ],
)
def test_what_does_not_belong_together_is_refused_by_name(
    project: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], object], line: str
) -> None:
    change(project)
    assert main(["merge", "parts", "--report=report.json"]) == 1
    said = capsys.readouterr()
    assert line in said.err
    assert said.out == ""
    assert not (project / "report.json").exists()


@pytest.mark.parametrize("same", [True, False])
def test_scores_by_other_steps_of_a_judge_are_not_merged(
    here: Path, capsys: pytest.CaptureFixture[str], same: bool
) -> None:
    write_suite(here, evaluators=[{"judge": {"criteria": "Short."}}], judge="fixture:x", gates=["judge_score >= 0.1"])
    for shard in ("1/3", "2/3", "3/3"):
        run = ran(here, shard)
        steps = ["Read."] if same or shard != "2/3" else ["Guess."]
        seen = {"judge": Observation({"score": 0.5, "n": 1}, {"steps": steps})}
        for item, each in run.items.items():
            (record,) = each.part.records
            part = structs.replace(each.part, records=[CaseRecord(record.id, observations=seen)])
            run.items[item] = structs.replace(each, part=part)
        origin(here, shard).write_shard(here / "parts" / f"{shard[0]}.llmeval", run, here)
    assert main(["merge", "parts"]) == (0 if same else 1)
    assert ("llmeval: found steps of judge in s.eval.json ['" in capsys.readouterr().err) != same


def test_another_evaluator_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = origin(project, "2/3")
    other = structs.replace(made, suites=[structs.replace(made.suites[0], evaluators="sha256:0")])
    other.write_shard(project / "parts" / "2.llmeval", ran(project, "2/3"), project)
    assert main(["merge", "parts"]) == 1
    assert "parts/2.llmeval: found a run of s.eval.json that differs in evaluators" in capsys.readouterr().err


def test_parts_of_another_selection_are_merged(here: Path) -> None:
    write_suite(here)
    write(here, "", "a", ("p", "q"))
    write(here, "", "b", ("r", "s", "wrong"))
    assert main(["merge", "parts/a.llmeval", "parts/b.llmeval"]) == 0


def test_tests_that_no_part_has_are_missed_by_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_suite(here)
    write(here, "", "a", ("p", "q"))
    write(here, "", "b", ("r", "s"))
    assert main(["merge", "parts"]) == 1
    assert "no file has s.eval.json::wrong: name the files of all parts" in capsys.readouterr().err


CHOSEN: dict[str, Any] = {
    "options": ResultOptions(selection="-k 'not wrong'"),
    "ran_as": {"unwanted": {"s.eval.json::wrong"}},
}


def test_tests_that_the_user_leaves_out_of_all_parts_are_not_missed(here: Path) -> None:
    write_suite(here)
    write(here, "", "a", ("p", "q"), **CHOSEN)
    write(here, "", "b", ("r", "s"), **CHOSEN)
    assert main(["merge", "parts"]) == 0
    assert main(["merge", "parts", "--require-gates"]) == 1


def test_a_part_is_missed_though_the_user_leaves_out_tests_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_suite(here)
    write(here, "", "a", ("p", "q"), **CHOSEN)
    write(here, "", "b", ("r",), **CHOSEN)
    assert main(["merge", "parts"]) == 1
    assert "no file has s.eval.json::s: name the files of all parts" in capsys.readouterr().err


@pytest.mark.parametrize("parts", [("p", "q"), ("p",)])
def test_parts_that_the_user_chooses_have_to_be_all_there(
    here: Path, capsys: pytest.CaptureFixture[str], parts: tuple[str, ...]
) -> None:
    everything = {f"s.eval.json::{each}" for each in ("p", "q", "r", "s", "wrong")}
    write_suite(here)
    for each in parts:
        ran_as = {"unwanted": everything - {f"s.eval.json::{each}"}}
        write(here, "", each, (each,), ran_as=ran_as, options=ResultOptions(selection=f"-k {each}"))
    assert main(["merge", "parts"]) == 1
    missing = sorted(everything - {f"s.eval.json::{each}" for each in parts})
    assert f"no file has {', '.join(missing)}: name" in capsys.readouterr().err


def test_tests_that_two_parts_have_are_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_suite(here)
    write(here, "", "a", ("p", "q", "wrong"))
    write(here, "", "b", ("q", "r", "s"))
    assert main(["merge", "parts"]) == 1
    line = "parts/b.llmeval: found results that parts/a.llmeval has, too, expected each once: s.eval.json::q"
    assert line in capsys.readouterr().err


def test_a_folder_without_shards_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "parts").mkdir()
    assert main(["merge", "parts"]) == 1
    assert "parts has no *.llmeval: name the files of all shards" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".xml", ".llmeval"])
def test_a_report_of_another_suffix_is_refused_in_a_line(suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", "parts", f"--report=x{suffix}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"--report: found suffix '{suffix}', expected one of ")


def test_an_anchor_needs_an_approval(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", "parts", "--snapshot-anchor"]) == 1
    assert "--snapshot-anchor needs --snapshot-update" in capsys.readouterr().err


def test_an_interrupt_ends_a_command_in_a_line(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pytest_llmeval.run.finish_run", interrupted)
    assert main(["merge", str(project / "parts")]) == 130
    assert capsys.readouterr().err == "interrupted\n"
