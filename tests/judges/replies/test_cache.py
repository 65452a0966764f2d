"""The working cache: what is kept, what is damaged, and whose a file is."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from builders import entry
from msgspec.structs import replace
from running import Clock, change
from servers import PATIENCE

from pytest_llmeval.core import LlmevalError
from pytest_llmeval.judges.replies._sqlite import SCHEMA_VERSION, SqliteReplies

DAY_S = 86_400.0


def test_nothing_of_a_failed_write_is_kept(cache: SqliteReplies) -> None:
    good = entry("Rome")
    with pytest.raises(ValueError, match="JSON"):
        cache.put([good, replace(entry(), score=float("nan"))])
    assert cache.get(good.key) is None


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE entries SET entry = x'00ff' WHERE key = ?",
        "UPDATE entries SET checksum = x'00' WHERE key = ?",
        "UPDATE entries SET entry = replace(CAST(entry AS TEXT), '0.5', '0.9') WHERE key = ?",
        "UPDATE entries SET entry = CAST(x'ff' AS TEXT) WHERE key = ?",
        "UPDATE entries SET entry = 7, checksum = 'text' WHERE key = ?",
    ],
)
def test_a_damaged_row_reads_as_absent_is_reported_and_can_be_replaced(
    cache: SqliteReplies, path: Path, damage: str
) -> None:
    bad, good = entry(), entry("Rome")
    cache.put([bad, good])
    assert cache.verify() == []
    change(path, damage, bad.key)
    assert cache.get(bad.key) is None
    assert list(cache.entries()) == [good]
    assert cache.verify() == [f"entry {bad.key}: found a wrong checksum or an invalid judgement"]
    cache.put([bad])
    assert cache.verify() == []
    assert cache.get(bad.key) == bad


def test_pruning_deletes_by_age_and_model_and_what_is_damaged(cache: SqliteReplies, path: Path, clock: Clock) -> None:
    old, bad = entry(), entry("bad")
    cache.put([old, bad])
    clock.now += 2 * DAY_S
    new, other = entry("new"), entry("new", model="openai:b")
    cache.put([new, other])
    change(path, "UPDATE entries SET checksum = x'00' WHERE key = ?", bad.key)
    assert cache.prune(older_than_s=DAY_S, model="openai:b") == 1
    assert cache.prune(older_than_s=DAY_S) == 1
    assert {each.key for each in cache.entries()} == {new.key, other.key}
    assert cache.prune(model="openai:b") == 1
    assert list(cache.entries()) == [new]
    assert cache.prune() == 1


def test_the_folder_is_kept_out_of_git(cache: SqliteReplies, path: Path) -> None:
    assert (path.parent / ".gitignore").read_text(encoding="utf-8") == "*\n"
    cache.close()
    assert sorted(each.name for each in path.parent.iterdir()) == [".gitignore", path.name]


def test_a_folder_that_is_the_users_is_not_kept_out_of_git(tmp_path: Path) -> None:
    SqliteReplies(tmp_path / "cache.sqlite3").close()
    assert [each.name for each in tmp_path.iterdir()] == ["cache.sqlite3"]


def test_the_users_own_gitignore_stays(path: Path) -> None:
    path.parent.mkdir()
    (path.parent / ".gitignore").write_text("mine\n", encoding="utf-8")
    SqliteReplies(path).close()
    assert (path.parent / ".gitignore").read_text(encoding="utf-8") == "mine\n"


def database(path: Path, *statements: str) -> None:
    for statement in statements:
        change(path, statement)


@pytest.mark.parametrize(
    "content", [b"", b"no database, but long enough to look at" * 40, b"SQLite format 3\0" + b"x" * 900]
)
def test_a_file_that_is_no_database_is_refused_and_stays(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(LlmevalError, match=r"notes\.txt is not a judge cache"):
        SqliteReplies(path)
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite3"
    database(path, "CREATE TABLE entries (key TEXT)")
    content = path.read_bytes()
    with pytest.raises(LlmevalError, match=r"app\.sqlite3 is not a judge cache"):
        SqliteReplies(path)
    assert path.read_bytes() == content


def test_a_cache_of_a_newer_version_is_refused_and_stays(cache: SqliteReplies, path: Path) -> None:
    cache.put([entry()])
    cache.close()
    database(path, f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    content = path.read_bytes()
    with pytest.raises(
        LlmevalError, match=rf"newer version .*schema {SCHEMA_VERSION + 1}.*expected schema {SCHEMA_VERSION}"
    ):
        SqliteReplies(path)
    assert path.read_bytes() == content
    database(path, f"PRAGMA user_version={SCHEMA_VERSION}")


def test_a_place_that_cannot_hold_a_cache_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(
        LlmevalError, match=r"file/cache\.sqlite3 cannot be created \(.+\): choose a file in a writable folder"
    ):
        SqliteReplies(tmp_path / "file" / "cache.sqlite3")


AS_NOBODY = """
import os, sys
from pathlib import Path
from pytest_llmeval.core._errors import LlmevalError
from pytest_llmeval.judges.replies._sqlite import SqliteReplies
if os.geteuid() == 0:
    os.setuid(65534)
try:
    SqliteReplies(Path(sys.argv[1]))
except LlmevalError as error:
    print(error)
"""


@pytest.mark.parametrize("existing", [False, True])
def test_a_folder_that_cannot_be_written_is_an_error_that_says_so(existing: bool) -> None:
    # Not below tmp_path, which other users may not enter.
    folder = Path("/tmp") / f"llmeval-read-only-{os.getpid()}"
    folder.mkdir()
    try:
        path = folder / "cache.sqlite3"
        if existing:
            SqliteReplies(path).close()
            path.chmod(0o444)
        folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY, str(path)], capture_output=True, text=True, check=True, timeout=PATIENCE
        )
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
    assert str(path) in done.stdout
    assert "writable" in done.stdout or "can be written" in done.stdout


def test_a_full_disk_is_said_and_the_cache_goes_on_when_there_is_room(cache: SqliteReplies) -> None:
    with cache._session() as connection:
        connection.execute("PRAGMA max_page_count = 1")  # that is: no page more than there are
    with pytest.raises(LlmevalError, match=r"cache\.sqlite3: database or disk is full: free some disk space"):
        cache.put([entry(str(number)) for number in range(2_000)])
    with cache._session() as connection:
        connection.execute("PRAGMA max_page_count = 1000000")
    cache.put([entry()])
    assert cache.get(entry().key) == entry()


def test_damage_of_the_file_itself_is_an_error_that_says_what_to_do(cache: SqliteReplies, path: Path) -> None:
    cache.put([entry(str(number)) for number in range(200)])
    cache.close()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(LlmevalError, match=r"cache\.sqlite3: .*delete the file"):
        SqliteReplies(path).get(entry("3").key)


@pytest.mark.parametrize("suffix", ["", "-journal", "-shm", "-wal"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_in_place_of_a_file_of_the_cache_is_refused_and_not_followed(
    tmp_path: Path, suffix: str, *, exists: bool
) -> None:
    outside = tmp_path / "outside.txt"
    if exists:
        outside.write_text("precious", encoding="utf-8")
    (tmp_path / f"cache.sqlite3{suffix}").symlink_to(outside)
    with pytest.raises(LlmevalError, match=rf"\(cache\.sqlite3{suffix} is a symbolic link, expected a file\)"):
        SqliteReplies(tmp_path / "cache.sqlite3")
    assert outside.exists() == exists
    assert not exists or outside.read_text(encoding="utf-8") == "precious"


def test_a_working_folder_that_is_a_link_gets_no_cache(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / ".llmeval").symlink_to(tmp_path / "outside")
    with pytest.raises(LlmevalError, match=r"\.llmeval is a symbolic link, expected a folder"):
        SqliteReplies(tmp_path / ".llmeval" / "cache.sqlite3")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_large_journal_left_by_a_killed_process_is_taken_in_at_opening(path: Path, clock: Clock) -> None:
    code = (
        "import os, sys; from pathlib import Path; from builders import entry; "
        "from pytest_llmeval.judges.replies._sqlite import SqliteReplies; cache = SqliteReplies(Path(sys.argv[1])); "
        "cache._rows('PRAGMA wal_autocheckpoint=0'); "
        "cache.put([entry(str(n), reply='x' * 5000) for n in range(1500)]); os._exit(0)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=PATIENCE, env=environment)
    wal = path.with_name(path.name + "-wal")
    assert wal.stat().st_size > 4 << 20
    with SqliteReplies(path, clock=clock, ticks=clock) as cache:
        assert wal.stat().st_size == 0
        assert len(list(cache.entries())) == 1500


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_a_connection_of_its_own(cache: SqliteReplies) -> None:
    cache.put([entry("parent")])
    inherited = cache._connection
    child = os.fork()
    if child == 0:
        code = 1
        try:
            cache.put([entry("child")])
            code = 0 if cache.get(entry("parent").key) and cache._connection is not inherited else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert cache._connection is inherited
    assert cache.get(entry("child").key) == entry("child")
    assert cache.verify() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_child_forked_while_another_thread_writes_does_not_hang(cache: SqliteReplies) -> None:
    inside, done = threading.Event(), threading.Event()

    def hold() -> None:
        with cache._session():
            inside.set()
            done.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        os._exit(0 if cache.get("0" * 32) is None else 1)
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
