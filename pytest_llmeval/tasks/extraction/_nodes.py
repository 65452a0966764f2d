"""Comparators of structures."""

import json
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from pytest_llmeval.core import EvaluatorError, excerpt
from pytest_llmeval.evaluators import AnswerValue
from pytest_llmeval.tasks.extraction._values import EXACT, SCALARS, ValueComparator, exact_key

_LONGEST = 120
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def field_path(path: str, name: str) -> str:
    """The dotted path of a field inside an extracted object.

    >>> field_path("vendor", "name"), field_path("", "total")
    ('vendor.name', 'total')
    """
    return f"{path}.{name}" if path else name


def element_path(path: str, index: int | None = None) -> str:
    """The path of an element of an extracted list; without an index, the path that all its elements share.

    >>> element_path("items"), element_path("items", 2)
    ('items[]', 'items[2]')
    """
    return f"{path}[]" if index is None else f"{path}[{index}]"


class FieldValue(NamedTuple):
    """A field of the expected or the extracted structure, with its value.

    Attributes:
        path: With ``[]`` for the elements of lists.
        place: With the index of each element.
        value: Its value.
    """

    path: str
    place: str
    value: Any


@dataclass(slots=True)
class FieldsOutcome:
    """The right, wrong, missing and extra fields in a comparison of two structures.

    Attributes:
        right: Paths of fields that agree.
        wrong: Fields that differ, with the value that was found.
        missing: Fields that are expected and were not found.
        extra: Fields that were found and are not expected.
        clashes: Those of them that were found where an object or a list is expected.
        whole: Path of each list and named object that is expected, and whether all of it is right.
    """

    right: list[str] = field(default_factory=list)
    wrong: list[tuple[FieldValue, Any]] = field(default_factory=list)
    missing: list[FieldValue] = field(default_factory=list)
    extra: list[FieldValue] = field(default_factory=list)
    clashes: list[FieldValue] = field(default_factory=list)
    whole: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def faults(self) -> int:
        """The number of fields that are not right."""
        return len(self.wrong) + len(self.missing) + len(self.extra)

    def lines(self) -> list[str]:
        """Say what is not right, each field with what was found and what was expected."""
        lines = [
            f"{field_value.place}: found {_cut(value)}, expected {_cut(field_value.value)}"
            for field_value, value in self.wrong
        ]
        lines += [f"{field_value.place}: missing, expected {_cut(field_value.value)}" for field_value in self.missing]
        return lines + [f"{field_value.place}: extra, found {_cut(field_value.value)}" for field_value in self.extra]


def _cut(value: Any) -> str:
    """An extracted value as JSON text, cut for a line of the report."""
    return excerpt(_ENCODER.encode(value), _LONGEST, count=True)


_FEW = 4
"""Up to this length of the shorter side a search over subsets is faster than SciPy, and needs no import of it."""


def assign(weights: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Pair elements of an expected and an extracted list one-to-one so that the sum of the weights is largest.

    Args:
        weights: A weight of at least 0 for each row and column.

    Returns:
        The pairs with a weight above 0, by row. Ties are broken by the numbers of rows and columns alone.

    Example:
        >>> assign([[3, 2], [2, 0]])
        [(0, 1), (1, 0)]
    """
    if not weights or not weights[0]:
        return []
    if len(weights[0]) <= _FEW:
        return _by_subsets(weights)
    if len(weights) <= _FEW:
        turned = _by_subsets(list(zip(*weights, strict=True)))
        return sorted((row, column) for column, row in turned)
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(np.array(weights, dtype=float), maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(row, column) for row, column in pairs if weights[row][column]]


def _by_subsets(weights: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Pair short lists' elements best by weight, row by row for each subset of taken columns."""
    best: dict[int, tuple[int, tuple[tuple[int, int], ...]]] = {0: (0, ())}
    for row, line in enumerate(weights):
        before = dict(best)
        for column, weight in enumerate(line):
            if not weight:
                continue
            bit = 1 << column
            for subset, (total, pairs) in before.items():
                reached = best.get(subset | bit)
                if not subset & bit and (reached is None or total + weight > reached[0]):
                    best[subset | bit] = (total + weight, (*pairs, (row, column)))
    return list(max(best.values(), key=lambda each: each[0])[1])


_MOST_PAIRS = 250_000
"""Comparisons of elements for one list: a long list of a model must not stop the run."""

_KEY_ENCODER = json.JSONEncoder(sort_keys=True, default=str)


class FieldNode(ABC):
    """A comparator of two values of an extracted structure; null and an absent value are the same."""

    @property
    @abstractmethod
    def transitive(self) -> bool:
        """Whether values that agree with the same value agree with each other."""

    @abstractmethod
    def key(self, value: Any) -> Hashable | None:
        """Return a normal form that values share if all their fields agree; ``None`` if the value has no field.

        Only asked of transitive nodes.
        """

    @abstractmethod
    def collect(self, path: str, place: str, value: Any, into: list[FieldValue]) -> None:
        """Add the fields of a value that the other side does not have."""

    @abstractmethod
    def compare(self, path: str, place: str, expected: Any, actual: Any, out: FieldsOutcome) -> None:
        """Compare two values, neither of which is null."""

    def clash(self, path: str, place: str, expected: Any, actual: Any, out: FieldsOutcome) -> None:
        """Add two values of different types."""
        self.collect(path, place, expected, out.missing)
        before = len(out.extra)
        self.collect(path, place, actual, out.extra)
        out.clashes += out.extra[before:]

    @abstractmethod
    def faults(self, place: str, value: Any) -> Iterator[str]:
        """Yield why a value cannot be what is expected."""


def compare(node: FieldNode | None, path: str, place: str, expected: Any, actual: Any, out: FieldsOutcome) -> None:
    """Compare an expected and an extracted value, either of which may be null; without a node they are ignored."""
    if node is None or expected is actual is None:
        return
    if expected is None:
        node.collect(path, place, actual, out.extra)
    elif actual is None:
        before = len(out.missing)
        node.collect(path, place, expected, out.missing)
        if isinstance(node, Elements) or (isinstance(node, Record) and node.named):
            out.whole.append((path, len(out.missing) == before))
    else:
        node.compare(path, place, expected, actual, out)


class Plain(FieldNode):
    """A comparator of extracted fields for which two equal scalars agree."""


@dataclass(frozen=True, slots=True)
class Whole(Plain):
    """A comparator of an extracted value that counts as one field.

    Attributes:
        leaf: Compares it.
    """

    leaf: ValueComparator = EXACT

    @property
    def transitive(self) -> bool:
        """As the leaf is."""
        return self.leaf.transitive

    def key(self, value: Any) -> Hashable | None:
        """Return the normal form of the value."""
        return None if value is None else self.leaf.key(value)

    def collect(self, path: str, place: str, value: Any, into: list[FieldValue]) -> None:
        """Add the value."""
        into.append(FieldValue(path, place, value))

    def compare(self, path: str, place: str, expected: Any, actual: Any, out: FieldsOutcome) -> None:
        """Compare the values."""
        if self.leaf.agrees(expected, actual):
            out.right.append(path)
        else:
            out.wrong.append((FieldValue(path, place, expected), actual))

    def faults(self, place: str, value: Any) -> Iterator[str]:
        """Yield why the value cannot be what is expected."""
        if value is not None and (fault := self.leaf.fault(value)):
            yield f"{place}: {fault}"


@dataclass(frozen=True)
class Record(FieldNode):
    """A comparator of extracted objects, field by field.

    Attributes:
        fields: Name to node; ``None`` ignores the field.
        others: Node of the other fields; ``None`` ignores them.
        named: Whether it has a score of its own.
    """

    fields: Mapping[str, FieldNode | None]
    others: FieldNode | None
    named: bool = True

    def _items(self, value: Any) -> Iterator[tuple[str, FieldNode, Any]]:
        """Yield the fields of an object that count."""
        for name, item in value.items():
            node = self.fields.get(name, self.others)
            if node is not None and item is not None:
                yield name, node, item

    @cached_property
    def transitive(self) -> bool:
        """Whether all its fields are."""
        return all(node is None or node.transitive for node in (*self.fields.values(), self.others))

    def key(self, value: Any) -> Hashable | None:
        """Return the normal forms of its fields."""
        if not isinstance(value, dict):
            return None if value is None else ("other", exact_key(value))
        keys = []
        exact = self.others if isinstance(self.others, AnyValue) and self.others.leaf.leaf is EXACT else self
        for name, item in value.items():
            node = self.fields.get(name, self.others)
            if node is None or item is None:
                continue
            key = item if node is exact and type(item) in SCALARS else node.key(item)
            if key is not None:
                keys.append((name, key))
        return frozenset(keys) or None

    def collect(self, path: str, place: str, value: Any, into: list[FieldValue]) -> None:
        """Add the fields of the object."""
        if not isinstance(value, dict):
            into.append(FieldValue(path, place, value))
            return
        for name, node, item in self._items(value):
            node.collect(field_path(path, name), field_path(place, name), item, into)

    def compare(self, path: str, place: str, expected: Any, actual: Any, out: FieldsOutcome) -> None:
        """Compare the fields that either object has."""
        before = out.faults
        if isinstance(expected, dict) and isinstance(actual, dict):
            prefix, place_prefix = (f"{path}." if path else ""), (f"{place}." if place else "")
            for name, item in expected.items():
                node, other = self.fields.get(name, self.others), actual.get(name)
                if type(item) is type(other) and type(item) in SCALARS and item == other and isinstance(node, Plain):
                    out.right.append(prefix + name)
                else:
                    compare(node, prefix + name, place_prefix + name, item, other, out)
            if actual.keys() - expected.keys():
                for name, node, item in self._items(actual):
                    if name not in expected:
                        node.collect(prefix + name, place_prefix + name, item, out.extra)
        else:
            self.clash(path, place, expected, actual, out)
        if self.named:
            out.whole.append((path, out.faults == before))

    def faults(self, place: str, value: Any) -> Iterator[str]:
        """Yield what is wrong with the object and its fields."""
        if not isinstance(value, dict):
            yield f"{place}: found {AnswerValue(value).kind}, expected an object"
            return
        for name, node, item in self._items(value):
            yield from node.faults(field_path(place, name), item)


@dataclass(frozen=True)
class AnyValue(Plain):
    """A comparator of extracted values of any form: objects by field, other values as one field.

    Attributes:
        leaf: Compares values that are no objects.
    """

    leaf: Whole = field(default_factory=Whole)

    @cached_property
    def _record(self) -> Record:
        return Record({}, self, named=False)

    def _node(self, value: Any) -> FieldNode:
        return self._record if isinstance(value, dict) else self.leaf

    @property
    def transitive(self) -> bool:
        """As the leaf is."""
        return self.leaf.transitive

    def key(self, value: Any) -> Hashable | None:
        """Return the normal form of the object or value."""
        return (self._record if isinstance(value, dict) else self.leaf).key(value)

    def collect(self, path: str, place: str, value: Any, into: list[FieldValue]) -> None:
        """Add the fields of the object, or the value."""
        self._node(value).collect(path, place, value, into)

    def compare(self, path: str, place: str, expected: Any, actual: Any, out: FieldsOutcome) -> None:
        """Compare two objects, or two values."""
        self._node(expected).compare(path, place, expected, actual, out)

    def faults(self, place: str, value: Any) -> Iterator[str]:
        """Yield what is wrong with the object's fields, or the value."""
        return self._node(value).faults(place, value)


@dataclass(frozen=True)
class Elements(FieldNode):
    """A comparator of extracted lists, whose elements are aligned in any order.

    Without a key, the alignment is one of those in which the most fields agree. Elements that agree in no field are
    not aligned.

    Attributes:
        element: Compares the elements.
        by: Field of the elements by which they are aligned.
    """

    element: FieldNode
    by: str | None = None

    @property
    def transitive(self) -> bool:
        """As the elements are."""
        return self.element.transitive

    def key(self, value: Any) -> Hashable | None:
        """The number of occurrences of each normal form of an element."""
        if not isinstance(value, list | tuple):
            return None if value is None else ("other", exact_key(value))
        counts = Counter(key for key in map(self.element.key, value) if key is not None)
        return frozenset(counts.items()) or None

    def collect(self, path: str, place: str, value: Any, into: list[FieldValue]) -> None:
        """Add the fields of the elements."""
        if not isinstance(value, list | tuple):
            into.append(FieldValue(path, place, value))
            return
        for index, element in enumerate(value):
            if element is not None:
                self.element.collect(element_path(path), element_path(place, index), element, into)

    def compare(self, path: str, place: str, expected: Any, actual: Any, out: FieldsOutcome) -> None:
        """Compare the aligned elements; the others are missing or extra."""
        before = out.faults
        if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
            rows, columns = dict(enumerate(expected)), dict(enumerate(actual))
            for row, column in sorted(self._aligned(place, expected, actual)):
                left, right = rows.pop(row), columns.pop(column)
                compare(self.element, element_path(path), element_path(place, row), left, right, out)
            for index, element in rows.items():
                compare(self.element, element_path(path), element_path(place, index), element, None, out)
            for index, element in columns.items():
                compare(self.element, element_path(path), element_path(place, index), None, element, out)
        else:
            self.clash(path, place, expected, actual, out)
        out.whole.append((path, out.faults == before))

    def faults(self, place: str, value: Any) -> Iterator[str]:
        """Yield what is wrong with the list and its elements."""
        if not isinstance(value, list | tuple):
            yield f"{place}: found {AnswerValue(value).kind}, expected a list"
            return
        for index, element in enumerate(value):
            yield from self.element.faults(element_path(place, index), element)

    def _aligned(self, place: str, expected: Sequence[Any], actual: Sequence[Any]) -> list[tuple[int, int]]:
        """Return pairs of indices; elements with the same key first of all go together."""
        groups: defaultdict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for side, elements in enumerate((expected, actual)):
            for index, element in enumerate(elements):
                groups[self._group(element)][side].append(index)
        pairs: list[tuple[int, int]] = []
        for group, (rows, columns) in groups.items():
            if group is not None and len(rows) == len(columns) == 1:
                pairs.append((rows[0], columns[0]))
            else:
                pairs += self._optimal(place, _Side.present(expected, rows), _Side.present(actual, columns))
        return pairs

    def _group(self, element: Any) -> Hashable | None:
        """Return the value of the key; ``None`` where there is none."""
        value = element.get(self.by) if self.by is not None and isinstance(element, dict) else None
        if value is None or self.by is None:
            return None
        node = self.element.fields.get(self.by) if isinstance(self.element, Record) else None
        return node.key(value) if node is not None and node.transitive else exact_key(value)

    def _optimal(self, place: str, expected: "_Side", actual: "_Side") -> list[tuple[int, int]]:
        """Return the pairs in which the most fields agree."""
        pairs: list[tuple[int, int]] = []
        if self.transitive:
            # Where agreement is transitive, some best alignment pairs all equal elements.
            pairs = expected.paired(actual, self.element)
        elif len(expected.left) == len(actual.left):
            in_order = list(zip(expected.left, actual.left, strict=True))
            if all(self._agreeing(expected.values[row], actual.values[column])[1] for row, column in in_order):
                return in_order
        if self.transitive and isinstance(self.element, Whole):
            return pairs
        # Sorted by content, so that ties between alignments do not depend on the order of the lists.
        rows, columns = expected.sorted(), actual.sorted()
        if len(rows) * len(columns) > _MOST_PAIRS:
            sizes = f"{len(rows)} expected and {len(columns)} other elements"
            raise EvaluatorError(f"{place}: found {sizes} to align, expected at most {_MOST_PAIRS} pairs: set a key")
        weights = [
            [self._agreeing(expected.values[row], actual.values[column])[0] for column in columns] for row in rows
        ]
        return pairs + [(rows[row], columns[column]) for row, column in assign(weights)]

    def _agreeing(self, expected: Any, actual: Any) -> tuple[int, bool]:
        """The number of fields in which two elements agree, and whether all do."""
        out = FieldsOutcome()
        compare(self.element, "", "", expected, actual, out)
        return len(out.right), not out.faults


@dataclass(slots=True)
class _Side:
    """The elements of the expected or the extracted list that are not paired yet.

    Attributes:
        values: The list.
        left: Their indices.
    """

    values: Sequence[Any]
    left: list[int]

    @classmethod
    def present(cls, values: Sequence[Any], indices: list[int]) -> "_Side":
        return cls(values, [index for index in indices if values[index] is not None])

    def sorted(self) -> list[int]:
        """Return the indices, sorted by what stands there."""
        return sorted(self.left, key=lambda index: _KEY_ENCODER.encode(self.values[index]))

    def paired(self, other: "_Side", node: FieldNode) -> list[tuple[int, int]]:
        """Take out and return elements that are equal by their normal forms."""
        free: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for index in other.left:
            free[node.key(other.values[index])].append(index)
        pairs = [(index, free[key].popleft()) for index in self.left if free.get(key := node.key(self.values[index]))]
        rows, columns = ({pair[side] for pair in pairs} for side in (0, 1))
        self.left = [index for index in self.left if index not in rows]
        other.left = [index for index in other.left if index not in columns]
        return pairs
