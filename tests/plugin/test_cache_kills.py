"""The working cache under many processes: opened at once, killed at any moment, sharing limits."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from hashlib import sha256
from inspect import getsource
from pathlib import Path

import pytest
from servers import PATIENCE

from pytest_llmeval.judges import CachePlace, StoredJudgement, Usage
from pytest_llmeval.judges._coordination import Coordination


def entry(name: str, reply: str = "0.5") -> StoredJudgement:
    """Return a judgement; the processes have this function, too, and load no more than it needs."""
    key = sha256(name.encode()).hexdigest()[:32]
    made_of = {"mode": "strict", "version": "1", "language": "en", "model": "openai:a", "parameters": {}, "repeat": 0}
    made_of |= {"instructions": "8850fa311a1bff31", "texts": {"answer": key[:16]}}
    return StoredJudgement(key, "paris", made_of, reply, 0.5, Usage(30, 4), 0.25, 0.001)


_SETUP = f"""
import sys
from hashlib import sha256
from pytest_llmeval.judges._protocol import Usage
from pytest_llmeval.judges._coordination import Coordination
from pytest_llmeval.judges._options import Budget, CachePlace
from pytest_llmeval.judges._stored_judgement import StoredJudgement

{getsource(entry)}
place, name = CachePlace.parse(sys.argv[1]), sys.argv[2]
path = place.path
"""

_OPEN_AND_CLOSE = (
    _SETUP
    + """
for line in sys.stdin:
    cache = place._replace(path=path.parent / f"round-{line.strip()}" / path.name).open()
    cache.put([entry(name)])
    assert cache.get(entry(name).key) == entry(name)
    cache.close()
    print("ready", flush=True)
"""
)

_WRITE = (
    _SETUP
    + """
cache, shared = place.open(), Coordination(place.coordination)
number = 0
while True:
    one = entry(f"{name}-{number}", reply="x" * 3000)
    shared.lease(one.key, name, 1000)
    cache.put([one])
    print(one.key, flush=True)
    number += 1
"""
)

_RESERVE = (
    _SETUP
    + """
shared = Coordination(place.coordination)
spent = 0
held = []
sys.stdin.readline()
while True:
    reserved = shared.reserve("run", Budget(tokens=2000), name, tokens=70)
    if reserved.granted:
        held.append(reserved)
    if held and (len(held) == 5 or not reserved.granted):  # several calls under way in every process
        used = 66 + spent % 5
        shared.settle(held.pop(), tokens=used)
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
shared = Coordination(place.coordination)
most = done = 0
sys.stdin.readline()
while done < 80:
    slots = shared.take_slots("run", name, 3, 1000)
    if not slots:
        continue
    mark = path.parent / f"slot-{slots[0]}"
    os.close(os.open(mark, os.O_CREAT | os.O_EXCL))  # fails if two processes have the slot
    most = max(most, sum(each.name.startswith("slot-") for each in path.parent.iterdir()))
    mark.unlink()
    shared.free_slots("run", slots, name)
    done += 1
print(most, flush=True)
"""
)

_LEASES = (
    _SETUP
    + """
cache, shared = place.open(), Coordination(place.coordination)
asked = 0
sys.stdin.readline()
for number in range(80):
    one = entry(str(number))
    while cache.get(one.key) is None:
        if shared.lease(one.key, name, 1000):
            if cache.get(one.key) is None:
                asked += 1
                for _ in range(50):  # the call takes its time
                    cache.get("0" * 32)
                cache.put([one])
            shared.release(one.key, name)
print(asked, flush=True)
"""
)


TURNS = (0, 3, 9, 15)
"""How long writers live: the longer, the more they have kept."""


@pytest.fixture(params=["sqlite:.llmeval/cache.sqlite3", "directory:verdicts"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> CachePlace:
    return CachePlace.parse(request.param).within(tmp_path)


@pytest.fixture
def database(tmp_path: Path) -> CachePlace:
    return CachePlace(tmp_path / ".llmeval" / "cache.sqlite3")


def start(code: str, place: CachePlace, name: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", code, f"{place.store}:{place.path}", name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def outputs(code: str, place: CachePlace, count: int) -> list[int]:
    """Run processes that wait for a line before they compete; return the number that each prints."""
    processes = [start(code, place, f"p{number}") for number in range(count)]
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


def test_eight_processes_open_a_fresh_cache_at_once_eight_times(place: CachePlace) -> None:
    with ExitStack() as stack:
        processes = [stack.enter_context(start(_OPEN_AND_CLOSE, place, f"p{number}")) for number in range(8)]
        for turn in range(8):
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
    for turn in range(8):
        folder = place.path.parent / f"round-{turn}"
        with closing(place._replace(path=folder / place.path.name).open()) as cache:
            assert len(list(cache.entries())) == 8
        assert {each.name for each in folder.iterdir()} <= {".gitignore", place.path.name}


def kill_after(processes: "Sequence[subprocess.Popen[str]]", lines: int) -> list[str]:
    """Kill processes when the first has printed some lines; return all keys that any has acknowledged."""
    first = processes[0].stdout
    assert first is not None
    acknowledged = [first.readline() for _ in range(lines)]
    for process in processes:
        process.kill()
    for process in processes:
        assert process.stdout is not None
        # Not by `communicate`, which begins after what `readline` has read ahead, perhaps in the middle of a line.
        acknowledged += process.stdout.read().splitlines(keepends=True)
        process.communicate(timeout=PATIENCE)
    return [line.strip() for line in acknowledged if line.endswith("\n")]


def test_killed_writers_lose_nothing_that_they_had_kept_and_leave_nothing_broken(place: CachePlace) -> None:
    everything: set[str] = set()
    for turn in TURNS:
        processes = [start(_WRITE, place, f"{turn}-{number}") for number in range(3)]
        acknowledged = kill_after(processes, lines=1 + 5 * turn)
        assert all(process.returncode < 0 for process in processes)
        everything.update(acknowledged)
        with closing(place.open()) as cache:
            assert cache.verify() == []
            found = [cache.get(key) for key in everything]
            assert all(each is not None and len(each.reply) == 3000 for each in found)
    assert len(everything) >= sum(1 + 5 * turn for turn in TURNS)


def test_leases_of_a_killed_process_end_by_themselves(database: CachePlace) -> None:
    process = start(_WRITE, database, "dead")
    (key, *_) = kill_after([process], lines=3)
    with Coordination(database.coordination) as shared:
        assert not shared.lease(key, "alive", 30)
        now = shared.ticks()
        shared.ticks = lambda: now + 1001
        assert shared.lease(key, "alive", 30)


def test_four_processes_never_overspend_a_budget(database: CachePlace) -> None:
    spent = sum(outputs(_RESERVE, database, 4))
    # A call of at most 70 tokens is refused only if fewer than 70 are left.
    assert 2000 - 70 < spent <= 2000


def test_four_processes_never_have_more_calls_under_way_than_the_limit(database: CachePlace) -> None:
    assert max(outputs(_SLOTS, database, 4)) <= 3


def test_four_processes_ask_for_nothing_twice(place: CachePlace) -> None:
    assert sum(outputs(_LEASES, place, 4)) == 80
    with closing(place.open()) as cache:
        assert {each.key for each in cache.entries()} == {entry(str(number)).key for number in range(80)}
