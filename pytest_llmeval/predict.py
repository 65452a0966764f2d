"""Where a prediction comes from when a case carries none: a Python callable, or a recording of an earlier run."""

__all__ = ("Predictor", "Recordings", "load_target", "recording_mode")

import asyncio
import hashlib
import importlib
import inspect
import json
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pytest_llmeval.case import MISSING, Case
from pytest_llmeval.errors import PredictionError

Target: TypeAlias = Callable[[Any], Any]
Mode: TypeAlias = Literal["auto", "replay", "record", "refresh"]

MODES: tuple[Mode, ...] = ("auto", "replay", "record", "refresh")


def recording_mode(mode: Mode) -> tuple[bool, bool]:
    """Return whether a mode replays and whether it calls the target.

    ``auto`` replays what is recorded and calls the target for the rest; ``replay`` never calls it; ``record`` calls it
    for every case; ``refresh`` does too, and then forgets recordings of the suite that this run did not make.
    """
    return mode in ("auto", "replay"), mode != "replay"


def load_target(name: str, folder: Path) -> Target:
    """Import ``module:name``; modules beside the suite file can be named as pytest names those beside a test file.

    Raises:
        PredictionError: The module does not import, or it has no such callable.
    """
    module_name, _, attribute = name.partition(":")
    if module_name.partition(".")[0] in sys.stdlib_module_names:
        raise PredictionError(f"target {name!r}: {module_name!r} is part of Python, expected a module of your project")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise PredictionError(
            f"target {name!r}: module {module_name!r} does not import: {type(error).__name__}: {error}"
        ) from error
    beside = folder / f"{module_name}.py"
    origin = getattr(found, "__file__", None)
    if beside.is_file() and origin is not None and Path(origin).resolve() != beside.resolve():
        raise PredictionError(
            f"target {name!r}: module {module_name!r} was already imported from {origin}, "
            f"not from {beside}: rename one of them"
        )
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise PredictionError(f"target {name!r}: module {module_name!r} has no callable {attribute!r}")
    return found  # type: ignore[no-any-return]  # callable() narrowed it to an untyped callable


@dataclass
class Predictor:
    """Calls targets, plain or async, within a time limit. Async targets of a process share one event loop."""

    _runner: asyncio.Runner | None = None

    def __call__(self, target: Target, value: Any, timeout: float | None = None) -> Any:
        """Return the target's prediction for an input.

        Raises:
            PredictionError: It took longer than the limit, or it called ``sys.exit``.
            Exception: Whatever the target raises.
        """
        __tracebackhide__ = True
        try:
            if timeout is not None and not inspect.iscoroutinefunction(target):
                answer = _call_in_thread(target, value, timeout)
            else:
                answer = target(value)
            return self._run(answer, timeout) if inspect.isawaitable(answer) else answer
        except SystemExit as error:
            raise _exited(error) from error

    def _run(self, answer: Any, timeout: float | None) -> Any:
        __tracebackhide__ = True

        async def bounded() -> Any:
            __tracebackhide__ = True
            try:
                async with asyncio.timeout(timeout) as limit:
                    return await answer
            except TimeoutError as error:
                if timeout is None or not limit.expired():
                    raise
                raise _too_slow(timeout) from error
            except SystemExit as error:
                # Let out of its task, it would come again in the next call of the same event loop.
                raise _exited(error) from error

        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(bounded())

    def close(self) -> None:
        """Close the event loop, if there is one."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None


def _too_slow(timeout: float) -> PredictionError:
    return PredictionError(f"the target took longer than {timeout:g} s")


def _exited(error: SystemExit) -> PredictionError:
    return PredictionError(f"the target called sys.exit({error.code!r})")


def _call_in_thread(target: Target, value: Any, timeout: float) -> Any:
    """Call in a daemon thread, which is left behind when it hangs: Python cannot stop it, but the run goes on."""
    __tracebackhide__ = True
    outcome: dict[str, Any] = {}

    def work() -> None:
        try:
            outcome["answer"] = target(value)
        except BaseException as error:  # noqa: BLE001 (handed to the caller's thread, which raises it)
            outcome["error"] = error

    thread = threading.Thread(target=work, daemon=True, name="llmeval-target")
    thread.start()
    thread.join(timeout)
    if "error" in outcome:
        raise outcome["error"]
    if "answer" not in outcome:
        raise _too_slow(timeout)
    return outcome["answer"]


def fingerprint(value: Any) -> str:
    """Return a digest of a case's input, by which a recording knows that it still belongs to the case."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass
class Recordings:
    """Predictions of earlier runs, in a JSONL file that is sorted and reads well in a diff.

    Attributes:
        path: The file.
        mode: What to do with it.
    """

    path: Path
    mode: Mode
    _rows: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, mode: Mode) -> "Recordings":
        """Read the file; an absent one is empty, except in mode ``replay``.

        Raises:
            SuiteError: A line of the file is no recording.
            PredictionError: The file is absent and the mode is ``replay``.
        """
        from pytest_llmeval.errors import Problem, SuiteError
        from pytest_llmeval.reading import read_jsonl

        recordings = cls(path, mode)
        if not path.exists():
            if mode == "replay":
                raise PredictionError(
                    f"predictions file {path} does not exist; record it with --llmeval-predictions-mode=record"
                )
            return recordings
        problems: list[Problem] = []
        for line, row in read_jsonl(path, str(path), problems):
            if not _is_recording(row):
                problems.append(
                    Problem(
                        str(path),
                        line,
                        1,
                        "",
                        "expected an object with suite, variant, case, input and prediction",
                    )
                )
                continue
            recordings._rows[row["suite"], row["variant"], row["case"]] = row
        if problems:
            raise SuiteError(problems)
        return recordings

    def get(self, suite: str, variant: str, case: Case) -> Any:
        """Return the recorded prediction of a case, or `MISSING` where it must be asked for.

        Raises:
            PredictionError: Nothing is recorded for the case, or for another input, and the mode is ``replay``.
        """
        replays, asks = recording_mode(self.mode)
        row = self._rows.get((suite, variant, case.id)) if replays else None
        if row is not None and row["input"] == fingerprint(case.input):
            return row["prediction"]
        if asks:
            return MISSING
        why = "was recorded for another input" if row is not None else "is not recorded"
        raise PredictionError(
            f"case {case.id!r} {why} in {self.path.name}; "
            "run once with --llmeval-predictions-mode=auto to ask the target"
        )

    def update(self, predictions: Iterable[Mapping[str, Any]], complete: Collection[tuple[str, str]] = ()) -> None:
        """Take over what a run predicted and write the file, sorted, in one step; mode ``replay`` writes nothing.

        Args:
            predictions: Rows of `recording`.
            complete: Suites and variants all of whose cases ran; mode ``refresh`` forgets what else there is
                of them.

        Raises:
            OSError: The file cannot be written.
        """
        if self.mode == "replay":
            return
        made = {(row["suite"], row["variant"], row["case"]): dict(row) for row in predictions}
        kept = self._rows
        if self.mode == "refresh":
            kept = {key: row for key, row in kept.items() if key[:2] not in complete}
        rows = {**kept, **made}
        lines = [json.dumps(rows[key], ensure_ascii=False, sort_keys=True) + "\n" for key in sorted(rows)]
        # Half of a surrogate pair, which models do emit, cannot be written as UTF-8: that case is asked again.
        lines = [line for line in lines if line.isascii() or not any("\ud800" <= each <= "\udfff" for each in line)]
        if not lines and not self.path.exists():
            return  # an empty file would be refused by the next run
        self.path.parent.mkdir(parents=True, exist_ok=True)
        scratch = self.path.with_name(self.path.name + ".tmp")
        scratch.write_text("".join(lines), encoding="utf-8", newline="\n")
        scratch.replace(self.path)


def _is_recording(row: Any) -> bool:
    texts = ("suite", "variant", "case", "input")
    return isinstance(row, dict) and "prediction" in row and all(isinstance(row.get(key), str) for key in texts)


def recording(suite: str, variant: str, case: Case) -> dict[str, Any]:
    """Return the row that records a case's prediction."""
    return {
        "suite": suite,
        "variant": variant,
        "case": case.id,
        "input": fingerprint(case.input),
        "prediction": case.prediction,
    }
