"""Shards: which cases run in which part of a run that is spread over machines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.run.score import cut
from pytest_llmeval.suite.suite import Suite

if TYPE_CHECKING:
    from pytest_llmeval.targets.spec import TargetSpec

_FORM = re.compile(r"(?P<index>[0-9]{1,9}|auto)(?:/(?P<count>[0-9]{1,9}))?", re.ASCII)
_EXPECTED = "I/N with 1 <= I <= N such as 2/5, auto, or auto/N"

_SLURM = "SLURM_ARRAY_TASK_"
_NODE = "CI_NODE_"
_COMPLETION = "JOB_COMPLETION_INDEX"


@dataclass(frozen=True)
class Shard:
    """One of several parts of a run.

    Attributes:
        index: Counted from 1.
        count: How many parts there are.
    """

    index: int
    count: int

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def has(self, file: str, name: str) -> bool:
        """Return whether a group of cases, or a file of other tests, belongs to this shard.

        Args:
            file: As reports name it, so that it is the same on every machine.
            name: Of the group; empty for the file as a whole.
        """
        digest = sha256(f"{file}\n{name}".encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.index - 1


def shard_of(text: str, environment: Mapping[str, str]) -> Shard:
    """Read ``2/5``, or ``auto`` and ``auto/5``, which leave it to the variables of a scheduler.

    Args:
        text: Of the option.
        environment: Variables of the process.

    Raises:
        ValueError: It is something else, or the variables do not say which shard this is.
    """
    found = _FORM.fullmatch(text)
    if found is None or (found["index"] != "auto" and found["count"] is None):
        raise ValueError(f"found {text!r}, expected {_EXPECTED}")
    count = None if found["count"] is None else int(found["count"])
    if found["index"] == "auto":
        return _scheduled(text, count, environment)
    return _within(text, int(found["index"]), int(found["count"]))


def _within(found: str, index: int, count: int) -> Shard:
    if not 1 <= index <= count:
        raise ValueError(f"found {found}, expected {_EXPECTED}")
    return Shard(index, count)


def _scheduled(text: str, count: int | None, environment: Mapping[str, str]) -> Shard:
    """Return the shard that a scheduler's variables name."""
    readers = {f"{_SLURM}ID": _slurm, f"{_NODE}INDEX": _node, _COMPLETION: _completion}
    there = [name for name in readers if environment.get(name)]
    if len(there) != 1:
        found = " and ".join(there) or f"none of {', '.join(readers)}"
        raise ValueError(f"{text}: found {found} in the environment, expected one of them; otherwise give I/N")
    index, total = readers[there[0]](environment)
    if total is None and count is None:
        raise ValueError(f"{text}: found {there[0]} without the number of shards, expected auto/N")
    if total is not None and count is not None and total != count:
        raise ValueError(f"{text}: found {total} shards in the environment, expected {count}")
    found = f"{text}: shard {index} of {count or total} by {there[0]}={environment[there[0]]}"
    return _within(found, index, count or total or 0)


def _slurm(environment: Mapping[str, str]) -> tuple[int, int | None]:
    """Read the variables of a job array; its tasks may be counted from any number, and in steps."""
    task, count, first, step = (_whole(environment, f"{_SLURM}{name}") for name in ("ID", "COUNT", "MIN", "STEP"))
    first = 1 if first is None else first
    position, rest = divmod((task or 0) - first, step or 1)
    if rest:
        raise ValueError(
            f"auto: found {_SLURM}ID={task}, {_SLURM}MIN={first} and {_SLURM}STEP={step}, expected an array in even "
            "steps, such as --array=1-5; otherwise give I/N"
        )
    return position + 1, count


def _node(environment: Mapping[str, str]) -> tuple[int, int | None]:
    """Read GitLab's variables, which count from 1."""
    return _whole(environment, f"{_NODE}INDEX") or 0, _whole(environment, f"{_NODE}TOTAL")


def _completion(environment: Mapping[str, str]) -> tuple[int, int | None]:
    """Read the variable of an indexed job of Kubernetes, which counts from 0 and does not say up to where."""
    return (_whole(environment, _COMPLETION) or 0) + 1, None


def _whole(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError(f"auto: found {name}={text!r}, expected a whole number")
    return int(text) if text else None


def groups_of(suite: Suite) -> Mapping[str, str]:
    """Return the id of each case with the name of its group: cases that one shard must have together.

    These are the cases of a cluster, and those that a service answers in one request. A group is named after the
    cluster, or else the id, of its first case; a case that is added at the end leaves all other groups as they are.
    """
    parts = [(each.cases, each.target) for each in suite.systems.values()] or [(suite.cases, suite.target)]
    cases = {case.id: case for cases, _ in parts for case in cases}
    first = {name: name for name in cases}

    def root(name: str) -> str:
        while first[name] != name:
            name = first[name]
        return name

    places = {name: place for place, name in enumerate(cases)}
    for together in _together(suite, list(cases.values()), parts):
        roots = sorted({root(case.id) for case in together}, key=places.__getitem__)
        first |= dict.fromkeys(roots, roots[0])
    return {name: _name(cases[root(name)], suite) for name in cases}


def _together(
    suite: Suite, cases: Sequence[Case], parts: "Sequence[tuple[Sequence[Case], TargetSpec | None]]"
) -> Iterator[Sequence[Case]]:
    """Yield clusters and batches."""
    clusters: dict[str, list[Case]] = {}
    for case in cases if suite.cluster_by else ():
        if (label := case.labels.get(suite.cluster_by or "")) is not None:
            clusters.setdefault(label, []).append(case)
    yield from clusters.values()
    for answered, target in parts:
        size = target.http.batch if target is not None and target.http is not None else 1
        if size > 1:
            asked = [case for case in answered if case.prediction is MISSING and not case.conversation]
            yield from {id(block): block for block in cut(asked, size).values()}.values()


def _name(case: Case, suite: Suite) -> str:
    cluster = case.labels.get(suite.cluster_by) if suite.cluster_by else None
    return f"case {case.id}" if cluster is None else f"cluster {cluster}"
