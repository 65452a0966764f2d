"""What stored calls of judges took, to estimate calls to come."""

__all__ = ("PastCalls",)

from collections import defaultdict
from collections.abc import Iterable

from pytest_llmeval.judge.contract import Usage
from pytest_llmeval.judge.prices import cost_usd
from pytest_llmeval.judge.spec import Price
from pytest_llmeval.judge.stored_judgement import StoredJudgement
from pytest_llmeval.scoring.planned_calls import CallSample


class PastCalls:
    """Stored calls by mode."""

    def __init__(self, entries: Iterable[StoredJudgement]) -> None:
        self._by_mode: dict[str, dict[str, StoredJudgement]] = defaultdict(dict)
        for entry in entries:
            self._by_mode[entry.components["mode"]][entry.key] = entry

    def samples(self, mode: str, model: str, price: Price | None) -> list[CallSample]:
        """Return what calls of a mode took: those of a model or, if it has none, those of all models.

        Args:
            mode: The mode.
            model: ``PROVIDER:NAME``.
            price: What the tokens of the model cost now.
        """
        found = list(self._by_mode[mode].values())
        own = [entry for entry in found if entry.components["model"] == model]
        return [_sample(entry.usage, price, entry.seconds) for entry in own or found]


def _sample(usage: Usage, price: Price | None, seconds: float) -> CallSample:
    parts = (usage.input_tokens, usage.output_tokens)
    # An imported score has taken no time: it was no call.
    return CallSample(
        None if None in parts else sum(filter(None, parts)), cost_usd(price, usage), seconds if seconds > 0 else None
    )
