"""Suites of which a shard reads only its own rows."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.data import RowShare
from pytest_llmeval.run import Shard
from pytest_llmeval.suites import LoadedSuite, Registry, load_suite

FORMATS = {"arrow": "rows.parquet", "csv": "rows.csv", "json": "rows.json", "jsonl": "rows.jsonl"}
COUNT = 4
PLAIN = [{"id": f"c{number}", "input": number, "expected": "x", "prediction": "x"} for number in range(40)]
WITHOUT_IDS = [{name: value for name, value in row.items() if name != "id"} for row in PLAIN]


def write_rows(folder: Path, kind: str, rows: Sequence[dict[str, Any]]) -> str:
    path = folder / FORMATS[kind]
    if kind == "arrow":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=7)
    elif kind == "csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)))
            writer.writeheader()
            writer.writerows(rows)
    else:
        lines = [json.dumps(row) for row in rows]
        path.write_text(f"[{','.join(lines)}]" if kind == "json" else "\n".join(lines), encoding="utf-8")
    return path.name


def write_suite(folder: Path, kind: str, rows: Sequence[dict[str, Any]], **top: Any) -> Path:
    source = {"format": kind, "path": write_rows(folder, kind, rows), **top.pop("source", {})}
    path = folder / "s.eval.json"
    path.write_text(json.dumps({"evaluators": ["text"], "source": source, **top}), encoding="utf-8")
    return path


def load(path: Path, index: int = 0, count: int = COUNT) -> LoadedSuite:
    """Load the part of a shard, or without an index the whole."""
    share = Shard(index, count).share_of(path.name) if index else None
    return load_suite(path, Registry.installed(), root=path.parent, display_path=path.name, share=share)


def parts(path: Path) -> list[LoadedSuite]:
    return [load(path, index) for index in range(1, COUNT + 1)]


@pytest.mark.parametrize("rows", [PLAIN, WITHOUT_IDS], ids=["ids", "numbers"])
@pytest.mark.parametrize("kind", FORMATS)
def test_shards_have_the_cases_of_the_whole_and_know_how_many_there_are(
    tmp_path: Path, kind: str, rows: list[dict[str, Any]]
) -> None:
    path = write_suite(tmp_path, kind, rows)
    whole, shards = load(path), parts(path)
    for number, each in enumerate(shards, 1):
        own = [case for case in whole.cases if Shard(number, COUNT).has(path.name, f"case {case.id}")]
        assert (list(each.cases), each.total) == (own, len(rows))
        assert 0 < len(own) < len(rows)
    assert len({each.rows.digest for each in shards if each.rows is not None}) == 1
    assert whole.rows is None


def test_another_id_changes_the_digest_of_every_shard(tmp_path: Path) -> None:
    before = parts(write_suite(tmp_path, "jsonl", PLAIN))
    after = parts(write_suite(tmp_path, "jsonl", [*PLAIN[:-1], {**PLAIN[-1], "id": "other"}]))
    for old, new in zip(before, after, strict=True):
        assert old.rows is not None
        assert new.rows is not None
        assert (old.rows.digest != new.rows.digest, old.rows.count) == (True, new.rows.count)


def test_every_shard_knows_that_a_case_has_to_be_answered(tmp_path: Path) -> None:
    open_row = {"id": "open", "input": 1, "expected": "x"}
    assert [each.lacks_predictions for each in parts(write_suite(tmp_path, "jsonl", PLAIN))] == [False] * COUNT
    rows = [*PLAIN, open_row]
    assert [each.lacks_predictions for each in parts(write_suite(tmp_path, "jsonl", rows, target="a:b"))] == (
        [True] * COUNT
    )


def test_a_line_that_is_no_json_is_a_fault_of_every_shard(tmp_path: Path) -> None:
    path = write_suite(tmp_path, "jsonl", PLAIN)
    with (tmp_path / FORMATS["jsonl"]).open("a", encoding="utf-8") as stream:
        stream.write("\n{bad}\n")
    whole = load(path)
    assert len(whole.faults) == 1
    for each in parts(path):
        assert (each.faults, each.cases, each.total) == (whole.faults, whole.cases, whole.total)


@pytest.mark.parametrize(
    "row", [PLAIN[3], {**PLAIN[0], "id": "new", "tags": 1}, {**PLAIN[0], "id": "a::b"}], ids=["twice", "value", "name"]
)
def test_a_faulty_row_is_found_by_the_shard_that_owns_it(tmp_path: Path, row: dict[str, Any]) -> None:
    path = write_suite(tmp_path, "jsonl", [*PLAIN, row])
    owner = [Shard(number, COUNT).has(path.name, f"case {row['id']}") for number in range(1, COUNT + 1)]
    whole, shards = load(path), parts(path)
    assert [each.faults for each in shards] == [whole.faults if owns else () for owns in owner]
    assert [len(each.cases) == len(whole.cases) for each in shards] == owner
    assert len({each.rows.digest for each in shards if each.rows is not None}) == 1


def test_a_label_that_only_few_rows_have_is_no_fault(tmp_path: Path) -> None:
    rows = [*PLAIN[:-1], {**PLAIN[-1], "labels": {"kind": "rare"}}]
    for each in parts(write_suite(tmp_path, "jsonl", rows, group_by=["kind"])):
        assert each.faults == ()
    path = write_suite(tmp_path, "jsonl", rows, group_by=["sort"])
    whole = load(path)
    assert len(whole.faults) == 1
    assert [each.faults for each in parts(path)] == [whole.faults] * COUNT


@pytest.mark.parametrize(
    "top",
    [
        {"cases": [{"id": "own", "expected": "x", "prediction": "x"}]},
        {"cluster_by": "kind"},
        {"sample": {"cases": 10}},
        {"only": "predicted"},
        {"systems": {"a": {"predictions": "answers.jsonl"}}},
        {"target": {"http": {"url": "http://localhost/", "request": {"q": {"$each": {"$input": "q"}}}, "batch": 4}}},
    ],
    ids=lambda top: next(iter(top)),
)
def test_suites_whose_cases_need_each_other_are_read_by_every_shard(tmp_path: Path, top: dict[str, Any]) -> None:
    (tmp_path / "answers.jsonl").write_text('{"id": "c1", "prediction": "y"}', encoding="utf-8")
    rows = [{**row, "labels": {"kind": row["id"][-1]}} for row in PLAIN]
    whole = load(write_suite(tmp_path, "jsonl", rows, **top))
    part = load(tmp_path / "s.eval.json", 1)
    assert (part.rows, part.cases) == (None, whole.cases)


@pytest.mark.parametrize(("answered", "lacks"), [(len(PLAIN), False), (len(PLAIN) - 1, True)])
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_answers_in_a_file_of_their_own_are_those_of_the_whole(
    tmp_path: Path, suffix: str, answered: int, lacks: bool
) -> None:
    rows = [{**row, "id": float(number)} for number, row in enumerate(PLAIN)]
    for row in rows:
        del row["prediction"]
    answers = {str(number): f"a{number}" for number in range(answered)}
    lines = "\n".join(json.dumps({"id": name, "prediction": answer}) for name, answer in answers.items())
    (tmp_path / f"a.{suffix}").write_text(lines if suffix == "jsonl" else json.dumps(answers), encoding="utf-8")
    path = write_suite(tmp_path, "jsonl", rows, source={"predictions": f"a.{suffix}"}, target="a:b")
    whole, shards = load(path), parts(path)
    cases = {case.id: case for each in shards for case in each.cases}
    assert [cases[case.id] for case in whole.cases] == list(whole.cases)
    assert sum(len(each.cases) for each in shards) == len(rows)
    assert [each.lacks_predictions for each in shards] == [lacks] * COUNT


def test_an_answer_to_no_row_is_a_fault_of_every_shard(tmp_path: Path) -> None:
    lines = [json.dumps({"id": name, "prediction": "x"}) for name in ("c1", "c2", "nobody")]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    path = write_suite(tmp_path, "jsonl", PLAIN, source={"predictions": "a.jsonl"})
    whole = load(path)
    assert len(whole.faults) == 1
    assert [each.faults for each in parts(path)] == [whole.faults] * COUNT


def test_rows_with_checks_are_read_by_every_shard(tmp_path: Path) -> None:
    rows = [*PLAIN, {**PLAIN[0], "id": "checked", "checks": [{"contains": "x"}]}]
    path = write_suite(tmp_path, "jsonl", rows)
    whole = load(path)
    for each in parts(path):
        assert (each.cases, each.metrics.declared.keys()) == (whole.cases, whole.metrics.declared.keys())


def test_a_shard_without_rows_reads_the_file_and_has_no_fault(tmp_path: Path) -> None:
    path = write_suite(tmp_path, "jsonl", PLAIN[:1])
    for each in parts(path):
        assert (each.faults, len(each.cases)) == ((), 1)


def test_a_share_keeps_no_row_of_other_shards(tmp_path: Path) -> None:
    path = write_suite(tmp_path, "jsonl", PLAIN)
    asked: list[str] = []

    def numbered(name: str) -> int:
        asked.append(name)
        return len(asked)

    share = RowShare(numbered, lambda number: number == 2)
    suite = load_suite(path, Registry.installed(), root=tmp_path, share=share)
    assert ([case.id for case in suite.cases], asked) == (["c1"], [row["id"] for row in PLAIN])
