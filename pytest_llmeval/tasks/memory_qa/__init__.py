"""Conversational-memory QA."""

__all__ = ("register",)

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry
    from pytest_llmeval.tasks.memory_qa._qa import (
        ALL_METRICS,
        Agent,
        EvalResult,
        QAPair,
        QuestionType,
        Sample,
        batch_judge,
        compute_metrics,
        import_cache,
        is_unanswerable,
        judge_answer,
        run_eval,
        task_average,
        to_table,
        token_f1,
    )
    from pytest_llmeval.tasks.memory_qa._sources import as_target, load_dataset


def register(registry: "Registry") -> None:
    """Register the sources of the memory benchmarks LoCoMo and LongMemEval, and the mutators of their answers."""
    registry.register_source(f"{__name__}._sources:LocomoSource", name="locomo")
    registry.register_source(f"{__name__}._sources:LongMemEvalSource", name="longmemeval")
    registry.register_mutator(f"{__name__}._qa:MUTATORS")


_HOMES = {
    "_qa": (
        "ALL_METRICS",
        "Agent",
        "EvalResult",
        "QAPair",
        "QuestionType",
        "Sample",
        "batch_judge",
        "compute_metrics",
        "import_cache",
        "is_unanswerable",
        "judge_answer",
        "run_eval",
        "task_average",
        "to_table",
        "token_f1",
    ),
    "_sources": (
        "as_target",
        "load_dataset",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
