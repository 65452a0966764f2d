"""The judges of a suite file, checked."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

from pytest_llmeval.core import FieldsError, counted, unknown_name
from pytest_llmeval.services import Secrets, ServiceAddress

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

Reduce: TypeAlias = Literal["mean", "median", "majority", "unanimous"]
"""The ways to reduce the verdicts of several judges to one."""

_USUAL = {"claude": "anthropic", "gemini": "gemini"}
"""What names of models begin with, and who has them."""

_VERSION = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_LONGEST_TIMEOUT = 24 * 60 * 60
_MOST_RETRIES = 100
_OWN_FIELDS = ("max_tokens", "seed", "temperature")
_SET_BY_CLIENT = ("messages", "model", "stream", "system", "tool_choice", "tools")
_SECRET_VALUE = re.compile(r"\s*(bearer\s+\S|sk-[\w-]{16})", re.IGNORECASE)


_MILLION = 1_000_000
_SAMPLE = 1000
"""Tokens priced to find a price per token: fewer than any provider's surcharge for long prompts begins at."""


@dataclass(frozen=True)
class Price:
    """The price of a model in USD per million tokens.

    Attributes:
        input: Of tokens read.
        output: Of tokens written.
        batch: The share of the price that deferred calls cost, from 0 to 1.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    input: float
    output: float
    batch: float = 0.5

    @property
    def of_batches(self) -> "Price":
        """The price of deferred calls."""
        return Price(self.input * self.batch, self.output * self.batch)

    @staticmethod
    def of_model(model: str) -> "Price | None":
        """The published price of a model ``PROVIDER:NAME``, or of a name alone; ``None`` if it has none."""
        return _price_of_model(model)

    def of_tokens(self, read: float, written: float) -> float:
        """The cost of tokens in USD.

        Example:
            >>> Price(input=0.25, output=2).of_tokens(2000, 500)
            0.0015
        """
        return (self.input * read + self.output * written) / _MILLION

    def __post_init__(self) -> None:
        prices = (("input", self.input), ("output", self.output))
        expected = "expected USD per million tokens, at least 0"
        wrong = [(name, f"found {value}, {expected}") for name, value in prices if not 0 <= value < math.inf]
        if not 0 <= self.batch <= 1:
            wrong.append(("batch", f"found {self.batch}, expected a share of the price from 0 to 1"))
        if wrong:
            raise FieldsError(wrong)


@lru_cache(maxsize=256)
def _price_of_model(model: str) -> Price | None:
    """The published price of a model ``PROVIDER:NAME``, or of a name alone; ``None`` if it has none."""
    provider, colon, name = model.partition(":")
    return (_find_published_price(provider, name) if colon else None) or _find_published_price(None, model)


def _find_published_price(provider: str | None, name: str) -> Price | None:
    """A model's token price in the list of genai-prices; ``None`` if it is unknown or incomplete."""
    calculation = _calculation(provider, name)
    if calculation is None or not _by_tokens(calculation):
        return None
    factor = _MILLION // _SAMPLE
    return Price(float(calculation.input_price * factor), float(calculation.output_price * factor))


def _by_tokens(calculation: "PriceCalculation") -> bool:
    """Whether genai-prices has prices for input and output tokens of a model, and for nothing else that a call uses."""
    listed = calculation.model_price
    complete = listed.input_mtok is not None and listed.output_mtok is not None
    return complete and calculation.total_price == calculation.input_price + calculation.output_price


def _calculation(provider: str | None, name: str) -> "PriceCalculation | None":
    """The price that genai-prices calculates for sample tokens of a model; ``None`` if it knows none."""
    try:
        from genai_prices import Usage as PricedUsage
        from genai_prices import calc_price
    except ModuleNotFoundError:  # `MissingExtraError.price_hint` says so where a price is missed
        return None
    try:
        return calc_price(PricedUsage(input_tokens=_SAMPLE, output_tokens=_SAMPLE), name, provider_id=provider)
    except (LookupError, ValueError):
        return None


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
        media: Whether the model is sent images, sounds and documents. With ``refuse``, a case that has one is an error.
        api_version: Of the interface of Azure, such as ``2024-10-21``, which is the default; of no other provider.

    Raises:
        FieldsError: With every fault.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    OWN: ClassVar = "fixture:judge_client"
    """The model in cache keys if a fixture judges and no model is named."""
    PROVIDERS: ClassVar[dict[str, str | Callable[..., Any]]] = {
        "anthropic": "pytest_llmeval.judges.clients._http:connect",
        "azure": "pytest_llmeval.judges.clients._http:connect",
        "fixture": "pytest_llmeval.judges.clients:refuse_fixture",
        "gemini": "pytest_llmeval.judges.clients._http:connect",
        "openai": "pytest_llmeval.judges.clients._http:connect",
        "pydantic-ai": "pytest_llmeval.judges.clients._pydantic_ai:connect",
    }
    """Providers that may precede the colon of a model, each with the function of spec and patience that connects it."""

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
    media: Literal["send", "refuse"] = "send"
    api_version: str | None = None

    def __post_init__(self) -> None:
        if faults := tuple(self._faults()):
            raise FieldsError(faults)

    @property
    def jurors(self) -> "tuple[JudgeSpec, ...]":
        """The judge as a panel of one."""
        return (self,)

    @property
    def address(self) -> str | None:
        """The address at which the judge is served, with the version of the interface; ``None``: the provider's own."""
        return self.base_url if self.api_version is None else f"{self.base_url}?api-version={self.api_version}"

    @property
    def way(self) -> str:
        """Address and key source, which affect availability, not verdicts."""
        return f"{self.address} {self.api_key_env}"

    @property
    def provider(self) -> str | None:
        """The part of the model before the first colon; ``None`` without a model."""
        return None if self.model is None else self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """The part of the model after the first colon; empty without a model."""
        return "" if self.model is None else self.model.partition(":")[2]

    def request_parameters(self) -> dict[str, Any]:
        """The parameters that the user set, sorted; replies, and so cache keys, depend on them.

        Example:
            >>> from pytest_llmeval.judges._spec import JudgeSpec
            >>> JudgeSpec("openai:MODEL", temperature=0, parameters={"top_p": 0.9}, timeout=5).request_parameters()
            {'temperature': 0.0, 'top_p': 0.9}
        """
        temperature = None if self.temperature is None else float(self.temperature)
        own = {"max_tokens": self.max_tokens, "seed": self.seed, "temperature": temperature}
        parameters = {name: value for name, value in own.items() if value is not None} | self.parameters
        return {name: parameters[name] for name in sorted(parameters)}

    def _faults(self) -> Iterator[tuple[str, str]]:
        if self.model is not None and (fault := JudgeSpec.model_fault(self.model)):
            yield "model", fault
        if self.base_url is not None and (fault := JudgeSpec.url_fault(self.base_url)):
            yield "base_url", fault
        yield from self._number_faults()
        for path, fault in _parameter_faults(self.parameters):
            yield path, fault
        if self.api_key_env is not None and (fault := Secrets.variable_fault(self.api_key_env, "OPENAI_API_KEY")):
            yield "api_key_env", fault
        yield from self._misplaced()

    def _number_faults(self) -> Iterator[tuple[str, str]]:
        """Yield the faults of the judge's settings that are numbers."""
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
        """Yield the settings that the judge's provider does not have."""
        if self.provider in ("fixture", "pydantic-ai"):
            for name, value in (("base_url", self.base_url), ("api_key_env", self.api_key_env)):
                if value is not None:
                    expected = "expected it only with anthropic, azure, gemini or openai"
                    yield name, f"found it with the provider {self.provider}, {expected}"
        if self.provider == "azure" and self.base_url is None:
            yield "base_url", "the address of the resource is missing, such as https://NAME.openai.azure.com"
        if self.api_version is not None and self.provider != "azure":
            yield "api_version", f"found it with the provider {self.provider}, expected it only with azure"
        elif self.api_version is not None and not _VERSION.fullmatch(self.api_version):
            yield "api_version", f"found {self.api_version!r}, expected a version such as 2024-10-21"
        if self.provider == "anthropic" and self.seed is not None:
            yield "seed", f"found {self.seed}, expected none: the provider anthropic has no seed"

    @staticmethod
    def model_fault(model: str) -> str | None:
        """The fault of a judge's model name, if any."""
        provider, colon, name = model.partition(":")
        if not colon:
            likely = next((provider for begin, provider in _USUAL.items() if model.startswith(begin)), "openai")
            return f"found {model!r}, expected PROVIDER:NAME (did you mean '{likely}:{model}'?)"
        if provider not in JudgeSpec.PROVIDERS:
            return unknown_name("provider", provider, JudgeSpec.PROVIDERS)
        if not name.strip() or name != name.strip() or not name.isprintable():
            return f"found {model!r}, expected a name after {provider + ':'!r}"
        return None

    @staticmethod
    def url_fault(url: str) -> str | None:
        """The fault of a judge's ``base_url``, if any."""
        if fault := ServiceAddress(url).fault(
            "an address such as http://localhost:8000/v1", "the key in the environment"
        ):
            return fault
        if "?" in url or "#" in url:
            return "found an address with '?' or '#', expected none, because a path is appended"
        return None

    @property
    def known_price(self) -> Price | None:
        """The price of the model; ``None`` if it is unknown, which is never to be read as free.

        The user's own price comes first, then the list of genai-prices, if it is installed; nothing is fetched. Prices
        for long prompts, cached tokens and batches are not considered. A server of one's own, a fixture, and a model
        that is not in the list have no known price.
        """
        if self.price is not None:
            return self.price
        provider, name = self._find_in_price_list()
        return _find_published_price(provider, name) if provider else None

    @property
    def is_retired(self) -> bool:
        """Whether the installed genai-prices lists the model as one that its provider gives up."""
        provider, name = self._find_in_price_list()
        calculation = _calculation(provider, name) if provider else None
        return calculation is not None and bool(calculation.model.deprecated)

    def _find_in_price_list(self) -> tuple[str | None, str]:
        """The provider and model in the price list genai-prices; no provider if it has none."""
        if self.model is None or self.base_url is not None:
            return None, ""
        match self.provider:
            case "openai" | "anthropic":
                return self.provider, self.name
            case "gemini":
                return "google", self.name
            case "pydantic-ai":
                provider, _, name = self.name.partition(":")
                return provider, name
            case _:
                return None, ""


def _parameter_faults(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the faults of a judge's ``parameters``: reserved names, values that are not JSON data, secrets."""
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
    """Yield the places of apparent secrets in a judge's ``parameters``; the message never contains them."""
    expected = "expected none: keys are read from the environment only, see api_key_env"
    if isinstance(value, Mapping):
        for name, part in value.items():
            if isinstance(part, str) and Secrets.is_name(str(name)):
                yield f"{path}.{name}", f"found an apparent secret, {expected}"
            else:
                yield from _secrets(part, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            yield from _secrets(part, f"{path}[{number}]")
    elif isinstance(value, str) and _SECRET_VALUE.match(value):
        yield path, f"found an apparent secret, {expected}"


_CASCADE = "cascade ("
_FEWEST_OPINIONS, _MOST_OPINIONS = 2, 9


@dataclass(frozen=True)
class Doubt:
    """The condition under which the small judge of a cascade is unsure.

    Attributes:
        score_between: Its score, as a share of the scale of the mode, is between these two, or equal to one of them.
        disagree: It is asked so many times, and two of its verdicts disagree: scores by more than the tolerance of the
            mode, words if they differ.

    Raises:
        FieldsError: With every fault.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    score_between: list[float] | None = None
    disagree: int | None = None

    def __post_init__(self) -> None:
        if (self.score_between is None) == (self.disagree is None):
            both = "found score_between and disagree, expected one of them"
            fault = "score_between or disagree is missing" if self.disagree is None else both
            raise FieldsError([("score_between", fault)])
        if self.score_between is not None and not self._is_part_of_a_scale(self.score_between):
            expected = "expected two numbers from 0 to 1, the smaller one first"
            raise FieldsError([("score_between", f"found {self.score_between}, {expected}")])
        if self.disagree is not None and not _FEWEST_OPINIONS <= self.disagree <= _MOST_OPINIONS:
            raise FieldsError([("disagree", f"found {self.disagree}, expected a whole number from 2 to 9")])

    @staticmethod
    def _is_part_of_a_scale(limits: Sequence[float]) -> bool:
        return len(limits) == 2 and 0 <= limits[0] < limits[1] <= 1  # noqa: PLR2004 (two ends)

    def __str__(self) -> str:
        if self.score_between is not None:
            low, high = self.score_between
            return f"score_between {low:g}..{high:g}"
        return f"disagree {self.disagree}"


@dataclass(frozen=True)
class CascadeRule:
    """The rule by which the large judge of a cascade is asked.

    Attributes:
        when: When the small one is unsure.
        audit: Share of the questions of which the small one is sure that the large one answers nevertheless, from 0 to
            1. With 0, nothing says what the small judge gets wrong.
        seed: Of the random choice of these questions.

    Raises:
        FieldsError: With every fault.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    when: Doubt
    audit: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        faults = []
        if not 0 <= self.audit <= 1:
            faults.append(("audit", f"found {self.audit}, expected a share from 0 to 1"))
        if self.seed < 0:
            faults.append(("seed", f"found {self.seed}, expected a whole number of at least 0"))
        if faults:
            raise FieldsError(faults)

    @property
    def opinions(self) -> int:
        """The number of times that the small judge is asked."""
        return 1 if self.when.disagree is None else self.when.disagree

    def audits(self, keys: Sequence[str]) -> bool:
        """Whether questions belong to the random share, the same in every process and run.

        Args:
            keys: Those of the questions to the small judge which one evaluator asks about one case.
        """
        drawn = sha256(" ".join([str(self.seed), *keys]).encode()).digest()
        return int.from_bytes(drawn[:8], "big") < self.audit * 2**64

    def __str__(self) -> str:
        return f"{self.when}, audit {self.audit:g}, seed {self.seed}"


def cascade_model(models: Sequence[str], rule: CascadeRule) -> str:
    """The text that names the models of a cascade, in place of the model of a single judge.

    >>> cascade_model(["openai:a", "openai:b"], CascadeRule(Doubt([0.3, 0.8])))
    'cascade (score_between 0.3..0.8, audit 0.05, seed 0): openai:a, openai:b'
    """
    return f"{_CASCADE}{rule}): {', '.join(models)}"


_FEWEST = 2
_PANEL = "panel ("
_JURORS = "): "


@dataclass(frozen=True)
class PanelSpec:
    """The judges of a suite file that names several, as a panel or a cascade.

    Attributes:
        judges: The jurors, two or more, each with a model.
        reduce: How their verdicts become one; ``None``: the majority of words such as yes and no, the mean of scores.
        min_judges: How many verdicts a question needs; ``None``: that of every juror.
        cascade: When the second of two is asked, where the first one's verdict may be enough; ``None``: always.

    Raises:
        FieldsError: With every fault.
    """

    judges: tuple[JudgeSpec, ...]
    reduce: Reduce | None = None
    min_judges: int | None = None
    cascade: CascadeRule | None = None

    def __post_init__(self) -> None:
        faults = panel_faults(len(self.judges), self.reduce, self.min_judges)
        if any(spec.model is None for spec in self.judges):
            faults.append(("judges", "found a juror without a model, expected PROVIDER:NAME"))
        calls = [(spec.model, repr(spec.request_parameters())) for spec in self.judges]
        if twice := next((call[0] for number, call in enumerate(calls) if call in calls[:number]), None):
            faults.append(("judges", f"found {twice!r} twice with the same parameters, expected distinct judges"))
        if faults:
            raise FieldsError(faults)

    @property
    def jurors(self) -> tuple[JudgeSpec, ...]:
        """The judges of which each is asked."""
        return self.judges

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the jurors in reports: their models, numbered if several are the same."""
        return tuple(numbered([str(spec.model) for spec in self.judges]))

    @property
    def least(self) -> int:
        """The number of verdicts that a question needs."""
        return self.min_judges or len(self.judges)

    @staticmethod
    def is_cascade(model: str) -> bool:
        """Whether a model is a cascade; see `cascade_model`."""
        return model.startswith(_CASCADE)

    @staticmethod
    def is_panel(model: str) -> bool:
        """Whether a model is a panel; see `panel_model`."""
        return model.startswith(_PANEL)

    @staticmethod
    def replaced_jurors(old: str, new: str) -> list[tuple[str, str]]:
        """The jurors who left a panel and took the place, unless more than that has changed; see `panel_model`.

        >>> how = "panel (mean, 2 of 2): openai:a, "
        >>> PanelSpec.replaced_jurors(how + "openai:a", how + "openai:b")
        [('openai:a #2', 'openai:b')]
        """
        (how, _, before), (how_now, _, after) = (model.partition(_JURORS) for model in (old, new))
        jurors, others = before.split(", "), after.split(", ")
        if how != how_now or len(jurors) != len(others):
            return []
        named = zip(numbered(jurors), jurors, others, strict=True)
        return [(name, now) for name, was, now in named if was != now]


def numbered(names: "Sequence[str]") -> list[str]:
    """The names of a panel's jurors, with numbers for those that occur more than once.

    >>> numbered(["openai:a", "openai:b", "openai:a"])
    ['openai:a #1', 'openai:b', 'openai:a #2']
    """
    return [
        name if names.count(name) == 1 else f"{name} #{names[: number + 1].count(name)}"
        for number, name in enumerate(names)
    ]


def panel_faults(jurors: int, reduce: Any, least: Any) -> list[tuple[str, str]]:
    """The faults of a panel of judges, by the name of the setting."""
    faults = []
    if jurors < _FEWEST:
        faults.append(("judges", f"found {counted(jurors, 'judge')}, expected two or more"))
    if reduce is not None and reduce not in get_args(Reduce):
        faults.append(("reduce", f"found {reduce!r}, expected one of {', '.join(get_args(Reduce))}"))
    if least is not None and not (type(least) is int and 1 <= least <= jurors):
        faults.append(("min_judges", f"found {least!r}, expected 1 to {jurors}, the number of judges"))
    return faults


def panel_model(models: "Sequence[str]", reduce: Reduce | None, least: int) -> str:
    """The text that names the models of a panel, in place of the model of a single judge.

    >>> panel_model(["openai:a", "openai:b"], "mean", 2)
    'panel (mean, 2 of 2): openai:a, openai:b'
    """
    return f"{_PANEL}{reduce or 'majority or mean'}, {least} of {len(models)}{_JURORS}{', '.join(models)}"
