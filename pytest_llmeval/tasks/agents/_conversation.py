"""Evaluators of conversations."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from pytest_llmeval.core import (
    Case,
    Evaluator,
    Fault,
    FloatArray,
    JudgeError,
    Metric,
    Observation,
    Reads,
    Sums,
    as_line,
    counted,
    shown_path,
    suggest,
)
from pytest_llmeval.data import CaseFile, CaseId, Document, FileSource, InputFile, kind, render_path
from pytest_llmeval.evaluators import AnswerValue
from pytest_llmeval.judges import JudgedEvaluator, ModeFile, Question, Verdict

_STOPS: Final = ("script", "target", "max_turns")
_STOPS_OF_USERS: Final = ("user", "recording")


@dataclass(frozen=True)
class Conversation(Evaluator):
    """Turns and stop reasons of conversations that a run has led.

    ``turns`` is the mean number of calls of the target. ``stop[script]``, ``stop[target]`` and ``stop[max_turns]`` are
    the shares of conversations that ended because the script did, because the target said so, or at the limit; of
    simulated users, ``stop[user]`` and ``stop[recording]`` are those that the user ended, or the end of its recording.
    ``stop_reason[goal_reached]`` and so on are the shares that the user ended for this reason.

    Attributes:
        reasons: For which a simulated user may end a conversation; empty where there is none. A suite with a simulated
            user sets them.
    """

    name = "conversation"

    reasons: tuple[str, ...] = ()

    @property
    def _stops(self) -> tuple[str, ...]:
        return (*_STOPS, *_STOPS_OF_USERS) if self.reasons else _STOPS

    def describe(self) -> Sequence[Metric]:
        """Return the number of turns, and the reasons to stop."""
        own = [Metric("stop_reason[reason]")] if self.reasons else []
        return [Metric("turns", higher_is_better=False, high=None), Metric("stop[reason]"), *own]

    def measure(self, case: Case) -> Observation:
        """Count one conversation; a prediction that is none is malformed."""
        prediction = case.prediction if isinstance(case.prediction, Mapping) else {}
        turns, stop = prediction.get("turns"), prediction.get("stop")
        if not isinstance(turns, int) or stop not in self._stops:
            names = [metric.name for metric in self.describe()]
            malformed = f"found {AnswerValue(case.prediction).kind}, expected a conversation with turns and stop"
            return Observation({}, {}, dict.fromkeys(names, "no conversation"), malformed, abstained=tuple(names))
        details = {"turns": turns, "stop": stop}
        for name, form in (("stop_reason", str), ("stop_comment", str), ("unrecorded_from", int)):
            if isinstance(value := prediction.get(name), form):
                details[name] = value
        counts = {
            "turns": turns,
            "n": 1,
            **{f"stop.{known_stop}": int(stop == known_stop) for known_stop in self._stops},
        }
        reason = prediction.get("stop_reason") if stop == "user" else None
        return Observation(
            {**counts, **{f"reason.{known_reason}": int(reason == known_reason) for known_reason in self.reasons}},
            details,
        )

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say how long the conversation was, and why it ended."""
        del case
        if "turns" not in observation.details:
            return []
        details = observation.details
        why = ": ".join(as_line(details[name]) for name in ("stop_reason", "stop_comment") if name in details)
        lines = [f"{counted(details['turns'], 'turn')}, ended by {details['stop']}{f' ({why})' if why else ''}"]
        if "unrecorded_from" in details:
            lines.append(f"the conversation left its recording in turn {details['unrecorded_from']}")
        return lines

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return means over conversations."""
        shares = {f"stop[{stop}]": sums[f"stop.{stop}"] / sums["n"] for stop in self._stops}
        shares |= {f"stop_reason[{reason}]": sums[f"reason.{reason}"] / sums["n"] for reason in self.reasons}
        return {"turns": sums["turns"] / sums["n"], **shares}


_METRIC = "user_drift"
_MODE: Final = "user_role"


@dataclass(frozen=True)
class UserDrift(JudgedEvaluator):
    """The share of conversations in which the simulated user did not keep to its role, as a judge sees it.

    A user that wants something else than its goal, invents what it does not know, or does the agent's work makes every
    other score of the conversation one of another task. A conversation counts 1 if that changed it, 0.5 if a message
    was out of role and changed nothing, else 0. One without a simulated user is undefined.

    Attributes:
        language: Of the question to the judge; ``auto``: by the script of the goal.
    """

    name = _METRIC
    reads = Reads(expected=True)

    language: Literal["auto", "en", "zh"] = "auto"

    def describe(self) -> Sequence[Metric]:
        """Return the share."""
        signature = f"mode:{_MODE}@{ModeFile.mode_named(_MODE).version}|lang:{self.language}|v:{self.version}"
        return [Metric(_METRIC, higher_is_better=False, signature=signature)]

    def questions(self, case: Case) -> Sequence[Question]:
        """Return the question about a conversation with a simulated user; none about another prediction."""
        conversation = _conversation(case)
        if conversation is None:
            return []
        wants, messages = conversation
        lines = (f"{number}. {json.dumps(message, ensure_ascii=False)}" for number, message in enumerate(messages, 1))
        goal = str(wants.get("goal", ""))
        language = Question.instruction_language(goal) if self.language == "auto" else self.language
        texts = {"goal": json.dumps(wants, ensure_ascii=False), "trajectory": "\n".join(lines)}
        return [Question(ModeFile.mode_named(_MODE), texts, language)]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        """Count one conversation.

        Raises:
            JudgeError: The judge gave no verdict.
        """
        if _conversation(case) is None:
            description = AnswerValue(case.prediction).kind
            why = f"found {description}, which no simulated user has led"
            return Observation({}, undefined={_METRIC: why}, abstained=(_METRIC,))
        (verdict,) = verdicts
        if isinstance(verdict, JudgeError):
            raise verdict
        details = {"reason": verdict.reasoning} if verdict.score < 1 else {}
        return Observation({"drift": 1 - verdict.score, "n": 1}, details)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say where the user left its role."""
        del case
        if "reason" not in observation.details:
            return []
        return [f"the simulated user did not keep to its role: {as_line(observation.details['reason'])}"]

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return the share."""
        return {_METRIC: sums["drift"] / sums["n"]}


def _conversation(case: Case) -> tuple[Mapping[str, Any], Sequence[Any]] | None:
    """The simulated user's task and the messages of a conversation, as a judge of user drift reads them."""
    prediction = case.prediction if isinstance(case.prediction, Mapping) else {}
    wants, messages = prediction.get("user"), prediction.get("messages")
    return (wants, messages) if isinstance(wants, Mapping) and isinstance(messages, list) else None


_DEPTH: Final = 7
"""Levels whose places are known: the list, a task, its criteria, their actions, an action, its arguments."""

_SPLITS: Final = "split_tasks.json"
_REPLIES: Final = "messages[?role=='assistant' && type(content)=='string'].content"
_ANSWERS: Final = f'join(`"\\n"`, {_REPLIES} || [answer || @])'
"""All that the assistant said in a transcript; an answer without messages is all."""

_RESPOND: Final = "respond"
"""In tau-bench, what an agent says is an action."""


@dataclass(frozen=True)
class TauSource(FileSource):
    """Tasks of tau-bench (with ``instruction``) or tau2-bench (with ``user_scenario``).

    The input of a case is what a simulated user needs: ``goal``, and ``persona`` and ``knows`` where the task has them.
    Actions of the agent are expected calls of tools. Each output must be communicated, which is a check of the case.

    Attributes:
        split: Name of a list of ids in ``split_tasks.json``, next to the file; by default all tasks.
        assertions: Whether the natural-language assertions of a task are checks by the suite's judge.
    """

    format: ClassVar[str] = "tau"

    split: str | None = None
    assertions: bool = False

    def read(self, file: CaseFile) -> None:
        """Add the cases of a list of tasks; see `FileSource.read`."""
        if file.path.suffix == ".py":
            why = "found a Python file, which is not executed, expected the list of its tasks as JSON"
            file.faults.add(0, 0, "", f"{why}: [task.model_dump() for task in TASKS]")
            return
        document = file.read_json(depth=_DEPTH)
        path = ["tasks"] if isinstance(document.data, dict) and "tasks" in document.data else []
        tasks = document.data["tasks"] if path else document.data
        if not isinstance(tasks, list):
            file.faults.add(*document.locate(path), render_path(path), f"found {kind(tasks)}, expected a list of tasks")
            return
        split = self._split(file)
        known = set()
        for index, data in enumerate(tasks):
            task = _Task(file, document, (*path, index), data)
            name = task.name(index)
            known.add(name)
            if name is not None and (split is None or name in split):
                task.add(name, assertions=self.assertions)
        if unknown := sorted((split or frozenset()) - known):
            named = ", ".join(map(repr, unknown[:5]))
            file.faults.add(
                0, 0, "split", f"found {named} in {self.split!r}, expected ids of tasks in {file.path.name}"
            )

    def _split(self, file: CaseFile) -> frozenset[str] | None:
        """Return the ids of the tasks that are read; ``None`` for all of them.

        Raises:
            SuiteError: The file of splits cannot be read.
        """
        if self.split is None:
            return None
        path = file.path.with_name(_SPLITS)
        splits = InputFile(path, shown_path(path)).read_json().data
        tasks = splits.get(self.split) if isinstance(splits, dict) else None
        if not isinstance(tasks, list):
            names = list(splits) if isinstance(splits, dict) else []
            expected = f"one of {', '.join(names) or 'the splits'} in {path.name}{suggest(self.split, names)}"
            file.faults.add(0, 0, "split", f"found {self.split!r}, expected {expected}")
            return frozenset()
        return frozenset(str(task) for task in tasks)

    def faulty(self, faults: Iterable[Fault]) -> int:
        """The number of tasks with faults that keep their case from running."""
        return len({fault.path.partition("]")[0] for fault in faults if "[" in fault.path and not fault.spares_case})


class _Task:
    """A task of a tau-bench file, and the faults in it."""

    def __init__(self, file: CaseFile, document: Document, path: Sequence[str | int], data: Any) -> None:
        self._file = file
        self._document = document
        self._path = tuple(path)
        self._data = data
        self._faulty: set[tuple[str | int, ...]] = set()

    def fault(self, path: Sequence[str | int], message: str) -> None:
        """Add a fault at a place inside the task, once for each place."""
        whole = (*self._path, *path)
        if whole in self._faulty:
            return
        self._faulty.add(whole)
        self._file.faults.add(*self._document.locate(whole), render_path(whole), message)

    def find(self, *path: str | int) -> Any:
        """The value at a path; ``None`` where nothing is, with a fault where no objects lead there."""
        here = self._data
        for depth, step in enumerate(path):
            if here is None:
                return None
            if not isinstance(here, dict):
                self.fault(path[:depth], f"found {kind(here)}, expected an object")
                return None
            here = here.get(step)
        return here

    def text(self, *path: str | int) -> str:
        """Return a text without spaces around it; empty if there is none."""
        value = self.find(*path)
        if value is None or isinstance(value, str):
            return (value or "").strip()
        self.fault(path, f"found {kind(value)}, expected text")
        return ""

    def texts(self, *path: str | int) -> list[str]:
        """Return a list of texts."""
        values = self._listed(path, "a list of texts")
        for index, text in enumerate(values or ()):
            if not isinstance(text, str) or not text.strip():
                self.fault((*path, index), f"found {kind(text)}, expected text")
        return [value for value in values or () if isinstance(value, str)]

    def _listed(self, path: Sequence[str | int], expected: str) -> list[Any] | None:
        values = self.find(*path)
        if values is None or isinstance(values, list):
            return values
        self.fault(path, f"found {kind(values)}, expected {expected}")
        return None

    def calls(self, arguments: str, *path: str | int) -> list[dict[str, Any]] | None:
        """Return the calls that the agent is expected to make; ``None`` where a task says nothing of actions.

        Args:
            arguments: The key of the arguments of an action.
            path: Where the actions are.
        """
        actions = self._listed(path, "a list of actions")
        if actions is None:
            return None
        calls = []
        for index, action in enumerate(actions):
            place = (*path, index)
            if not isinstance(action, dict):
                self.fault(place, f"found {kind(action)}, expected an action with name and {arguments}")
                continue
            name = action.get("name")
            if not isinstance(name, str) or not name:
                self.fault((*place, "name"), f"found {kind(name)}, expected the name of a tool")
            elif action.get("requestor", "assistant") == "assistant" and name != _RESPOND:
                calls.append({"name": name, **self._arguments(action, (*place, arguments))})
        return calls

    def _arguments(self, action: Mapping[str, Any], place: Sequence[str | int]) -> dict[str, Any]:
        arguments = action.get(str(place[-1]), {})
        if not isinstance(arguments, dict):
            self.fault(place, f"found {kind(arguments)}, expected an object")
            return {}
        compared = action.get("compare_args")
        if compared is None:
            return {"arguments": arguments}
        if not isinstance(compared, list):
            self.fault((*place[:-1], "compare_args"), f"found {kind(compared)}, expected a list of names")
            return {}
        return {"arguments": {name: value for name, value in arguments.items() if name in compared}} if compared else {}

    def name(self, index: int) -> str | None:
        """Return the id of the task, or else its number, counted from 0; ``None`` with a fault for no task."""
        if not isinstance(self._data, dict):
            self.fault((), f"found {kind(self._data)}, expected a task")
            return None
        value = self._data.get("id", index)
        name = CaseId.read(value)
        if name is None:
            self.fault(("id",), f"found {kind(value)}, expected text or a whole number")
        return name

    def add(self, name: str, *, assertions: bool) -> None:
        """Add the case of the task, or its faults."""
        before = self._file.faults.count
        if "user_scenario" in self._data:
            wants, calls, labels = self._second()
            criteria = "evaluation_criteria"
            outputs = self.texts(criteria, "communicate_info")
            judged = self.texts(criteria, "nl_assertions") if assertions else []
        elif "instruction" in self._data:
            user = self.text("user_id")
            wants = {"goal": self.text("instruction"), "knows": {"user_id": user} if user else {}}
            calls, labels = self.calls("kwargs", "actions"), {}
            outputs, judged = self.texts("outputs"), []
        else:
            keys = ", ".join(map(str, self._data)) or "no keys"
            self.fault((), f"found {keys}, expected instruction (tau-bench) or user_scenario (tau2-bench)")
            return
        if self._file.faults.count == before and not wants["goal"]:
            place = ("user_scenario", "instructions") if "user_scenario" in self._data else ("instruction",)
            self.fault(place, "the instruction is missing: write what the user wants")
        if self._file.faults.count > before:
            return
        line, column = self._document.locate(self._path)
        case = Case(
            name,
            {key: want for key, want in wants.items() if want},
            None if calls is None else {"tool_calls": calls},
            labels=labels,
            line=line,
            checks=(*map(_communicated, outputs), *map(_asserted, judged)),
        )
        self._file.add(case, render_path((*self._path, "id")), column)

    def _second(self) -> tuple[dict[str, Any], list[dict[str, Any]] | None, dict[str, str]]:
        """The user's task, the expected calls, and the labels of a task of tau2-bench."""
        place = ("user_scenario", "instructions")
        labels = {}
        if isinstance(self.find(*place), str):
            goal, knows = self.text(*place), {}
        else:
            parts = (self.text(*place, part) for part in ("reason_for_call", "task_instructions", "unknown_info"))
            goal = "\n\n".join(filter(None, parts))
            known = self.text(*place, "known_info")
            knows = {"known_info": known} if known else {}
            if domain := self.text(*place, "domain"):
                labels = {"domain": domain}
        wants = {"persona": self.text("user_scenario", "persona"), "goal": goal, "knows": knows}
        return wants, self.calls("arguments", "evaluation_criteria", "actions"), labels


def _communicated(output: str) -> dict[str, Any]:
    """The check (for a tau-bench task) that the agent said a text; letter case and commas in numbers are ignored."""
    beside = {"on": _ANSWERS, "name": "communicated"}
    expected = re.sub(r"(?<=\d),(?=\d)", "", output.strip())
    if not re.search(r"\d{4}|\s", expected):
        return {"icontains": expected, **beside}
    return {"regex": f"(?i){''.join(_pieces(expected))}", **beside}


def _pieces(output: str) -> Iterator[str]:
    """Yield regular expressions for the numbers, spaces and other characters of a text that an agent should say."""
    for piece in re.findall(r"\d{4,}|\s+|.", output):
        yield ",?".join(piece) if piece.isdigit() else r",*\s+" if piece.isspace() else re.escape(piece)


def _asserted(assertion: str) -> dict[str, Any]:
    """The judge check, in a suite file's form, for one assertion of a tau-bench task."""
    return {"judge": assertion, "on": "messages", "name": "assertion"}
