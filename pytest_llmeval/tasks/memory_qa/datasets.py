"""The benchmarks as samples for programs with their own loop."""

__all__ = ("load_dataset",)

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.data.formats.base import FileSource, shown_path
from pytest_llmeval.tasks.memory_qa.locomo import LocomoSource
from pytest_llmeval.tasks.memory_qa.longmemeval import LongMemEvalSource
from pytest_llmeval.tasks.memory_qa.qa import QAPair, QuestionType, Sample

_SOURCES: dict[str, type[FileSource]] = {"locomo": LocomoSource, "longmemeval": LongMemEvalSource}

_FILES = {"locomo": "locomo10.json", "longmemeval": "such as longmemeval_s.json"}


def load_dataset(name: str, path: str | Path | None = None, **options: Any) -> list[Sample]:
    """Return the samples of a benchmark's official file, as `run_eval` takes them.

    A sample of LoCoMo is a conversation with all of its questions; one of LongMemEval is a question with the sessions
    that came before it, and its date. Question ids are those of the cases that the source of the same name gives.

    Args:
        name: ``locomo`` or ``longmemeval``.
        path: The file, which is required: nothing is downloaded.
        options: Of the source, such as ``question_types=("temporal",)``.

    Raises:
        ValueError: The benchmark is unknown, or there is no path.
        TypeError: The source has no such option.
        SuiteError: With every fault of the file.
    """
    if name not in _SOURCES:
        raise ValueError(unknown_name("benchmark", name, _SOURCES))
    if path is None:
        raise ValueError(f"found no path, expected load_dataset({name!r}, PATH) with the official file, {_FILES[name]}")
    source = _SOURCES[name](path=str(Path(path).absolute()), **options)
    faults: list[Fault] = []
    cases = source.load(Path(), faults)
    known = {each.value for each in QuestionType}
    for case in cases:
        if (found := case.labels["question_type"]) not in known:
            message = f"found {found!r}, expected one of: {', '.join(sorted(known))}"
            faults.append(Fault(shown_path(Path(source.path)), case.line, 1, "question_type", message))
    if faults:
        raise SuiteError(faults)
    return list(_samples(cases))


def _samples(cases: list[Case]) -> Iterator[Sample]:
    by_sample: dict[str, list[Case]] = {}
    for case in cases:
        by_sample.setdefault(case.input.get("conversation_id", case.id), []).append(case)
    for name, group in by_sample.items():
        given = group[0].input
        # What is left of a question of LongMemEval are its sessions and dates.
        history = given.get("conversation") or {key: value for key, value in given.items() if key != "question"}
        yield Sample(name, history, [_pair(case) for case in group])


def _pair(case: Case) -> QAPair:
    kind = QuestionType(case.labels["question_type"])
    return QAPair(case.id, case.input["question"], case.expected, kind)
