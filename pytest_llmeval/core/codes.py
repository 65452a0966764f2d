"""Stable codes of faults: programs tell by them what is wrong, and ``llmeval explain`` says what to do."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple


class FaultCode(NamedTuple):
    """A kind of fault.

    Attributes:
        pattern: Regular expression that messages of this kind match, and no message of a kind above it.
        title: The kind in a few words.
        meaning: What it is, and why it is refused.
        remedy: How to fix it.
    """

    pattern: str
    title: str
    meaning: str
    remedy: str


_QUOTED: Final = re.compile(r"'(?:[^'\\]|\\.)*'")
_NAMES: Final = "key|metric|label|system|check|evaluator|format|mutator|model|part"

CODES: Final[Mapping[str, FaultCode]] = {
    "LE101": FaultCode(
        rf"\bunknown (?:{_NAMES})\b|found (?:the )?(?:evaluator|source) '",
        "unknown name",
        "A key, evaluator, metric, label, system or check has a name that nothing has. It is refused, since a "
        "misspelt gate would check nothing.",
        "Take the name after 'did you mean', or one that 'llmeval evaluators' lists. What a conftest.py registers is "
        "known to pytest only.",
    ),
    "LE102": FaultCode(
        r"found nothing, expected",
        "missing value",
        "A key that is required here is absent.",
        "Add the key that the message names; 'llmeval schema' prints the form of every key.",
    ),
    "LE103": FaultCode(
        r"\btwice\b|a second document",
        "something is there twice",
        "A key or an id occurs twice, so that one of the two would be lost.",
        "Remove one, or give it another id.",
    ),
    "LE104": FaultCode(
        r"found no readable file|which cannot be read|found a directory|found a device|found more than .* MiB",
        "file that cannot be read",
        "A file that the suite names is not there, is no file, or is too large.",
        "Correct the path: it is relative to the suite file.",
    ),
    "LE105": FaultCode(
        r"expected valid|malformed|found a tab|invalid escape|expected UTF-8|NUL character|an empty file|without data",
        "file that is no YAML, JSON or CSV",
        "The text does not follow the syntax of its format, or is no UTF-8.",
        "Look at the line and column of the message. Indent YAML by spaces, and quote texts with ': ' or '#'.",
    ),
    "LE106": FaultCode(
        r"expected METRIC OPERATOR NUMBER|without max_drop|neither min nor max|beside max_drop|beside min",
        "no gate",
        "A gate is a comparison such as 'f1 >= 0.7', or a mapping with the keys of one rule.",
        "Write 'METRIC >= NUMBER', {metric: ..., max_drop: ...} or {metric: ..., system: ..., against: ..., "
        "min_gain: ...}.",
    ),
    "LE107": FaultCode(
        r"the range of|expected a (?:whole )?number\b.*(?:from|between|of at|above|below)|expected at least",
        "number out of range",
        "A limit can never be reached, or never be missed; most metrics go from 0 to 1.",
        "Write shares as 0.7, not as 70.",
    ),
    "LE108": FaultCode(
        r"found no case",
        "no case",
        "The suite has no case that could run.",
        "Add 'cases' or a 'source'; with 'only: predicted', add predictions.",
    ),
    "LE109": FaultCode(
        r"apparent secret|user name or password in the address",
        "secret in a file",
        "A key or password is written in a file, from which it would get into commits and reports.",
        "Put it into an environment variable, and name that with 'api_key_env' or 'headers_from_env'.",
    ),
    "LE110": FaultCode(
        r"\bcase '.*', evaluator '",
        "expectation of another form",
        "An evaluator cannot read the expected answer or the labels of a case.",
        "Give 'expected' the form that the evaluator compares, or name the part with 'on'.",
    ),
    "LE111": FaultCode(
        r"outside the folder",
        "file outside the project",
        "A suite may not read files outside the folder of the project.",
        "Move the file next to the suite.",
    ),
    "LE112": FaultCode(
        r"regular expression|JMESPath|JSON Schema|does not compile",
        "expression that does not compile",
        "A regular expression, a JMESPath or a JSON Schema has an error.",
        "Correct it at the character of the message. In YAML, write patterns in single quotes.",
    ),
    "LE113": FaultCode(
        r"expected only one|expected both|expected exactly one|expected one of prompt|expected (?:it|them) under",
        "keys that exclude or need each other",
        "Two keys say the same in different ways, or one has no meaning without the other.",
        "Keep one of them, or add the one that the message names.",
    ),
    "LE100": FaultCode(
        r"",
        "value of another kind",
        "A value is not what its key takes: the message says what was found and what was expected.",
        "Write what the message expects; 'llmeval schema' prints the form of every key.",
    ),
}
"""The codes; they keep their meaning in later versions. The first whose pattern a message matches is its code."""


def code_of(message: str) -> str:
    """Return the code of a fault.

    >>> code_of("found the unknown key 'gatse', expected one of evaluators, gates"), code_of("found 3, expected a list")
    ('LE101', 'LE100')
    """
    text = _QUOTED.sub("''", message)  # what a user wrote decides nothing
    return next(code for code, each in CODES.items() if re.search(each.pattern, text))
