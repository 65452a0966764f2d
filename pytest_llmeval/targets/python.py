"""Predictions from a Python callable, or from recordings of an earlier run."""

__all__ = (
    "WITHHELD",
    "CallPlain",
    "NotRecorded",
    "Recordings",
    "call_target",
    "for_case",
    "in_world",
    "recorded_figures",
    "recording_mode",
    "typed_input",
    "wrong_call",
)

import hashlib
import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_type_hints

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import Fault, LlmevalError, PredictionError, SuiteError, defined_at
from pytest_llmeval.data.files.documents import MAX_LINE_BYTES, read_jsonl
from pytest_llmeval.data.files.json import JsonParser, RejectedError
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.files.writing import rewrite
from pytest_llmeval.services.background import in_thread
from pytest_llmeval.services.secrets import without
from pytest_llmeval.services.stopwatch import stopwatch

if TYPE_CHECKING:
    from pytest_llmeval.targets.journal import Journal

Target: TypeAlias = Callable[[Any], Any]
CallPlain: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a plain function, in some thread."""
RecordingMode: TypeAlias = Literal["auto", "replay", "record", "refresh"]
RecordingPlace: TypeAlias = tuple[str, str, str, int]
RecordedRows: TypeAlias = dict[RecordingPlace, dict[str, Any]]

_FIGURES = ("cost_usd", "latency_s")
WITHHELD = "withheld"
"""Key of a recorded prediction that is left out, since it has a secret."""


class NotRecorded(NamedTuple):
    """Cases whose predictions are not recorded, by id and sorted.

    Attributes:
        unreadable: No later run could read them.
        secret: They have the value of a secret variable.
    """

    unreadable: Sequence[str] = ()
    secret: Sequence[str] = ()


MODES: tuple[RecordingMode, ...] = ("auto", "replay", "record", "refresh")


def recording_mode(mode: RecordingMode) -> tuple[bool, bool]:
    """Return whether a mode replays and whether it calls the target.

    ``auto`` replays what is recorded and calls the target for the rest; ``replay`` never calls it; ``record`` calls it
    for every case; ``refresh`` does too, and then forgets recordings of the suite that this run did not make.
    """
    return mode in ("auto", "replay"), mode != "replay"


async def call_target(
    target: Target,
    value: Any,
    timeout: float | None = None,
    run: CallPlain | None = None,
    *,
    can_be_left: bool = False,
) -> Any:
    """Return a target's prediction for an input, without holding up the event loop.

    Args:
        target: Plain or async.
        value: The input.
        timeout: Seconds that the target may take; ``None`` waits for ever.
        run: Calls a plain target that has no time limit; default: in a thread of its own, which can be left behind.
        can_be_left: Whether `run` calls in a thread that can be left behind, and so takes one with a time limit, too.

    Raises:
        PredictionError: It took longer than the limit, called ``sys.exit``, or does not take the input alone.
        BaseException: Whatever the target raises.
    """
    import asyncio

    watch = stopwatch()
    itself = getattr(target, "clocks_itself", False) is True

    def call() -> Any:
        with watch.call():
            return target(value)

    async def awaited(answer: Awaitable[Any]) -> Any:
        with nullcontext() if itself else watch.call():
            return await answer

    if run is None or (timeout is not None and not can_be_left):
        run = _in_worker
    try:
        async with asyncio.timeout(timeout) as limit:
            if inspect.iscoroutinefunction(target):
                return await awaited(target(value))
            answer = await run(call)
            return await awaited(answer) if inspect.isawaitable(answer) else answer
    except TimeoutError as error:
        if timeout is None or not limit.expired():
            raise
        raise PredictionError(f"the target took longer than {timeout:g} s") from error
    except TypeError as error:
        if (wrong := wrong_call(target, value, error)) is not None:
            raise wrong from error
        raise
    except SystemExit as error:
        # Let out of its task, it would end the event loop.
        raise _exited(error) from error


async def _in_worker(work: Callable[[], Any]) -> Any:
    return await in_thread(work, "llmeval-target")


def _exited(error: SystemExit) -> PredictionError:
    return PredictionError(f"the target called sys.exit({error.code!r})")


def input_digest(value: Any) -> str:
    """Return a digest of a case's input, by which a recording knows that it still belongs to the case."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass
class Recordings:
    """Predictions of earlier runs, in a JSONL file that is sorted and reads well in a diff.

    Attributes:
        path: The file.
        mode: What to do with it.
        journal: Where the answers of this run are kept as they arrive.
    """

    path: Path
    mode: RecordingMode
    journal: "Journal | None" = None
    _rows: RecordedRows = field(default_factory=dict)

    @classmethod
    def open(
        cls, path: Path, mode: RecordingMode, journal: "Journal | None" = None, *, merges: bool = False
    ) -> "Recordings":
        """Read the file; an absent one is empty, except in mode ``replay``.

        Args:
            path: The file.
            mode: What to do with it.
            journal: Where the answers of this run are kept as they arrive.
            merges: Whether to take over first what killed runs left in their journals: only the main process does.

        Raises:
            SuiteError: A line of the file is no recording.
            PredictionError: The file is absent and the mode is ``replay``.
            OSError: Answers of killed runs cannot be taken over.
        """
        if mode == "replay":
            journal = None
            if not path.exists():
                raise PredictionError(
                    f"predictions file {path} does not exist; create it with --llmeval-predictions-mode=record"
                )
        recordings = cls(path, mode, journal)
        if merges and journal is not None and (left := journal.read(others=True)):
            recordings._merge(left)
            journal.remove()
        recordings._rows = _read_rows(path)
        return recordings

    def get(self, suite: str, variant: str, case: Case, repeat: int = 0) -> Any:
        """Return the recorded prediction of a case, or `MISSING` where it must be asked for.

        Raises:
            PredictionError: Nothing is recorded for the case, or for another input, and the mode is ``replay``.
        """
        replays, asks = recording_mode(self.mode)
        row = self._rows.get((suite, variant, case.id, repeat)) if replays else None
        if row is not None and row["input"] == _asked(case):
            return row["prediction"]
        if asks:
            return MISSING
        why = "was recorded for another input" if row is not None else "is not recorded"
        raise PredictionError(
            f"case {case.id!r} {why} in {self.path.name}; "
            "run once with --llmeval-predictions-mode=auto to call the target"
        )

    def figures(self, suite: str, variant: str, case: Case, repeat: int = 0) -> dict[str, float]:
        """Return what a recorded prediction took; nothing for recordings of earlier versions."""
        figures: dict[str, float] = self._rows[suite, variant, case.id, repeat].get("figures", {})
        return figures

    def of(self, suite: str, variant: str) -> Iterator[Mapping[str, Any]]:
        """Yield all rows of a suite or of one variant of it, whatever the mode."""
        yield from (row for place, row in self._rows.items() if place[:2] == (suite, variant))

    def rows(self) -> Iterator[Mapping[str, Any]]:
        """Yield all rows, whatever the mode."""
        yield from self._rows.values()

    def keep(self, row: Mapping[str, Any]) -> None:
        """Write an answer to the journal, so that a killed run does not lose it."""
        if self.journal is not None:
            # What cannot be kept now is written with everything else at the end of the run, which reports a failure.
            with suppress(OSError, RecursionError, ValueError):
                self.journal.append(row)

    def update(
        self, predictions: Iterable[Mapping[str, Any]], complete: Collection[tuple[str, str]] = ()
    ) -> NotRecorded:
        """Take over what a run predicted and write the file, sorted, in one step; mode ``replay`` writes nothing.

        What other runs have written meanwhile stays. A prediction that no later run could read would cost that run all
        the others; it is left out, and so asked for again: half of a surrogate pair, which models do emit, deep
        nesting, or a line without measure. So is one with a secret, since recordings are committed.

        Args:
            predictions: Rows of `recording`; they replace those of the journal.
            complete: Suites and variants all of whose cases ran; mode ``refresh`` forgets what else there is
                of them.

        Returns:
            The cases that were left out.

        Raises:
            OSError: The file cannot be written.
            SuiteError: It has been damaged in the meantime, and is left unchanged.
        """
        if self.mode == "replay":
            return NotRecorded()
        arrived = self.journal.read() if self.journal is not None else []
        return self._merge([*arrived, *predictions], complete if self.mode == "refresh" else ())

    def close(self) -> None:
        """Take over what has arrived since `update`, and remove the journal.

        Raises:
            OSError: The file cannot be written; the journal stays for the next run.
            SuiteError: As `update` does.
        """
        if self.journal is not None:
            if self.journal.has_more():
                self._merge(self.journal.read())
            self.journal.remove()

    def _merge(self, rows: Iterable[Mapping[str, Any]], forget: Collection[tuple[str, str]] = ()) -> NotRecorded:
        given = {_place(row): row for row in rows if _is_recording(row)}
        secret = {place for place, row in given.items() if row.get(WITHHELD)}
        made = {place: _line(row) for place, row in given.items() if place not in secret}
        unreadable = {place for place, line in made.items() if not _is_readable(line)}

        def merged() -> str:
            kept = {place: _line(row) for place, row in _read_rows(self.path).items() if place[:2] not in forget}
            lines = {**kept, **made}
            return "".join(f"{lines[place]}\n" for place in sorted(lines.keys() - unreadable))

        rewrite(self.path, merged)
        return NotRecorded(_cases(unreadable), _cases(secret))


def _read_rows(path: Path) -> RecordedRows:
    """Read a file of recordings; an absent one is empty.

    Raises:
        SuiteError: A line of the file is no recording.
    """
    if not path.exists():
        return {}
    rows: RecordedRows = {}
    faults: list[Fault] = []
    for line, row in read_jsonl(path, str(path), faults):
        if _is_recording(row):
            rows[_place(row)] = row
        else:
            expected = "expected an object with suite, variant, case, input and prediction"
            faults.append(Fault(str(path), line, 1, "", expected))
    if faults:
        raise SuiteError(faults)
    return rows


def _cases(places: Iterable[RecordingPlace]) -> list[str]:
    return sorted({case for _, _, case, _ in places})


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, sort_keys=True)


def _is_readable(line: str) -> bool:
    try:
        size = len(line.encode("utf-8"))
        JsonParser(FaultLog("")).parse(line)
    except (UnicodeEncodeError, RejectedError):
        return False
    return size < MAX_LINE_BYTES


def _is_recording(row: Any) -> bool:
    texts = ("suite", "variant", "case", "input")
    if not isinstance(row, dict) or not isinstance(row.get("repeat", 0), int):
        return False
    figures = row.get("figures", {})
    if not isinstance(figures, dict) or not all(isinstance(figures.get(name, 0), int | float) for name in _FIGURES):
        return False
    return "prediction" in row and all(isinstance(row.get(key), str) for key in texts)


def _place(row: Mapping[str, Any]) -> RecordingPlace:
    return row["suite"], row["variant"], row["case"], row.get("repeat", 0)


def _asked(case: Case) -> str:
    """Return a digest of what the answer to a case depends on, as far as the suite knows it."""
    return input_digest([case.input, case.way] if case.way else case.input)


def recording(
    suite: str, variant: str, case: Case, repeat: int = 0, hidden: Collection[str] = frozenset()
) -> dict[str, Any]:
    """Return the row that records a case's prediction; the first of several has no number of the repeat.

    Args:
        suite: The file, as reports name it.
        variant: Of the suite, or its system.
        case: With its prediction.
        repeat: Which of several answers it is.
        hidden: Secrets, in every spelling. A row whose prediction has one says so, and nothing else of it.
    """
    row: dict[str, Any] = {
        "suite": suite,
        "variant": variant,
        "case": case.id,
        "input": _asked(case),
        "prediction": case.prediction,
    }
    if hidden and _has_secret(case.prediction, hidden):
        row |= {"prediction": None, WITHHELD: True}
    if figures := recorded_figures(case):
        row["figures"] = figures
    return {**row, "repeat": repeat} if repeat else row


def _has_secret(prediction: Any, hidden: Collection[str]) -> bool:
    text = prediction if isinstance(prediction, str) else json.dumps(prediction, ensure_ascii=False, default=str)
    return without(text, hidden) != text


def recorded_figures(case: Case) -> dict[str, float]:
    """Return what a prediction took, as far as it does not say so itself."""
    known: Mapping[str, Any] = case.origin.figures if case.origin is not None else {}
    return {name: known[name] for name in _FIGURES if known.get(name) is not None}


def typed_input(target: Callable[..., Any], value: Any) -> Any:
    """Return an input as the pydantic model or dataclass that a target's annotation names, if it names one.

    Raises:
        PredictionError: The input does not fit; the message names every place.
    """
    kind = _input_type(target)
    if kind is None or isinstance(value, kind):
        return value
    from pytest_llmeval.data.files.validation import typed

    try:
        return typed(kind, value)
    except LlmevalError as error:
        raise PredictionError(f"the input is no {kind.__name__}, which the target takes: {error}") from None


def _input_type(target: Callable[..., Any]) -> type | None:
    called = target if inspect.isroutine(target) else getattr(target, "__call__", target)  # noqa: B004 (its annotations)
    try:
        hints = get_type_hints(called)
    except Exception:  # noqa: BLE001 (annotations are users' code, and need not be importable)
        return None
    name = next((each for each in _required(target) if each != "case"), None)
    kind = hints.get(name) if name is not None else None
    return kind if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "model_fields")) else None


_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


_BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def for_case(target: Callable[..., Any], case: Case) -> Callable[[Any], Any]:
    """Return what is called with the input of a case alone.

    Args:
        target: The user's. If it requires two arguments of which one is named ``case``, the other one is the input.
        case: The case, which such a target gets as well.
    """
    required = _required(target)
    if len(required) != 2 or "case" not in required or required["case"].kind not in _BY_NAME:  # noqa: PLR2004 (input and case)
        return target
    first, other = next(iter(required)), next(name for name in required if name != "case")
    if first != "case" and required[other].kind != inspect.Parameter.KEYWORD_ONLY:
        return partial(target, case=case)
    return lambda value: target(**{other: value, "case": case})


def in_world(target: Callable[..., Any], world: Any) -> Callable[..., Any]:
    """Return what is called without the world.

    Args:
        target: The user's. It gets the world if it has an argument of that name behind its first one, or requires a
            second argument, besides ``case``.
        world: The value of the world.
    """
    try:
        known = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return target
    others = list(known.values())[1:]
    second = [each.name for each in _required(target).values() if each.name != "case"][1:2]
    names = [each.name for each in others if each.name in ("world", *second) and each.kind in _BY_NAME]
    name = "world" if "world" in names else next(iter(names), None)
    return target if name is None else partial(target, **{name: world})


def wrong_call(target: Callable[..., Any], value: Any, error: TypeError) -> PredictionError | None:
    """Return the error of a target that does not take the input alone; ``None`` if the target itself raised it."""
    try:
        inspect.signature(target).bind(value)
    except TypeError:
        hint = "a target gets the `input` of a case alone, or with `case` if it requires an argument of that name too"
        more = ", and with `world` if the suite names one" if "world" in str(error) else ""
        return PredictionError(f"TypeError: {error}{defined_at(target)}; {hint}{more}")
    except ValueError:  # a callable written in C has no signature
        return None
    return None


def _required(target: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return {}
    return {
        name: each for name, each in parameters.items() if each.default is each.empty and each.kind not in _VARIADIC
    }
