"""Similarity: texts compared with right ones by their meaning, and pictures by their pixels."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Register ``image_similarity`` and ``semantic``, the evaluators of likeness to an expected image or text."""
    registry.register(f"{__name__}._images:ImageSimilarity", name="image_similarity")
    registry.register(f"{__name__}._semantic:Semantic", name="semantic")
