"""Every documented option is tried as its user does: a command line, its exit code, and a line that says why."""

import os
import shlex
import shutil
import sys
from argparse import Action
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from project import script
from running import WITHOUT_UNUSED, run_python

from pytest_llmeval.cli import OPTIONS, main

COMMANDS = dict(script("options_page").parsers())

FILES = {
    "s.eval.yaml": """\
suite: s
evaluators: [text]
group_by: [topic]
gates: [f1 >= 0.1]
cases:
  - {id: a, input: q, expected: x y, prediction: x y, labels: {topic: t}}
  - {id: b, input: r, expected: x y, prediction: x z, labels: {topic: u}}
""",
    "judged.eval.yaml": """\
suite: judged
evaluators: [{judge: {mode: continuous}}]
judge: {model: "openai:m", base_url: "http://127.0.0.1:9/v1", retries: 0}
cases: [{id: a, input: q, expected: x, prediction: x}]
""",
    "bot.py": "def answer(question): return question\n",
    "rows.jsonl": '{"case": "a", "metric": "f1", "score": 1}\n{"case": "b", "metric": "f1", "score": 0.5}\n',
    "answers.json": '{"a": "x y", "b": "x y"}',
    "rows.csv": "q,a,p,n,l,c,d\nWhat?,x,x,1,t,some text,doc\n",
    "pairs.json": "[]",
    "tools.json": '[{"name": "find", "description": "Finds pages by their words.", "inputSchema": {"type": "object"}}]',
    "promptfooconfig.yaml": "prompts: [x]\nproviders: [echo]\ntests: [{assert: [{type: contains, value: a}]}]\n",
}
ADDRESS = "http://127.0.0.1:9"
"""An address at which nobody answers."""
JUDGE = "--budget=calls=1 --concurrency=2 --cache=c.sqlite3"
SERVER = f"--url={ADDRESS}/mcp --env=HOME --header-from-env=A=HOME --timeout=1"


class Line(NamedTuple):
    """One command line.

    Attributes:
        text: The line.
        code: Its exit code.
        why: What it prints; of the last lines, if the exit code is not 0.
        slow: Whether it starts a process or loads a large library: a release tries it.
    """

    text: str
    code: int
    why: str
    slow: bool = False


LINES = [
    Line("affected HEAD s.eval.yaml --rootdir=. --json --why=a", 2, "is in no git repository", slow=True),
    Line("approve r.json --case=b --suite=s --rootdir=.", 1, "expected a case that misses limits"),
    Line("cache stats --cache=c.sqlite3", 1, "no judge cache at c.sqlite3"),
    Line("cache prune --cache=c.sqlite3 --older-than=3 --model=openai:m", 1, "no judge cache at c.sqlite3"),
    Line("cache verify --cache=c.sqlite3", 1, "no judge cache at c.sqlite3"),
    Line("cache export v.jsonl --cache=c.sqlite3", 1, "no judge cache at c.sqlite3"),
    Line("cache import rows.jsonl --cache=c.sqlite3 --suite=s.eval.yaml --model=openai:m", 2, "not to JSONL"),
    Line("cache explain judged.eval.yaml --cache=c.sqlite3 --model=openai:m", 0, "to be asked"),
    Line("cases add s.eval.yaml --from=t.json --trace=1 --expected=x --id=c --label=topic=t --dry-run", 1, "t.json"),
    Line(
        "comment r.json --baseline=r.json --guard=g.md --repository= --report-url=https://example.org/r.html "
        "--commit=0123456 --output=c.md",
        1,
        "g.md  cannot be read",
    ),
    Line("compare r.json --baseline=r.json --confidence=0.9 --max-drop=0.5 --metric=f1 --by=topic --show=2", 0, "f1"),
    Line("decide r.json s.eval.yaml", 0, "gate PASSED"),
    Line("doctor s.eval.yaml --ask --verbose", 0, "all is well", slow=True),
    *[
        Line(
            f"emotion-cause convert pairs.json --from={form} --to={to} --subtask={number} --conversations=c.json -o o",
            1,
            "c.json",
        )
        for form, to, number in [
            *[("internal", "official", 1), ("official", "internal", 2), ("text", "internal-spans", 1)],
            *[("step2", "internal", 2), ("step2-gold", "internal", 2)],
        ]
    ],
    *[Line(f"emotion-cause validate pairs.json --subtask={number} --gold=g.json", 1, "g.json") for number in (1, 2)],
    Line(
        "evaluator m r.json --notes=n.jsonl --check='{\"max_words\": 3}' --final --annotator=me --suite=s --folder=o",
        1,
        "n.jsonl",
    ),
    Line("evaluators text", 0, "exact_match"),
    Line("explain LE101", 0, "What to do"),
    Line("export mlflow r.json --experiment=e", 1, "MLflow", slow=True),
    *[Line(f"fact-check export r.json -o o --suite=s --keys={keys}", 1, "none") for keys in ("original", "ours")],
    Line(
        "gate rows.jsonl --baseline rows.jsonl --gates 'f1 >= 0.5' --expect=rows.jsonl --format=results "
        "--range f1=0..1 --tolerance=0.1 --undecided=pass --json --comment=c.md --report=g.json --rootdir=. -v",
        0,
        "passed",
    ),
    Line("gate rows.jsonl --gates 'f1 >= 0.9' --undecided=fail --map=case=case --higher-is-better f1", 1, "f1"),
    Line("gate rows.jsonl --lower-is-better f1 --snapshot-update --snapshot-anchor", 0, "approved"),
    Line("gate rows.jsonl --reference=s --min-cases=2 --power=0.2", 2, "unknown system s"),
    Line("guard . --base=HEAD --allow=allow.txt -o guard.md --json=guard.json", 2, "is not a git repository"),
    Line("history s.eval.yaml --metric=f1 --last=3 --svg=h.svg", 1, "no runs and no approvals"),
    Line("html r.json -o page.html --baseline=r.json --pages=2", 0, "wrote page.html"),
    Line("import promptfoo promptfooconfig.yaml --to=o --force --strict --arms", 1, "not imported"),
    Line("import table rows.csv --to=o --input=q --expected=a --prediction=p --id=n --label=l", 0, "rows.eval.yaml"),
    Line(
        f"init o --github --target=bot:answer --judge=openai:m --judge-url={ADDRESS} --judge-in-ci=key --yes",
        2,
        "no module 'bot'",
    ),
    Line("init o --gitlab --judge-in-ci=replay --yes", 0, "Next:"),
    Line(
        "init . --rag=rows.csv --target=bot:answer --question=q --expected=a --contexts=c --documents=d --id=n "
        "--label=l --part=answer=answer --yes",
        2,
        "--part answer=answer: there is no text",
    ),
    Line("inputs s.eval.yaml", 0, '{"id": "a", "input": "q"}'),
    Line(
        f"judge migrate judged.eval.yaml --to=openai:n --from=openai:m --approve --base-url={ADDRESS} "
        f"--predictions=p.jsonl {JUDGE}",
        1,
        "p.jsonl",
    ),
    Line("judge replies rows.jsonl --cache=c.sqlite3", 1, "no deferred requests in c.sqlite3"),
    Line("judge requests --model=openai:m -o o.jsonl --cache=c.sqlite3", 1, "no deferred requests in c.sqlite3"),
    Line(f"mcp snapshot --file=t.json {SERVER} {ADDRESS}/mcp", 2, f"MCP server {ADDRESS}/mcp", slow=True),
    Line(f"mcp check --file=tools.json {SERVER} {ADDRESS}/mcp", 2, "tools.json"),
    Line(f"mcp lint --ignore=type --overlap=0.5 {SERVER} tools.json", 0, "0 findings in 1 tool"),
    Line(
        "merge . --report=m.json --snapshot-update --snapshot-anchor --mutate --mutate-seed=1 --require-gates "
        "--rootdir=. -v",
        1,
        "has no *.llmeval",
    ),
    Line(
        f"modes n.jsonl --by=topic --cluster-by=topic --suggest --judge-model=openai:m --judge-base-url={ADDRESS} "
        f"{JUDGE} -o o.html",
        1,
        "n.jsonl",
    ),
    Line(f"mutate s.eval.yaml --seed=1 --fail-over=0 --json=m.json {JUDGE}", 0, "0% survive"),
    Line("mutate s.eval.yaml --judges --yes --predictions=p.jsonl", 1, "p.jsonl"),
    Line("mutate --changed --base=HEAD", 1, "not a git repository"),
    Line(
        "power s.eval.yaml --drop=0.1 --metric=f1 --confidence=0.9 --cluster-by=topic --within=0.1 --between=0.1 "
        "--plot=p.svg",
        0,
        "more cases pay",
    ),
    Line("power s.eval.yaml --report=r.json --report=r.json --simulate=2 --seed=1", 0, "all runs are equal"),
    Line(
        "retrieval build-set rows.jsonl -o o.jsonl --report=b.json --queries=1 --candidates=1 --positives=1 "
        "--min-positives=1 --relative=0.1 --absolute=1 --seed=1",
        1,
        "0 queries with 0 positives",
    ),
    Line(
        "review s.eval.yaml --pick=1 --draw=random --modes=modes.jsonl --seed=1 --annotator=me --suite=s -o page.html",
        0,
        "page.html",
    ),
    Line("review s.eval.yaml --draw=spread --scale=yesno --ask=Kind? -o page.html", 0, "page.html"),
    Line("review s.eval.yaml --draw=failing --scale=1-5 --evaluator=text --again l.jsonl", 1, "l.jsonl"),
    Line("review s.eval.yaml --predictions=p.jsonl --labels l.jsonl", 1, ".jsonl"),
    Line("review s.eval.yaml --draw=uncertain --serve --port=99999", 2, "--port"),
    Line("schema results", 0, "properties"),
    Line("score s.eval.yaml --executor=processes:1 --predictions=answers.json --report=x.json -v", 0, "2 passed"),
    Line("score s.eval.yaml --judge=replay --concurrency=2 --budget=calls=1 --cache=c.sqlite3", 0, "1 gate passed"),
    Line("validate s.eval.yaml", 0, "no fault in 2 cases"),
]

RUNS = [
    Line("--llmeval-report=r.json --llmeval-texts=all --llmeval-require-gates --llmeval-family=project", 0, "2 passed"),
    Line("--llmeval-shard=1/2 --llmeval-report=1.llmeval --llmeval-texts=none", 0, "1.llmeval"),
    Line(
        "--llmeval-plan --llmeval-stop=never --llmeval-otel=events --llmeval-media-limit=1,2 --llmeval-annotations=off",
        0,
        "plan",
    ),
    Line("--llmeval-affected --llmeval-refresh=0.5", 0, "2 passed"),
    Line("--llmeval-predictions=p.jsonl --llmeval-predictions-mode=replay", 4, "p.jsonl"),
    Line("--llmeval-predictions=p.jsonl --llmeval-predictions-mode=record", 0, "2 passed"),
    Line("--llmeval-mutate --llmeval-mutate-seed=1 --llmeval-texts=failing --llmeval-family=suite", 0, "mutant"),
    Line(
        f"--llmeval-judge=auto --llmeval-judge-model=openai:n --llmeval-judge-base-url={ADDRESS} "
        "--llmeval-budget=calls=1 --llmeval-concurrency=2 --llmeval-cache=c.sqlite3",
        0,
        "2 passed",
    ),
    Line("-o llmeval_snapshots=true --snapshot-update --llmeval-new-anchor", 0, "approved"),
]
"""Those of pytest, each after ``--llmeval``."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files, and the report of the suite."""
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["score", "s.eval.yaml", "--report=r.json"]) == 0
    return folder


@pytest.fixture
def project(files: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the current folder, which has the files."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    shutil.copytree(files, here, dirs_exist_ok=True)
    yield here
    sys.modules.pop("bot", None)  # other tests have modules of this name


def says(line: Line, output: str) -> bool:
    """Return whether an output says why the exit code is as it is: where it is a bad one, in the last lines."""
    return line.why in (output if line.code == 0 else "\n".join(output.splitlines()[-8:]))


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("line", [line for line in LINES if not line.slow], ids=lambda line: line.text[:30])
def test_a_command_ends_with_its_exit_code_and_why(line: Line, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(shlex.split(line.text))
    except SystemExit as end:
        code = int(end.code or 0)
    printed = capsys.readouterr()
    assert (code, says(line, printed.out + printed.err)) == (line.code, True), printed


@pytest.mark.release
@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:30])
def test_a_process_ends_with_the_exit_code_and_why(project: Path, line: Line) -> None:
    done = run_python(["-m", "pytest_llmeval", *shlex.split(line.text)], os.environ, project)
    assert (done.code, says(line, done.out + done.err)) == (line.code, True), done


@pytest.mark.parametrize("line", RUNS, ids=lambda line: line.text[10:40])
def test_a_run_ends_with_the_exit_code_and_why(project: Path, line: Line) -> None:
    (project / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    arguments = ["-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "s.eval.yaml", *shlex.split(line.text)]
    done = run_python(arguments, os.environ, project)
    assert (done.code, says(line, done.out + done.err)) == (line.code, True), done


def words_of(line: Line) -> set[str]:
    """Return the options of a line, alone and with their values, as they are written and as they are split."""
    words = shlex.split(line.text)
    pairs = {f"{word}={value}" for word, value in pairwise(words)}
    return {*words, *pairs, *(word.partition("=")[0] for word in words)}


def untried(actions: list[Action], lines: list[Line]) -> list[str]:
    """Return the options, and their choices, that no line has."""
    words = {word for line in lines for word in words_of(line)}
    missing = []
    for action in actions:
        names: tuple[str, ...] = tuple(action.option_strings)
        values: Any = action.choices or ()
        wanted = [{f"{name}={value}" for name in names} for value in values] or [set(names)]
        missing += [min(forms) for forms in wanted if names and action.dest != "help" and not forms & words]
    return missing


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_tried(command: str) -> None:
    lines = [line for line in LINES if line.text.startswith(f"{command} ")]
    actions = COMMANDS[command]._actions
    assert lines or any(action.nargs == "A..." for action in actions), "no line of this command"
    assert untried(actions, lines) == []


def test_every_option_of_pytest_is_tried() -> None:
    words = {word for line in RUNS for word in words_of(line)} | {"--llmeval"}
    names = {name: option.pytest_names for name, option in OPTIONS.items() if option.pytest_names}
    assert [name for name, spellings in names.items() if not set(spellings) & words] == []
