"""Wall time of async cases through `arun`, pytest and pydantic-evals, in turn; the ideal is that of the calls alone.

A process of pytest is held against the ideal and what pytest alone takes for as many tests that do nothing.

python benchmarks/async_cases.py [CASES] [CALLS AT A TIME] [SECONDS OF A CALL] [TURNS]
"""

import statistics
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from sides import pytest_command, run_s

WHOLE, ALONE = "pytest, whole process", "pytest alone"

SUITE = """\
import asyncio, sys, time
import pytest_llmeval as ev

async def answer(question):
    await asyncio.sleep({seconds})
    return "Paris"

CASES = [{{"id": f"c{{n}}", "input": f"q{{n}}", "expected": "Paris"}} for n in range({cases})]
capitals = ev.suite("capitals", cases=CASES, evaluators=[ev.text(metrics=["exact_match"])],
    target={target})
"""

ARUN = """
async def main():
    await ev.suite("one", cases=CASES[:1], evaluators=[ev.text(metrics=["exact_match"])]).arun(answer, progress=False)
    started = time.perf_counter()
    result = await capitals.arun(answer, progress=False)
    assert result.metrics["exact_match"].value == 1
    print(time.perf_counter() - started)

asyncio.run(main())
"""

BARE = """\
import pytest

@pytest.mark.parametrize("number", range({cases}))
def test_nothing(number):
    pass
"""

PEER = """\
import asyncio, time
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected

async def answer(question):
    await asyncio.sleep({seconds})
    return "Paris"

async def main():
    cases = [Case(name=f"c{{n}}", inputs=f"q{{n}}", expected_output="Paris") for n in range({cases})]
    started = time.perf_counter()
    dataset = Dataset(name="capitals", cases=cases, evaluators=[EqualsExpected()])
    await dataset.evaluate(answer, max_concurrency={most}, progress=False)
    print(time.perf_counter() - started)

asyncio.run(main())
"""


def _printed(script: Path) -> float:
    """Return what a script prints about itself: the seconds of its second run, modules loaded."""
    from subprocess import run

    from sides import clean_environment

    done = run([sys.executable, str(script)], env=clean_environment(), capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    """Print the median of each side, and its ratio to the ideal."""
    numbers = [float(each) for each in sys.argv[1:]]
    cases, most, seconds, turns = [*numbers, *(1000, 50, 0.05, 5)[len(numbers) :]]
    values = {"cases": int(cases), "most": int(most), "seconds": seconds}
    with tempfile.TemporaryDirectory() as folder:
        names = ("script.py", "peer.py", "test_capitals.py", "bare/test_bare.py")
        script, peer, test, bare = (Path(folder, name) for name in names)
        bare.parent.mkdir()
        script.write_text(SUITE.format(**values, target={"concurrency": values["most"]}) + ARUN, encoding="utf-8")
        peer.write_text(PEER.format(**values), encoding="utf-8")
        test.write_text(SUITE.format(**values, target="answer"), encoding="utf-8")
        bare.write_text(BARE.format(**values), encoding="utf-8")
        command = pytest_command(test, "--llmeval", f"--llmeval-concurrency={values['most']}")
        alone = pytest_command(bare, ours=False)
        sides = {
            "arun": lambda: _printed(script),
            WHOLE: lambda: run_s(command)[1],
            ALONE: lambda: run_s(alone)[1],
        }
        if find_spec("pydantic_evals") is not None:
            sides["pydantic-evals"] = lambda: _printed(peer)
        taken: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(int(turns)):
            for name, side in sides.items():
                taken[name].append(side())
    ideal = cases / most * seconds
    for name, each in taken.items():
        middle = statistics.median(each)
        print(f"{name:<24}{middle:6.2f} s ({min(each):.2f} to {max(each):.2f}), {middle / ideal:.2f} x the ideal")
    ratios = sorted(ours / (ideal + bare_s) for ours, bare_s in zip(taken[WHOLE], taken[ALONE], strict=True))
    spread = f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
    print(f"{WHOLE}: {statistics.median(ratios):.2f} {spread} x the ideal and {ALONE} together")


if __name__ == "__main__":
    main()
