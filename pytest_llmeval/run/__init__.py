"""The run of cases, from job to result, and its stages afterwards, without pytest."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_llmeval.run.stages import Collected, RunScope
    from pytest_llmeval.suite.registry import Registry


def register(registry: "Registry") -> None:
    """Add early stopping, plans, mutants of the answers of a run, and the mutators that know no task."""
    registry.extend("collected", f"{__name__}.early.decisions:stop_early", _has_order)
    registry.extend("watched", f"{__name__}.early.watching:StopWatch")
    registry.extend("planned", f"{__name__}.planning:plan_run")
    registry.extend("reported", f"{__name__}.mutation.running:add_survival", _mutates)
    for module, name in (("texts", "MUTATORS"), ("structures", "MUTATORS"), ("rewrites", "REWRITES")):
        registry.register_mutator(f"{__name__}.mutation.{module}:{name}")


def _has_order(collected: "Collected", scope: "RunScope") -> bool:
    del scope
    return any(each.suite.order is not None for each in collected.suites)


def _mutates(reported: Any, scope: "RunScope") -> bool:
    del reported
    return scope.terms.mutate is not None
