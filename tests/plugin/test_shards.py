"""Five shards on machines of their own, judged together, are one run."""

import json
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from running import WITHOUT_UNUSED, Finished, run_python
from scripted_judges import KEY, by_answer
from servers import LlmServer, reply

from pytest_llmeval.run import Shard, ShardFile

SHARDS = 5
RECORD = ("--llmeval-judge=record", "--llmeval-predictions=answers.jsonl", "--llmeval-texts=all")

CONFTEST = """\
from pytest_llmeval import Evaluator, Metric, Observation

class Shouted(Evaluator):
    name = "shouted"

    def describe(self):
        return (Metric("shouted"),)

    def measure(self, case):
        return Observation({"loud": float(str(case.prediction).isupper()), "n": 1.0})

    def summarize(self, sums):
        return {"shouted": sums["loud"] / sums["n"]}

def pytest_llmeval_register(registry):
    registry.register(Shouted)
"""

BOT = """\
import os
import signal
from collections import Counter

def answer(word):
    if word == os.environ.get("KILLED_AT"):
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "mute":
        raise ValueError("no voice")
    return word.upper() if word not in os.environ.get("WRONG", "").split() else word

def small(word):
    return word[:3]
"""

TEST = """\
import pytest

@pytest.mark.llmeval("over.yaml")
@pytest.mark.parametrize("size", [2, 1])
def test_over(eval_case, size):
    eval_case.score(eval_case.expected[:size])

def test_of_no_case():
    pass
"""

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")
WORDS += ("ibis", "jay", "kiwi", "lark", "mute", "newt", "owl", "pony")


def _suite(path: Path, cases: list[dict[str, Any]], **top: Any) -> None:
    evaluators = {"evaluators": [{"text": {"metrics": ["exact_match", "f1"]}}]}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**evaluators, **top, "cases": cases}), encoding="utf-8")


def _write_project(folder: Path, judge: Mapping[str, Any]) -> None:
    """Write suites with judges, repeats, targets, systems, baselines, bulk mode, faults, and a test over a suite."""
    folder.mkdir()
    files = {"conftest.py": CONFTEST, "bot.py": BOT, "test_over.py": TEST, "pytest.ini": "[pytest]\npythonpath = .\n"}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    asked: list[dict[str, Any]] = [
        {"id": word, "input": word, "expected": word.upper(), "labels": {"kind": word[-1], "talk": str(number // 3)}}
        for number, word in enumerate(WORDS)
    ]
    _suite(
        folder / "asked.eval.json",
        asked,
        evaluators=[{"text": {"metrics": ["exact_match", "f1"]}}, "shouted"],
        target="bot:answer",
        repeats=2,
        cluster_by="talk",
        group_by=["kind"],
        thresholds={"f1": 0.5},
        snapshot=True,
        gates=["f1 >= 0.5", {"metric": "f1", "max_drop": 0.05}, {"metric": "shouted", "max_drop": 0.9}],
    )
    twins = [{"id": f"twin {each}", "input": "x", "expected": "y", "prediction": "same"} for each in range(4)]
    judged = [{"id": word, "input": f"Say {word}!", "expected": word, "prediction": word} for word in WORDS]
    _suite(
        folder / "sub" / "judged.eval.json",
        [*twins, *judged],
        evaluators=[{"judge": {"mode": "default_binary"}}],
        judge=judge,
        gates=["judge_score >= 0.95"],
    )
    _suite(
        folder / "systems.eval.json",
        asked,
        systems={"large": {"python": "bot:answer"}, "small": {"python": "bot:small"}},
        gates=["f1 >= 0.5", {"metric": "f1", "system": "small", "against": "large", "max_drop": 0.1}],
        thresholds={"f1": 0.5},
    )
    _suite(folder / "bulk.eval.json", asked, target="bot:answer", mode="bulk", gates=["f1 >= 0.9"])
    _suite(folder / "over.yaml", asked, gates=["f1 >= 0.1"])
    answered = [{**case, "prediction": case["expected"]} for case in asked[:3]]
    _suite(folder / "faulty.eval.json", [*answered, {"id": "x", "inptu": 1}], gates=["f1 >= 0"])
    _suite(folder / "uncalled.eval.json", [*asked[:3], {"id": "x", "inptu": 1}], target="bot:answer", gates=["f1 >= 0"])
    (folder / "broken.eval.yaml").write_text("evaluators: [txt]\n", encoding="utf-8")


@dataclass
class Machines:
    """A project in several copies.

    Attributes:
        folder: Holds them.
        environment: Of all commands.
        killed: What a run left of which one shard was killed.
        unmerged: What merging the other shards printed.
        shown: What the shards printed.
    """

    folder: Path
    environment: dict[str, str]
    killed: Finished | None = None
    unmerged: Finished | None = None
    shown: dict[int, Finished] = field(default_factory=dict)

    def copy(self, name: str) -> Path:
        """Copy the project, which a machine then has for itself."""
        return Path(shutil.copytree(self.folder / "approved", self.folder / name))

    def pytest(self, machine: Path, *args: str, workers: int = 0, **environment: str) -> Finished:
        """Run pytest in a copy."""
        line = ["-m", "pytest", *WITHOUT_UNUSED, "-pno:rerunfailures", "-pno:syrupy", "--llmeval", "-q", *args]
        line += [f"-n{workers}"] if workers else []
        return run_python(line, {**self.environment, **environment}, machine, workers=workers)

    def shard(self, number: int, **options: Any) -> Finished:
        """Run a shard on a machine of its own, and fetch its file."""
        machine = self.folder / f"machine-{number}"
        if not machine.exists():
            self.copy(machine.name)
        name = f"part-{number}.llmeval"
        ran = self.pytest(machine, f"--llmeval-shard={number}/{SHARDS}", f"--llmeval-report={name}", *RECORD, **options)
        if (machine / name).exists():
            shutil.copy(machine / name, self.folder / "parts" / name)
        return ran

    def merge(self, checkout: Path, *args: str) -> Finished:
        """Merge what was fetched, in a copy."""
        arguments = args if any(not each.startswith("-") for each in args) else (str(self.folder / "parts"), *args)
        return run_python(["-m", "pytest_llmeval", "merge", *arguments], self.environment, checkout)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """A project with approved scores, and five shards of a run that is worse; the last one was killed at first."""
    folder = tmp_path_factory.mktemp("machines")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "GITHUB_", "PYTEST_"))}
    answers = {"same": reply("yes"), "fox": reply("no"), "hen": reply("no")}
    with LlmServer(by_answer(answers)) as server:
        judge = {"model": "openai:m", "base_url": server.base_url, "retries": 0}
        found = Machines(folder, {**kept, "OPENAI_API_KEY": KEY, "COLUMNS": "200"})
        _write_project(folder / "approved", judge)
        found.pytest(folder / "approved", "--snapshot-update", "asked.eval.json")
        shutil.rmtree(folder / "approved" / ".llmeval")
        (folder / "parts").mkdir()
        found.environment["WRONG"] = "eel gnu"
        found.shown = {number: found.shard(number, workers=2 * (number == 1)) for number in range(1, SHARDS)}
        last = Shard(SHARDS, SHARDS)
        victim = next(word for word in WORDS if last.has("systems.eval.json", f"case {word}"))
        found.killed = found.shard(SHARDS, KILLED_AT=victim)
        found.unmerged = found.merge(found.copy("early"))
        found.shard(SHARDS)
        yield found


def essence(path: Path) -> str:
    """Return the text of a report or of recordings without its times."""
    text = re.sub(
        r'"(started_at|duration_s|seconds|latency_s|target_latency_s)": [^{}\n,]+',
        "time",
        path.read_text(encoding="utf-8"),
    )
    return re.sub(r'"(latency_s|target_latency_s)": \{.*?\}', "latency", text, flags=re.DOTALL)


def files(checkout: Path) -> dict[str, str]:
    """Return what a run has left to be committed."""
    found = [*checkout.rglob("__llmeval__/*"), *checkout.glob("answers.jsonl")]
    return {str(path.relative_to(checkout)): essence(path) for path in sorted(found)}


def test_a_shard_judges_no_gate_and_says_who_does(machines: Machines) -> None:
    for number, ran in machines.shown.items():
        assert f"gates not evaluated: shard {number}/5 ran" in ran.out
        assert "; run llmeval merge" in ran.out
        assert not re.search("gate (PASSED|FAILED)|snapshot", ran.out)


def test_only_tests_are_collected_to_be_left_to_other_shards(machines: Machines) -> None:
    deselected = re.search(r"(\d+) deselected", machines.shown[2].out)
    assert deselected is not None
    assert int(deselected[1]) < 2 * len(WORDS) + len(machines.shown)  # of test_over.py, and bulk items without a case


def test_a_shard_that_is_killed_is_missed_by_name(machines: Machines) -> None:
    assert machines.killed is not None
    assert machines.killed.code == -signal.SIGKILL
    assert machines.unmerged is not None
    assert machines.unmerged.code == 1
    assert "the file of shard 5/5 is missing: name the files of all 5 shards" in machines.unmerged.err


def test_five_shards_merged_are_one_run(machines: Machines) -> None:
    whole, merged = machines.copy("whole"), machines.copy("merged")
    ran = machines.pytest(whole, "--llmeval-report=report.json", *RECORD)
    done = machines.merge(merged, "--report=report.json", "--report=report.md", "--report=errors.json")
    assert (ran.code, done.code) == (1, 1), done.err
    report = essence(whole / "report.json")
    assert essence(merged / "report.json") == report
    for outcome in ("passed", "failed", "errored", "not_judged"):
        assert f'"outcome": "{outcome}"' in report
    for part in ("snapshot", "faults", "systems", "usage", "clusters", "stability", "judgings"):
        assert f'"{part}":' in report
    assert files(merged) == files(whole)
    assert "sub/__llmeval__/judged.judgements.jsonl" in files(whole)
    assert {path.name for path in merged.glob("*.md")} == {"report.md"}


def test_a_merge_approves_what_one_run_would(machines: Machines) -> None:
    whole, merged = machines.copy("whole approved"), machines.copy("merged approved")
    machines.pytest(whole, "--snapshot-update", *RECORD)
    machines.merge(merged, "--snapshot-update")
    assert files(merged) == files(whole) != files(machines.folder / "approved")


def test_every_case_runs_in_one_shard(machines: Machines) -> None:
    parts = [ShardFile.read(each, machines.folder) for each in (machines.folder / "parts").iterdir()]
    ran = Counter(
        (each.part.key, record.id) for part in parts for each in part.run.items.values() for record in each.part.records
    )
    assert set(ran.values()) == {1}
    # Of the suites whose files have a fault, the one with answers is scored, and the one with a target calls nothing.
    assert len(ran) == 2 * len(WORDS) + len(WORDS) + 4 + 2 * len(WORDS) + len(WORDS) + len(WORDS) + 3


@pytest.mark.parametrize(
    ("file", "text", "what"),
    [
        (
            "conftest.py",
            CONFTEST.replace('n": 1.0', 'n": 2.0'),
            "asked.eval.json cannot be judged here: conftest.py: found other code than the shard ran",
        ),
        ("over.yaml", None, "over.yaml cannot be judged here"),
        ("bulk.eval.json", "", "found a run of bulk.eval.json that differs in suite file"),
    ],
)
def test_shards_of_another_checkout_are_refused_by_name(
    machines: Machines, tmp_path: Path, file: str, text: str | None, what: str
) -> None:
    checkout = tmp_path / "other"
    shutil.copytree(machines.folder / "approved", checkout)
    if text is None:
        (checkout / file).unlink()
    else:
        (checkout / file).write_text(text, encoding="utf-8")
    done = machines.merge(checkout)
    assert done.code == 1
    assert re.search(rf"part-1\.llmeval: .*{re.escape(what)}", done.err)
