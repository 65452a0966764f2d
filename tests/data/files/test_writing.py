"""How files are written: old or new at any moment, one process at a time, never through a link."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_llmeval.data import OutputFile, OutputFolder
from pytest_llmeval.data.files import _writing as writing
from pytest_llmeval.data.files._writing import WritingProcess


def dead_process() -> str:
    """Return the name of a process that has ended."""
    code = "from pytest_llmeval.data.files._writing import WritingProcess; print(WritingProcess.current().name)"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_a_file_is_replaced_in_one_step_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")
    path.chmod(0o640)
    with path.open(encoding="utf-8") as reader:
        OutputFile(path).write_text(["n\ud83d", "ew\n"])
        assert reader.read() == "old"
    assert path.read_bytes() == b"n\\ud83dew\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == ["report.json"]


def test_a_file_whose_writing_fails_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old", encoding="utf-8")

    def parts() -> Iterator[str]:
        yield "half"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        OutputFile(path).write_text(parts())
    assert path.read_text(encoding="utf-8") == "old"
    assert names(tmp_path) == ["report.json"]


def test_what_was_written_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    seen = []
    monkeypatch.setattr(os, "fsync", lambda _: seen.append(path.exists()))
    OutputFile(path).write_text(["text"])
    assert seen == [False, True]


def test_a_link_is_replaced_and_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("precious", encoding="utf-8")
    path = tmp_path / "report.json"
    path.symlink_to(outside)
    OutputFile(path).write_text(["text"])
    assert (path.is_symlink(), path.read_text(encoding="utf-8")) == (False, "text")
    path.unlink()
    path.symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"):
        OutputFile(path).append_text("text")
    assert outside.read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("folder", ["__llmeval__", ".llmeval"])
def test_a_folder_of_ours_that_is_a_link_is_refused(tmp_path: Path, folder: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / folder).symlink_to(outside)
    path = tmp_path / folder / "x.json"
    for write in (
        lambda: OutputFile(path).write_text(["x"]),
        lambda: OutputFile(path).append_text("x"),
        lambda: OutputFile(path).rewrite(lambda: "x"),
    ):
        with pytest.raises(OSError, match=f"{folder} is a symbolic link, expected a folder"):
            write()
    assert names(outside) == []


@pytest.mark.parametrize(
    ("link", "path"),
    [
        (".llmeval", ".llmeval/answers/1/run.jsonl"),
        (".llmeval/answers", ".llmeval/answers/run.jsonl"),
        (".llmeval/answers", ".llmeval/answers/1/run.jsonl"),
        ("suites/__llmeval__", "suites/__llmeval__/a/b.json"),
    ],
)
def test_a_link_anywhere_inside_of_a_folder_of_ours_is_refused(tmp_path: Path, link: str, path: str) -> None:
    outside = tmp_path / "outside"
    (outside / "1").mkdir(parents=True)
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(outside)
    file = tmp_path / path
    for write in (
        lambda: OutputFile(file).write_text(["x"]),
        lambda: OutputFile(file).append_text("x"),
        lambda: OutputFile(file).rewrite(lambda: "x"),
    ):
        with pytest.raises(OSError, match="is a symbolic link, expected a folder"):
            write()
    with pytest.raises(OSError, match="is a symbolic link, expected a folder"):
        OutputFolder(file.parent).make()
    left = outside / f".llmeval-{dead_process()}-00000000.tmp"
    left.touch()
    OutputFolder(tmp_path / link).remove_leftovers()
    assert names(outside) == [left.name, "1"]
    assert names(outside / "1") == []


def test_a_folder_of_the_users_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "reports").symlink_to(tmp_path / "elsewhere")
    OutputFile(tmp_path / "reports" / "report.json").write_text(["text"])
    assert names(tmp_path / "elsewhere") == ["report.json"]


def test_a_link_in_place_of_a_lock_is_replaced_and_not_followed(tmp_path: Path) -> None:
    path, outside = tmp_path / "scores.json", tmp_path / "outside.txt"
    outside.write_text("precious", encoding="utf-8")
    with OutputFile(path).locked():
        (lock,) = set(names(tmp_path)) - {"outside.txt"}
    (tmp_path / lock).symlink_to(outside)
    OutputFile(path).rewrite(lambda: "x")
    assert outside.read_text(encoding="utf-8") == "precious"
    assert names(tmp_path) == ["outside.txt", "scores.json"]


def test_a_pipe_that_nobody_reads_is_refused_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    os.mkfifo(path)
    with pytest.raises(OSError, match="it is a pipe that nobody reads"):
        OutputFile(path).write_text(["text"])
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    OutputFile(path).write_text(["text"])
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert path.is_fifo()


def test_leftovers_of_dead_processes_and_old_ones_go_and_nothing_else(tmp_path: Path) -> None:
    dead, alive = dead_process(), WritingProcess.current().name
    gone = [f".llmeval-{dead}-00000000.tmp{suffix}" for suffix in ("", "-wal", "-shm")]
    other_machine = ".llmeval-00000000-1-00000001.tmp"
    old = ".llmeval-00000000-1-00000000.tmp"
    stay = [f".llmeval-{alive}-00000000.tmp", other_machine, "report.json.tmp", f".llmeval-{dead}.tmp"]
    for name in (*gone, old, *stay):
        (tmp_path / name).touch()
    past = (tmp_path / old).stat().st_mtime - 86_401
    os.utime(tmp_path / old, (past, past))
    OutputFile(tmp_path / "report.json").write_text(["text"])
    assert names(tmp_path) == sorted([*stay, "report.json"])
    OutputFolder(tmp_path / "absent").remove_leftovers()


def test_a_scratch_name_is_used_once_and_names_its_process(tmp_path: Path) -> None:
    assert OutputFolder(tmp_path).scratch_path() != OutputFolder(tmp_path).scratch_path()
    assert WritingProcess.current().name in OutputFolder(tmp_path).scratch_path().name
    assert not WritingProcess.current().has_ended()
    assert WritingProcess(dead_process()).has_ended()
    assert not WritingProcess("00000000-1").has_ended()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only /proc tells")
def test_a_process_that_waits_to_be_reaped_has_ended() -> None:
    machine = WritingProcess.current().name.partition("-")[0]
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert WritingProcess(f"{machine}-{child.pid}").has_ended()


def test_rewriting_at_the_same_time_loses_nothing_and_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lines.txt"

    def add(number: int) -> bool:
        def make() -> str:
            there = path.read_text(encoding="utf-8").split() if path.exists() else []
            return "".join(f"{each}\n" for each in sorted({*map(int, there), number}))

        return OutputFile(path).rewrite(make)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(add, range(24)))
    assert path.read_text(encoding="utf-8").split() == [str(number) for number in range(24)]
    assert not add(7)
    assert names(path.parent) == ["lines.txt"]


def test_no_text_stands_for_no_file(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    assert not OutputFile(path).rewrite(lambda: "")
    assert OutputFile(path).rewrite(lambda: "x")
    assert OutputFile(path).rewrite(lambda: "")
    assert names(tmp_path) == []


def test_nothing_is_locked_where_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    OutputFile(path).rewrite(lambda: "x")
    monkeypatch.delattr(OutputFile, "locked")
    assert not OutputFile(path).rewrite(lambda: "x")
    with pytest.raises(AttributeError):
        OutputFile(path).rewrite(lambda: "y")


def test_a_lock_that_is_never_given_back_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_LOCK_S", 0.0)
    with OutputFile(tmp_path / "x").locked(), ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(OutputFile(tmp_path / "x").rewrite, lambda: "x")
        with pytest.raises(OSError, match="another process has held it for 0 s"):
            waiting.result()


def test_a_file_that_others_read_is_replaced_once_they_have_closed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, refusals, waits = tmp_path / "report.json", [True, True], []
    replace = Path.replace

    def busy(self: Path, target: Path) -> Path:
        if refusals:
            refusals.pop()
            raise PermissionError(errno.EACCES, "used by another process", str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", busy)
    monkeypatch.setattr(time, "sleep", waits.append)
    with pytest.raises(PermissionError):
        OutputFile(path).write_text(["text"])
    assert names(tmp_path) == []
    refusals.append(True)
    monkeypatch.setattr(writing, "WINDOWS", True)
    OutputFile(path).write_text(["text"])
    assert (path.read_text(encoding="utf-8"), len(waits)) == ("text", 2)
    refusals.extend([True] * 100)
    with pytest.raises(PermissionError):
        OutputFile(path).write_text(["other"])
    assert (path.read_text(encoding="utf-8"), names(tmp_path)) == ("text", ["report.json"])
    assert sum(waits) < 5


def test_what_is_appended_begins_on_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    OutputFile(path).append_text("one\n")
    OutputFile(path).append_text("two")  # cut off by a kill
    OutputFile(path).append_text("three\n")
    assert path.read_bytes() == b"one\ntwo\nthree\n"


def test_other_line_ends_are_no_change(tmp_path: Path) -> None:
    path = tmp_path / "s.scores.json"
    path.write_bytes(b"{\r\n}\r\n")
    assert not OutputFile(path).rewrite(lambda: "{\n}\n")
    assert path.read_bytes() == b"{\r\n}\r\n"
    assert OutputFile(path).rewrite(lambda: "{}\n")
    assert path.read_bytes() == b"{}\n"
