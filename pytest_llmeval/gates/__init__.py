"""Gates."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.gates._change import ChangeGate, GateEvidence
    from pytest_llmeval.gates._drop import DriftGate, DropGate, LiftGate
    from pytest_llmeval.gates._gate import Gate, GateKey, GateScore, ScoreGate, TextForm, gate_rule, owned
    from pytest_llmeval.gates._limit import LimitGate
    from pytest_llmeval.gates._reading import GateReader
    from pytest_llmeval.gates._rules import RULES

_HOMES = {
    "_change": (
        "ChangeGate",
        "GateEvidence",
    ),
    "_drop": (
        "DriftGate",
        "DropGate",
        "LiftGate",
    ),
    "_gate": (
        "Gate",
        "GateKey",
        "GateScore",
        "ScoreGate",
        "TextForm",
        "gate_rule",
        "owned",
    ),
    "_limit": ("LimitGate",),
    "_reading": ("GateReader",),
    "_rules": ("RULES",),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
