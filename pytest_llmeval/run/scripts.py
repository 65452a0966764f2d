"""Runs of declared suites in scripts and notebooks: the engine and the stages of pytest's runs, without pytest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from pytest_llmeval.baselines.comparable import Stamp
from pytest_llmeval.baselines.runs import Keeper, SnapshotMode
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.results import Result
from pytest_llmeval.data.files.places import display_path
from pytest_llmeval.gates.contract import GateResult
from pytest_llmeval.judge.options import JudgeOptions
from pytest_llmeval.run.case_runner import CaseRunner, FromFixtures
from pytest_llmeval.run.job import LoadedCase
from pytest_llmeval.run.judging import judge
from pytest_llmeval.run.run_record import Item, ItemResult, RunRecord, SuitePart
from pytest_llmeval.run.stages import RunScope, RunTerms, collect, judges_of
from pytest_llmeval.suite.registry import Registry, default_registry
from pytest_llmeval.suite.suite import Suite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.judge.direct import Judgeable
    from pytest_llmeval.judge.judges import SuiteJudges
    from pytest_llmeval.run.execute import Execution

_CUT_SHORT: Final = "the run was cut short"
_CONFIGURATION: Final = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg", "setup.py"),
)
"""Files by which pytest recognises its rootdir."""


@dataclass(frozen=True, slots=True)
class SuiteResult(Result):
    """The result of running a suite: its metrics, and the verdicts on its gates.

    Attributes:
        suite: Its name.
        gates: A verdict for each gate, by the rules of pytest's runs.
    """

    suite: str = ""
    gates: Sequence[GateResult] = ()

    def assert_gates(self) -> None:
        """Check that no gate failed and that each was judged; an undecided gate is no failure, as in pytest.

        Raises:
            AssertionError: A gate failed or was not judged, each with its reason; or the suite has no gates.
        """
        from pytest_llmeval.reports.terminal import gate_line

        lines = [gate_line(each).text for each in self.gates if each.outcome in ("failed", "not_judged")]
        if not self.gates:
            lines = [f"suite {self.suite!r}: found no gates, expected at least one under the key gates"]
        if lines:
            raise AssertionError("\n".join(lines))


class _Judge(Struct, frozen=True):
    """Implements `pytest_llmeval.judge.judges.OwnJudge` by a judge that is there."""

    judge: Any

    def client(self) -> Any:
        """Return the judge."""
        return self.judge


class _OneSuite(Struct, frozen=True):
    """Implements `pytest_llmeval.run.stages.Suites` by one suite."""

    root: Path
    suite: Suite
    panel: "SuiteJudges"

    def read(self, path: Path) -> Suite:
        """Return the suite."""
        del path
        return self.suite

    def registry(self, path: Path) -> Registry:
        """Return what is known to every suite."""
        del path
        return default_registry()

    def judges(self, key: SuiteKey, suite: Suite) -> Mapping[str, Mapping[str, str]]:
        """Return, by evaluator, what decides the verdicts."""
        return judges_of(suite, self.panel, key.display_path)


@dataclass
class ScriptRun:
    """One run of a suite.

    Attributes:
        whole: The suite with all its systems.
        system: The system that answers; empty if there are none.
        result: Of the cases that have run, once the run has ended; ``None`` until then.
    """

    whole: Suite
    system: str = ""
    result: SuiteResult | None = None

    async def execute(
        self, target: Callable[..., Any] | None, own_judge: "Judgeable | None", progress: bool | None
    ) -> SuiteResult:
        """Run all cases on the running event loop, and judge the suite.

        Args:
            target: Answers; ``None`` for the suite's own.
            own_judge: Judges; ``None`` for the model that the suite names.
            progress: Whether to show a progress bar; ``None``: where the output is a terminal.

        Raises:
            LlmevalError: The suite cannot be judged.
        """
        from tqdm import tqdm

        suite = self.whole.for_variant(self.system)
        root = project_root(suite.path)
        key = SuiteKey(str(suite.path), display_path(suite.path, root), variant=suite.system)
        own = suite.target.concurrency if suite.target is not None else None
        runner = CaseRunner(JudgeOptions(concurrency=own) if own else JudgeOptions())
        run = RunRecord(ended=_CUT_SHORT)
        executions: list[Execution] = []
        # tqdm draws nothing where the output is no terminal if `disable` is None.
        hidden = None if progress is None else not progress
        loaded = [LoadedCase(suite, case, key) for case in suite.cases]
        stream = runner.stream(loaded, FromFixtures(target, _Judge(own_judge)))
        try:
            with tqdm(total=len(suite.cases), desc=suite.name, unit="case", disable=hidden) as bar:
                async for _, execution in stream:
                    executions.append(execution)
                    bar.update()
            run.ended = ""
        finally:
            await stream.aclose()
            await runner.background.release()
            part = SuitePart.from_executions(
                key, suite.total, executions, secrets=suite.secret_variables, all_answers=True
            )
            run.items[Item(key.display_path, key.variant)] = ItemResult(part, "passed", 0.0)
            self.result = self._judged(run, key, _OneSuite(root, self.whole, runner.judges))
            runner.close(whole_run=True)
        return self.result

    def _judged(self, run: RunRecord, key: SuiteKey, suites: _OneSuite) -> SuiteResult:
        run.selected.add(key.path)
        keeper = Keeper(SnapshotMode().read_only(), root=suites.root)
        scope = RunScope(run, RunTerms(), suites, keeper, Stamp("", None))
        judged = judge(collect(scope), scope)
        if not judged.suites:
            raise LlmevalError("; ".join(judged.notes))
        of_suite = judged.suites[0]
        metrics = {each.name: getattr(of_suite.result, each.name) for each in fields(Result)}
        metrics["system"] = key.variant
        return SuiteResult(**metrics, suite=self.whole.name, gates=of_suite.gates)


def project_root(suite: Path) -> Path:
    """Return the folder from which results name a suite: pytest's rootdir, as its configuration shows it.

    Args:
        suite: The suite file; without any configuration above it, its folder is the root.
    """
    above = (folder for folder in suite.parents if any((folder / name).is_file() for name in _CONFIGURATION))
    return next(above, suite.parent)
