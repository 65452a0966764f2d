"""The scorers that others publish against the numbers here, on public files that may be fetched.

Run as ``python benchmarks/published_scorers.py FOLDER``. The folder has what may not be part of this repository; a
comparison whose files are absent is left out, and the line says which they are:

* ``evaluate.py``, ``gold.json``, ``answers.json``: the script and files of SemEval-2024 Task 3, Subtask 1;
* ``dev.json``, ``submission.json``: claims of AVeriTeC and answers to them in the same order; its ``eval.py`` calls
  scikit-learn, if it is installed;
* ``evaluation.py``, ``locomo_output.json``: the scorer of LoCoMo, and a file that its scripts write;
* ``qrels.txt``, ``run.txt``: judgements and a run; the scorer is ``pytrec_eval``, if it is installed.
"""

__all__ = ("main",)

import json
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_llmeval import get_evaluator, score
from pytest_llmeval.core import Fault
from pytest_llmeval.evaluators.measures._locomo import locomo_f1, refuses
from pytest_llmeval.tasks.emotion_cause.package import evaluate_1_2
from pytest_llmeval.tasks.fact_check._source import FactCheckSource
from pytest_llmeval.tasks.retrieval._source import TrecSource

Numbers = Mapping[str, tuple[float, float]]
"""Name of a number to its value of the published scorer, and the value here."""


AVERITEC = ("Supported", "Refuted", "Not Enough Evidence", "Conflicting Evidence/Cherrypicking")


def load(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def emotion_cause(folder: Path) -> Numbers:
    gold, answers = (json.loads((folder / name).read_text("utf-8")) for name in ("gold.json", "answers.json"))
    theirs = load(folder / "evaluate.py").evaluate_1_2(answers, gold)
    ours = evaluate_1_2(answers, gold)
    return {
        f"{row}.{place}": pair for row in (0, 1) for place, pair in enumerate(zip(theirs[row], ours[row], strict=True))
    }


def fact_check(folder: Path) -> Numbers:
    scorer: Any = import_module("sklearn.metrics")
    faults: list[Fault] = []
    source = FactCheckSource(path="dev.json", fields={"verdict": "label"}, predictions="submission.json")
    cases = source.load(folder, faults)
    result = score(get_evaluator("fact_check", explanation="omit", verdicts=AVERITEC), cases, confidence=None)
    gold, labels = (
        [row["label"] for row in json.loads((folder / name).read_text("utf-8"))]
        for name in ("dev.json", "submission.json")
    )
    theirs = {
        "verdict_accuracy": scorer.accuracy_score(gold, labels),
        "verdict_macro_f1": scorer.f1_score(gold, labels, labels=AVERITEC, average="macro"),
    }
    return {name: (value, result.metrics[name].value or 0.0) for name, value in theirs.items()}


def locomo(folder: Path) -> Numbers:
    scorer = load(folder / "evaluation.py")
    theirs: list[float] = []
    ours: list[float] = []
    for sample in json.loads((folder / "locomo_output.json").read_text("utf-8")):
        key = next(key for question in sample["qa"] for key in question if key.endswith("prediction"))
        theirs += scorer.eval_question_answering(sample["qa"], key)[0]
        for question in sample["qa"]:
            category, answer = str(question["category"]), str(question.get("answer", ""))
            ours.append(refuses(question[key]) if category == "5" else locomo_f1(question[key], answer, category))
    return {"f1": (sum(theirs) / len(theirs), sum(ours) / len(ours))}


def retrieval(folder: Path) -> Numbers:
    scorer: Any = import_module("pytrec_eval")
    faults: list[Fault] = []
    cases = TrecSource(qrels="qrels.txt", predictions="run.txt").load(folder, faults)
    tasks = {"gold": {"rule": "gold", "by": "id"}}
    result = score(get_evaluator("retrieval", k=[10], max_positives=None, tasks=tasks), cases, confidence=None)
    with (folder / "qrels.txt").open() as qrels, (folder / "run.txt").open() as run:
        judged, ranked = scorer.parse_qrel(qrels), scorer.parse_run(run)
    values = scorer.RelevanceEvaluator(judged, {"ndcg_cut.10", "map_cut.10", "recip_rank"}).evaluate(ranked)
    names = {"ndcg_cut_10": "gold_ndcg@10", "map_cut_10": "gold_map@10", "recip_rank": "gold_mrr"}
    means = {theirs: sum(each[theirs] for each in values.values()) / len(judged) for theirs in names}
    return {theirs: (means[theirs], result.metrics[ours].value or 0.0) for theirs, ours in names.items()}


COMPARISONS: Mapping[str, tuple[Callable[[Path], Numbers], tuple[str, ...], str]] = {
    "emotion_cause": (emotion_cause, ("evaluate.py", "gold.json", "answers.json"), ""),
    "fact_check": (fact_check, ("dev.json", "submission.json"), "sklearn"),
    "locomo": (locomo, ("evaluation.py", "locomo_output.json"), ""),
    "retrieval": (retrieval, ("qrels.txt", "run.txt"), "pytrec_eval"),
}
"""Name of a task to its comparison, the files that it needs, and the distribution."""


def main() -> None:
    """Print a line for each number: that of the published scorer, the number here, and their difference."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for name, (compare, files, package) in COMPARISONS.items():
        lacking = [file for file in files if not (folder / file).is_file()]
        lacking += [package] if package and find_spec(package) is None else []
        if lacking:
            print(f"{name}: left out, without {', '.join(lacking)}")
            continue
        for number, (theirs, ours) in compare(folder).items():
            print(f"{name} {number}: {theirs:.6f} {ours:.6f} difference {ours - theirs:+.1e}")


if __name__ == "__main__":
    main()
