"""Which cases of a suite run, and in which order."""

__all__ = ("early_gates", "in_order", "sampled", "stop_fault", "stopping")

from collections.abc import Sequence
from hashlib import sha256

from msgspec.structs import replace

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.results import PASS_RATE
from pytest_llmeval.core.wording import counted
from pytest_llmeval.gates.early.verdicts import early_fault
from pytest_llmeval.gates.limits import Gate
from pytest_llmeval.gates.regression import RegressionGate
from pytest_llmeval.scoring.table import OUTCOME_EVALUATOR
from pytest_llmeval.suite.order import CaseOrder, StopSettings
from pytest_llmeval.suite.sampling import SampleSettings, draw
from pytest_llmeval.suite.suite import Suite


def sampled(suite: Suite, settings: SampleSettings) -> Suite:
    """Return a suite with the cases of its sample, and so its systems."""
    found = draw(suite.cases, settings)
    if found is None:
        return suite
    chosen, sample = found
    kept = tuple(case for case in suite.cases if case.id in chosen)
    systems = {
        name: replace(each, cases=tuple(case for case in each.cases if case.id in chosen))
        for name, each in suite.systems.items()
    }
    return replace(suite, cases=kept, systems=systems, sample=sample)


def stopping(suite: Suite, option: str | None) -> Suite:
    """Return a suite as the command line has it stop: ``decided``, ``never``, or as its file says."""
    if option is None:
        return suite
    return replace(suite, stop=(suite.stop or StopSettings()) if option == "decided" else None)


def early_gates(suite: Suite) -> Sequence[Gate | RegressionGate]:
    """Return the gates of a suite that decide when it stops: of all systems, and between them."""
    return (*suite.gates, *suite.regressions, *suite.named_gates)


def stop_fault(suite: Suite) -> str:
    """Say why a suite that is to stop when its gates are decided runs to its end nevertheless, or nothing."""
    gates = early_gates(suite)
    if not gates:
        return "it has no gates"
    if suite.bulk:
        return "mode bulk runs all cases in one item"
    if suite.all_faults:
        return "its files have faults"
    if suite.sample is not None and suite.sample.weights:
        return "cases of its sample have different weights"
    faults = [f"{gate}: {fault}" for gate in gates if (fault := _gate_fault(suite, gate))]
    return f"{faults[0]} (and {counted(len(faults) - 1, 'more gate')})" if len(faults) > 1 else "".join(faults)


def _gate_fault(suite: Suite, gate: Gate | RegressionGate) -> str:
    """Say why a gate cannot be judged before all cases have run, or nothing."""
    found, label = suite.metrics.find(gate.metric), _cluster_label(suite)
    metric = OUTCOME_EVALUATOR.describe()[0] if gate.metric == PASS_RATE else None if found is None else found.metric
    if isinstance(gate, RegressionGate) and gate.cluster_by not in (None, label):
        return f"cases are ordered by {label}, and not by {gate.cluster_by}"
    if found is not None and gate.statistic == "value" and found.label in suite.turns:
        return f"a conversation has several turns; mean({gate.metric}) can be judged early"
    return early_fault(gate, metric)


def _cluster_label(suite: Suite) -> str | None:
    """Return the label whose cases are ordered together."""
    own = (gate.cluster_by for gate in early_gates(suite) if isinstance(gate, RegressionGate) and gate.cluster_by)
    return suite.cluster_by or next(own, None)


def in_order(suite: Suite, seed: str | None) -> Suite:
    """Return a suite with the order of its cases, if it stops when its gates are decided and they can be.

    Cases have the order of the digests of their ids, or of the names of their clusters, with the seed: a case that is
    added or removed changes the order of no other.

    Args:
        suite: The suite.
        seed: Such as the commit that is checked out; ``None``: a fingerprint of the suite's cases.
    """
    if suite.stop is None or stop_fault(suite):
        return suite
    if seed is None:
        seed = _digest("\n".join(case.id for case in _every_case(suite)))
    return replace(suite, order=_order(_every_case(suite), suite, suite.stop, seed))


def _every_case(suite: Suite) -> list[Case]:
    """Return the cases of a suite and of its systems, each once."""
    of_systems = (case for each in suite.systems.values() for case in each.cases)
    return list({case.id: case for case in (*suite.cases, *of_systems)}.values())


def _order(cases: Sequence[Case], suite: Suite, stop: StopSettings, seed: str) -> CaseOrder:
    label = _cluster_label(suite)
    always = [case for case in cases if stop.keeps(case)]
    units: dict[tuple[bool, str], list[Case]] = {}
    for case in cases:
        if not stop.keeps(case):
            name = case.labels.get(label) if label else None
            units.setdefault((name is not None, case.id if name is None else name), []).append(case)
    drawn = [units[key] for key in sorted(units, key=lambda key: (_digest(f"{seed}\n{suite.name}\n{key}"), key))]
    ids = [case.id for case in always]
    numbers = [-1] * len(always)
    ends = []
    size = _whole_batches(suite, stop.block_of(len(cases)))
    since = 0
    for number, unit in enumerate(drawn):
        ids += [case.id for case in unit]
        numbers += [number] * len(unit)
        since += len(unit)
        if since >= size:
            ends.append(len(ids))
            since = 0
    if not ends or ends[-1] < len(ids):
        ends.append(len(ids))
    return CaseOrder(tuple(ids), tuple(numbers), tuple(ends), stop.confidence)


def _whole_batches(suite: Suite, size: int) -> int:
    """Return a number of cases that a service which answers several at once is asked for without a rest."""
    targets = [suite.target, *(each.target for each in suite.systems.values())]
    batch = max([1, *(each.http.batch for each in targets if each is not None and each.http is not None)])
    return -(-size // batch) * batch


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
