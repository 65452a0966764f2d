"""HTTP providers of promptfoo as targets: providers.py with them would be longer than a module may be."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from pytest_llmeval.exchange._ledger import LeftOutError, SourceLedger, SourcePath, as_mapping, fit, numbered
from pytest_llmeval.exchange._templates import (
    Direction,
    TemplateError,
    VerdictDifference,
    filled_once,
    is_template,
    names_in,
)
from pytest_llmeval.services import Secrets
from pytest_llmeval.targets import TargetSpec

SCHEMES: Final = frozenset({"http", "https"})

_METHODS = frozenset({"GET", "POST", "PUT"})
_TIMEOUT = 300
"""Seconds that promptfoo waits for a reply."""

_ROUTES = frozenset(
    {
        "auth",
        "multipart",
        "request",
        "session",
        "sessionParser",
        "signatureAuth",
        "tls",
        "tool_choice",
        "tools",
        "transformRequest",
        "transformToolsFormat",
        "useHttps",
    }
)
"""Options that change what is sent, where to or with which key, and have no equal here."""

_OWN_NAMES = frozenset({"env", "evaluationId", "sessionId", "tool_choice", "tools"})
"""Names in templates that promptfoo fills by itself."""

_ENV = re.compile(r"\{\{-?\s*env\.([A-Za-z_]\w*)\s*-?\}\}")
_SUCCESS = re.compile(r"status\s*>=\s*200\s*&&\s*status\s*(?:<\s*300|<=\s*299)")
_STEP = r"(?:\?\.|\.)?\[\d+\]|(?:\?\.)?\[(?:'[^'\\.]+'|\"[^\"\\.]+\")\]|\??\.[A-Za-z_$][\w$]*"
_JSON_PATH = re.compile(rf"json((?:{_STEP})*)")
_STATUS = VerdictDifference(
    "replies with a status of 300 and above are errors here; there, redirects are followed and others are answers",
    Direction.STRICTER,
)
_NO_JSON = VerdictDifference("a reply that is not JSON is an error here", Direction.STRICTER)


@dataclass
class ImportedService:
    """An HTTP provider of promptfoo as the target of a suite.

    Attributes:
        label: Its name in reports; empty if the source has none.
        settings: Of the target, without the request.
        template: What is sent: a body, or the parameters of a query, with templates.
        identifier: Name of the provider in the source.
        path: Its place.
        ledger: Of its file.
        differences: Replies that are judged differently.
        prompts: Labels of its prompts; ``None`` for all.
    """

    label: str
    settings: dict[str, Any]
    template: Any
    identifier: str
    path: SourcePath
    ledger: SourceLedger
    differences: list[VerdictDifference] = field(default_factory=list)
    prompts: list[str] | None = None

    def target(self, prompt: str | None, inputs: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the target for a prompt; texts that the inputs of the cases lack are added to them.

        Args:
            prompt: As the source has it; ``None`` if there is none.
            inputs: Of the cases.

        Raises:
            LeftOutError: What is sent cannot be had here.
        """
        try:
            texts = _SentTexts(prompt, inputs, as_text=self.settings["method"] == "GET")
            request = texts.placed(self.template)
        except TemplateError as error:
            raise LeftOutError(f"what it sends needs {error}, which is never executed; {_INSTEAD}") from None
        settings = {**self.settings, "request": request}
        fault = next(TargetSpec.of_service(settings).faults(), None)
        if fault is not None:
            raise LeftOutError(f"it cannot be a target here: {'.'.join(map(str, fault[0]))}: {fault[1]}")
        texts.add()
        return {"http": settings}


_INSTEAD = "write a target: python: MODULE:FUNCTION"


def read_service(entry: Mapping[str, Any], path: SourcePath, ledger: SourceLedger) -> ImportedService:
    """Read an HTTP provider of promptfoo as a target, after noting its options.

    Raises:
        LeftOutError: What decides where texts go cannot be had exactly, or its answers are made by code.
    """
    name = str(entry.get("id", ""))
    config = as_mapping(entry.get("config"))
    if own := sorted(_ROUTES & {key for key, value in config.items() if value not in (None, False)}):
        raise LeftOutError(f"its {own[0]} decides what is sent, where to or with which key; {_INSTEAD}")
    if "env" in entry:
        raise LeftOutError("its env decides where texts go, or with which key: set it in the environment")
    method = str(config.get("method", "GET")).upper()
    if method not in _METHODS:
        raise LeftOutError(f"its method is {method}, expected GET, POST or PUT; {_INSTEAD}")
    response, differences = _response(config)
    settings = {
        "url": _address(str(config.get("url") or name), config, method),
        "method": method,
        **_headers(as_mapping(config.get("headers"))),
        **({"response": response} if response else {}),
        "timeout": _TIMEOUT,
    }
    if (retries := fit(int, config.get("maxRetries"))) is not None:
        settings["retries"] = retries
    sent = dict(as_mapping(config.get("queryParams"))) if method == "GET" else _body(config)
    for option, value in config.items():
        _note(option, value, method, (*path, "config", option), ledger)
    label = str(entry.get("label") or "")
    return ImportedService(label, settings, sent, name, path, ledger, differences)


def _note(option: str, value: Any, method: str, path: SourcePath, ledger: SourceLedger) -> None:
    """Note the fate of one option of an HTTP provider of promptfoo."""
    kind, is_get = f"option {option}", method == "GET"
    meanings = {
        "body": "GET sends none" if is_get else "request",
        "headers": "headers, headers_from_env",
        "maxRetries": "retries",
        "method": "method",
        "queryParams": "request" if is_get else "part of the url",
        "responseParser": "response",
        "transformResponse": "response",
        "url": "url",
    }
    if option in meanings:
        ledger.same(path, kind, meanings[option])
    elif option == "validateStatus" and _SUCCESS.fullmatch(str(value).strip()):
        ledger.same(path, kind, "replies with a status of 200 to 299 are answers")
    elif option == "validateStatus":
        ledger.lost(path, kind, "it is code; replies with a status of 200 to 299 are answers here, and others errors")
    else:
        ledger.lost(path, kind, "a target has no such setting here")


def _address(url: str, config: Mapping[str, Any], method: str) -> str:
    """The address of a promptfoo HTTP provider, with parameters that are the same for all cases."""
    if is_template(url):
        raise LeftOutError("its url has a template, and decides where texts go")
    fixed = {} if method == "GET" else as_mapping(config.get("queryParams"))
    texts = fit(dict[str, str], fixed)
    if texts is None or any(map(is_template, texts.values())):
        raise LeftOutError(f"its queryParams have templates, which only a GET request fills here; {_INSTEAD}")
    if any(map(Secrets.is_name, as_mapping(config.get("queryParams")))):
        raise LeftOutError("its queryParams have a key; keys are read from the environment only: headers_from_env")
    if "?" in url and (config.get("queryParams") or method == "GET"):
        raise LeftOutError("its url has parameters besides queryParams; write all of them under queryParams")
    return f"{url}?{urlencode(fixed)}" if fixed else url


def _headers(headers: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The headers of a promptfoo HTTP provider, and those whose values are in the environment."""
    fixed, from_env = {}, {}
    for name, value in headers.items():
        if isinstance(value, str) and (match := _ENV.fullmatch(value)):
            from_env[name] = match[1]
        elif not isinstance(value, str) or is_template(value):
            why = "a header is a text, or {{env.NAME}} alone, as a key must not be in the file"
            raise LeftOutError(f"its header {name} decides with which key texts go: {why}")
        elif name.lower() == "content-type" and "application/json" not in value:
            raise LeftOutError(f"it sends {value}, and a target here sends JSON; {_INSTEAD}")
        else:
            fixed[name] = value
    return {**({"headers": fixed} if fixed else {}), **({"headers_from_env": from_env} if from_env else {})}


def _body(config: Mapping[str, Any]) -> Any:
    """The request body of a promptfoo HTTP provider, which must be JSON."""
    body = config.get("body")
    if isinstance(body, str):
        types = [value for name, value in as_mapping(config.get("headers")).items() if name.lower() == "content-type"]
        try:
            body = json.loads(body) if types else None
        except ValueError:
            body = None
    if not isinstance(body, Mapping | list):
        raise LeftOutError(f"its body is no JSON object or list before it is filled; {_INSTEAD}")
    return body


def _response(config: Mapping[str, Any]) -> tuple[str, list[VerdictDifference]]:
    """The path of the answer in a promptfoo HTTP provider's reply, and the replies that are judged differently."""
    code = config.get("transformResponse") or config.get("responseParser")
    if code is None:
        return "", [_STATUS, _NO_JSON]
    match = _JSON_PATH.fullmatch(str(code).strip())
    steps = re.findall(r"[\w$-]+", match[1]) if match else ["length"]
    if "length" in steps:
        why = "expected a path such as json.choices[0].text; other code is never executed"
        raise LeftOutError(f"its transformResponse changes answers by code, {why}; {_INSTEAD}")
    return ".".join(steps), [_STATUS]


class _SentTexts:
    """The texts of an HTTP provider's request that differ by case, as parts of the inputs.

    Args:
        prompt: As the source has it.
        inputs: Of the cases.
        as_text: Whether JSON in a text is sent as text, not as the value that it is.
    """

    def __init__(self, prompt: str | None, inputs: Sequence[dict[str, Any]], *, as_text: bool) -> None:
        self._inputs = inputs
        self._as_text = as_text
        self._variables = [
            input_ if prompt is None else {**input_, "prompt": _rendered_prompt(prompt, input_)} for input_ in inputs
        ]
        self._added: dict[str, list[Any]] = {}

    def placed(self, template: Any) -> Any:
        """Return a template with placeholders of a target.

        Raises:
            TemplateError: It has code, or needs what is no text.
        """
        if isinstance(template, Mapping):
            return {str(key): self.placed(child) for key, child in template.items()}
        if isinstance(template, list):
            return [self.placed(item) for item in template]
        if not isinstance(template, str):
            return template
        if not is_template(template):
            return self._sent(template)
        if own := next((name for name in names_in(template) if name.partition(".")[0] in _OWN_NAMES), None):
            raise TemplateError(f"{{{{ {own} }}}}")
        values = [self._sent(filled_once(template, variable)) for variable in self._variables]
        return {"$input": self._key(values, "prompt" if template.strip("{} ") == "prompt" else "text")}

    def add(self) -> None:
        """Add the texts to the inputs."""
        for key, values in self._added.items():
            for input_, value in zip(self._inputs, values, strict=True):
                input_[key] = value

    def _sent(self, text: str) -> Any:
        """Return a text, or the object or list that it is in JSON."""
        if self._as_text or not text.strip().startswith(("{", "[")):
            return text
        value = _as_json(text)
        return value if isinstance(value, dict | list) else text

    def _key(self, values: list[Any], name: str) -> str:
        """Return the key of the inputs that has these values; a new one if none has."""
        for key in self._variables[0] if self._variables else ():
            if "." not in key and all(
                isinstance(input_.get(key), str) and input_[key] == value
                for input_, value in zip(self._inputs, values, strict=True)
            ):
                return key
        known = {*self._added, *(key for input_ in self._inputs for key in input_)}
        key = next(
            candidate
            for candidate in numbered(name, "_{}")
            if candidate not in known or self._added.get(candidate) == values
        )
        self._added[key] = values
        return key


def _as_json(text: str) -> Any:
    """The value of a JSON text that promptfoo sends to a service; ``None`` for other texts."""
    try:
        return json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return None


def _no_json(literal: str) -> None:
    """Refuse NaN and infinities, which are no JSON, in a text that promptfoo sends to a service."""
    raise ValueError(literal)


def _rendered_prompt(prompt: str, values: Mapping[str, Any]) -> str:
    """A promptfoo prompt with the values of a case; texts inside JSON are filled one by one."""
    data = _as_json(prompt) if prompt.lstrip().startswith(("{", "[")) else None
    if data is None:
        return filled_once(prompt, values)
    return json.dumps(_each_text(data, lambda text: filled_once(text, values)), ensure_ascii=False, indent=2)


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """A prompt in JSON with a change made to each of its texts, except keys."""
    if isinstance(value, Mapping):
        return {key: _each_text(child, change) for key, child in value.items()}
    if isinstance(value, list):
        return [_each_text(item, change) for item in value]
    return change(value) if isinstance(value, str) else value
