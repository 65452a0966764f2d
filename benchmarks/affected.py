"""Runs of affected cases at full size: a history of 40 commits, 500 mutations, and what selecting costs.

Run: ``python benchmarks/affected.py [MUTATIONS] [SEED]``. The project has 12 suites of 50 cases, whose answers depend
on files in twelve ways. Each state of it is compared with an approved run: the affected cases must be those whose row,
answer or evaluators differ in a run of all, or more with a reason, and never fewer. Tests do the same with few cases.
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

from affected_project import STEPS, answers, approve, chosen, commit, git, make, mutate  # noqa: E402 (those of tests)

from pytest_llmeval.run import Checkout, ChoiceTerms  # noqa: E402
from pytest_llmeval.suites import SuiteKey  # noqa: E402
from pytest_llmeval.workbench._affected import choose_affected  # noqa: E402

CASES, COMMITS, ROUNDS = 50, 40, 5
Answers = dict[str, object]


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


def history(root: Path, since: str) -> None:
    """Commit changes of every kind, approve a run of affected cases after each, and print what was found."""
    before, kinds, larger = answers(root), list(STEPS), Counter[str]()
    exact = missed = others = red = 0
    for number in range(COMMITS):
        kind = kinds[number % len(kinds)]
        STEPS[kind][0](root)
        commit(root, kind)
        now = answers(root)
        changed, why = different(before, now), chosen(root, since)
        runs = {case for case, cause in why.items() if cause}
        missed += len(changed - runs)
        exact += runs == changed
        larger.update({f"{kind}: {why[case]}" for case in runs - changed})
        whole, affected = verdicts(root), verdicts(root, "--llmeval-affected=HEAD")
        since, before = approve(root, may_fail=True), now
        others += sum(whole[name] != affected[name] for name in whole)
        red += sum(gate[1] == "failed" for *_, gates in whole.values() for gate in gates)
    print(f"history: {COMMITS} commits of {len(kinds)} kinds, {len(why)} cases: {missed} missed; exactly the changed")
    print(f"  cases are affected by {exact} commits, by others more:", *sorted(larger), sep="\n    ")
    print(
        f"verdicts: {COMMITS * len(whole)} suites, {red} failed gates: {others} differ from those of runs of all cases"
    )


def mutations(root: Path, since: str, count: int, seed: int) -> None:
    """Change one file at random, many times, and print what was found."""
    before, draw = answers(root), random.Random(seed)
    changing = exact = wider = missed = unloadable = 0
    for _ in range(count):
        mutate(root, draw)
        try:
            why = chosen(root, since)
        except Exception:  # noqa: BLE001 (a suite that cannot be loaded fails its run)
            unloadable += 1
        else:
            now = answers(root)
            changed = {case for case in why if now.get(case) != before.get(case)}
            runs = {case for case, cause in why.items() if cause}
            missed += len(changed - runs)
            changing += bool(changed)
            exact += runs == changed
            wider += runs > changed
        git(root, "checkout", "-q", ".")
        git(root, "clean", "-qfd")
    print(f"mutations: {count}, seed {seed}: {changing} change answers, {missed} cases missed; {exact} exact, {wider}")
    print(f"  with more cases than changed, {unloadable} that no run can load")


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


def main() -> None:
    count, seed = (int(each) for each in (*sys.argv[1:], *("500", "51")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project").resolve()
        root.mkdir()
        make(root, CASES)
        since = approve(root)
        cost(root)
        mutations(root, since, count, seed)
        history(root, since)


if __name__ == "__main__":
    main()
