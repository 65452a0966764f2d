"""Several tests together: Holm, Hochberg, Benjamini and Hochberg."""

__all__ = ("adjusted_gates", "benjamini_hochberg", "hochberg", "holm")

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for being several (Holm 1979): all errors together stay under the level.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda each: p_values[each])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def hochberg(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Hochberg's step-up method (1988), for tests that are independent.

    It finds what all tests show alike, however many they are.

    >>> hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    return _step_up(p_values, [float(rank) for rank in range(1, len(p_values) + 1)])


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted so that the expected share of errors among what is found stays under the level (1995).

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    size = len(p_values)
    return _step_up(p_values, [size / (size - rank) for rank in range(size)])


def _step_up(p_values: Sequence[float], factors: Sequence[float]) -> list[float]:
    """Multiply p-values by factors, that of the largest first; none becomes larger than one that it is below."""
    adjusted = [1.0] * len(p_values)
    smallest = 1.0
    ordered = sorted(range(len(p_values)), key=lambda each: -p_values[each])
    for place, factor in zip(ordered, factors, strict=True):
        smallest = min(smallest, factor * p_values[place])
        adjusted[place] = smallest
    return adjusted


def adjusted_gates(gates: Sequence[Sequence[float]]) -> list[list[float]]:
    """Adjust the p-values of gates for being several, where each gate has been adjusted for its own tests.

    Holm's method over gates: the level is divided by the number of gates of which a test has not been rejected yet.

    Args:
        gates: Of each gate, the p-values of its tests, at least one.
    """
    wholly = sorted(holm([max(each) for each in gates]))
    steps = [(len(gates) - rejected, at) for rejected, at in enumerate([0.0, *wholly[:-1]])]
    return [[min(1.0, *(max(factor * each, at) for factor, at in steps), 1.0) for each in gate] for gate in gates]
