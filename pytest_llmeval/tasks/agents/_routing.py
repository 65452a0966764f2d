"""Evaluator ``routing``, and the source ``tools``: rows about the tool or skill that is right for a request."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any, ClassVar, Final, Literal, NamedTuple

from pytest_llmeval.core import (
    MISSING,
    Case,
    ConfusionMatrix,
    Evaluator,
    EvaluatorError,
    FloatArray,
    LabelKey,
    LabelTable,
    Metric,
    Observation,
    Reads,
    Sums,
    listed,
    unknown_name,
)
from pytest_llmeval.data import CaseFile, CaseId, FileSource, kind
from pytest_llmeval.evaluators import AnswerText, AnswerValue, MissingTraceError, ToolCall, ratio
from pytest_llmeval.tasks.agents._arguments import ArgumentRules, pair_calls
from pytest_llmeval.tasks.agents._catalogue import ListedTool, ToolSchemas, read_catalogue

NONE = "none"
"""Stands for no tool in rows."""

_ROUTE_KEYS = ("expect", "not", "args")
_KEYS = ("id", "ask", *_ROUTE_KEYS, "labels", "prediction")


@dataclass(frozen=True)
class ToolsSource(FileSource):
    """Rows ``{ask, expect, not, args}`` of JSONL, or a list of them in JSON or YAML.

    ``expect`` is the name of a tool, or ``none``. ``not`` has siblings that must not fire, and ``args`` arguments that
    a call must have, among others. A row may have ``id``, ``labels`` and ``prediction``. Cases have the label ``tool``.

    Attributes:
        tools: The list of tools, relative to the data file: a file with definitions of OpenAI, Anthropic or MCP, or a
            folder with skills.
        show: Whether the input is ``{ask, tools}`` and not the text alone.
    """

    format: ClassVar[str] = "tools"

    tools: str = "tools.json"
    show: bool = True

    def read(self, file: CaseFile) -> None:
        """Add the rows whose tools exist."""
        try:
            catalogue = read_catalogue(file.path.parent / self.tools)
        except EvaluatorError as error:
            file.faults.add(0, 0, "", f"tools: {error}")
            return
        definitions = [tool.definition for tool in catalogue.values()]
        document = None if file.path.suffix.lower() == ".jsonl" else file.read_document()
        for number, row in enumerate(file.rows(document, "a list of rows"), 1):
            faults = list(_faults(row.data, catalogue))
            for key, message in faults:
                file.faults.add(row.line, row.column, row.path_to(key), message)
            if not faults:
                file.add(self._case(number, row.data, row.line, definitions), row.path, row.column)

    def _case(self, number: int, data: Mapping[str, Any], line: int, definitions: list[dict[str, Any]]) -> Case:
        name = data.get("id")
        expect = None if data["expect"] in (None, NONE) else data["expect"]
        expected = {"expect": expect, "not": _listed(data.get("not"))}
        return Case(
            id=str(number) if name is None else str(CaseId.read(name)),
            input={"ask": data["ask"], "tools": definitions} if self.show else data["ask"],
            expected=expected | ({} if data.get("args") is None else {"args": data["args"]}),
            prediction=data.get("prediction", MISSING),
            labels={**{key: str(value) for key, value in (data.get("labels") or {}).items()}, "tool": expect or NONE},
            line=line,
        )


def _listed(value: Any) -> list[Any]:
    """The tool names under ``not`` of a routing row, which may be absent, a single name or a list."""
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _faults(row: Any, catalogue: Mapping[str, ListedTool]) -> Iterator[tuple[str, str]]:
    """Yield key and message of each fault in a routing row."""
    if not isinstance(row, dict):
        yield "", f"found {kind(row)}, expected an object with ask and expect"
        return
    for key in row:
        if key not in _KEYS:
            yield key, unknown_name("key", key, _KEYS)
    if not isinstance(ask := row.get("ask"), str) or not ask.strip():
        yield "ask", f"found {'an empty text' if isinstance(ask, str) else kind(ask)}, expected a request"
    if "expect" not in row:
        yield "", "expect is missing"
    names = [("expect", row.get("expect"))] if row.get("expect") not in (None, NONE) else []
    for key, name in [*names, *(("not", sibling) for sibling in _listed(row.get("not")))]:
        if not isinstance(name, str) or name not in catalogue:
            yield key, unknown_name("tool", str(name), catalogue)
    if row.get("expect") in _listed(row.get("not")):
        yield "not", f"found {row['expect']!r}, which is expected, expected its siblings"
    for key in ("args", "labels"):
        if row.get(key) is not None and not isinstance(row[key], dict):
            yield key, f"found {kind(row[key])}, expected an object"
    if row.get("id") is not None and CaseId.read(row["id"]) is None:
        yield "id", f"found {kind(row['id'])}, expected text or a whole number"


_ALPHA: Final = 0.05
_FIRED: Final = "fired"
_HIT, _MISS = '"hit"', '"miss"'
_WORST: Final = ("worst_recall", "worst_precision", "worst_recall_low", "worst_precision_low")
_FAMILIES: Final = ("route_recall[tool]", "route_precision[tool]", "route_support[tool]", "route_fired[tool]")
_ARGUMENTS: Final = "route_arguments"


class Route(NamedTuple):
    """The expected tool of a routing case, with its arguments if the case states them.

    Attributes:
        tool: The tool that should fire; ``None`` for none.
        siblings: Tools that must not.
        arguments: Arguments that a call must have at least; ``None`` if they do not matter.
    """

    tool: str | None
    siblings: frozenset[str]
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True)
class Routing(Evaluator):
    """Recall and precision of each tool, those of the worst one, and false alarms.

    ``expected`` is the name of a tool, or ``{expect, not, args}``, where ``expect: none`` means that nothing fires. The
    prediction has tool calls as for `tools`; or it is a text with JSON, ``{"tool": NAME, "arguments": {...}}``, where
    null or ``none`` calls nothing. What has none of these is errored, which is not the same as calling nothing.

    * ``routing_accuracy``: cases in which the expected tool fires, and no other that counts;
    * ``route_recall[tool]``: cases that expect a tool in which it fires; ``route_precision[tool]``: cases in which it
      fires that expect it, 0 for a tool that is expected and never fires. Where some cases expect nothing, silence
      counts as a tool, ``(none)``;
    * ``worst_recall``, ``worst_precision``: the smallest of these; ``worst_recall_low``, ``worst_precision_low``: the
      smallest lower bound of their Wilson intervals, at 95 % for all tools together (Bonferroni);
    * ``false_alarms``: cases that expect nothing in which something fires;
    * ``route_arguments``: cases with expected arguments, or a schema of them, whose calls have them and are valid.

    Attributes:
        others: Whether any other tool that fires is wrong, or only those that a case excludes.
        ignore: Patterns of tools that do not count, such as ``search_*`` before the one that matters.
        tools: The list of tools, as for the source ``tools``: calls of others are malformed, and arguments are checked.

    Raises:
        ValueError: The list of tools cannot be used.
    """

    name = "routing"
    reads: ClassVar[Reads] = Reads("tool_calls", second_part="messages", lists=True)

    others: Literal["wrong", "allowed"] = "wrong"
    ignore: tuple[str, ...] = ()
    tools: str | None = field(default=None, metadata={"path": True})

    @cached_property
    def _catalogue(self) -> Mapping[str, ListedTool] | None:

        return None if self.tools is None else read_catalogue(Path(self.tools))

    @cached_property
    def _schemas(self) -> ToolSchemas | None:
        if self._catalogue is None:
            return None
        schemas = {name: dict(tool.parameters) for name, tool in self._catalogue.items() if tool.parameters}
        return ToolSchemas(schemas) if schemas else None

    def describe(self) -> Sequence[Metric]:
        """Return the metrics."""
        ignored = f"ignored:{','.join(sorted(self.ignore))}|" if self.ignore else ""
        signature = f"others:{self.others}|{ignored}v:{self.version}"
        adjusted = f"bonferroni:0.95|{signature}"
        return [
            Metric("routing_accuracy", signature=signature, averaged=True),
            *(Metric(name, signature=adjusted if name.endswith("_low") else signature) for name in _WORST),
            Metric("false_alarms", higher_is_better=False, signature=signature),
            Metric(_ARGUMENTS, signature=f"arguments:partial|{signature}"),
            *(Metric(name, high=None if name in _FAMILIES[2:] else 1.0, signature=signature) for name in _FAMILIES),
        ]

    def tables(self) -> Sequence[LabelTable | ConfusionMatrix]:
        """Return the rates of each tool, and what fired for what was expected."""
        columns = dict(zip(("recall", "precision", "expected", "fired"), _FAMILIES, strict=True))
        return [
            LabelTable("Tools", "tool", columns, counts=("expected", "fired")),
            ConfusionMatrix("Expected tool by row, fired by column"),
        ]

    def check(self, case: Case) -> Iterable[str]:
        """Yield what is wrong with the expectation, or with the list of tools."""
        try:
            known, _ = self._catalogue, self._schemas
        except (EvaluatorError, ValueError) as error:
            yield f"tools: {error}"
            return
        if case.expected is None:
            return
        route = _route(case.expected)
        if isinstance(route, str):
            yield route
        elif known is not None:
            named = sorted(route.siblings | ({route.tool} if route.tool is not None else set()))
            yield from (unknown_name("tool", name, known) for name in named if name not in known)

    def measure(self, case: Case) -> Observation:
        """Compare the tools that fired in one case with the expected one."""
        names = [metric.name for metric in self.describe() if "[" not in metric.name]
        route = None if case.expected is None else _route(case.expected)
        if route is None or isinstance(route, str):
            return Observation({}, undefined=dict.fromkeys(names, route or "no expected tool"))
        try:
            calls = _calls(case.prediction)
        except MissingTraceError as error:
            return Observation({}, errored=dict.fromkeys(names, str(error)))
        if self.tools is not None and Path(self.tools).is_dir():
            calls = [_of_skill(call) for call in calls]
        calls = [call for call in calls if not any(fnmatchcase(call.name, pattern) for pattern in self.ignore)]
        fired = list(dict.fromkeys(call.name for call in calls))
        faults = [f"tool_calls{call.fault}" for call in calls if call.fault]
        if self._catalogue is not None:
            unknown = [name for name in fired if name not in self._catalogue]
            faults += [f"found a call of {name!r}, which is no tool of the list" for name in unknown]
        wrong = [name for name in fired if self._is_wrong(name, route)]
        is_hit = not wrong if route.tool is None else route.tool in fired
        gold = LabelKey.NONE if route.tool is None else _key(route.tool)
        right = [LabelKey.NONE if route.tool is None else _key(route.tool)] if is_hit else []
        counts = {"routing.cases": 1.0, "routing.right": float(is_hit and not wrong and not faults)}
        counts[ConfusionMatrix.cell_name(gold, _HIT if is_hit else _MISS, _FIRED)] = 1.0
        counts |= {
            ConfusionMatrix.cell_name(gold, label): 1.0 for label in [*right, *map(_key, wrong)] or [LabelKey.NONE]
        }
        lines = [f"found {listed(fired) or 'no call'}, expected {route.tool or 'none'}"] if wrong or not is_hit else []
        undefined = {} if route.tool is None else {"false_alarms": "a tool is expected"}
        schema = None if self._schemas is None else self._schemas.schemas.get(route.tool or "")
        if route.tool is None or (route.arguments is None and schema is None):
            undefined[_ARGUMENTS] = "no arguments are expected"
        else:
            stated = self._arguments(
                route, [call for call in calls if call.name == route.tool], has_schema=bool(schema)
            )
            counts |= {"arguments.stated": 1.0, "arguments.right": float(is_hit and not stated)}
            lines += stated
        return Observation(counts, {"wrong": lines} if lines else {}, undefined, "; ".join(faults) or None)

    def _is_wrong(self, name: str, route: Route) -> bool:
        return name != route.tool and (self.others == "wrong" or route.tool is None or name in route.siblings)

    def _arguments(self, route: Route, calls: Sequence[ToolCall], *, has_schema: bool) -> list[str]:
        """The faults in the arguments of the calls of the expected tool."""
        faults = []
        if self._schemas is not None and has_schema:
            faults += [fault for call in calls if (fault := self._schemas.fault(call)) is not None]
        if route.arguments is not None and calls:
            pairing = pair_calls([ToolCall(calls[0].name, route.arguments)], calls, ArgumentRules("partial"))
            faults += [] if pairing.agreeing else list(pairing.lines)
        return faults

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Compute the metrics from summed counts."""
        import numpy as np

        zero = np.zeros(sums.length)
        cells, outcomes = ConfusionMatrix.read_cells(sums), ConfusionMatrix.read_cells(sums, _FIRED)
        alarms, silences = (outcomes.get((LabelKey.NONE, outcome), zero) for outcome in (_MISS, _HIT))
        expected_silence = {LabelKey.NONE} if any(gold == LabelKey.NONE for gold, _ in outcomes) else set()
        tools = {*(key for cell in cells for key in cell), *(gold for gold, _ in outcomes)} - {LabelKey.NONE}
        metrics: dict[str, FloatArray] = {
            "routing_accuracy": sums["routing.right"] / sums["routing.cases"],
            "false_alarms": ratio(alarms, alarms + silences),
            _ARGUMENTS: sums["arguments.right"] / sums["arguments.stated"],
        }
        rates: dict[str, list[tuple[FloatArray, FloatArray]]] = {"recall": [], "precision": []}
        for key in sorted(tools | expected_silence):
            hit, miss = (outcomes.get((key, outcome), zero) for outcome in (_HIT, _MISS))
            fired = sum((count for (_, predicted), count in cells.items() if predicted == key), zero)
            expected = hit + miss
            # A tool that is expected and never fires has a precision of 0, so that silence is no success.
            counted = np.where((fired == 0) & (expected > 0), expected, fired)
            rates["recall"].append((hit, expected))
            rates["precision"].append((hit, counted))
            name = LabelKey(key).name
            metrics[f"route_recall[{name}]"] = ratio(hit, expected)
            metrics[f"route_precision[{name}]"] = ratio(hit, counted)
            metrics[f"route_support[{name}]"] = expected
            metrics[f"route_fired[{name}]"] = fired
        for rate, pairs in rates.items():
            metrics[f"worst_{rate}"] = _least([ratio(*pair) for pair in pairs], zero)
            family = sum(((whole > 0).astype(float) for _, whole in pairs), zero)
            z2 = _squared_quantiles(family)
            metrics[f"worst_{rate}_low"] = _least([_wilson_low(*pair, z2) for pair in pairs], zero)
        return metrics


def _least(columns: Sequence[FloatArray], zero: FloatArray) -> FloatArray:
    """The smallest rate of any tool, row by row; absent rates are left out."""
    import numpy as np

    if not columns:
        return np.full_like(zero, np.nan)
    least = np.fmin.reduce(columns)
    return np.asarray(least, dtype=float)


def _squared_quantiles(family: FloatArray) -> FloatArray:
    """The squared normal quantiles by which the intervals of so many tools hold together."""
    import numpy as np

    quantiles = {
        size: NormalDist().inv_cdf(1 - _ALPHA / 2 / max(1.0, size)) ** 2 for size in np.unique(family).tolist()
    }
    return np.array([quantiles[size] for size in family.tolist()])


def _wilson_low(hits: FloatArray, cases: FloatArray, z2: FloatArray) -> FloatArray:
    """The lower Wilson bound of each tool's hit rate; NaN for a tool without cases."""
    import numpy as np

    n = np.where(cases > 0, cases, 1.0)
    half = np.sqrt(z2 * (hits * (n - hits) / n + z2 / 4))
    low = np.where(hits > 0, (hits + z2 / 2 - half) / (n + z2), 0.0)
    return np.where(cases > 0, low, np.nan)


def _key(name: str) -> str:
    """The form of a tool's name in the counted keys of routing; a name that has none counts as no tool."""
    return LabelKey.of_value(name) or LabelKey.NONE


def _route(expected: Any) -> Route | str:
    """The expected tool of a routing case, or the fault of its ``expected``."""
    if isinstance(expected, str):
        expected = {"expect": expected}
    if not isinstance(expected, Mapping) or "expect" not in expected:
        return f"found {AnswerValue(expected).kind}, expected the name of a tool, or an object with expect"
    if unknown := [str(key) for key in expected if key not in _ROUTE_KEYS]:
        return unknown_name("key", unknown[0], _ROUTE_KEYS)
    tool, siblings, arguments = expected["expect"], expected.get("not") or [], expected.get("args")
    siblings = [siblings] if isinstance(siblings, str) else siblings
    if tool is not None and not isinstance(tool, str):
        return f"expect: found {AnswerValue(tool).kind}, expected the name of a tool, or none"
    if not isinstance(siblings, list | tuple) or not all(isinstance(sibling, str) for sibling in siblings):
        return f"not: found {AnswerValue(siblings).kind}, expected a list of names"
    if arguments is not None and not isinstance(arguments, Mapping):
        return f"args: found {AnswerValue(arguments).kind}, expected an object"
    return Route(None if tool == "none" else tool, frozenset(siblings), arguments)


def _of_skill(call: ToolCall) -> ToolCall:
    """The call of a skill under its own name: agents call one tool, ``Skill``, with the name as an argument."""
    names = [(call.arguments or {}).get(key) for key in ("skill", "command", "name")] if call.name == "Skill" else []
    name = next((value for value in names if isinstance(value, str)), None)
    return call if name is None else call._replace(name=name.removeprefix("/"))


def _calls(prediction: Any) -> list[ToolCall]:
    """The tool calls of a routing case's prediction: a trace, or a text with JSON that names a tool.

    Raises:
        MissingTraceError: It is neither.
    """
    if not isinstance(prediction, str):
        return ToolCall.read_trace(prediction)
    try:
        reply = (
            None if prediction.strip().strip('"').lower() in ("none", "null") else AnswerText(prediction).read_json()
        )
    except ValueError as error:
        raise MissingTraceError(f"found a text without JSON ({error}), expected {{tool, arguments}}") from None
    calls = []
    for item in reply if isinstance(reply, list) else [reply]:
        name = item.get("tool", item.get("name")) if isinstance(item, Mapping) else item
        if isinstance(name, str) and name != "none":
            arguments = item.get("arguments") if isinstance(item, Mapping) else None
            calls.append({"name": name, "arguments": {} if arguments is None else arguments})
        elif (name is not None and name != "none") or (isinstance(item, Mapping) and not {"tool", "name"} & set(item)):
            raise MissingTraceError(f"found {AnswerValue(item).kind}, expected an object with tool and arguments")
    return ToolCall.read_trace(calls)
