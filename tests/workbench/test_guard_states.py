"""Weaker evaluations that only both states themselves show: suites in Python, settings, code, workflows, evidence."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from running import warm_run

from pytest_llmeval.cli import main
from pytest_llmeval.workbench._collecting import StateDump, list_demands
from pytest_llmeval.workbench._settings import compare_settings
from pytest_llmeval.workbench._states import collect, compare_collected
from pytest_llmeval.workbench._test_code import compare_plugins
from pytest_llmeval.workbench._workflows import compare_workflows

SUPPORT = """\
import pytest_llmeval as ev
from graders import polite

LIMIT = 0.4
rows = [
    {"id": "refund", "input": "How long do refunds take?", "expected": "30 days"},
    {"id": "abroad", "input": "Do you ship abroad?", "expected": "yes, to Europe"},
]


def is_short(case):
    return len(case.prediction) < LONGEST


LONGEST = 90
support = ev.suite(
    "support",
    cases=ev.cases(rows),
    evaluators=[ev.text(metrics=["f1"]), ev.evaluator(polite)],
    checks=[ev.check(is_short)],
    thresholds={"f1": LIMIT},
    gates=["f1 >= 0.6"],
)


def agent(question):
    return "30 days" if "refund" in question else "Yes, to Europe"


@support.test
def test_agent(case):
    got = agent(case.input)
    case.score(got)
"""
CONFTEST = """\
import pytest
from graders import Length


def pytest_llmeval_register(registry):
    registry.register(Length)


@pytest.fixture(scope="session")
def judge_client():
    async def judge(request):
        return '{"reasoning": "good", "score": 4}'

    return judge


@pytest.fixture
def answers():
    return [{"expected": "At nine", "prediction": "At nine"}]
"""
GRADERS = """\
from dataclasses import dataclass

from pytest_llmeval import Evaluator, Metric, Observation

WORDS = ("please", "thanks")


def polite(case):
    return any(word in case.prediction for word in WORDS)


@dataclass(frozen=True)
class Length(Evaluator):
    name = "length"

    def describe(self):
        return [Metric("length", high=None)]

    def measure(self, case):
        return Observation({"size": size_of(case.prediction), "n": 1})

    def summarize(self, sums):
        return {"length": sums["size"] / sums["n"]}


def size_of(text):
    return len(text.split())
"""
SHOP = """\
suite: shop
target: app:answer
judge: {model: "fixture:judge_client"}
evaluators:
  - text: {metrics: [f1]}
  - length: {}
  - judge: {criteria: Is correct.}
gates: [f1 >= 0.5]
cases:
  - {id: hours, input: When do you open?, expected: At nine}
  - {id: order, input: Which order was it?, expected: Order 42}
"""
TEST = """\
import pytest_llmeval as ev


LIMIT = 0.4


def test_score(answers):
    assert ev.score("text", answers)["f1"] >= LIMIT
"""
WORKFLOW = """\
on: pull_request
jobs:
  evals:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: pytest --llmeval
"""
JUDGED = "verdicts.jsonl"
VERDICT = {"key": "0" * 32, "case": "hours", "reply": '{"score": 1}'}
ANSWER = {"case": "hours", "input": "0" * 16, "prediction": "At ten", "suite": "evals/shop.eval.yaml", "variant": ""}
FILES = {
    "test_support.py": SUPPORT,
    "test_score.py": TEST,
    "conftest.py": CONFTEST,
    "graders.py": GRADERS,
    "app.py": "def answer(question):\n    return 'At nine'\n",
    "evals/shop.eval.yaml": SHOP,
    "pyproject.toml": "[tool.pytest.ini_options]\nllmeval = true\n",
    ".github/workflows/evals.yml": WORKFLOW,
    JUDGED: f"{json.dumps(VERDICT)}\n",
    "answers.jsonl": f"{json.dumps(ANSWER)}\n",
}
GIT = ("git", "-c", "user.name=n", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run([*GIT, *arguments], cwd=folder, check=True, capture_output=True)


def edit(name: str, old: str, new: str) -> dict[str, str]:
    assert old in FILES[name], (name, old)
    return {name: FILES[name].replace(old, new)}


IN_PYTHON = {
    "case abroad: removed: Do you ship abroad?": ("test_support.py", SUPPORT.splitlines(keepends=True)[6], ""),
    "expected of case refund: changed: 30 days -> 30": ("test_support.py", '"expected": "30 days"', '"expected": "30"'),
    "threshold f1: loosened: >= 0.4 -> >= 0.1": ("test_support.py", "LIMIT = 0.4", "LIMIT = 0.1"),
    "gate f1 >= 0.6: loosened: f1 >= 0.6 -> f1 >= 0.2": ("test_support.py", "f1 >= 0.6", "f1 >= 0.2"),
    "code of check is_short: changed": ("test_support.py", "LONGEST = 90", "LONGEST = 900"),
    "code of evaluator polite: changed": ("graders.py", '"please", "thanks"', '"please", "thanks", ""'),
    "code of evaluator length: changed": ("graders.py", "len(text.split())", "1"),
    "code of judge: changed": ("conftest.py", '"score": 4', '"score": 5'),
    "code of test_agent: changed": ("test_support.py", "got = agent(case.input)", "got = case.expected"),
    f"{JUDGED}:1  recorded verdict on case hours: edited by hand, or asked again": (JUDGED, "1}", "5}"),
    "answers.jsonl:1  recorded answer to case hours: edited by hand, or asked again": ("answers.jsonl", "ten", "nine"),
}
"""The finding, and its change: all are made at once."""

SETTINGS = "pyproject.toml"
WEAKER: Mapping[str, tuple[Mapping[str, str | None], str]] = {
    "check dropped": (edit("test_support.py", "checks=[ev.check(is_short)],", ""), "check is_short: removed"),
    "limit of a test": (
        edit("test_score.py", "LIMIT = 0.4", "LIMIT = 0.1"),
        "test_score.py  code of test_score: changed",
    ),
    "fixture of a test": (
        edit("conftest.py", '[{"expected": "At nine", "prediction": "At nine"}]', "[]"),
        "test_score.py  code of test_score: changed",
    ),
    "test that ends early": (
        edit("test_score.py", "    assert", "    return\n    assert"),
        "test_score.py  code of test_score: changed",
    ),
    "key of a suite": (
        edit("test_support.py", "    gates=", '    abstained="allowed",\n    gates='),
        "test_support.py  key abstained: changed: fell",
    ),
    "suite renamed to nothing": (
        edit("test_support.py", "def test_agent", "def agent_test"),
        "suite support: no longer collected",
    ),
    "mark of a module": (
        edit("test_score.py", "import", "import pytest\n\npytestmark = pytest.mark.skip\nimport"),
        "test_score.py  tests: 1 test excused by a mark: test_score",
    ),
    "collect_ignore": (
        edit("conftest.py", "import pytest\n", "import pytest\ncollect_ignore = ['test_score.py']\n"),
        "test_score.py  tests: 1 test no longer collected: test_score",
    ),
    "pytest_ignore_collect": (
        {"evals/conftest.py": "def pytest_ignore_collect():\n    return True\n"},
        "evals/shop.eval.yaml  tests: 2 tests no longer collected",
    ),
    "items marked": (
        {
            "evals/conftest.py": "import pytest\n\n\ndef pytest_collection_modifyitems(items):\n"
            "    for item in items:\n        item.add_marker(pytest.mark.xfail)\n"
        },
        "evals/shop.eval.yaml  tests: 2 tests excused by a mark",
    ),
    "addopts": (
        {SETTINGS: f"{FILES[SETTINGS]}addopts = '-k \"not order\"'\n"},
        "evals/shop.eval.yaml  tests: 1 test no longer collected: order",
    ),
    "turned off": (
        edit(SETTINGS, "llmeval = true", "llmeval = false"),
        "evals/shop.eval.yaml  tests: 2 tests no longer",
    ),
    "another file of settings": ({"pytest.ini": "[pytest]\n"}, "evals/shop.eval.yaml  tests: 2 tests no longer"),
    "norecursedirs": (
        {SETTINGS: f"{FILES[SETTINGS]}norecursedirs = ['evals']\n"},
        "evals/shop.eval.yaml  tests: 2 tests no longer collected",
    ),
    "verdict replaced": (
        {
            "graders.py": f"{GRADERS}\nimport pytest_llmeval.gates._limit as limit\n\n"
            "limit.LimitGate.verdict = lambda *_: ('passed', 1.0, '')\n"
        },
        "pytest  pytest_llmeval.gates._limit.LimitGate.verdict: replaced by other code",
    ),
    "other judge for all suites": (
        {SETTINGS: f"{FILES[SETTINGS]}llmeval_judge_model = 'openai:lenient'\n"},
        "pytest  option judge-model: changed",
    ),
    "rows that are collected": (
        edit("evals/shop.eval.yaml", "expected: At nine", "expected: At ten"),
        "evals/shop.eval.yaml:10  expected of case hours: changed: At nine",
    ),
    "module that does not load": (
        edit("test_support.py", "LIMIT = 0.4", "LIMIT = 0.4 / 0"),
        "suite support: no longer",
    ),
}
TOGETHER = (
    ("check dropped", "collect_ignore", "pytest_ignore_collect"),
    ("suite renamed to nothing", "mark of a module", "items marked"),
    ("module that does not load", "addopts", "fixture of a test"),
    ("limit of a test", "key of a suite", "verdict replaced", "other judge for all suites", "rows that are collected"),
    ("turned off", "test that ends early"),
    ("another file of settings",),
    ("norecursedirs",),
)
"""Those that are made at once, since they change different files and hide different things."""

STEP = ".github/workflows/evals.yml:7"
WORKFLOWS = {
    "cannot fail": (("llmeval\n", "llmeval || true\n"), f"{STEP} (base)  step pytest --llmeval: removed or changed"),
    "does not run": (("- run: p", "- if: false\n        run: p"), "step pytest --llmeval: runs or fails otherwise"),
    "job may fail": (("    steps", "    continue-on-error: true\n    steps"), "runs or fails otherwise"),
    "other event": (("pull_request", "workflow_dispatch"), "runs or fails otherwise"),
    "variables of the job": (
        ("    steps", "    env: {PYTEST_ADDOPTS: -k none}\n    steps"),
        "runs or fails otherwise",
    ),
    "variables by an earlier step": (
        ("      - run: p", "      - run: echo PYTEST_ADDOPTS=-kx >> $GITHUB_ENV\n      - run: p"),
        "runs or fails otherwise",
    ),
    "another job": (("jobs:", "jobs:\n  lint: {runs-on: x, steps: [{run: ruff}]}\n  docs: {uses: ./docs.yml}"), ""),
    "only a remark": (("jobs:", "# The jobs.\njobs:"), ""),
}
SCRIPT = "evaluate.sh"
BY_OTHERS = f"""\
on: pull_request
jobs:
  evals:
    strategy: {{matrix: {{suite: [evals, more]}}}}
    steps:
      - uses: actions/checkout@v4
      - run: ./{SCRIPT}
  gate:
    steps:
      - uses: pytest-llmeval/pytest-llmeval-suite@v1
        with: {{results: results.jsonl}}
"""
EVALUATING_BY_OTHERS = {
    "script changed": (SCRIPT, "llmeval", "llmeval || true", f"{SCRIPT}  script: changed, and CI evaluates by it"),
    "script not called": ("", f"      - run: ./{SCRIPT}\n", "", f"step ./{SCRIPT}: removed or changed"),
    "matrix emptied": ("", "[evals, more]", "[]", f"step ./{SCRIPT}: runs or fails otherwise"),
    "another checkout": ("", "v4\n", "v4\n        with: {ref: main}\n", f"step ./{SCRIPT}: runs or fails otherwise"),
    "another action": (
        "",
        "suite@v1",
        "suite@v2",
        "pytest-llmeval-suite@v1",
    ),
    "action with other settings": ("", "results.jsonl", "best.jsonl", "pytest-llmeval-suite@v1"),
    "action that does not run": ("", "        with: {res", "        if: false\n        with: {res", "fails otherwise"),
}
FOUND_BY_NAME = {
    "evals/pytest.ini": "settings of pytest: changed for runs that name a path below",
    "evals/setup.cfg": "settings of pytest: changed for runs that name a path below",
    "evals/pyproject.toml": "settings of pytest: changed for runs that name a path below",
    "sitecustomize.py": "module: new, and comes before that of another",
    "pytest_llmeval/gates.py": "module: new, and comes before that of another",
    "src/ours.pth": "module: new, and comes before that of another",
    "evals/tox.ini": "",
    "pytest.ini": "",
    "app.py": "",
}
"""File of a pull request to what is found; settings of the folder itself are compared by what pytest collects."""

HONEST: Mapping[str, tuple[Mapping[str, str | None], str]] = {
    "stricter, clearer and more": (
        {
            "test_support.py": SUPPORT.replace("LIMIT = 0.4", "LIMIT = 0.5")
            .replace("f1 >= 0.6", "f1 >= 0.7")
            .replace("checks=[", 'checks=[{"max_words": 20}, ')
            .replace("rows = [", 'rows = [\n    {"id": "new", "input": "x", "expected": "y"},')
            .replace("test_agent", "test_replies"),
            "graders.py": GRADERS.replace("def polite(case):\n", "def polite(case):\n    # Says it nicely.\n\n"),
            "evals/conftest.py": "import pytest\nfrom pytest_llmeval.workbench import modes\n\n\n@pytest.fixture\n"
            "def shop():\n    return helper()\n\n\n"
            "def helper():\n    return 1\n",
            "test_other.py": "def test_other():\n    assert True\n",
        },
        "nothing asks for less",
    ),
    "target": (edit("app.py", "At nine", "At 9"), "target app:answer: changed: app.py"),
}


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("origin")
    git(folder, "init", "-q", "-b", "main")
    write(folder, FILES)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Begin")
    return folder


def write(folder: Path, files: Mapping[str, str | None]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text, encoding="utf-8")


def _quick(run: Callable[..., Any], command: Any, **options: Any) -> Any:
    """Start Python from a warm process, and other programs as they are."""
    return (warm_run if command[0] == sys.executable else run)(command, **options)


@pytest.fixture
def clone(origin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone on a branch, in which the tests work."""
    folder = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(origin), str(folder))
    git(folder, "switch", "-q", "-c", "feature")
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_DIFF_BASE_SHA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder)
    return folder


def guard(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    with monkeypatch.context() as patch:
        patch.setattr("subprocess.run", partial(_quick, subprocess.run))
        code = main(["guard"])
    return code, capsys.readouterr().out


def test_suites_in_python_their_code_and_evidence_are_compared(
    clone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, old, new in IN_PYTHON.values():
        text = (clone / name).read_text(encoding="utf-8")
        assert old in text, (name, old)
        (clone / name).write_text(text.replace(old, new), encoding="utf-8")
    code, printed = guard(capsys, monkeypatch)
    assert (code, [finding for finding in IN_PYTHON if finding not in printed]) == (1, []), printed


def collected_of(folder: Path, scratch: Path, *, enabled: bool = False) -> StateDump:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("subprocess.run", partial(_quick, subprocess.run))
        patch.chdir(folder)
        state, why = collect(folder, folder, scratch, enabled=enabled)
    assert state is not None, why
    return state


def test_modules_that_load_more_when_asked_are_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "p", {"test_support.py": "from pytest_llmeval import suite\n"})
    monkeypatch.chdir(tmp_path / "p")
    # In a process of its own: a warm one has loaded everything.
    state, why = collect(Path(), Path(), tmp_path / "scratch", enabled=True)
    assert state is not None, why


@pytest.fixture(scope="module")
def before(origin: Path, tmp_path_factory: pytest.TempPathFactory) -> StateDump:
    """What pytest collects in the earlier state."""
    return collected_of(origin, tmp_path_factory.mktemp("before") / "scratch")


@pytest.mark.parametrize("names", TOGETHER, ids=" and ".join)
def test_weaker_evaluation_is_named(before: StateDump, names: tuple[str, ...], tmp_path: Path) -> None:
    write(tmp_path / "head", {**FILES, **{file: text for name in names for file, text in WEAKER[name][0].items()}})
    after = collected_of(tmp_path / "head", tmp_path / "scratch", enabled=before.enabled)
    cases = {name: name for name in ("hours", "order")}
    matched = {"evals/shop.eval.yaml": ("evals/shop.eval.yaml", cases)}
    findings = list(compare_collected(before, after, matched, {"test_support.py", "test_score.py"}, ()))
    lines = [
        f"{each.place}  {each.subject}: {each.change}: {each.before or each.after}"
        for each in findings
        if not each.note
    ]
    assert [name for name in names if not any(WEAKER[name][1] in line for line in lines)] == [], lines


CONFTESTS = {
    "@pytest.fixture(autouse=True)\ndef each(): ...\n": True,
    "@replace\ndef helper(): ...\n": True,
    "def helper(value=exec('')): ...\n": True,
    "class Helper:\n    import ours\n": True,
    "class Helper:\n    def __init_subclass__(cls): ...\n": True,
    "class Helper(metaclass=Kind): ...\n": True,
    "class Helper:\n    m.verdict = None\n": True,
    "def fixture(function): ...\n\n\n@fixture\ndef shop(): ...\n": True,
    "@pytest.fixture\ndef shop():\n    return helper()\n": False,
    "@dataclass(frozen=True)\nclass Helper:\n    'It.'\n\n    words: int = field(default=0)\n": False,
}
"""What a conftest has anew, and whether it may change what pytest does before anybody asks for it."""


@pytest.mark.parametrize("text", CONFTESTS)
def test_conftest_that_does_something_by_itself_is_named(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"base/conftest.py": "", "head/conftest.py": text})
    found = [*compare_plugins(tmp_path / "base" / "conftest.py", tmp_path / "head" / "conftest.py", "conftest.py")]
    assert bool(found) == CONFTESTS[text]


def test_fixture_that_answers_is_noted(tmp_path: Path) -> None:
    target = "@pytest.fixture\ndef llmeval_target():\n    return lambda case: case.expected\n"
    write(tmp_path, {"base/conftest.py": "", "head/conftest.py": target})
    paths = [tmp_path / state / "conftest.py" for state in ("base", "head")]
    (noted,) = compare_plugins(*paths, "conftest.py")
    assert (noted.subject, noted.note) == ("conftest, llmeval_target", True)


def test_every_weaker_evaluation_is_tried() -> None:
    assert sorted(name for names in TOGETHER for name in names) == sorted(WEAKER)


def test_ignored_suite_and_new_plugin_of_pytest_are_named(
    clone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = f"{FILES[SETTINGS]}addopts = '-p green'\n"
    plugin = "def pytest_runtest_makereport(): ...\n"
    write(clone, {SETTINGS: settings, "green.py": plugin, ".gitignore": "*.yaml\n"})
    git(clone, "rm", "-q", "--cached", "evals/shop.eval.yaml")
    code, printed = guard(capsys, monkeypatch)
    texts = ["suite shop: removed", "green.py:1  plugin, pytest_runtest_makereport: new"]
    assert (code, [text for text in texts if text not in printed]) == (1, []), printed


def test_what_settings_hide_is_named_whatever_changed_code_says(
    clone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = f"{FILES[SETTINGS]}addopts = '-k \"not order\"'\n"
    write(clone, {SETTINGS: settings, "graders.py": f"{GRADERS}\n\n__import__('os')._exit(0)\n"})
    code, printed = guard(capsys, monkeypatch)
    texts = ["evals/shop.eval.yaml  tests: 1 test no longer collected: order", "pytest  collection: failed"]
    assert (code, [text for text in texts if text not in printed]) == (1, []), printed


@pytest.mark.parametrize("honest", HONEST)
def test_honest_change_passes(
    clone: Path, honest: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files, text = HONEST[honest]
    write(clone, files)
    code, printed = guard(capsys, monkeypatch)
    assert (code, text in printed) == (0, True), printed


@pytest.mark.parametrize("change", WORKFLOWS)
def test_steps_that_no_longer_run_or_fail_are_named(tmp_path: Path, change: str) -> None:
    (old, new), text = WORKFLOWS[change]
    name = ".github/workflows/evals.yml"
    write(tmp_path, {f"base/{name}": WORKFLOW, f"head/{name}": WORKFLOW.replace(old, new)})
    findings = list(compare_workflows(tmp_path / "base", tmp_path / "head"))
    lines = [f"{each.place}  {each.subject}: {each.change}" for each in findings]
    assert len(lines) == bool(text)
    assert all(text in line for line in lines), lines


@pytest.mark.parametrize("change", EVALUATING_BY_OTHERS)
def test_steps_that_evaluate_by_scripts_and_actions_are_compared(tmp_path: Path, change: str) -> None:
    file, old, new, text = EVALUATING_BY_OTHERS[change]
    name = ".github/workflows/evals.yml"
    files = {name: BY_OTHERS, SCRIPT: "pip install .\npytest --llmeval\n"}
    edited = file or name
    assert old in files[edited]
    write(tmp_path / "base", files)
    write(tmp_path / "head", {**files, edited: files[edited].replace(old, new)})
    findings = list(compare_workflows(tmp_path / "base", tmp_path / "head"))
    lines = [f"{finding.place}  {finding.subject}: {finding.change}" for finding in findings]
    assert any(text in line for line in lines), lines


@pytest.mark.parametrize("name", FOUND_BY_NAME)
def test_settings_and_modules_that_are_found_by_their_names_are_compared(tmp_path: Path, name: str) -> None:
    texts = {"tox.ini": "[tox]\n", "pyproject.toml": "[tool.pytest.ini_options]\n", "setup.cfg": "[tool:pytest]\nx=1\n"}
    write(tmp_path / "head", {name: texts.get(Path(name).name, "[pytest]\n")})
    findings = compare_settings(tmp_path / "base", tmp_path / "head", [name])
    lines = [f"{finding.subject}: {finding.change}" for finding in findings]
    assert lines == ([FOUND_BY_NAME[name]] if FOUND_BY_NAME[name] else [])


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("requirements.txt", "pytest-llmeval-suite=={}\n"),
        ("pyproject.toml", 'dependencies = ["rich", "pytest_llmeval_suite[mcp]=={}"]\n'),
        ("uv.lock", 'name = "pytest-llmeval-suite"\nversion = "{}"\n'),
    ],
)
def test_other_version_of_this_package_is_named_and_of_another_is_not(tmp_path: Path, name: str, line: str) -> None:
    files = {name: f"rich==1\n{line.format('0.2')}rich==1\n", ".github/workflows/evals.yml": WORKFLOW}
    steps = WORKFLOW.replace("- run: pytest", f"- run: pip install -r {name}\n      - run: pytest")
    write(tmp_path / "base", {**files, ".github/workflows/evals.yml": steps})
    for new, found in (("0.1", 1), ("0.2", 0)):
        text = f"rich==2\n{line.format(new)}rich==2\n"
        write(tmp_path / "head", {**files, ".github/workflows/evals.yml": steps, name: text})
        findings = list(compare_settings(tmp_path / "base", tmp_path / "head", [name]))
        assert [finding.subject for finding in findings] == ["requirement of this package"] * found
        scripts = compare_workflows(tmp_path / "base", tmp_path / "head")
        assert not name.endswith(".txt") or not list(scripts)


@pytest.mark.parametrize(("added", "found"), [("--setup-plan", 1), ("--collect-only", 1), ("-q --tb=short", 0)])
def test_options_among_settings_are_compared(before: StateDump, added: str, found: int) -> None:
    options = {**before.options, "addopts": " ".join(list_demands(added.split()))}
    findings = list(compare_collected(before, replace(before, options=options), {}, (), ()))
    assert [finding.subject for finding in findings] == ["option addopts"] * found
