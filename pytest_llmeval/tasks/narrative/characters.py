"""Evaluator ``narrative.characters``: the characters of a story."""

__all__ = ("Characters",)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.evaluators.measures.confusion import f1, precision, ratio, recall
from pytest_llmeval.tasks.narrative.alignment import Alignment, NameMatch
from pytest_llmeval.tasks.narrative.base import NarrativeEvaluator, read_gold
from pytest_llmeval.tasks.narrative.explaining import character_lines, gap_counts, gap_details

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

_FOUND = ("character_precision", "character_recall", "character_f1")
_ARCHETYPE = "character_archetype_accuracy"
_ABSENT = "the ground truth has no characters"


@dataclass(frozen=True)
class Characters(NarrativeEvaluator):
    """Precision, recall and F1 of characters, and accuracy of their archetypes.

    Characters are paired one-to-one: first those with equal names, then as many as possible of the others that
    share any name or alias. Names are equal after NFKC, case folding, trimming and joining of white space. Archetypes
    are judged in pairs whose gold character has one; none predicted is wrong. All metrics are in [0, 1].

    Attributes:
        fuzzy: Least likeness (rapidfuzz's ratio, in (0, 1]) at which the names of characters that are left over are
            equal as well; ``None``: none are.
        match: ``strict``: only main names count, no aliases.
    """

    name = "narrative.characters"

    fuzzy: float | None = None
    match: NameMatch = field(default="aliases", kw_only=True)

    def describe(self) -> Sequence[Metric]:
        """Return the four metrics."""
        return [Metric(name, signature=self._signature()) for name in (*_FOUND, _ARCHETYPE)]

    def observe(self, stories: Alignment) -> Observation:
        """Count the characters of two stories."""
        gold, predicted = stories.gold.characters, stories.predicted.characters
        pairs = stories.characters
        judged = [(right, answer) for right, answer in pairs if right.archetype]
        wrong = [
            {"character": right.name, "expected": right.archetype, "predicted": answer.archetype}
            for right, answer in judged
            if right.archetype != answer.archetype
        ]
        paired = {id(each) for pair in pairs for each in pair}
        names = [each.name for each in predicted if id(each) not in paired]
        details: dict[str, Any] = {
            "missing_characters": [each.name for each in gold if id(each) not in paired],
            "extra_characters": names if gold else [],
            "unjudged_characters": [] if gold else names,
            "wrong_archetypes": wrong,
            "n_matched": len(pairs),
            "n_predicted": len(predicted),
            "n_ground_truth": len(gold),
            "archetype_correct": len(judged) - len(wrong),
            "archetype_total": len(judged),
        } | gap_details("characters", stories.gold)
        counts = gap_counts(details)
        if not gold:
            return Observation(counts, details, dict.fromkeys((*_FOUND, _ARCHETYPE), _ABSENT))
        counts |= {
            "matched": len(pairs),
            "predicted": len(predicted),
            "gold": len(gold),
            "archetypes.right": len(judged) - len(wrong),
            "archetypes": len(judged),
        }
        undefined = {} if judged else {_ARCHETYPE: "no paired character has an archetype in the ground truth"}
        return Observation(counts, details, undefined)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say which characters are missing or extra, and which have another archetype."""
        return character_lines(observation.details, read_gold(case).characters)

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return precision, recall and F1 of all characters pooled, and the share of right archetypes."""
        matched, predicted, gold = sums["matched"], sums["predicted"], sums["gold"]
        found = (precision(matched, predicted, gold), recall(matched, gold), f1(matched, predicted, gold))
        accuracy = ratio(sums["archetypes.right"], sums["archetypes"])
        return dict(zip(_FOUND, found, strict=True)) | {_ARCHETYPE: accuracy}
