"""Models with prompts as targets, asked through the clients of judges."""

__all__ = ("ModelTarget",)

from typing import Any

from pytest_llmeval.core.errors import JudgeError, PredictionError
from pytest_llmeval.judge.clients import AsyncJudge
from pytest_llmeval.judge.contract import JudgeRequest
from pytest_llmeval.judge.prices import cost_usd, price_of
from pytest_llmeval.suite.models import ModelSystem


class ModelTarget:
    """Answers inputs by a model: the text as ``answer``, and what it took as ``usage``."""

    def __init__(self, system: ModelSystem, client: AsyncJudge) -> None:
        self.system = system
        self.client = client
        self._price = price_of(system.spec)

    async def answer(self, value: Any) -> dict[str, Any]:
        """Return the prediction for an input.

        Raises:
            PredictionError: The model gave no reply, or the input lacks something that a prompt names.
        """
        spec = self.system.spec
        messages = tuple(self.system.messages(value))
        try:
            reply = await self.client.complete(JudgeRequest(messages, spec.name, spec.request_parameters()))
        except JudgeError as error:
            raise PredictionError(str(error)) from None
        usage = {
            "input_tokens": reply.usage.input_tokens,
            "output_tokens": reply.usage.output_tokens,
            "cost_usd": cost_usd(self._price, reply.usage),
        }
        return {"answer": reply.text, "usage": {name: value for name, value in usage.items() if value is not None}}

    # Waits between attempts are not the model's: the exchange of each request is timed.
    answer.clocks_itself = True  # type: ignore[attr-defined]  # functions take attributes
