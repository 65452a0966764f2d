"""Situations of people at a terminal: what they run, and what they see. `.ci/recorded_failures.py` records them."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from running import WITHOUT_UNUSED, run_python

RECORDED = Path(__file__).parent / "plugin" / "screens"
_TOPICS = ("billing", "shipping", "returns", "account", "hours")
_HOST = ("platform", "rootdir", "configfile", "plugins", "cachedir", "asyncio")


class Situation(NamedTuple):
    """What somebody runs in a folder.

    Attributes:
        command: Its words after ``pytest --llmeval``, or after ``llmeval``.
        files: Name to text, or to data that is written as JSON.
        tool: ``pytest`` or ``llmeval``.
        before: Words of a run before, such as one that approves scores.
    """

    command: str
    files: Mapping[str, Any]
    tool: str = "pytest"
    before: str = ""


def _case(name: str, expected: str, prediction: str, **labels: str) -> dict[str, Any]:
    return {"id": name, "input": name, "expected": expected, "prediction": prediction, "labels": labels}


def _suite(cases: Any, **keys: Any) -> dict[str, Any]:
    return {"evaluators": [{"text": {"metrics": ["f1", "exact_match"]}}], **keys, "cases": cases}


def _support(number: int, wrong: Callable[[int], str]) -> Iterator[dict[str, Any]]:
    """Yield cases of five topics, with the answers that `wrong` gives in place of the right ones."""
    for place in range(number):
        topic = _TOPICS[place % len(_TOPICS)]
        right = f"The {topic} answer {place} costs 20 euros"
        yield _case(f"{topic}-{place:03}", right, wrong(place) or right, topic=topic)


def _refusal(place: int) -> str:
    """Return wrong answers, of several kinds, to about one in nine cases: most of them about billing."""
    if place % 5 and place % 37:
        return ""
    if place % 5 == 0 and place % 7 > 2:
        return ""
    return ("Sorry, I cannot help with that", "The answer costs nothing at all", "No")[place % 3]


_CAPITALS = [
    _case("france", "Paris", "Paris", kind="place"),
    _case("spain", "Madrid", "Madrid", kind="place"),
    _case("when", "In 1991", "I do not know", kind="date"),
    _case("date", "20 June 1991", "Some day in June", kind="date"),
    _case("who", "The Bundestag", "The Senate, or the Bundestag", kind="person"),
]
_MOSTLY_RIGHT = _suite(_CAPITALS[:3], thresholds={"f1": 0.5}, gates=["f1 >= 0.6"])
_GATED = _suite(_CAPITALS, group_by=["kind"], gates=["f1 >= 0.7", "exact_match >= 0.4"])
_SYSTEMS = {
    **_suite([{key: each[key] for key in ("id", "input", "expected")} for each in _CAPITALS], gates=["f1 >= 0.7"]),
    "systems": {"large": {"predictions": "large.json"}, "small": {"predictions": "small.json"}},
}
_LARGE = [{"id": each["id"], "prediction": each["expected"]} for each in _CAPITALS]
_SMALL = [{"id": each["id"], "prediction": each["prediction"]} for each in _CAPITALS]
_FAULTS = """\
evaluators:
  - text: {metrics: [f1, exact_mach]}
thresholds: {f2: 0.5}
gates: ["exactmatch >= 0.8"]
cases:
  - {id: a, input: x, expected: y, predicton: y}
"""
_ASKING = {**_suite([{"id": "a", "input": "x", "expected": "y"}]), "target": "shop.app:answer"}
_RAISING = {**_suite([{"id": name, "input": name, "expected": "y"} for name in "abc"]), "target": "app:answer"}

SITUATIONS: Mapping[str, Situation] = {
    "all_pass": Situation("", {"capitals.eval.yaml": _suite(_CAPITALS[:2], gates=["f1 >= 0.7"])}),
    "one_case_fails": Situation("", {"capitals.eval.yaml": _MOSTLY_RIGHT}),
    "a_gate_fails_over_passing_cases": Situation("", {"capitals.eval.yaml": _GATED}),
    "a_gate_fails_verbose": Situation("-v", {"capitals.eval.yaml": _GATED}),
    "a_gate_fails_quiet": Situation("-q", {"capitals.eval.yaml": _GATED}),
    "a_group_fails": Situation(
        "",
        {"capitals.eval.yaml": _suite(_CAPITALS, gates=[{"metric": "f1", "by": "kind", "min": 0.5}])},
    ),
    "seventy_of_600_fail": Situation(
        "",
        {"support.eval.yaml": _suite(list(_support(600, _refusal)), thresholds={"f1": 0.5}, gates=["f1 >= 0.95"])},
    ),
    "two_systems": Situation("", {"capitals.eval.yaml": _SYSTEMS, "large.json": _LARGE, "small.json": _SMALL}),
    "two_suites_fail": Situation("", {"a.eval.yaml": _GATED, "b.eval.yaml": _MOSTLY_RIGHT}),
    "one_of_two_suites_fails": Situation("", {"a.eval.yaml": _GATED, "b.eval.yaml": _suite(_CAPITALS[:2])}),
    "the_target_raises": Situation(
        "",
        {"a.eval.yaml": _RAISING, "app.py": "def answer(word):\n    raise ValueError('no such model')\n"},
    ),
    "the_module_is_missing": Situation("", {"a.eval.yaml": _ASKING, "shops.py": ""}),
    "scores_fell": Situation(
        "",
        {"a.eval.yaml": {**_suite(_CAPITALS[2:]), "snapshot": True}},
        before="--snapshot-update",
    ),
    "faults_of_a_suite": Situation("", {"a.eval.yaml": _FAULTS}),
    "broken_yaml": Situation(
        "", {"a.eval.yaml": "evaluators: [text]\ncases:\n  - {id: a, expected: 'y}\n  - {id: b}\n"}
    ),
    "an_empty_folder": Situation("", {}),
    "a_name_that_is_not_collected": Situation("", {"capitals.yaml": _GATED}),
    "validate": Situation("validate a.eval.yaml", {"a.eval.yaml": _FAULTS}, "llmeval"),
    "validate_an_empty_folder": Situation("validate .", {}, "llmeval"),
    "help": Situation("--help", {}, "llmeval"),
    "an_unknown_evaluator": Situation("evaluators txet", {}, "llmeval"),
}


WIDE = ("a_gate_fails_quiet", "a_group_fails", "scores_fell", "seventy_of_600_fail", "the_module_is_missing")
"""Situations that show more at 120 columns than at 80; the others only have longer rules."""

SCREENS = [*((name, 80) for name in SITUATIONS), *((name, 120) for name in WIDE)]


def _write(folder: Path, files: Mapping[str, Any]) -> None:
    for name, content in {"pytest.ini": "[pytest]\n", **files}.items():
        text = content if isinstance(content, str) else json.dumps(content, indent=1)
        (folder / name).write_text(text, encoding="utf-8")


def screen(name: str, width: int, folder: Path) -> str:
    """Return what a situation shows in an empty folder, without what depends on machine and time."""
    situation = SITUATIONS[name]
    _write(folder, situation.files)
    hidden = ("CI", "BUILD_NUMBER", "FORCE_COLOR", "PY_COLORS", "GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS")
    names = {key: value for key, value in os.environ.items() if key not in hidden and not key.startswith("PYTEST_")}
    environment = {**names, "COLUMNS": str(width)}
    start = ["-m", "pytest", *WITHOUT_UNUSED, "-pno:rerunfailures", "--llmeval"]
    if situation.before:
        run_python([*start, *situation.before.split()], environment, folder)
        path = folder / "a.eval.yaml"
        path.write_text(path.read_text("utf-8").replace("Some day in June", "In May").replace("the Bundestag", "both"))
    start = start if situation.tool == "pytest" else ["-m", "pytest_llmeval"]
    done = run_python([*start, *situation.command.split()], environment, folder)
    lines = [line for line in (done.out + done.err).splitlines() if not line.startswith(_HOST)]
    text = "".join(f"{line.rstrip()}\n" for line in lines).replace(str(folder), "FOLDER")
    return re.sub(r"(?m)^(?:=+ )?(.* in )\d+\.\d+s(?: =+)?$", r"== \1TIME ==", text)


def record() -> Iterator[Path]:
    """Write the recorded screens; yield their paths."""
    shutil.rmtree(RECORDED, ignore_errors=True)
    RECORDED.mkdir()
    for name, width in SCREENS:
        with tempfile.TemporaryDirectory() as folder:
            path = RECORDED / f"{name}-{width}.txt"
            path.write_text(screen(name, width, Path(folder).resolve()), encoding="utf-8")
            yield path
