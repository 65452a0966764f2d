"""The file of a shard: written, read, and refused where it is not whole."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import entry, forged, origin, ran, write_suite

from pytest_llmeval.core import CaseRecord, LlmevalError
from pytest_llmeval.run import RunRecord, ShardFile, SuitePart
from pytest_llmeval.run._run_record import Item, ItemResult
from pytest_llmeval.suites import SuiteKey


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The file of a shard of a suite in the same folder."""
    write_suite(tmp_path)
    path = tmp_path / "part.llmeval"
    origin(tmp_path, "1/2").write_shard(path, ran(tmp_path, "1/2"), tmp_path)
    return path


def test_a_shard_is_read_as_it_was_written_wherever_the_checkout_is(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    write_suite(here)

    def run(root: Path) -> RunRecord:
        key = SuiteKey(str(root / "s.eval.json"), "s.eval.json", "test_it", "big")
        made = RunRecord(
            started=5.5,
            seconds=2.5,
            ended="bye",
            crashed="boom",
            uncollected=True,
            faults={"x.eval.yaml": ["wrong"]},
            selected={key.path},
            dropped={key},
            unfinished={"u"},
            deselected={"d", "v"},
            unwanted={"v"},
            failures={"f"},
            items={Item("f", "f::x"): ItemResult(SuitePart(key, 3, [CaseRecord("\ud800")]), "x", 1.5)},
        )
        made.judgements.add(root / "__llmeval__" / "s.judgements.jsonl", entry())
        return made

    made = origin(here)
    made.write_shard(here / "new" / "part.llmeval", run(here), here)
    found = ShardFile.read(here / "new" / "part.llmeval", there)
    assert found.origin == made
    for name in RunRecord.__struct_fields__:
        read, expected = getattr(found.run, name), getattr(run(there), name)
        assert (list(read) == list(expected)) if name == "judgements" else (read == expected), name


def test_the_same_results_are_the_same_bytes(written: Path) -> None:
    folder = written.parent
    again = folder / "again.llmeval"
    origin(folder, "1/2").write_shard(again, ran(folder, "1/2"), folder)
    assert again.read_bytes() == written.read_bytes()
    assert str(folder) not in gzip.decompress(again.read_bytes()).decode()


def _lines(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[bytes], bytes]:
    return lambda data: gzip.compress(b"".join(change(gzip.decompress(data).splitlines(keepends=True))))


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda data: data[: len(data) // 2], "found a file that is cut or damaged"),
        (lambda data: data[:-1], "found a file that is cut or damaged"),
        (lambda data: data[:5], "found a file that is cut or damaged"),
        (lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:], "found a file that is cut or damaged"),
        (lambda data: data[:-6] + bytes([data[-6] ^ 1]) + data[-5:], "found a file that is cut or damaged"),
        (lambda _: b"", "found a file without its end"),
        (lambda _: b"not a shard", "found something else, expected a shard file"),
        (_lines(lambda lines: lines[:-1]), "found a file without its end"),
        (_lines(lambda lines: [*lines[:2], *lines[3:]]), "lines that are not those that were written"),
        (_lines(lambda lines: [lines[0].replace(b"1/2", b"2/2"), *lines[1:]]), "that are not those that were written"),
    ],
)
def test_a_file_that_is_not_whole_is_refused_by_name(
    written: Path, damage: Callable[[bytes], bytes], found: str
) -> None:
    written.write_bytes(damage(written.read_bytes()))
    with pytest.raises(LlmevalError) as error:
        ShardFile.read(written, written.parent)
    assert str(error.value).startswith(f"{written}: ")
    assert found in str(error.value)


@pytest.mark.parametrize(
    ("number", "change", "found"),
    [
        (0, lambda line: line.update(shard="9/5"), "found 9/5, expected I/N"),
        (0, lambda line: line.update(shard="auto"), "auto: found none of"),
        (0, lambda line: line.update(shard="../x"), "found '../x', expected I/N"),
        (0, lambda line: line.pop("commit"), "commit"),
        (1, lambda line: line.update(selected=[1]), "selected"),
        (2, lambda line: line["result"][2][0].pop("id"), "line 3: found a result that cannot be read: Object missing"),
        (2, lambda line: line["result"][2][0].update(id=[]), "line 3: found a result that cannot be read"),
        (2, lambda line: line["result"][2][0].update(obs={"text": "x"}), "line 3: found a result that cannot be read"),
        (2, lambda line: line["result"][2][0].update(obs=7), "line 3: found a result that cannot be read"),
    ],
)
def test_a_forged_file_is_refused_by_name(
    written: Path, number: int, change: Callable[[Any], object], found: str
) -> None:
    written.write_bytes(forged(written.read_bytes(), number, change))
    with pytest.raises(LlmevalError, match="expected a shard file that this version") as error:
        ShardFile.read(written, written.parent)
    assert str(error.value).startswith(f"{written}: ")
    assert found in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LlmevalError, match=r"gone\.llmeval: cannot be read: No such file"):
        ShardFile.read(tmp_path / "gone.llmeval", tmp_path)


def test_a_file_of_another_version_is_refused(written: Path) -> None:
    made = origin(written.parent, version=2)
    made.write_shard(written, RunRecord(started=1.0), written.parent)
    with pytest.raises(LlmevalError, match="expected a shard file that this version of pytest-llmeval-suite wrote"):
        ShardFile.read(written, written.parent)
