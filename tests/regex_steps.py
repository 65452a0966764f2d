"""Steps of a backtracking search, counted by a small matcher of our own, and texts that make such a search slow.

The matcher does what Python's `re` does, in the same order, and counts each comparison: time on a loaded machine says
nothing. It knows the constructs that this package uses.
"""

__all__ = ("Matcher", "TooManyStepsError", "attacks", "steps")

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from re import _constants as sre  # type: ignore[attr-defined]  # no public name for the tree of a pattern
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

Then = Callable[[int], bool]
"""What has to match behind a position."""

MOST: Final = 30_000
"""Steps after which a search is given up: it is exponential, or nearly."""

_CATEGORIES: Final[dict[object, Callable[[str], bool]]] = {
    sre.CATEGORY_DIGIT: str.isdecimal,
    sre.CATEGORY_NOT_DIGIT: lambda character: not character.isdecimal(),
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_NOT_SPACE: lambda character: not character.isspace(),
    sre.CATEGORY_WORD: lambda character: character.isalnum() or character == "_",
    sre.CATEGORY_NOT_WORD: lambda character: not (character.isalnum() or character == "_"),
}
_SAMPLES: Final = "a0 \n-_.,:;/\\\"'`*#<>[](){}|=+@$%&!?~^\tAZé…日是"
"""Characters of which a set of a pattern has one."""


class TooManyStepsError(Exception):
    """The search was given up."""


class Matcher:
    """One search of a pattern in a text.

    Args:
        pattern: The pattern.
        text: What it searches.
    """

    def __init__(self, pattern: re.Pattern[str], text: str, most: float = MOST) -> None:
        self.text = text
        self.steps = 0
        self.most = most
        self.flags = pattern.flags
        self.tree = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        self.groups: dict[int, tuple[int, int]] = {}
        self.known: dict[tuple[int, str], bool] = {}

    def count(self) -> None:
        self.steps += 1
        if self.steps > self.most:
            raise TooManyStepsError

    def end_at(self, start: int) -> int | None:
        """Return the end of a match that begins at a position."""
        return self.once(list(self.tree), start)

    def sequence(self, nodes: Sequence[Any], place: int, then: Then) -> bool:
        if not nodes:
            return then(place)
        head, *tail = nodes
        return self.node(head, place, (lambda end: self.sequence(tail, end, then)) if tail else then)

    def node(self, node: Any, place: int, then: Then) -> bool:  # noqa: PLR0911 (one for each construct)
        self.count()
        kind, value = node
        if kind in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            return place < len(self.text) and self.fits(node, self.text[place]) and then(place + 1)
        if kind is sre.SUBPATTERN:
            group, _, _, inside = value

            def closed(end: int) -> bool:
                before = self.groups.get(group)
                self.groups[group] = place, end
                if then(end):
                    return True
                if before is None:
                    self.groups.pop(group, None)
                else:
                    self.groups[group] = before
                return False

            return self.sequence(list(inside), place, closed if group is not None else then)
        if kind is sre.BRANCH:
            return any(self.sequence(list(each), place, then) for each in value[1])
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self.repeat(kind is sre.MAX_REPEAT, value, place, then)
        if kind is sre.POSSESSIVE_REPEAT:
            return self.possessive(value, place, then)
        if kind is sre.ATOMIC_GROUP:
            end = self.once(list(value), place)
            return end is not None and then(end)
        if kind in (sre.ASSERT, sre.ASSERT_NOT):
            direction, inside = value
            start = place if direction > 0 else place - inside.getwidth()[0]
            held = start >= 0 and self.once(list(inside), start) is not None
            return held is (kind is sre.ASSERT) and then(place)
        if kind is sre.GROUPREF:
            begin, end = self.groups.get(value, (0, -1))
            part = self.text[begin:end] if end >= 0 else None
            return part is not None and self.text.startswith(part, place) and then(place + len(part))
        if kind is sre.AT:
            return self.edge(value, place) and then(place)
        raise NotImplementedError(kind)

    def once(self, nodes: Sequence[Any], place: int) -> int | None:
        ends: list[int] = []

        def keep(end: int) -> bool:
            ends.append(end)
            return True

        return ends[0] if self.sequence(nodes, place, keep) else None

    def repeat(self, greedy: bool, value: Any, place: int, then: Then) -> bool:
        least, most, inside = value
        nodes = list(inside)
        if len(nodes) == 1 and nodes[0][0] in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
            return self.run(greedy, nodes[0], (least, most), place, then)

        def more(times: int, here: int) -> bool:
            def next_time(end: int) -> bool:
                return (end != here or times < least) and more(times + 1, end)

            if times < least:
                return self.sequence(nodes, here, next_time)
            if greedy:
                return (times < most and self.sequence(nodes, here, next_time)) or then(here)
            return then(here) or (times < most and self.sequence(nodes, here, next_time))

        return more(0, place)

    def run(self, greedy: bool, node: Any, times: tuple[int, int], place: int, then: Then) -> bool:
        """Repeat a single character, without recursion."""
        least, most = times
        end = place
        limit = len(self.text) if most == sre.MAXREPEAT else min(len(self.text), place + most)
        if greedy:
            while end < limit and self.fits(node, self.text[end]):
                self.count()
                end += 1
            while end >= place + least:
                self.count()
                if then(end):
                    return True
                end -= 1
            return False
        while True:
            if end >= place + least and then(end):
                return True
            self.count()
            if end >= limit or not self.fits(node, self.text[end]):
                return False
            end += 1

    def possessive(self, value: Any, place: int, then: Then) -> bool:
        least, most, inside = value
        nodes, times = list(inside), 0
        while times < most:
            end = self.once(nodes, place)
            if end is None or end == place:
                break
            place, times = end, times + 1
        return times >= least and then(place)

    def fits(self, node: Any, character: str) -> bool:
        key = id(node), character
        if key not in self.known:
            self.known[key] = self.compare(node, character)
        return self.known[key]

    def compare(self, node: Any, character: str) -> bool:
        kind, value = node
        if kind is sre.ANY:
            return bool(self.flags & re.DOTALL) or character != "\n"
        forms = {character, character.lower(), character.upper()} if self.flags & re.IGNORECASE else {character}
        if kind is sre.LITERAL:
            return chr(value) in forms
        if kind is sre.NOT_LITERAL:
            return chr(value) not in forms
        negated = value[0][0] is sre.NEGATE
        return any(self.member(each, forms) for each in value[negated:]) is not negated

    def member(self, item: Any, forms: set[str]) -> bool:
        kind, value = item
        if kind is sre.LITERAL:
            return chr(value) in forms
        if kind is sre.RANGE:
            return any(value[0] <= ord(each) <= value[1] for each in forms if len(each) == 1)
        return any(_CATEGORIES[value](each) for each in forms)

    def edge(self, kind: Any, place: int) -> bool:
        text, before = self.text, self.text[place - 1 : place]
        after = text[place : place + 1]
        many = bool(self.flags & re.MULTILINE)
        if kind in (sre.AT_BOUNDARY, sre.AT_NON_BOUNDARY):
            words = [bool(each) and _CATEGORIES[sre.CATEGORY_WORD](each) for each in (before, after)]
            return (words[0] is not words[1]) is (kind is sre.AT_BOUNDARY)
        if kind is sre.AT_BEGINNING:
            return place == 0 or (many and before == "\n")
        if kind is sre.AT_BEGINNING_STRING:
            return place == 0
        if kind is sre.AT_END:
            return place == len(text) or (place == len(text) - 1 and after == "\n") or (many and after == "\n")
        assert kind is sre.AT_END_STRING
        return place == len(text)


def steps(pattern: re.Pattern[str], text: str, *, anywhere: bool, most: float = MOST) -> int:
    """Return how many steps it takes to find all matches in a text, or to match at its beginning.

    Args:
        pattern: The pattern.
        text: What it searches.
        anywhere: Whether it is searched for, and does not only match at the beginning.

    Raises:
        TooManyStepsError: More than `MOST`.
    """
    matcher, place = Matcher(pattern, text, most), 0
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        while place <= len(text):
            end = matcher.end_at(place)
            if not anywhere:
                break
            place = place + 1 if end is None else max(end, place + 1)
    finally:
        sys.setrecursionlimit(limit)
    return matcher.steps


def attacks(pattern: re.Pattern[str]) -> Iterator[Callable[[int], str]]:
    """Yield what makes texts that hurt: what a pattern repeats, often, with and without what precedes it.

    A pattern that repeats nothing without a bound has none: its steps at a position are bounded.
    """
    if not re.search(r"[+*]|\{\d+,\}", pattern.pattern):
        return
    units, prefixes = set[str](), {""}
    looks_back = re.search(r"\\b|\(\?<[=!]", pattern.pattern) is not None
    for prefix, unit in _repeats(_parser.parse(pattern.pattern, pattern.flags), ""):
        prefixes.add(prefix)
        units |= {unit, prefix + unit, prefix or unit}
        units |= {f"-{prefix}"} if looks_back else set()
    units |= {"\n", "a", "0", "*"}  # of many sets, also where another character is the sample
    usual = {unit for unit in _UNITS if any(character in pattern.pattern for character in unit)}
    for unit in sorted((units | usual) - {""}):
        for prefix in sorted(prefixes) if unit in units else [""]:
            yield partial(_repeated, prefix, unit)


def _repeated(prefix: str, unit: str, times: int) -> str:
    return f"{prefix}{unit * times}\x00"


_UNITS: Final = {" ", '"', "\\", "{", "[", "`", "-", "=", "://", "```\n", '"a":', "a,", "[[", "  \n"}
"""What is repeated in any pattern's texts; the pattern itself has more."""


def _repeats(tree: Any, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield each repeated part of a pattern as a text that it matches, with a text for what precedes it."""
    for kind, value in tree:
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            if value[1] > 1:
                yield from ((prefix, unit) for unit in _samples(value[2]))
            yield from _repeats(value[2], prefix)
        elif kind is sre.SUBPATTERN:
            yield from _repeats(value[3], prefix)
        elif kind is sre.ATOMIC_GROUP:
            yield from _repeats(value, prefix)
        elif kind is sre.BRANCH:
            for each in value[1]:
                yield from _repeats(each, prefix)
        elif kind is sre.ASSERT and value[0] > 0:
            yield from _repeats(value[1], prefix)
        prefix += _sample([(kind, value)])


def _samples(tree: Any) -> Iterator[str]:
    """Yield a text that a part of a pattern matches, for each of its alternatives."""
    kind, value = tree[0]
    if len(tree) == 1 and kind is sre.BRANCH:
        yield from map(_sample, value[1])
    elif len(tree) == 1 and kind is sre.SUBPATTERN:
        yield from _samples(value[3])
    else:
        yield _sample(tree)


def _sample(tree: Any) -> str:
    """Return a text that a part of a pattern matches, or nothing where it may be empty."""
    parts, matcher = [], Matcher(re.compile(""), "")
    for kind, value in tree:
        if kind is sre.LITERAL:
            parts.append(chr(value))
        elif kind in (sre.IN, sre.NOT_LITERAL, sre.ANY):
            known = next((character for character in _SAMPLES if matcher.compare((kind, value), character)), "")
            parts.append(known or _first(value))
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            parts.append(_sample(value[2]) * max(1, value[0]))
        elif kind is sre.SUBPATTERN:
            parts.append(_sample(value[3]))
        elif kind is sre.ATOMIC_GROUP:
            parts.append(_sample(value))
        elif kind is sre.BRANCH:
            parts.append(_sample(value[1][0]))
        elif kind is sre.ASSERT and value[0] < 0:
            parts.append(_sample(value[1]))
    return "".join(parts)


def _first(items: Any) -> str:
    """Return the first character of a set that has none of `_SAMPLES`."""
    for kind, value in items:
        if kind is sre.LITERAL:
            return chr(value)
        if kind is sre.RANGE:
            return chr(value[0])
    return ""
