"""Dataset formats: each source turns files into cases."""

__all__ = ("SOURCES", "get_source")

from importlib import import_module
from typing import TYPE_CHECKING

from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.wording import suggest

if TYPE_CHECKING:
    from pytest_llmeval.data.formats.base import Source

SOURCES: dict[str, str] = {
    "case_retrieval": "pytest_llmeval.tasks.retrieval.source:CaseRetrievalSource",
    "csv": "pytest_llmeval.data.formats.csv:CsvSource",
    "ecac": "pytest_llmeval.tasks.emotion_cause.source:EcacSource",
    "fact_check": "pytest_llmeval.tasks.fact_check.source:FactCheckSource",
    "json": "pytest_llmeval.data.formats.json:JsonSource",
    "json_v3": "pytest_llmeval.tasks.narrative.source:JsonV3Source",
    "jsonl": "pytest_llmeval.data.formats.jsonl:JsonlSource",
    "locomo": "pytest_llmeval.tasks.memory_qa.locomo:LocomoSource",
    "longmemeval": "pytest_llmeval.tasks.memory_qa.longmemeval:LongMemEvalSource",
    "trec": "pytest_llmeval.tasks.retrieval.trec:TrecSource",
}
"""Format name to ``module:class``; a source is imported when it is first asked for."""


def get_source(format_name: str) -> "type[Source]":
    """Return the class of a dataset format.

    Raises:
        LlmevalError: There is no such format.
    """
    if format_name not in SOURCES:
        known = ", ".join(sorted(SOURCES))
        hint = suggest(format_name, SOURCES)
        raise LlmevalError(f"found source format {format_name!r}, expected one of: {known}{hint}")
    module, _, name = SOURCES[format_name].partition(":")
    source: type[Source] = getattr(import_module(module), name)
    return source
