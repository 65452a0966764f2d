"""Shard files that somebody forged: refused by name, and nothing is written, imported or run."""

import gzip
import json
import random
import resource
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import entry, forged, origin, packed, ran, write_suite
from msgspec import structs

from pytest_llmeval.cli import main
from pytest_llmeval.core import LlmevalError
from pytest_llmeval.data import OwnFiles
from pytest_llmeval.run import ShardFile
from pytest_llmeval.run._merging import _other_files

EVIL = """
from pathlib import Path
Path({mark!r}).touch()
def pytest_llmeval_register(registry): pass
"""


@pytest.fixture
def shard(here: Path) -> Path:
    """The only shard of a suite; what was recorded is in it."""
    write_suite(here)
    path = here / "parts" / "1.llmeval"
    run = ran(here, "1/1")
    run.judgements.add(here / "__llmeval__" / "s.judgements.jsonl", entry())
    origin(here, "1/1").write_shard(path, run, here)
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return why the parts are not merged."""
    assert main(["merge", "parts", *arguments]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


def everything(folder: Path) -> set[Path]:
    return {each for each in folder.rglob("*") if "__pycache__" not in each.parts}


@pytest.mark.usefixtures("shard")
def test_the_shard_is_merged_as_it_was_written(here: Path) -> None:
    assert main(["merge", "parts"]) == 0
    assert (here / "__llmeval__" / "s.judgements.jsonl").is_file()


@pytest.mark.parametrize(
    ("imports", "name"), [(["parts"], "evil"), (["parts/.."], "parts.evil"), ([], "parts/conftest.py"), (["."], "evil")]
)
def test_no_code_that_came_with_shards_runs(
    shard: Path, here: Path, capsys: pytest.CaptureFixture[str], imports: list[str], name: str
) -> None:
    mark = here / "ran"
    file = here / "parts" / ("conftest.py" if name.endswith(".py") else "evil.py")
    file.write_text(EVIL.format(mark=str(mark)), encoding="utf-8")

    def change(line: Any) -> None:
        line["imports"] = imports
        line["suites"][0]["plugins"] = {name: ""}

    shard.write_bytes(forged(shard.read_bytes(), 0, change))
    assert f"s.eval.json cannot be judged here: {name}: " in refused(capsys)
    assert not mark.exists()
    assert not any(str(here / "parts") in each for each in sys.path)


@pytest.mark.parametrize("path", ["/", "::x", "a/::b"])
def test_the_path_of_a_suite_may_name_no_file(path: str) -> None:
    assert OwnFiles(Path(path)).source == Path(path)


def test_a_declared_suite_that_came_with_shards_is_not_imported(
    shard: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = here / "ran"
    (here / "parts" / "evil.py").write_text(EVIL.format(mark=str(mark)), encoding="utf-8")

    def change(line: Any) -> None:
        line["suites"][0]["path"] = "parts/evil.py::s"

    shard.write_bytes(forged(shard.read_bytes(), 0, change))
    assert "expected" in refused(capsys, "--rootdir=.")
    assert not mark.exists()


@pytest.mark.usefixtures("shard")
def test_shards_in_the_checkout_itself_bring_only_what_the_commit_has(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = here / "ran"
    for command in (
        ["init", "-q"],
        ["add", "s.eval.json"],
        ["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", *command], cwd=here, check=True)
    (here / "conftest.py").write_text(EVIL.format(mark=str(mark)), encoding="utf-8")
    made = origin(here, "1/1")
    suite = structs.replace(made.suites[0], plugins={"conftest.py": ""})
    structs.replace(made, suites=[suite]).write_shard(here / "1.llmeval", ran(here, "1/1"), here)
    assert main(["merge", "1.llmeval"]) == 1
    assert "conftest.py: lies where the shards do, expected a file of the commit" in capsys.readouterr().err
    assert not mark.exists()


@pytest.mark.parametrize("versioned", [False, True])
def test_suites_below_the_folder_of_their_shards_are_files_of_the_commit_or_move_the_shards(
    shard: Path, here: Path, versioned: bool
) -> None:
    (here / "s.eval.json").rename(here / "parts" / "s.eval.json")
    if versioned:
        for command in (["init", "-q"], ["add", "parts/s.eval.json"]):
            subprocess.run(["git", *command], cwd=here, check=True)
    made = ShardFile.read(shard, here)
    suite = structs.replace(made.origin.suites[0], path="parts/s.eval.json")
    moved = replace(made, origin=structs.replace(made.origin, suites=[suite]))
    said = "\n".join(_other_files([moved], here))
    assert ("lies where the shards do" in said) is not versioned
    assert ("put the shards into a folder of their own, such as shards" in said) is not versioned


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/elsewhere/__llmeval__/x.judgements.jsonl", "found the path '/elsewhere/"),
        ("../owned.judgements.jsonl", "found the path '../owned."),
        ("link/__llmeval__/s.judgements.jsonl", "found the path 'link/__llmeval__"),
        ("s.eval.json", "found 's.eval.json' as a file of judgements, expected one in __llmeval__"),
        (
            "__llmeval__/t.judgements.jsonl",
            "found judgements for __llmeval__/t.judgements.jsonl, expected those of a s",
        ),
        ("__llmeval__/s.history.jsonl", "found judgements for __llmeval__/s.history.jsonl, expected those of a suite"),
    ],
)
def test_judgements_are_recorded_nowhere_else(
    shard: Path, here: Path, capsys: pytest.CaptureFixture[str], path: str, found: str
) -> None:
    (here / "link").symlink_to("/tmp")
    before = everything(here)
    shard.write_bytes(forged(shard.read_bytes(), -1, lambda line: line.update(recorded_in=path)))
    assert found in refused(capsys)
    assert everything(here) == before


@pytest.mark.parametrize("path", ["/elsewhere", "../up", "a/../../up", "C:\\up", "..\\up"])
def test_predictions_are_recorded_nowhere_else(
    shard: Path, here: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    before = everything(here.parent)

    def change(line: Any) -> None:
        line["options"].update(predictions=path)

    shard.write_bytes(forged(shard.read_bytes(), 0, change))
    assert f"found the path {path!r}, expected one inside the checkout" in refused(capsys)
    assert everything(here.parent) == before


@pytest.mark.parametrize("name", ["../s.eval.json", "/etc/passwd", "link/s.eval.json"])
def test_suites_are_read_from_nowhere_else(
    shard: Path, here: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (here / "link").symlink_to("/tmp")
    shard.write_bytes(forged(shard.read_bytes(), 0, lambda line: line["suites"][0].update(path=name)))
    refused(capsys, "--rootdir=.")


def test_a_last_line_of_brackets_is_a_fault(shard: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard.write_bytes(gzip.compress(gzip.decompress(shard.read_bytes()) + b"[" * 200_000 + b"\n"))
    assert "found a file without its end" in refused(capsys)


def test_a_line_of_brackets_is_a_fault(shard: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = gzip.decompress(shard.read_bytes()).splitlines(keepends=True)[:-1]
    shard.write_bytes(packed([*lines, b"[" * 200_000 + b"\n"]))
    assert "expected a shard file" in refused(capsys)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "1" + "0" * 400])
@pytest.mark.parametrize("place", [b'"duration":', b'"started":', b'"exact_match":', b'"items":'])
def test_numbers_that_no_run_has_are_faults(
    shard: Path, capsys: pytest.CaptureFixture[str], text: str, place: bytes
) -> None:
    lines = gzip.decompress(shard.read_bytes()).splitlines(keepends=True)[:-1]
    at = next((number for number, line in enumerate(lines) if place in line), None)
    assert at is not None, b"".join(lines)
    before, _, after = lines[at].partition(place)
    rest = after.lstrip(b"0123456789.e+-")
    lines[at] = before + place + text.encode() + rest
    shard.write_bytes(packed(lines))
    assert "expected a shard file" in refused(capsys)


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.llmeval"
    path.write_bytes(gzip.compress(b"x" * (1 << 28)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LlmevalError, match="found more than results can be"):
        ShardFile.read(path, tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_values_that_take_more_memory_than_results_are_not_read(shard: Path) -> None:
    lines = gzip.decompress(shard.read_bytes()).splitlines(keepends=True)[:-1]
    judgement = b'{"recorded_in":"__llmeval__/s.judgements.jsonl","judgement":{"a":[' + b"[]," * 9_000_000 + b"[]]}}\n"
    noise = b"".join(b"%d" % random.Random(n).getrandbits(64) for n in range(20_000))
    shard.write_bytes(packed([*lines, judgement, b'{"noise":"' + noise + b'"}\n']))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LlmevalError, match="found more than results can be"):
        ShardFile.read(shard, shard.parent)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_mutated_shards_end_in_a_line_and_change_nothing(
    shard: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = gzip.decompress(shard.read_bytes()).splitlines(keepends=True)[:-1]
    before = everything(here)
    loaded = set(sys.modules)
    rng = random.Random(35)
    for _ in range(150):
        shard.write_bytes(_mutated(whole, rng))
        code = main(["merge", "parts"])
        said = capsys.readouterr()
        assert code in {0, 1}
        assert "Traceback" not in said.err
        if code:
            assert said.err.strip() or "failed" in said.out
        if said.out:  # it was merged
            shutil.rmtree(here / "__llmeval__", ignore_errors=True)
        assert everything(here) == before
    files = [str(getattr(sys.modules[name], "__file__", "")) for name in set(sys.modules) - loaded]
    assert not [each for each in files if each.startswith(str(here))]


VALUES: list[Any] = [
    1e17,
    None,
    True,
    -1,
    10**400,
    1e308,
    "",
    "../x",
    "/etc/x",
    [],
    {},
    ["x"],
    {"a": {"b": []}},
    "\ud800",
    "x" * 5_000,
]


def _mutated(lines: list[bytes], rng: random.Random) -> bytes:
    """Change one value somewhere, drop it, or change a line as a whole; the end agrees."""
    lines = list(lines)
    number = rng.randrange(len(lines))
    kind = rng.randrange(10)
    if kind == 0:
        del lines[number]
    elif kind == 1:
        lines.insert(rng.randrange(len(lines)), lines[number])
    elif kind == 2:
        place = rng.randrange(len(lines[number]) - 1)
        lines[number] = lines[number][:place] + bytes([rng.randrange(256)]) + lines[number][place + 1 :]
    else:
        content = json.loads(lines[number])
        _mutate(content, rng)
        lines[number] = json.dumps(content).encode() + b"\n"
    return packed(lines)


def _mutate(content: Any, rng: random.Random) -> None:
    keys = list(content) if isinstance(content, dict) else list(range(len(content)))
    if not keys:
        return
    key = rng.choice(keys)
    below = content[key]
    if isinstance(below, dict | list) and below and rng.random() < 0.8:
        _mutate(below, rng)
    elif rng.random() < 0.2:
        del content[key]
    else:
        content[key] = rng.choice(VALUES)
