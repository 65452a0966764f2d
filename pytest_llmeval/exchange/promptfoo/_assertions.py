"""Assertions of promptfoo as checks, or as metrics with limits."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pytest_llmeval.core import is_finite_number, quotation
from pytest_llmeval.data import Document, FaultLog
from pytest_llmeval.exchange._ledger import (
    Fate,
    LeftOutError,
    SourceLedger,
    SourcePath,
    as_mapping,
    as_text,
    first_text,
    fit,
)
from pytest_llmeval.exchange._media import has_media
from pytest_llmeval.exchange._patterns import RefusedPatternError, python_pattern
from pytest_llmeval.exchange._templates import (
    Direction,
    VerdictDifference,
    as_example,
    check_fault,
    code_stub,
    filled,
    json_schema,
    of_composing,
    of_folding,
    plain_text,
    texts_in,
)
from pytest_llmeval.exchange.promptfoo._outcomes import Assertion, Outcome, RefusedThereError, constant, described
from pytest_llmeval.exchange.promptfoo._prompts import ConfigFiles
from pytest_llmeval.exchange.promptfoo._providers import grader_of

GRADER: Final = "openai:gpt-4.1-2025-04-14"
"""The grader of promptfoo 0.118 if none is named and there is a key of OpenAI."""

_NOT = "not-"
_CODE_TYPES = frozenset({"javascript", "python", "ruby"})
_EMBEDDINGS = "text-embedding-3-large"
_SEMANTIC = "use evaluator semantic with base_url of a server like OpenAI's, or with a local model"
_SIMILAR = 0.75
_LEVENSHTEIN = 5
_MS = 1000

_ADVICE: Final = {
    "answer-relevance": "evaluator claims, metric answer_relevancy",
    "bleu": "evaluator text, metric bleu4",
    "classifier": "a registered check that calls the classifier",
    "context-faithfulness": "evaluator claims, metric faithfulness, with contexts in the prediction",
    "context-recall": "evaluator claims, metric context_recall, with contexts in the prediction",
    "context-relevance": "evaluator claims, metric context_relevance, with contexts in the prediction",
    "conversation-relevance": "a conversation (messages) with a check judge and turn: each",
    "empty": "check empty, as promptfoo has no such type and fails every answer",
    "ends-with": "check ends_with, as promptfoo has no such type and fails every answer",
    "finish-reason": "a target that returns the reason, and a check equals with on: PATH",
    "guardrails": "a registered check that reads what the provider reported",
    "human": "evaluator judge_agreement, which compares a judge with people",
    "is-valid-function-call": "a target that returns tool_calls, and evaluator tools with schemas",
    "is-valid-openai-function-call": "a target that returns tool_calls, and evaluator tools with schemas",
    "is-valid-openai-tools-call": "a target that returns tool_calls, and evaluator tools with schemas",
    "max-score": "evaluator pairwise, which compares the systems",
    "moderation": "a registered check that calls the moderation service",
    "select-best": "evaluator pairwise, which compares the systems",
    "skill-used": "a target that returns tool_calls, and evaluator tools with required",
    "tool-call-f1": "expected tool_calls, and evaluator tools, metric tool_f1",
    "trajectory:goal-success": "evaluator judge, mode goal_reached",
    "trajectory:step-count": "evaluator tools with max_calls",
    "trajectory:tool-args-match": "expected tool_calls, and evaluator tools, metric argument_accuracy",
    "trajectory:tool-sequence": "expected tool_calls, and evaluator tools, metric trajectory_match",
    "trajectory:tool-used": "evaluator tools with required",
}
"""Type to advice on what to write instead."""

_OTHER_TYPES = frozenset(
    {
        "agent-rubric",
        "contains-html",
        "contains-sql",
        "contains-xml",
        "gleu",
        "is-html",
        "is-sql",
        "is-xml",
        "perplexity",
        "perplexity-score",
        "pi",
        "search-rubric",
        "trace-error-spans",
        "trace-span-count",
        "trace-span-duration",
        "webhook",
    }
)
_DATA_KEYS = frozenset({"const", "default", "enum", "examples"})
_OTHERWISE = "a registered check (register_check)"


class AssertionReader:
    """A reader of the assertions in one configuration of promptfoo.

    Attributes:
        files: Files of the configuration.
        embeddings: The provider of embeddings, where an assertion names none.
        judge: Settings of the judge of the suite.
        grader: The provider that grades, where an assertion names none; ``None`` for that of promptfoo.
    """

    def __init__(self, files: ConfigFiles) -> None:
        self.files = files
        self.embeddings: Any = None
        self.judge: dict[str, Any] = {"model": GRADER}
        self.grader: Any = None

    def read(
        self, raw: Any, variables: Mapping[str, Any], path: SourcePath, ledger: SourceLedger, changed: str = ""
    ) -> Outcome | None:
        """Return the outcome of an assertion, after noting it; ``None`` if it is not imported.

        Args:
            raw: The assertion.
            variables: Values for the templates in it.
            path: Its place.
            ledger: Of its file.
            changed: A change of the answers before assertions see them, which is not imported.
        """
        kind = str(as_mapping(raw).get("type", ""))
        if not kind:
            ledger.lost(path, "assertion", f"found {described(raw)}, expected an assertion with a type")
            return None
        with ledger.losing(path, kind, "; write the check with its final text"):
            outcome = self._outcome(raw, kind, variables, path, ledger, changed)
            ledger.note(path, kind, outcome.fate, outcome.text, differences=outcome.differences)
            return outcome
        return None

    def _outcome(
        self,
        raw: Mapping[str, Any],
        kind: str,
        variables: Mapping[str, Any],
        path: SourcePath,
        ledger: SourceLedger,
        changed: str,
    ) -> Outcome:
        base = kind.removeprefix(_NOT)
        if base in _CODE_TYPES:
            raise self._code(raw, base, path, ledger)
        if changed or "transform" in raw:
            why = changed or "its transform changes the answer by code, which is never executed"
            raise LeftOutError(f"{why}; let a target return that text as a part, and read it with on: PATH")
        make = KINDS.get(base)
        if make is None:
            raise LeftOutError(f"there is no such check; write instead: {_ADVICE.get(base, _OTHERWISE)}")
        value = self._value(raw.get("value"), variables)
        if base.startswith("similar") and self.embeddings is not None:
            raw = {"provider": self.embeddings, **raw}
        try:
            outcome = make(Assertion(base, kind != base, value, raw.get("threshold"), raw))
        except RefusedThereError as error:
            return constant(str(error), met=False, fails_case=True)
        if raw.get("weight") == 0:
            text = "no check: its weight is 0, so it cannot fail; use an evaluator for its score"
            return Outcome(text=text, weightless=True)
        if outcome.judged:
            grader, _ = grader_of(raw.get("provider") or self.grader or GRADER)
            if grader != self.judge:
                raise LeftOutError("its grader is not the judge of the suite; write it into a suite of its own")
        if outcome.entry is not None:
            self.decorate(outcome, raw, variables)
            if fault := check_fault(outcome.entry):
                raise LeftOutError(f"it cannot be a check here: {fault}")
        elif "metric" in raw or "weight" in raw:
            outcome.text += "; its metric name and weight are left out"
            outcome.fate = Fate.NEAR
        return outcome

    def _value(self, value: Any, variables: Mapping[str, Any]) -> Any:
        """Return a value with files read and templates filled."""
        if isinstance(value, list):
            return [self._value(item, variables) for item in value]
        if not isinstance(value, str):
            return value
        if value.startswith("file://"):
            return self.files.value(filled(value, variables))
        if value.startswith(("package:", "exec:")):
            raise LeftOutError(f"its value {quotation(value, 60)} is code, which is never executed")
        return filled(value, variables)

    def decorate(self, outcome: Outcome, raw: Mapping[str, Any], variables: Mapping[str, Any]) -> None:
        """Add name and weight to a check."""
        assert outcome.entry is not None  # the caller looks
        metric = filled(first_text(raw, "metric"), variables)
        if name := " ".join(metric.replace("[", "(").replace("]", ")").split()):
            outcome.entry["name"] = name
            outcome.text += "; its metric is check[NAME], the share of these checks that are met"
        weight = raw.get("weight")
        if is_finite_number(weight) and weight not in (0, 1):
            outcome.entry["weight"] = weight
            outcome.fate = Fate.NEAR
            outcome.text += "; its weight counts in check_rate, over all cases together and not as a mean of cases"

    def _code(self, raw: Mapping[str, Any], kind: str, path: SourcePath, ledger: SourceLedger) -> LeftOutError:
        """The reason why code is not imported, with a check to begin with."""
        line = ledger.line(path)
        name = f"{kind}_line_{line}" if line else f"{kind}_{'_'.join(map(str, path))}"
        code = str(raw.get("value", ""))
        more = {key: raw[key] for key in ("threshold", "transform", "config") if key in raw}
        if more:
            code += f"\n{json.dumps(more, ensure_ascii=False)}"
        stub = code_stub(name, f"{ledger.file}:{line}", code, name)
        return LeftOutError("code is neither executed nor translated; write a registered check", stub)


def _with_text(assertion: Assertion) -> Outcome:
    """The check of promptfoo's ``contains``, ``icontains`` or ``starts-with``."""
    is_number = is_finite_number(assertion.value)
    if not (isinstance(assertion.value, str) or (is_number and assertion.kind != "starts-with")):
        raise RefusedThereError(f"its value is {described(assertion.value)}, expected text")
    if assertion.value == "":
        raise RefusedThereError("its value is empty")
    value = assertion.text_value()
    return assertion.check(assertion.kind.replace("-", "_"), value, _of_texts(assertion, value))


def _contains_several(assertion: Assertion) -> Outcome:
    """The check of promptfoo's ``contains-all``, ``contains-any`` or their forms without regard to case."""
    values = [] if assertion.value == [] else assertion.texts(absent="null")
    if assertion.kind.endswith("-all"):
        values = [value for value in values if value]  # every answer contains an empty text
    if not values or "" in values:
        why = "its list has no text" if not values else "its list has an empty text, which every answer contains"
        every = assertion.kind.endswith("-all") or bool(values)
        return constant(why, met=every is not assertion.negated)
    return assertion.check(assertion.kind.replace("-", "_"), values, _of_texts(assertion, *values))


def _of_texts(assertion: Assertion, *texts: str) -> Iterator[VerdictDifference]:
    """Yield the verdict differences of a promptfoo assertion on texts."""
    yield from of_composing(*texts)
    if assertion.kind.startswith("icontains"):
        yield from of_folding(*texts)


def _equals(assertion: Assertion) -> Outcome:
    """The check of promptfoo's ``equals``, on a text or on JSON."""
    if isinstance(assertion.value, list | Mapping):
        differences = list(of_composing(*texts_in(assertion.value)))
        outcome = assertion.check("json_equals", assertion.value, differences)
        if assertion.negated:
            reason = "an answer that is not JSON meets no check"
            outcome.differences.append(VerdictDifference(reason, Direction.STRICTER, as_example("no JSON")))
        return outcome
    if assertion.value is None:
        raise LeftOutError("it has no value")
    text = plain_text(assertion.value)
    return assertion.check("equals", text, of_composing(text))


def _regex(assertion: Assertion) -> Outcome:
    """The check of promptfoo's ``regex``, with its pattern for Python."""
    if assertion.value == "":
        raise RefusedThereError("its value is empty")
    text = assertion.text_value()
    try:
        pattern, differs = python_pattern(text)
    except RefusedPatternError as error:
        return constant(str(error), met=False)
    return assertion.check("regex", pattern, [VerdictDifference(differs)] if differs else ())


def _json(assertion: Assertion) -> Outcome:
    """The check of promptfoo's ``is-json`` or ``contains-json``, with its schema."""
    name = assertion.kind.replace("-", "_")
    schema = assertion.value
    if schema is True and assertion.negated:
        raise LeftOutError("promptfoo refuses the schema true for answers in JSON")
    if schema is True:
        return constant("promptfoo refuses the schema true", met=False)
    if as_text(schema).strip():
        schema = _parsed(schema)
    notes: list[str] = []
    argument = True if schema is False or schema in (None, "") else json_schema(_with_patterns(schema, notes))
    differences = [VerdictDifference(note) for note in notes]
    if _has_formats(schema):
        differences.append(VerdictDifference("formats in the schema are not checked", Direction.LOOSER))
    if assertion.kind == "contains-json":
        reason = "only strict JSON counts, where promptfoo also reads sloppy JSON"
        differences.append(VerdictDifference(reason, Direction.STRICTER, as_example("{a: 1}")))
        reason = "a list counts too, where promptfoo looks for objects"
        differences.append(VerdictDifference(reason, Direction.LOOSER, as_example("[1]")))
    return assertion.check(name, argument, differences)


def _with_patterns(schema: Any, notes: list[str]) -> Any:
    """The schema of a promptfoo assertion with patterns for Python; differences are added to the notes."""

    def written(pattern: str) -> str:
        text, differs = python_pattern(pattern, unicode=True)
        try:
            re.compile(text)
        except (re.error, RecursionError, OverflowError) as error:
            raise LeftOutError(f"the pattern {quotation(pattern, 60)} cannot be had here ({error})") from None
        notes.extend([differs] if differs and differs not in notes else [])
        return text

    if isinstance(schema, list):
        return [_with_patterns(item, notes) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    parts = {key: value if key in _DATA_KEYS else _with_patterns(value, notes) for key, value in schema.items()}
    if isinstance(parts.get("pattern"), str):
        parts["pattern"] = written(parts["pattern"])
    if isinstance(parts.get("patternProperties"), Mapping):
        parts["patternProperties"] = {written(key): value for key, value in parts["patternProperties"].items()}
    return parts


def _has_formats(schema: Any) -> bool:
    """Whether the schema of a promptfoo assertion limits the format of texts, such as dates."""
    if isinstance(schema, Mapping):
        return isinstance(schema.get("format"), str) or any(map(_has_formats, schema.values()))
    return isinstance(schema, list) and any(map(_has_formats, schema))


def _parsed(text: str) -> Any:
    """The schema that a promptfoo assertion has as text, in YAML or JSON."""
    faults = FaultLog("schema")
    data = Document.from_yaml(text, faults).data
    if faults.count or not isinstance(data, Mapping | bool):
        raise LeftOutError("its schema cannot be read")
    return data


def _levenshtein(assertion: Assertion) -> Outcome:
    """The check of promptfoo's ``levenshtein``, a limit on the edit distance."""
    most = math.floor(assertion.number(_LEVENSHTEIN))
    if not isinstance(assertion.value, str):
        raise RefusedThereError(f"its value is {described(assertion.value)}, expected text")
    if most < 0:
        return assertion.decided(f"its threshold is {most}")
    text = assertion.value
    differences = list(of_composing(text))
    if most > 0:
        reason = "a character outside the first 65,536, such as an emoji, is one edit, and two there"
        differences.append(VerdictDifference(reason, Direction.LOOSER, as_example(text + "\U0001f600" * most)))
    return assertion.check("levenshtein", {"to": text, "max": most}, differences)


def _words(assertion: Assertion) -> Outcome:
    """The check of promptfoo's ``word-count``."""
    value = assertion.value
    limits = value if isinstance(value, Mapping) else {"min": value, "max": value}
    try:
        checks = [
            {f"{end}_words": rounding(float(limits[end]))}
            for end, rounding in (("min", math.ceil), ("max", math.floor))
            if limits.get(end) is not None
        ]
    except (TypeError, ValueError, OverflowError):
        raise RefusedThereError(f"its value is {described(value)}, expected a number, or min and max") from None
    if not checks:
        raise RefusedThereError("it has neither min nor max")
    if checks[-1].get("max_words", 0) < 0:
        return assertion.decided("no answer has a negative number of words")
    reason = "white space is that of Unicode, and that of JavaScript there"
    differences = [VerdictDifference(reason, example=as_example("two\x85words"))]
    if len(checks) == 1:
        ((name, number),) = checks[0].items()
        return assertion.check(name, number, differences)
    return assertion.check("all_of", checks, differences, text="min_words and max_words")


def _cost(assertion: Assertion) -> Outcome:
    """The check of promptfoo's ``cost``, in US dollars."""
    return assertion.check("cost_usd", assertion.number(), [VerdictDifference("prices are those of genai-prices")])


def _latency(assertion: Assertion) -> Outcome:
    """The check of promptfoo's ``latency``, which is in milliseconds there."""
    return assertion.check("latency_s", assertion.number() / _MS, text="in seconds")


def _refusal(assertion: Assertion) -> Outcome:
    """The check of promptfoo's ``is-refusal``."""
    return assertion.check("refusal", True, [VerdictDifference("other phrases count as refusals")])


def _judged(assertion: Assertion) -> Outcome:
    """The judge's criterion that a model-graded assertion of promptfoo becomes."""
    words = {
        "factuality": "The answer agrees with these facts and contradicts none of them: ",
        "model-graded-factuality": "The answer agrees with these facts and contradicts none of them: ",
        "answer-relevance": "The answer is about what was asked, and says nothing that is beside the question.",
    }.get(assertion.kind, "")
    value = assertion.value
    if assertion.kind == "answer-relevance":
        criteria = [words]
    elif value and fit(list[str], value) is not None:
        criteria = [words + criterion for criterion in value]
    elif isinstance(value, list | Mapping):
        criteria = [words + json.dumps(value, ensure_ascii=False)]
    else:
        criteria = [words + assertion.text_value()]
    differs = "the judge says yes or no by its own instructions"
    if assertion.threshold is not None or assertion.kind in ("g-eval", "answer-relevance"):
        differs += ", in place of a score that must reach a threshold"
    if "rubricPrompt" in assertion.raw:
        images = ", with its media" if has_media(assertion.raw["rubricPrompt"]) else ""
        differs += f"; the rubricPrompt is left out{images}"
    name, argument = (
        ("judge", criteria[0]) if len(criteria) == 1 else ("all_of", [{"judge": criterion} for criterion in criteria])
    )
    return assertion.check(name, argument, [VerdictDifference(differs)], judged=True)


def _similar(assertion: Assertion) -> Outcome:
    """The metric of promptfoo's ``similar``, the cosine of embeddings, with its threshold."""
    if assertion.kind not in ("similar", "similar:cosine"):
        raise LeftOutError("only the cosine of embeddings is measured here: evaluator semantic")
    provider = assertion.raw.get("provider", f"openai:embedding:{_EMBEDDINGS}")
    if isinstance(provider, Mapping):
        provider = provider.get("embedding", provider)
    settings: dict[str, Any] = {}
    if isinstance(provider, Mapping):
        for option, setting in {**provider, **as_mapping(provider.get("config"))}.items():
            if option in ("apiBaseUrl", "apiKeyEnvar") and isinstance(setting, str):
                settings["base_url" if option == "apiBaseUrl" else "api_key_env"] = setting
            elif option not in ("id", "config", "label"):
                raise LeftOutError(f"its provider has the setting {option}, which cannot be had here; {_SEMANTIC}")
        provider = provider.get("id")
    scheme, _, model = str(provider).rpartition(":")
    if scheme not in ("openai:embedding", "openai:embeddings"):
        raise LeftOutError(f"there is no client for the embeddings of {provider}; {_SEMANTIC}")
    differs = "a similarity within a rounding error of the threshold may be on its other side"
    options = {"model": f"openai:{model}", **settings}
    return assertion.metric("semantic", options, "embedding_similarity", _SIMILAR, differs)


_OVERLAP: Final = {"bleu": ("bleu4", 0.5), "rouge-n": ("rouge1", 0.75), "meteor": ("meteor", 0.5)}


def _overlap(assertion: Assertion) -> Outcome:
    """The metric of promptfoo's ``bleu``, ``rouge-n`` or ``meteor``, with its threshold."""
    metric, default = _OVERLAP[assertion.kind]
    order = {"effective_order": True} if assertion.kind == "bleu" else {}
    return assertion.metric("text", {"metrics": [metric], **order}, metric, default, "words and smoothing differ")


KINDS: Final[Mapping[str, Callable[[Assertion], Outcome]]] = {
    **dict.fromkeys(("contains", "icontains", "starts-with"), _with_text),
    **dict.fromkeys(("contains-all", "contains-any", "icontains-all", "icontains-any"), _contains_several),
    **dict.fromkeys(("is-json", "contains-json"), _json),
    **dict.fromkeys(
        (
            "answer-relevance",
            "factuality",
            "g-eval",
            "llm-rubric",
            "model-graded-closedqa",
            "model-graded-factuality",
        ),
        _judged,
    ),
    **dict.fromkeys(("similar", "similar:cosine", "similar:dot", "similar:euclidean"), _similar),
    **dict.fromkeys(_OVERLAP, _overlap),
    "cost": _cost,
    "equals": _equals,
    "is-refusal": _refusal,
    "latency": _latency,
    "levenshtein": _levenshtein,
    "regex": _regex,
    "word-count": _words,
}
"""Type without ``not-`` to what it becomes."""

TYPES: Final = frozenset({*KINDS, *_ADVICE, *_CODE_TYPES, *_OTHER_TYPES}) - {"empty", "ends-with"}
"""Types of assertions, without ``not-``."""
