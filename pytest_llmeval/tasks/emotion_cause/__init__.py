"""Emotion-cause pairs of SemEval-2024 Task 3."""

__all__ = ("register",)

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_llmeval.extend import Registry


def register(registry: "Registry") -> None:
    """Register the evaluator of emotion-cause pairs, its source, command and mutators."""
    registry.register(f"{__name__}._evaluator:EmotionCause", name="emotion_cause")
    registry.register_source(f"{__name__}._source:EcacSource", name="ecac")
    registry.register_source(f"{__name__}._source:EmotionCauseSource", name="emotion_cause")
    registry.register_command(
        "emotion-cause",
        f"{__name__}._pair_files:add_arguments",
        help="convert and validate files of emotion-cause pairs (SemEval-2024 Task 3)",
        group="tasks",
    )
    registry.register_mutator(f"{__name__}._evaluator:MUTATORS")
