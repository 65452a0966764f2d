"""The registry of the package evals: evals with samples in JSONL."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.exchange.contract import (
    CaseIds,
    Fate,
    ImportedSource,
    ImportedSuite,
    ImportOptions,
    LeftOutError,
    SourceLedger,
    as_mapping,
    read_records,
    read_source,
)
from pytest_llmeval.exchange.templates import (
    Direction,
    VerdictDifference,
    as_example,
    of_booleans,
    of_composing,
    of_folding,
    texts_in,
)

CLASSES: Final[Mapping[str, tuple[str, list[VerdictDifference]]]] = {
    "FuzzyMatch": (
        "check icontains_any",
        [
            VerdictDifference(
                "there, punctuation and articles are left out, and either may contain the other",
                Direction.STRICTER,
                as_example("Li"),
            )
        ],
    ),
    "Includes": ("check contains_any of the ideal answers", []),
    "JsonMatch": ("check json_equals, any_of several", []),
    "Match": ("check starts_with, any_of several", []),
    "ModelBasedClassify": (
        "evaluator judge with the prompt of its spec",
        [VerdictDifference("texts follow as data")],
    ),
}
"""Class of an eval to its meaning here, and the differences."""
_ALIAS_KEYS: Final = {
    **dict.fromkeys(("id", "description"), (Fate.SAME, "name or description of the suite")),
    "metrics": (Fate.NEAR, "check_rate, the share of the checks that are met"),
}
_ARGUMENTS: Final = {
    **dict.fromkeys(("samples_jsonl", "modelgraded_spec", "ignore_case"), (Fate.SAME, "read")),
    **dict.fromkeys(("max_tokens", "temperature"), (Fate.NOT_IMPORTED, "set it with the model, under systems")),
    "eval_type": (Fate.NEAR, "the judge gives its reason before its choice"),
}
_SPEC: Final = dict.fromkeys(
    ("prompt", "choice_strings", "choice_scores", "input_outputs"), (Fate.NEAR, "prompt and reply of evaluator judge")
)
_COLUMNS: Final = {
    "id": (Fate.SAME, "the id of the case"),
    "ideal": (Fate.SAME, "the right answers"),
    "input": (Fate.SAME, "the input: a text, or messages for the model"),
}
_JUDGE = "openai:gpt-4o"
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def is_registry(data: Any) -> bool:
    """Return whether a file is of the registry: evals by name, or specs of graders with choices."""
    return any({"class", "id", "choice_strings"} & as_mapping(each).keys() for each in as_mapping(data).values())


def is_samples(records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether records are samples of the registry."""
    return all("input" in each and "item" not in each for each in records)


def import_registry(path: Path, ledger: SourceLedger, options: ImportOptions) -> ImportedSource:
    """Return an eval of the registry, with the samples that it names, as a suite."""
    source = ImportedSource(ledger.file, ledgers=[ledger])
    evals = [name for name, each in ledger.data.items() if isinstance(each, Mapping) and "class" in each]
    for name, each in ledger.data.items():
        if isinstance(each, Mapping) and "class" not in each:
            ledger.note_keys(each, (name,), "", _ALIAS_KEYS, "a spec of a grader, which an eval has to use")
    reasons = [reason for name in evals if (reason := _import_eval(path, ledger, name, source, options))]
    if source.suite is not None:
        return source
    return source.refuse(
        "; ".join(reasons) or "found no eval with a class, expected one: a spec of a grader has no cases"
    )


def _import_eval(path: Path, ledger: SourceLedger, name: str, source: ImportedSource, options: ImportOptions) -> str:
    """Import one eval; return why it could not be."""
    entry = ledger.data[name]
    kind = str(entry["class"]).rpartition(":")[2]
    args = as_mapping(entry.get("args"))
    if source.suite is not None:
        ledger.lost((name,), "eval", "a file becomes one suite; import a file with this eval alone")
        return ""
    if kind not in CLASSES:
        ledger.lost((name,), f"class {kind}", "its code is not known; write a registered check")
        return f"found the class {kind}, expected one of {', '.join(CLASSES)}"
    samples = _find(path, "data", str(args.get("samples_jsonl", "")))
    if samples is None:
        samples_file = args.get("samples_jsonl")
        return f"found no samples file {samples_file!r}, expected it beside the file, or in data/ beside its folder"
    inner, records, _ = read_records(samples, samples.as_posix())
    if not is_samples(records):
        raise inner.fault((), "found records without input, expected samples")
    suite = ImportedSuite(options.suite_name(name))
    aliases = [each for each in ledger.data.values() if isinstance(each, Mapping) and each.get("id") == name]
    description = next((each["description"] for each in aliases if isinstance(each.get("description"), str)), None)
    if description:
        suite.settings["description"] = description
    if kind == "ModelBasedClassify":
        reason = _judged(path, suite, args, source)
        if reason:
            ledger.lost((name,), f"class {kind}", reason)
            return reason
    ledger.same((name, "class"), f"class {kind}", *CLASSES[kind])
    ledger.note_keys(args, (name, "args"), "argument ", _ARGUMENTS, "an eval has no such setting here")
    ledger.note_keys(entry.keys() - {"class", "args"}, (name,), "", {}, "a suite has no such setting")
    samples_suite(suite, inner, records, kind, ignore_case=bool(args.get("ignore_case")))
    source.suite = suite
    source.ledgers.append(inner)
    return ""


def _find(path: Path, folder: str, name: str) -> Path | None:
    """Return a file of the registry: next to the eval, or in the folder of its kind."""
    if not name or Path(name).is_absolute() or ".." in Path(name).parts:
        return None
    places = (
        path.parent / name,
        path.parent / folder / name,
        path.parent.parent / folder / name,
        path.parent / Path(name).name,
    )
    return next((each for each in places if each.is_file()), None)


def _judged(path: Path, suite: ImportedSuite, args: Mapping[str, Any], source: ImportedSource) -> str:
    """Write the judge of a model-graded eval; return why it cannot be."""
    name = str(args.get("modelgraded_spec", ""))
    file = _find(path, "modelgraded", f"{name}.yaml")
    if file is None:
        return f"found no modelgraded spec {name!r}, expected {name}.yaml beside the file, or in modelgraded/"
    inner = read_source(file, file.as_posix())
    spec = as_mapping(inner.data).get(name)
    if not isinstance(spec, Mapping) or not isinstance(spec.get("prompt"), str):
        return f"found no prompt in the spec {name!r}, expected a text"
    outputs = spec.get("input_outputs")
    answers = [*outputs.values()] if isinstance(outputs, Mapping) else ["completion"]
    if len(answers) != 1:
        return f"found {len(answers)} answers in the prompt of {name!r}, expected one: evaluator pairwise compares two"
    choices = _choices(spec)
    if choices is None:
        return f"found no choice_scores in the spec {name!r}, expected a score for each choice"

    def placeholder(match: re.Match[str]) -> str:
        places = {"input": "question", "ideal": "expected", answers[0]: "answer"}
        return f"{{{{ {places.get(match[1], f'input.{match[1]}')} }}}}"

    suite.files[f"{suite.name}/grader.md"] = _PLACEHOLDER.sub(placeholder, spec["prompt"]) + "\n"
    reply = {"reason": "text", "score": {"choices": choices}}
    suite.settings["evaluators"] = [{"judge": {"prompt": f"{suite.name}/grader.md", "reply": reply}}]
    suite.settings["judge"] = {"model": _JUDGE}
    inner.note_keys(spec, (name,), "spec ", _SPEC, "a prompt for judges has no such setting")
    source.ledgers.append(inner)
    return ""


def _choices(spec: Mapping[str, Any]) -> dict[str, float] | None:
    """Return the score of each choice."""
    strings, scores = spec.get("choice_strings"), spec.get("choice_scores")
    names = list(strings) if isinstance(strings, list | str) else []
    if isinstance(scores, Mapping) and all(isinstance(each, int | float) for each in scores.values()):
        return {str(each): float(scores.get(str(each), 0.0)) for each in names or scores}
    if scores == "from_strings":
        with suppress(ValueError):
            return {str(each): float(each) for each in names}
    return None


def samples_suite(
    suite: ImportedSuite,
    ledger: SourceLedger,
    records: Sequence[Mapping[str, Any]],
    kind: str,
    *,
    ignore_case: bool = False,
) -> None:
    """Add a case for each sample.

    Args:
        suite: Gets the cases.
        ledger: Of the samples.
        records: The samples.
        kind: Class of the eval; empty if there is none.
        ignore_case: Whether upper and lower case are alike.
    """
    ids = CaseIds()
    for number, record in enumerate(records):
        case: dict[str, Any] = {"id": ids.next(record.get("id")), "input": record["input"]}
        ideal = record.get("ideal")
        answers = [each for each in (ideal if isinstance(ideal, list) else [ideal]) if each is not None]
        if answers:
            if kind in ("", "ModelBasedClassify"):
                case["expected"] = ideal
            else:
                try:
                    case["checks"] = [_check(kind, list(map(str, answers)), ledger, number, ignore_case=ignore_case)]
                except LeftOutError as error:
                    ledger.lost(("ideal", number), "ideal", str(error))
        suite.cases.append(case)
    ledger.note_keys(ledger.data, (), "column ", _COLUMNS, "a sample has input and ideal")
    if kind == "":
        suite.settings["evaluators"] = [{"text": {"metrics": ["exact_match", "f1"]}}]
    elif "evaluators" not in suite.settings and not any("checks" in case for case in suite.cases):
        suite.settings["checks"] = [{"not_empty": True}]


def _check(kind: str, answers: list[str], ledger: SourceLedger, number: int, *, ignore_case: bool) -> dict[str, Any]:
    """Return the check that an answer is right by the class of an eval, after noting its differences.

    Raises:
        LeftOutError: No ideal answer can be a check.
    """
    if kind == "JsonMatch":
        checks = [{"json_equals": value} for value in _json_ideals(answers)]
        texts = [text for each in checks for text in texts_in(each["json_equals"])]
        differences = [each for check in checks for each in of_booleans(check["json_equals"])]
    elif any(not each for each in answers):
        raise LeftOutError("it is empty, so it is no check")
    elif kind == "Match":
        checks, texts, differences = [{"starts_with": each} for each in answers], answers, []
    else:
        folded = ignore_case or kind == "FuzzyMatch"
        checks, texts = [{"icontains_any" if folded else "contains_any": answers}], answers
        differences = list(of_folding(*answers)) if folded else []
    if differences := [*differences, *of_composing(*texts)]:
        ledger.same(("ideal", number), "ideal", "the right answers", differences)
    return checks[0] if len(checks) == 1 else {"any_of": checks}


def _json_ideals(answers: Sequence[str]) -> list[Any]:
    """Return ideal answers as JSON, without those that hold null: the tool takes null for a missing value.

    Raises:
        LeftOutError: None is left, or one is no JSON.
    """
    try:
        values = [json.loads(each) for each in answers]
    except ValueError:
        raise LeftOutError("it is no JSON, so it is no check") from None
    if complete := [each for each in values if not _has_null(each)]:
        return complete
    raise LeftOutError("it has null, which no answer equals there; write a check json_schema with const")


def _has_null(value: Any) -> bool:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return value is None or any(map(_has_null, inner))
