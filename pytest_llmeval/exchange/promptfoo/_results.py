"""Results of promptfoo: recorded answers of its systems, as a suite that needs no model."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.core import is_finite_number
from pytest_llmeval.exchange._ledger import (
    CaseIds,
    Fate,
    ImportedSource,
    ImportedSuite,
    ImportOptions,
    LeftOutError,
    SourceLedger,
    SourcePath,
    as_list,
    as_mapping,
    fit,
)
from pytest_llmeval.exchange._media import ImportedMedia
from pytest_llmeval.exchange.promptfoo._assertions import AssertionReader
from pytest_llmeval.exchange.promptfoo._prompts import ConfigFiles
from pytest_llmeval.exchange.promptfoo._providers import grader_of, text_grader

_ANEW = "verdicts and figures are computed anew from the answer"
_PARTS: Final = {
    "description": (Fate.SAME, "the id of the case"),
    "prompt": (Fate.SAME, "part of the name of the system"),
    "provider": (Fate.SAME, "part of the name of the system"),
    "response": (Fate.SAME, "the prediction of the case, with tokens and cost where they are known"),
    "vars": (Fate.SAME, "the input of the case"),
}
_LONGEST_NAME = 80


def is_results(data: Any) -> bool:
    """Whether a promptfoo file holds results and no configuration."""
    return bool(_path_of(as_mapping(data)))


def _path_of(data: Mapping[str, Any]) -> SourcePath:
    """The path of the list of results in a promptfoo file; empty if there is none."""
    results = data.get("results")
    if isinstance(as_mapping(results).get("results"), list):
        return "results", "results"
    return ("results",) if isinstance(results, list) else ()


def import_results(ledger: SourceLedger, path: Path, options: ImportOptions) -> ImportedSource:
    """Import the recorded answers in a file of promptfoo results as a suite."""
    suite = ImportedSuite(options.suite_name(path.stem))
    media = ImportedMedia(suite)
    files = ConfigFiles(path.parent, Path(ledger.file).parent.as_posix(), media)
    reader = _ResultReader(ledger, AssertionReader(files), suite, media)
    place = _path_of(ledger.data)
    results = ledger.data
    for depth, step in enumerate(place):
        for key in results.keys() - {step}:
            text = "only answers and their assertions are read; import the configuration for the rest"
            ledger.lost((*place[:depth], key), key, text)
        results = results[step]
    for number, result in enumerate(results):
        reader.read(result, (*place, number))
    source = ImportedSource(ledger.file, ledgers=[ledger, *files.ledgers.values()])
    if reader.suite.cases:
        reader.finish()
        source.suite = reader.suite
    else:
        source.refusal = "no result has an output, which are the recorded answers"
    return source


class _ResultReader:
    """A reader of promptfoo results: those of equal variables and assertions are one case."""

    def __init__(
        self, ledger: SourceLedger, assertions: AssertionReader, suite: ImportedSuite, media: ImportedMedia
    ) -> None:
        self.ledger = ledger
        self.assertions = assertions
        self.suite = suite
        self.media = media
        self.ids = CaseIds()
        self.cases: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, dict[str, Any]] = {}
        self.judged = False

    def read(self, result: Any, path: SourcePath) -> None:
        """Read one result."""
        response = as_mapping(as_mapping(result).get("response"))
        if response.get("output") is None:
            self.ledger.lost(path, "result", "it has no output; its case has no answer of this system")
            return
        variables = as_mapping(result.get("vars"))
        test = as_mapping(result.get("testCase"))
        asserts = as_list(test.get("assert"))
        self._read_grader(text_grader(as_mapping(test.get("options")).get("provider")))
        key = json.dumps([variables, asserts], sort_keys=True)
        checks = self._checks(asserts, variables, (*path, "testCase", "assert"))
        case = self.cases.get(key)
        if case is None:
            value = variables
            with self.ledger.losing((*path, "vars"), "result vars"):
                value = self.media.replaced(variables)
            case = self.cases[key] = {"id": self.ids.next(test.get("description")), "input": value}
            if checks:
                case["checks"] = checks
            self.suite.cases.append(case)
        answers = self.answers.setdefault(_system(result), {})
        if case["id"] in answers:
            self.ledger.lost(path, "result", "its case has an answer of this system already")
            return
        answers[case["id"]] = _prediction(response)
        self._note(result, path)

    def _read_grader(self, grader: Any) -> None:
        """Take the grader of a result, which is the judge of the suite if no result before needs another."""
        self.assertions.grader = grader
        if grader is not None and not self.judged:
            with suppress(LeftOutError):  # what it grades is not imported, with this reason
                self.assertions.judge = grader_of(grader)[0]

    def _checks(self, asserts: Sequence[Any], variables: Mapping[str, Any], path: SourcePath) -> list[dict[str, Any]]:
        """Return the checks that the assertions of a result become."""
        checks = []
        for number, assertion in enumerate(asserts):
            outcome = self.assertions.read(assertion, variables, (*path, number), self.ledger)
            if outcome is None:
                continue
            if outcome.entry is None:
                text = "it is a metric with a limit, not a check; import the configuration"
                self.ledger.lost((*path, number), str(assertion.get("type")), text)
                continue
            self.judged = self.judged or outcome.judged
            checks.append(outcome.entry)
        return checks

    def _note(self, result: Mapping[str, Any], path: SourcePath) -> None:
        """Note the parts of a result that was read."""
        for key, value in result.items():
            place = (*path, key)
            if key == "testCase" and (test := as_mapping(value)):
                self.ledger.note_keys(test.keys() - {"assert"}, place, "result ", _PARTS, _ANEW)
                if not isinstance(test.get("assert"), list | None):
                    self.ledger.lost((*place, "assert"), "assertions", "not a list")
            else:
                self.ledger.note_keys([key], path, "result ", _PARTS, _ANEW)

    def finish(self) -> None:
        """Write the systems with their answers: one into the cases, several into files."""
        if len(self.answers) == 1:
            (answers,) = self.answers.values()
            for case in self.suite.cases:
                case["prediction"] = answers[case["id"]]
        else:
            self.suite.settings["systems"] = {
                name: self._recorded(number, answers) for number, (name, answers) in enumerate(self.answers.items(), 1)
            }
        if self.judged:
            self.suite.settings["judge"] = self.assertions.judge
        if not any("checks" in case for case in self.suite.cases):
            self.suite.settings["checks"] = [{"not_empty": True}]
            text = "check not_empty: a blank answer fails here, and passes there"
            self.ledger.near(("assert",), "no assertion is imported", text)

    def _recorded(self, number: int, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Write the answers of a system into a file of their own."""
        name = f"{self.suite.name}/answers-{number}.jsonl"
        lines = (json.dumps({"id": key, "prediction": answer}, ensure_ascii=False) for key, answer in answers.items())
        self.suite.files[name] = "".join(f"{line}\n" for line in lines)
        only = {"only": "predicted"} if len(answers) < len(self.suite.cases) else {}
        return {"predictions": name, **only}


def _system(result: Mapping[str, Any]) -> str:
    """The name of the system that a promptfoo result is of, from its provider and prompt."""
    provider, prompt = result.get("provider"), result.get("prompt")
    if isinstance(provider, Mapping):
        provider = provider.get("label") or provider.get("id")
    if isinstance(prompt, Mapping):
        prompt = prompt.get("label") or prompt.get("display") or prompt.get("raw")
    name = " / ".join(str(part) for part in (provider, prompt) if part)
    clean = " ".join(name.replace("[", "(").replace("]", ")").replace("::", ":").split())
    return clean[:_LONGEST_NAME].strip() or "recorded"


def _prediction(response: Mapping[str, Any]) -> Any:
    """The recorded answer in a promptfoo result's response, with its usage where it is known."""
    output, usage = response["output"], as_mapping(response.get("tokenUsage"))
    if not isinstance(output, str):
        return output
    names = {"prompt": "input_tokens", "completion": "output_tokens"}
    counts = {here: fit(int, usage.get(there)) for there, here in names.items()}
    figures: dict[str, Any] = {name: count for name, count in counts.items() if count is not None}
    cost = response.get("cost")
    if is_finite_number(cost):
        figures["cost_usd"] = cost
    return {"answer": output, "usage": figures} if figures else output
