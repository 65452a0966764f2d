"""General formats of data files, and the base classes for formats of users."""

__all__ = ("SOURCES", "CaseFile", "FileSource", "Source")

from pytest_llmeval.data.formats._base import CaseFile, FileSource, Source

SOURCES: dict[str, str] = {
    "arrow": "pytest_llmeval.data.formats._frames:ArrowSource",
    "csv": "pytest_llmeval.data.formats._rows:CsvSource",
    "json": "pytest_llmeval.data.formats._rows:JsonSource",
    "jsonl": "pytest_llmeval.data.formats._rows:JsonlSource",
}
"""Format name to ``module:class``."""
