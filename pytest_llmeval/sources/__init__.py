"""Dataset formats: each source turns files into cases."""

__all__ = ("SOURCES", "get_source")

from importlib import import_module
from typing import TYPE_CHECKING

from pytest_llmeval.errors import LlmevalError
from pytest_llmeval.naming import suggest

if TYPE_CHECKING:
    from pytest_llmeval.sources.base import Source

SOURCES: dict[str, str] = {
    "case_retrieval": "pytest_llmeval.sources.case_retrieval:CaseRetrievalSource",
    "csv": "pytest_llmeval.sources.csv:CsvSource",
    "ecac": "pytest_llmeval.sources.ecac:EcacSource",
    "fact_check": "pytest_llmeval.sources.fact_check:FactCheckSource",
    "json": "pytest_llmeval.sources.json:JsonSource",
    "json_v3": "pytest_llmeval.sources.json_v3:JsonV3Source",
    "jsonl": "pytest_llmeval.sources.jsonl:JsonlSource",
    "locomo": "pytest_llmeval.sources.locomo:LocomoSource",
    "longmemeval": "pytest_llmeval.sources.longmemeval:LongMemEvalSource",
    "trec": "pytest_llmeval.sources.trec:TrecSource",
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
