# Types of the functions of `pytest_llmeval.suite.entries`, written by .ci/entries_stub.py.

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, overload

from msgspec import Struct

from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.evaluators.checks.contract import CheckKind
from pytest_llmeval.evaluators.functions import CaseFunction

Check: TypeAlias = str | Mapping[str, Any] | CaseFunction | CheckKind
Turn: TypeAlias = Literal["last", "each"] | int
Entry: TypeAlias = dict[str, Any]

class SuiteArguments(TypedDict, total=False):
    evaluators: Sequence[Mapping[str, Any] | str | Evaluator] | Mapping[str, Any] | str | None
    description: str | None
    target: str | Mapping[str, Any] | Callable[..., Any] | None
    systems: Mapping[str, Any] | None
    reference: str | None
    compare_by: Sequence[str] | None
    only: Literal["predicted"] | None
    parts: Mapping[str, Any] | None
    conversation: Mapping[str, Any] | None
    group_by: Sequence[str] | None
    cluster_by: str | None
    abstained: Literal["fell", "allowed"] | None
    mode: Literal["items", "bulk", "test"] | None
    repeats: int | Mapping[str, Any] | None
    judge: str | Mapping[str, Any] | None
    judges: Sequence[str | Mapping[str, Any]] | None
    reduce: Literal["mean", "median", "majority", "unanimous"] | None
    min_judges: int | None
    confidence: float | None
    checks: Sequence[str | Mapping[str, Any]] | None
    thresholds: Mapping[str, float | Mapping[str, Any]] | None
    gates: Sequence[str | Mapping[str, Any]] | None
    snapshot: bool | Mapping[str, Any] | None
    approve: Mapping[str, Any] | None
    stop: Literal["when_decided", "never"] | Mapping[str, Any] | None
    sample: Mapping[str, Any] | None

class NamedEvaluator(Struct, frozen=True):
    evaluator: Evaluator
    settings: Mapping[str, Any]

@overload
def evaluator(
    evaluator: str,
    options: Mapping[str, Any] | None = None,
    /,
    *,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    **more: Any,
) -> Entry: ...
@overload
def evaluator(
    evaluator: Evaluator, /, *, name: str | None = None, on: str | None = None, turn: Turn | None = None
) -> NamedEvaluator: ...
@overload
def evaluator(
    evaluator: CaseFunction,
    /,
    *,
    name: str | None = None,
    low: float | None = 0.0,
    high: float | None = 1.0,
    higher_is_better: bool = True,
    on: str | None = None,
    turn: Turn | None = None,
) -> NamedEvaluator: ...
def check(function: CaseFunction, name: str | None = None) -> CheckKind: ...
def by_name_in_file(keys: Mapping[str, Any]) -> tuple[dict[str, Any], list[type[Evaluator] | CheckKind]]: ...
def not_(check: Check) -> Entry: ...
def all_of(*of: Check) -> Entry: ...
def any_of(*of: Check) -> Entry: ...
def at_least(n: int, *of: Check) -> Entry: ...
def checklist(
    *,
    instructions: Sequence[str] = ...,
    language: Literal["auto", "en", "zh"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def claims(
    *,
    metrics: Sequence[
        Literal[
            "faithfulness",
            "hallucination_rate",
            "context_recall",
            "context_precision",
            "context_relevance",
            "factual_precision",
            "factual_recall",
            "factual_f1",
            "answer_relevancy",
            "citation_support",
        ]
    ] = ...,
    language: Literal["auto", "en", "zh"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def classification(
    *,
    metrics: Sequence[str] = ...,
    labels: Sequence[str | float | bool] = ...,
    ignore: Sequence[str | float | bool] = ...,
    positive: str | float | bool | None = ...,
    negatives: Sequence[str | float | bool] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def conversation(
    *, reasons: Sequence[str] = ..., as_: str | None = None, on: str | None = None, turn: Turn | None = None
) -> Entry: ...
def emotion_cause(
    *,
    subtask: Literal[1, 2] = ...,
    two_step: bool = ...,
    quoted_spans: bool = ...,
    utterance_level: bool = ...,
    matching: Literal["most", "original"] = ...,
    utterances: bool = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def fact_check(
    *,
    evidence_threshold: float = ...,
    evidence_form: Literal["each_side", "original"] = ...,
    evidence_matching: Literal["by_kind", "original"] = ...,
    evidence_from: Literal["auto", "sources", "justification"] = ...,
    tokenizer: Literal["auto", "words"] = ...,
    explanation: Literal["judge", "omit"] = ...,
    weights: Mapping[str, float | bool] | None = ...,
    verdict_labels: Literal["strict", "synonyms"] = ...,
    error_limits: Mapping[str, float] | None = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def fields(
    options: Mapping[str, Any] | None = None,
    *,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    **fields: Any,
) -> Entry: ...
@overload
def judge(
    criterion: str,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
@overload
def judge(
    *,
    mode: Literal[
        "auto",
        "continuous",
        "adversarial",
        "temporal_reasoning",
        "knowledge_update",
        "preference",
        "default_binary",
        "abstention",
        "explanation",
        "rubric",
        "tone",
        "toxicity",
        "bias",
        "personal_data",
        "advice_limits",
        "goal_reached",
        "summary_coverage",
    ] = ...,
    language: Literal["auto", "en", "zh"] = ...,
    rubric: Mapping[str, Any] | None = ...,
    corrected: bool = ...,
    human: str | Sequence[str] | None = ...,
    prompt: str | None = ...,
    prompts: Mapping[str, str] | None = ...,
    unanswerable: Literal["auto", "original"] = ...,
    criteria: str | None = ...,
    steps: Sequence[str] = ...,
    reply: Mapping[str, Mapping[str, Any] | Literal["text", "boolean"]] | None = ...,
    score: Literal["given", "expected"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def judge_agreement(
    *,
    mode: Literal[
        "auto",
        "continuous",
        "adversarial",
        "temporal_reasoning",
        "knowledge_update",
        "preference",
        "default_binary",
        "abstention",
        "explanation",
        "rubric",
        "tone",
        "toxicity",
        "bias",
        "personal_data",
        "advice_limits",
        "goal_reached",
        "summary_coverage",
    ] = ...,
    language: Literal["auto", "en", "zh"] = ...,
    rubric: Mapping[str, Any] | None = ...,
    corrected: bool = ...,
    human: str | Sequence[str] | None = ...,
    prompt: str | None = ...,
    prompts: Mapping[str, str] | None = ...,
    unanswerable: Literal["auto", "original"] = ...,
    criteria: str | None = ...,
    steps: Sequence[str] = ...,
    reply: Mapping[str, Mapping[str, Any] | Literal["text", "boolean"]] | None = ...,
    score: Literal["given", "expected"] = ...,
    levels: Sequence[float] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def narrative(
    *,
    weights: Mapping[str, float] | None = ...,
    fuzzy: float | None = ...,
    align: Sequence[str] = ...,
    tolerance: int = ...,
    relationship_taxonomy: str | None = ...,
    sentiment_taxonomy: str | None = ...,
    action_taxonomy: str | None = ...,
    normalize: bool = ...,
    components: Mapping[str, Any] | None = ...,
    relationship_score: Literal["pairs", "labelled"] = ...,
    match: Literal["aliases", "strict"] = ...,
    pairing: Literal["one", "many"] = ...,
    repair_spans: bool = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def narrative_action_layer(
    *,
    align: Sequence[str] = ...,
    normalize: bool = ...,
    action_taxonomy: str | None = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def narrative_characters(
    *,
    fuzzy: float | None = ...,
    normalize: bool = ...,
    match: Literal["aliases", "strict"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def narrative_relationships(
    *,
    fuzzy: float | None = ...,
    align: Sequence[str] = ...,
    normalize: bool = ...,
    match: Literal["aliases", "strict"] = ...,
    pairing: Literal["one", "many"] = ...,
    relationship_taxonomy: str | None = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def narrative_sentiment(
    *,
    fuzzy: float | None = ...,
    align: Sequence[str] = ...,
    sentiment_taxonomy: str | None = ...,
    normalize: bool = ...,
    match: Literal["aliases", "strict"] = ...,
    pairing: Literal["one", "many"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def narrative_text_span(
    *,
    tolerance: int = ...,
    align: Sequence[str] = ...,
    normalize: bool = ...,
    repair_spans: bool = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def pairwise(
    *,
    against: str | Sequence[str] = ...,
    criteria: str | None = ...,
    language: Literal["auto", "en", "zh"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def retrieval(
    *,
    k: Sequence[int] = ...,
    max_positives: int | None = ...,
    exclude_self: bool = ...,
    text_fields: Sequence[str] = ...,
    id_fields: Sequence[str] = ...,
    tasks: Literal["legal"] | Mapping[str, Mapping[str, Any]] = ...,
    recall_denominator: Literal["positives", "k"] | int = ...,
    unfilled_ranks: Literal["miss", "skip"] = ...,
    absent_attributes: Literal["empty", "unknown"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def segmentation(
    *, tolerance: int = ..., as_: str | None = None, on: str | None = None, turn: Turn | None = None
) -> Entry: ...
def semantic(
    *,
    metrics: Sequence[str] = ...,
    bert_model: str = ...,
    bert_layers: int | None = ...,
    sbert_model: str = ...,
    device: str | None = ...,
    batch_size: int = ...,
    model: str | None = ...,
    base_url: str | None = ...,
    api_key_env: str | None = ...,
    price: Mapping[str, Any] | None = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def text(
    *,
    metrics: Sequence[str] = ...,
    tokenizer: str = ...,
    wordnet: str | None = ...,
    ignore: Sequence[Literal["citations"]] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def tools(
    *,
    order: Literal["exact", "in_order", "any_order", "superset", "subset"] = ...,
    arguments: Literal["exact", "partial", "ignore"] = ...,
    ignore_arguments: Sequence[str] = ...,
    null_arguments: Literal["absent", "value"] = ...,
    defaults: Mapping[str, Mapping[str, Any]] = ...,
    compare: Mapping[
        str, Mapping[str, Literal["exact", "text", "number", "date", "set", "list", "ignore"] | Mapping[str, Any]]
    ] = ...,
    include_failed: bool = ...,
    ignore: Sequence[str] = ...,
    max_calls: int | None = ...,
    forbidden: Sequence[str] = ...,
    required: Sequence[str] = ...,
    before: Mapping[str, Any] | Sequence[Mapping[str, Any]] = ...,
    says_did_not: Mapping[str, str] = ...,
    schemas: Mapping[str, Any] | None = ...,
    schemas_file: str | None = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def user_drift(
    *,
    language: Literal["auto", "en", "zh"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry: ...
def contains(
    argument: str | float | bool | Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def contains_all(
    argument: Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def contains_any(
    argument: Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def contains_json(
    argument: Mapping[str, Any] | bool | str | Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def cost_usd(
    argument: float | Mapping[str, Any] = ...,
    *,
    max: float = ...,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def empty(
    argument: Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def ends_with(
    argument: str | float | bool,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def equals(
    argument: str | float | bool,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def icontains(
    argument: str | float | bool | Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def icontains_all(
    argument: Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def icontains_any(
    argument: Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def is_json(
    argument: Mapping[str, Any] | bool | str | Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def json_equals(
    argument: Any,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def json_schema(
    argument: Mapping[str, Any] | bool | str,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def json_subset(
    argument: Any,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def language(
    argument: str | Sequence[str],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def latency_s(
    argument: float | Mapping[str, Any] = ...,
    *,
    max: float = ...,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def levenshtein(
    argument: Mapping[str, Any] = ...,
    *,
    to: str | float | bool = ...,
    max: int | None = ...,
    min_similarity: float | None = ...,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def max_chars(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def max_sentences(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def max_words(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def min_chars(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def min_sentences(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def min_words(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def number(
    argument: float | Mapping[str, Any] = ...,
    *,
    equals: float | None = ...,
    tolerance: float | None = ...,
    min: float | None = ...,
    max: float | None = ...,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def one_of(
    argument: Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def pii(
    argument: str | Sequence[str] | Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def quotes(
    argument: Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def refusal(
    argument: Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def regex(
    argument: str | Sequence[str],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def rubric(
    argument: Mapping[str, Any] = ...,
    *,
    criteria: str = ...,
    levels: Sequence[Mapping[str, Any]] = ...,
    pass_mark: float = ...,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def span(
    argument: str | Mapping[str, Any] = ...,
    *,
    attributes: Mapping[str, Any] = ...,
    failed: bool | None = ...,
    count: int | None = ...,
    max_duration_s: float | None = ...,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...
def starts_with(
    argument: str | float | bool,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry: ...

__all__ = [
    "all_of",
    "any_of",
    "at_least",
    "by_name_in_file",
    "check",
    "checklist",
    "claims",
    "classification",
    "contains",
    "contains_all",
    "contains_any",
    "contains_json",
    "conversation",
    "cost_usd",
    "emotion_cause",
    "empty",
    "ends_with",
    "equals",
    "evaluator",
    "fact_check",
    "fields",
    "icontains",
    "icontains_all",
    "icontains_any",
    "is_json",
    "json_equals",
    "json_schema",
    "json_subset",
    "judge",
    "judge_agreement",
    "language",
    "latency_s",
    "levenshtein",
    "max_chars",
    "max_sentences",
    "max_words",
    "min_chars",
    "min_sentences",
    "min_words",
    "narrative",
    "narrative_action_layer",
    "narrative_characters",
    "narrative_relationships",
    "narrative_sentiment",
    "narrative_text_span",
    "not_",
    "number",
    "one_of",
    "pairwise",
    "pii",
    "quotes",
    "refusal",
    "regex",
    "retrieval",
    "rubric",
    "segmentation",
    "semantic",
    "span",
    "starts_with",
    "text",
    "tools",
    "user_drift",
]
