"""Token F1 by the rules of LoCoMo's own scorer."""

import re
import string
from typing import Final

from pytest_llmeval.evaluators.measures._overlap import token_f1
from pytest_llmeval.evaluators.measures._tokens import stem

ADVERSARIAL: Final = "5"
"""The category of questions that the conversation does not answer."""

_SEVERAL: Final = "1"
"""The category of answers with several parts."""

_WITH_REASONS: Final = "3"
"""The category of answers that reasons follow."""

_UNANSWERABLE: Final = ("no information available", "not mentioned")
_ARTICLE: Final = re.compile(r"\b(?:a|an|the|and)\b")
_WITHOUT_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_SHORTEST: Final = 3
"""Characters below which a word is its own stem."""


def refuses(prediction: str) -> float:
    """1.0 for an answer with a phrase of refusal that LoCoMo's scorer accepts in category 5, else 0.0."""
    answer = prediction.lower()
    return float(any(phrase in answer for phrase in _UNANSWERABLE))


def locomo_f1(prediction: str, reference: str, category: str = "") -> float:
    """The F1 of an answer by LoCoMo's scorer, in [0, 1].

    Words are stems, without punctuation, case and ``a``, ``an``, ``the``, ``and``. In category 1, both sides are split
    at commas: the mean over the parts of the reference of the best F1 of any part of the answer. In category 3, the
    reference ends at the first semicolon.

    Args:
        prediction: The answer.
        reference: The right answer.
        category: The number of the category; other categories than 1 and 3 compare whole texts.

    Example:
        >>> locomo_f1("painting, the hikes", "hiking, paintings", "1")
        1.0
    """
    if category == _WITH_REASONS:
        reference = reference.partition(";")[0]
    if category != _SEVERAL:
        return token_f1(_locomo_stems(prediction), _locomo_stems(reference))
    answers = list(map(_locomo_stems, prediction.split(",")))
    parts = [max(token_f1(answer, _locomo_stems(part)) for answer in answers) for part in reference.split(",")]
    return sum(parts) / len(parts)


def _locomo_stems(text: str) -> list[str]:
    """The words of a text by LoCoMo's scorer: stems in lower case without articles and punctuation."""
    bare = _ARTICLE.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION))
    return [stem(word) if len(word) >= _SHORTEST else word for word in bare.split()]
