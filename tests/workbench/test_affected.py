"""Runs of affected cases, without pytest: what modules read, histories and mutations of a project, and when all run."""

import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from affected_project import STEPS, answers, approve, chosen, commit, git, make, mutate, write
from builders import Answers, key_of

from pytest_llmeval.baselines import CollectedSuite, MeasuredSuite
from pytest_llmeval.core import Case, CaseRecord, Observation, Selection
from pytest_llmeval.numbers import CaseStatistics, summarize
from pytest_llmeval.suites import Suite
from pytest_llmeval.workbench._sources import SourceTree

CASES, MUTATIONS = 4, 20
"""``benchmarks/affected.py`` does the same at full size."""

Base: TypeAlias = tuple[Path, str]

HERE = "from pathlib import Path\nHERE = Path(__file__).parent\n"
KB = {"kb/x.txt": "x", "kb/y.txt": "y", "kb/z/w.md": "w"}


@pytest.mark.parametrize(
    ("files", "found", "packages"),
    [
        ({"m.py": f"{HERE}KB = HERE / 'kb'\ndef f(v):\n    return (KB / 'x.txt').read_text()"}, "kb/x.txt", ""),
        ({"m.py": "def f(v):\n    return (KB / 'x.txt').read_text()\n" + HERE + "KB = HERE / 'kb'"}, "kb/x.txt", ""),
        (
            {"m.py": f"{HERE}def f(v):\n    return (HERE / 'kb' / f'{{v}}.txt').read_text()"},
            "kb/x.txt kb/y.txt kb/z/w.md",
            "",
        ),
        ({"m.py": "def f(v):\n    return open('kb/%s.txt' % v).read()"}, "kb/x.txt kb/y.txt kb/z/w.md", ""),
        ({"m.py": "B = 'kb'\ndef f(v):\n    return open(f'{B}/a_{v}').read()"}, "kb/x.txt kb/y.txt kb/z/w.md", ""),
        (
            {"m.py": "from pathlib import Path\nT = [p.read_text() for p in Path('kb').glob('*.txt')]"},
            "kb/x.txt kb/y.txt",
            "",
        ),
        (
            {
                "m.py": "import h, openai\ndef f(v):\n    return h.load('kb/x.txt')",
                "h.py": "def load(p):\n    return open(p).read()",
            },
            "h.py kb/x.txt",
            "openai",
        ),
        (
            {
                "m.py": "from p.a import *",
                "p/__init__.py": "",
                "p/a.py": "from ..q import z\nfrom .b import y",
                "p/b.py": "",
            },
            "p/__init__.py p/a.py p/b.py",
            "",
        ),
        (
            {"m.py": "from p import *", "p/__init__.py": "", "p/a.py": "import c", "c.py": ""},
            "c.py p/__init__.py p/a.py",
            "",
        ),
        (
            {"m.py": "import subprocess\nsubprocess.run(['python', 's.py'])", "s.py": "import t", "t.py": ""},
            "s.py t.py",
            "",
        ),
        ({"m.py": "try:\n    import ujson\nexcept ImportError:\n    ujson = None\nimport json, os.path"}, "", "ujson?"),
        (
            {"m.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import h\nopen('log', 'w')", "h.py": ""},
            "",
            "",
        ),
    ],
)
def test_what_a_module_reads_is_followed(tmp_path: Path, files: Mapping[str, str], found: str, packages: str) -> None:
    write(tmp_path, {**KB, **files})
    closure = SourceTree(tmp_path, [tmp_path]).closure([tmp_path / "m.py"], tmp_path)
    names = sorted(each.relative_to(tmp_path).as_posix() for each in closure.files)
    assert " ".join(each for each in names if each != "m.py") == found
    assert (" ".join(sorted(closure.packages)), closure.unknown, closure.unread) == (packages, (), ())


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (
            "import importlib\ndef f(v):\n    return importlib.import_module(v)",
            "m.py:3: a module is imported by a computed name",
        ),
        ("def f(v):\n    exec(v)", "m.py:2: exec()"),
        ("import os\nT = open(os.environ['PROMPT']).read()", "m.py:2: open() of a path from outside"),
        ("def f(v):\n    return open(v).read()", "m.py:2: a file is read whose path leads to none in the project"),
        (
            "A = open('kb/x.txt').read()\ndef f(v):\n    return open('a_%s.md' % v).read()",
            "m.py:3: a file is read whose path leads to none in the project",
        ),
        (
            "from pathlib import Path\nX = (Path(__file__).with_suffix('.md')).read_text()",
            "m.py:2: a file is read whose path leads to none in the project",
        ),
        ("x = (", "m.py:1: found no Python that can be read (SyntaxError)"),
    ],
)
def test_what_cannot_be_followed_is_named(tmp_path: Path, source: str, what: str) -> None:
    write(tmp_path, {**KB, "m.py": source})
    closure = SourceTree(tmp_path, [tmp_path]).closure([tmp_path / "m.py"], tmp_path)
    assert [*closure.unknown, *closure.unread] == [what]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    root = tmp_path_factory.mktemp("base") / "project"
    root.mkdir()
    make(root, CASES)
    return root, approve(root)


@pytest.fixture
def project(base: Base, tmp_path: Path) -> Base:
    """A copy of the approved project."""
    shutil.copytree(base[0], tmp_path / "copy", symlinks=True)
    return tmp_path / "copy", base[1]


def test_no_commit_affects_a_case_that_does_not_run(project: Base) -> None:
    root, since = project
    before, larger = answers(root), set[str]()
    write(root, {"plugins/__pycache__/a.cpython-399.pyc": "compiled"})  # among the inputs that a suite declares
    for kind, (change, more) in STEPS.items():
        change(root)
        commit(root, kind)
        why, now = chosen(root, since), answers(root)
        changed = {case for case in now if now[case] != before.get(case)}
        larger |= {more}
        runs = {case for case, cause in why.items() if cause}
        assert changed <= runs, kind
        assert {case for case in runs - changed if case.partition(".")[0] not in larger} == set(), (kind, why)


def test_no_mutation_changes_an_answer_unseen(project: Base) -> None:
    root, since = project
    before, draw = answers(root), random.Random(51)
    seen = 0
    for number in range(MUTATIONS):
        name = mutate(root, draw)
        try:
            why = chosen(root, since)
        except Exception:  # noqa: BLE001 (a suite that cannot be loaded fails its run)
            assert name.endswith((".eval.json", ".jsonl", ".toml"))
        else:
            now = answers(root)
            changed = {case for case in why if now.get(case) != before.get(case)}
            assert changed <= {case for case, cause in why.items() if cause}, (number, name)
            seen += bool(changed)
        git(root, "checkout", "-q", ".")
        git(root, "clean", "-qfd")
    assert seen > MUTATIONS / 10


INPUTS = "__llmeval__/constant.inputs.json"


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({INPUTS: None}, "the approved run has no inputs: approve with --llmeval-affected --snapshot-update"),
        ({INPUTS: "[]"}, "the approved run cannot be used: constant.inputs.json: found no inputs of an approved run"),
        ({INPUTS: ('"Python": "3', '"Python": "2')}, "Python"),
        ({"conftest.py": "X = 1\n"}, "conftest.py"),
        ({"pytest.ini": "[pytest]\nllmeval_family = project\n"}, "pytest.ini"),
        ({"app/constant.py": "exec(TEXT)\n"}, "cannot be followed: app/constant.py:1: exec()"),
        (
            {"app/constant.py": "import nowhere_to_be_found\n"},
            "cannot be followed: import nowhere_to_be_found",
        ),
        (
            {"app/constant.py": "import yaml\n", "uv.lock": "[[package]]\nversion = '1'\n"},
            "cannot be followed: uv.lock: found no lock file that can be read (KeyError)",
        ),
        (
            {"app/constant.py": "import yaml\n", "Pipfile.lock": "{"},
            "cannot be followed: Pipfile.lock: found no lock file that can be read (JSONDecodeError)",
        ),
    ],
)
def test_what_cannot_be_compared_runs_with_the_reason(
    project: Base, files: Mapping[str, str | tuple[str, str] | None], why: str
) -> None:
    root, _ = project
    for name, text in files.items():
        if text is None:
            (root / name).unlink()
        else:
            new = text if isinstance(text, str) else (root / name).read_text(encoding="utf-8").replace(*text)
            write(root, {name: new})
    commit(root, "change")
    causes = set(chosen(root, "HEAD", "constant").values())
    assert [each[: len(why)] for each in causes] == [why]


SIMULATED, AFFECTED, MAX_DROP = 90, 30, 0.04
REPEATED = 30
ALL, CARRIED, ZEROS = "all run", "carried", "carried, and counted as 0"


def alarms(rng: "np.random.Generator", *, fell: float, others_fell: float) -> dict[str, float]:
    """Return how often a drop beyond the limit is significant, by what is done with unaffected cases.

    Args:
        rng: Draws the scores: each case has a level, and each run of it some noise.
        fell: How far the affected cases have fallen.
        others_fell: How far the others have, if they were run.
    """
    cases = tuple(Case(f"c{number:03}") for number in range(SIMULATED))
    suite = Suite(name="s", path=Path("s.eval.yaml"), evaluators={"answers": Answers()}, cases=cases)
    is_affected = np.arange(SIMULATED) < AFFECTED
    failed = dict.fromkeys((ALL, CARRIED, ZEROS), 0)

    def records(scores: "np.ndarray[Any, Any]", selection: Selection | None = None) -> list[CaseRecord]:
        return [
            CaseRecord(
                case.id,
                observations={"answers": Observation({"score": score, "n": 1})},
                selection=None if affected else selection,
            )
            for case, score, affected in zip(cases, scores.tolist(), is_affected, strict=True)
        ]

    for _ in range(REPEATED):
        level = rng.uniform(0.4, 0.9, SIMULATED)
        before, again = (level + rng.normal(0, 0.08, SIMULATED) for _ in range(2))
        now = again - np.where(is_affected, fell, others_fell)
        baseline = CaseStatistics.from_records(records(before))
        for name, scores in ((ALL, now), (CARRIED, np.where(is_affected, now, before)), (ZEROS, None)):
            mixed = np.where(is_affected, now, before) if scores is None else scores
            chosen_as = None if name == ALL else Selection("abc", carried=True, replayed=name == ZEROS)
            collected = CollectedSuite(key_of(suite), suite, records(mixed, chosen_as))
            pairing = MeasuredSuite(collected, summarize(suite.metrics, collected.records, confidence=None)).pair(
                baseline
            )
            rows, column = pairing.everything(), pairing.table.scores["score"]
            drops = column[rows.baseline] - column[rows.current]
            error = drops.std(ddof=1) / len(drops) ** 0.5
            failed[name] += bool((drops.mean() - MAX_DROP) / error > 1.96)
    return {name: count / REPEATED for name, count in failed.items()}


def test_carried_cases_neither_hide_a_fall_nor_invent_one() -> None:
    rng = np.random.default_rng(51)
    nothing = alarms(rng, fell=0.0, others_fell=0.0)
    at_limit = alarms(rng, fell=MAX_DROP, others_fell=0.0)
    fall = alarms(rng, fell=0.12, others_fell=0.0)
    drift = alarms(rng, fell=0.1, others_fell=0.1)
    assert nothing[CARRIED] == 0
    assert at_limit[CARRIED] <= 0.1
    assert fall[CARRIED] >= 0.8 > fall[ALL]  # which dilutes it by cases that the change cannot affect
    # Of a fall that no change explains, the cases that ran still tell; zeros of the others would hide it.
    assert drift[CARRIED] >= 0.7
    assert drift[ZEROS] <= 0.1
