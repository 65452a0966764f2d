"""The reports of one project have the same bytes for every order, distribution and environment of a run."""

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Project

CONFTEST = """\
import pytest

@pytest.fixture(params=["b", "a"], scope="session")
def variant(request):
    return request.param

def pytest_addoption(parser):
    parser.addoption("--reversed", action="store_true")

@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("--reversed"):
        items.reverse()
"""

BOT = """\
def answer(number):
    if number == 7:
        raise ValueError(number)
    return "one two three four five six".split()[: number % 5 + 1] if number == 3 else "one two " * (number % 5)
"""

TEST = """\
import pytest

@pytest.mark.llmeval("python.yaml")
@pytest.mark.parametrize("size", [2, 1])
def test_over(eval_case, size):
    eval_case.score(" ".join(eval_case.expected.split()[:size]))
"""


@pytest.fixture
def rich(project: "Project") -> "Project":
    """Suites of all kinds: given answers, a target, bulk, a model matrix, a Python test, faulty and skipped cases."""
    words = "one two three four five six seven eight nine ten eleven twelve"
    given = [
        {
            "id": f"事例 {number}",
            "expected": " ".join(words.split()[: number % 7 + 1]),
            "prediction": " ".join(words.split()[number % 3 : number % 5 + 2]),
            "labels": {"kind": "xyz"[number % 3], "half": number % 2},
            "tags": ["skip"] if number == 5 else [],
        }
        for number in range(24)
    ]
    gates = ["f1 >= 0.5", {"metric": "mean(f1)", "by": "kind", "min": 0.3}, "pass_rate >= 0.9", "p10(f1) >= 0.1"]
    project.suite("given.eval.yaml", given, gates=gates, group_by=["kind", "half"], thresholds={"f1": 0.3})
    asked = [{"id": f"{number}", "input": number, "expected": "one two three"} for number in range(9)]
    project.suite("sub/asked.eval.json", asked, target="bot:answer", gates=["f1 >= 0.1"])
    project.suite("bulk.eval.yml", asked, target="bot:answer", gates=["f1 >= 0.1"], mode="bulk")
    project.suite("faulty.eval.yaml", [*given[:3], {"id": "x", "inptu": 1}], gates=["f1 >= 0.1"])
    project.suite("python.yaml", given, gates=["f1 >= 0.1"])
    project.write(
        "matrix/conftest.py",
        "import pytest\n@pytest.fixture\ndef llmeval_target(variant): return str.upper if variant == 'a' else str\n",
    )
    project.suite(
        "matrix/m.eval.yaml", [{"id": word, "input": word, "expected": word} for word in "pqr"], gates=["f1 >= 1"]
    )
    project.write("conftest.py", CONFTEST)
    project.write("bot.py", BOT)
    project.write("test_over.py", TEST)
    project.ini("pythonpath = .")
    return project


def _essence(project: "Project", *args: str, **options: Any) -> str:
    """Return both reports of a run without its times."""
    ran = project.run("--llmeval-report=report.md", *args, **options)
    assert ran.code == 1
    report = ran.report
    report["run"] |= {"started_at": "", "duration_s": 0}
    for suite in report["suites"]:
        if "usage" in suite:
            suite["usage"]["target_latency_s"] = {}
        for case in suite["cases"]:
            case["duration_s"] = 0
    markdown = (project.path / "report.md").read_text(encoding="utf-8")
    markdown = re.sub(r"(?m)^target: latency.*\n\n", "", markdown)  # absent below half a millisecond
    markdown = re.sub(r"(?m)^\d{4}-\d\d-\d\dT.*?, pytest", "pytest", markdown)
    return json.dumps(report, ensure_ascii=False, indent=1) + markdown


@pytest.fixture(scope="module")
def known() -> dict[str, str]:
    """What the first serial run of this module gave."""
    return {}


@pytest.fixture
def serial(rich: "Project", known: dict[str, str]) -> str:
    """The reports of a serial run in file order."""
    if not known:
        known["serial"] = _essence(rich)
    return known["serial"]


def test_the_project_shows_every_kind_of_outcome(serial: str) -> None:
    for outcome in ("passed", "failed", "errored", "skipped", "not_judged"):
        assert f'"outcome": "{outcome}"' in serial
    assert [json.loads(name) for name in re.findall(r'"suite": (".*")', serial)] == [
        "bulk",
        "faulty",
        "given",
        "m[a]",
        "m[b]",
        "python[test_over.py::test_over][size=1]",
        "python[test_over.py::test_over][size=2]",
        "asked",
        *("m", "python[test_over.py::test_over]"),  # variants side by side
    ]


@pytest.mark.parametrize("arguments", [("load", "--reversed"), ("loadscope",), ("loadfile",), ("worksteal",)])
def test_workers_change_nothing(rich: "Project", serial: str, arguments: tuple[str, ...]) -> None:
    assert _essence(rich, "--dist", *arguments, workers=2) == serial


@pytest.mark.parametrize("arguments", [("--reversed", "-vv"), ("-pno:randomly", "-pno:xdist", "-s")])
def test_the_order_and_the_look_of_a_run_change_nothing(
    rich: "Project", serial: str, arguments: tuple[str, ...]
) -> None:
    assert _essence(rich, *arguments) == serial


@pytest.mark.release
@pytest.mark.parametrize(("seed", "workers"), [("1", 0), ("0", 2)], ids=["serial", "two workers"])
def test_the_environment_and_new_pythons_instead_of_forks_change_nothing(
    rich: "Project", serial: str, seed: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo", "LC_ALL": "C", "LANG": "C"}.items():
        monkeypatch.setenv(name, value)
    assert _essence(rich, workers=workers, cold=True) == serial
