"""``llmeval init --rag``: a suite for an application that answers from passages, each line with its reason."""

import json
import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pytest_llmeval.cli import say
from pytest_llmeval.core import FieldsError, LlmevalError, Parts, as_line, counted, limit
from pytest_llmeval.evaluators import AnswerText
from pytest_llmeval.judges import JudgeConnection, JudgeSpec
from pytest_llmeval.workbench._project import Project, TargetPlace
from pytest_llmeval.workbench.init._questions import (
    AnswerShape,
    QuestionColumns,
    QuestionFile,
    answer_shape,
    ask,
    ask_once,
    find_columns,
    id_separator,
    read_questions,
)
from pytest_llmeval.workbench.plan._spread import Plan, ScoreSpread

_SCHEMA = "https://raw.githubusercontent.com/pytest-llmeval/pytest-llmeval-suite/main/docs/suite.schema.json"
_SPREAD = 0.3
"""Standard deviation that is taken for what a change does to the score of a case, until runs have shown it."""
_WORTH_FINDING = 0.2
"""A gate on a drop that finds only larger ones is no use."""
_MAX_DROP = 0.02
_SHARE_PASSED = 0.9
_FIXED = {"f1": 0.3, "mean(faithfulness)": 0.8, "mean(factual_f1)": 0.5}
"""Limits for suites in which no drop is significant."""
_FIXED_RECALL = 0.5
_K = 5
"""How many retrieved documents count if it is not known how many passages an answer has."""
_EXCERPT = 300
_PLAIN = re.compile(r"[^\W\d][\w]*")
_KEYWORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


class RagSuite(NamedTuple):
    """A suite that ``llmeval init --rag`` writes.

    Attributes:
        path: Relative to the project.
        text: Its content.
        cases: How many cases it has.
        approves: Whether its gates compare with an approved run.
        judge: The model that it asks; ``None`` if it asks none.
        replays: Whether CI replays recorded verdicts; if not, it asks the model, and has its key.
    """

    path: str
    text: str
    cases: int
    approves: bool
    replays: bool
    judge: JudgeSpec | None = None


class _Findings(NamedTuple):
    """The questions, columns and answer shape from which ``llmeval init --rag`` makes a suite.

    Attributes:
        file: The questions.
        path: Of the questions, relative to the suite file.
        target: What answers.
        columns: Of the questions.
        shape: Of an answer; ``None`` if nothing was asked.
        judge: Settings of the judge; ``None`` without one.
    """

    file: QuestionFile
    path: str
    target: TargetPlace
    columns: QuestionColumns
    shape: AnswerShape | None
    judge: JudgeSpec | None

    @property
    def has_passages(self) -> bool:
        return bool(self.columns.contexts) or (self.shape is not None and self.shape.passages is not None)

    @property
    def has_several_answers(self) -> bool:
        """Whether a question has a list of right answers; claims are those of one text."""
        return any(not isinstance(answer, str) for answer in self.file.values(self.columns.expected))

    @property
    def claims(self) -> list[str]:
        """Metrics of claims that can be computed."""
        if self.judge is None or self.has_several_answers:
            return []
        right = bool(self.columns.expected)
        grounded = ["faithfulness", *(["context_recall"] if right else [])] if self.has_passages else []
        return [*grounded, *(["factual_f1"] if right else [])]

    @property
    def compares_ids(self) -> bool:
        """Whether ids of retrieved documents can be compared with those of a column."""
        return bool(self.columns.documents) and (self.shape is None or bool(self.shape.documents))

    @property
    def most_documents(self) -> int:
        """How many retrieved documents count."""
        passages = None if self.shape is None else self.shape.passages
        return passages if passages is not None and passages > 0 else _K  # no documents at the first of none

    @property
    def gated(self) -> list[str]:
        """Means whose fall should fail a run: of judged metrics, or else of words in common.

        A gate on a mean can be decided before all cases have run; one on all claims of all cases cannot.
        """
        judged = [f"mean({name})" for name in self.claims if name != "context_recall"]
        retrieved = [f"recall@{self.most_documents}"] if self.compares_ids else []
        return [*(judged or (["f1"] if self.columns.expected else [])), *retrieved]


def add_rag_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``--rag``."""
    group = parser.add_argument_group("a suite from a file of questions")
    group.add_argument(
        "--rag", type=Path, metavar="FILE", help="questions as CSV, JSON or JSONL, for the application of --target"
    )
    for part, what in (
        ("question", "the question"),
        ("expected", "the right answer"),
        ("contexts", "passages, which the target then receives with the question"),
        ("documents", "ids of the documents that should be retrieved"),
        ("id", "the ids of the cases"),
        ("label", "a label, by whose values every metric is grouped"),
    ):
        text = f"column with {what}; default: the one with a usual name; - for none"
        group.add_argument(f"--{part}", metavar="COLUMN", help=text)
    group.add_argument(
        "--part",
        action="append",
        default=[],
        type=_part,
        metavar="NAME=PATH",
        help="where an answer has its text (answer=PATH), passages (contexts=PATH) or ids of documents "
        "(documents=PATH), as JMESPath; default: by names",
    )
    group.add_argument("--judge", metavar="PROVIDER:NAME", help="model that judges claims, such as openai:MODEL")
    group.add_argument("--judge-url", metavar="URL", help="address of a server with the interface of the provider")
    group.add_argument(
        "--judge-in-ci",
        choices=("key", "replay"),
        help="whether the workflow asks the judge, with its key, or replays verdicts that you record and commit; "
        "default: key, if the model needs one",
    )
    group.add_argument("--yes", action="store_true", help="call the target once, without asking, to see its answer")


def _part(text: str) -> tuple[str, str]:
    """Parse ``--part NAME=PATH``: where an application's answer has its text, passages or documents."""
    name, separator, path = text.partition("=")
    if name not in ("answer", "contexts", "documents") or not separator:
        raise ArgumentTypeError(f"found {text!r}, expected answer=PATH, contexts=PATH or documents=PATH")
    if fault := Parts.path_fault(path):
        raise ArgumentTypeError(fault[1])
    return name, path


def rag_suite(options: Namespace, folder: Path, suites: str, target: TargetPlace | None) -> RagSuite:
    """Make the suite of ``llmeval init --rag`` from the questions and, with consent, one answer.

    Raises:
        LlmevalError: The questions cannot be read, the target gives no answer, or the suite exists.
    """
    if target is None:
        raise LlmevalError("--rag needs --target, the function that answers, such as --target my_app:answer")
    path = f"{suites}/{_stem(options.rag)}.{Project(folder).suite_kind}.yaml"
    if (folder / path).exists():
        raise LlmevalError(
            f"{folder / path}: it exists, and nothing is overwritten: move it away, or rename {options.rag}"
        )
    judge = _judge(options)
    file = read_questions(options.rag)
    chosen = {part: getattr(options, part) for part in QuestionColumns._fields}
    columns = find_columns(file, chosen)
    say([f"read     {options.rag}: {counted(len(file.rows), 'question')}; {_columns(columns)}"])
    if columns.contexts and options.contexts is None:
        say([f"         column {columns.contexts}: not used; --contexts {columns.contexts} passes it to the target"])
        columns = columns._replace(contexts="")
    shape = _shape(options, folder, target, file, columns)
    place = Path(os.path.relpath(options.rag.resolve(), (folder / suites).resolve())).as_posix()
    findings = _Findings(file, place, target, columns, shape, judge)
    if judge is not None and not findings.claims:
        several = findings.has_several_answers
        why = "some questions have several right answers" if several else "neither right answers nor passages are known"
        say([f"         {judge.model} is not used: it would judge claims, and {why}"])
    text = "".join(f"{line}\n" for line in _lines(findings))
    model = judge if findings.claims and judge is not None and judge.provider != "fixture" else None
    replays = model is not None and (JudgeConnection(model).key_variable is None or options.judge_in_ci == "replay")
    return RagSuite(path, text, len(file.rows), "max_drop" in text, replays, model)


def _stem(path: Path) -> str:
    """The name of the suite file for a file of questions, without characters that file names lack."""
    return re.sub(r"[^\w-]+", "_", path.stem) or "questions"


def _columns(columns: QuestionColumns) -> str:
    """The columns that were recognized in a file of questions, as a line."""
    return ", ".join(f"{part}: {column}" for part, column in columns._asdict().items() if column)


def _judge(options: Namespace) -> JudgeSpec | None:
    """The judge that ``llmeval init --rag --judge`` names; ``None`` without one."""
    if options.judge is None:
        if options.judge_url is not None:
            raise LlmevalError("--judge-url needs a model: pass --judge, such as --judge openai:MODEL")
        return None
    try:
        return JudgeSpec(model=options.judge, base_url=options.judge_url)
    except FieldsError as error:
        raise LlmevalError(f"--judge: {error}") from None


def _shape(
    options: Namespace, folder: Path, target: TargetPlace, file: QuestionFile, columns: QuestionColumns
) -> AnswerShape | None:
    """The shape of the answer to the first question, if the user agrees to call the target."""
    row = file.rows[0]
    value: Any = row[columns.question]
    if columns.contexts:
        value = {"question": value, "contexts": row.get(columns.contexts)}
    if not (options.yes or _agreed(target, value)):
        say([f"         {target.name} was not called; --yes calls it once, to see what its answers look like"])
        return AnswerShape(**dict(options.part)) if options.part else None
    prediction = ask_once(target, folder, value)
    say([f"asked    {target.name}: {as_line(value, _EXCERPT)}", f"answered {as_line(prediction, _EXCERPT)}"])
    shape = answer_shape(prediction, dict(options.part), _document_ids(file, columns.documents))
    passages = "no passages found" if shape.passages is None else counted(shape.passages, "passage")
    ids = f"; ids: {shape.documents}" if shape.documents else ""
    text = shape.answer or ("answer" if isinstance(prediction, dict) else "all of it")
    say([f"         text: {text}; {passages}{ids}"])
    if columns.documents and not shape.documents:
        say([f"         column {columns.documents}: not used; --part documents=PATH names the ids in an answer"])
    return shape


def _document_ids(file: QuestionFile, column: str) -> set[str]:
    """All document ids in a column of expected documents in a file of questions."""
    mark = id_separator(file, column)
    ids: set[str] = set()
    for value in file.values(column):
        values = AnswerText(value).json_or_text() if isinstance(value, str) else value
        if not isinstance(values, list):
            values = str(value).split(mark) if mark else [value]
        ids.update(str(identifier).strip() for identifier in values)
    return ids


def _agreed(target: TargetPlace, value: Any) -> bool:
    """Whether the user agrees on a terminal to call the target once; without a terminal it is not called."""
    question = f"To see what an answer looks like, {target.name} would be called once with: {as_line(value, _EXCERPT)}"
    return ask(f"{question}\nCall it, yes or no?", "no").lower() in ("y", "yes")


def _lines(findings: _Findings) -> Iterator[str]:
    """Yield the lines of the suite file that ``llmeval init --rag`` writes."""
    count = len(findings.file.rows)
    yield f"# yaml-language-server: $schema={_SCHEMA}"
    questions = counted(count, "question")
    yield f"# {findings.target.name} answers {questions}: pytest --llmeval runs each as a test, and each gate"
    yield "# as one on the suite as a whole. The comments say why a line is there; change what does not fit."
    yield f"suite: {_yaml(_stem(findings.file.path))}"
    yield from _source(findings)
    yield f"target: {{python: {_yaml(findings.target.name)}, timeout: 120}}  # seconds that an answer may take"
    yield from _parts(findings)
    yield "checks:"
    yield "  - not_empty  # a blank answer is never right"
    yield from _evaluators(findings)
    if findings.judge is not None and findings.claims:
        yield from _judge_lines(findings.judge)
    yield from _gates(findings, count)


def _source(findings: _Findings) -> Iterator[str]:
    """Yield the lines of the ``source`` key of a new RAG suite: file, format and fields."""
    columns, file = findings.columns, findings.file
    yield "source:"
    yield f"  format: {file.format}"
    yield f"  path: {_yaml(findings.path)}"
    if file.delimiter not in ("", ","):
        yield f"  delimiter: {json.dumps(file.delimiter)}"
    yield "  fields:"
    if columns.id:
        yield f"    id: {_yaml(columns.id)}  # names the tests: -k selects by it"
    both = f"{{question: {_yaml(columns.question)}, contexts: {_yaml(columns.contexts)}}}"
    yield f"    input: {both if columns.contexts else _yaml(columns.question)}  # what the target receives"
    if findings.compares_ids:
        answer = f"answer: {_yaml(columns.expected)}, " if columns.expected else ""
        what = "the right answer and the ids of its documents" if answer else "the ids of the documents with the answer"
        yield f"    expected: {{{answer}contexts: {_yaml(columns.documents)}}}  # {what}"
    elif columns.expected:
        yield f"    expected: {_yaml(columns.expected)}  # the right answer"
    if columns.label:
        yield f"    labels: {{{_yaml(columns.label)}: {_yaml(columns.label)}}}"
        yield f"group_by: [{_yaml(columns.label)}]  # every metric by these groups, too"


def _parts(findings: _Findings) -> Iterator[str]:
    """Yield the lines of the ``parts`` key of a new RAG suite: paths into an answer."""
    if findings.shape is None:
        yield "# parts: {answer: text, contexts: 'sources[].text'}  # where an answer that is an object has its parts"
        return
    named = [
        ("answer", findings.shape.answer, "what people read"),
        ("contexts", findings.shape.contexts, "the passages"),
    ]
    if any(path for _, path, _ in named):
        yield "parts:  # where an answer has them, as one call has shown"
        yield from (f"  {part}: {_yaml(path)}  # {what}" for part, path, what in named if path)


def _evaluators(findings: _Findings) -> Iterator[str]:
    """Yield the lines of the ``evaluators`` key of a new RAG suite."""
    expected, claims = findings.columns.expected, findings.claims
    if expected or claims or findings.compares_ids:
        yield "evaluators:"
    if expected:
        yield "  - text: {metrics: [f1], ignore: [citations]}  # words in common with the right answer; [1] is none"
    if findings.compares_ids:
        mark = id_separator(findings.file, findings.columns.documents)
        between = f', separator: "{mark}"' if mark else ""
        options = f"{{k: {findings.most_documents}, metrics: [recall, mrr]{between}}}"
        yield f"  - document_ids: {options}  # expected documents among the first {findings.most_documents}"
        if findings.shape is not None:
            yield f"    on: {_yaml(findings.shape.documents)}  # where an answer has the ids of what was retrieved"
    if claims:
        yield f"  - claims: {{metrics: [{', '.join(claims)}]}}"
        meaning = {
            "faithfulness": "claims of the answer that the passages support",
            "context_recall": "claims of the right answer that the passages support: what retrieval found",
            "factual_f1": "claims of the answer that the right answer supports, and the other way round",
        }
        yield from (f"    # {name}: {meaning[name]}" for name in claims)
    elif findings.has_passages:
        yield "# With a judge, claims of the answer are checked against the passages:"
        yield "#   - claims: {metrics: [faithfulness]}"
        yield "# judge: {model: 'openai:MODEL', temperature: 0}"


def _judge_lines(judge: JudgeSpec) -> Iterator[str]:
    """Yield the line of the ``judge`` key of a new RAG suite."""
    settings = [f"model: {json.dumps(judge.model)}"]
    if judge.base_url is not None:
        settings.append(f"base_url: {json.dumps(judge.base_url)}")
    if judge.provider != "fixture":
        settings.append("temperature: 0")
    yield f"judge: {{{', '.join(settings)}}}  # asked once for each text: verdicts are stored in .llmeval"


def _gates(findings: _Findings, count: int) -> Iterator[str]:
    """Yield the lines of the ``gates`` key of a new RAG suite: gates that can decide with so many cases."""
    metrics = findings.gated
    plan = Plan(ScoreSpread(_SPREAD**2), allowed=_MAX_DROP, tests=max(1, len(metrics)), room=1.0)
    detectable = plan.detectable(count)
    drops = bool(metrics) and detectable is not None and round(detectable, 2) <= _WORTH_FINDING
    if drops:
        pooled = [name.removeprefix("mean(").rstrip(")") for name in metrics]
        left = ", tolerance: 1" if pooled != metrics else ""  # a gate on a mean stands for no pooled score
        why = "scores that --snapshot-update has approved; gates decide on falls"
        yield f"snapshot: {{metrics: [{', '.join(pooled)}]{left}}}  # {why}"
    cases = counted(count, "case")
    yield "gates:"
    most = int(count * (1 - _SHARE_PASSED) + 1e-9)
    share = _SHARE_PASSED if most else 1.0
    failing = f"at most {most} of {count} may fail" if most else f"none of {count} may fail"
    yield f"  - pass_rate >= {limit(share)}  # {failing} their checks"
    if drops and detectable is not None:
        yield f"  # Fail if a score fell significantly by more than {_MAX_DROP}. With {cases}, a true drop of"
        yield f"  # {detectable:.2f} is found in 80 of 100 runs, if a change moves the score of a case by about"
        yield f"  # {_SPREAD}. After the first approved run, llmeval power measures it."
        yield from (f"  - {{metric: {name}, max_drop: {_MAX_DROP}}}" for name in metrics)
        yield "# stop: when_decided  # asks less: cases run in random order, until every gate is decided"
    elif metrics:
        needed = plan.cases(_WORTH_FINDING)
        yield f"  # Too few for a significant drop: to find a drop of {_WORTH_FINDING}, it takes about {needed}"
        yield "  # cases. So fixed limits decide; set them to what your application reaches."
        yield from (f"  - {name} >= {limit(_FIXED.get(name, _FIXED_RECALL))}" for name in metrics)


def _yaml(text: str) -> str:
    """Write a text of the new suite as YAML, quoted if needed."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _KEYWORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
