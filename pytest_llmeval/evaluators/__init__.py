"""General evaluators, one module or package each; they know neither pytest nor suite files."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.evaluators._answers import (
        ChangeablePart,
        NoJsonError,
        PatternError,
        answer_part,
        answer_text,
        as_references,
        as_text,
        compiled,
        describe_found,
        found_by,
        has_cjk,
        json_in,
        parts_of,
        read_json,
        reference_fault,
        references,
        replaced_at,
        schema_errors,
        schema_validator,
        spoken_answer,
        steps_of,
        word_lines,
    )
    from pytest_llmeval.evaluators._calls import (
        MessageStep,
        MissingTraceError,
        Order,
        ToolCall,
        follows,
        messages_of,
        read_expected,
        read_steps,
        read_trace,
        read_transcript,
    )
    from pytest_llmeval.evaluators._classification import Classification
    from pytest_llmeval.evaluators._functions import (
        ABSTAINED,
        ERROR,
        RUNS,
        CaseFunction,
        RecordedScores,
        Score,
        check_of,
        evaluator_of,
        reads_objects,
        recorded_scores,
    )
    from pytest_llmeval.evaluators._text import TextEvaluator
    from pytest_llmeval.evaluators.checks._check import Check, CheckKind, composed, quoted
    from pytest_llmeval.evaluators.checks._evaluator import Checks, checks_evaluator
    from pytest_llmeval.evaluators.checks._kinds import SHIPPED, kind_of_function
    from pytest_llmeval.evaluators.checks._reading import CheckReader, Unlocated
    from pytest_llmeval.evaluators.judge._evaluator import Judge
    from pytest_llmeval.evaluators.judge._human_labels import (
        OTHER_ANSWER,
        SCALES,
        HumanLabel,
        HumanLabels,
        LabelScale,
        PeopleScores,
    )
    from pytest_llmeval.evaluators.judge._judged_case import (
        CaseTexts,
        EvidenceSource,
        JudgedCase,
        as_sources,
        case_texts,
        defect_counts,
        defect_rates,
        listed_sources,
        reason_lines,
        unnamed_defects,
    )
    from pytest_llmeval.evaluators.judge._verdict_metrics import (
        Cascaded,
        CascadeErrors,
        PanelAgreement,
        VerdictStatistics,
        with_audit,
    )
    from pytest_llmeval.evaluators.measures._confusion import (
        SIDES,
        Margins,
        f1,
        krippendorff_alpha,
        labels_worth,
        precision,
        precision_recall_f1,
        rate_counts,
        rates,
        ratio,
        recall,
        spread_of,
        unit_moments,
        unseen_error,
        weighted_kappa,
    )
    from pytest_llmeval.evaluators.measures._locomo import CATEGORY_NAMES
    from pytest_llmeval.evaluators.measures._overlap import best_pairs, first_pairs, harmonic_mean
    from pytest_llmeval.evaluators.measures._tokens import (
        add_tokenizer,
        cited_by,
        get_tokenizer,
        is_east_asian,
        separate_east_asian,
        split_sentences,
    )

_HOMES = {
    "_classification": ("Classification",),
    "_text": ("TextEvaluator",),
    "_answers": (
        "spoken_answer",
        "ChangeablePart",
        "NoJsonError",
        "PatternError",
        "answer_part",
        "answer_text",
        "as_references",
        "as_text",
        "compiled",
        "describe_found",
        "found_by",
        "has_cjk",
        "json_in",
        "parts_of",
        "read_json",
        "reference_fault",
        "references",
        "replaced_at",
        "schema_errors",
        "schema_validator",
        "steps_of",
        "word_lines",
    ),
    "_calls": (
        "MessageStep",
        "MissingTraceError",
        "Order",
        "ToolCall",
        "follows",
        "messages_of",
        "read_expected",
        "read_steps",
        "read_trace",
        "read_transcript",
    ),
    "_functions": (
        "ABSTAINED",
        "CaseFunction",
        "ERROR",
        "RUNS",
        "recorded_scores",
        "RecordedScores",
        "Score",
        "check_of",
        "evaluator_of",
        "reads_objects",
    ),
    "checks._check": (
        "Check",
        "CheckKind",
        "composed",
        "quoted",
    ),
    "checks._evaluator": (
        "Checks",
        "checks_evaluator",
    ),
    "checks._kinds": (
        "SHIPPED",
        "kind_of_function",
    ),
    "checks._reading": (
        "CheckReader",
        "Unlocated",
    ),
    "judge._evaluator": ("Judge",),
    "judge._human_labels": (
        "HumanLabel",
        "HumanLabels",
        "LabelScale",
        "OTHER_ANSWER",
        "PeopleScores",
        "SCALES",
    ),
    "judge._judged_case": (
        "CaseTexts",
        "EvidenceSource",
        "JudgedCase",
        "as_sources",
        "case_texts",
        "defect_counts",
        "defect_rates",
        "listed_sources",
        "reason_lines",
        "unnamed_defects",
    ),
    "judge._verdict_metrics": (
        "CascadeErrors",
        "Cascaded",
        "PanelAgreement",
        "VerdictStatistics",
        "with_audit",
    ),
    "measures._confusion": (
        "Margins",
        "SIDES",
        "f1",
        "krippendorff_alpha",
        "labels_worth",
        "precision",
        "precision_recall_f1",
        "rate_counts",
        "rates",
        "ratio",
        "recall",
        "spread_of",
        "unit_moments",
        "unseen_error",
        "weighted_kappa",
    ),
    "measures._locomo": ("CATEGORY_NAMES",),
    "measures._overlap": (
        "best_pairs",
        "first_pairs",
        "harmonic_mean",
    ),
    "measures._tokens": (
        "add_tokenizer",
        "cited_by",
        "get_tokenizer",
        "is_east_asian",
        "separate_east_asian",
        "split_sentences",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
