"""The ``judge`` of a suite file: model, address and call parameters, checked."""

__all__ = ("PROVIDERS", "JudgeSpec", "Price", "Reduce")

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from pytest_llmeval.core.errors import FieldsError
from pytest_llmeval.core.wording import suggest
from pytest_llmeval.services.secrets import address_fault, is_secret_name, variable_fault

PROVIDERS = ("anthropic", "fixture", "openai", "pydantic-ai")
"""Providers that may precede the colon of a model."""

Reduce: TypeAlias = Literal["mean", "median", "majority", "unanimous"]
"""How the verdicts of several judges become one."""

_LONGEST_TIMEOUT = 24 * 60 * 60
_MOST_RETRIES = 100
_OWN_FIELDS = ("max_tokens", "seed", "temperature")
_SET_BY_CLIENT = ("messages", "model", "stream", "system", "tool_choice", "tools")
_SECRET_VALUE = re.compile(r"\s*(bearer\s+\S|sk-[\w-]{16})", re.IGNORECASE)


@dataclass(frozen=True)
class Price:
    """What a model costs, in USD per million tokens.

    Attributes:
        input: Of tokens read.
        output: Of tokens written.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    input: float
    output: float

    def __post_init__(self) -> None:
        prices = (("input", self.input), ("output", self.output))
        wanted = "expected USD per million tokens, at least 0"
        if wrong := [(name, f"found {value}, {wanted}") for name, value in prices if not 0 <= value < math.inf]:
            raise FieldsError(wrong)


@dataclass(frozen=True)
class JudgeSpec:
    """A judge as a suite file, the ini file or the command line describes it.

    Attributes:
        model: ``PROVIDER:NAME``; the providers are `PROVIDERS`. ``None`` where none is chosen yet.
        base_url: Where the provider's interface is served, such as ``http://localhost:8000/v1``; ``None`` for the
            provider's own address.
        temperature: At least 0; ``None`` leaves it to the provider, as every parameter that is not set.
        max_tokens: Most tokens of a reply, at least 1.
        seed: At least 0, for providers that have one.
        parameters: Further parameters of the provider, sent unchanged.
        timeout: Seconds that one attempt may take.
        retries: Further attempts after one that failed for a passing reason.
        api_key_env: The environment variable that holds the key; ``None`` for the provider's usual one.
        structured: ``auto`` has the provider enforce the form of replies where it can; ``off`` never asks it to.
        price: What the model costs; ``None`` looks it up where it is published.

    Raises:
        FieldsError: With every fault.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    model: str | None = None
    base_url: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    timeout: float = 60
    retries: int = 5
    api_key_env: str | None = None
    structured: Literal["auto", "off"] = "auto"
    price: Price | None = None

    def __post_init__(self) -> None:
        if faults := tuple(self._faults()):
            raise FieldsError(faults)

    @property
    def provider(self) -> str | None:
        """The part of the model before the first colon; ``None`` without a model."""
        return None if self.model is None else self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """The part of the model after the first colon; empty without a model."""
        return "" if self.model is None else self.model.partition(":")[2]

    def request_parameters(self) -> dict[str, Any]:
        """Return what the user set of what the model is sent, sorted: what replies, and so cache keys, depend on.

        Example:
            >>> from pytest_llmeval.judge.spec import JudgeSpec
            >>> JudgeSpec("openai:MODEL", temperature=0, parameters={"top_p": 0.9}, timeout=5).request_parameters()
            {'temperature': 0.0, 'top_p': 0.9}
        """
        temperature = None if self.temperature is None else float(self.temperature)
        own = {"max_tokens": self.max_tokens, "seed": self.seed, "temperature": temperature}
        given = {name: value for name, value in own.items() if value is not None} | self.parameters
        return {name: given[name] for name in sorted(given)}

    def _faults(self) -> Iterator[tuple[str, str]]:
        if self.model is not None and (fault := _model_fault(self.model)):
            yield "model", fault
        if self.base_url is not None and (fault := _url_fault(self.base_url)):
            yield "base_url", fault
        yield from self._number_faults()
        for path, fault in _parameter_faults(self.parameters):
            yield path, fault
        if self.api_key_env is not None and (fault := variable_fault(self.api_key_env, "OPENAI_API_KEY")):
            yield "api_key_env", fault
        yield from self._misplaced()

    def _number_faults(self) -> Iterator[tuple[str, str]]:
        if self.temperature is not None and not (math.isfinite(self.temperature) and self.temperature >= 0):
            yield "temperature", f"found {self.temperature}, expected a number of at least 0"
        if self.max_tokens is not None and self.max_tokens < 1:
            yield "max_tokens", f"found {self.max_tokens}, expected a whole number of at least 1"
        if self.seed is not None and self.seed < 0:
            yield "seed", f"found {self.seed}, expected a whole number of at least 0"
        if not 0 < self.timeout <= _LONGEST_TIMEOUT:
            yield "timeout", f"found {self.timeout}, expected seconds above 0 and at most a day"
        if not 0 <= self.retries <= _MOST_RETRIES:
            yield "retries", f"found {self.retries}, expected a whole number from 0 to {_MOST_RETRIES}"

    def _misplaced(self) -> Iterator[tuple[str, str]]:
        if self.provider in ("fixture", "pydantic-ai"):
            for name, value in (("base_url", self.base_url), ("api_key_env", self.api_key_env)):
                if value is not None:
                    yield name, f"found it with the provider {self.provider}, expected it only with anthropic or openai"
        if self.provider == "anthropic" and self.seed is not None:
            yield "seed", f"found {self.seed}, expected none: the provider anthropic has no seed"


def _model_fault(model: str) -> str | None:
    provider, colon, name = model.partition(":")
    if not colon:
        likely = "anthropic" if model.startswith("claude") else "openai"
        return f"found {model!r}, expected PROVIDER:NAME (did you mean '{likely}:{model}'?)"
    if provider not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        return f"found the unknown provider {provider!r}, expected one of {known}{suggest(provider, PROVIDERS)}"
    if not name.strip() or name != name.strip() or not name.isprintable():
        return f"found {model!r}, expected a name after {provider + ':'!r}"
    return None


def _url_fault(url: str) -> str | None:
    if fault := address_fault(url, "an address such as http://localhost:8000/v1", "the key in the environment"):
        return fault
    if "?" in url or "#" in url:
        return "found an address with '?' or '#', expected none, because a path is appended"
    return None


def _parameter_faults(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in parameters:
        if name in _OWN_FIELDS:
            yield f"parameters.{name}", f"found {name!r} under parameters, expected it directly under judge"
        elif name in _SET_BY_CLIENT:
            yield f"parameters.{name}", "found a parameter that the client sets itself, expected none"
    try:
        json.dumps(parameters, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        yield "parameters", f"found a value that is not JSON data ({error})"
    else:
        yield from _secrets(parameters, "parameters")


def _secrets(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the places of apparent secrets; the message never contains them."""
    wanted = "expected none: keys are read from the environment only, see api_key_env"
    if isinstance(value, Mapping):
        for name, each in value.items():
            if isinstance(each, str) and is_secret_name(str(name)):
                yield f"{path}.{name}", f"found an apparent secret, {wanted}"
            else:
                yield from _secrets(each, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _secrets(each, f"{path}[{number}]")
    elif isinstance(value, str) and _SECRET_VALUE.match(value):
        yield path, f"found an apparent secret, {wanted}"
