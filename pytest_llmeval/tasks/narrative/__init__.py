"""Story annotations in JSON v3.

From document to metric: `document` reads, `alignment` pairs characters, events and relationships (`names` says which
names are one), each component counts, `composite` puts them together, `report` writes. `segmentation`
needs no document.
"""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Register the evaluators of story annotations and segments, the source of JSON v3, and the mutators."""
    registry.register(f"{__name__}._composite:Narrative", name="narrative")
    registry.register(f"{__name__}._components:ActionLayer", name="narrative.action_layer")
    registry.register(f"{__name__}._components:Characters", name="narrative.characters")
    registry.register(f"{__name__}._components:Relationships", name="narrative.relationships")
    registry.register(f"{__name__}._segmentation:Segmentation", name="segmentation")
    registry.register(f"{__name__}._text_span:Sentiment", name="narrative.sentiment")
    registry.register(f"{__name__}._text_span:TextSpan", name="narrative.text_span")
    registry.register_source(f"{__name__}._source:JsonV3Source", name="json_v3")
    registry.register_mutator(f"{__name__}._mutators:MUTATORS")
