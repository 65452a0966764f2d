"""Runs of affected cases at full size: 500 changes, a history of 40 commits, and what recording and selecting cost.

Run: ``python benchmarks/affected.py [CHANGES] [COMMITS] [SEED]``; with 0 commits, only the changes are made. The
project has 12 suites of 50 cases, whose answers depend on files in twelve ways, and one of two cases for each way of
``tests/workbench/ways.py``; a way that concerns a whole project has one of its own. Each state is compared with an
approved run: the affected cases must be those whose row, answer or evaluators differ in a run of all, or more with a
reason, and never fewer. Every second change is that of a way, the others are random changes of a file.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "tests" / "workbench")]

import pandas  # noqa: E402, F401 (what targets import)
import polars  # noqa: E402, F401 (what targets import)
from affected_project import (  # noqa: E402 (those of tests)
    ANSWER,
    STEPS,
    approve,
    chosen,
    commit,
    git,
    make,
    mutate,
    write,
)
from sides import clean_environment, pytest_command  # noqa: E402 (beside this file)
from ways import ALONE, VARIABLES, WAYS, change_of, files_of  # noqa: E402 (those of tests)

from pytest_llmeval.run import Checkout, ChoiceTerms  # noqa: E402 (as above)
from pytest_llmeval.suites import SuiteKey  # noqa: E402 (as above)
from pytest_llmeval.workbench._affected import choose_affected  # noqa: E402 (as above)

CASES, ROUNDS, ITEMS = 50, 5, 2_000
MIXED = [name for name in WAYS if name not in ALONE]
UNFOLLOWED = {f"{name}.eval.json" for name in MIXED if not WAYS[name].followed}
Answers = dict[str, object]


def answers(root: Path) -> Answers:
    """Return the row, the answer and the evaluators of every case, from a process that has the libraries already."""
    reading, writing = os.pipe()
    if not (process := os.fork()):
        try:
            os.dup2(writing, sys.stdout.fileno())
            sys.argv[1:] = [str(root)]
            exec(ANSWER, {})  # noqa: S102 (our own program)
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as file:
        out: Answers = json.loads(file.read())
    os.waitpid(process, 0)
    return out


def different(before: Answers, now: Answers) -> set[str]:
    """Return the cases whose row, answer or evaluators are others than before."""
    return {case for case in now if now[case] != before.get(case)}


def verdicts(root: Path, *options: str) -> dict[str, Any]:
    """Return what a run decides, by suite: outcomes and scores of cases, metrics with intervals, gates."""
    path = root / "report.json"
    options = ("--llmeval", f"--llmeval-report={path}", "-q", "-p", "no:cacheprovider", *options)
    subprocess.run([sys.executable, "-m", "pytest", *options], cwd=root, capture_output=True, check=False)
    return {
        suite["suite"]: (
            {case["id"]: (case["outcome"], case["metrics"]) for case in suite["cases"]},
            {name: (each["value"], each["low"], each["high"]) for name, each in suite["metrics"].items()},
            [(gate["gate"], gate["outcome"], gate["value"]) for gate in suite["gates"]],
        )
        for suite in json.loads(path.read_text(encoding="utf-8"))["suites"]
    }


def history(root: Path, since: str, commits: int) -> None:
    """Commit changes of every kind, approve a run of affected cases after each, and print what was found."""
    before, kinds, larger = answers(root), list(STEPS), Counter[str]()
    exact = missed = others = red = 0
    for number in range(commits):
        kind = kinds[number % len(kinds)]
        STEPS[kind][0](root)
        commit(root, kind)
        now = answers(root)
        changed, why = different(before, now), chosen(root, since)
        runs = {case for case, cause in why.items() if cause}
        missed += len(changed - runs)
        runs = {case for case in runs if case in changed or case.partition("::")[0] not in UNFOLLOWED}
        exact += runs == changed
        larger.update({f"{kind}: {why[case]}" for case in runs - changed})
        whole, affected = verdicts(root), verdicts(root, "--llmeval-affected=HEAD")
        since, before = approve(root, may_fail=True), now
        others += sum(whole[name] != affected[name] for name in whole)
        red += sum(gate[1] == "failed" for *_, gates in whole.values() for gate in gates)
    print(f"history: {commits} commits of {len(kinds)} kinds, {len(why)} cases: {missed} missed; exactly the changed")
    print(f"  cases are affected by {exact} commits, by others more:", *sorted(larger), sep="\n    ")
    print(
        f"verdicts: {commits * len(whole)} suites, {red} failed gates: {others} differ from those of runs of all cases"
    )


def change(root: Path, way: str) -> None:
    """Make the change of a way."""
    changes = change_of(way)
    if not changes:
        os.environ.update(VARIABLES)
    for name, text in changes.items():
        if text is None:
            (root / name).unlink()
        else:
            write(root, {name: text})


def project_of(way: str, folder: Path) -> tuple[Path, str]:
    """Make and approve a project with the suite of one way; return its folder and the commit of the approval."""
    root = folder / way
    settings = f"[pytest]\n{WAYS[way].settings}"
    write(root, {**files_of(way), ".gitignore": "__pycache__\n.llmeval\n", "pytest.ini": settings})
    git(root, "init", "-qb", "main")
    commit(root, "begin")
    return root, approve(root)


def mutations(project: Path, approved: str, count: int, seed: int) -> None:
    """Change something many times, and print what was found."""
    whole, draw, ways = answers(project), random.Random(seed), Counter[str]()
    own = {name: project_of(name, project.parent) for name in ALONE}
    names = draw.sample([*WAYS], len(WAYS))
    changing = exact = wider = missed = unloadable = needless = unfollowed = cases = 0
    for number in range(count):
        way = "" if number % 2 else names[number // 2 % len(names)]
        root, since = own.get(way, (project, approved))
        ways[way] += 1
        if way:
            change(root, way)
        else:
            mutate(root, draw)
        try:
            why = chosen(root, since)
        except Exception:  # noqa: BLE001 (a suite that cannot be loaded fails its run)
            unloadable += 1
        else:
            now = {} if way in ALONE else answers(root)
            # Only pytest imports the plugins of a project: all of its answers change with them.
            changed = {*why} if way in ALONE else {case for case in why if now.get(case) != whole.get(case)}
            runs = {case for case, cause in why.items() if cause}
            missed += len(changed - runs)
            without = {case for case in runs - changed if case.partition("::")[0] in UNFOLLOWED}
            unfollowed += len(without)
            needless += len(runs - changed - without)
            cases += len(why)
            runs -= without
            changing += bool(changed)
            exact += runs == changed
            wider += runs > changed
        git(root, "checkout", "-q", ".")
        git(root, "clean", "-qfd")
        for name in VARIABLES:
            os.environ.pop(name, None)
    print(f"changes: {count}, seed {seed}, {count - ways['']} in {len(ways) - 1} of {len(WAYS)} ways")
    print(f"  {changing} change answers, {missed} cases missed; {exact} exact, {wider}")
    print(f"  with more cases than changed, {unloadable} that no run can load")
    print(
        f"  {needless / cases:.1%} of {cases} cases ran needlessly; {unfollowed / cases:.1%} in suites that run always"
    )


def seconds(work: Callable[[], object]) -> float:
    """Return the median of the processor seconds that some work takes, with its processes."""
    times = []
    for _ in range(ROUNDS):
        before = sum(os.times()[:4])
        work()
        times.append(sum(os.times()[:4]) - before)
    return statistics.median(times)


def cost(root: Path) -> None:
    """Print what choosing cases takes, and what collecting them does."""
    collecting = [sys.executable, "-m", "pytest", "--llmeval", "--collect-only", "-q", "-p", "no:cacheprovider"]
    suites = Checkout(root, {})
    loaded = [(SuiteKey(str(path), path.name), suites.read(path)) for path in sorted(root.glob("*.eval.json"))]

    def choose() -> None:
        chooser = choose_affected(suites, ChoiceTerms())
        for key, suite in loaded:
            chooser.choose(key, suite)

    whole = seconds(lambda: subprocess.run(collecting, cwd=root, capture_output=True, check=True))
    choosing = seconds(choose)
    print(f"choosing: {choosing:.3f} s of processor time, {choosing / whole:.0%} of the {whole:.2f} s of collecting")


UNWATCHED = (
    "from pytest_llmeval import services\nfrom pytest_llmeval.services._uses import UseRecord\n"
    "services.watch = lambda top, _: UseRecord(top)\n"
)
"""A plugin with which the run makes a record, and records nothing."""

MEASURED = (50, 250)
"""Cheap cases of the two runs by whose difference a case is measured."""


def instructions(command: list[str]) -> int:
    """Return how many instructions a command takes, which, unlike time, other programs do not change."""
    counted = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    environment = {**clean_environment(), "PYTHONHASHSEED": "0"}
    done = subprocess.run(counted, env=environment, capture_output=True, text=True, check=True)
    return int(done.stderr.rpartition("Collected : ")[2].split()[0])


def cheap_suite(cases: int) -> str:
    rows = [{"id": f"c{number}", "input": f"i{number}", "expected": f"i{number}"} for number in range(cases)]
    return json.dumps({"evaluators": [{"text": {"metrics": ["exact_match"]}}], "target": "app:answer", "cases": rows})


def recording() -> None:
    """Print what the record of uses adds to a run of cheap cases, in instructions; a first run keeps bytecode."""
    counts: dict[tuple[bool, int], int] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "app.py").write_text("def answer(value):\n    return value\n", encoding="utf-8")
        (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
        (folder / "unwatched.py").write_text(UNWATCHED, encoding="utf-8")
        command = pytest_command(folder, "--llmeval", "--llmeval-affected", f"--rootdir={folder}")
        command[1:3] = ["-c", f"import sys; sys.path.insert(0, {name!r}); import pytest; sys.exit(pytest.main())"]
        sides = {True: command, False: [*command, "-p", "unwatched"]}
        for cases in MEASURED:
            (folder / "cheap.eval.json").write_text(cheap_suite(cases), encoding="utf-8")
            for watched, options in sides.items():
                if cases == MEASURED[0]:
                    subprocess.run(options, env=clean_environment(), capture_output=True, check=True)
                counts[watched, cases] = instructions(options)
    fewest, most = MEASURED
    without, whole = (
        counts[side, fewest] + (counts[side, most] - counts[side, fewest]) / (most - fewest) * (ITEMS - fewest)
        for side in (False, True)
    )
    added = whole / without - 1
    print(f"recording: {added:.1%} of the {without / 1e9:.1f} billion instructions of {ITEMS} cheap items")


def main() -> None:
    count, commits, seed = (int(each) for each in (*sys.argv[1:], *("500", "40", "51")[len(sys.argv) - 1 :]))
    if commits:
        recording()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project").resolve()
        root.mkdir()
        for name in MIXED:
            write(root, files_of(name))
        make(root, CASES)
        since = approve(root)
        cost(root)
        mutations(root, since, count, seed)
        if commits:
            history(root, since, commits)


if __name__ == "__main__":
    main()
