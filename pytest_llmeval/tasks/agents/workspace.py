"""A command per case in a fresh folder, with a clean home: coding agents, and what they change in files."""

import asyncio
import contextlib
import difflib
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pytest_llmeval.core.case import shown_text
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.core.wording import excerpt
from pytest_llmeval.services.background import stopwatch
from pytest_llmeval.services.machine import GitError, clone_commit
from pytest_llmeval.services.processes import MARK, kill_family, watch_family
from pytest_llmeval.services.secrets import Redactor
from pytest_llmeval.targets.results import read_transcript
from pytest_llmeval.targets.spec import BatchTarget, TargetSpec, WorkspaceSpec

INPUT: Final = "{input}"
"""Stands in the arguments of a command for the input of the case."""

_INHERITED: Final = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "COMSPEC", "PATHEXT")
"""Variables of this process without which no program runs; all others are left out unless they are declared."""
_GRACE_S: Final = 2.0
_LONGEST_TEXT: Final = 100_000
"""Characters of a changed file, and of the diff, that an outcome keeps."""
_NO_END: Final = "\\ No newline at end of file\n"
_DISTINCTIVE: Final = 40
"""Characters of a line from which on it is not written twice by chance."""


def placed(spec: TargetSpec, folder: Path) -> BatchTarget:
    """Return the target of a suite with a workspace.

    Args:
        spec: Checked; it has a command and a workspace.
        folder: The suite file's.
    """
    workspace = spec.workspace_spec or WorkspaceSpec()
    return WorkspaceTarget(spec.command or (), workspace, folder, spec.timeout, spec.concurrency)


class WorkspaceTarget(BatchTarget):
    """A program that starts anew for each case, in a copy of a folder, with an empty home and a declared environment.

    This isolates cases from each other and from the configuration of the user. It is no sandbox: the program can read
    and write what the user can. All that it started is killed when it ends, on Linux also what has left its group.

    Args:
        command: The program and its arguments; ``{input}`` is the input, which is on stdin by default.
        spec: The workspace.
        folder: Of the suite file, to which paths are relative.
        timeout: Seconds of a case; ``None`` waits for ever.
        concurrency: Cases at a time.
        environment: From which variables are passed on.
    """

    def __init__(
        self,
        command: Sequence[str],
        spec: WorkspaceSpec,
        folder: Path,
        timeout: float | None = None,
        concurrency: int | None = None,
        *,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._command = tuple(command)
        self._spec = spec
        self._folder = folder
        self._timeout = timeout
        self.concurrency = 1 if concurrency is None else concurrency
        self._environment = environment
        self._redactor = Redactor(environment=environment)

    async def answer(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        """Return one entry for each input; see `BatchTarget`."""
        return [await self._answer(each) for each in inputs]

    async def aclose(self) -> None:
        """Do nothing: every case has cleaned up after itself."""

    async def _answer(self, value: Any) -> Any | PredictionError:
        try:
            with TemporaryDirectory(prefix="llmeval-", ignore_cleanup_errors=True) as scratch:
                return await self._in_folder(Path(scratch).resolve(), shown_text(value))
        except PredictionError as error:
            return PredictionError(f"command {self._redactor.excerpt(self._command[0])} {error}")

    async def _in_folder(self, scratch: Path, text: str) -> dict[str, Any]:
        work = scratch / "work"
        for name in ("home", "tmp"):
            (scratch / name).mkdir()
        try:
            self._fill(work)
        except (OSError, shutil.Error, GitError) as error:
            raise PredictionError(f"has no workspace: {error}") from None
        before = dict(_files(work))
        command = [each.replace(INPUT, text) for each in self._command]
        stdin = "" if any(INPUT in each for each in self._command) else text
        with stopwatch().call():
            code, out, errors = await self._run(command, work, scratch, stdin)
        if contaminated := self._contamination(out + errors):
            raise PredictionError(f"is contaminated, so its answer does not count: {contaminated}")
        outcome = {"exit_code": code, **_changes(before, dict(_files(work))), "stderr": errors[-_LONGEST_TEXT:]}
        outcome["after"] = [await self._after(each, work, scratch) for each in self._spec.after]
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
        """Return which of the files that must not be read a transcript shows; empty if it shows none."""
        for name in self._spec.must_not_read:
            root = self._folder / name
            if str(root.resolve()) in text:
                return f"it names {name}"
            for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
                if path.is_file():
                    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
                    line = next((each for each in lines if _is_shown(each.strip(), text)), "")
                    if line:
                        return f"it shows a line of {name}: {excerpt(line.strip(), 80)}"
        return ""


def _is_shown(line: str, text: str) -> bool:
    return len(line) >= _DISTINCTIVE and line in text


class _Program(asyncio.SubprocessProtocol):
    """A running program: what it writes up to a limit, and when it is over, which may be before its pipes close."""

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


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the regular files of a folder with their content; links are not followed."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and ".git" not in path.relative_to(folder).parts:
            with contextlib.suppress(OSError):
                yield path.relative_to(folder).as_posix(), path.read_bytes()


def _changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> dict[str, Any]:
    """Return changed and new files with their texts, deleted ones, and the difference as a text."""
    changed = {name: data for name, data in after.items() if before.get(name) != data}
    deleted = sorted(before.keys() - after.keys())
    diff: list[str] = []
    for name in sorted([*changed, *deleted]):
        old, new = (_text(side.get(name, b"")).splitlines(keepends=True) for side in (before, after))
        lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
        diff += (each if each.endswith("\n") else f"{each}\n{_NO_END}" for each in lines)
    files = {name: _text(data)[:_LONGEST_TEXT] for name, data in changed.items()}
    created = sorted(changed.keys() - before.keys())
    return {"files": files, "created": created, "deleted": deleted, "diff": "".join(diff)[:_LONGEST_TEXT]}


def _text(data: bytes) -> str:
    return f"({len(data)} bytes)" if b"\0" in data else data.decode("utf-8", "replace")
