"""Instructions that an answer must follow, as a mode: every one gets its own verdict."""

__all__ = ("checklist_mode", "read_checklist")

import json
import re
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Final

from pytest_llmeval.core.wording import counted
from pytest_llmeval.judge.contract import Mode, Verdict
from pytest_llmeval.judge.questions.listing import listing
from pytest_llmeval.judge.questions.modes import read_mode_file
from pytest_llmeval.judge.questions.replies import closing_object, object_schema, plain, shortened, unreadable

_NAME: Final = "checklist"
_VERDICTS: Final = "verdicts"
_KEYS: Final = ("instruction", "reason", "followed")
_SHOWN: Final = 60
_SECOND_LIST = re.compile(r"(?<!\w)(?P<name>verdicts)[\\\"'`*]{0,4}\s{0,9}[:=]\s{0,9}(?P<value>\[)")
_SCHEMA: Final = object_schema(
    verdicts={
        "type": "array",
        "items": object_schema(
            instruction={"type": "integer"}, reason={"type": "string"}, followed={"type": "boolean"}
        ),
    }
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
    entries = closing_object(reply, lambda _: {_VERDICTS: None}, _SECOND_LIST).get(_VERDICTS)
    if not isinstance(entries, list):
        raise unreadable(reply, f"found {_shown(entries)} as verdicts, expected a list")
    verdicts: dict[int, dict[str, Any]] = {}
    for place, entry in enumerate(entries):
        number, verdict = _entry(entry, reply, f"verdicts[{place}]")
        if not 1 <= number <= count:
            raise unreadable(reply, f"found a verdict on instruction {number}, expected 1 to {count}")
        if number in verdicts:
            raise unreadable(reply, f"found two verdicts on instruction {number}, expected one")
        verdicts[number] = verdict
    missing = [str(number) for number in range(1, count + 1) if number not in verdicts]
    if missing:
        wanted = f"expected one on each of {counted(count, 'instruction')}"
        raise unreadable(reply, f"found no verdict on instruction {', '.join(missing)}, {wanted}")
    ordered = [verdicts[number] for number in sorted(verdicts)]
    return Verdict(sum(each["followed"] for each in ordered) / count, "", {_VERDICTS: ordered})


def _entry(entry: Any, reply: str, place: str) -> tuple[int, dict[str, Any]]:
    if not isinstance(entry, Mapping):
        raise unreadable(reply, f"{place}: found {_shown(entry)}, expected an object with {', '.join(_KEYS)}")
    number, reason, followed = (entry.get(name) for name in _KEYS)
    if type(number) is not int:
        raise unreadable(reply, f"{place}.instruction: found {_shown(number)}, expected the number of an instruction")
    if not isinstance(followed, bool):
        raise unreadable(reply, f"{place}.followed: found {_shown(followed)}, expected true or false")
    return number, {"followed": followed, "reason": plain(reason.strip()) if isinstance(reason, str) else ""}


def _shown(value: Any) -> str:
    return "nothing" if value is None else shortened(json.dumps(value, ensure_ascii=False), _SHOWN)
