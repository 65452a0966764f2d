"""Predictions asked of a target: plain, async, slow, broken or absent; each fails its own case only."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Project

TARGETS = """\
import asyncio
import sys
import threading

import pytest


def plain(word):
    return word.upper()


async def awaited(word):
    await asyncio.sleep(0)
    return word.upper()


class Bot:
    async def __call__(self, word):
        return await awaited(word)


bot = Bot()


def mapping(word):
    return {"answer": word}


def a_set(word):
    return iter({word})


def not_a_number(word):
    return [float("nan")]


def leaves(word):
    sys.exit(3)


async def leaves_async(word):
    sys.exit("bye")


def hangs(word):
    threading.Event().wait()


async def hangs_async(word):
    await asyncio.Event().wait()


def no_key(word):
    pytest.skip("no API key")


def takes_nothing():
    return ""


def deep(word):
    return deeper(word)


def deeper(word):
    raise ValueError(f"cannot answer {word!r}")


async def deep_async(word):
    await asyncio.sleep(0)
    return deeper(word)
"""


def _reasons(project: "Project", workers: int, targets: dict[str, object]) -> dict[str, tuple[str, str | None]]:
    project.write("bots.py", TARGETS)
    for name, target in targets.items():
        project.suite(f"{name}.eval.yaml", [{"id": "a", "input": "a", "expected": "A"}], target=target)
    ran = project.run(workers=workers)
    assert ran.code == 1
    assert "pytest_llmeval" not in ran.section("FAILURES")
    assert "Traceback" not in ran.text
    found = {name: suite["cases"][0] for name, suite in ran.suites.items()}
    return {name: (case["outcome"], case["reason"]) for name, case in found.items()}


def test_what_a_target_does_concerns_its_case_only(project: "Project", workers: int) -> None:
    slow = {"timeout": 0.2}
    targets: dict[str, object] = {
        "plain": "bots:plain",
        "awaited": "bots:awaited",
        "timely": {"python": "bots:bot", "timeout": 60},
        "method": "bots:bot",
        "mapping": "bots:mapping",
        "a_set": "bots:a_set",
        "not_a_number": "bots:not_a_number",
        "leaves": "bots:leaves",
        "leaves_async": "bots:leaves_async",
        "hangs": {"python": "bots:hangs", **slow},
        "hangs_async": {"python": "bots:hangs_async", **slow},
        "no_key": "bots:no_key",
        "deep": "bots:deep",
        "takes_nothing": "bots:takes_nothing",
    }
    reasons = _reasons(project, workers, targets)
    unscorable = reasons.pop("not_a_number")
    assert reasons == {
        "plain": ("passed", None),
        "awaited": ("passed", None),
        "timely": ("passed", None),
        "method": ("passed", None),
        "mapping": ("passed", None),
        "a_set": (
            "errored",
            "the target returned set_iterator, expected a value",
        ),
        "leaves": ("errored", "the target called sys.exit(3)"),
        "leaves_async": ("errored", "the target called sys.exit('bye')"),
        "hangs": ("errored", "the target took longer than 0.2 s"),
        "hangs_async": ("errored", "the target took longer than 0.2 s"),
        "no_key": ("skipped", "Skipped: no API key"),
        "deep": ("errored", "ValueError: cannot answer 'a' (bots.py:66 in deeper)"),
        "takes_nothing": (
            "errored",
            (
                "TypeError: takes_nothing() takes 0 positional arguments but 1 was given (bots.py:57); a target gets "
                "the `input` of a case alone, or with `case` if it requires an argument of that name too"
            ),
        ),
    }
    assert unscorable[0] == "failed"


def test_a_target_that_cannot_be_had_is_one_clear_line_per_case(project: "Project", workers: int) -> None:
    project.write("broken.py", "import no_such_library\n")
    project.write("exits.py", "import sys\nsys.exit(4)\n")
    reasons = _reasons(
        project,
        workers,
        {
            "absent": "no_such_module:answer",
            "broken": "broken:answer",
            "exits": "exits:answer",
            "misspelt": "bots:plian",
            "none": None,
        },
    )
    no_import = "module {!r} cannot be imported: ModuleNotFoundError: No module named {!r}"
    no_target = (
        "no prediction and no target: add 'prediction' to the case or 'target' to the suite, or define "
        "llmeval_target in a conftest.py"
    )
    assert reasons == {
        "absent": (
            "errored",
            (
                f"target 'no_such_module:answer': {no_import.format('no_such_module', 'no_such_module')}; searched .: "
                "add no_such_module.py there, or its folder to 'pythonpath' in pytest's settings"
            ),
        ),
        "broken": (
            "errored",
            f"target 'broken:answer': {no_import.format('broken', 'no_such_library')}",
        ),
        "exits": ("errored", "target 'exits:answer': module 'exits' cannot be imported: SystemExit: 4"),
        "misspelt": ("errored", "target 'bots:plian': module 'bots' has no callable 'plian' (did you mean 'plain'?)"),
        "none": ("errored", no_target),
    }


def test_the_traceback_of_a_target_shows_the_users_frames_only(project: "Project") -> None:
    project.write("bots.py", TARGETS)
    cases = [{"id": "a", "input": "a", "expected": "A"}]
    project.suite("plain.eval.yaml", cases, target="bots:deep")
    project.suite("awaited.eval.yaml", cases, target="bots:deep_async")
    project.suite("timely.eval.yaml", cases, target={"python": "bots:deep", "timeout": 60})
    failures = project.run("-v").section("FAILURES")
    assert ".eval.yaml:" not in failures
    assert failures.count("return deeper(word)") == 3
    assert failures.count("E       ValueError: cannot answer 'a'") == 3
    for foreign in ("pytest_llmeval", "asyncio/", "threading", "LoadedCase", "_pytest"):
        assert foreign not in failures


def test_modules_beside_the_suite_are_found_from_any_folder(project: "Project") -> None:
    project.write("evals/helpers.py", "def answer(word): return word.upper()\n")
    project.asking("evals/beside.eval.yaml", "helpers:answer", "a", "b")
    ran = project.run(workers=2)
    assert ran.counts == {"passed": 2}


def test_two_modules_of_one_name_beside_two_suites_are_not_confused(project: "Project") -> None:
    for folder, answer in (("one", "A"), ("two", "B")):
        project.write(f"{folder}/bot.py", f"def answer(word): return {answer!r}\n")
        project.asking(f"{folder}/{folder}.eval.yaml", "bot:answer", "a")
    ran = project.run()
    assert ran.outcomes("one") == {"a": "passed"}
    reason = ran.suites["two"]["cases"][0]["reason"]
    assert reason.startswith("target 'bot:answer': module 'bot' was already imported from ")
    assert reason.endswith("rename one of them")


def test_a_failing_case_shows_scores_limits_and_the_difference(project: "Project") -> None:
    case = {"id": "a", "expected": ["the red house", "a house"], "prediction": "the blue house"}
    project.suite("s.eval.yaml", [case], thresholds={"f1": 0.9, "exact_match": {"min": 0.5}})
    ran = project.run()
    text = ran.section("FAILURES")
    assert "f1 0.6667, limit >= 0.9; exact_match 0.0000, limit >= 0.5" in text
    assert "difference: the [-red-]{+blue+} house" in text
    assert "FAILED s.eval.yaml::a - f1 0.6667, limit >= 0.9; exact_match 0.0000, limit >= 0.5" in ran.text


def test_more_calls_at_a_time_than_the_run_makes_are_reported(project: "Project", workers: int) -> None:
    project.write("bots.py", TARGETS)
    for name, most in (("few", 4), ("many", 64)):
        project.asking(f"{name}.eval.yaml", {"python": "bots:awaited", "concurrency": most}, "a")
    note = (
        "many.eval.yaml: found target.concurrency 64, and the run makes 16 calls at a time: "
        "--llmeval-concurrency=64 makes as many"
    )
    ran = project.run(workers=workers)
    assert (ran.code, note in ran.text, "few.eval.yaml: found" in ran.text) == (0, True, False)
    assert "target.concurrency" not in project.run("--llmeval-concurrency=64", workers=workers).text
