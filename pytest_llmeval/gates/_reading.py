"""The reader of a suite file's gates."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import AnyError, MetricIndex
from pytest_llmeval.data import describe
from pytest_llmeval.gates._gate import Gate, GateFault
from pytest_llmeval.gates._limit import (
    LimitGate,
    change_fault,
    gate_form_fault,
    is_plain_limit,
    mapping_form_fault,
)


@dataclass(frozen=True)
class GateReader:
    """A reader of the entries under ``gates``, in their text or mapping form.

    Attributes:
        metrics: Those of the suite; faults name the gate on them that is probably meant.
        check: Validates a mapping by a class; reports faults, and returns ``None`` if there are some.
        report: Reports a fault: the key of the mapping, or nothing; the fault; whether the key itself is wrong.
        reference: The system over which a lift is a gain.
        cluster_by: The label by which the suite clusters its cases.
    """

    metrics: MetricIndex
    check: Callable[[type, Mapping[str, Any]], Any]
    report: Callable[[str, str, bool], None]
    reference: str
    cluster_by: str | None = None

    def read(self, entry: Any) -> Gate | None:
        """The gate of an entry; ``None`` if faults have been reported."""
        try:
            gate = self._read_text(entry) if isinstance(entry, str) else self._read_value(entry)
            return None if gate is None else self._with_limit(gate.clustered(self.cluster_by))
        except GateFault as error:
            for key, fault in error.faults:
                self.report(key, fault, error.at_key)
            return None
        except ValueError as error:  # a number is out of range, or keys exclude each other
            self.report("", str(error), False)
            return None

    def _with_limit(self, gate: Gate) -> Gate:
        """The gate, whose text and limit can be computed: a rule of a plugin may raise any error.

        Raises:
            ValueError: They cannot.
        """
        try:
            gate.result("not_judged", None, "")
        except Exception as error:
            raise ValueError(f"{type(gate).__name__}: {AnyError(error).message()}") from error
        return gate

    def _read_text(self, text: str) -> Gate:
        """The gate of a text; rules besides limits are loaded only for texts that begin with a call."""
        if is_plain_limit(text):
            gate: Gate | None = LimitGate.from_text(text)
        else:
            from pytest_llmeval.gates._rules import gate_of_text

            gate = gate_of_text(text, self.reference)
        if gate is None:
            raise GateFault(("", gate_form_fault(text, self.metrics, self._near_form(text))))
        return gate

    def subject_fault(self, text: str, metric: str) -> str | None:
        """The fault of a gate whose metric is no name, such as ``avg(f1)``; ``None`` if it may be one.

        Args:
            text: The gate, or its key ``metric``.
            metric: The metric in it, as it was parsed.
        """
        return LimitGate.subject_fault(text, metric, self.metrics, self._near_form(text))

    @staticmethod
    def _near_form(text: str) -> str | None:
        """The gate of a rule with a text form that is most like a malformed one; ``None`` without any."""
        from pytest_llmeval.gates._rules import near_form

        return near_form(text)

    def _read_value(self, value: Any) -> Gate | None:
        """The gate of a mapping; other values are faults."""
        if not isinstance(value, Mapping):
            message = f"found {describe(value)}, expected text such as 'f1 >= 0.7' or a mapping with 'metric'"
            raise GateFault(("", message))
        from pytest_llmeval.gates._rules import gate_of_mapping, known_keys

        if fault := mapping_form_fault(value, list(known_keys()), self.metrics):
            raise GateFault(("", fault))
        return gate_of_mapping(value, self.check)

    def misfits(self, gate: Gate, entry: Any) -> Iterator[tuple[str, str]]:
        """Yield the keys and faults of a gate that do not fit its metric.

        Args:
            gate: The gate.
            entry: The gate as its user wrote it.
        """
        text = entry if isinstance(entry, str) else ""
        yield from gate.misfits(self.metrics, text)
        for name, key in gate.keys().items():
            value = gate.value_of(name) if key.unit else None
            if value is None:
                continue
            if key.unit == "change":
                fault = change_fault(name, gate.metric, value, self.metrics)
            else:
                fault = LimitGate.range_fault(gate.metric, value, self.metrics, repr(text) if text else "")
            if fault:
                yield "" if text else name, fault
