"""Conversational-memory QA in Python: agents as targets, programs with their own loop, and metrics of their answers."""

__all__ = (
    "ALL_METRICS",
    "Agent",
    "EvalResult",
    "QAPair",
    "QuestionType",
    "Sample",
    "as_target",
    "batch_judge",
    "compute_metrics",
    "import_cache",
    "is_unanswerable",
    "judge_answer",
    "load_dataset",
    "run_eval",
    "task_average",
    "to_table",
    "token_f1",
)

from pytest_llmeval.tasks.memory_qa.qa import (
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
from pytest_llmeval.tasks.memory_qa.sources import as_target, load_dataset
