"""A program in its own process group that answers line by line and leaves nothing behind."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from pytest_llmeval.core import WINDOWS, PredictionError

LONGEST_LINE: Final = 64 << 20
_GRACE_S: Final = 2.0
_TAIL: Final = 8_192
_CHUNK: Final = 65_536


class EndedError(PredictionError):
    """A program of a target or a tool ended, or closed its output, before it wrote the expected line."""


class Program:
    """A running program of a target or a tool, which answers line by line.

    Made by `start`; its stderr is read all the time, and the end of it kept.
    """

    def __init__(self, process: asyncio.subprocess.Process, longest: int) -> None:
        self._process = process
        self._longest = longest
        self._tail = b""
        self._drained = asyncio.create_task(self._drain())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        longest: int | None = None,
    ) -> Self:
        """Start a program.

        Args:
            command: The program and its arguments.
            folder: Where it runs.
            environment: All of its variables.
            longest: Most bytes of a line that it writes; default: `LONGEST_LINE`.

        Raises:
            PredictionError: The operating system refuses.
        """
        longest = LONGEST_LINE if longest is None else longest
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder,
                # A program in Python would otherwise keep its answers in a buffer.
                env={"PYTHONUNBUFFERED": "1", **environment},
                limit=longest,
                start_new_session=True,
            )
        except OSError as error:
            raise PredictionError(f"cannot be started ({error.strerror})") from None
        return cls(process, longest)

    @property
    def stderr(self) -> bytes:
        """The end of what it wrote to stderr."""
        return self._tail

    async def exchange(self, line: bytes) -> bytes:
        """Write a line and return the next one; raises what `receive` does."""
        await self.send(line)
        return await self.receive()

    async def exchange_if_alive(self, line: bytes) -> bytes | None:
        """Write a line and return the next one; ``None`` from a program that has ended.

        Raises:
            PredictionError: The next line has no end in sight.
        """
        try:
            return await self.exchange(line)
        except EndedError:
            return None

    async def send(self, line: bytes) -> None:
        """Write a line.

        Raises:
            EndedError: The program reads no more.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + b"\n")
            await self._process.stdin.drain()
        except ConnectionError:
            raise EndedError(await self._how_it_ended(unfinished=False)) from None

    async def receive(self) -> bytes:
        """The next line that the program writes, without its end.

        Raises:
            EndedError: It wrote none, and will not.
            PredictionError: The line has no end in sight.
        """
        assert self._process.stdout is not None
        try:
            answer = await self._process.stdout.readline()
        except ConnectionError:
            answer = b""
        except ValueError:
            raise PredictionError(f"wrote a line of more than {self._longest} bytes, expected a shorter one") from None
        if not answer.endswith(b"\n"):
            raise EndedError(await self._how_it_ended(unfinished=bool(answer)))
        return answer.rstrip(b"\r\n")

    async def _how_it_ended(self, *, unfinished: bool) -> str:
        """How the program ended, for the error on a missing answer."""
        await self._wait()
        code = self._process.returncode
        when = "in the middle of a line" if unfinished else "without an answer"
        if code is None:
            return f"closed its output {when}"
        if code < 0:
            return f"was ended by {_name_of(-code)} {when}"
        return f"ended with exit code {code} {when}"

    async def end(self) -> None:
        """Close the program's input, wait a moment for it to end, then kill what is left."""
        if self._drained.cancelled():
            # The end of a run cancels every task of its loop. A program whose stderr is not read may never end.
            self._drained = asyncio.create_task(self._drain())
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._wait()
        await self.kill()

    async def kill(self) -> None:
        """Kill the program and all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            await _kill(self._process)
        try:
            await self._wait()
        finally:
            # Someone who left the process group may hold the pipes open: they are given up.
            self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 (Process has no public way)
            self._drained.cancel()
        await asyncio.gather(self._drained, return_exceptions=True)

    async def _wait(self) -> None:
        """Wait for the end of the program, not for long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await self._process.wait()
                await asyncio.wait({self._drained})  # unlike it, the wait is not cancelled with it

    async def _drain(self) -> None:
        """Read stderr of the program, and keep its end."""
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(_CHUNK):
            self._tail = (self._tail + chunk)[-_TAIL:]


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill such a program and what it started: its process group, or where there are none, its descendants."""
    if not WINDOWS:
        os.killpg(process.pid, signal.SIGKILL)
    elif process.returncode is None:
        quiet = asyncio.subprocess.DEVNULL
        with contextlib.suppress(OSError):  # then what it started is left, but not the program itself
            command = ("taskkill", "/F", "/T", "/PID", str(process.pid))
            await (await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)).wait()
        process.kill()


def _name_of(number: int) -> str:
    """The name of the signal that ended a target's program, such as ``SIGKILL``, for its error."""
    try:
        return signal.Signals(number).name
    except ValueError:  # most real-time signals have none
        return f"signal {number}"
