"""The reading of a gate of a suite file."""

from collections.abc import Callable, Mapping
from typing import Any

from pytest_llmeval.core import MetricIndex
from pytest_llmeval.data import describe
from pytest_llmeval.gates._gate import Gate, GateFault
from pytest_llmeval.gates._limit import LimitGate, gate_form_fault, is_plain_limit, mapping_form_fault


def read_gate(
    entry: Any,
    metrics: MetricIndex,
    check: Callable[[type, Mapping[str, Any]], Any],
    report: Callable[[str, str, bool], None],
    *,
    reference: str,
    cluster_by: str | None = None,
) -> Gate | None:
    """The gate of an entry under ``gates``, in its text or mapping form.

    Args:
        entry: The gate in a suite file.
        metrics: Those of the suite; faults name the gate on them that is probably meant.
        check: Validates a mapping by a class; reports faults, and returns ``None`` if there are some.
        report: Reports a fault: the key of the mapping, or nothing; the fault; whether the key itself is wrong.
        reference: The system over which a lift is a gain.
        cluster_by: The label by which the suite clusters its cases.

    Returns:
        The gate; ``None`` if faults have been reported.
    """
    try:
        if isinstance(entry, str):
            gate: Gate | None = _gate_of_text(entry, metrics, reference)
        else:
            gate = _gate_of_value(entry, metrics, check)
        return None if gate is None else gate.clustered(cluster_by)
    except GateFault as error:
        for key, fault in error.faults:
            report(key, fault, error.at_key)
        return None
    except ValueError as error:  # a number is out of range, or keys exclude each other
        report("", str(error), False)
        return None


def _gate_of_text(text: str, metrics: MetricIndex, reference: str) -> Gate:
    """The gate of a suite file's text; rules besides limits are loaded only for texts that begin with a call."""
    if is_plain_limit(text):
        gate: Gate | None = LimitGate.from_text(text)
    else:
        from pytest_llmeval.gates._rules import gate_of_text

        gate = gate_of_text(text, reference)
    if gate is None:
        raise GateFault(("", gate_form_fault(text, metrics)))
    return gate


def _gate_of_value(value: Any, metrics: MetricIndex, check: Callable[[type, Mapping[str, Any]], Any]) -> Gate | None:
    """The gate of a suite file's mapping form; other values are faults."""
    if not isinstance(value, Mapping):
        message = f"found {describe(value)}, expected text such as 'f1 >= 0.7' or a mapping with 'metric'"
        raise GateFault(("", message))
    from pytest_llmeval.gates._rules import gate_of_mapping, known_keys

    if fault := mapping_form_fault(value, list(known_keys()), metrics):
        raise GateFault(("", fault))
    return gate_of_mapping(value, check)
