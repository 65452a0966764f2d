"""The keys of a suite file.

The validated top level, the JSON Schema, the types for Python and the table in the documentation come from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeAlias, get_origin

from msgspec import UNSET, Struct
from msgspec.structs import replace

from pytest_llmeval.core import Abstention, Case, Evaluator, LlmevalError, Parts
from pytest_llmeval.data import DeclaredType
from pytest_llmeval.gates import Gate
from pytest_llmeval.judges import JudgeSpec, PanelSpec, Reduce
from pytest_llmeval.numbers import Repeats, Threshold
from pytest_llmeval.suites._evaluator_settings import read_evaluators
from pytest_llmeval.suites._limits import read_gates, read_groups, read_limits
from pytest_llmeval.suites._reading import SuiteReading
from pytest_llmeval.suites._registry import Key, Registry
from pytest_llmeval.suites._settings import (
    WHEN_DECIDED,
    CaseSample,
    ConversationSpec,
    SampleSettings,
    SnapshotSettings,
    StopSettings,
    read_compared,
    read_confidence,
    read_conversation,
    read_inputs,
    read_parts,
    read_repeats,
    read_sample,
    read_snapshot,
    read_stop,
    read_target,
)
from pytest_llmeval.suites._systems import Only, System

if TYPE_CHECKING:
    from pytest_llmeval.targets import TargetSpec

SuiteMode: TypeAlias = Literal["items", "bulk", "test"]


@dataclass(frozen=True)
class ApproveSettings:
    """The setting ``approve`` of a suite file: what is approved together with scores."""

    __pydantic_config__: ClassVar = DeclaredType.STRICT

    failures: bool = False


def _read_judge(reading: SuiteReading, entry: Any) -> JudgeSpec | PanelSpec:
    """Read ``judge`` of a suite file; without one, no code of judges is loaded."""
    whole = reading.entry
    beside = (whole.judges, whole.reduce, whole.min_judges, reading.document.data.get("judges"))
    if entry is None and all(value is None for value in beside):
        return JudgeSpec()  # most suites ask no judge, and load nothing of one
    from pytest_llmeval.suites._judge_settings import read_judge

    return read_judge(reading, entry)


class SuiteKeys(Struct, frozen=True, kw_only=True):
    """The keys of a suite file as a run has them; class variables are keys that only loading reads.

    The order is that in which messages list them. Faults do not depend on it: they are sorted by place.
    """

    evaluators: Annotated[
        "Mapping[str, Evaluator]",
        Key(
            "list of evaluators; required unless there are checks",
            "",
            type=list[Any],
            read=read_evaluators,
            forms=("evaluator",),
            python="Sequence[EvaluatorEntry] | EvaluatorEntry",
            decides="form",
        ),
    ] = {}
    suite: ClassVar[
        Annotated[str | None, Key("name of the suite in reports", "the file name up to `.eval.`", python=None)]
    ] = None
    description: Annotated[
        str,
        Key(
            "text for readers of reports",
            type=str | None,
            read=lambda _, text: text or "",
            decides="form",
        ),
    ] = ""
    target: Annotated[
        "TargetSpec | None",
        Key(
            "what answers the cases: a [Python function, service or command](predictions.md)",
            read=read_target,
            forms=(str, "target", None),
            python="str | Mapping[str, Any] | Callable[..., Any] | NamedObject | None",
        ),
    ] = None
    systems: Annotated[
        Mapping[str, System],
        Key(
            "[several systems](systems.md) that answer the cases, by name",
            "one, without a name",
            forms=("systems", None),
            python="Mapping[str, Any]",
            decides="form",
        ),
    ] = {}
    reference: Annotated[
        str | None,
        Key("[system](systems.md#the-tables) to compare the others with", "the first", decides="verdicts"),
    ] = None
    compare_by: Annotated[
        tuple[str, ...],
        Key(
            "metrics by which [systems](systems.md#the-tables) are compared",
            "metrics of gates, or the first",
            read=read_compared,
            decides="verdicts",
        ),
    ] = ()
    only: ClassVar[
        Annotated[
            Only | None,
            Key("`predicted`: leave out the cases without [prediction](systems.md#what-a-system-can-be)", "all cases"),
        ]
    ] = None
    parts: Annotated[
        Parts,
        Key(
            "places of the [parts](predictions.md#parts) of a prediction",
            "the keys of the same names",
            read=read_parts,
            forms=(Parts, None),
        ),
    ] = Parts()
    conversation: Annotated[
        ConversationSpec,
        Key(
            "who leads [conversations](testing-agents.md#conversations): `{user: {model: ..., goal: ...}}`, "
            "`{stop: target, max_turns: N}`",
            "the script",
            read=read_conversation,
            forms=(ConversationSpec, None),
        ),
    ] = ConversationSpec()
    group_by: Annotated[
        tuple[str, ...],
        Key(
            "labels for whose values the report has metrics",
            read=read_groups,
            decides="verdicts",
        ),
    ] = ()
    cluster_by: Annotated[
        str | None,
        Key(
            "a label: cases with the same value are one [cluster](statistics.md#clusters)",
            "none",
            decides="verdicts",
        ),
    ] = None
    abstained: Annotated[
        Abstention,
        Key(
            "an answer that [leaves nothing to score](regressions.md#what-is-compared) counts as the worst value "
            "(`fell`), or not at all (`allowed`)",
            "`fell`",
        ),
    ] = "fell"
    mode: Annotated[
        SuiteMode,
        Key(
            "`items`: one test per case; [`bulk`](scale.md#bulk-mode): one test per suite; `test`: only "
            "[Python tests](python-api.md#tests-over-a-suite) run the cases",
            "`items`",
            decides="form",
        ),
    ] = "items"
    repeats: Annotated[
        Repeats,
        Key(
            "[runs of each case](judge-runs.md#repeats), 1 to 1000, or a mapping",
            "1",
            default=1,
            read=read_repeats,
            forms=({"type": "integer", "minimum": 1}, Repeats),
        ),
    ] = Repeats()
    judge: Annotated[
        JudgeSpec | PanelSpec,
        Key(
            "[model that judges](judges.md#models-and-clients), as `PROVIDER:NAME` or a mapping, or a "
            "[cascade](judge-runs.md#cascades)",
            read=_read_judge,
            forms=(str, JudgeSpec, "cascade", None),
            python="str | Mapping[str, Any] | Judgeable | NamedObject",
        ),
    ] = JudgeSpec()
    judges: ClassVar[
        Annotated[
            list[Any] | None,
            Key(
                "a [panel](judge-runs.md#panels), in place of `judge`",
                forms=(str, JudgeSpec),
                least=2,
                python="Sequence[str | Mapping[str, Any] | Judgeable | NamedObject]",
            ),
        ]
    ] = None
    reduce: ClassVar[
        Annotated[
            Reduce | None,
            Key(
                "how [their verdicts become one](judge-runs.md#combining-verdicts)",
                "majority or mean",
            ),
        ]
    ] = None
    min_judges: ClassVar[Annotated[int | None, Key("verdicts of `judges` that a question needs", "all")]] = None
    confidence: Annotated[
        float | None,
        Key(
            "level of intervals and tests; `null` for no intervals",
            "0.95",
            read=read_confidence,
            null=True,
            decides="verdicts",
        ),
    ] = 0.95
    checks: ClassVar[
        Annotated[
            list[Any],
            Key(
                "[assertions](evaluators.md#checks) on every answer",
                forms=("check",),
                python="Sequence[Check] | Check",
            ),
        ]
    ] = []
    thresholds: Annotated[
        "Mapping[str, Threshold]",
        Key(
            "[limits](thresholds-and-gates.md#thresholds) for every case",
            type=dict[str, Any],
            read=lambda reading, limits: read_limits(reading, limits, ("thresholds",)),
            forms=("limits",),
            decides="verdicts",
        ),
    ] = {}
    gates: Annotated[
        "tuple[Gate, ...]",
        Key(
            "[limits](thresholds-and-gates.md#gates) for the suite",
            type=list[Any],
            read=read_gates,
            forms=(str, "gate"),
            decides="verdicts",
        ),
    ] = ()
    snapshot: Annotated[
        SnapshotSettings | None,
        Key(
            "`true`, or [settings](snapshots.md#settings): compare scores with approved ones",
            "the ini option `llmeval_snapshots`",
            read=read_snapshot,
            forms=(bool, "snapshot", None),
            decides="verdicts",
        ),
    ] = None
    approve: Annotated[
        ApproveSettings,
        Key(
            "`{failures: true}`: `--snapshot-update` also approves "
            "[failing cases](thresholds-and-gates.md#failures-that-are-excused)",
            "nothing",
            decides="verdicts",
        ),
    ] = ApproveSettings()
    uncalibrated: Annotated[
        Literal["report", "fail", "allow"],
        Key(
            "`report`, `fail` or `allow` a judge that [no labels confirm](review.md#uncalibrated-judges)",
            "`report`",
            decides="verdicts",
        ),
    ] = "report"
    stop: Annotated[
        StopSettings | None,
        Key(
            f"[`{WHEN_DECIDED}`](planning.md#stop-when-it-is-decided): run in random order until all gates are decided",
            "`never`",
            read=read_stop,
            forms=({"enum": [WHEN_DECIDED, "never"]}, StopSettings, None),
            decides="verdicts",
        ),
    ] = None
    sample: Annotated[
        CaseSample | None,
        Key(
            "[run a part of the cases](planning.md#sample-the-cases): `{cases: N, by: LABEL, seed: NUMBER}`",
            "all cases",
            read=read_sample,
            forms=(SampleSettings, None),
            decides="verdicts",
        ),
    ] = None
    inputs: Annotated[
        tuple[str, ...],
        Key(
            "files and patterns such as `prompts/**` on which [answers depend](planning.md#inputs)",
            "what is found",
            read=read_inputs,
            decides="form",
        ),
    ] = ()
    fetch: ClassVar[
        Annotated[
            list[str],
            Key(
                "hosts such as `example.org` whose [addresses are fetched](media.md#addresses), not passed on",
                "none is fetched",
                python="Sequence[str]",
            ),
        ]
    ] = []
    cases: Annotated[
        "tuple[Case, ...]", Key("list of cases", type=list[Any], forms=("case",), python=None, decides="form")
    ] = ()
    source: ClassVar[
        Annotated[
            Any,
            Key(
                "[data file](sources.md) with cases, besides or in place of `cases`",
                forms=("source", None),
                python=None,
            ),
        ]
    ] = None


def _declared_keys() -> dict[str, Key]:
    """The keys of a suite file by name, with the types and defaults that they have in the file."""
    defaults = dict(zip(SuiteKeys.__struct_fields__, SuiteKeys.__struct_defaults__, strict=True))
    keys = {}
    for name, hint in SuiteKeys.__annotations__.items():
        carried = getattr(hint, "__origin__", None) is not ClassVar
        annotated = hint if carried else hint.__args__[0]
        key: Key = annotated.__metadata__[0]
        if key.type == UNSET and key.forms and carried:
            key = replace(key, type=Any)
        elif key.type == UNSET:
            default = defaults[name] if carried else getattr(SuiteKeys, name)
            key = replace(key, type=annotated.__origin__, default=default)
        elif get_origin(key.type) in (list, dict):
            key = replace(key, default=get_origin(key.type)())
        keys[name] = replace(key, carried=carried)
    return keys


KEYS: Final[Mapping[str, Key]] = _declared_keys()
"""The keys by name, in their order."""


def keys_of(registry: Registry) -> Mapping[str, Key]:
    """The keys that a suite file may have: those that ship, then those that plugins add.

    Raises:
        LlmevalError: A plugin adds a key that ships.
    """
    added = registry.keys
    for name in added:
        if name in KEYS:
            owner = registry.owner_of("suite key", name)
            raise LlmevalError(f"{owner}: the suite key name {name!r} is taken by pytest_llmeval: choose another")
    return {**KEYS, **added} if added else KEYS


def _entry_type(keys: Mapping[str, Key]) -> type:
    """Make the class that validates the top level of a suite file."""
    return make_dataclass(
        "SuiteEntry",
        [(name, key.type, _default_field(key.default)) for name, key in keys.items()],
        namespace={
            "__pydantic_config__": DeclaredType.STRICT,
            "__module__": __name__,
            "__doc__": "The top level of a suite file; parts with a grammar of their own are validated one by one.",
        },
        frozen=True,
    )


def _default_field(value: Any) -> Any:
    """A dataclass field with the default of a suite file's key; lists and mappings are copied."""
    return field(default_factory=value.copy) if isinstance(value, list | dict) else field(default=value)


if TYPE_CHECKING:
    SuiteEntry: TypeAlias = Any
else:
    SuiteEntry = _entry_type(KEYS)


def suite_entry(registry: Registry) -> type:
    """The class that validates the top level of a suite file; null is the absence of a key that a plugin adds.

    Raises:
        LlmevalError: A plugin adds a key that ships.
    """
    keys = keys_of(registry)
    if keys is KEYS:
        shipped: type = SuiteEntry
        return shipped
    added = {name: replace(key, type=key.type | None, default=None) for name, key in registry.keys.items()}
    return _entry_type({**keys, **added})
