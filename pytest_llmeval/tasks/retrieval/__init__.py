"""Retrieval."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Register the evaluators of search results, the sources of queries and TREC files, command and mutators."""
    registry.register(f"{__name__}._evaluator:Retrieval", name="retrieval")
    registry.register(f"{__name__}._documents:DocumentIds", name="document_ids")
    registry.register_source(f"{__name__}._source:CaseRetrievalSource", name="case_retrieval")
    registry.register_source(f"{__name__}._source:TrecSource", name="trec")
    registry.register_command(
        "retrieval",
        f"{__name__}._evaluation_set:add_arguments",
        help="draw a dataset for case retrieval from a corpus",
        group="tasks",
    )
    registry.register_mutator(f"{__name__}._evaluator:MUTATORS")
