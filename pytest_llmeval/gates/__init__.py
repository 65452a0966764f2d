"""Gates."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.gates._change import ChangeGate, GateEvidence
    from pytest_llmeval.gates._contract import (
        Gate,
        GateKey,
        GateSource,
        ScoreGate,
        ScoreSide,
        TextForm,
        gate_rule,
        owned,
        split_statistic,
        waiting_cases,
    )
    from pytest_llmeval.gates._drop import WATCHED_RUNS, DriftGate, DropGate, LiftGate
    from pytest_llmeval.gates._limit import (
        LimitGate,
        gate_form_fault,
        is_plain_limit,
        limit_form_fault,
        mapping_form_fault,
        range_fault,
        subject_fault,
    )
    from pytest_llmeval.gates._rules import (
        RULES,
        GateFault,
        add_rule,
        gate_of_text,
        gate_schema,
        judge_together,
        known_keys,
        read_gate,
        rule_of_text,
    )

_HOMES = {
    "_change": (
        "ChangeGate",
        "GateEvidence",
    ),
    "_contract": (
        "Gate",
        "GateKey",
        "GateSource",
        "ScoreGate",
        "ScoreSide",
        "TextForm",
        "gate_rule",
        "owned",
        "split_statistic",
        "waiting_cases",
    ),
    "_drop": (
        "DriftGate",
        "DropGate",
        "LiftGate",
        "WATCHED_RUNS",
    ),
    "_limit": (
        "LimitGate",
        "gate_form_fault",
        "is_plain_limit",
        "limit_form_fault",
        "mapping_form_fault",
        "range_fault",
        "subject_fault",
    ),
    "_rules": (
        "RULES",
        "GateFault",
        "add_rule",
        "gate_of_text",
        "gate_schema",
        "judge_together",
        "known_keys",
        "read_gate",
        "rule_of_text",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
