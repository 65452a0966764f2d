"""A coding agent run as a command in a fresh folder.

It dies with its family: all that it started, even what has left its group of processes.
"""

import asyncio
import contextlib
import difflib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, Self

from pytest_llmeval.core import WINDOWS, Media, MediaError, MediaForm, PredictionError, excerpt
from pytest_llmeval.data import json_text
from pytest_llmeval.evaluators import read_transcript
from pytest_llmeval.services import GitError, Program, Redactor, run_git
from pytest_llmeval.targets import BatchTarget, TargetSpec

INPUT: Final = "{input}"
"""Stands in the arguments of a command for the input of the case."""

_INHERITED: Final = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "COMSPEC", "PATHEXT")
"""Variables of this process without which no program runs; all others are left out unless they are declared."""
_GRACE_S: Final = 2.0
_CHUNK: Final = 65_536
"""Bytes of output that are read at a time, and dropped."""
_LONGEST_TEXT: Final = 100_000
"""Characters of a changed file, and of the diff, that an outcome keeps."""
_BYTES: Final = 4
"""Bytes of a character, at most."""
_MOST_REMEMBERED: Final = 64 << 20
"""Bytes of the files of a workspace that are in memory; of the others, a diff has the sizes."""
_MOST_PAIRS: Final = 1_000_000
"""Pairs of equal lines of two files that are compared line by line."""
_NO_END: Final = "\\ No newline at end of file\n"
_DISTINCTIVE: Final = 40
"""Characters of a line from which on it is not written twice by chance."""


class WorkspaceTarget(BatchTarget):
    """A program that starts anew for each case, in a copy of a folder, with an empty home and a declared environment.

    This isolates cases from each other and from the configuration of the user. It is no sandbox: the program can read
    and write what the user can. All that it started is killed when it ends, on Linux also what has left its group.

    Args:
        spec: Has a workspace, and a command, in which ``{input}`` is the input; by default, that is on stdin.
        folder: Of the suite file, to which paths are relative.
        environment: From which variables are passed on.
    """

    def __init__(self, spec: TargetSpec, folder: Path, *, environment: Mapping[str, str] = os.environ) -> None:
        assert spec.workspace_spec is not None
        self._command = spec.command or ()
        self._spec = spec.workspace_spec
        self._folder = folder
        self._timeout = spec.timeout
        self.concurrency = 1 if spec.concurrency is None else spec.concurrency
        self._environment = environment
        self._redactor = Redactor(environment=environment)

    async def answer(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        """Return one entry for each input; see `BatchTarget`."""
        return [await self._answer(input_) for input_ in inputs]

    async def aclose(self) -> None:
        """Do nothing: every case has cleaned up after itself."""

    async def _answer(self, value: Any) -> Any | PredictionError:
        try:
            value = MediaForm.replace_all(value, lambda form: Media.of_form(form).location)
            with TemporaryDirectory(prefix="llmeval-", ignore_cleanup_errors=True) as scratch:
                return await self._in_folder(Path(scratch).resolve(), "" if value is None else json_text(value))
        except (MediaError, PredictionError) as error:
            return PredictionError(f"command {self._redactor.excerpt(self._command[0])} {error}")

    async def _in_folder(self, scratch: Path, text: str) -> dict[str, Any]:
        work = scratch / "work"
        for name in ("home", "tmp"):
            (scratch / name).mkdir()
        try:
            self._fill(work)
        except (OSError, shutil.Error, GitError) as error:
            raise PredictionError(f"has no workspace: {error}") from None
        before = _read_files(work, {})
        command = [word.replace(INPUT, text) for word in self._command]
        stdin = "" if any(INPUT in word for word in self._command) else text
        with self.timed():
            code, out, errors = await self._run(command, work, scratch, stdin)
        if contaminated := self._contamination(out + errors):
            raise PredictionError(f"is contaminated, so its answer does not count: {contaminated}")
        outcome = {"exit_code": code, **_changes(before, _read_files(work, before)), "stderr": errors[-_LONGEST_TEXT:]}
        outcome["after"] = [await self._after(after_command, work, scratch) for after_command in self._spec.after]
        return {**read_transcript(out), "outcome": outcome}

    def _fill(self, work: Path) -> None:
        if self._spec.commit is not None:
            clone_commit(self._folder, self._spec.commit, work)
        elif self._spec.folder is None:
            work.mkdir()
        else:
            shutil.copytree(self._folder / self._spec.folder, work, symlinks=True)
        for source, place in self._spec.copy.items():
            target = (work / place).resolve()
            if not target.is_relative_to(work.resolve()):
                raise OSError(f"copy: found {place!r}, expected a place inside the workspace")
            target.parent.mkdir(parents=True, exist_ok=True)
            path = self._folder / source
            if path.is_dir():
                shutil.copytree(path, target, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copyfile(path, target)

    async def _after(self, command: Sequence[str], work: Path, scratch: Path) -> dict[str, Any]:
        code, out, errors = await self._run(command, work, scratch, "")
        return {"command": " ".join(command), "exit_code": code, "output": (out + errors)[-_LONGEST_TEXT:]}

    async def _run(self, command: Sequence[str], work: Path, scratch: Path, stdin: str) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr of a program, whose whole family is dead afterwards.

        Raises:
            PredictionError: It cannot be started, takes too long or writes too much.
        """
        mark = uuid.uuid4().hex
        pipe = asyncio.subprocess.PIPE
        try:
            transport, program = await asyncio.get_running_loop().subprocess_exec(
                lambda: _Program(self._spec.max_output),
                *command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                cwd=work,
                env=self._variables(scratch, mark),
                start_new_session=True,
            )
        except OSError as error:
            raise PredictionError(f"cannot be started ({error.strerror})") from None
        watcher = watch_family(transport.get_pid(), mark)
        try:
            async with asyncio.timeout(self._timeout):
                writer: Any = transport.get_pipe_transport(0)
                writer.write(stdin.encode("utf-8", "surrogatepass"))
                writer.close()
                await program.over.wait()
        except TimeoutError:
            raise PredictionError(f"took longer than {self._timeout:g} s") from None
        finally:
            await kill_family(transport.get_pid(), mark, watcher)
            # The pipes are closed now, unless something survives that cannot be found.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GRACE_S):
                    await program.closed.wait()
            transport.close()
        if program.left < 0:
            raise PredictionError(f"wrote more than {self._spec.max_output} bytes")
        out, errors = (bytes(program.data[number]).decode("utf-8", "replace") for number in (1, 2))
        return transport.get_returncode() or 0, out, errors

    def _variables(self, scratch: Path, mark: str) -> dict[str, str]:
        home, temporary = str(scratch / "home"), str(scratch / "tmp")
        own = {"HOME": home, "USERPROFILE": home, "TMPDIR": temporary, "TEMP": temporary, "TMP": temporary, MARK: mark}
        passed = (*_INHERITED, *self._spec.environment_from)
        inherited = {name: self._environment[name] for name in passed if name in self._environment}
        return {**inherited, **own, **self._spec.environment}

    def _contamination(self, text: str) -> str:
        """The files that must not be read and that a transcript shows."""
        for name in self._spec.must_not_read:
            root = self._folder / name
            if str(root.resolve()) in text:
                return f"it names {name}"
            for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
                if path.is_file():
                    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
                    line = next((candidate for candidate in lines if _is_shown(candidate.strip(), text)), "")
                    if line:
                        return f"it shows a line of {name}: {excerpt(line.strip(), 80)}"
        return ""


def _is_shown(line: str, text: str) -> bool:
    """Whether an agent's transcript shows a line of a file that it must not read; short lines prove nothing."""
    return len(line) >= _DISTINCTIVE and line in text


class _Program(asyncio.SubprocessProtocol):
    """A coding agent's running program: its limited output, and its end, which may precede that of its pipes."""

    def __init__(self, limit: int) -> None:
        self.data = {1: bytearray(), 2: bytearray()}
        self.left = limit
        self.over, self.closed = asyncio.Event(), asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.left -= len(data)
        if self.left < 0:
            self.over.set()
        else:
            self.data[fd] += data

    def process_exited(self) -> None:
        self.over.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.closed.set()


class _File(NamedTuple):
    """A file of a coding agent's workspace, before or after the run.

    Attributes:
        digest: Of its content.
        size: In bytes.
        beginning: What is remembered of the content.
    """

    digest: bytes
    size: int
    beginning: bytes

    @property
    def text(self) -> str:
        """Its beginning, or its size if it is no text or nothing is remembered."""
        if b"\0" in self.beginning or (self.size and not self.beginning):
            return f"({self.size} bytes)"
        return self.beginning.decode("utf-8", "replace")[:_LONGEST_TEXT]

    @property
    def lines(self) -> list[str]:
        """The lines of a whole text; of anything else, its `summary`."""
        is_text = len(self.beginning) == self.size <= _LONGEST_TEXT and b"\0" not in self.beginning
        return self.text.splitlines(keepends=True) if is_text else [self.summary]

    @property
    def summary(self) -> str:
        """Size and digest."""
        return f"({self.size} bytes, SHA-256 {self.digest.hex()[:8]})"


_NO_FILE: Final = _File(b"", 0, b"")


def _read_files(folder: Path, known: Mapping[str, _File]) -> dict[str, _File]:
    """Read the regular files of a coding agent's workspace; links are not followed.

    Args:
        folder: The folder.
        known: Files of which nothing is remembered, unless they have changed.
    """
    files: dict[str, _File] = {}
    left = _MOST_REMEMBERED
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not path.is_symlink() and ".git" not in name.parts:
            with contextlib.suppress(OSError), path.open("rb") as content:
                digest = hashlib.file_digest(content, "sha256").digest()
                size = content.tell()
                is_known = known.get(name.as_posix(), _NO_FILE).digest == digest
                content.seek(0)
                beginning = b"" if is_known else content.read(min(size, left, _LONGEST_TEXT * _BYTES))
                files[name.as_posix()] = _File(digest, size, beginning)
                left -= len(beginning)
    return files


def _changes(before: Mapping[str, _File], after: Mapping[str, _File]) -> dict[str, Any]:
    """The files that a coding agent changed, added or deleted, and the diff."""
    changed = {name: file for name, file in after.items() if before.get(name, _NO_FILE).digest != file.digest}
    deleted = sorted(before.keys() - after.keys())
    diff = ""
    for line in _diff_lines(before, after, sorted([*changed, *deleted])):
        diff += line
        if len(diff) >= _LONGEST_TEXT:
            break
    files = {name: file.text for name, file in changed.items()}
    created = sorted(changed.keys() - before.keys())
    return {"files": files, "created": created, "deleted": deleted, "diff": diff[:_LONGEST_TEXT]}


def _diff_lines(before: Mapping[str, _File], after: Mapping[str, _File], names: Iterable[str]) -> Iterator[str]:
    """Yield the diff of a coding agent's workspace line by line; each file is compared when its turn comes."""
    for name in names:
        old, new = (side.get(name, _NO_FILE) for side in (before, after))
        for line in difflib.unified_diff(*_comparable(old, new), f"a/{name}", f"b/{name}"):
            yield line if line.endswith("\n") else f"{line}\n{_NO_END}"


def _comparable(old: _File, new: _File) -> tuple[list[str], list[str]]:
    """A changed file's old and new lines, or summaries if many equal lines would make the diff slow."""
    lines = old.lines, new.lines
    counts = Counter(lines[0])
    is_short = sum(counts[line] for line in lines[1]) <= _MOST_PAIRS
    return lines if is_short else ([old.summary], [new.summary])


def clone_commit(folder: Path, commit: str, target: Path) -> None:
    """Clone a repository at one commit for a workspace; commits in the clone do not reach the repository.

    Objects are shared, hooks do not run, and there is no remote. Submodules stay empty.

    Args:
        folder: A folder of the repository.
        commit: The commit.
        target: A folder that does not exist.

    Raises:
        GitError: There is no such commit, or git cannot write.
    """
    root = run_git(folder, "rev-parse", "--show-toplevel").rstrip("\n")
    digest = run_git(folder, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{commit}}").rstrip("\n")
    run_git(folder, "clone", "--quiet", "--shared", "--no-checkout", root, str(target))
    run_git(target, "checkout", "--quiet", "--detach", digest)
    run_git(target, "remote", "remove", "origin")


MARK: Final = "LLMEVAL_FAMILY"
"""Variable by which a program and what it started are found, even what has left its group of processes."""

_WATCH: Final = "\n".join(
    (
        "read _",
        'kill -s KILL -- "-$0"',
        "for _ in 1 2 3 4 5; do",
        'for each in $(grep -lsaF "$1" /proc/[0-9]*/environ); do',
        'each=${each#/proc/}; kill -s KILL "${each%/environ}"; done; done',
    )
)
"""Waits for the end of its input, which is the death of its starter, and kills a group and a family."""


class FamilyProgram(Program):
    """A target's program that is killed with its descendants (outside of Linux, with its process group).

    All of it also dies with this process, even by SIGKILL (not on Windows).
    """

    @classmethod
    async def start(
        cls, command: Sequence[str], folder: Path, environment: Mapping[str, str], *, longest: int | None = None
    ) -> Self:
        """Start a program; see `Program.start`."""
        mark = uuid.uuid4().hex
        program = await super().start(command, folder, {**environment, MARK: mark}, longest=longest)
        program.watch(mark)
        return program

    def watch(self, mark: str) -> None:
        """Have the family, whose environment has a mark, killed when this process dies."""
        self._mark, self._watcher = mark, watch_family(self._process.pid, mark)

    async def skip_output(self) -> str:
        """Read what it writes and forget it, until it ends; return how it ended."""
        assert self._process.stdout is not None
        while await self._process.stdout.read(_CHUNK):
            pass
        return await self._how_it_ended(unfinished=False)

    async def kill(self) -> None:
        """Kill the program and its family."""
        await kill_family(self._process.pid, self._mark, self._watcher)
        await super().kill()


def watch_family(leader: int, mark: str) -> "subprocess.Popen[bytes] | None":
    """Have a target's program and its descendants killed if this process dies; return what `kill_family` needs.

    A shell waits for the end of a pipe, which the operating system closes in every case.
    """
    if WINDOWS:
        return None
    quiet = subprocess.DEVNULL
    return subprocess.Popen(  # noqa: S603 (a fixed script)
        ["/bin/sh", "-c", _WATCH, str(leader), f"{MARK}={mark}"],
        stdin=subprocess.PIPE,
        stdout=quiet,
        stderr=quiet,
        start_new_session=True,
    )


async def kill_family(leader: int, mark: str, watcher: "subprocess.Popen[bytes] | None") -> None:
    """Kill a target's program, its group and on Linux each process that inherited its mark; end its watcher."""
    if watcher is not None:
        with watcher:
            watcher.kill()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if WINDOWS:
            os.kill(leader, signal.SIGTERM)  # which ends it at once there
        else:
            os.killpg(leader, signal.SIGKILL)
    while members := list(_marked(mark)):
        for member in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, signal.SIGKILL)
        await asyncio.sleep(0)


def _marked(mark: str) -> Iterator[int]:
    """Yield the running processes with a target's mark in their environment; zombies have none."""
    if not sys.platform.startswith("linux"):
        return
    marker = f"{MARK}={mark}".encode()
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            with contextlib.suppress(OSError):
                if marker in (path / "environ").read_bytes().split(b"\0"):
                    yield int(path.name)
