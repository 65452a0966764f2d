"""Suite files as pytest items: real test functions, one per case, so that everything pytest can do to a test works."""

__all__ = ("PAYLOAD", "SUITES", "CaseItem", "EvalModule", "case_of", "conclude", "payload_of", "variant_of")

import types
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.case import MISSING, Case
from pytest_llmeval.errors import LlmevalError, PredictionError, SuiteError, said
from pytest_llmeval.execute import Execution
from pytest_llmeval.explain import explain, printable
from pytest_llmeval.predict import Target
from pytest_llmeval.results import CaseRecord
from pytest_llmeval.runtime import LoadedCase, Suites
from pytest_llmeval.suite import Suite
from pytest_llmeval.transport import encode

PAYLOAD = pytest.StashKey[str]()
"""What an item hands to its report."""

SUITES = pytest.StashKey[Suites]()
"""Where the configuration keeps the suites of its process."""

OWN_FOLDER = "__llmeval__"
_LISTED = 20


class CaseItem(pytest.Function):
    """The item of a case, or of all cases of a suite in mode ``bulk``."""

    def __init__(self, *, loaded: LoadedCase, cases: tuple[Case, ...] = (), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.loaded = loaded
        self.bulk = cases
        if "[" in self.originalname and hasattr(self, "_id"):
            # pytest 9.2 takes what follows the first bracket of a recorded id for parameters; --lf would not find it.
            self._id = self._id.parse(self.nodeid)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place of the case in its file, and its name."""
        return self.path, max(self.loaded.case.line, 1) - 1, self.name

    def run_case(self, target: Target | None) -> None:
        """Run the case, or every case; fail if one of them does."""
        __tracebackhide__ = True
        if self.bulk:
            self._run_all(target)
        else:
            conclude(self, self.loaded, self.loaded.run(target))

    def _run_all(self, target: Target | None) -> None:
        __tracebackhide__ = True
        suites, suite, key = self.loaded.suites, self.loaded.suite, self.loaded.key
        executions: list[Execution] = []
        try:
            for case in self.bulk:
                executions.append(suites.run(suite, case, key, target))  # noqa: PERF401 (an interrupt must not lose those before it)
        finally:
            self.stash[PAYLOAD] = encode(key, suite.total, executions, predictions=suites.record)
        failed = [each.record for each in executions if each.record.outcome in ("failed", "errored")]
        if failed:
            lines = [f"{len(failed)} of {len(executions)} cases failed"]
            lines += [f"{record.id}: {record.reason}" for record in failed[:_LISTED]]
            if len(failed) > _LISTED:
                lines.append(f"... and {len(failed) - _LISTED} more, all of them in the reports")
            raise pytest.fail.Exception("\n".join(lines), pytrace=False)


def variant_of(item: pytest.Item) -> str:
    """Return the id of an item's parameters, which name a variant of the target."""
    callspec = getattr(item, "callspec", None)
    return callspec.id if callspec is not None else ""


def conclude(item: pytest.Item, loaded: LoadedCase, execution: Execution) -> None:
    """Hand an execution to the item's report, and fail the item where the case failed.

    Raises:
        pytest.fail.Exception: A limit was not met, the prediction is malformed, or the case could not be measured.
        BaseException: What the target raised.
    """
    __tracebackhide__ = True
    record, error = execution.record, execution.error
    # What a Python test scores need not come from the target, so it is no recording of the target's answers.
    record_answers = loaded.suites.record and not loaded.key.test
    item.stash[PAYLOAD] = encode(loaded.key, loaded.suite.total, [execution], predictions=record_answers)
    if item.config.getoption("xmlpath", None):
        scores = execution.scores(loaded.suite).items()
        item.user_properties += [
            (f"llmeval.{printable(name)}", "" if score is None else repr(score)) for name, score in scores
        ]
    if error is not None and not isinstance(error, PredictionError):
        raise error
    if record.reason is not None:
        raise pytest.fail.Exception(explain(execution.case, record, execution.unmet), pytrace=False)


def payload_of(item: pytest.Item, call: "pytest.CallInfo[None]", report: pytest.TestReport) -> str | None:
    """Return what an item hands to its report; a case whose fixtures failed or skipped it is counted too."""
    if call.when == "call":
        payload = item.stash.get(PAYLOAD, None)
        item.stash.setdefault(PAYLOAD, "")
        del item.stash[PAYLOAD]  # an item can be run again
        if payload is not None:
            return payload
    elif report.outcome == "passed":
        return None
    loaded = case_of(item)
    if loaded is None:
        return None
    cases = item.bulk if isinstance(item, CaseItem) and item.bulk else (loaded.case,)
    records = [_unscored(case.id, report, call) for case in cases]
    executions = [Execution(case, record) for case, record in zip(cases, records, strict=True)]
    return encode(loaded.key, loaded.suite.total, executions, predictions=False)


def _unscored(name: str, report: pytest.TestReport, call: "pytest.CallInfo[None]") -> CaseRecord:
    """Return the record of a case that its item has not scored."""
    if report.outcome == "passed":
        return CaseRecord(name, outcome="not_run", reason="the test did not score the case")
    reason = said(call.excinfo.value) if call.excinfo else report.outcome
    if report.skipped:
        return CaseRecord(name, outcome="skipped", reason=reason)
    return CaseRecord(name, outcome="errored", errors={"": reason}, reason=reason)


def case_of(item: pytest.Item) -> LoadedCase | None:
    """Return the case of an item: of a suite, or of a Python test over one, whose other parameters name a variant."""
    if isinstance(item, CaseItem):
        return item.loaded
    callspec = getattr(item, "callspec", None)
    loaded = callspec.params.get("eval_case") if callspec is not None else None
    if callspec is None or not isinstance(loaded, LoadedCase):
        return None
    others = sorted((name, value) for name, value in callspec.params.items() if name != "eval_case")
    if not others:
        return loaded
    if all(isinstance(value, str | int | float | bool) for _, value in others):
        variant = ",".join(f"{name}={value}" for name, value in others)
    else:
        variant = _without(callspec.id, loaded.case.id.encode("unicode_escape").decode("ascii"))
    return replace(loaded, key=loaded.key._replace(variant=variant))


def _without(ids: str, case: str) -> str:
    """Return the ids of a test's parameters, which pytest joins with dashes, without the one that names the case."""
    if ids.startswith(f"{case}-"):
        return ids.removeprefix(f"{case}-")
    return ids.removesuffix(f"-{case}") if ids.endswith(f"-{case}") else ids.replace(f"-{case}-", "-", 1)


# The bodies are one line each: a traceback then starts at the line of the case in its file.
# fmt: off
def _case(item: Any = None) -> None: item.run_case(None)
def _case_with_target(llmeval_target: Any, item: Any = None) -> None: item.run_case(llmeval_target)
# fmt: on


class EvalModule(pytest.Module):
    """A suite file. Its module is made up and holds one function, from which the items of all cases are made."""

    _module: types.ModuleType | None = None
    _suite: Suite

    def _getobj(self) -> types.ModuleType:
        if self._module is None:
            self._module = self._build()
        return self._module

    def _build(self) -> types.ModuleType:
        suites = self.config.stash[SUITES]
        try:
            self._suite = suites.load(self.path, self.session)
        except LlmevalError as error:
            suites.faulty_files += 1
            raise self.CollectError(str(error)) from None
        module = types.ModuleType("llmeval_" + "".join(c if c.isalnum() else "_" for c in self.name))
        module.__file__ = str(self.path)
        asked = any(case.prediction is MISSING for case in self._suite.cases)
        prototype = self._function(module.__name__, (_case_with_target if asked else _case).__code__, "case", 1)
        prototype.__dict__["__test__"] = True
        module.__dict__.update(case=prototype, pytestmark=[pytest.mark.llmeval])
        return module

    def _function(self, module: str, template: types.CodeType, name: str, line: int) -> types.FunctionType:
        code = template.replace(co_filename=str(self.path), co_firstlineno=line, co_name=name)
        function = types.FunctionType(code, globals(), name, (None,))
        function.__module__ = module
        return function

    def collect(self) -> "Iterable[pytest.Item | pytest.Collector]":
        """Yield the items, and last a collector that reports faulty cases.

        pytest resolves fixtures and parameters once, for the prototype; the items of all cases share the result.
        """
        variants = [item for item in super().collect() if isinstance(item, pytest.Function)]
        suites, suite = self.config.stash[SUITES], self._suite
        keys = [suites.key(suite, variant=variant_of(variant)) for variant in variants]
        cases = suite.cases[:1] if suite.bulk else suite.cases
        for case in cases:
            for variant, key in zip(variants, keys, strict=True):
                loaded = LoadedCase(suites, suite, case, key)
                yield self._item(variant, loaded, suite.cases if suite.bulk else ())
        if suite.problems:
            yield Faults.from_parent(self, name="<faults>", faults=SuiteError(suite.problems))

    def _item(self, variant: pytest.Function, loaded: LoadedCase, bulk: tuple[Case, ...]) -> CaseItem:
        case = loaded.case
        name = "bulk" if bulk else case.id
        function = self._function(variant.obj.__module__, variant.obj.__code__, name, case.line or 1)
        if case.tags and not bulk:
            function.__dict__["pytestmark"] = [getattr(pytest.mark, tag).mark for tag in case.tags]
        callspec = getattr(variant, "callspec", None)
        item: CaseItem = CaseItem.from_parent(
            self,
            name=f"{name}[{callspec.id}]" if callspec else name,
            originalname=name,
            callobj=function,
            callspec=callspec,
            keywords={callspec.id: True} if callspec else None,
            fixtureinfo=variant._fixtureinfo,  # noqa: SLF001 (a parameter of Function, without a public reader)
            loaded=loaded,
            cases=bulk,
        )
        function.__defaults__ = (item,)
        return item


class Faults(pytest.Collector):
    """Reports the faults of single cases, so that the other cases still run."""

    def __init__(self, *, faults: SuiteError, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.faults = faults

    def collect(self) -> "Iterable[pytest.Item | pytest.Collector]":
        """Raise them."""
        self.config.stash[SUITES].faulty_files += 1
        raise self.CollectError(str(self.faults))
