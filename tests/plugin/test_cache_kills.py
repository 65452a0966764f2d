"""The working cache under many processes: opened at once, killed at any moment, sharing limits."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from llm_server import PATIENCE
from stored_judgements import entry

from pytest_llmeval.judge.store.cache import Cache

_SETUP = """
import sys
from pathlib import Path
from stored_judgements import entry
from pytest_llmeval.judge.options import Budget
from pytest_llmeval.judge.store.cache import Cache

path, name = Path(sys.argv[1]), sys.argv[2]
"""

_OPEN_AND_CLOSE = (
    _SETUP
    + """
for line in sys.stdin:
    cache = Cache(path.parent / f"round-{line.strip()}" / "cache.sqlite3")
    cache.put(entry(name), "run")
    assert cache.get(entry(name).key) == entry(name)
    cache.close()
    print("ready", flush=True)
"""
)

_WRITE = (
    _SETUP
    + """
cache = Cache(path)
number = 0
while True:
    one = entry(f"{name}-{number}", reply="x" * 3000)
    cache.lease(one.key, name, 1000)
    cache.put(one, "run")
    print(one.key, flush=True)
    number += 1
"""
)

_RESERVE = (
    _SETUP
    + """
cache = Cache(path)
spent = 0
held = []
sys.stdin.readline()
while True:
    reserved = cache.reserve("run", Budget(tokens=5000), name, tokens=70)
    if reserved.granted:
        held.append(reserved)
    if held and (len(held) == 5 or not reserved.granted):  # several calls under way in every process
        used = 66 + spent % 5
        cache.settle(held.pop(), tokens=used)
        spent += used
    elif reserved.exhausted:
        break
print(spent, flush=True)
"""
)

_SLOTS = (
    _SETUP
    + """
import os
cache = Cache(path)
most = done = 0
sys.stdin.readline()
while done < 200:
    slots = cache.take_slots("run", name, 3, 1000)
    if not slots:
        continue
    mark = path.parent / f"slot-{slots[0]}"
    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))  # fails if two processes have the slot
    most = max(most, sum(each.name.startswith("slot-") for each in path.parent.iterdir()))
    mark.unlink()
    cache.free_slots("run", slots, name)
    done += 1
print(most, flush=True)
"""
)

_LEASES = (
    _SETUP
    + """
cache = Cache(path)
asked = 0
sys.stdin.readline()
for number in range(200):
    one = entry(str(number))
    while cache.get(one.key) is None:
        if cache.lease(one.key, name, 1000):
            if cache.get(one.key) is None:
                asked += 1
                for _ in range(50):  # the call takes its time
                    cache.get("0" * 32)
                cache.put(one, name)
            cache.release(one.key, name)
print(asked, flush=True)
"""
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".llmeval" / "cache.sqlite3"


def start(code: str, path: Path, name: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def outputs(code: str, path: Path, count: int) -> list[int]:
    """Run processes that wait for a line before they compete; return the number that each prints."""
    processes = [start(code, path, f"p{number}") for number in range(count)]
    found = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        found.append(int(out))
    return found


def test_eight_processes_open_a_fresh_cache_at_once_twenty_times(path: Path) -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(start(_OPEN_AND_CLOSE, path, f"p{number}")) for number in range(8)]
        for turn in range(20):
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(f"{turn}\n")
                process.stdin.flush()
            for process in processes:
                assert process.stdout is not None
                assert process.stderr is not None
                assert process.stdout.readline() == "ready\n", process.stderr.read()
        for process in processes:
            process.communicate(timeout=PATIENCE)
    for turn in range(20):
        folder = path.parent / f"round-{turn}"
        with Cache(folder / "cache.sqlite3") as cache:
            assert len(list(cache.entries())) == 8
        assert sorted(each.name for each in folder.iterdir()) == [".gitignore", "cache.sqlite3"]


def kill_after(processes: "Sequence[subprocess.Popen[str]]", lines: int) -> list[str]:
    """Kill processes when the first has printed some lines; return all keys that any has acknowledged."""
    first = processes[0].stdout
    assert first is not None
    acknowledged = [first.readline() for _ in range(lines)]
    for process in processes:
        process.kill()
    for process in processes:
        out, _ = process.communicate(timeout=PATIENCE)
        acknowledged += out.splitlines(keepends=True)
    return [line.strip() for line in acknowledged if line.endswith("\n")]


def test_killed_writers_lose_nothing_that_they_had_kept_and_leave_nothing_broken(path: Path) -> None:
    everything: set[str] = set()
    for turn in range(0, 16, 2):
        processes = [start(_WRITE, path, f"{turn}-{number}") for number in range(3)]
        acknowledged = kill_after(processes, lines=1 + 5 * turn)
        assert all(process.returncode < 0 for process in processes)
        everything.update(acknowledged)
        with Cache(path) as cache:
            assert cache.verify() == []
            found = cache.get_many(everything)
            assert found.keys() == everything
            assert all(len(each.reply) == 3000 for each in found.values())
    assert len(everything) >= sum(1 + 5 * turn for turn in range(0, 16, 2))


def test_leases_of_a_killed_process_end_by_themselves(path: Path) -> None:
    process = start(_WRITE, path, "dead")
    (key, *_) = kill_after([process], lines=3)
    with Cache(path) as cache:
        assert not cache.lease(key, "alive", 30)
        now = cache.ticks()
        cache.ticks = lambda: now + 1001
        assert cache.lease(key, "alive", 30)


def test_four_processes_never_overspend_a_budget(path: Path) -> None:
    spent = sum(outputs(_RESERVE, path, 4))
    # A call of at most 70 tokens is refused only if fewer than 70 are left.
    assert 5000 - 70 < spent <= 5000


def test_four_processes_never_have_more_calls_under_way_than_the_limit(path: Path) -> None:
    assert max(outputs(_SLOTS, path, 4)) <= 3


def test_four_processes_ask_for_nothing_twice(path: Path) -> None:
    assert sum(outputs(_LEASES, path, 4)) == 200
    with Cache(path) as cache:
        assert len(cache.get_many(entry(str(number)).key for number in range(200))) == 200
