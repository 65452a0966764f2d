"""A judge that goes by simple rules, so that these suites need no model. A real judge understands what it reads."""

__all__ = ("RuleJudge",)

import json
from collections.abc import Mapping

from assistant import words

from pytest_llmeval import JudgeRequest

REFUSALS = ("not mention", "no information", "not say", "not tell", "没有提到", "没有相关信息")
FORGIVES_ONE = ("off by one", "多一或少一")
RIGHT_FROM = 0.5


class RuleJudge:
    """Grades an answer by the words that it shares with the right one, and a refusal by its wording."""

    async def complete(self, request: JudgeRequest) -> str:
        """Return a verdict in the form that the request asks for: yes or no, or JSON with a score.

        Nothing is awaited here. A plain function would do as well; it would get a thread of its own for each call.
        """
        forgives_one = any(each in request.messages[0].content for each in FORGIVES_ONE)
        share, reason = grade(texts_of(request), forgives_one=forgives_one)
        if request.reply_schema is None:
            return f"{'Yes' if share >= RIGHT_FROM else 'No'}: {reason}."
        return json.dumps({"reasoning": reason, "score": int(share * 5) / 5}, ensure_ascii=False)


def texts_of(request: JudgeRequest) -> Mapping[str, str]:
    """Return the texts that the request is about: question, reference (if there is one) and answer."""
    block = request.messages[-1].content.removeprefix("<data>").removesuffix("</data>")
    texts: Mapping[str, str] = json.loads(block)
    return texts


def grade(texts: Mapping[str, str], *, forgives_one: bool) -> tuple[float, str]:
    """Return how right an answer is, from 0 to 1, and why. Of several right answers the nearest counts."""
    answer = texts["answer"]
    references = [line.removeprefix("- ") for line in texts.get("reference", "").splitlines()]
    if not references or any(map(refuses, references)):
        return float(refuses(answer)), f"the answer {'says' if refuses(answer) else 'does not say'} that it is unknown"
    return max((compare(each, answer, forgives_one=forgives_one) for each in references), key=lambda found: found[0])


def refuses(text: str) -> bool:
    """Return whether a text says that something was never said."""
    return any(phrase in text.lower() for phrase in REFUSALS)


def compare(reference: str, answer: str, *, forgives_one: bool) -> tuple[float, str]:
    """Return which share of the words of a reference the answer has; none if it has other numbers than those."""
    wanted, said = words(reference), words(answer)
    if forgives_one:
        said = {corrected(each, wanted) for each in said}
    numbers = set(filter(str.isdecimal, said))
    if numbers - wanted and any(map(str.isdecimal, wanted)):
        return 0.0, f"the answer has another number than {reference!r}"
    share = len(wanted & said) / len(wanted)
    return share, f"the answer has {share:.0%} of the words of {reference!r}"


def corrected(word: str, wanted: set[str]) -> str:
    """Return a number that is wanted in place of one that is off by one, and any other word as it is."""
    near = (str(int(word) + step) for step in (-1, 1)) if word.isdecimal() else ()
    return next((each for each in near if each in wanted), word)
