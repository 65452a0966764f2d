"""Providers of promptfoo as models."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pytest_llmeval.core import FieldsError, excerpt
from pytest_llmeval.data import DeclaredType
from pytest_llmeval.exchange._ledger import Fate, LeftOutError, SourceLedger, SourcePath, as_mapping, as_text, each_of
from pytest_llmeval.exchange._templates import is_template, rewritten
from pytest_llmeval.exchange.promptfoo._prompts import ConfigFiles
from pytest_llmeval.exchange.promptfoo._services import SCHEMES, ImportedService, read_service
from pytest_llmeval.judges import JudgeSpec

_SERVERS: Final = {
    "cerebras": ("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    "cometapi": ("https://api.cometapi.com/v1", "COMETAPI_KEY"),
    "deepseek": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "fireworks": ("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "github": ("https://models.github.ai/inference", "GITHUB_TOKEN"),
    "google": ("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "litellm": ("http://0.0.0.0:4000", "LITELLM_API_KEY"),
    "llama": ("http://localhost:8080/v1", None),
    "localai": ("http://localhost:8080/v1", None),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "ollama": ("http://localhost:11434/v1", None),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "perplexity": ("https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    "togetherai": ("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "xai": ("https://api.x.ai/v1", "XAI_API_KEY"),
}
"""Servers with an interface like OpenAI's: address, and the variable that holds the key."""

_FRAMEWORK: Final = {
    "azure": "azure",
    "azureopenai": "azure",
    "bedrock": "bedrock",
    "cohere": "cohere",
    "huggingface": "huggingface",
    "vertex": "google-vertex",
}
"""Providers that pydantic-ai reaches, by its name."""

_MODES = frozenset({"chat", "messages", "responses", "text-generation"})
_NO_TEXT = frozenset(
    {
        "agents",
        "assistant",
        "chatkit",
        "classification",
        "completion",
        "converse",
        "embedding",
        "embeddings",
        "feature-extraction",
        "image",
        "moderation",
        "realtime",
        "text-classification",
        "token-classification",
        "transcription",
        "video",
        "voice",
    }
)
_OWN: Final = {
    "apiBaseUrl": "base_url",
    "apiKeyEnvar": "api_key_env",
    "apiVersion": "api_version",
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_new_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "seed": "seed",
    "temperature": "temperature",
}
"""Options that are settings here."""

_SYSTEM = frozenset({"instructions", "systemPrompt", "system_prompt"})
_PARAMETERS = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "stop",
        "top_logprobs",
        "top_p",
        "verbosity",
    }
)
_TOOLS = frozenset(
    {"functions", "functionToolCallbacks", "tools", "tool_choice", "function_call", "mcp", "append_allowed_tools"}
)
_ROUTING = frozenset(
    {
        "apiBaseUrl",
        "apiHost",
        "apiKey",
        "apiKeyEnvar",
        "apiVersion",
        "basePath",
        "baseUrl",
        "baseURL",
        "deployment",
        "endpoint",
        "env",
        "headers",
        "organization",
        "projectId",
        "proxy",
        "proxyUrl",
        "region",
    }
)
"""Settings that decide where texts go, and with which key: had exactly, or the provider is not imported."""

_LEFT_OUT = {
    "delay": "calls are limited with retries and --llmeval-concurrency",
    "env": "set the variables in the environment",
    "inputs": "write them into the inputs of the cases",
    "passthrough": "write them as parameters of the system",
    "prompts": "each system has one prompt: see the systems that were written",
}
_ENV_KEY = re.compile(r"\{\{\s*env\.([A-Za-z_]\w*)\s*\}\}|\$\{?([A-Za-z_]\w*)\}?")


@dataclass
class ImportedModel:
    """A provider of promptfoo as a model of a suite.

    Attributes:
        label: Its name in reports.
        settings: As a system of a suite file has them, without prompts.
        identifier: Name of the provider in the source.
        path: Its place.
        ledger: Of its file.
        prompts: Labels of its prompts; ``None`` for all.
        system: Text of its system prompt.
    """

    label: str
    settings: dict[str, Any]
    identifier: str
    path: SourcePath
    ledger: SourceLedger
    prompts: list[str] | None = None
    system: str = ""


_AZURE: Final = ("azure", "azureopenai")
_AZURE_VERSION: Final = "2024-12-01-preview"
_AZURE_KEY: Final = "AZURE_API_KEY"
"""Version and variable of promptfoo where a provider names none."""


def model_of(identifier: str, options: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], str]:
    """The settings of the model that a promptfoo provider is, and the differences; empty if there are none.

    Args:
        identifier: Of a provider, such as ``openai:chat:NAME``.
        options: Its ``config``.

    Raises:
        LeftOutError: It is none that could be asked here.
    """
    if is_template(identifier):
        raise LeftOutError(f"its name has a template, {excerpt(identifier, 60)}")
    scheme, _, model = identifier.partition(":")
    if scheme == "adaline":
        raise LeftOutError("texts would not go through the gateway of adaline; name its model")
    if scheme in ("http", "https"):
        raise LeftOutError(
            "it is a service, and names no body here; write a target with http: {url, request, response}"
        )
    if scheme in ("file", "exec", "python", "ruby", "golang", "package") or model.startswith("//"):
        raise LeftOutError(
            "it is code or a service of its own; write a target: python: MODULE:FUNCTION, http or command"
        )
    parts = model.split(":")
    if not model or parts[0] in _NO_TEXT:
        raise LeftOutError("it is no model that answers messages here; write a target: python: MODULE:FUNCTION")
    mode = parts[0] if parts[0] in _MODES and len(parts) > 1 else ""
    name = model[len(mode) + 1 :] if mode else model
    if scheme in ("openai", "anthropic"):
        differs = "asked through chat completions" if mode == "responses" else ""
        return {"model": f"{scheme}:{name}"}, differs
    if scheme in _SERVERS:
        url, key = _SERVERS[scheme]
        settings = {"model": f"openai:{name}", "base_url": url, **({"api_key_env": key} if key else {})}
        return settings, f"asked through the interface at {url} that is like OpenAI's"
    if scheme in _AZURE and {"apiHost", "apiBaseUrl"} & as_mapping(options).keys():
        settings = {"model": f"azure:{name}", "api_version": _AZURE_VERSION, "api_key_env": _AZURE_KEY}
        return settings, "asked through chat completions" if mode == "responses" else ""
    if scheme in _FRAMEWORK:
        return {"model": f"pydantic-ai:{_FRAMEWORK[scheme]}:{name}"}, "asked through pydantic-ai, an extra"
    raise LeftOutError(f"there is no client for {scheme}; write a target: python: MODULE:FUNCTION, http or command")


def embeddings_of(value: Any) -> Any:
    """The provider of embeddings in the provider option of a promptfoo test; ``None`` for none."""
    if isinstance(value, Mapping):
        return value.get("embedding", value if _is_embedding(value.get("id")) else None)
    return value if _is_embedding(value) else None


def text_grader(value: Any) -> Any:
    """The provider that grades texts in the provider option of a promptfoo test; ``None`` for none."""
    text = as_mapping(value).get("text")
    if isinstance(text, str | Mapping):
        return text
    return value if embeddings_of(value) is None else None


def _is_embedding(identifier: Any) -> bool:
    """Whether the identifier of a promptfoo provider names a model of embeddings."""
    return bool({"embedding", "embeddings", "sentence-similarity"} & {*as_text(identifier).split(":")})


def grader_of(value: Any) -> tuple[dict[str, Any], str]:
    """The settings of the judge that a promptfoo grader is, and the differences.

    Raises:
        LeftOutError: It cannot be asked here, or not where it is.
    """
    entry = value if isinstance(value, Mapping) else {"id": value}
    settings, differs = model_of(str(entry.get("id")), as_mapping(entry.get("config")))
    settings = _with_route(entry, settings)
    notes = [differs] if differs else []
    for option, setting in as_mapping(entry.get("config")).items():
        try:
            added = _settings_of(option, setting, settings)
        except LeftOutError:
            notes.append(f"without {option}")
            continue
        settings = _merged(settings, added)
    if entry.keys() - {"id", "config", "label"}:
        notes.append("without its further settings")
    if fault := _spec_fault(settings):
        raise LeftOutError(f"it cannot be a judge here ({fault})")
    return settings, "; ".join(notes)


def _merged(settings: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an imported model with further ones, whose parameters are merged."""
    if "parameters" in added:
        return {**settings, "parameters": {**settings.get("parameters", {}), **added["parameters"]}}
    return {**settings, **added}


def _with_route(entry: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an imported model with those that decide where texts go, and with which key.

    Raises:
        LeftOutError: Without one of these, texts would go elsewhere, or with another key.
    """
    options = as_mapping(entry.get("config"))
    faults = dict.fromkeys(_ROUTING & entry.keys(), "set it in the environment")
    routed = dict(settings)
    for option in sorted(_ROUTING & options.keys()):
        try:
            added = _settings_of(option, options[option], settings)
            (value,) = added.values()
            if not isinstance(value, str) or is_template(value):
                faults[option] = "it is no plain text"
            routed |= added
        except LeftOutError as error:
            faults[option] = str(error)
    if not faults and routed != settings and (fault := _spec_fault(routed)):
        faults[", ".join(sorted(_ROUTING & options.keys()))] = fault
    for option, fault in sorted(faults.items()):
        why = "decides where texts go, or with which key, and cannot be had here"
        raise LeftOutError(f"its {option} {why} ({fault})")
    return routed


@dataclass
class ProviderReader:
    """A reader of the providers in one configuration of promptfoo.

    Attributes:
        files: Files of the configuration.
        models: The imported models.
        services: The imported services.
    """

    files: ConfigFiles
    models: list[ImportedModel] = field(default_factory=list)
    services: list[ImportedService] = field(default_factory=list)

    def read(self, value: Any, path: SourcePath, ledger: SourceLedger) -> None:
        """Read ``providers``: one, or a list."""
        for entry, place in each_of(value, path):
            if isinstance(entry, str):
                self._named(entry, place, ledger)
            elif isinstance(entry, Mapping):
                self._described(entry, place, ledger)
            else:
                ledger.lost(place, "provider", "neither a name nor a mapping")

    def _named(self, name: str, path: SourcePath, ledger: SourceLedger) -> None:
        with ledger.losing(path, f"provider {name}"):
            if name.startswith("file://") and name.endswith((".yaml", ".yml", ".json")):
                inner = self.files.data(self.files.path(name))
                ledger.same(path, f"provider {name}", "its content is read")
                self.read(inner.data, (), inner)
            else:
                settings, differs = model_of(name)
                self._keep(ImportedModel(name, settings, name, path, ledger), differs)

    def _described(self, entry: Mapping[str, Any], path: SourcePath, ledger: SourceLedger) -> None:
        if "id" not in entry and len(entry) == 1:
            ((name, inner),) = entry.items()
            if isinstance(inner, Mapping):
                entry, path = {"id": name, **inner}, (*path, name)
        name = str(entry.get("id", ""))
        kind = f"provider {name}"
        try:
            if name.partition(":")[0] in SCHEMES:
                self._service(entry, path, ledger)
                return
            settings, differs = model_of(name, as_mapping(entry.get("config")))
            _refuse_code(entry)
            settings = _with_route(entry, settings)
        except LeftOutError as error:
            ledger.lost(path, kind, str(error))
            return
        label = entry.get("label")
        own = path if path[-1:] == (name,) else (*path, "id")
        model = ImportedModel(str(label or name), settings, name, own, ledger)
        for key, value in entry.items():
            place = (*path, key)
            if key == "config" and isinstance(value, Mapping):
                for option, setting in value.items():
                    self._option(model, option, setting, (*place, option), ledger)
            else:
                _setting(model, key, value, place)
        self._keep(model, differs)

    def _service(self, entry: Mapping[str, Any], path: SourcePath, ledger: SourceLedger) -> None:
        """Keep an HTTP provider, if it can be had exactly.

        Raises:
            LeftOutError: It cannot.
        """
        if "transform" in entry:
            _refuse_code(entry)
        service = read_service(entry, path, ledger)
        for key, value in entry.items():
            if key != "config":
                _setting(service, key, value, (*path, key))
        service.path = (*path, "id") if path[-1:] != (entry["id"],) else path
        ledger.same(service.path, f"provider {entry['id']}", "target http", service.differences)
        self.services.append(service)

    def _option(self, model: ImportedModel, option: str, value: Any, path: SourcePath, ledger: SourceLedger) -> None:
        """Note one option of a model, and set it if it can be."""
        kind = f"option {option}"
        with ledger.losing(path, kind):
            if as_text(value).startswith("file://"):
                value = self.files.value(value)
            if option in _SYSTEM and isinstance(value, str):
                rewritten(value, str)
                model.system = value
                ledger.same(path, kind, "system_prompt")
                return
            added = _settings_of(option, value, model.settings)
            settings = _merged(model.settings, added)
            if fault := _spec_fault(settings):
                raise LeftOutError(f"it cannot be set here ({fault})")
            model.settings = settings
            ledger.same(path, kind, ", ".join(added.get("parameters", added)))

    def _keep(self, model: ImportedModel, differs: str) -> None:
        if fault := _spec_fault(model.settings):
            model.ledger.lost(model.path, f"provider {model.identifier}", f"it cannot be a model here ({fault})")
            return
        text = f"a system with model {model.settings['model']}"
        model.ledger.note(
            model.path,
            f"provider {model.identifier}",
            Fate.NEAR if differs else Fate.SAME,
            f"{text}; {differs}" if differs else text,
        )
        self.models.append(model)


def _setting(provider: ImportedModel | ImportedService, key: str, value: Any, path: SourcePath) -> None:
    """Note a setting of a promptfoo provider that is none of its options."""
    ledger = provider.ledger
    if key == "label":
        ledger.same(path, "label", "the name of the system")
    elif key == "prompts" and isinstance(value, list):
        provider.prompts = [str(label) for label in value]
        ledger.same(path, "prompts of a provider", "the system is combined with these only")
    elif key != "id":
        ledger.lost(path, f"provider {key}", _LEFT_OUT.get(key, "a system has no such setting here"))


def _settings_of(option: str, value: Any, model: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model that an option of a promptfoo provider becomes.

    Args:
        option: Its name.
        value: Its value.
        model: The other settings.

    Raises:
        LeftOutError: It is none.
    """
    if option in _TOOLS:
        raise LeftOutError("models get no tools here; write a target that calls them and returns tool_calls")
    if own := _OWN.get(option):
        return {own: value}
    if option in _PARAMETERS:
        return {"parameters": {option: value}}
    if option == "apiHost":
        address = str(value) if "://" in str(value) else f"https://{value}"
        return {"base_url": address if str(model["model"]).startswith("azure:") else f"{address}/v1"}
    if option == "apiKey":
        if key := _ENV_KEY.fullmatch(str(value)):
            return {"api_key_env": key[1] or key[2]}
        raise LeftOutError("keys are read from the environment only: set api_key_env")
    raise LeftOutError("a model has no such setting here; if its interface takes it, write it as one of its parameters")


def _refuse_code(entry: Mapping[str, Any]) -> None:
    """Refuse a promptfoo provider whose answers are changed by code.

    Raises:
        LeftOutError: They are.
    """
    for key in ("transform", "transformResponse"):
        if key in entry or key in as_mapping(entry.get("config")):
            why = f"its {key} changes answers by code, which is never executed"
            raise LeftOutError(f"{why}; write a target: python: MODULE:FUNCTION")


def _spec_fault(settings: Mapping[str, Any]) -> str | None:
    """The fault of an imported model's settings, if any."""
    from pydantic import ValidationError

    try:
        DeclaredType(JudgeSpec).read(settings)
    except FieldsError as error:
        return str(error)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return None
