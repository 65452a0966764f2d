"""Reading of ``checks``: entries of a suite file or a case become checks that are ready to run, or faults."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Protocol

from pytest_llmeval.core import MissingExtraError, Parts, Reading, excerpt, is_json, unknown_name
from pytest_llmeval.data import DeclaredType, describe, render_path
from pytest_llmeval.evaluators._patterns import PatternError
from pytest_llmeval.evaluators.checks._check import (
    COMPOSED,
    MODIFIERS,
    Check,
    CheckKind,
    CheckLeaf,
    CheckNode,
    Composed,
    InTurns,
)

_NOT = "not_"
_LONGEST = 80

Path = tuple[str | int, ...]


class Host(Protocol):
    """The suite file or call that check entries come from: validates values and collects faults."""

    def check(self, kind: Any, data: Any, path: Sequence[str | int]) -> Any:
        """A value of a check's entry as a type; ``None`` where it has faults, which are kept."""

    def fault(self, path: Sequence[str | int], message: str, *, key: bool = False) -> None:
        """Keep a fault."""

    def unknown(self, path: Sequence[str | int], kind: str, name: str, known: Sequence[str]) -> None:
        """Keep the fault of a key that is an unknown name, which a conftest.py may register."""

    def fault_inside(self, path: Sequence[str | int], value: str, offset: int, message: str) -> None:
        """Keep a fault of one character of a text."""

    def read_file(self, name: str, place: tuple[str | int, ...]) -> Any:
        """The data of a JSON file that a check names; ``None`` where it has faults, which are kept."""


@dataclass
class Unlocated:
    """The host of check entries that are given in Python: faults have paths and no lines.

    Attributes:
        faults: Those found.
    """

    faults: list[str] = field(default_factory=list)

    def check(self, kind: Any, data: Any, path: Sequence[str | int]) -> Any:
        """A value of a check's entry as a type; ``None`` where it has faults."""
        declared = DeclaredType(kind)
        try:
            return declared.read(data)
        except (TypeError, ValueError) as error:
            self.fault(path, _misfit(declared, data, error))
            return None

    def fault(self, path: Sequence[str | int], message: str, *, key: bool = False) -> None:
        """Keep a fault."""
        del key
        self.faults.append(f"{render_path(path)}: {message}")

    def unknown(self, path: Sequence[str | int], kind: str, name: str, known: Sequence[str]) -> None:
        """Keep the fault of an unknown name."""
        self.fault(path, unknown_name(kind, name, known))

    def fault_inside(self, path: Sequence[str | int], value: str, offset: int, message: str) -> None:
        """Keep a fault."""
        del value, offset
        self.fault(path, message)

    def read_file(self, name: str, place: tuple[str | int, ...]) -> Any:
        """Refuse: in Python there is no suite file that the name could be relative to."""
        self.fault(place, f"found {name!r}, expected the schema itself")


def _misfit(declared: DeclaredType, data: Any, error: TypeError | ValueError) -> str:
    """The fault of a value of a check's entry that a declared type refuses."""
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        return declared.option_faults(error)[0]
    return f"found {describe(data)}, expected JSON data ({error})"


class _Refused(Exception):  # noqa: N818 (no error: it ends the reading of one entry, whose fault is kept)
    """An entry of a check in a suite file or call has a fault."""


@dataclass
class CheckReader:
    """Reads the check entries of suites and cases. Those that stand in several cases are read once.

    Attributes:
        kinds: Name to kind.
        host: Where the entries stand.
    """

    kinds: Mapping[str, CheckKind]
    host: Host
    _known: dict[str, Check] = field(default_factory=dict)
    _known_lists: dict[str, tuple[Check, ...]] = field(default_factory=dict)
    _files: list[tuple[Path, str]] = field(default_factory=list)

    @classmethod
    def read_alone(
        cls, entries: Any, path: Path = (), kinds: Mapping[str, CheckKind] | None = None
    ) -> tuple[tuple[Check, ...], Sequence[str]]:
        """Checks that are given in Python, in no suite file, and the faults of their entries.

        Args:
            entries: As a suite file writes them.
            path: Where they stand.
            kinds: Name to kind; default: those that ship.
        """
        from pytest_llmeval.evaluators.checks._kinds import SHIPPED

        host = Unlocated()
        read = cls(SHIPPED if kinds is None else kinds, host).read(entries, path)
        return read, host.faults

    def read(self, entries: Any, path: Path) -> tuple[Check, ...]:
        """The checks of a list of entries; those with faults are left out.

        Args:
            entries: ``checks`` of a suite or a case.
            path: Where they stand.
        """
        if not isinstance(entries, list | tuple):
            self.host.fault(path, f"found {describe(entries)}, expected a list of checks")
            return ()
        key = _key(entries)
        if key in self._known_lists:
            return self._known_lists[key]
        read = [self._check(entry, (*path, number)) for number, entry in enumerate(entries)]
        checks = tuple(check for check in read if check is not None)
        if key is not None and len(checks) == len(entries):
            self._known_lists[key] = checks
        return checks

    def _check(self, entry: Any, path: Path) -> Check | None:
        """The check of an entry, read once for equal ones; ``None`` if it has faults."""
        if isinstance(entry, Check):
            return entry
        key = _key(entry)
        if key not in self._known:
            try:
                check = self._read(entry, path)
            except _Refused:
                return None
            if key is None:
                return check
            self._known[key] = check
        return self._known[key]

    def _read(self, entry: Any, path: Path) -> Check:
        """The check of an entry, with its weight and title."""
        weight = entry.get("weight", 1.0) if isinstance(entry, Mapping) else 1.0
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise self._refuse_entry((*path, "weight"), f"found {describe(weight)}, expected a number above 0")
        self._files.clear()
        node, key, judged = self._node(entry, path, None)
        title = entry.get("name", "") if isinstance(entry, Mapping) else ""
        for place, file in self._files:
            entry = _replace_value(entry, place[len(path) :], file)
        kind = self.kinds.get(key.removeprefix(_NOT))
        return Check(key, node, float(weight), judged, title, entry, kind is not None and kind.each)

    def _node(self, entry: Any, path: Path, on: str | None) -> tuple[CheckNode, str, bool]:
        """A check, its key, and whether a judge decides part of it."""
        node, key, judged = self._of_answer(entry, path, on)
        if isinstance(entry, Mapping) and "turn" in entry:
            turn = entry["turn"]
            if not Reading.is_turn(turn):
                raise self._refuse_entry((*path, "turn"), f"found {describe(turn)}, expected {Reading.TURNS}")
            node = InTurns(node, turn, _write_check(key, entry[key]))
        return node, key, judged

    def _of_answer(self, entry: Any, path: Path, on: str | None) -> tuple[CheckNode, str, bool]:
        """A check without the key `turn`, its key, and whether a judge decides part of it."""
        if isinstance(entry, str):
            key, argument, place = entry, None, path
        else:
            key, argument = self._parts(entry, path)
            place = (*path, key)
            on = self._on(entry, path) or on
        negated, name = key.startswith(_NOT), key.removeprefix(_NOT)
        if name in COMPOSED:
            node, judged = self._read_composed(key, argument, place, on)
            return node, key, judged
        kind = self.kinds.get(name)
        if kind is None:
            raise self._unknown(key, path if isinstance(entry, str) else place)
        if kind.each and isinstance(argument, list | tuple):
            leaves = [self._leaf(kind, key, item, (*place, n), on, negated) for n, item in enumerate(argument)]
            if not leaves:
                raise self._refuse_entry(place, "found an empty list, expected at least one")
            return Composed(leaves, len(leaves), negated=False, written=""), key, False
        leaf = self._leaf(kind, key, argument, place, on, negated)
        return leaf, key, not callable(leaf.test)

    def _parts(self, entry: Any, path: Path) -> tuple[str, Any]:
        """The key of an entry that is a kind of check, and its argument; modifiers are checked."""
        if not isinstance(entry, Mapping):
            raise self._refuse_entry(path, f"found {describe(entry)}, expected a check such as {{contains: TEXT}}")
        keys = [key for key in entry if key not in MODIFIERS]
        known = [key for key in keys if key.removeprefix(_NOT) in self.kinds or key.removeprefix(_NOT) in COMPOSED]
        if unknown := [key for key in keys if key not in known]:
            raise self._unknown(unknown[0], (*path, unknown[0]))
        if len(known) != 1:
            message = f"found {' and '.join(map(repr, known[:2]))}" if known else f"found {describe(entry)}"
            raise self._refuse_entry(path, f"{message}, expected one check for each item of the list")
        name = entry.get("name", "x")
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or set("[]") & set(name):
            raise self._refuse_entry((*path, "name"), f"found {describe(name)}, expected a name without brackets")
        return known[0], entry[known[0]]

    def _on(self, entry: Mapping[str, Any], path: Path) -> str | None:
        """The part of a prediction that an entry's ``on`` names."""
        on = entry.get("on")
        place = (*path, "on")
        if "on" not in entry or on in (Parts.WHOLE, *Parts.NAMES):
            return on
        if not isinstance(on, str):
            raise self._refuse_entry(
                place, f"found {describe(on)}, expected a part ({', '.join(Parts.NAMES)}) or a JMESPath"
            )
        if fault := Parts.path_fault(on):
            self.host.fault_inside(place, on, *fault)
            raise _Refused
        return on

    def _read_composed(self, key: str, argument: Any, place: Path, on: str | None) -> tuple[CheckNode, bool]:
        """The check of an entry such as ``all_of``, and whether a judge decides part of it."""
        name = key.removeprefix(_NOT)
        entries: Any = argument
        least: Any = 1
        if name == "at_least":
            if not isinstance(argument, Mapping) or set(argument) != {"n", "of"}:
                raise self._refuse_entry(place, f"found {describe(argument)}, expected {{n: 2, of: [CHECK, ...]}}")
            entries, least = argument["of"], argument["n"]
            place = (*place, "of")
        if not isinstance(entries, list | tuple) or not entries:
            raise self._refuse_entry(place, f"found {describe(entries)}, expected a list of checks")
        if isinstance(least, bool) or not isinstance(least, int) or not 1 <= least <= len(entries):
            raise self._refuse_entry(
                (*place[:-1], "n"), f"found {describe(least)}, expected a number from 1 to {len(entries)}"
            )
        if weighted := [n for n, entry in enumerate(entries) if isinstance(entry, Mapping) and "weight" in entry]:
            expected = "expected it beside the outermost check"
            raise self._refuse_entry(
                (*place, weighted[0], "weight"), f"found a weight inside {key!r}, {expected}", key=True
            )
        nodes = [self._node(entry, (*place, number), on) for number, entry in enumerate(entries)]
        least = len(nodes) if name == "all_of" else least
        written = _write_check(key, argument)
        composed = Composed(tuple(node for node, _, _ in nodes), least, key.startswith(_NOT), written)
        return composed, any(judged for _, _, judged in nodes)

    def _leaf(self, kind: CheckKind, key: str, argument: Any, place: Path, on: str | None, negated: bool) -> CheckLeaf:
        """The check of one kind with its argument."""
        if argument is None and not kind.bare:
            raise self._refuse_entry(place, f"found {key!r} without what to check, expected {key}: {kind.meaning}")
        written = _write_check(key, argument)
        if kind.bare and isinstance(argument, bool) and (kind.argument is None or kind.schema):
            if not argument:
                other = key.removeprefix(_NOT) if key.startswith(_NOT) else f"{_NOT}{key}"
                raise self._refuse_entry(place, f"found false, expected nothing or true; the opposite is {other!r}")
            argument = None
        if kind.argument is None and argument is not None:
            raise self._refuse_entry(place, f"found {describe(argument)}, expected nothing or true")
        if argument is not None:
            argument = self._argument(kind, argument, place)
        try:
            return CheckLeaf(kind.prepare, argument, negated, on or kind.on, written)
        except PatternError as error:
            self.host.fault_inside(place, str(argument), error.offset, str(error))
        except (MissingExtraError, ValueError) as error:
            self.host.fault(place, str(error))
        raise _Refused

    def _argument(self, kind: CheckKind, argument: Any, place: Path) -> Any:
        """The argument of a kind of check, of its type."""
        if kind.schema:
            read = self.host.read_file(argument, place) if isinstance(argument, str) else argument
            if not isinstance(read, Mapping | bool):
                if not isinstance(argument, str):
                    self.host.fault(
                        place, f"found {describe(argument)}, expected a JSON Schema, or a file that holds one"
                    )
                elif read is not None:
                    self.host.fault(place, f"found {describe(read)} in {argument!r}, expected a JSON Schema")
                raise _Refused
            if isinstance(argument, str):
                self._files.append((place, f"{argument} {_digest(read)}"))
            return read
        if kind.argument is Any:
            return argument
        checked = self.host.check(kind.argument, argument, place)
        if checked is None:
            raise _Refused
        return checked

    def _unknown(self, key: str, place: Path) -> _Refused:
        """The error for an entry of no known kind of check, whose fault is added."""
        negation = _NOT if str(key).startswith(_NOT) else ""
        known = [f"{negation}{kind}" for kind in (*self.kinds, *COMPOSED)]
        self.host.unknown(place, "check", str(key), known)
        return _Refused()

    def _refuse_entry(self, path: Path, message: str, *, key: bool = False) -> _Refused:
        """The error for an entry of a check, whose fault is added."""
        self.host.fault(path, message, key=key)
        return _Refused()


def _key(entry: Any) -> str | None:
    """The key by which equal check entries are read once; ``None`` for what is not JSON data."""
    return json.dumps(entry) if is_json(entry) else None


def _digest(schema: Any) -> str:
    """The digest of a check's JSON Schema: runs with different schemas are not comparable."""
    return f"sha256:{sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()[:32]}"


def _replace_value(entry: Any, path: Path, value: str) -> Any:
    """A check entry with another value at a path, such as a file's name with a digest of its content."""
    if not path:
        return value
    inside = _replace_value(entry[path[0]], path[1:], value)
    if isinstance(entry, Mapping):
        return {**entry, path[0]: inside}
    return [inside if number == path[0] else item for number, item in enumerate(entry)]


def _write_check(key: str, argument: Any) -> str:
    """A check as messages show it: as in the suite file, on one line."""
    if argument is None or argument is True:
        return key
    text = argument if isinstance(argument, str) else json.dumps(argument, ensure_ascii=False)
    if isinstance(argument, str):
        text = f"'{text}'"
    return f"{key}: {excerpt(text, _LONGEST)}"
