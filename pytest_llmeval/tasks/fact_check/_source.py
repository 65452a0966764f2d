"""Cases from data sets of claims, and answers of fact checkers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from msgspec import structs

from pytest_llmeval.core import Case, grouped, unknown_name
from pytest_llmeval.data import (
    CaseFile,
    CaseId,
    FaultLog,
    FileSource,
    RecordedAnswers,
    json_text,
    kind,
)
from pytest_llmeval.tasks._rows import UnreadKeys, wrong_values

_ID_KEYS = ("id", "claim_id")
_MEANT: Final = {"label": "verdict", "gold_label": "verdict", "evidence": "evidence_sources"}
"""Keys of other data sets, each with the part of a claim that it may be."""
_ANSWER_ID_KEYS = (*_ID_KEYS, "question_id")
_EXPECTED_KEYS = ("verdict", "justification", "evidence_sources")
_ANSWER_KEYS = ("prediction", "answer")
_READ_KEYS = (*_ANSWER_KEYS, "verdict")
_RESULT_KEYS = (
    {
        "verdict": "llm_verdict",
        "justification": "llm_reasoning",
        "confidence": "llm_confidence",
        "evidence_sources": "llm_evidence_sources",
    },
    {
        "verdict": "predicted_verdict",
        "justification": "justification",
        "confidence": "confidence",
        "evidence_sources": "evidence_sources",
    },
)
"""Key of an answer to its key in ``enhanced_test_results.json``, with the keys of the original script and with ours."""


@dataclass(frozen=True)
class FactCheckSource(FileSource):
    """Objects with ``claim``, ``verdict``, ``justification`` and ``evidence_sources``; a list of them, or JSONL.

    A case's id is the ``id`` or ``claim_id`` of the object, or else its number, counted from 1. Its input is the claim,
    and its label ``verdict`` the verdict.

    Answers belong to cases by id, as in all formats (or ``claim_id``), or by ``claim`` where they have no id. An object
    that has no answer under ``prediction`` or ``answer`` is itself the answer of a fact checker, one with an id only if
    it has a verdict. An answer that is null is missing: the call failed. The results of ``enhanced_test_results.json``
    are answers as well. An answer with the id of another claim belongs to its ``claim``: AVeriTeC counts from 0.

    Attributes:
        labels: More keys of the objects that become labels.
        fields: Keys of the objects for ``id``, ``claim``, ``verdict``, ``justification`` and ``evidence_sources`` with
            other names, such as ``{verdict: label}``; further keys are then ignored. Answers may have these names as
            well.
        ignore: Keys of the objects that are not read on purpose.
    """

    format: ClassVar[str] = "fact_check"

    labels: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()

    def read(self, file: CaseFile) -> None:
        """Add the claims."""
        parts = ("id", "claim", *_EXPECTED_KEYS)
        for name in self.fields:
            if name not in parts:
                file.faults.add(0, 0, "fields", unknown_name("part", name, parts))
        unread = UnreadKeys((*_ID_KEYS, "claim", *_EXPECTED_KEYS), (*self.labels, *self.ignore))
        met: set[str] = set()
        document = file.read_json(depth=1) if file.path.suffix.lower() == ".json" else None
        for number, raw in enumerate(file.rows(document, "a list of claims"), 1):
            row = raw
            if isinstance(raw.data, dict):
                met.update(raw.data)
                if self.fields:
                    row = structs.replace(raw, data=self._renamed(raw.data))
                else:
                    unread.add(raw.data, raw.line, raw.column, raw.path)
            faults = list(_faults(row.data))
            for key, message in faults:
                file.faults.add(row.line, row.column, row.path_to(key), message)
            if not faults:
                file.add(self._case(number, row.data, row.line), row.path_to("id"), row.column)
        unread.report(file.faults, _MEANT)
        for name, key in self.fields.items():
            if met and key not in met:
                file.faults.add(0, 0, "fields", f"no claim has the key {key!r}, which `fields.{name}` names")

    def _renamed(self, data: Mapping[str, Any]) -> dict[str, Any]:
        named = {name: data[key] for name, key in self.fields.items() if key in data}
        return {**{key: value for key, value in data.items() if key not in self.fields}, **named}

    def _case(self, number: int, item: Mapping[str, Any], line: int) -> Case:
        key = next((key for key in _ID_KEYS if item.get(key) is not None), None)
        verdict = {"verdict": item["verdict"]} if isinstance(item.get("verdict"), str) else {}
        others = {key: json_text(item[key]) for key in self.labels if item.get(key) is not None}
        return Case(
            id=str(number) if key is None else str(CaseId.read(item[key])),
            input=item["claim"],
            expected={key: item[key] for key in _EXPECTED_KEYS if key in item} or None,
            labels=others | verdict,
            line=line,
        )

    def answers(self, path: Path, cases: Mapping[str, Case], faults: FaultLog) -> RecordedAnswers:
        """Return the recorded answers; of claims that are there several times, the answers come in the same order."""
        waiting = grouped((_key(case.input), name) for name, case in reversed(list(cases.items())))

        def is_of_another(name: object, claim: object) -> bool:
            if not isinstance(claim, str) or _key(claim) not in waiting:
                return False
            return str(name) not in cases or _key(cases[str(name)].input) != _key(claim)

        def with_id(row: Any) -> Any:
            if not isinstance(row, dict):
                return row
            if known := next((keys for keys in _RESULT_KEYS if keys["verdict"] in row), None):
                reply = {key: row[name] for key, name in known.items() if row.get(name) is not None}
                row = {**row, "prediction": reply if "verdict" in reply else None}
            elif not any(key in row for key in _READ_KEYS):
                row = self._renamed(row)
            answer = next((row[key] for key in _ANSWER_KEYS if key in row), row)
            key = next((key for key in _ANSWER_ID_KEYS if row.get(key) is not None), None)
            claim = row.get("claim")
            if key is not None and not is_of_another(row[key], claim):
                lacks_answer = answer is row and "verdict" not in row
                return {**row, "id": row[key]} if lacks_answer else {"id": row[key], "prediction": answer}
            if not isinstance(claim, str):
                return row
            names = waiting.get(_key(claim), [claim])
            return {"id": names.pop() if len(names) > 1 else names[0], "prediction": answer}

        return RecordedAnswers.read(path, faults, with_id, rows_key="results", answer_keys=_READ_KEYS, keeps_null=False)


def _faults(item: Any) -> Iterator[tuple[str, str]]:
    """Yield key and message of each fault that keeps a data set's claim from becoming a case."""
    if not isinstance(item, dict):
        yield "", f"found {kind(item)}, expected an object with claim and verdict"
        return
    claim = item.get("claim")
    checks = [("claim", isinstance(claim, str) and bool(claim.strip()), "text")]
    checks += [
        (key, CaseId.read(item[key]) is not None, "text or a whole number")
        for key in _ID_KEYS
        if item.get(key) is not None
    ]
    for (key,), message in wrong_values(item, checks):
        yield key, message


def _key(claim: str) -> str:
    """A claim with its spaces normalized, by which recorded answers find their case."""
    return " ".join(claim.split())
