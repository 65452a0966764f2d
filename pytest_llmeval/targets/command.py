"""A command as a target: a program that keeps running and exchanges JSON lines."""

__all__ = ("CommandTarget",)

import asyncio
import contextlib
import json
import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.services.processes import EndedError, Program
from pytest_llmeval.services.secrets import Redactor
from pytest_llmeval.services.stopwatch import stopwatch
from pytest_llmeval.targets.messages import parse_reply
from pytest_llmeval.targets.spec import BatchTarget


class CommandTarget(BatchTarget):
    """A program that reads ``{"id": ..., "input": ...}`` per line and writes ``{"id": ..., "prediction": ...}``.

    One process answers one input after the other. It is started with the first, and again after a failure: one that
    broke the protocol, or did not answer in time, is killed with all that it started.

    Args:
        command: The program and its arguments; no shell reads them.
        folder: Where it runs.
        timeout: Seconds that an answer may take, the program's start included; ``None`` waits for ever.
        environment: Of the program; default: this process's.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        timeout: float | None = None,
        *,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._timeout = timeout
        self._environment = environment
        self._redactor = Redactor(environment=environment)
        self._name = f"command {self._redactor.excerpt(self._command[0])}"
        self._one_at_a_time = asyncio.Lock()
        self._program: Program | None = None
        self._steps = random.Random(0)  # noqa: S311 (distance from the next number, no secret)
        self._asked = 1

    async def answer(self, inputs: Sequence[Any]) -> list[Any | PredictionError]:
        """Return one entry for each input; see `BatchTarget`."""
        return [await self._answer(each) for each in inputs]

    async def aclose(self) -> None:
        """Let the program end: its input ends, and what is left of it after a moment is killed."""
        program, self._program = self._program, None
        if program is not None:
            await program.end()

    async def _answer(self, value: Any) -> Any | PredictionError:
        async with self._one_at_a_time:
            try:
                async with asyncio.timeout(self._timeout):
                    with stopwatch().call():
                        line = await self._exchange(value)
                    return self._read(line)
            except TimeoutError:
                fault = f"took longer than {self._timeout:g} s"
            except PredictionError as error:
                fault = str(error)
            except BaseException:
                await self._discard()
                raise
            finally:
                # Far from the next number: a second line of an answer cannot be taken for the next answer.
                self._asked += self._steps.randrange(1_000, 10_000)
            return PredictionError(f"{self._name} {fault}{await self._discard()}")

    async def _exchange(self, value: Any) -> bytes:
        """Return the line that the program answers.

        Raises:
            PredictionError: It cannot be started, or it ended.
        """
        line = json.dumps({"id": self._asked, "input": value}).encode("ascii")
        if self._program is not None:
            # It may have ended after its last answer; a process started for this input shows.
            with contextlib.suppress(EndedError):
                return await self._program.exchange(line)
            await self._discard()
        self._program = await Program.start(self._command, self._folder, self._environment)
        return await self._program.exchange(line)

    def _read(self, line: bytes) -> Any | PredictionError:
        """Return the prediction in a line, or the error that the program reports.

        Raises:
            PredictionError: The line is not what the protocol asks for.
        """
        expected = f'expected {{"id": {self._asked}, "prediction": ...}}; anything else belongs on stderr'
        try:
            reply = parse_reply(line)
        except PredictionError as error:
            raise PredictionError(f"wrote {self._redactor.excerpt(line)} on stdout: {error}, {expected}") from None
        named = isinstance(reply, dict) and type(reply.get("id")) is int and reply["id"] == self._asked
        if not named or ("prediction" in reply) == ("error" in reply):
            raise PredictionError(f"wrote {self._redactor.excerpt(line)} on stdout, {expected}")
        if "prediction" in reply:
            return reply["prediction"]
        message = reply["error"]
        text = message if isinstance(message, str) else json.dumps(message)
        return PredictionError(f"{self._name} answered with the error {self._redactor.excerpt(text)}")

    async def _discard(self) -> str:
        """Kill the program, so that the next input starts a new one; return the end of its stderr."""
        program, self._program = self._program, None
        if program is None:
            return ""
        await program.kill()
        return f"; stderr: {self._redactor.excerpt(program.stderr, end=True)}" if program.stderr.strip() else ""
