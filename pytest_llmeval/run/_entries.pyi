# Types of the functions of `pytest_llmeval.run._entries`, written by .ci/entries_stub.py.

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, overload

from msgspec import Struct

from pytest_llmeval.core import Evaluator
from pytest_llmeval.evaluators import CheckKind, Checks
from pytest_llmeval.judges import Judgeable

EvaluatorEntry: TypeAlias = str | Mapping[str, Any] | Evaluator | Callable[[Any], Any] | NamedEvaluator
Check: TypeAlias = str | Mapping[str, Any] | Callable[[Any], Any] | CheckKind
Turn: TypeAlias = Literal["last", "each"] | int
Entry: TypeAlias = dict[str, Any]

class SuiteArguments(TypedDict, total=False):
    """The keys of a suite file; docs/suite-files.md has their meanings."""

    evaluators: Sequence[EvaluatorEntry] | EvaluatorEntry | None
    """list of evaluators; required unless there are checks"""
    description: str | None
    """text for readers of reports"""
    target: str | Mapping[str, Any] | Callable[..., Any] | NamedObject | None
    """what answers the cases: a Python function, service or command"""
    systems: Mapping[str, Any] | None
    """several systems that answer the cases, by name"""
    reference: str | None
    """system to compare the others with"""
    compare_by: Sequence[str] | None
    """metrics by which systems are compared"""
    only: Literal["predicted"] | None
    """`predicted`: leave out the cases without prediction"""
    parts: Mapping[str, Any] | None
    """places of the parts of a prediction"""
    conversation: Mapping[str, Any] | None
    """who leads conversations: `{user: {model: ..., goal: ...}}`, `{stop: target, max_turns: N}`"""
    group_by: Sequence[str] | None
    """labels for whose values the report has metrics"""
    cluster_by: str | None
    """a label: cases with the same value are one cluster"""
    abstained: Literal["fell", "allowed"] | None
    """an answer that leaves nothing to score counts as the worst value (`fell`), or not at all (`allowed`)"""
    mode: Literal["items", "bulk", "test"] | None
    """`items`: one test per case; `bulk`: one test per suite; `test`: only Python tests run the cases"""
    repeats: int | Mapping[str, Any] | None
    """runs of each case, 1 to 1000, or a mapping"""
    judge: str | Mapping[str, Any] | Judgeable | NamedObject | None
    """model that judges, as `PROVIDER:NAME` or a mapping, or a cascade"""
    judges: Sequence[str | Mapping[str, Any] | Judgeable | NamedObject] | None
    """a panel, in place of `judge`"""
    reduce: Literal["mean", "median", "majority", "unanimous"] | None
    """how their verdicts become one"""
    min_judges: int | None
    """verdicts of `judges` that a question needs"""
    confidence: float | None
    """level of intervals and tests; `null` for no intervals"""
    checks: Sequence[Check] | Check | None
    """assertions on every answer"""
    thresholds: Mapping[str, float | Mapping[str, Any]] | None
    """limits for every case"""
    gates: Sequence[str | Mapping[str, Any]] | None
    """limits for the suite"""
    snapshot: bool | Mapping[str, Any] | None
    """`true`, or settings: compare scores with approved ones"""
    approve: Mapping[str, Any] | None
    """`{failures: true}`: `--snapshot-update` also approves failing cases"""
    uncalibrated: Literal["report", "fail", "allow"] | None
    """`report`, `fail` or `allow` a judge that no labels confirm"""
    stop: Literal["when_decided", "never"] | Mapping[str, Any] | None
    """`when_decided`: run in random order until all gates are decided"""
    sample: Mapping[str, Any] | None
    """run a part of the cases: `{cases: N, by: LABEL, seed: NUMBER}`"""
    inputs: Sequence[str] | None
    """files and patterns such as `prompts/**` on which answers depend"""
    fetch: Sequence[str] | None
    """hosts such as `example.org` whose addresses are fetched, not passed on"""

class EntryFunction:
    __name__: str

class NamedEvaluator(Struct, frozen=True):
    evaluator: Evaluator
    settings: Mapping[str, Any]
    @classmethod
    def label(cls, value: Any) -> tuple[str, Any]: ...

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
) -> Entry:
    """An evaluator for a suite in Python: of a name, an object of your own, or a function of a case.

    Args:
        evaluator: Its name, an instance of `Evaluator`, or a function ``case -> score``, plain or async.
        options: Its options, where it has a name.
        beside: ``as_`` (or ``name``, of an object or a function), ``on`` and ``turn``, which stand next to the options
            in a suite file. Of a function also ``low`` and ``high``, the range of its scores (default: 0 to 1;
            ``None`` for no limit), and ``higher_is_better``.

    Raises:
        EvaluatorError: A function has no name of its own, and none is given.
    """

@overload
def evaluator(
    evaluator: Evaluator, /, *, name: str | None = None, on: str | None = None, turn: Turn | None = None
) -> NamedEvaluator:
    """An evaluator for a suite in Python: of a name, an object of your own, or a function of a case.

    Args:
        evaluator: Its name, an instance of `Evaluator`, or a function ``case -> score``, plain or async.
        options: Its options, where it has a name.
        beside: ``as_`` (or ``name``, of an object or a function), ``on`` and ``turn``, which stand next to the options
            in a suite file. Of a function also ``low`` and ``high``, the range of its scores (default: 0 to 1;
            ``None`` for no limit), and ``higher_is_better``.

    Raises:
        EvaluatorError: A function has no name of its own, and none is given.
    """

@overload
def evaluator(
    evaluator: Callable[[Any], Any],
    /,
    *,
    name: str | None = None,
    low: float | None = 0.0,
    high: float | None = 1.0,
    higher_is_better: bool = True,
    on: str | None = None,
    turn: Turn | None = None,
) -> NamedEvaluator:
    """An evaluator for a suite in Python: of a name, an object of your own, or a function of a case.

    Args:
        evaluator: Its name, an instance of `Evaluator`, or a function ``case -> score``, plain or async.
        options: Its options, where it has a name.
        beside: ``as_`` (or ``name``, of an object or a function), ``on`` and ``turn``, which stand next to the options
            in a suite file. Of a function also ``low`` and ``high``, the range of its scores (default: 0 to 1;
            ``None`` for no limit), and ``higher_is_better``.

    Raises:
        EvaluatorError: A function has no name of its own, and none is given.
    """

class NamedObject(Struct, frozen=True):
    value: Any
    name: str

class ByName(Struct, frozen=True):
    keys: dict[str, Any]
    registered: list[type[Evaluator] | CheckKind]
    objects: dict[str, Any]

@overload
def named(value: Callable[[Any], Any], name: str) -> NamedObject:
    """An object with a name, for a suite in Python: a target, a world, or the client of a judge or simulated user.

    Functions, methods, classes and their instances have names of their own, lambdas and partial functions have none.

    Args:
        value: The object.
        name: The name by which reports and stored verdicts know it.

    Raises:
        LlmevalError: The name is no text on one line, or the object can neither be called nor asked.
    """

@overload
def named(value: object, name: str) -> NamedObject:
    """An object with a name, for a suite in Python: a target, a world, or the client of a judge or simulated user.

    Functions, methods, classes and their instances have names of their own, lambdas and partial functions have none.

    Args:
        value: The object.
        name: The name by which reports and stored verdicts know it.

    Raises:
        LlmevalError: The name is no text on one line, or the object can neither be called nor asked.
    """

def check(function: Callable[[Any], Any], name: str | None = None) -> CheckKind:
    """The check for a suite in Python that a function of a case is: ``case -> met``, plain or async.

    Args:
        function: Returns true or false, or a `Score` of that with a reason.
        name: Of the check; default: the function's.

    Raises:
        EvaluatorError: It has no name of its own, and none is given.
    """

def listed(entries: Any) -> Iterable[Any]:
    """The entries of a Python suite's key that may have a single one."""

def by_name_in_file(keys: Mapping[str, Any]) -> ByName:
    """Keys of a suite declared in Python, with names in place of objects.

    Raises:
        LlmevalError: A value is none that the key can have, an object has no name, or two have the same one.
    """

def checks_by_name(entries: Iterable[Any]) -> tuple[list[Any], Mapping[str, CheckKind]]:
    """Checks of a Python suite with names in place of functions, and the checks of these functions by name.

    Raises:
        LlmevalError: A function has no name, or two have the same one.
    """

def get_checks(*entries: Any) -> Checks:
    """The evaluator of checks, as a suite file writes them.

    Args:
        entries: Checks as a suite file writes them, such as ``{"contains": "Paris"}``, or functions of a case.

    Raises:
        EvaluatorError: An entry has faults; all of them are listed.

    Example:
        >>> get_checks({"contains": "Paris"}, {"max_words": 2}).evaluate("It is Paris.", None)["check_rate"]
        0.5
    """

def not_(check: Check) -> Entry:
    """A check for a suite in Python that holds where another one does not."""

def all_of(*of: Check) -> Entry:
    """A check for a suite in Python that holds where all of some checks do."""

def any_of(*of: Check) -> Entry:
    """A check for a suite in Python that holds where any of some checks does."""

def at_least(n: int, *of: Check) -> Entry:
    """A check for a suite in Python that holds where at least `n` of some checks do."""

def checklist(
    *,
    instructions: Sequence[str] = ...,
    language: Literal["auto", "en", "zh"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """The share of instructions that answers follow, each judged by itself.

    The instructions are those of the suite, and after them those of the case: ``expected`` is an object with a list of
    them as ``instructions``. One call a case judges all of them. A reply that leaves one out, judges one twice, or one
    that does not exist, is asked for once more, and then is an error.

    ``instruction_rate`` is the number of followed instructions over the number of instructions, of all cases together;
    its interval takes the case as the unit. ``all_followed`` is the share of cases whose answer follows all. A case
    without instructions is undefined.

    Args:
        instructions: Those of every case.
        language: Of the question to the judge; ``auto``: by the label ``language`` of the case, or by the script of the
            instructions.

    Raises:
        ValueError: An instruction is blank.
    """

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
) -> Entry:
    """Claims of an answer and of the right answer, held by a judge against passages, each other and the question.

    ``input`` is the question, or an object that has it as ``question``; ``prediction`` is the answer, ``expected`` the
    right answer, one text. The passages are the part ``contexts`` of the prediction, or ``contexts`` of the input. A
    text is split into claims once for all metrics, and every claim, passage and citation that the judge was shown gets
    a verdict: a reply that leaves one out, adds one, or contradicts itself is asked for once more, and then an error.

    * ``faithfulness``: claims of the answer that the passages support; ``hallucination_rate``: those that they do not;
    * ``context_recall``: claims of the right answer that the passages support;
    * ``context_precision``: average precision of the useful passages, those that support a claim of the right answer,
      in the order in which they were retrieved; mean over cases;
    * ``context_relevance``: passages that bear on the question;
    * ``factual_precision``: claims of the answer that the right answer supports; ``factual_recall``: claims of the
      right answer that the answer supports; ``factual_f1``: their harmonic mean;
    * ``answer_relevancy``: claims of the answer that bear on the question;
    * ``citation_support``: citations, such as ``[2]``, whose passage supports the sentence that cites it.

    All are in [0, 1]; all but ``context_precision`` are sums over the claims, passages or citations of all cases. What
    a case lacks (a question, a right answer) makes its metrics undefined. An answer without claims or citations
    abstains. Without a passage, no claim is supported. That nothing says what the passages are is an error.

    Args:
        metrics: Which to compute; only the questions that they need are asked.
        language: Of the instructions; ``auto``: by the label ``language`` of the case, or by the question's script.

    Raises:
        ValueError: No metric, or one twice.
    """

def classification(
    *,
    metrics: Sequence[
        Literal[
            "accuracy",
            "precision_micro",
            "recall_micro",
            "f1_micro",
            "precision_macro",
            "recall_macro",
            "f1_macro",
            "precision_weighted",
            "recall_weighted",
            "f1_weighted",
            "positive_precision",
            "positive_recall",
            "positive_f1",
            "precision[label]",
            "recall[label]",
            "f1[label]",
            "support[label]",
            "cohen_kappa",
            "mcc",
        ]
    ] = ...,
    labels: Sequence[str | float | bool] = ...,
    ignore: Sequence[str | float | bool] = ...,
    positive: str | float | bool | None = ...,
    negatives: Sequence[str | float | bool] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """Accuracy, precision, recall, F1, Cohen's kappa, Matthews' correlation and confusion counts.

    ``expected`` is a label (string, number or boolean) or a list of labels, one per item of a sequence; the
    prediction has the same form. Labels are equal if their JSON texts are. Definitions are those of
    scikit-learn (``accuracy_score``, ``precision_recall_fscore_support``, ``cohen_kappa_score``,
    ``matthews_corrcoef``) over the items of all cases:

    * precision of a label that is never predicted is 0; recall of a label without gold is undefined (in the
      macro average it counts as 0); a label that occurs on neither side takes no part in averages;
    * where one label is all there is, kappa is undefined and Matthews' correlation 0, as in scikit-learn;
    * an item without a prediction counts as predicted "(none)": wrong, a miss of its gold label, and no label
      to be averaged. With a closed set, a prediction outside it is treated alike, under its own name.

    Labels that only predictions have get metrics of their own as long as there are at most 50 labels.

    Args:
        metrics: Which metrics to report, families of labels as ``f1[label]``; empty: all.
        labels: The closed set of labels; empty: any label. A gold label outside it is a fault of the case.
        ignore: Labels left out of micro, macro and weighted averages, as by scikit-learn's ``labels=``; micro
            averages then differ from accuracy. They stay in all other metrics.
        positive: The label whose binary precision, recall and F1 are reported as ``positive_*``.
        negatives: Instead of `positive`: all labels but these are positive, whichever of them it is.

    Raises:
        ValueError: Both `positive` and `negatives` are given, or an option names a label outside `labels`.
    """

def conversation(
    *, reasons: Sequence[str] = ..., as_: str | None = None, on: str | None = None, turn: Turn | None = None
) -> Entry:
    """Turns and stop reasons of conversations that a run has led.

    ``turns`` is the mean number of calls of the target. ``stop[script]``, ``stop[target]`` and ``stop[max_turns]`` are
    the shares of conversations that ended because the script did, because the target said so, or at the limit; of
    simulated users, ``stop[user]`` and ``stop[recording]`` are those that the user ended, or the end of its recording.
    ``stop_reason[goal_reached]`` and so on are the shares that the user ended for this reason.

    Args:
        reasons: For which a simulated user may end a conversation; empty where there is none. A suite with a simulated
            user sets them.
    """

def document_ids(
    *,
    k: int | Sequence[int] = ...,
    metrics: Sequence[Literal["recall", "precision", "hit_rate", "ndcg", "mrr"]] = ...,
    id_fields: Sequence[str] = ...,
    separator: str | None = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """Recall, precision, hit rate, nDCG and MRR of the first k retrieved documents, known by their ids.

    ``expected`` is a list of ids, or has it under ``contexts`` or ``sources``, next to an ``answer``, say. A text is
    one id, or a JSON list of ids. ``prediction`` is the list of results, best first, or has it under ``sources`` or as
    the part ``contexts``; ``on`` names another place. Results are ids, or objects with an id. The numbers 264 and 264.0
    and their texts are the same id.

    A document counts once, at its first rank: several passages of a document do not fill further ranks, and no score
    exceeds 1. Each score is the mean over the cases that expect a document. nDCG is that of trec_eval; an expected
    object may have a ``relevance``, the gain of its document.

    Args:
        k: How many documents count: a number, or several.
        metrics: Which of ``recall``, ``precision``, ``hit_rate``, ``ndcg`` and ``mrr``.
        id_fields: Keys of the id in a result that is an object; the first that is not empty is used.
        separator: Text between the ids in a text, such as ``;`` in a CSV; default: a text is one id.

    Raises:
        ValueError: An option is out of its range.
    """

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
) -> Entry:
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

    Args:
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
    verdicts: Sequence[str] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """Verdict, evidence and explanation of a fact check, and one score for all three.

    ``input`` is the claim. ``expected`` is an object with ``verdict`` (Supported, Refuted, Not Enough Evidence),
    ``justification`` and ``evidence_sources``, a list of objects with ``content`` and ``url``; and with ``claim``,
    where ``input`` is not it. ``prediction`` is such an object, or the text of a reply that has it as JSON, fenced or
    in prose; ``reasoning`` is read for ``justification``. A reply without such an object is malformed and scored as
    "Not Enough Evidence", justified by its whole text.

    * ``verdict_accuracy``, in [0, 1]: share of right verdicts; ``verdict_accuracy[Refuted]``: of the claims with that
      gold verdict; ``verdict_macro_f1``; ``confusion[Refuted->Supported]``: how often. A verdict that is no label
      counts as predicted "(other)".
    * ``evidence_precision``, ``evidence_recall``, ``evidence_f1``, in [0, 1]: means over claims, each scored by
      `EvidenceMatcher`: what the justification cites, and the answer lists as ``evidence_sources``, against the gold
      sources. ``evidence_f1[Refuted]``: mean over the claims with that gold verdict; ``evidence_macro_f1``: mean of
      these; ``evidence_micro_precision``, ``_recall``, ``_f1``: from all citations and sources together.
    * ``explanation_score``, in [0, 1]: a judge's grade of the justification, by 100; ``defect[fabrication]`` and so on:
      the share of justifications that have a defect. Undefined without a judge, errored where it fails.
    * ``overall_score``: 0.4 [verdict right] + 0.3 evidence F1 + 0.3 explanation score; the mean over the claims that
      have all three.
    * ``unparsed_rate``: share of replies without such an object.

    What the ground truth leaves out is undefined; an empty list of sources says that nothing need be cited.

    Args:
        evidence_threshold: Least share of words for two pieces of evidence to match, above 0 and up to 1.
        evidence_form: ``each_side``, or ``original``, in which evidence precision and F1 may exceed 1.
        evidence_matching: `matching` of `EvidenceMatcher`: ``by_kind``, or ``original`` for the original rules.
        evidence_from: Where expected evidence is: ``sources``, in ``evidence_sources``; ``justification``, in what the
            expected justification cites; ``auto``, in that only where ``evidence_sources`` is absent.
        tokenizer: ``auto``, or ``words`` for the original word rule.
        explanation: ``judge``, or ``omit`` to ask no judge and leave explanations out of the overall score.
        weights: Weight in `overall_score` of ``verdict``, ``evidence`` and ``explanation``, where it is not as above;
            what counts is their proportion. With ``normalize: false`` among them the score is the plain sum of
            weights times parts.
        verdict_labels: ``strict``: a verdict is a label letter by letter; ``synonyms``: also by another name.
        error_limits: Value below which a case is an error, where it is not as here: ``verdict_errors`` 1,
            ``low_evidence_f1`` 0.3, ``low_explanation_score`` 0.5.
        verdicts: The labels of the data set, where they are not these three. Macro F1 is then the mean over all of
            them; one that neither side has counts as 0.

    Raises:
        ValueError: An option has an impossible value.
    """

def fields(
    options: Mapping[str, Any] | None = None,
    *,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    **fields: Any,
) -> Entry:
    """Accuracy of each field, pooled precision, recall and F1 of fields, and whether all fields are right.

    The options are the paths of fields, each with its comparator. What no path names is compared exactly; ``"*"`` sets
    another comparator for it, or ``ignore``. ``expected`` is an object. The prediction is an object, a text that is
    JSON, or a text with JSON in a fenced block.

    A field is a value that is no object; each field of each element of a list that is compared by ``list`` is one. A
    field that is null counts as absent. With r fields that agree, p found ones and e expected ones, precision is r/p,
    recall r/e and F1 2r/(p + e), pooled over all cases. Where nothing is expected and nothing found, they are 1.

    Args:
        paths: Path to comparator.
    """

def image_similarity(
    *,
    metrics: Sequence[Literal["ssim", "phash"]] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """SSIM and perceptual hash of an image against one or more expected images. Needs the extra ``images``.

    Of several expected images the most similar counts, for each metric by itself. The value of a suite is the mean over
    its cases. An answer that is no image scores 0 and fails its case; so does, with ``ssim``, one of another size.

    * ``ssim``: structural similarity (Wang et al. 2004), in [-1, 1], the mean over red, green and blue. It notices
      what moved or is missing.
    * ``phash``: the share of equal bits of two perceptual hashes of 64 bits, in [0, 1]. Sizes may differ, and a colour
      or a small text may change unnoticed.

    Transparent images are compared on white, and of several frames the first. Scores are rounded to 6 decimals.

    Args:
        metrics: Which metrics to compute.

    Raises:
        ValueError: A metric is unknown.
    """

@overload
def judge(
    criterion: str,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """Evaluator ``judge``: the score that a judge gives an answer.

    ``input`` is the question, or an object that has it as ``question``; ``expected`` is the right answer, or a list of
    right answers; ``prediction`` is the answer. Lists and objects are shown to the judge as JSON, and null as the empty
    answer, which is malformed. A blank answer is judged like any other. In mode ``explanation`` the input is a claim,
    ``prediction`` a justification or ``{verdict, justification}``, and so is ``expected``, which may be absent.

    ``judge_score`` is the mean score, in [0, 1]: grades from 0 to 100 and levels of a rubric are brought to that range,
    lowest level 0, highest 1. A case without expected answer is undefined, except in the modes ``adversarial``,
    ``abstention``, ``explanation`` and ``rubric``, which can do without. A reply without a verdict is an error.

    With ``corrected``, some cases carry the scores of people: their ``expected`` is ``{reference, human}``, as in
    evaluator ``judge_agreement``. ``corrected(judge_score)``, of a rubric ``corrected(judge_pass)`` too, is the mean of
    the judge over all cases plus the mean of what people add to it over those cases (prediction-powered inference,
    Angelopoulos et al. 2023). It may leave [0, 1], and exists for sets of cases only, with at least ten labels. Labels
    may name the ``scored_answer``, by its text or fingerprint; those of other answers are left out. With
    ``corrected: balanced``, labels are no random part of the cases, but some of either kind. The share of right answers
    among the other cases is then corrected by the rates at which the judge agrees with them (Lang and Reiczigel 2014).

    Args:
        mode: How to judge; ``auto``: by the label ``question_type``, ``abstention`` where the case's id ends in
            ``_abs``, and ``default_binary`` for cases without either.
        language: Of the instructions; ``auto``: by the label ``language`` of the case, or by the question's script.
        rubric: Criteria, levels and pass mark; with mode ``rubric`` only.
        corrected: Whether cases carry scores of people, and to report what these make of the judge's; ``balanced``:
            labels are of answers that were chosen to have enough of either kind.
        human: Files of labels that people gave in a review; with ``corrected``.
        prompt: File of the instructions, with placeholders such as ``{{ answer }}``, in place of a mode.
        prompts: Question type (``abstention`` for ids that end in ``_abs``) to a file of instructions in place of ours,
            with mode ``auto``; each asks for a reply of the form that its mode has.
        unanswerable: ``original``: the rule of HiMGA's judge for ``adversarial``, to the letter.
        criteria: What makes an answer good, in place of a mode: the judge writes steps once, and grades by them.
        steps: Of criteria: the steps, if the judge is not to write them.
        reply: Of a prompt or criteria: name of each field of the reply to what it is.
        score: ``given``: the score that the judge names. ``expected``: the mean over the probabilities of the tokens
            that could stand there; a reply without them is an error.

    Raises:
        ValueError: A rubric without mode ``rubric``, or that mode without a rubric; a prompt without a reply; more than
            one of prompt, criteria and mode; scores that have no expected value; or balanced labels of a judge that
            says more than yes or no.
    """

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
    corrected: bool | Literal["balanced"] = ...,
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
) -> Entry:
    """Evaluator ``judge``: the score that a judge gives an answer.

    ``input`` is the question, or an object that has it as ``question``; ``expected`` is the right answer, or a list of
    right answers; ``prediction`` is the answer. Lists and objects are shown to the judge as JSON, and null as the empty
    answer, which is malformed. A blank answer is judged like any other. In mode ``explanation`` the input is a claim,
    ``prediction`` a justification or ``{verdict, justification}``, and so is ``expected``, which may be absent.

    ``judge_score`` is the mean score, in [0, 1]: grades from 0 to 100 and levels of a rubric are brought to that range,
    lowest level 0, highest 1. A case without expected answer is undefined, except in the modes ``adversarial``,
    ``abstention``, ``explanation`` and ``rubric``, which can do without. A reply without a verdict is an error.

    With ``corrected``, some cases carry the scores of people: their ``expected`` is ``{reference, human}``, as in
    evaluator ``judge_agreement``. ``corrected(judge_score)``, of a rubric ``corrected(judge_pass)`` too, is the mean of
    the judge over all cases plus the mean of what people add to it over those cases (prediction-powered inference,
    Angelopoulos et al. 2023). It may leave [0, 1], and exists for sets of cases only, with at least ten labels. Labels
    may name the ``scored_answer``, by its text or fingerprint; those of other answers are left out. With
    ``corrected: balanced``, labels are no random part of the cases, but some of either kind. The share of right answers
    among the other cases is then corrected by the rates at which the judge agrees with them (Lang and Reiczigel 2014).

    Args:
        mode: How to judge; ``auto``: by the label ``question_type``, ``abstention`` where the case's id ends in
            ``_abs``, and ``default_binary`` for cases without either.
        language: Of the instructions; ``auto``: by the label ``language`` of the case, or by the question's script.
        rubric: Criteria, levels and pass mark; with mode ``rubric`` only.
        corrected: Whether cases carry scores of people, and to report what these make of the judge's; ``balanced``:
            labels are of answers that were chosen to have enough of either kind.
        human: Files of labels that people gave in a review; with ``corrected``.
        prompt: File of the instructions, with placeholders such as ``{{ answer }}``, in place of a mode.
        prompts: Question type (``abstention`` for ids that end in ``_abs``) to a file of instructions in place of ours,
            with mode ``auto``; each asks for a reply of the form that its mode has.
        unanswerable: ``original``: the rule of HiMGA's judge for ``adversarial``, to the letter.
        criteria: What makes an answer good, in place of a mode: the judge writes steps once, and grades by them.
        steps: Of criteria: the steps, if the judge is not to write them.
        reply: Of a prompt or criteria: name of each field of the reply to what it is.
        score: ``given``: the score that the judge names. ``expected``: the mean over the probabilities of the tokens
            that could stand there; a reply without them is an error.

    Raises:
        ValueError: A rubric without mode ``rubric``, or that mode without a rubric; a prompt without a reply; more than
            one of prompt, criteria and mode; scores that have no expected value; or balanced labels of a judge that
            says more than yes or no.
    """

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
    corrected: bool | Literal["balanced"] = ...,
    human: str | Sequence[str] | None = ...,
    prompt: str | None = ...,
    prompts: Mapping[str, str] | None = ...,
    unanswerable: Literal["auto", "original"] = ...,
    criteria: str | None = ...,
    steps: Sequence[str] = ...,
    reply: Mapping[str, Mapping[str, Any] | Literal["text", "boolean"]] | None = ...,
    score: Literal["given", "expected"] = ...,
    levels: Sequence[float] = ...,
    pass_mark: float | None = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """Agreement of a judge with people who scored the same answers.

    A case is one of evaluator ``judge``, but ``expected`` is ``{reference, human}``: the right answer, and the score of
    a person or a list with the scores of several, on the scale of the mode. Scores are put into the nearest level, of
    two equally near ones the lower. Where several people scored a case, each of them counts as a part of the case, so
    that every case has the same weight.

    * ``agreement``: share of people who have the judge's level;
    * ``cohen_kappa``, ``weighted_kappa``: agreement of levels beyond chance, without and with squared differences as
      weights (Cohen 1960, 1968);
    * ``krippendorff_alpha``: for interval data, of the unrounded scores; the judge is one of the raters;
    * ``pearson``, ``bias``, ``mae``: correlation, mean difference (above 0: the judge is milder) and mean absolute
      difference of the judge's score and the mean score of the people;
    * ``tpr``, ``tnr``, ``balanced_accuracy``: share of the positive (negative) human labels that the judge gives, and
      the mean of both; a level from `pass_mark` up is positive. They exist if the levels are two, or have a pass mark;
    * ``confusion[human->judge]``: how many cases people put into one level and the judge into the other.

    Kappas, alpha and correlation exist for sets of cases only, and where scores do not vary they are undefined.

    Args:
        levels: Two or more different numbers on the scale of the mode; empty: 0, 0.2 to 1 for ``continuous`` and
            ``auto``, 0, 20 to 100 for ``explanation``, the levels of a rubric, the grades of a prompt
            or preset, 0 and 1 otherwise.
        pass_mark: The lowest level that is positive; default: that of the rubric, or the upper one of two.

    Raises:
        ValueError: The levels are fewer than two, not different, or not finite. The pass mark is none of the levels
            above the lowest. Or ``corrected`` is given, which is for evaluator ``judge``.
    """

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
) -> Entry:
    """All components of a JSON v3 annotation with all their metrics, a score for each, and one overall score.

    * ``narrative_characters``: ``character_f1``; ``narrative_relationships``: ``relationship_f1``;
      ``narrative_sentiment``: ``sentiment_f1``;
    * ``narrative_action_layer``: mean of ``action_layer_complete_match`` and of the mean of the field accuracies;
    * ``narrative_text_span``: mean of ``boundary_score`` and ``overlap_ratio``;
    * ``overall_score``: weighted mean of those five, of which components with nothing to judge are left out;
    * ``event_precision``, ``event_recall``, ``event_f1``: events that are aligned; ``extra_events``: how many are not;
    * ``event_accuracy``: share of the gold events that are aligned, have all given fields of the action right and every
      relationship with its given levels and exactly its sentiments (text spans are no part of it);
      ``judged_event_accuracy``: the same, without events whose ground truth has neither action nor relationship;
    * ``taxonomy_validity``: share of the predicted labels that the taxonomies have. It changes no other metric.

    All of these but ``extra_events`` are in [0, 1].

    Args:
        weights: Component to weight in `overall_score`; 1 where not given.
        components: More components: name to an evaluator, the name of a registered one, or ``package.module:Class``.
            Each gets the whole documents; its first metric, in [0, 1], is its score.
        relationship_score: ``pairs``: ``relationship_f1``; ``labelled``: ``labelled_f1``, which needs the levels.
        match: ``strict``: only main names count, no aliases.
        pairing: ``many``: relationships between the same characters are paired many-to-many.
        repair_spans: As in `narrative.text_span`.
        fuzzy: Least likeness at which names are equal, as in `narrative.characters`.
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
        tolerance: As in `narrative.text_span`.
        relationship_taxonomy: File of your own with the labels of relationships; ``None``: the shipped one.
        sentiment_taxonomy: The same for sentiments; their polarity is read there.
        action_taxonomy: The same for actions.

    Raises:
        ValueError: An option has an impossible value.
    """

def narrative_action_layer(
    *,
    align: Sequence[str] = ...,
    normalize: bool = ...,
    action_taxonomy: str | None = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """Accuracy of category, type, context, status and function of actions, and how many actions are right.

    Judged is every gold event that gives at least one of the fields, and only the fields that it gives; where the
    event is missing all of them are wrong. Labels are equal after trimming; letter case matters.

    * ``action_<field>_accuracy``: share of right fields among those given;
    * ``action_layer_complete_match``: share of the events with all given fields right;
    * ``action_layer_partial_match``: share of the events with some of them right, but not all.

    All metrics are in [0, 1].

    Args:
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
        action_taxonomy: File of your own with the labels for `normalize`; ``None``: the shipped one.
    """

def narrative_characters(
    *,
    fuzzy: float | None = ...,
    normalize: bool = ...,
    match: Literal["aliases", "strict"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """Precision, recall and F1 of characters, and accuracy of their archetypes.

    Characters are paired one-to-one: first those with equal names, then as many as possible of the others that
    share any name or alias. Names are equal after NFKC, case folding, trimming and joining of white space. Archetypes
    are judged in pairs whose gold character has one; none predicted is wrong. All metrics are in [0, 1].

    Args:
        fuzzy: Least likeness (rapidfuzz's ratio, in (0, 1]) at which the names of characters that are left over are
            equal as well; ``None``: none are.
        match: ``strict``: only main names count, no aliases.
    """

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
) -> Entry:
    """Precision, recall and F1 of relationships, and accuracy of their two levels.

    Judged is every gold event that has at least one relationship with agent and target, including missing events.
    Predicted relationships of an event are paired one-to-one with gold ones between the same characters (aliases are
    resolved), preferring equal levels 1, then levels 2, then common sentiments.

    With ``pairing: many`` every relationship between the same characters is found, however many there are of it.

    * ``relationship_*``: of the pairs; recall is ``relationship_pair_coverage``;
    * ``labelled_*``: a pair counts if it has every level that gold gives;
    * ``level1_accuracy``, ``level2_accuracy``: over the pairs whose gold has the level; none predicted is wrong.

    All metrics are in [0, 1].

    Args:
        fuzzy: Least likeness at which names are equal, as in `narrative.characters`.
        match: ``strict``: only main names count, no aliases.
        pairing: ``many``: relationships between the same characters are paired many-to-many.
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
        relationship_taxonomy: File of your own with the labels for `normalize`; ``None``: the shipped one.
    """

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
) -> Entry:
    """Precision, recall and F1 of sentiments, and accuracy of their polarity.

    A relationship has a set of sentiments. Judged are those of gold relationships that have any, paired as by
    `narrative.relationships`: common ones are hits, and the sentiments of a gold relationship without a partner are
    all missed. Polarity is judged in pairs whose gold has a known one: the sets of polarities must be equal.
    Sentiments are compared after trimming, and letter case matters; for polarity it does not. All metrics are in
    [0, 1].

    Args:
        fuzzy: Least likeness at which names are equal, as in `narrative.characters`.
        match: ``strict``: only main names count, no aliases.
        pairing: ``many``: the sentiments of all relationships between the same characters are compared as one set.
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
        sentiment_taxonomy: File of your own with the polarity of sentiments; ``None``: the shipped one.
    """

def narrative_text_span(
    *,
    tolerance: int = ...,
    align: Sequence[str] = ...,
    normalize: bool = ...,
    repair_spans: bool = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """Similarity of the boundaries that text spans draw between sentences, and overlap of the spans.

    A span whose start and end lie in different sentences draws a boundary before the sentence of its end. Predicted
    spans of events whose gold event has none are left out. Spans are not judged event by event:

    * ``boundary_score``, ``exact_matches``, ``near_misses``, ``insertions``, ``deletions``, ``pk`` and ``window_diff``
      compare the two sets of boundaries as `segmentation` does;
    * ``overlap_ratio`` is the mean over gold spans of intersection over union with the predicted span that an optimal
      one-to-one assignment gives them, in [0, 1]; 0 without one.

    Both sides may also be lists of spans, ``[{"start": 0, "end": 9}, ...]`` or ``[(0, 9), ...]``.

    Args:
        tolerance: n_t of Fournier (2013): boundaries less than this many sentences apart are near misses.
        align: By what events are aligned: ``id``, ``time_order``, ``span``; each sees what those before it left over.
        repair_spans: Move spans whose text is not what the story has there to the nearest place where it is.
    """

def pairwise(
    *,
    against: str | Sequence[str] = ...,
    criteria: str | None = ...,
    language: Literal["auto", "en", "zh"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """The answer against another one, as a judge compares them in both orders.

    The judge is asked twice about each pair, once with either answer first. An answer wins if it wins in both orders,
    and loses if it loses in both; anything else is a tie, so that a judge that prefers a position decides nothing.
    Equal answers are a tie for which nobody is asked.

    * ``win_rate``: wins and half of the ties, over all pairs;
    * ``wins``, ``losses``, ``ties``: numbers of pairs;
    * ``flip_rate``: share of the pairs put to the judge whose outcome is another one in the other order.

    The input is the question, as in evaluator ``judge``. Where the case has an expected answer, the judge sees it as
    the right one, unless it is the opponent. A case lacks all five metrics if one of its opponents has no answer.

    Args:
        against: The opponent: a system of the suite; ``systems``, all others of the suite; ``approved``, the answer
            that was approved with the scores of the suite; ``reference``, the expected answer, of several the first.
            Or a list of such names: pairs of all opponents count, and ``win_rate[opponent]`` is the rate against one.
            A system is not compared with itself, except as the only opponent, which is a tie.
        criteria: What makes an answer better, in place of the general criteria of the mode.
        language: Of the instructions; ``auto``: by the label ``language`` of the case, or by the question's script.

    Raises:
        ValueError: `against` names no opponent, or one twice; or `criteria` are blank.
    """

def recorded(
    *,
    metrics: Sequence[str] = ...,
    lower_is_better: Sequence[str] = ...,
    ranges: Mapping[str, Sequence[Any]] = ...,
    signatures: Mapping[str, str] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """The mean over cases of scores that another program has computed, such as those of a source ``results``.

    A case that ran several times has the mean of its runs, and counts once. An error in one of them is an error of the
    case: it never counts as a score.

    Args:
        metrics: Names of the metrics.
        lower_is_better: Metrics for which lower is better.
        ranges: Metric to its smallest and largest value; without it, a metric has no bounds.
        signatures: Metric to how it is computed.
    """

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
    relevance_level: float | None = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """Precision, recall, hit rate and F1 of the first k results, and nDCG, MAP and MRR.

    A case is one query. ``input`` is its text, or an object with a text under one of `text_fields` and attributes under
    ``meta``. ``expected`` is ``{"positives": [...]}`` or the list alone, best first: texts, ids, or objects that hold
    them, with a ``relevance`` above 0 where grades are known. ``prediction`` is the list of results, best first:
    objects, or ids where a rule goes by id. Where none does, a bare text is no result, and is skipped.

    Each task is a rule that says which results are relevant, and has its own scores. A document that is listed twice
    counts twice, except by id, and in nDCG, MAP and MRR. Those are trec_eval's: the gain of a document is its
    relevance, each query with a list counts, and results are taken in their order, regardless of their scores.

    A result that lacks an attribute which others have is read as the original reads it, as one without values, flags
    and months; ``unjudged`` in the details counts such results. Where no result has the attribute, nothing is known:
    the query has no scores by that rule. A prediction is malformed if it is no list of results, if none of them has a
    text or an id that a rule goes by, or if an attribute is of another kind.

    Recall is relevant results over positives, for every task. By id it is at most 1. By other rules it exceeds 1 where
    more results are relevant than positives are listed, unless `recall_denominator` is ``k``. A query with an empty
    list has 0 in all metrics of its list, as in trec_eval; without a list they are undefined, as recall
    and F1 of all tasks. A query without ``meta`` has no scores by rules that compare attributes.

    Args:
        k: The cut-offs; the metrics are computed for each.
        max_positives: How many positives count at most, the first ones; ``null`` for all.
        exclude_self: Whether a result with the text of the query is left out, and where a rule goes by id, one with its
            id.
        text_fields: Keys of the text; the first one that is not empty is used.
        id_fields: Keys of the id.
        tasks: Name to rule; ``legal`` means the tasks ``gold``, ``accusation``, ``article`` and ``imprisonment``.
        recall_denominator: What recall divides by: ``positives``, how many of them count; ``k``, the largest cut-off,
            for each query that has a list, at each k; or a number, likewise.
        relevance_level: The least ``relevance`` of a positive that counts as relevant, as ``-l`` of trec_eval; nDCG
            uses all grades. Default: every positive counts.
        absent_attributes: What a result without an attribute is where others have it: ``empty``, or ``unknown``, which
            is not relevant.
        unfilled_ranks: What ranks without a result are: ``miss``, not relevant; ``skip``, at a k that is not filled the
            query does not count.

    Raises:
        ValueError: An option is out of its range.
    """

def routing(
    *,
    others: Literal["wrong", "allowed"] = ...,
    ignore: Sequence[str] = ...,
    tools: str | None = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """Recall and precision of each tool, those of the worst one, and false alarms.

    ``expected`` is the name of a tool, or ``{expect, not, args}``, where ``expect: none`` means that nothing fires. The
    prediction has tool calls as for `tools`; or it is a text with JSON, ``{"tool": NAME, "arguments": {...}}``, where
    null or ``none`` calls nothing. What has none of these is errored, which is not the same as calling nothing.

    * ``routing_accuracy``: cases in which the expected tool fires, and no other that counts;
    * ``route_recall[tool]``: cases that expect a tool in which it fires; ``route_precision[tool]``: cases in which it
      fires that expect it, 0 for a tool that is expected and never fires. Where some cases expect nothing, silence
      counts as a tool, ``(none)``;
    * ``worst_recall``, ``worst_precision``: the smallest of these; ``worst_recall_low``, ``worst_precision_low``: the
      smallest lower bound of their Wilson intervals, at 95 % for all tools together (Bonferroni);
    * ``false_alarms``: cases that expect nothing in which something fires;
    * ``route_arguments``: cases with expected arguments, or a schema of them, whose calls have them and are valid.

    Args:
        others: Whether any other tool that fires is wrong, or only those that a case excludes.
        ignore: Patterns of tools that do not count, such as ``search_*`` before the one that matters.
        tools: The list of tools, as for the source ``tools``: calls of others are malformed, and arguments are checked.

    Raises:
        ValueError: The list of tools cannot be used.
    """

def segmentation(
    *, tolerance: int = ..., as_: str | None = None, on: str | None = None, turn: Turn | None = None
) -> Entry:
    """Boundary similarity, exact and near matches, insertions and deletions, Pk and WindowDiff.

    Boundary i lies after sentence i, counted from 0. ``expected`` is a list of boundaries, or an object with
    ``boundaries`` and ``n_sentences``; an empty list means a single segment. ``prediction`` is a list
    of boundaries, or an object with ``boundaries``. ``input`` is the list of sentences or their text, and gives the
    number of sentences where ``n_sentences`` does not; Pk and WindowDiff are undefined without it, and where the text
    is not longer than one window.

    Lists are read as sets. A predicted boundary outside the text counts as any other for all metrics but Pk and
    WindowDiff, where it has no effect. A predicted value that is no whole number is malformed and counts nowhere.

    The counts of a suite are sums, its boundary score is that of all boundaries pooled, and its Pk and WindowDiff are
    wrong windows over windows of all cases.

    Args:
        tolerance: n_t of Fournier (2013): boundaries less than this apart are near misses; 1 allows none.
    """

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
) -> Entry:
    """BERTScore F1 and cosine similarity of sentence embeddings. Needs the extra ``semantic``.

    ``expected`` is a text or a list of texts (the best counts, for each metric by itself); the prediction is
    a text. Numbers and booleans are read as their JSON text.

    * ``bert_f1``: F1 of BERTScore (Zhang et al. 2020) as computed by package ``bert-score``, without idf
      weights and not rescaled; at most 1, and below 0 only in theory.
    * ``sbert_similarity``: cosine of the embeddings by package ``sentence-transformers``, in [-1, 1].
    * ``embedding_similarity``, with `model` and in place of the others: cosine of the embeddings by a model that is
      asked over HTTP, in [-1, 1]. It needs no extra; similarities are stored and recorded as verdicts of judges are.

    Blank text has no meaning: a blank prediction scores 0 on both metrics (as bert-score has it), and so does
    any prediction if all references are blank; beside other references, blank ones are left out. Models cut
    off what is longer than they can read. Scores are rounded to 6 decimals. On a CPU the models run in double
    precision, so that a score does not depend on the other texts of its batch; elsewhere its last digit may.

    Args:
        metrics: Which metrics to compute.
        bert_model: Name or folder of the model of ``bert_f1``.
        bert_layers: Which layer's output ``bert_f1`` compares; by default bert-score's choice for the model.
        sbert_model: Name or folder of the model of ``sbert_similarity``.
        device: ``cpu``, ``cuda``, ``cuda:1`` ...; by default a CUDA device if there is one, else the CPU.
        batch_size: How many texts a model reads at once.
        model: ``openai:NAME`` of a model of embeddings, also of compatible servers.
        base_url: Where `model` is served; ``None`` for the provider's own address.
        api_key_env: The environment variable that holds the key for `model`; ``None`` for the provider's usual one.
        price: What `model` costs; ``None`` looks it up where it is published.

    Raises:
        ValueError: An option has an impossible value.
    """

def text(
    *,
    metrics: Sequence[
        Literal["exact_match", "f1", "rouge1", "rouge2", "rougeL", "bleu1", "bleu2", "bleu4", "meteor"]
    ] = ...,
    tokenizer: str = ...,
    wordnet: str | None = ...,
    ignore: Sequence[Literal["citations"]] = ...,
    effective_order: bool = ...,
    f1: Literal["tokens", "locomo"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """Exact match, token F1, ROUGE, BLEU and METEOR of an answer against one or more reference answers.

    ``expected`` is a text or a list of texts, ``prediction`` a text; numbers and booleans are read as their JSON
    text. With several references the best score counts, for each metric on its own. All metrics are in [0, 1], and
    the value of a suite is the mean over its cases. In exact match, two blank sides are equal.

    A metric of words is undefined if its tokenizer finds no token in any reference, such as an empty one. A reference
    without token is left out if others have some. A prediction that is blank, or has no token, scores 0.

    Args:
        metrics: Which of `METRICS`; ``meteor`` needs WordNet's data.
        tokenizer: ``auto``: each metric's own rule, extended to all scripts (East Asian characters count as
            words). ``words``: each metric's own rule as in its reference implementation; ``characters``;
            ``whitespace``; or a name given to `register_tokenizer`.
        wordnet: Folder of WordNet's database files; ``None`` looks where NLTK and Debian install them.
        ignore: What both texts are read without: ``citations`` are marks such as ``[1]``, ``[2, 3]`` and ``【4】``.
        effective_order: Whether BLEU leaves out n-grams that are longer than the answer, as sacrebleu does for
            sentences: a short answer that is the reference scores 1. Default: NLTK's rule, by which ``Paris`` has
            ``bleu4`` 0.178 against itself.
        f1: ``tokens``, or ``locomo`` for the F1 of LoCoMo's scorer: stems without articles, by the label ``category``.
            In category 5, which has no expected answer, it is 1 for an answer with ``not mentioned`` or ``no
            information available``, else 0.
    """

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
) -> Entry:
    """Precision, recall and F1 of tool names, the order of calls, their arguments, and limits.

    ``expected`` is a list of calls ``{name, arguments}``, or of names. The prediction is a list of calls, with
    ``result``, ``status`` and ``id`` if known, or of messages of OpenAI, Anthropic or pydantic-ai.

    Names are compared as multisets: with s names on both sides, c calls and e expected ones, precision is s/c, recall
    s/e and F1 2s/(c + e), pooled over all cases. ``trajectory_f1`` has the length of the longest common subsequence in
    place of s. Where nothing is expected and nothing called, they are 1. ``trajectory_match`` is 1 or 0 a case, by
    `order`.

    ``argument_accuracy`` is the share of calls whose arguments agree among those that are paired by name, under the
    pairing in which the most agree; expected calls that say nothing of arguments take no part.

    Args:
        order: What ``trajectory_match`` asks of the names.
        arguments: Whether arguments must be the expected ones, may be more, or are not compared.
        ignore_arguments: Patterns of arguments that do not count, such as ``*_id`` or ``meta.*``.
        null_arguments: Whether an argument that is null counts as ``absent``, or is a ``value``.
        defaults: Pattern of a tool's name to what arguments are if they are left out.
        compare: Pattern of a tool's name to paths of arguments and comparators, as for `fields`.
        include_failed: Whether calls that gave an error are compared. They always count as calls.
        ignore: Patterns of tools whose calls do not count at all, such as ``log_*``.
        max_calls: Most calls in a case.
        forbidden: Patterns of tools that may not be called.
        required: Patterns of tools that must be called.
        before: What must be approved before a tool is called: by a call of another tool, or by the user.
        says_did_not: Pattern of a tool to what claims, in a message, that it was called; found, unless it was.
        schemas: Name of a tool to the JSON Schema of its arguments.
        schemas_file: File with these, or with definitions of tools as sent to models.
    """

def user_drift(
    *,
    language: Literal["auto", "en", "zh"] = ...,
    as_: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
) -> Entry:
    """The share of conversations in which the simulated user did not keep to its role, as a judge sees it.

    A user that wants something else than its goal, invents what it does not know, or does the agent's work makes every
    other score of the conversation one of another task. A conversation counts 1 if that changed it, 0.5 if a message
    was out of role and changed nothing, else 0. One without a simulated user is undefined.

    Args:
        language: Of the question to the judge; ``auto``: by the script of the goal.
    """

def contains(
    argument: str | float | bool | Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the text stands in the answer."""

def contains_all(
    argument: Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: all texts stand in the answer."""

def contains_any(
    argument: Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: one of the texts stands in the answer."""

def contains_json(
    argument: Mapping[str, Any] | bool | str | Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: an object or array stands in the answer."""

def cost_usd(
    argument: float | Mapping[str, Any] = ...,
    *,
    max: float = ...,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer cost at most so many dollars."""

def empty(
    argument: Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer is blank, or an empty list or object."""

def ends_with(
    argument: str | float | bool,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer ends with the text."""

def equals(
    argument: str | float | bool,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer is this text."""

def icontains(
    argument: str | float | bool | Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: as contains, in any case."""

def icontains_all(
    argument: Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: as contains_all, in any case."""

def icontains_any(
    argument: Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: as contains_any, in any case."""

def image_size(
    argument: Mapping[str, Any] = ...,
    *,
    width: int | None = ...,
    height: int | None = ...,
    min_width: int | None = ...,
    min_height: int | None = ...,
    max_width: int | None = ...,
    max_height: int | None = ...,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer is an image of this size in pixels."""

def is_json(
    argument: Mapping[str, Any] | bool | str | Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the whole answer is JSON, of the schema if there is one."""

def json_equals(
    argument: Any,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer is this JSON value."""

def json_schema(
    argument: Mapping[str, Any] | bool | str,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer is JSON of this schema."""

def json_subset(
    argument: Any,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer is JSON with all of this value."""

def language(
    argument: str | Sequence[str],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer is written in this language, or one of these."""

def latency_s(
    argument: float | Mapping[str, Any] = ...,
    *,
    max: float = ...,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the target answered within so many seconds."""

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
) -> Entry:
    """A check: the answer is within some edits of a text."""

def max_chars(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: at most so many characters."""

def max_sentences(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: at most so many sentences."""

def max_words(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: at most so many words between white space."""

def media_type(
    argument: str | Sequence[str],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer is an image, sound or document of this media type, or of one of these; image/* is any image."""

def min_chars(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: at least so many characters."""

def min_sentences(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: at least so many sentences."""

def min_words(
    argument: int,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: at least so many words between white space."""

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
) -> Entry:
    """A check: the one number in the answer is this, or within limits."""

def one_of(
    argument: Sequence[str | float | bool],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer is one of these texts."""

def pii(
    argument: str | Sequence[str] | Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer holds personal data."""

def quotes(
    argument: Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: every quotation of the answer stands in the contexts."""

def refusal(
    argument: Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer declines to help."""

def regex(
    argument: str | Sequence[str],
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the pattern matches somewhere in the answer."""

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
) -> Entry:
    """A check: the answer reaches the pass mark of this rubric, as the judge sees it."""

def same_bytes(
    argument: Literal[True] | None = ...,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer has the content of the expected image, sound or document."""

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
) -> Entry:
    """A check: the trace has such a span, or so many."""

def starts_with(
    argument: str | float | bool,
    *,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: the answer begins with the text."""

def tool_call(
    argument: str | Mapping[str, Any] = ...,
    *,
    arguments: str | None = ...,
    min: int = ...,
    max: int | None = ...,
    before: str | Mapping[str, Any] | None = ...,
    name: str | None = None,
    on: str | None = None,
    turn: Turn | None = None,
    weight: float | None = None,
) -> Entry:
    """A check: such a tool was called, or so often."""

__all__ = [
    "all_of",
    "any_of",
    "at_least",
    "by_name_in_file",
    "check",
    "checklist",
    "checks_by_name",
    "claims",
    "classification",
    "contains",
    "contains_all",
    "contains_any",
    "contains_json",
    "conversation",
    "cost_usd",
    "document_ids",
    "emotion_cause",
    "empty",
    "ends_with",
    "equals",
    "evaluator",
    "fact_check",
    "fields",
    "get_checks",
    "icontains",
    "icontains_all",
    "icontains_any",
    "image_similarity",
    "image_size",
    "is_json",
    "json_equals",
    "json_schema",
    "json_subset",
    "judge",
    "judge_agreement",
    "language",
    "latency_s",
    "levenshtein",
    "listed",
    "max_chars",
    "max_sentences",
    "max_words",
    "media_type",
    "min_chars",
    "min_sentences",
    "min_words",
    "named",
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
    "recorded",
    "refusal",
    "regex",
    "retrieval",
    "routing",
    "rubric",
    "same_bytes",
    "segmentation",
    "semantic",
    "span",
    "starts_with",
    "text",
    "tool_call",
    "tools",
    "user_drift",
]
