"""What every store of replies does, and what the directory of files is for people."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from builders import entry
from msgspec.structs import replace
from running import Clock
from servers import PATIENCE

from pytest_llmeval import LlmevalError
from pytest_llmeval.judges import CachePlace, ReplyStore, StoreKind
from pytest_llmeval.judges._coordination import Coordination
from pytest_llmeval.judges._run_store import WorkingCache
from pytest_llmeval.judges.replies._directory import DirectoryReplies

DAY_S = 86_400


@dataclass
class Opened:
    """A store on a clock that the test moves."""

    place: CachePlace
    replies: ReplyStore
    clock: Clock

    def put(self, *entries: object) -> None:
        self.replies.put(entries)  # type: ignore[arg-type]
        for file in self.place.path.glob("*.json"):
            if file.stat().st_mtime > self.clock.now + 1:  # just written
                os.utime(file, (self.clock.now, self.clock.now))


@pytest.fixture(params=sorted(StoreKind.KNOWN))
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Opened]:
    place = CachePlace.parse(f"{request.param}:{tmp_path / 'verdicts'}")
    with closing(place.open()) as replies:
        replies.clock = clock  # type: ignore[attr-defined]
        yield Opened(place, replies, clock)


@pytest.fixture
def directory(tmp_path: Path) -> DirectoryReplies:
    return DirectoryReplies(tmp_path / "verdicts")


def test_processes_meet_beside_a_store_that_is_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(
        StoreKind.KNOWN, "lines", replace(StoreKind.KNOWN["directory"], coordination="../.llmeval/cache.sqlite3")
    )
    file = tmp_path / "verdicts.jsonl"
    file.touch()
    working = WorkingCache(CachePlace(file, "lines"), "run", "owner")
    assert working.coordination.get_answers("run", "activity") == []
    assert (tmp_path / ".llmeval" / "cache.sqlite3").is_file()


def test_a_judgement_comes_back_whatever_the_judge_replied(store: Opened) -> None:
    odd = entry(reply="half \ud800, nul \0, 東京, turned \u202e")
    store.put(odd)
    assert store.replies.get(odd.key) == odd
    assert store.replies.get("0" * 32) is None


def test_another_process_reads_a_judgement(store: Opened) -> None:
    store.put(entry())
    code = (
        "import sys; from pytest_llmeval.judges._options import CachePlace; "
        "print(CachePlace.parse(sys.argv[1]).open().get(sys.argv[2]).reply)"
    )
    place = f"{store.place.store}:{store.place.path}"
    read = subprocess.run(
        [sys.executable, "-c", code, place, entry().key], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert read.stdout == "0.5\n"


def test_many_judgements_are_listed(store: Opened) -> None:
    entries = {each.key: each for each in (entry(str(number)) for number in range(600))}
    store.put(*entries.values())
    store.put()
    assert {each.key: each for each in store.replies.entries()} == entries
    assert store.replies.verify() == []


def test_a_later_judgement_replaces_the_earlier(store: Opened) -> None:
    store.put(entry())
    later = replace(entry(), reply="1")
    store.put(later)
    assert store.replies.get(entry().key) == later
    assert list(store.replies.entries()) == [later]


def test_pruning_deletes_by_age_and_model(store: Opened) -> None:
    store.put(entry())
    store.clock.now += 2 * DAY_S
    new, other = entry("new"), entry("new", model="openai:b")
    store.put(new, other)
    assert store.replies.prune(older_than_s=DAY_S, model="openai:b") == 0
    assert store.replies.prune(older_than_s=DAY_S) == 1
    assert {each.key for each in store.replies.entries()} == {new.key, other.key}
    assert store.replies.prune(model="openai:b") == 1
    assert list(store.replies.entries()) == [new]
    assert store.replies.prune() == 1
    assert list(store.replies.entries()) == []


def test_a_closed_store_opens_again_when_it_is_used(store: Opened) -> None:
    store.put(entry())
    store.replies.close()
    assert store.replies.get(entry().key) == entry()


def test_threads_share_a_store(store: Opened) -> None:
    entries = [entry(str(number)) for number in range(100)]

    def put(part: int) -> None:
        for each in entries[part::4]:
            store.replies.put([each])
            assert store.replies.get(each.key) == each

    threads = [threading.Thread(target=put, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each.key for each in store.replies.entries()} == {each.key for each in entries}


def test_processes_of_a_run_meet_beside_every_store(store: Opened) -> None:
    with Coordination(store.place.coordination) as first, Coordination(store.place.coordination) as second:
        assert first.lease("key", "a", 30)
        assert not second.lease("key", "b", 30)
    store.put(entry())
    assert [each.key for each in store.replies.entries()] == [entry().key]


def test_an_unknown_store_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown store directry, did you mean directory\?"):
        CachePlace.parse("directry:verdicts")


@pytest.mark.parametrize("text", [".llmeval/x.sqlite3", "C:\\verdicts\\x", "sqlite:x", "a b:c"])
def test_a_path_without_the_name_of_a_store_is_a_database(text: str) -> None:
    assert CachePlace.parse(text).store == "sqlite"


def test_a_file_of_the_directory_is_made_for_reviews(directory: DirectoryReplies) -> None:
    directory.put([entry(reply="東京 \u202e")])
    (file,) = directory.path.iterdir()
    assert file.name == f"{entry().key}.json"
    text = file.read_text(encoding="utf-8")
    data = json.loads(text)
    assert list(data) == sorted(data)
    assert text.endswith("\n}\n")
    assert '\n  "reply": "東京 \\u202e",\n' in text


def test_the_same_reply_leaves_a_file_as_it_is(directory: DirectoryReplies) -> None:
    directory.put([entry()])
    (file,) = directory.path.iterdir()
    before = file.read_bytes()
    directory.put([replace(entry(), seconds=99.0)])
    assert file.read_bytes() == before


def test_what_processes_share_is_kept_out_of_git(directory: DirectoryReplies) -> None:
    with Coordination(CachePlace(directory.path, "directory").coordination):
        assert (directory.path / ".llmeval" / ".gitignore").read_text(encoding="utf-8") == "*\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "found invalid JSON at line 1, column 1"),
        ('{"case": "a"', "found invalid JSON at line 1, column 13"),
        ("<<<<<<< ours\n{}", "found invalid JSON at line 1, column 1"),
        ('{"case": 1, "case": 2}', "case"),
        ("[]", "found list, expected an object"),
        ("[" * 100_000, "found too many levels of nesting"),
        ("\udcff", "found bytes that are no UTF-8"),
    ],
)
def test_a_damaged_file_is_named_and_never_replaced(directory: DirectoryReplies, text: str, fault: str) -> None:
    good = entry("Rome")
    directory.put([entry(), good])
    file = directory.path / f"{entry().key}.json"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    before = file.read_bytes()
    assert list(directory.entries()) == [good]
    (line,) = directory.verify()
    assert line.startswith(f"{file}: ")
    assert fault in line
    for action in (lambda: directory.get(entry().key), lambda: directory.put([entry()])):
        with pytest.raises(LlmevalError) as error:
            action()
        assert str(error.value) == f"{line}: restore the file, or delete it to ask the judge again"
    assert directory.prune() == 1
    assert file.read_bytes() == before


def test_files_of_others_are_named_and_stay(directory: DirectoryReplies) -> None:
    directory.put([entry()])
    (file,) = directory.path.iterdir()
    copy, foreign = directory.path / f"{'0' * 32}.json", directory.path / "package.json"
    copy.write_bytes(file.read_bytes())
    foreign.write_text("{}", encoding="utf-8")
    (directory.path / "README.md").write_text("Our verdicts.", encoding="utf-8")
    (directory.path / f"{'1' * 32}.json").mkdir()
    (directory.path / f"{'2' * 32}.json").symlink_to("nowhere")
    assert CachePlace(directory.path, "directory").size() > file.lstat().st_size
    assert directory.verify() == [
        f"{copy}: found the key {entry().key}, expected that of the file's name",
        f"{directory.path / ('1' * 32)}.json: found a directory, link or device, expected a file",
        f"{directory.path / ('2' * 32)}.json: found a directory, link or device, expected a file",
        f"{foreign}: found a file of another name, expected KEY.json with a key of 32 hexadecimal digits",
    ]
    assert directory.prune() == 1
    assert copy.exists()
    assert foreign.exists()


def test_a_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(LlmevalError, match=r"file cannot be created \(File exists\): choose a directory"):
        DirectoryReplies(tmp_path / "file")
