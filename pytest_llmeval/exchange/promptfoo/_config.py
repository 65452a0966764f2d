"""A configuration of promptfoo as a suite."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

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
    numbered,
    read_source,
)
from pytest_llmeval.exchange._media import ImportedMedia, MediumPart, is_file
from pytest_llmeval.exchange._templates import TemplateError, is_template, rewritten
from pytest_llmeval.exchange.promptfoo._assertions import AssertionReader
from pytest_llmeval.exchange.promptfoo._outcomes import Outcome, constant
from pytest_llmeval.exchange.promptfoo._prompts import ConfigFiles, ImportedPrompt, PromptReader
from pytest_llmeval.exchange.promptfoo._providers import (
    ImportedModel,
    ProviderReader,
    embeddings_of,
    grader_of,
    text_grader,
)
from pytest_llmeval.exchange.promptfoo._results import import_results, is_results
from pytest_llmeval.exchange.promptfoo._tests import Noted, TestReader, TestRow, is_reached_always, together

_TOP: Final = {
    "commandLineOptions": "options belong to the command line: pytest --help, section llmeval",
    "defaultTest": "neither a mapping nor a file with one",
    "derivedMetrics": "metrics are not computed from others by formulas; write an evaluator",
    "env": "set the variables in the environment",
    "evaluateOptions": "see the options of pytest --llmeval",
    "extensions": "they are code, which is never executed; write fixtures in a conftest.py",
    "metadata": "a suite has a description",
    "nunjucksFilters": "they are code, which is never executed",
    "outputPath": "name the report on the command line: --llmeval-report=FILE",
    "redteam": "no attacks are generated here; save those that promptfoo has generated as tests, and import them",
    "sharing": "nothing is shared",
    "tags": "a suite has no tags; its cases have",
    "tracing": "let a target return messages or tool_calls",
    "writeLatestResults": "reports are written where --llmeval-report says",
}
_KNOWN = frozenset(
    {
        "$schema",
        "assertionTemplates",
        "defaultTest",
        "description",
        "evaluateOptions",
        "prompts",
        "providers",
        "redteam",
        "scenarios",
        "targets",
        "tests",
    }
)
_MOST_REPEATS = 1000
_ROUTE = re.compile("(?:URL|HOST|ENDPOINT|PROXY|REGION)$", re.IGNORECASE)
"""Ends of the names of variables that decide where texts go."""

_ELSEWHERE = "which decides where texts go: take it out, and give each provider its address, such as apiBaseUrl"
_NO_CASE = "no test can be imported as a case: write tests with vars in the file, or in CSV, JSON or YAML beside it"


def import_promptfoo(path: Path, display_path: str, options: ImportOptions) -> ImportedSource:
    """Import a configuration of promptfoo, or a file of its results, as a suite.

    Raises:
        SuiteError: It cannot be read.
    """
    ledger = read_source(path, display_path)
    if is_results(ledger.data):
        return import_results(ledger, path, options)
    if not _KNOWN & as_mapping(ledger.data).keys():
        message = "prompts, providers and tests are missing, expected a configuration of promptfoo or its results"
        raise ledger.fault((), message)
    return _ConfigImport(path, ledger, options).imported()


def _wanted_name(path: Path) -> str:
    """The name of an imported promptfoo suite: the file's, or the folder's if files are named alike everywhere."""
    if not path.stem.startswith("promptfooconfig"):
        return path.stem
    stem = re.sub(r"^promptfooconfig[.-]?", "", path.stem)
    folder = path.resolve().parent.name
    return f"{folder}-{stem}" if stem else folder


class _ConfigImport:
    """The import of one configuration of promptfoo."""

    def __init__(self, path: Path, ledger: SourceLedger, options: ImportOptions) -> None:
        self.ledger = ledger
        self.data: Mapping[str, Any] = ledger.data
        self.suite = ImportedSuite(options.suite_name(_wanted_name(path)))
        self.media = ImportedMedia(self.suite, path.parent)
        self.files = ConfigFiles(path.parent, Path(ledger.file).parent.as_posix(), self.media)
        self.tests = TestReader(self.files, as_mapping(self.data.get("assertionTemplates")))
        self.assertions = AssertionReader(self.files)
        self.prompt_reader = PromptReader(self.files)
        self.provider_reader = ProviderReader(self.files)
        self.judged = False
        self.evaluators: dict[str, dict[str, Any]] = {}
        self.checks: list[dict[str, Any]] = []

    def imported(self) -> ImportedSource:
        """Return the suite with the fate of every construct."""
        self._read_top()
        shared = self._shared()
        rows = list(self._rows())
        if not rows and not {"tests", "scenarios", "redteam"} & self.data.keys() and self.prompt_reader.prompts:
            rows = [TestRow()]
        self._choose_judge([shared, *rows])
        at_suite = shared.threshold is None and not any(row.alone or row.threshold for row in rows)
        self.assertions.embeddings = _embeddings(shared)
        self.assertions.grader = _grader(shared)
        inherited = [noted for noted in shared.asserts if not (at_suite and self._for_all(noted, shared.changed))]
        ids = CaseIds()
        for row in rows:
            self._add_cases(row, shared, inherited, ids)
        for noted in shared.asserts:
            if not noted.ledger.knows(noted.path):
                noted.ledger.lost(noted.path, "assertion", "no case has it")
        ledgers = [self.ledger, *self.files.ledgers.values(), *self.tests.tables]
        source = ImportedSource(self.ledger.file, ledgers=ledgers)
        if routes := sorted(name for name in map(str, as_mapping(self.data.get("env"))) if _ROUTE.search(name)):
            return source.refuse(f"its env has {', '.join(routes)}, {_ELSEWHERE}")
        if self.suite.cases:
            self._write_settings()
            source.suite = self.suite
            return source
        return source.refuse(_NO_CASE)

    def _read_top(self) -> None:
        """Read everything but the tests."""
        for key, value in self.data.items():
            place: SourcePath = (key,)
            match key:
                case "description" if isinstance(value, str):
                    self.suite.settings["description"] = value
                    self.ledger.same(place, key, "description of the suite")
                case "prompts":
                    self.prompt_reader.read(value, place, self.ledger)
                case "providers" | "targets":
                    self.provider_reader.read(value, place, self.ledger)
                case "assertionTemplates":
                    self.ledger.same(place, key, "written out where they are referred to")
                case "$schema":
                    self.ledger.same(place, key, "suite files have a schema of their own: llmeval schema")
                case "evaluateOptions" if isinstance(value, Mapping):
                    self._read_run_options(value, place)
                case "scenarios" | "tests":
                    pass
                case "defaultTest" if isinstance(value, Mapping | str):
                    pass
                case _:
                    self.ledger.lost(place, key, _TOP.get(key, "a suite has no such setting"))

    def _read_run_options(self, value: Mapping[str, Any], path: SourcePath) -> None:
        for name, setting in value.items():
            place = (*path, name)
            if name == "repeat" and 1 <= (fit(int, setting) or 0) <= _MOST_REPEATS:
                self.suite.settings["repeats"] = setting
                self.ledger.near(place, f"option {name}", "repeats; a case has the mean of its scores")
            elif name == "maxConcurrency":
                self.ledger.lost(place, f"option {name}", "set it on the command line: --llmeval-concurrency")
            else:
                self.ledger.lost(place, f"option {name}", "see the options of pytest --llmeval")

    def _shared(self) -> TestRow:
        """Return the settings that all tests share."""
        value = self.data.get("defaultTest")
        if isinstance(value, Mapping):
            return self.tests.row(value, ("defaultTest",), self.ledger)
        if isinstance(value, str):
            path, kind = ("defaultTest",), f"defaultTest {value}"
            with self.ledger.losing(path, kind):
                inner = self.files.data(self.files.path(value))
                if isinstance(inner.data, Mapping):
                    self.ledger.same(path, kind, "its content is read")
                    return self.tests.row(inner.data, (), inner)
                self.ledger.lost(path, kind, "its file holds no mapping")
        return TestRow()

    def _rows(self) -> Iterator[TestRow]:
        """Yield all tests."""
        if self.data.get("tests") is not None:
            yield from self.tests.rows(self.data["tests"], ("tests",), self.ledger)
        for number, scenario in enumerate(as_list(self.data.get("scenarios"))):
            yield from self._of_scenario(scenario, ("scenarios", number))

    def _of_scenario(self, scenario: Any, path: SourcePath) -> Iterator[TestRow]:
        """Yield each test of a scenario with each of its sets of variables."""
        if not {"config", "tests"} <= as_mapping(scenario).keys():
            self.ledger.lost(path, "scenario", "config or tests is missing")
            return
        for key in scenario.keys() - {"config", "tests"}:
            if key == "description":
                self.ledger.near((*path, key), "description of a scenario", "ids are the descriptions of the tests")
            else:
                self.ledger.lost((*path, key), f"{key} of a scenario", "a suite has no such setting")
        configs = list(self.tests.rows(scenario["config"], (*path, "config"), self.ledger))
        tests = list(self.tests.rows(scenario["tests"], (*path, "tests"), self.ledger))
        for config in configs:
            if config.place is not None:
                config.place.ledger.same(config.place.path, "scenario", "variables of a case for each of its tests")
            for test in tests:
                yield replace(test.over(config), asserts=[*config.asserts, *test.asserts])

    def _choose_judge(self, rows: Sequence[TestRow]) -> None:
        """Choose the judge: the first grader that is a model."""
        chosen = None
        for row in rows:
            if row.judge is None:
                continue
            _, path, ledger = row.judge
            if _embeddings(row) is not None:
                ledger.same(path, "provider of embeddings", "the model of evaluator semantic, if it can be asked")
            value = _grader(row)
            if value is None:
                continue
            try:
                settings, differs = grader_of(value)
            except LeftOutError as error:
                ledger.lost(path, "grader", f"{error}; what it grades is not imported")
                continue
            chosen = chosen or settings
            if settings != chosen:
                ledger.lost(path, "grader", "a suite has one judge; write these cases into a suite of their own")
            elif differs:
                ledger.near(path, "grader", f"the judge of the suite; {differs}")
            else:
                ledger.same(path, "grader", "the judge of the suite")
        self.assertions.judge = chosen or self._named_by_assertions(rows) or self.assertions.judge

    def _named_by_assertions(self, rows: Sequence[TestRow]) -> dict[str, Any] | None:
        """Return the first grader of an assertion that can be a judge."""
        for noted in (assertion for row in rows for assertion in row.asserts):
            raw = as_mapping(noted.value)
            if raw.get("provider") is not None and not str(raw.get("type")).startswith("similar"):
                try:
                    return grader_of(raw["provider"])[0]
                except LeftOutError:
                    continue
        return None

    def _for_all(self, noted: Noted, changed: str) -> bool:
        """Make an assertion a check of the suite; return whether cases can ignore it."""
        is_set = as_mapping(noted.value).get("type") == "assert-set"
        if is_set or is_template(json.dumps(noted.value)):
            return False
        outcome = self.assertions.read(noted.value, {}, noted.path, noted.ledger, changed)
        if outcome is None or outcome.weightless:
            return True
        if outcome.entry is None:
            return False
        self.judged = self.judged or outcome.judged
        self.checks.append(outcome.entry)
        return True

    def _add_cases(self, row: TestRow, shared: TestRow, inherited: Sequence[Noted], ids: CaseIds) -> None:
        """Add the cases of a test."""
        full = row.over(shared)
        self.assertions.embeddings = _embeddings(row) or _embeddings(shared)
        self.assertions.grader = _grader(full)
        asserts = [*([] if row.alone else inherited), *row.asserts]
        names = self._names()
        number = 0
        for variables, faulty in self.tests.expansions(full):
            values, without = self._with_media(row, variables)
            if self._lacks(row, {**faulty, **without}, names):
                continue
            number += 1
            # A name without a value is an empty text there, and a case that cannot be asked here.
            case: dict[str, Any] = {
                "id": ids.next(row.description),
                "input": {**{name: "" for name in names if name not in values}, **values},
            }
            if row.prediction is not None:
                case["prediction"] = row.prediction
            if full.labels:
                case["labels"] = full.labels
            self._assert(case, asserts, full, variables)
            self.suite.cases.append(case)
        if number and row.place is not None:
            text = "a case" if number == 1 else f"{number} cases, one for each combination of its lists"
            row.place.ledger.same(row.place.path, "test", text)

    def _names(self) -> list[str]:
        """Return the variables that prompts need, without what is inside them."""
        return list(
            dict.fromkeys(name.partition(".")[0] for prompt in self.prompt_reader.prompts for name in prompt.names)
        )

    def _with_media(self, row: TestRow, variables: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return variables with their media, and the reasons of those that have none though prompts need one."""
        parts = {name: part for prompt in self.prompt_reader.prompts for name, part in prompt.media.items()}
        values, faulty = dict(variables), {}
        for name in dict.fromkeys([*values, *parts]):
            value: Any = values.get(name)
            part = parts.get(name)
            try:
                new = self._medium_of(value, part)
            except LeftOutError as error:
                faulty[name] = str(error)
                continue
            fate, text = Fate.SAME, "an image, a sound or a document"
            if new is not value:
                values[name] = new
            elif not is_file(value):
                continue
            elif part is None or value["file"].endswith(".pdf"):
                fate, text = Fate.NEAR, "the file itself, of which prompts of promptfoo have the Base64 or the text"
            if row.place is not None:
                row.place.ledger.note(row.variable_path(name), f"variable {name}", fate, text)
        if is_file(values) and isinstance(values["file"], str):
            faulty["file"] = "an input with no variable but this one would name a file here: give it another name"
        return values, faulty

    def _medium_of(self, value: Any, part: MediumPart | None) -> Any:
        """Return a variable with its media; the value itself if it has none.

        Args:
            value: ``None`` if it has no value.
            part: As which a prompt shows it; ``None`` if no prompt does.

        Raises:
            LeftOutError: A content is not here, or is not what it is said to be.
        """
        if part is not None and part.address:
            return self.media.of_part(part)
        if part is not None and value is None:
            raise LeftOutError(f"it has no value, and a prompt shows it as {part.sort}")
        if part is not None and isinstance(value, str):
            return self.media.of_part(part._replace(address=value))
        return self.media.replaced(value)

    def _lacks(self, row: TestRow, faulty: Mapping[str, str], names: Sequence[str]) -> bool:
        """Note variables that are not imported; return whether the case cannot be asked without them."""
        if not faulty or row.place is None:
            return bool(faulty)
        _, path, ledger = row.place
        for name, why in faulty.items():
            ledger.lost(row.variable_path(name), f"variable {name}", why)
        needed = not self.prompt_reader.prompts or bool(set(names) & faulty.keys()) or "vars" in faulty
        if needed:
            ledger.lost(path, "test", f"its case cannot be asked without {', '.join(sorted(faulty))}")
            for noted in row.asserts:
                noted.ledger.lost(noted.path, "assertion", "its case is not imported")
        return needed

    def _assert(
        self, case: dict[str, Any], asserts: Sequence[Noted], row: TestRow, variables: Mapping[str, Any]
    ) -> None:
        """Add checks and metrics to a case."""
        if row.threshold is not None and is_reached_always(row.threshold.value):
            for noted in asserts:
                outcome = self._read(noted, variables, row.changed, pooled=True)
                if outcome is not None and outcome.fails_case and outcome.entry is not None:
                    case["checks"] = [outcome.entry]
                    continue
                why = "the threshold of its test is always reached, so it cannot fail there; a check here can"
                noted.ledger.lost(noted.path, str(as_mapping(noted.value).get("type", "assertion")), why)
            text = "the case has no checks, and so no scores of them"
            row.threshold.ledger.near(row.threshold.path, "threshold of a test", text)
            return
        outcomes: list[tuple[Outcome, Any]] = []
        refused: list[dict[str, Any]] = []
        pooled = row.threshold is not None and isinstance(row.threshold.value, int | float)
        for noted in asserts:
            outcome = self._read(noted, variables, row.changed, pooled=pooled)
            if outcome is None:
                continue
            if outcome.entry is None and not outcome.weightless:
                self._measure(case, outcome, noted)
            elif outcome.fails_case and outcome.entry is not None:
                refused.append(outcome.entry)
            else:
                self.judged = self.judged or outcome.judged
                outcomes.append((outcome, as_mapping(noted.value).get("weight", 1)))
        entries = [outcome.entry for outcome, _ in outcomes if outcome.entry is not None]
        if row.threshold is not None and not refused:
            entries = self._with_threshold(entries, outcomes, row.threshold, len(asserts))
        if entries or refused:
            case["checks"] = [*entries, *refused[:1]]

    def _read(self, noted: Noted, variables: Mapping[str, Any], changed: str, *, pooled: bool) -> Outcome | None:
        """Return the outcome of an assertion or a set, after noting it; ``None`` if it is not imported."""
        if as_mapping(noted.value).get("type") == "assert-set":
            return self._of_set(noted, variables, changed, pooled=pooled)
        return self.assertions.read(noted.value, variables, noted.path, noted.ledger, changed)

    def _with_threshold(
        self, entries: list[dict[str, Any]], outcomes: Sequence[tuple[Outcome, Any]], threshold: Noted, total: int
    ) -> list[dict[str, Any]]:
        """Return the one check that a threshold makes of several."""
        with threshold.ledger.losing(threshold.path, "threshold of a test"):
            entry, text, differences = together(outcomes, threshold.value, total)
            threshold.ledger.same(threshold.path, "threshold of a test", text, differences)
            return [entry]
        return entries

    def _of_set(self, noted: Noted, variables: Mapping[str, Any], changed: str, *, pooled: bool) -> Outcome | None:
        """Return the check that an assert-set becomes; in a test with a threshold, its own threshold does not count."""
        raw, path, ledger = noted
        members = as_list(raw.get("assert"))
        outcomes: list[tuple[Outcome, Any]] = []
        for number, member in enumerate(members):
            place = (*path, "assert", number)
            outcome = self.assertions.read(member, variables, place, ledger, changed)
            if outcome is not None and outcome.entry is None and not outcome.weightless:
                ledger.lost(place, str(member.get("type")), "a metric cannot be part of a set; write it beside the set")
            elif outcome is not None:
                outcomes.append((outcome, member.get("weight", 1)))
        if any(inner_outcome.fails_case for inner_outcome, _ in outcomes):
            outcome = constant("promptfoo refuses one of its assertions", met=False, fails_case=True)
            ledger.same(path, "assert-set", outcome.text)
            return outcome
        try:
            entry, text, differences = together(outcomes, None if pooled else raw.get("threshold"), len(members))
            judged = any(inner_outcome.judged for inner_outcome, _ in outcomes)
            outcome = Outcome(entry, text=text, differences=differences, judged=judged, members=outcomes)
            if pooled:
                outcome.text = "its checks, with their shares of the mean of the test"
            else:
                self.assertions.decorate(outcome, raw, variables)
        except (LeftOutError, TemplateError) as error:
            ledger.lost(path, "assert-set", str(error))
            for number in range(len(members)):
                ledger.lost((*path, "assert", number), "assertion of a set", "its set is not imported")
            return None
        ledger.note(path, "assert-set", outcome.fate, outcome.text, differences=outcome.differences)
        return outcome

    def _measure(self, case: dict[str, Any], outcome: Outcome, noted: Noted) -> None:
        """Add a metric with its limit to a case."""
        assert outcome.evaluator is not None  # an outcome is a check or a metric
        name, options = outcome.evaluator
        known = self.evaluators.setdefault(name, {})
        expected = outcome.expected if len(outcome.expected) > 1 else outcome.expected[0]
        thresholds = dict(case.get("thresholds", {}))
        why = ""
        if "model" in options and known.get("model", options["model"]) != options["model"]:
            why = f"a suite has one {name}; write another one with as: NAME"
        elif case.get("expected", expected) != expected:
            why = "a case has one right answer, or a list of which the best counts; write it into a case of its own"
        elif thresholds.get(outcome.metric, outcome.limit) != outcome.limit:
            why = "a case has one threshold for a metric"
        if why:
            noted.ledger.lost(noted.path, str(noted.value.get("type")), why)
            return
        case["expected"] = expected
        case["thresholds"] = {**thresholds, outcome.metric: outcome.limit}
        metrics = [*known.get("metrics", []), *options.get("metrics", [])]
        known.update(options)
        if metrics:
            known["metrics"] = [*dict.fromkeys(metrics)]

    def _write_settings(self) -> None:
        """Write the settings of the suite."""
        settings = self.suite.settings
        systems = self._systems()
        if len(systems) == 1 and not any(service.label for service in self.provider_reader.services):
            (only,) = systems.values()
            settings.update({"target": only} if "http" in only else {"systems": systems})
        elif systems:
            settings["systems"] = systems
        if self.judged:
            settings["judge"] = self.assertions.judge
        evaluators = [{name: options} for name, options in self.evaluators.items() if options]
        if evaluators:
            settings["evaluators"] = evaluators
        if not self.checks and not evaluators and not any(case.get("checks") for case in self.suite.cases):
            self.checks.append({"not_empty": True})
            text = "check not_empty: a blank answer fails here, and passes there"
            self.ledger.near(("assert",), "no assertion is imported", text)
        if self.checks:
            settings["checks"] = self.checks

    def _systems(self) -> dict[str, Any]:
        """Return each model with each prompt as a system."""
        models, prompts = self.provider_reader.models, self.prompt_reader.prompts
        files = [self._prompt_files(number, prompt) for number, prompt in enumerate(prompts, 1)]
        if all("prediction" in case for case in self.suite.cases):
            return {}
        systems: dict[str, Any] = {}
        for model in models:
            for number, (prompt, (user, system)) in enumerate(zip(prompts, files, strict=True), 1):
                if model.prompts is not None and prompt.label not in model.prompts:
                    continue
                entry = {**model.settings, "prompt": user}
                if system or model.system:
                    entry["system_prompt"] = system or self._system_file(model, len(systems) + 1)
                label = prompt.label or f"prompt-{number}"
                systems[_system_name(f"{model.label}/{label}" if prompts[1:] else model.label, systems)] = entry
        systems |= self._services(systems)
        if models and not prompts:
            for model in models:
                model.ledger.lost(model.path, f"provider {model.identifier}", "none of the prompts is imported")
        return systems

    def _services(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return each HTTP provider with each prompt as a system."""
        systems: dict[str, Any] = {}
        inputs = [case["input"] for case in self.suite.cases]
        prompts = self.prompt_reader.prompts
        for service in self.provider_reader.services:
            for number, prompt in enumerate(prompts or [None], 1):
                if prompt is not None and service.prompts is not None and prompt.label not in service.prompts:
                    continue
                name = service.label or service.identifier
                if prompt is not None and prompts[1:]:
                    name += f"/{prompt.label or f'prompt-{number}'}"
                with service.ledger.losing(service.path, f"provider {service.identifier}"):
                    if prompt is not None and prompt.media:
                        raise LeftOutError("its prompt has parts that are no text; write target http with these parts")
                    target = service.target(None if prompt is None else prompt.source, inputs)
                    systems[_system_name(name, {**known, **systems})] = target
        return systems

    def _prompt_files(self, number: int, prompt: ImportedPrompt) -> tuple[str, str]:
        """Add the files of a prompt; return their names."""
        stem = f"{self.suite.name}/prompt-{number}"
        self.suite.files[f"{stem}.txt"] = prompt.user
        if prompt.system:
            self.suite.files[f"{stem}.system.txt"] = prompt.system
        return f"{stem}.txt", f"{stem}.system.txt" if prompt.system else ""

    def _system_file(self, model: ImportedModel, number: int) -> str:
        name = f"{self.suite.name}/system-{number}.txt"
        self.suite.files[name] = rewritten(model.system, lambda variable: f"{{{{ input.{variable} }}}}")
        return name


def _embeddings(row: TestRow) -> Any:
    """The provider of embeddings that a promptfoo test names; ``None`` if it names none."""
    return embeddings_of(row.judge.value) if row.judge is not None else None


def _grader(row: TestRow) -> Any:
    """The provider that grades the texts of a promptfoo test; ``None`` if it names none."""
    return text_grader(row.judge.value) if row.judge is not None else None


def _system_name(label: str, known: Mapping[str, Any]) -> str:
    """A name for a system of an imported promptfoo suite that no other system has."""
    text = " ".join(label.replace("[", "(").replace("]", ")").replace("::", ":").split())[:100].strip()
    text = "".join(character for character in text if character.isprintable()) or "system"
    return next(candidate for candidate in numbered(text, " ({})") if candidate not in known and candidate != "matrix")
