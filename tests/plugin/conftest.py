"""Helpers of the end-to-end tests: a project in a folder of its own, and pytest run on it in a process of its own."""

__all__ = ("Project", "Ran")

import json
import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from running import WITHOUT_UNUSED, run_python
from scripted_judges import KEY, Judged
from servers import LlmServer

_SLOW_PLUGINS = ("rerunfailures", "syrupy")
"""Plugins of the test extra that few runs need, by entry point; each takes its time to load."""

CAPITALS = """\
suite: capitals
evaluators:
  - text: {metrics: [exact_match, f1]}
group_by: [continent]
thresholds: {f1: 0.5}
gates:
  - f1 >= 0.6
  - {metric: f1, by: continent, min: 0.4}
cases:
  - {id: paris, input: France, expected: Paris, prediction: Paris, labels: {continent: Europe}, tags: [smoke]}
  - {id: 東京, input: Japan, expected: Tokyo, prediction: Tokyo, labels: {continent: Asia}, tags: [smoke, far]}
  - {id: "new delhi [in] 🎉", input: India, expected: New Delhi, prediction: New Delhi, labels: {continent: Asia}}
  - {id: "quito[1]", input: Ecuador, expected: Quito, prediction: Lima, labels: {continent: America}}
"""


@dataclass(frozen=True)
class Ran:
    """What one run of pytest left behind.

    Attributes:
        code: Exit code.
        text: Everything it printed.
        counts: Outcome to number, as in the last line; gates and snapshots with the tests.
        report: The JSON report, or an empty mapping if none was written.
    """

    code: int
    text: str
    counts: dict[str, int]
    report: dict[str, Any] = field(default_factory=dict)

    @property
    def suites(self) -> dict[str, Any]:
        """The suites of the report by name."""
        return {suite["suite"]: suite for suite in self.report.get("suites", ())}

    def outcomes(self, suite: str) -> dict[str, str]:
        """Return case id to outcome."""
        return {case["id"]: case["outcome"] for case in self.suites[suite]["cases"]}

    def gates(self, suite: str) -> dict[str, str]:
        """Return gate to outcome."""
        return {gate["gate"]: gate["outcome"] for gate in self.suites[suite]["gates"]}

    def section(self, title: str) -> str:
        """Return the text of a section, such as ``FAILURES``; empty where there is none."""
        parts = re.split(r"(?m)^=+ (.+?) =+$", self.text)
        return dict(zip(parts[1::2], parts[2::2], strict=True)).get(title, "")

    def verdicts(self) -> dict[str, str]:
        """Return node id to verdict of a run with ``-v``."""
        words = "PASSED|FAILED|SKIPPED|UNDECIDED|ERROR|XFAIL|XPASS"
        found = re.findall(rf"(?m)^\[gw\d+\] +\[ *\d+%\] ({words}) (\S.*?) *$", self.text)
        lines = re.findall(rf"(?m)^(?!\[gw|{words})(\S.*?::.*?) ({words})\b", self.text)
        return {nodeid: verdict for verdict, nodeid in found} | dict(lines)

    def ids(self) -> list[str]:
        """Return the node ids that ``--collect-only -q`` lists."""
        return [line for line in self.text.splitlines() if "::" in line]


class Project:
    """A folder with suites and tests, and a way to run pytest on it.

    Attributes:
        path: The folder.
        libraries: What takes long to import and is imported by every run: it is, before they start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.libraries: tuple[str, ...] = ()
        self.ini()

    def ini(self, text: str = "") -> None:
        """Write pytest.ini, which also makes this folder the rootdir."""
        self.write("pytest.ini", "[pytest]\n" + textwrap.dedent(text))

    def write(self, name: str, text: str) -> Path:
        """Write a file, in a folder of the project."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def suite(self, name: str, cases: Sequence[dict[str, Any]], **top: Any) -> Path:
        """Write a suite file that scores exact_match and f1."""
        content = {"evaluators": [{"text": {"metrics": ["exact_match", "f1"]}}], **top, "cases": list(cases)}
        return self.write(name, json.dumps(content, ensure_ascii=False, indent=1))

    def asking(self, name: str, target: "str | dict[str, Any]", *inputs: str, **top: Any) -> Path:
        """Write a suite whose cases carry no prediction: id and input are the word, the answer is it in capitals."""
        cases = [{"id": word, "input": word, "expected": word.upper()} for word in inputs]
        return self.suite(name, cases, target=target, **top)

    def run(
        self,
        *args: str,
        workers: int = 0,
        replacements: int = 0,
        llmeval: bool = True,
        report: str = "report.json",
        without: Sequence[str] = _SLOW_PLUGINS,
        cold: bool = False,
    ) -> Ran:
        """Run pytest in a process of its own, in the current folder.

        Args:
            args: Of the command line.
            workers: Of xdist; 0 for none.
            replacements: How many workers are forks as well that xdist starts in place of others.
            llmeval: Whether ``--llmeval`` and a JSON report are asked for.
            report: Name of that report.
            without: Entry points of plugins to leave out.
            cold: Whether a new Python has to start.
        """
        path = self.path / report
        path.unlink(missing_ok=True)
        line = ["-m", "pytest", *WITHOUT_UNUSED, *(f"-pno:{name}" for name in without)]
        line += ["--llmeval", f"--llmeval-report={report}"] if llmeval else []
        line += [f"-n{workers}"] if workers else []
        how: Any = {"workers": workers + replacements, "cold": cold, "libraries": self.libraries}
        done = run_python([*line, *args], os.environ, Path.cwd(), **how)
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return Ran(done.code, done.out + done.err, _counts(done.out.splitlines()), found)


def _counts(lines: Sequence[str]) -> dict[str, int]:
    line = next((line for line in reversed(lines[-3:]) if re.search(r"\b\d+ \w+.* in \d", line)), "")
    counts: dict[str, int] = {}
    for count, noun in re.findall(r"(\d+) (?:(?:gate|snapshot)s? )?([a-z]+)", line):
        name = {"error": "errors", "warning": "warnings", "not": "skipped"}.get(noun, noun)
        counts[name] = counts.get(name, 0) + int(count)
    return counts


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project, in an environment that neither CI nor an outer xdist shines into."""
    for name in (
        "BUILD_NUMBER",
        "CI",
        "FORCE_COLOR",
        "GITHUB_ACTIONS",
        "GITHUB_STEP_SUMMARY",
        "PYTEST_XDIST_TESTRUNUID",
        "PYTEST_XDIST_WORKER",
        "PYTEST_XDIST_WORKER_COUNT",
        "PY_COLORS",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return Project(pytester.path)


@pytest.fixture
def capitals(project: Project) -> Project:
    """A project with one suite of four cases, of which ``quito[1]`` fails, and so does one of its two gates."""
    project.write("capitals.eval.yaml", CAPITALS)
    return project


@pytest.fixture
def judged(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Judged]:
    """An empty project beside a judge who says yes; the judge's key is in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LlmServer() as server:
        yield Judged(project, server)


WAYS = {"serial": 0, "two workers": 2}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `workers` in both ways; where it runs with `-n`, in one, which its name decides.

    Half of the tests of each file prove one way, and half the other. A release tries all in both.
    """
    if "workers" not in metafunc.fixturenames or "workers" in _parametrised(metafunc):
        return
    ways = list(WAYS)
    if hasattr(metafunc.config, "workerinput") and metafunc.config.getoption("hypothesis_profile") != "long":
        ways = [ways[crc32(metafunc.function.__name__.encode()) % 2]]
    metafunc.parametrize("workers", [WAYS[each] for each in ways], ids=ways)


def _parametrised(metafunc: pytest.Metafunc) -> set[str]:
    marks = metafunc.definition.iter_markers("parametrize")
    names = [each.args[0] for each in marks if each.args]
    return {name for each in names for name in (each.split(",") if isinstance(each, str) else each)}
