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
from ways import ALONE, VARIABLES, WAYS, change_of, files_of

from pytest_llmeval.core import Case, CaseRecord, Observation
from pytest_llmeval.core._results import Selection
from pytest_llmeval.numbers import CaseStatistics
from pytest_llmeval.run import CollectedSuite
from pytest_llmeval.suites import LoadedSuite

CASES, MUTATIONS = 4, 10
"""``benchmarks/affected.py`` does the same at full size."""

Base: TypeAlias = tuple[Path, str]


@pytest.fixture(scope="module")
def depending(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a suite for every way of depending on something, approved once."""
    root = tmp_path_factory.mktemp("ways") / "project"
    for name in WAYS:
        if name not in ALONE:
            write(root, files_of(name))
    return approved_ways(root)


def approved_ways(root: Path, settings: str = "") -> Path:
    write(root, {".gitignore": "__pycache__\n.llmeval\n", "pytest.ini": f"[pytest]\n{settings}"})
    git(root, "init", "-qb", "main")
    commit(root, "begin")
    approve(root)
    return root


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.release] if name == ALONE[-1] else []) for name in WAYS]
)
def test_what_an_answer_depends_on_is_an_input(
    depending: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, root = WAYS[name], depending
    if name in ALONE:
        root = tmp_path / "project"
        write(root, files_of(name))
        approved_ways(root, way.settings)
    before = {*chosen(root, "HEAD", name).values()}
    assert len(before) == 1
    assert before == {""} if way.followed else all(each.startswith("cannot be followed: ") for each in before), before
    for file, text in change_of(name).items():
        if text is None:
            (root / file).unlink()
        else:
            write(root, {file: text})
    for variable, text in VARIABLES.items():
        monkeypatch.setenv(variable, text)
    after = chosen(root, "HEAD", name)
    assert all(after.values()), (name, after)
    if root is depending:
        git(root, "checkout", "-q", ".")
        git(root, "clean", "-qfd")


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
        ({INPUTS: None}, "the approved run has no inputs: approve with --snapshot-update"),
        (
            {INPUTS: "[]"},
            "the approved run cannot be used: constant.inputs.json: the inputs of the approved run cannot be read",
        ),
        ({INPUTS: ('"Python": "3', '"Python": "2')}, "Python"),
        ({"conftest.py": "X = 1\n"}, "conftest.py"),
        ({"pytest.ini": "[pytest]\nllmeval_family = project\n"}, "pytest.ini"),
        ({"app/constant.py": "exec(TEXT)\n"}, "app/constant.py"),
        (
            {"app/constant.py": "import nowhere_to_be_found\n"},
            "cannot be followed: import nowhere_to_be_found",
        ),
        (
            {"app/constant.py": "import yaml\n", "uv.lock": "[[package]]\nversion = '1'\n"},
            "app/constant.py, requirements.txt and 1 more",
        ),
        (
            {"app/constant.py": "import yaml\n", "Pipfile.lock": "{"},
            "Pipfile.lock, app/constant.py and 1 more",
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
    suite = LoadedSuite(name="s", path=Path("s.eval.yaml"), evaluators={"answers": Answers()}, cases=cases)
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
            pairing = collected.run_of(collected.records).pair(baseline)
            rows, column = pairing.everything(), pairing.table.scores["score"]
            drops = column[rows.baseline] - column[rows.current]
            error = drops.std(ddof=1) / len(drops) ** 0.5
            failed[name] += bool((drops.mean() - MAX_DROP) / error > 1.96)
    return {name: count / REPEATED for name, count in failed.items()}


@pytest.mark.release
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
