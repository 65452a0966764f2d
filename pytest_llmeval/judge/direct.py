"""A judge for Python code, without pytest and stores."""

__all__ = ("DirectJudge", "Judgeable")

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_llmeval.core.errors import JudgeError
from pytest_llmeval.judge.contract import JudgeClient, JudgeReply, JudgeRequest, Question, Verdict
from pytest_llmeval.judge.questions.probabilities import enveloped
from pytest_llmeval.judge.questions.render import render
from pytest_llmeval.judge.questions.replies import read_reply
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.services.background import Background, caught

if TYPE_CHECKING:
    from pytest_llmeval.judge.clients import AsyncJudge

Judgeable: TypeAlias = (
    str | JudgeSpec | JudgeClient | Callable[[JudgeRequest], JudgeReply | str | Awaitable[JudgeReply | str]]
)
"""What can be a judge: ``PROVIDER:NAME`` of a model, a spec, a client, or a function, plain or async."""


@dataclass(frozen=True)
class DirectJudge:
    """A judge, and the event loop in which it is asked.

    Attributes:
        client: Asks it.
        model: Its name.
        parameters: What it is sent besides.
        workers: Most calls at a time.
    """

    client: "AsyncJudge"
    model: str
    parameters: Mapping[str, Any]
    workers: int
    background: Background = field(default_factory=Background)

    @classmethod
    def of(cls, llm: Any, workers: int) -> "DirectJudge":
        """Return a judge; see `Judgeable`.

        Raises:
            JudgeError: It cannot judge.
        """
        from pytest_llmeval.judge.clients import as_client, connect

        spec = JudgeSpec(llm) if isinstance(llm, str) else llm
        client = connect(spec) if isinstance(spec, JudgeSpec) else as_client(llm)
        spec = spec if isinstance(spec, JudgeSpec) else getattr(llm, "spec", None)
        known = spec if isinstance(spec, JudgeSpec) else JudgeSpec()
        judge = cls(client, known.name, known.request_parameters(), workers)
        judge.background.closing.append(client.aclose)
        return judge

    async def ask(self, question: Question) -> Verdict:
        """Return the verdict on a question.

        Raises:
            JudgeError: There is none.
        """
        mode = question.mode
        request = JudgeRequest(render(question), self.model, self.parameters, mode.reply_schema, mode.expected_of)
        reply = await self.client.complete(request)
        try:
            return read_reply(mode, enveloped(request, reply))
        except JudgeError:
            if not mode.asks_again:
                raise
        return read_reply(mode, enveloped(request, await self.client.complete(request)))

    def ask_all(self, questions: Mapping[int, Question], keep: Callable[[int, Verdict], None]) -> dict[int, JudgeError]:
        """Ask many questions.

        Args:
            questions: By number.
            keep: Called with each verdict as it arrives.

        Returns:
            The questions without a verdict.

        Raises:
            BaseException: Anything but a missing verdict, such as an interrupt, once the calls in flight have ended.
        """
        return self.background.run(self._ask_all(questions, keep))

    def close(self) -> None:
        """Close the client and end the event loop."""
        self.background.close()

    async def _ask_all(
        self, questions: Mapping[int, Question], keep: Callable[[int, Verdict], None]
    ) -> dict[int, JudgeError]:
        failed: dict[int, JudgeError] = {}
        stopped: list[BaseException] = []
        left = iter(questions.items())

        async def work() -> None:
            for number, question in left:
                verdict, error = await caught(self.ask(question))
                if isinstance(error, JudgeError):
                    failed[number] = error
                elif error is not None:
                    stopped.append(error)
                elif verdict is not None:
                    keep(number, verdict)
                if stopped:
                    return

        await asyncio.gather(*(work() for _ in range(min(self.workers, len(questions)))))
        if stopped:
            raise stopped[0]
        return dict(sorted(failed.items()))
