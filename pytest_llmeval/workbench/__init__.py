"""The workbench beside the kernel: commands with which people make suites, compare runs and try what suites notice."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry
    from pytest_llmeval.run.stages import Collected, Reported, RunScope

COMMANDS = {
    "affected": "list the cases that a change can affect, and why",
    "approve": "approve failures of a report, so that only other ones fail",
    "cache": "inspect and maintain stored verdicts",
    "comment": "write a report as Markdown for a pull request",
    "compare": "compare two JSON reports",
    "decide": "apply changed thresholds and gates to a report",
    "doctor": "say what would keep a run from working, and what it would cost",
    "evaluator": "write what will watch for a failure mode that people noted",
    "evaluators": "list evaluators and their metrics, and sources",
    "explain": "say what the code of a fault means, and what to do",
    "guard": "list what a pull request asks less of: limits, cases, checks, judges",
    "history": "print the last runs and approvals of a suite, or draw them",
    "html": "write JSON reports as an HTML page",
    "init": "write a first suite, a CI workflow and settings for a project",
    "inputs": "print the inputs of a suite as JSONL",
    "judge": "measure what another judge would change",
    "modes": "print the failure modes that people noted in a review",
    "mutate": "change answers, and list what a suite does not notice",
    "power": "plan how many cases find a drop",
    "review": "have people label the answers of a report",
    "schema": "print the JSON Schema of suite files, for editors, or of results",
    "score": "score the predictions of a suite, in processes or on a cluster",
    "validate": "list every fault of suite files, without running them",
}
"""Name of each command, which is that of its module unless `_PLACES` has it, to its line in the list of commands."""


_PLACES = {
    "approve": "reports:add_approve",
    "decide": "compare:add_decide",
    "evaluator": "reviews.evaluator:add_arguments",
    "evaluators": "authoring:add_evaluators",
    "explain": "authoring:add_explain",
    "html": "reports:add_html",
    "inputs": "authoring:add_inputs",
    "mutate": "mutation.command:add_arguments",
    "power": "plan.power:add_arguments",
    "review": "reviews.command:add_arguments",
    "schema": "authoring:add_schema",
    "score": "streams:add_score",
    "validate": "authoring:add_validate",
}


_GROUPS = {
    **dict.fromkeys(("doctor", "evaluators", "init", "validate"), "start"),
    **dict.fromkeys(("compare", "explain", "history", "html", "review"), "look"),
}
"""Those of the commands that most people need; the others are advanced."""


def register(registry: "Registry") -> None:
    """Add commands, early stopping, plans, mutants of a run, mutators that know no task, and agreement with people."""
    for name, text in COMMANDS.items():
        place = _PLACES.get(name, f"{name}:add_arguments")
        registry.register_command(name, f"{__name__}.{place}", text, _GROUPS.get(name, "advanced"))
    registry.register(f"{__name__}.reviews.agreement:JudgeAgreement", name="judge_agreement")
    registry.extend("chosen", f"{__name__}.affected:choose_affected")
    registry.extend("reported", f"{__name__}.affected:keep_inputs", _keeps)
    registry.extend("collected", f"{__name__}.early.stopping:stop_early", _has_order)
    registry.extend("watched", f"{__name__}.early.stopping:StopWatch")
    registry.extend("planned", f"{__name__}.plan.making:plan_run")
    registry.extend("reported", f"{__name__}.mutation.survival:add_survival", _mutates)
    registry.register_mutator(f"{__name__}.mutation.mutators:MUTATORS")


def _has_order(collected: "Collected", _scope: "RunScope") -> bool:
    return any(each.suite.order is not None for each in collected.suites)


def _keeps(_reported: "Reported", scope: "RunScope") -> bool:
    return scope.keeper.mode.update or scope.keeper.mode.new_only or scope.terms.is_kept


def _mutates(_reported: "Reported", scope: "RunScope") -> bool:
    return scope.terms.mutate is not None
