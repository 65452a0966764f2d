"""Evaluator ``emotion_cause``."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, TypeAlias, cast

from pytest_llmeval.core import (
    AnswerChange,
    Case,
    ConfusionMatrix,
    ErrorBucket,
    Evaluator,
    EvaluatorError,
    FloatArray,
    LabelTable,
    Metric,
    Mutator,
    Neighbours,
    Observation,
    Reads,
    Sums,
    Totals,
    listed,
)
from pytest_llmeval.tasks.emotion_cause._conversation import (
    OBJECT_KEYS,
    UTTERANCE_METRICS,
    Gold,
    LabelCounts,
    Predicted,
    count_utterances,
    internal_rows,
    label_faults,
    pair_errors,
    read_gold,
    read_prediction,
    utterance_scores,
    utterances_of,
)
from pytest_llmeval.tasks.emotion_cause._pairs import (
    Pair,
    SpanPair,
    SubmissionFault,
    Subtask,
    UtterancePair,
    format_pair,
)
from pytest_llmeval.tasks.emotion_cause._scores import (
    ALL,
    EMOTIONS,
    FAMILIES,
    FILTERED,
    FOUR,
    PARTS,
    SCORED,
    Columns,
    Matching,
    keep_rate,
    pair_counts,
    pair_scores,
    score_names,
    span_counts,
    step_counts,
    step_scores,
    support,
)

PAIR_BUCKETS = ("not_found", "wrong_emotion", "wrong_span", "wrong_utterance", "not_expected")
"""Kinds of wrong pairs, as details name them."""


_SPAN_FAMILIES = ("strict", "proportional", "fuzzy")
_STEPS = {"filtered": FILTERED, "all": ALL}
_KEEP_RATE = "keep_rate"
_SUPPORT = "support[emotion]"
_CONFUSION = ConfusionMatrix("Emotions of pairs (neutral: no such pair on the other side)", EMOTIONS)
_ABSENT = "no expected pairs"
_NOTHING = "neither the ground truth nor the prediction has a pair"
_NO_GOLD = "the ground truth has no pairs to weight emotions by"
_NEUTRAL = frozenset({"neutral"})
_MOST_FAULTS = 3


@dataclass(frozen=True)
class EmotionCause(Evaluator):
    """Precision, recall and F1 of emotion-cause pairs, by the definitions of SemEval-2024 Task 3.

    A case is one conversation. ``expected`` is a list of gold pairs as official files have them, ``["3_surprise",
    "1_some words"]`` in Subtask 1 (then ``input`` is the list of utterances) and ``["3_surprise", "1"]`` in Subtask
    2, or an official conversation object. ``prediction`` is a list of pairs, ``["3_surprise", "1_21_27"]`` or
    ``["3_surprise", "1"]``, or an object that has it as ``emotion-cause_pairs``. The spelling ``["U3_Surprise",
    "U1_21_27"]`` is also read. A predicted pair that cannot be read is malformed and counts nowhere; the others are
    scored.

    Pairs are unique within a conversation; repeated ones count once. Pairs of neutral utterances count nowhere.
    Families of scores, each with precision, recall and F1:

    * Subtask 1, ``strict_*``: the pair is in gold, span and all;
    * ``proportional_*``: tokens that a predicted span shares with the gold span of the same utterances and emotion of
      which it covers the largest share; of equal ones the longest overlap, then the first of the gold list;
    * ``fuzzy_*``: the span shares a token with a gold span of the same utterances and emotion. Each span is matched
      once, and as many as possible are: ties never make a difference, nor does the order of pairs;
    * Subtask 2, ``pair_*``: the pair is in gold.

    These are micro averages over the six emotions. ``weighted_*`` averages the scores of the emotions by their share
    of gold pairs (``weighted_f1`` in Subtask 2), ``weighted_*_4class`` those of anger, joy, sadness and surprise;
    ``strict_f1[joy]`` is F1 of one emotion, ``support[joy]`` the number of its gold pairs. As in the official
    script, 1e-8 is added to every denominator, so a perfect score is 0.99999999. Values are in [0, 1). A predicted span
    that ends before it starts is malformed, and counts as a wrong pair without token; the official script subtracts its
    length. Gold words that
    the utterance does not have are a span without token, as in the official script.

    With `two_step`, a prediction may be an object with ``candidates``, a list of pairs, and ``keep``, a list that
    says for each whether the second step keeps it (0 or 1); what is kept is the prediction. ``filtered_*`` scores the
    kept candidates and ``all_*`` all of them, as ``pair_*`` but by the definitions of MECPE-Enhanced: repeated
    candidates count each time, neutral ones count in micro scores, and weights are hits and misses of an emotion.
    ``keep_rate`` is the share of candidates that are kept. In any other form of prediction all pairs are kept.

    A conversation without gold pairs has no weighted scores; without predicted ones as well it has no scores. F1 of
    an emotion is undefined where neither side has it, but 0 in ``filtered_*`` and ``all_*``, as in MECPE-Enhanced.

    Attributes:
        subtask: 1, the cause is a span of tokens; 2, the cause is an utterance.
        two_step: Whether to report the scores of candidates before and after a filter; in Subtask 2 only.
        quoted_spans: Whether predicted spans may be words, as in gold, ``["3_surprise", "1_some words"]``, which are
            located by the same rule; in Subtask 1 only.
        utterance_level: Whether to report the scores of Subtask 2 as well, ``pair_*`` and ``weighted_f1``, for the
            pairs without their spans; in Subtask 1 only.
        matching: Which spans meet in fuzzy scores: ``most``, as many as possible; ``original``, each predicted one, in
            order, takes the first gold span left that it overlaps.
        utterances: Whether to report ``emotion_precision``, ``_recall`` and ``_f1``, over utterances that have an
            emotion, and ``cause_...``, over those that are causes, as `cal_prf` does. Objects may have a label for each
            utterance as ``emotions`` and ``causes``, and then need no pairs; if not, the pairs say it.

    Raises:
        ValueError: An option is set in the other subtask.
    """

    name = "emotion_cause"
    reads = Reads(own_keys=OBJECT_KEYS)
    pools_undefined = True  # the official script gives 0 to conversations without any pair, taken together

    subtask: Subtask = 1
    two_step: bool = False
    quoted_spans: bool = False
    utterance_level: bool = False
    matching: Matching = "most"
    utterances: bool = False

    def __post_init__(self) -> None:
        if self.matching not in ("most", "original"):
            raise ValueError(f"matching: found {self.matching!r}, expected 'most' or 'original'")
        if self.two_step and self.subtask == 1:
            raise ValueError("two_step: found true in subtask 1, expected it only in subtask 2")

        if self.subtask == 2 and (self.utterance_level or self.quoted_spans):  # noqa: PLR2004 (the number of the subtask)
            option = "utterance_level" if self.utterance_level else "quoted_spans"
            raise ValueError(f"{option}: found true in subtask 2, expected it only in subtask 1")

    @property
    def _families(self) -> tuple[str, ...]:
        if self.subtask == 1:
            return (*_SPAN_FAMILIES, "pair") if self.utterance_level else _SPAN_FAMILIES
        return ("pair",)

    def _columns(self, family: str) -> Columns:
        return FAMILIES["utterances" if family == "pair" and self.subtask == 1 else family]

    @property
    def _reported(self) -> tuple[str, ...]:
        return (*self._families, *_STEPS) if self.two_step else self._families

    def describe(self) -> Sequence[Metric]:
        """Return the metrics, those that the task ranks by first."""
        named = {name: score_names(name) for name in self._reported}
        order = [
            *((name, metric_name) for name, (_, weighted, _) in named.items() for metric_name in weighted),
            *((name, metric_name) for name, (micro, _, _) in named.items() for metric_name in micro),
            *((name, metric_name) for name, (_, _, four) in named.items() for metric_name in four),
            *((name, f"{name}_{part}[emotion]") for name in named for part in PARTS),
            (self._families[0], _SUPPORT),
        ]
        metrics = [
            Metric(metric_name, high=None if metric_name == _SUPPORT else 1.0, signature=self._signature(name))
            for name, metric_name in order
        ]
        if self.two_step:
            metrics.append(Metric(_KEEP_RATE, signature=self._signature("all")))
        if self.utterances:
            metrics += [Metric(name, signature=f"eps:1e-8|v:{self.version}") for name in UTTERANCE_METRICS]
        return metrics

    def _signature(self, family: str) -> str:
        unique = "none" if family in _STEPS else "conversation"
        family += f"|matching:{self.matching}" if family == "fuzzy" and self.matching != "most" else ""
        return f"match:{family}|unique:{unique}|eps:1e-8|v:{self.version}"

    def tables(self) -> Sequence[LabelTable | ConfusionMatrix]:
        """Return the scores of each emotion, family by family, and the confusion matrix of the emotions of pairs."""
        scores = [
            LabelTable(
                f"Emotions, {name}",
                "emotion",
                {part: f"{name}_{part}[emotion]" for part in PARTS} | {"support": _SUPPORT},
                ("support",),
            )
            for name in self._reported
        ]
        return [*scores, _CONFUSION]

    def check(self, case: Case) -> Iterable[str]:
        """Yield the faults of the gold pairs."""
        yield from map(str, self._gold(case).faults)
        if self.utterances:
            yield from label_faults(case.expected)

    def _gold(self, case: Case) -> Gold:
        return read_gold(case.expected, case.input, self.subtask, case.id, labels=self.utterances)

    def evaluate(self, prediction: Any, ground_truth: Any, text: Any = None) -> dict[str, Any]:
        """Score one conversation, or the internal lists of several, ``[[conversation, emotion, cause, number], ...]``.

        Args:
            prediction: What was answered.
            ground_truth: What is right.
            text: The utterances, where spans are words.

        Returns:
            As for other evaluators; without details where there are several conversations.
        """
        cases = self.conversations(prediction, ground_truth)
        if len(cases) < 2:  # noqa: PLR2004 (several)
            return super().evaluate(prediction, ground_truth, text)
        observations = [self.measure(case) for case in cases]
        malformed = [observation.malformed for observation in observations if observation.malformed is not None]
        scores = self.scores(Observation(dict(Totals.add_up(observations))))
        return {**({"malformed": "; ".join(malformed)} if malformed else {}), **scores}

    def conversations(self, prediction: Any, ground_truth: Any) -> list[Case]:
        """Return the conversations of internal lists as cases; none if neither side is such a list with pairs.

        Raises:
            ValueError: As for `pair`.
        """
        pair = self.pair(prediction, ground_truth)
        answers, right = internal_rows(pair.prediction), internal_rows(pair.expected)
        return [
            Case(
                str(number),
                expected=pair.expected if right is None else right.get(number, []),
                prediction=pair.prediction if answers is None else answers.get(number, []),
            )
            for number in dict.fromkeys([*(right or {}), *(answers or {})])
        ]

    def measure(self, case: Case) -> Observation:
        """Count the pairs of one conversation.

        Raises:
            EvaluatorError: A gold pair cannot be read.
        """
        gold = self._gold(case)
        if gold.faults:
            raise EvaluatorError(_listed(gold.faults))
        texts = utterances_of(case.expected, case.input) if self.quoted_spans else None
        predicted = read_prediction(
            case.prediction, self.subtask, case.id, texts, labels=self.utterances and gold.pairs is None
        )
        malformed = _listed(predicted.faults) if predicted.faults else None
        labels = LabelCounts()
        if self.utterances:
            labels = count_utterances(case.expected, case.prediction, gold.pairs, predicted.pairs())
            malformed = malformed or labels.fault
        if gold.pairs is None:
            names = [metric.name for metric in self.describe() if "[" not in metric.name]
            absent = dict.fromkeys((name for name in names if name not in UTTERANCE_METRICS), _ABSENT)
            return Observation(labels.counts, undefined=absent | labels.undefined, malformed=malformed)
        pairs = predicted.pairs()
        counts: dict[str, float] = {"conversations": 1, **self._counts(gold.pairs, predicted, pairs)}
        counts |= _confusion(gold.pairs, pairs)
        counts |= labels.counts
        undefined = self._undefined(gold.pairs, predicted, pairs) | labels.undefined
        return Observation(counts, _details(gold.pairs, pairs), undefined, malformed)

    def _counts(self, gold: Sequence[Pair], predicted: Predicted, pairs: Sequence[Pair]) -> dict[str, int]:
        if self.subtask == 1:
            spans = span_counts(cast("Sequence[SpanPair]", gold), cast("Sequence[SpanPair]", pairs), self.matching)
            plain = (_without_spans(gold), _without_spans(pairs))
            return spans | pair_counts(*plain, "utterances") if self.utterance_level else spans
        right, candidates = cast("Sequence[UtterancePair]", gold), cast("Sequence[UtterancePair]", predicted.candidates)
        counts = pair_counts(right, cast("Sequence[UtterancePair]", pairs))
        return counts | step_counts(right, candidates, predicted.keep) if self.two_step else counts

    def _undefined(self, gold: Sequence[Pair], predicted: Predicted, pairs: Sequence[Pair]) -> dict[str, str]:
        """Return the reasons why scores other than F1 of the emotions are undefined in a conversation with gold."""
        reasons: dict[str, str] = {}
        right, answers = _emotions(gold), _emotions(pairs)
        scored = right - _NEUTRAL, answers - _NEUTRAL
        for name in self._families:
            reasons |= _why_not(name, *scored)
        if not self.two_step:
            return reasons
        for name, proposed in {"filtered": answers, "all": _emotions(predicted.candidates)}.items():
            reasons |= _why_not(name, right, proposed)
        if not predicted.candidates:
            reasons[_KEEP_RATE] = "the prediction has no candidate"
        return reasons

    def error_buckets(self) -> Sequence[ErrorBucket]:
        """Return pairs that were not found, are wrong in emotion, span or utterance, or are not expected."""
        metric = score_names(self._families[0])[0][-1]
        return [ErrorBucket(kind, metric, details=(kind,)) for kind in PAIR_BUCKETS]

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """List missing pairs, and wrong ones with their kind of error."""
        texts = utterances_of(case.expected, case.input) if self.quoted_spans else None
        pairs = read_prediction(case.prediction, self.subtask, case.id, texts).pairs()
        gold = self._gold(case).pairs or ()
        missing, extra = _differing(_scored(gold), _scored(pairs)) if observation.counts else ((), ())
        return pair_errors(missing, extra).lines(utterances_of(case.expected, case.input) or ())

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Apply the formulas of the official script, and those of MECPE-Enhanced for `two_step`."""
        import numpy as np

        scores: dict[str, FloatArray] = {}
        for name in self._families:
            scores |= pair_scores(sums, self._columns(name), name)
        scores |= support(sums)
        if self.two_step:
            for name, columns in _STEPS.items():
                scores |= step_scores(sums, columns, name)
            scores[_KEEP_RATE] = keep_rate(sums)
        counted = sums["conversations"] > 0
        scores = {name: np.where(counted, column, np.nan) for name, column in scores.items()}
        return scores | (utterance_scores(sums) if self.utterances else {})


def _without_spans(pairs: Iterable[Pair]) -> list[UtterancePair]:
    """The emotion-cause pairs with their cause spans dropped, for scores of whole utterances."""
    return [UtterancePair(pair.emotion_utterance, pair.cause_utterance, pair.emotion) for pair in pairs]


def _confusion(gold: Iterable[Pair], predicted: Iterable[Pair]) -> dict[str, int]:
    """Count the confusion of emotions: a wrong pair is in the row of neutral, a missed one in its column."""
    right, answers = set(gold), set(predicted)
    cells = Counter((pair.emotion if pair in right else EMOTIONS[0], pair.emotion) for pair in answers)
    cells.update((pair.emotion, EMOTIONS[0]) for pair in right - answers)
    return {_cell(*cell): number for cell, number in sorted(cells.items())}


_cell = cache(_CONFUSION.count)


def _emotions(pairs: Iterable[Pair]) -> frozenset[str]:
    """The emotions that occur in a conversation's emotion-cause pairs."""
    return frozenset([pair.emotion for pair in pairs])


@lru_cache(maxsize=4096)  # there are few sets of emotions
def _why_not(name: str, right: frozenset[str], answers: frozenset[str]) -> Mapping[str, str]:
    """The emotion-cause scores without a value over all emotions, with reasons, given both sides' emotions."""
    micro, weighted, four = score_names(name)
    if not right | answers:
        return dict.fromkeys([*micro, *weighted, *four], _NOTHING)
    without = [*([] if right.intersection(SCORED) else weighted), *([] if right.intersection(FOUR) else four)]
    return dict.fromkeys(without, _NO_GOLD)


def _details(gold: Sequence[Pair], predicted: Sequence[Pair]) -> dict[str, Any]:
    """The details of an emotion-cause case for the report, without empty ones."""
    right, answers = map(_scored, (gold, predicted))
    missing, extra = _differing(right, answers)
    pairs_by_kind = {
        "missing_pairs": missing,
        "extra_pairs": extra,
        "neutral_pairs": [pair for pair in predicted if pair.emotion in _NEUTRAL],
        "gold_spans_not_found": _without_token(right),
        "spans_without_token": _without_token(answers),
    }
    errors = pair_errors(missing, extra).details()
    numbers = {"n_gold": len(right), "n_predicted": len(answers), "n_correct": len(right) - len(missing)}
    named = {name: list(map(format_pair, pairs)) for name, pairs in pairs_by_kind.items() if pairs}
    return numbers | named | ({"pair_errors": errors} if errors else {})


def _scored(pairs: Iterable[Pair]) -> dict[Pair, None]:
    """The distinct emotion-cause pairs in their order, without neutral ones, which no score counts."""
    return dict.fromkeys(pair for pair in pairs if pair.emotion not in _NEUTRAL)


def _differing(right: Mapping[Pair, None], answers: Mapping[Pair, None]) -> tuple[list[Pair], list[Pair]]:
    """The emotion-cause pairs that only the gold has, and those that only the prediction has."""
    return [pair for pair in right if pair not in answers], [pair for pair in answers if pair not in right]


def _without_token(pairs: Iterable[Pair]) -> list[Pair]:
    """The emotion-cause pairs whose cause span is empty."""
    return [pair for pair in pairs if isinstance(pair, SpanPair) and pair.start >= pair.end]


def _listed(faults: Sequence[SubmissionFault]) -> str:
    """The faults of an emotion-cause prediction in one line, cut after the first few."""
    return listed(map(str, faults), _MOST_FAULTS, "; and {} more", "; ")


_EMOTIONS: Final = EMOTIONS[1:]
"""The scored emotions: all but neutral."""


_PairChange: TypeAlias = Callable[[list[Pair], list[Pair], Sequence[Pair], Neighbours], list[Pair] | None]
"""From the predicted pairs, the right ones among them and the gold ones to other predicted pairs, if any will do."""


def _of_pairs(change: _PairChange) -> AnswerChange:
    """A mutator's change of a prediction's emotion-cause pairs; the result is in the official spelling."""

    def changed(case: Case, near: Neighbours) -> Any:
        evaluator = near.evaluator("emotion_cause")
        assert isinstance(evaluator, EmotionCause)
        answer = evaluator.reads.answer_in(case.prediction)
        texts = utterances_of(case.expected, case.input) if evaluator.quoted_spans else None
        predicted = read_prediction(answer, evaluator.subtask, case.id, texts)
        gold = read_gold(case.expected, case.input, evaluator.subtask, case.id).pairs
        if gold is None or predicted.faults:
            return None
        pairs = list(dict.fromkeys(predicted.pairs()))
        right = [pair for pair in pairs if pair.emotion in _EMOTIONS and any(_meet(pair, other) for other in gold)]
        new = change(pairs, right, gold, near)
        return None if new is None else [format_pair(pair) for pair in new]

    return changed


def _meet(pair: Pair, other: Pair) -> bool:
    """Whether two emotion-cause pairs are the same, except for a few words of their spans."""
    if isinstance(pair, SpanPair) and isinstance(other, SpanPair):
        overlap = min(pair.end, other.end) > max(pair.start, other.start)
        return overlap and pair._replace(start=0, end=0) == other._replace(start=0, end=0)
    return pair == other


def _exchanged(others: Callable[[Pair, list[Pair], Sequence[Pair]], list[Pair]]) -> _PairChange:
    """Replace a right emotion-cause pair by a wrong one that is neither predicted nor gold, for a mutant."""

    def change(pairs: list[Pair], right: list[Pair], gold: Sequence[Pair], near: Neighbours) -> list[Pair] | None:
        known = {*gold, *pairs}
        free = {pair: [other for other in others(pair, pairs, gold) if other not in known] for pair in right}
        choices = [(pair, unknown) for pair, unknown in free.items() if unknown]
        if not choices:
            return None
        chosen, unknown = near.rng.choice(choices)
        other = near.rng.choice(unknown)
        return [other if pair == chosen else pair for pair in pairs]

    return change


def _dropped(pairs: list[Pair], right: list[Pair], _gold: Sequence[Pair], near: Neighbours) -> list[Pair] | None:
    """Remove a right emotion-cause pair from a prediction: a mutant that recall must notice."""
    if not right:
        return None
    chosen = near.rng.choice(right)
    return [pair for pair in pairs if pair != chosen]


def _added(pairs: list[Pair], _right: list[Pair], gold: Sequence[Pair], near: Neighbours) -> list[Pair] | None:
    """Add an emotion-cause pair with an emotion that its utterance does not have, for a mutant."""
    known = [*gold, *pairs]
    template = near.rng.choice(known) if known else None
    if template is None:
        return None
    emotions = {pair.emotion for pair in known if pair.emotion_utterance == template.emotion_utterance}
    free = [emotion for emotion in _EMOTIONS if emotion not in emotions]
    return [*pairs, template._replace(emotion=near.rng.choice(free))] if free else None


def _other_emotions(pair: Pair, _pairs: list[Pair], _gold: Sequence[Pair]) -> list[Pair]:
    """The emotion-cause pair with each other emotion, for the mutator that relabels a right pair."""
    return [pair._replace(emotion=emotion) for emotion in _EMOTIONS if emotion != pair.emotion]


def _other_causes(pair: Pair, pairs: list[Pair], gold: Sequence[Pair]) -> list[Pair]:
    """The emotion-cause pair with a neighbouring utterance as its cause, which causes nothing of this emotion."""
    causes = {
        other.cause_utterance
        for other in (*gold, *pairs)
        if (other.emotion_utterance, other.emotion) == (pair.emotion_utterance, pair.emotion)
    }
    numbers = (pair.cause_utterance - 1, pair.cause_utterance + 1)
    return [pair._replace(cause_utterance=number) for number in numbers if number > 0 and number not in causes]


def _other_spans(pair: Pair, _pairs: list[Pair], gold: Sequence[Pair]) -> list[Pair]:
    """The emotion-cause pair with its span moved behind all right ones of the utterance, sharing no word."""
    if not isinstance(pair, SpanPair) or pair.start >= pair.end:
        return []
    spans = (other for other in gold if isinstance(other, SpanPair) and other.cause_utterance == pair.cause_utterance)
    start = max((span.end for span in spans), default=0)
    return [pair._replace(start=start, end=start + pair.end - pair.start)]


def _mutator(name: str, why: str, advice: str, change: Any) -> Mutator:
    """A mutator of emotion-cause predictions, made from a change of their pairs."""
    return Mutator(name, why, _of_pairs(change), advice, ("emotion_cause",))


MUTATORS: Final = (
    _mutator("pair_dropped", "a right pair is missing", "a gate on recall or F1", _dropped),
    _mutator(
        "pair_added", "a pair names an emotion that the utterance does not have", "a gate on precision or F1", _added
    ),
    _mutator(
        "emotion_changed", "a pair has another emotion", "a gate on F1, or on each emotion", _exchanged(_other_emotions)
    ),
    _mutator("cause_moved", "a pair names an utterance that is no cause", "a gate on F1", _exchanged(_other_causes)),
    _mutator(
        "span_moved",
        "a pair names words that are no cause",
        "a gate on strict or proportional F1",
        _exchanged(_other_spans),
    ),
)
"""Mutators of emotion-cause pairs."""
