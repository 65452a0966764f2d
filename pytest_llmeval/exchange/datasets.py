"""Datasets of deepeval, ragas, braintrust and LangSmith, and tables: records with columns of known names."""

__all__ = ("import_braintrust", "import_deepeval", "import_langsmith", "import_ragas", "import_table")

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pytest_llmeval.exchange.contract import ImportedSource, ImportOptions, read_records
from pytest_llmeval.exchange.records import Column, suite_of_records

_CONTEXT = "what the answer should rest on; evaluator claims reads contexts of predictions"
_NOT_ASKED = "it says where the case is from"

DEEPEVAL: Final = {
    "input": Column("input"),
    "actual_output": Column("answer"),
    "expected_output": Column("expected"),
    "retrieval_context": Column("contexts"),
    "context": Column("lost", "the ideal context; give evaluator claims the contexts that were retrieved"),
    "tools_called": Column("tools"),
    "expected_tools": Column("expected_tools"),
    "name": Column("id"),
    "comments": Column("label"),
    "source_file": Column("label"),
    "additional_metadata": Column("labels", "lists and objects are left out"),
    "scenario": Column("input"),
    "user_description": Column("input"),
    "expected_outcome": Column("criterion", "the judge says yes or no"),
    "turns": Column("messages", "what the user says is the script, answers are left out"),
    "chatbot_role": Column("input"),
}
"""Of goldens and test cases, single-turn and conversational."""

RAGAS: Final = {
    "user_input": Column("input"),
    "question": Column("input"),
    "query": Column("input"),
    "response": Column("answer"),
    "answer": Column("answer"),
    "reference": Column("expected"),
    "ground_truth": Column("expected"),
    "ground_truths": Column("expected"),
    "grading_notes": Column("criterion", "the judge says yes or no"),
    "expected_output": Column("expected"),
    "retrieved_contexts": Column("contexts"),
    "contexts": Column("contexts"),
    "reference_contexts": Column("lost", _CONTEXT),
    "reference_tool_calls": Column("expected_tools"),
    "rubrics": Column("lost", "write it as a check rubric"),
    "rubric": Column("lost", "write it as a check rubric"),
    "synthesizer_name": Column("label"),
    "persona_name": Column("label"),
    "query_style": Column("label"),
    "query_length": Column("label"),
    "id": Column("id"),
}
"""Of datasets before and since 0.2."""

BRAINTRUST: Final = {
    "input": Column("input"),
    "expected": Column("expected"),
    "output": Column("answer"),
    "metadata": Column("labels", "lists and objects are left out"),
    "id": Column("id"),
    "tags": Column("lost", "write them as tags of the cases, which are words"),
    "scores": Column("lost", "scores are computed anew from the answers"),
    "metrics": Column("lost", "figures are measured anew"),
    "created": Column("lost", _NOT_ASKED),
    "span_id": Column("lost", _NOT_ASKED),
    "root_span_id": Column("lost", _NOT_ASKED),
}

LANGSMITH: Final = {
    "inputs": Column("input"),
    "outputs": Column("expected", alone=True),
    "reference_outputs": Column("expected", alone=True),
    "metadata": Column("labels", "lists and objects are left out"),
    "split": Column("label"),
    "id": Column("id"),
    "example_id": Column("id"),
    "dataset_id": Column("lost", _NOT_ASKED),
    "created_at": Column("lost", _NOT_ASKED),
    "modified_at": Column("lost", _NOT_ASKED),
    "source_run_id": Column("lost", _NOT_ASKED),
    "attachments": Column("lost", "files are not part of an input"),
}


def import_deepeval(path: Path, shown: str, options: ImportOptions) -> ImportedSource:
    """Return goldens, or test cases, as a suite.

    Raises:
        SuiteError: The file cannot be read.
    """
    return _imported(path, shown, options, DEEPEVAL, ("goldens", "testCases", "conversationalGoldens"))


def import_ragas(path: Path, shown: str, options: ImportOptions) -> ImportedSource:
    """Return a dataset of ragas as a suite.

    Raises:
        SuiteError: The file cannot be read.
    """
    return _imported(path, shown, options, RAGAS, ("samples", "data"))


def import_braintrust(path: Path, shown: str, options: ImportOptions) -> ImportedSource:
    """Return a dataset of braintrust as a suite.

    Raises:
        SuiteError: The file cannot be read, or is a template of autoevals.
    """
    return _imported(path, shown, options, BRAINTRUST, ("events", "data"))


def import_langsmith(path: Path, shown: str, options: ImportOptions) -> ImportedSource:
    """Return examples of LangSmith as a suite.

    Raises:
        SuiteError: The file cannot be read.
    """
    return _imported(path, shown, options, LANGSMITH, ("examples", "data"))


def import_table(path: Path, shown: str, options: ImportOptions) -> ImportedSource:
    """Return a table as a suite, by the columns that the user names.

    Raises:
        SuiteError: The file cannot be read, or lacks a column.
    """
    return _imported(path, shown, options, {"id": Column("id")}, ())


def _imported(
    path: Path, shown: str, options: ImportOptions, columns: Mapping[str, Column], keys: tuple[str, ...]
) -> ImportedSource:
    """Return the suite of a file of records; columns that the user names come first."""
    ledger, records, beside = read_records(path, shown, keys)
    named = options.columns()
    if absent := sorted(named.keys() - ledger.data.keys()):
        known = ", ".join(ledger.data)
        raise ledger.fault((), f"found no column {absent[0]!r}, expected one of {known}")
    known_columns = {name: column for name, column in columns.items() if column.part not in options.parts()}
    chosen = {**known_columns, **{name: Column(part) for name, part in named.items()}}
    suite = suite_of_records(options.suite_name(path.stem), ledger, records, chosen)
    source = ImportedSource(shown, suite, [ledger, *beside])
    if not any({"input", "messages"} & case.keys() for case in suite.cases):
        source.suite = None
        source.refusal = f"found no column of an input among {', '.join(ledger.data)}, expected one: --input COLUMN"
        for each in source.ledgers:
            each.lose_all("no case is imported, so there is no suite")
    return source
