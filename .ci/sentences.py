"""Count long sentences and avoided words in what people read: pages, changelog, docstrings, messages and help.

The exit code is 1 if a number is above that of sentences.json. ``--list`` prints each finding with its place, and
``--write`` stores the numbers.
"""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
COUNTS: Final = Path(__file__).with_suffix(".json")
LONGEST: Final = 30
WORDS: Final = re.compile(
    r"\b(?:mend(?:s|ed|ing)?|held against|whoever|whatever|otherwise|go(?:es)? on|told|of its own making|"
    r"the kind of thing|as they are|passed over|stands? for|costs? no other|established|within chance|not judged|"
    r"found (?:no|nothing|neither))\b"
    r"|,? too(?=[.;:)])",
    re.IGNORECASE,
)
_MESSAGE: Final = 6
"""Strings of fewer words are names and labels."""
_CODE: Final = re.compile(r"^(```+|~~~+).*?^\1\s*$|<!--.*?-->|^ *>>>.*?(?:\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_END: Final = re.compile(r"(?<=[.!?])[\"')*_`]*\s+|\n\s*\n|\n(?=\s*(?:[-*#]|\d+\.) )|\s*\|\s*|\n\s*\w+:\s|:\n")
_PROMPT: Final = re.compile(r"judges/questions/|/_?prompts?\.py|fact_check/_target\.py|CREATE TABLE")


class Passage(NamedTuple):
    """A text that people read, with its place."""

    kind: str
    place: str
    text: str


def passages() -> Iterator[Passage]:
    """Yield every text that is counted."""
    for path in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CHANGELOG.md"]:
        yield Passage("docs", path.name, _CODE.sub("\n\n", path.read_text(encoding="utf-8")))
    for path in sorted((ROOT / "pytest_llmeval").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        for line, text, is_docstring in _strings(ast.parse(path.read_text(encoding="utf-8"))):
            if is_docstring:
                yield Passage("docstrings", f"{place}:{line}", _CODE.sub("\n\n", text))
            elif len(text.split()) >= _MESSAGE and not _PROMPT.search(f"{place} {text}"):
                yield Passage("messages", f"{place}:{line}", text)


def _strings(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Yield line and text of every string, and whether it is a docstring; of a formatted one, ``x`` for each value."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text, True
            case ast.Constant(value=str(text)):
                yield node.lineno, text, False
            case ast.JoinedStr():
                parts = (str(each.value) if isinstance(each, ast.Constant) else "x" for each in node.values)
                yield node.lineno, "".join(parts), False
            case _:
                waiting += ast.iter_child_nodes(node)


def findings(text: str) -> Iterator[tuple[str, str]]:
    """Yield ``long`` with each long sentence, and ``words`` with each avoided word."""
    for sentence in _END.split(_LINK.sub(r"\1", text)):
        if len(words := sentence.split()) > LONGEST:
            yield "long", " ".join(words)
    for match in WORDS.finditer(text):
        yield "words", match.group().strip(" ,").lower()


def main(arguments: list[str]) -> int:
    """Print what was asked for, and the numbers that differ; return 1 if one of them rose."""
    found: Counter[str] = Counter()
    for kind, place, text in passages():
        for what, excerpt in findings(text):
            found[f"{kind}: {what}"] += 1
            if "--list" in arguments:
                sys.stdout.write(f"{place}: {kind}: {what}: {excerpt}\n")
    if "--write" in arguments:
        COUNTS.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", encoding="utf-8")
    most = json.loads(COUNTS.read_text(encoding="utf-8"))
    for name in sorted(found | most):
        if found[name] != most.get(name, 0):
            sys.stdout.write(f"{name}: {found[name]}, at most {most.get(name, 0)} before (.ci/sentences.py --list)\n")
    return int(any(count > most.get(name, 0) for name, count in found.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
