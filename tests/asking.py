"""An evaluator whose questions depend on what was said before."""

__all__ = ("Chain",)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from stored_judgements import MODE

from pytest_llmeval import Case, JudgedEvaluator, JudgeError, Metric, Mode, Observation, Question, Reads, Verdict
from pytest_llmeval.core.observation import FloatArray, Sums

LINK = Mode("link", "1", {"en": "Say a number."}, ("answer", "link"), (0, 10), MODE.read)


@dataclass(frozen=True)
class Chain(JudgedEvaluator):
    """Asks about one link after the other, as long as the judge gives a number above 0.

    Attributes:
        links: What is asked, in order; a link that is ``broken`` cannot be asked about.
        asks_again: As in `Mode`.
    """

    name = "chain"
    reads = Reads("answer")

    links: tuple[str, ...] = ("first", "second", "third")
    asks_again: bool = False

    def describe(self) -> Sequence[Metric]:
        return [Metric("links", high=None)]

    def questions(self, case: Case) -> Sequence[Question]:
        return self._about(case, 0)

    def follow_up(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Sequence[Question]:
        last = verdicts[-1]
        return self._about(case, len(verdicts)) if isinstance(last, Verdict) and last.score > 0 else []

    def _about(self, case: Case, place: int) -> Sequence[Question]:
        if place >= len(self.links):
            return []
        if self.links[place] == "broken":
            raise ValueError("no such link")
        mode = replace(LINK, asks_again=self.asks_again)
        return [Question(mode, {"answer": str(case.prediction), "link": self.links[place]})]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        del case
        for each in verdicts:
            if isinstance(each, JudgeError):
                raise each
        said = [each.score for each in verdicts if isinstance(each, Verdict)]
        return Observation({"links": sum(said), "n": 1}, {"said": said})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"links": sums["links"] / sums["n"]}
