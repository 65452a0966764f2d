"""Rules on the gain of one system over another."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_llmeval.core.evaluator import Metric
from pytest_llmeval.core.wording import limit
from pytest_llmeval.gates.contract import GateKey, GateOutcome, gate_rule, owned
from pytest_llmeval.gates.drop import ClaimGate

if TYPE_CHECKING:
    from pytest_llmeval.gates.statistics.drop_tests import Evidence


@gate_rule
class GainGate(ClaimGate):
    """A gate that fails unless a gain over another system is significant."""

    max_drop: float = owned(kw_only=False, min_gain=GateKey(float, "the gain over another system that is required"))

    tags: ClassVar = ("min_gain",)
    needs: ClassVar = {"against": "a gain is one over another system"}
    rule: ClassVar = "non_inferiority"
    former: ClassVar = "proven_safe"
    meaning: ClassVar = "fail unless the gain is significant"
    title: ClassVar = "a gate with min_gain"
    proves_safety: ClassVar = True
    noun: ClassVar = "gain"
    worst: ClassVar = "smallest gain"

    @property
    def condition(self) -> str:
        return f"gain({self.subject}) >= {limit(self.allowed)}"

    @property
    def allowed(self) -> float:
        return abs(self.max_drop)

    @classmethod
    def arguments(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().arguments(values), "max_drop": -float(values["min_gain"])}

    def change_of(self, drop: float | None) -> float | None:
        return None if drop is None else -drop

    def change_bounds(self, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
        return None if bounds is None else (-bounds[1], -bounds[0])

    def claimed(self, whose: str = "") -> str:
        return f"a gain{whose} above {limit(self.allowed)}"

    @property
    def contrary(self) -> str:
        return f"no more than {limit(self.allowed)}"

    def detectable(self, evidence: "Evidence", metric: Metric, tests: int) -> str:
        from pytest_llmeval.gates.statistics.drop_tests import detectable_gain

        return detectable_gain(evidence, self, metric, tests)


@gate_rule
class GainLackGate(GainGate):
    """A gate that fails if the gain over another system that is required is ruled out."""

    rule: ClassVar = "significant_drop"
    former: ClassVar = "proven_drop"
    label: ClassVar = "significant_drop"
    meaning: ClassVar = "fail if the gain is ruled out"
    title: ClassVar = "a gate with min_gain and rule significant_drop"
    refutes: ClassVar = True
    proves_safety: ClassVar = False
    proof: ClassVar = "ruled out"

    def claimed(self, whose: str = "") -> str:
        return f"a gain{whose} of {limit(self.allowed)}"

    @property
    def contrary(self) -> str:
        return f"at least {limit(self.allowed)}"


@gate_rule
class LiftGate(GainGate):
    """A gate that passes if the gain is significant, fails if it is ruled out, and else cannot tell."""

    rule: ClassVar = "decided"
    meaning: ClassVar = "pass if the gain is significant, fail if it is ruled out, else undecided"
    title: ClassVar = "a gate with min_gain and rule decided"
    proves_safety: ClassVar = False
    noun: ClassVar = "lift"

    @property
    def condition(self) -> str:
        return f"lift({self.subject}) >= {limit(self.allowed)}"

    def verdict(
        self, evidence: "Evidence", metric: Metric, *, proven: bool, collapsed: bool
    ) -> tuple[GateOutcome, str]:
        del collapsed
        if proven:
            return "passed", ""
        beyond = evidence.drop is not None and evidence.drop > self.max_drop
        if beyond and evidence.tails is not None and self.sides * evidence.tails.above <= 1 - self.confidence:
            return "failed", f"a gain of {limit(self.allowed)} is ruled out"
        return "undecided", self._cannot_tell(evidence, metric)

    def undecided_by(self, evidence: "Evidence", metric: Metric) -> bool:
        del metric
        tails = evidence.tails
        return tails is None or self.sides * min(tails.below, tails.above) > 1 - self.confidence

    def _cannot_tell(self, evidence: "Evidence", metric: Metric) -> str:
        from pytest_llmeval.gates.statistics.drop_tests import units_of, units_to_gain

        data = evidence.estimate
        text = f"cannot tell: {units_of(data)}"
        observed = 0.0 if evidence.drop is None else -evidence.drop
        if observed <= self.allowed:
            return f"{text}, and the gain that is observed is not above {limit(self.allowed)}"
        needed = units_to_gain(observed, evidence, self, metric)
        if needed is None or needed <= data.units:
            return text
        clusters = " clusters" if data.units < data.cases else ""
        return f"{text}. {needed - data.units} more{clusters} would make the observed gain significant, if it is true"
