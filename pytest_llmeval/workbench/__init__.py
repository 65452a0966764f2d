"""The commands with which people make suites, compare runs and try what suites notice."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry
    from pytest_llmeval.run import Collected, Reported, RunScope

COMMANDS = {
    "affected": "list the test cases that a change can affect, and why",
    "approve": "accept known failures of a report, so that only other ones fail",
    "cache": "inspect and maintain stored verdicts",
    "comment": "write a report as Markdown for a pull request",
    "compare": "list regressions between two JSON reports",
    "decide": "apply changed thresholds and gates to a report",
    "doctor": "say what would keep a run from working, and what it would cost",
    "evaluator": "turn a failure mode that people noted into a check or a judge",
    "evaluators": "list evaluators with their metrics, and sources of datasets",
    "explain": "say what the code of a fault means, and what to do",
    "guard": "list limits, test cases, checks and judges that a pull request weakens",
    "history": "print the last runs and approvals of a suite, or draw them",
    "html": "write JSON reports as an HTML page",
    "init": "write a first suite, a CI workflow and settings for a project",
    "inputs": "print the inputs of a suite as JSONL",
    "judge": "measure what another judge would change; read deferred verdicts",
    "modes": "print the failure modes that people noted in a review",
    "mutate": "break answers on purpose, and list what a suite misses",
    "power": "plan how many test cases find a regression",
    "review": "label the answers of a report by hand",
    "schema": "print the JSON Schema of suite files, for editors, or of results",
    "score": "score the predictions of a suite, in processes or on a cluster",
    "validate": "list every fault of suite files, without running them",
}
"""Name of each command, which is that of its module unless `_PLACES` has it, to its line in the list of commands."""


_PLACES = {
    "init": "init:add_arguments",
    "modes": "modes:add_arguments",
    "approve": "_reports:add_approve",
    "decide": "_compare:add_decide",
    "evaluator": "reviews._evaluator:add_arguments",
    "evaluators": "_authoring:add_evaluators",
    "explain": "_authoring:add_explain",
    "html": "_reports:add_html",
    "inputs": "_authoring:add_inputs",
    "mutate": "mutation._command:add_arguments",
    "power": "plan._power:add_arguments",
    "review": "reviews._command:add_arguments",
    "schema": "_authoring:add_schema",
    "validate": "_authoring:add_validate",
}


_GROUPS = {
    **dict.fromkeys(("doctor", "evaluators", "init", "validate"), "start"),
    **dict.fromkeys(("compare", "explain", "history", "html", "review"), "look"),
}
"""Those of the commands that most people need; the others are advanced."""


def register(registry: "Registry") -> None:
    """Add commands, early stopping, plans, mutants of a run, and mutators that know no task."""
    for name, text in COMMANDS.items():
        place = _PLACES.get(name, f"_{name}:add_arguments")
        registry.register_command(name, f"{__name__}.{place}", text, _GROUPS.get(name, "advanced"))
    registry.extend("chosen", f"{__name__}._affected:choose_affected")
    registry.extend("reported", f"{__name__}._affected:keep_inputs", _keeps)
    registry.extend("collected", f"{__name__}.early._stopping:stop_early", _has_order)
    registry.extend("watched", f"{__name__}.early._stopping:StopWatch")
    registry.extend("planned", f"{__name__}.plan._making:plan_run")
    registry.extend("reported", f"{__name__}.mutation._survival:add_survival", _mutates)
    registry.register_mutator(f"{__name__}.mutation._mutators:MUTATORS")


def _has_order(collected: "Collected", _scope: "RunScope") -> bool:
    """Whether a suite of the run has a case order, so that early stopping has something to decide."""
    return any(suite.suite.order is not None for suite in collected.suites)


def _keeps(_reported: "Reported", scope: "RunScope") -> bool:
    """Whether a run approves scores or keeps its results, and so needs the inputs of its suites on record."""
    return scope.keeper.mode.update or scope.keeper.mode.new_only or scope.terms.is_kept


def _mutates(_reported: "Reported", scope: "RunScope") -> bool:
    """Whether ``--llmeval-mutate`` asks for mutants of the answers of a run."""
    return scope.terms.mutate is not None
