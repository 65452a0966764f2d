"""The models of suites as ``llmeval doctor`` sees them: whether their keys are there, and whether they answer."""

__all__ = ("model_findings",)

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_llmeval.cli.start.finding import Finding
from pytest_llmeval.cli.start.planned import PlannedRun
from pytest_llmeval.core.wording import seconds
from pytest_llmeval.judge.panel import jurors_of

if TYPE_CHECKING:
    from pytest_llmeval.judge.spec import JudgeSpec
    from pytest_llmeval.suite.suite import Suite

_TIMEOUT_S = 30.0
_QUESTION = "Reply with the word ok."


class _Model(NamedTuple):
    """A model that a suite names.

    Attributes:
        role: What the suite uses it for.
        file: The suite.
        spec: Model, address and key.
        is_asked: Whether a run would call it; ``None`` if there is no plan.
    """

    role: str
    file: Path
    spec: "JudgeSpec"
    is_asked: bool | None

    @property
    def name(self) -> str:
        where = f" at {self.spec.base_url}" if self.spec.base_url is not None else ""
        return f"{self.role} {self.spec.model}{where}"


def model_findings(suites: "Sequence[Suite]", plan: PlannedRun, *, ask: bool) -> Iterator[Finding]:
    """Yield whether the models of suites can be called; keys by their names, each model once."""
    seen: set[tuple[str | None, ...]] = set()
    for suite in suites:
        yield from _variables(suite)
        for model in _models(suite, plan):
            spec = model.spec
            place = spec.model, spec.base_url, spec.api_key_env
            if place not in seen:
                seen.add(place)
                yield from _model(model, ask=ask)
        if jurors_of(suite.judge)[0].model is None and suite.asks_judge:
            text = f"{suite.path.name}: its evaluators ask a judge, and it names none"
            mend = "add judge: {model: 'openai:MODEL'} to the suite, or run with --llmeval-judge-model=openai:MODEL"
            yield Finding("warning", text, [mend])


def _models(suite: "Suite", plan: PlannedRun) -> Iterator[_Model]:
    asked = None
    if plan.judge_calls is not None:
        parts = suite.path.parts
        named = {path: Path(path).parts for path in plan.judge_calls}
        asked = any(calls and parts[-len(named[path]) :] == named[path] for path, calls in plan.judge_calls.items())
    for each in jurors_of(suite.judge):
        if each.model is not None:
            yield _Model("judge", suite.path, each, asked)
    for evaluator in suite.evaluators.values():
        if evaluator.own_model is not None:
            yield _Model("embeddings", suite.path, evaluator.own_model, asked)
    for system in suite.systems.values():
        if system.model is not None:
            yield _Model("model", suite.path, system.model.spec, None)


def _variables(suite: "Suite") -> Iterator[Finding]:
    """Yield the variables that a target over HTTP needs and that are not set."""
    http = suite.target.http if suite.target is not None else None
    for variable in sorted({*(http.headers_from_env.values() if http is not None else ())}):
        if not os.environ.get(variable, "").strip():
            text = f"target of {suite.path.name}: {variable} is not set"
            yield Finding("failing", text, [f"export {variable}=..."])


def _model(model: _Model, *, ask: bool) -> Iterator[Finding]:
    from pytest_llmeval.judge.clients import key_variable

    if model.spec.provider == "fixture":
        yield _fixture(model)
        return
    variable = key_variable(model.spec)
    has_key = variable is None or bool(os.environ.get(variable, "").strip())
    if not has_key:
        stored = model.is_asked is False
        text = f"{model.name}: {variable} is not set"
        more = "; all verdicts that a run needs are stored" if stored else ""
        yield Finding("warning" if stored else "failing", text + more, [f"export {variable}=..."])
        return
    key = (
        f"{variable} is set"
        if variable is not None
        else "needs no key"
        if model.spec.base_url
        else "its library finds the key"
    )
    yield Finding("ok", f"{model.name}: {key}")
    if ask:
        yield _answer(model)
    else:
        yield Finding("not tried", f"{model.name}: whether it answers; --ask makes one short call")


def _fixture(model: _Model) -> Finding:
    """Look for the fixture that provides a judge in the conftests above the suite, without importing them."""
    for folder in model.file.resolve().parents:
        conftest = folder / "conftest.py"
        if conftest.is_file() and "judge_client" in conftest.read_text(encoding="utf-8", errors="replace"):
            return Finding("ok", f"{model.name}: {conftest.name} in {folder.name} defines judge_client")
    text = f"{model.name}: no conftest.py above the suite defines the fixture judge_client"
    return Finding("failing", text, ["define it, or name a model: judge: {model: 'openai:MODEL'}"])


def _answer(model: _Model) -> Finding:
    """Make one short call."""
    from pytest_llmeval.core.errors import JudgeError
    from pytest_llmeval.judge.clients import connect, connect_embeddings
    from pytest_llmeval.judge.contract import JudgeRequest, Message

    spec = replace(model.spec, retries=0, timeout=min(model.spec.timeout, _TIMEOUT_S))
    messages = (Message("user", _QUESTION),)

    async def call() -> None:
        client = (connect_embeddings if model.role == "embeddings" else connect)(spec)
        try:
            await client.complete(JudgeRequest(messages, spec.name, spec.request_parameters()))
        finally:
            await client.aclose()

    begin = time.perf_counter()
    try:
        asyncio.run(call())
    except JudgeError as error:
        return Finding("failing", f"{model.name} does not answer: {error}", ["check model, base_url and key"])
    return Finding("ok", f"{model.name} answered in {seconds(time.perf_counter() - begin)}")
