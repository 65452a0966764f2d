"""Instructions that an answer must follow, as a mode: every one gets its own verdict."""

__all__ = ("checklist_mode", "read_checklist")

from functools import lru_cache, partial
from typing import Final

from pytest_llmeval.judge.contract import Mode, Verdict
from pytest_llmeval.judge.questions.items import items_schema, listing, read_items, read_reason, read_truth
from pytest_llmeval.judge.questions.modes import read_mode_file

_NAME: Final = "checklist"
_SCHEMA: Final = items_schema(
    "verdicts", instruction={"type": "integer"}, reason={"type": "string"}, followed={"type": "boolean"}
)


@lru_cache(maxsize=256)
def checklist_mode(count: int) -> Mode:
    """Return the mode that judges a number of instructions."""
    file = read_mode_file(_NAME)
    question, answer = file["fields"]
    return Mode(
        name=_NAME,
        version=file["version"],
        instructions=file["instructions"],
        fields=(question, *(f"instruction_{number}" for number in range(1, count + 1)), answer),
        scale=(0.0, 1.0),
        read=partial(read_checklist, count=count),
        reply_schema=_SCHEMA,
        asks_again=True,
        decides=True,
        listing=listing("followed"),
    )


def read_checklist(reply: str, count: int) -> Verdict:
    """Read a JSON object whose ``verdicts`` have each instruction once.

    Args:
        reply: The text.
        count: How many instructions there are.

    Returns:
        The share of instructions that are followed; under ``verdicts`` of the details, in their order, whether each is,
        and why.

    Raises:
        JudgeError: An instruction has no verdict or two, one that does not exist has one, or a verdict is unreadable.
    """
    numbers = range(1, count + 1)
    items = read_items(reply, "verdicts", ("instruction",), [(number,) for number in numbers], "followed")
    verdicts = [
        {"followed": read_truth(reply, each, "followed", f"instruction {number}"), "reason": read_reason(each)}
        for number, each in zip(numbers, items, strict=True)
    ]
    return Verdict(sum(each["followed"] is True for each in verdicts) / count, details={"verdicts": verdicts})
