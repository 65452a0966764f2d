"""Our verdicts for constructs of other tools: imported, and tried on answers."""

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from counterparts import COUNTERPARTS, Written, written

from pytest_llmeval.core import Case
from pytest_llmeval.core._case import PredictionParts
from pytest_llmeval.evaluators import Checks
from pytest_llmeval.exchange import ImportedSource, ImportOptions
from pytest_llmeval.exchange._commands import import_source
from pytest_llmeval.exchange._ledger import Construct, Fate
from pytest_llmeval.exchange._templates import Direction

ROWS: Final = Path(__file__).parent / "rows"


@dataclass
class Imported:
    """A construct after import.

    Attributes:
        fate: Its fate.
        checks: Of its case.
        constructs: It, and those inside it.
    """

    fate: Fate
    checks: Sequence[Any] = ()
    constructs: Sequence[Construct] = ()

    def verdict(self, answer: Any) -> bool:
        """Return whether an answer passes; of a limit of time, the answer is milliseconds."""
        timed = any("latency_s" in each or "not_latency_s" in each for each in self.checks)
        figures = {"latency_s": answer / 1000} if timed else {}
        parts = PredictionParts(prediction="x" if timed else answer, figures=figures)
        found = self._evaluator.measure(Case("a", prediction=parts.prediction, origin=parts))
        return found.malformed is None and not found.errored

    @cached_property
    def _evaluator(self) -> Checks:
        return Checks(tuple(self.checks))

    def explains(self, answer: Any, *, ours: bool) -> bool:
        """Return whether the report says that an answer may be judged otherwise."""
        if not isinstance(answer, str) or unicodedata.normalize("NFC", answer) != answer:
            return True
        direction = Direction.LOOSER if ours else Direction.STRICTER
        known = {difference.direction for each in self.constructs for difference in each.differences}
        return bool(known & {direction, Direction.EITHER})


def source_of(format_name: str, data: Any, folder: Path) -> ImportedSource:
    path = folder / "suite.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    source = import_source(format_name, path, path.name, ImportOptions())
    assert source is not None
    return source


def imported_assertions(assertions: Sequence[Mapping[str, Any]]) -> list[Imported]:
    """Return assertions of promptfoo, each imported as that of a test of its own."""
    tests = [{"vars": {}, "assert": [each], "providerOutput": "x"} for each in assertions]
    with TemporaryDirectory() as folder:
        source = source_of("promptfoo", {"tests": tests}, Path(folder))
    assert source.suite is not None
    constructs: dict[Any, list[Construct]] = {}
    for each in source.constructs:
        if each.path[2:3] == ("assert",):
            constructs.setdefault(each.path[1], []).append(each)
    fates = [max((each.fate for each in constructs[number]), key=list(Fate).index) for number in range(len(tests))]
    return [
        Imported(fate, case.get("checks", ()), constructs[number])
        for number, (fate, case) in enumerate(zip(fates, source.suite.cases, strict=True))
    ]


def imported_evaluators(evaluators: Sequence[Mapping[str, Any]]) -> list[Imported]:
    """Return evaluators of pydantic-evals, each imported as that of a case of its own."""
    cases = []
    for number, each in enumerate(evaluators):
        expected = each.get("EqualsExpected")
        own = {"evaluators": ["EqualsExpected"], **expected} if expected else {"evaluators": [each]}
        cases.append({"name": str(number), "inputs": "x", **own})
    with TemporaryDirectory() as folder:
        source = source_of("pydantic-evals", {"cases": cases}, Path(folder))
    assert source.suite is not None
    known = {each.path[1]: each for each in source.constructs if each.path[2:3] == ("evaluators",)}
    listed = enumerate(source.suite.cases)
    return [Imported(known[number].fate, case.get("checks", ()), [known[number]]) for number, case in listed]


def imported_graders(graders: Sequence[Mapping[str, Any]]) -> list[Imported]:
    """Return graders of OpenAI with right answers; those of one kind are imported together."""
    return _by_kind(graders, _string_checks)


def imported_scorers(scorers: Sequence[Mapping[str, Any]]) -> list[Imported]:
    """Return scorers of inspect_ai with targets; those of one kind are imported together."""
    return _by_kind(scorers, _log)


def _by_kind(
    constructs: Sequence[Mapping[str, Any]], imported: Callable[[str, list[Any]], list[Imported]]
) -> list[Imported]:
    groups: dict[str, list[Any]] = {}
    for each in constructs:
        ((kind, value),) = each.items()
        groups.setdefault(kind, []).append(value)
    remaining = {kind: iter(imported(kind, values)) for kind, values in groups.items()}
    return [next(remaining[next(iter(each))]) for each in constructs]


def _string_checks(kind: str, ideals: list[Any]) -> list[Imported]:
    grader = {"type": "string_check", "operation": kind, "name": "a"}
    grader |= {"input": "{{ sample.output_text }}", "reference": "{{ item.ideal }}"}
    imports = []
    for each in ideals:
        data = {"testing_criteria": [grader], "items": [{"ideal": each}]}
        with TemporaryDirectory() as folder:
            imports += _of_cases(source_of("openai-evals", data, Path(folder)), "testing_criteria")
    return imports


def _log(kind: str, targets: list[Any]) -> list[Imported]:
    samples = [{"id": n, "epoch": 1, "input": "x", "target": each} for n, each in enumerate(targets)]
    data = {"eval": {"task": "a", "scorers": [{"name": kind}]}, "status": "success", "samples": samples}
    with TemporaryDirectory() as folder:
        return _of_cases(source_of("inspect-ai", data, Path(folder)), "eval")


def _of_cases(source: ImportedSource, *first: str) -> list[Imported]:
    """Return the cases of a source, with the constructs below some keys, or those of the case itself."""
    assert source.suite is not None
    shared = [each for each in source.constructs if each.path[0] == first[0]]
    listed = []
    for number, case in enumerate(source.suite.cases):
        own = [each for each in source.constructs if each.path == (*first[1:], number)]
        fate = max((each.fate for each in [*shared, *own]), key=list(Fate).index)
        listed.append(
            Imported(fate if case.get("checks") else Fate.NOT_IMPORTED, case.get("checks", ()), [*shared, *own])
        )
    return listed


IMPORTED: Final[Mapping[str, Callable[[Sequence[Mapping[str, Any]]], Sequence[Imported | Written]]]] = {
    **{tool: partial(written, tool) for tool in COUNTERPARTS},
    "inspect-ai": imported_scorers,
    "openai-evals": imported_graders,
    "promptfoo": imported_assertions,
    "pydantic-evals": imported_evaluators,
}
"""Tool to what returns its constructs as they are here: after import, or as people would write them."""


@cache
def kept(tool: str) -> tuple[Any, Sequence[Imported | Written]]:
    """Return the content of a file of rows, and its constructs after import."""
    data = json.loads((ROWS / f"{tool}.json").read_text(encoding="utf-8"))
    return data, IMPORTED[tool]([construct for construct, _, _ in data["rows"]])


def verdicts_of_configuration(config: Any, files: Mapping[str, str]) -> tuple[str, ImportedSource]:
    """Return our verdict for each case of a configuration after import, and the import."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        source = source_of("promptfoo", config, folder)
    if source.suite is None:
        return "", source
    shared = source.suite.settings.get("checks", [])
    return "".join("T" if _passes(case, shared) else "F" for case in source.suite.cases), source


def _passes(case: Mapping[str, Any], shared: Sequence[Any]) -> bool:
    checks = [*shared, *case.get("checks", ())]
    return Imported(Fate.SAME, checks).verdict(case["prediction"]) if checks else True


def compared(imported: Imported | Written, answers: Sequence[Any], row: str) -> Iterator[tuple[Any, str]]:
    """Yield each answer with how our verdict compares with that of the tool: equal, documented or different."""
    for answer, letter in zip(answers, row, strict=True):
        if imported.fate is Fate.NOT_IMPORTED:
            yield answer, "not imported"
            continue
        ours = imported.verdict(answer)
        explained = ours == (letter == "T") or imported.explains(answer, ours=ours)
        yield answer, "equal" if ours == (letter == "T") else "documented" if explained else "different"
