"""The documentation says what the product does: files load, commands print what is shown, examples run."""

import doctest
import importlib
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import tomllib
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its types are a distribution of their own
import pytest
import yaml
from project import ROOT
from running import WITHOUT_UNUSED, run_python
from shop.world import messy_judge

import pytest_llmeval
from pytest_llmeval.core import LlmevalError
from pytest_llmeval.data import InputFile
from pytest_llmeval.evaluators.measures import _tokens as tokens
from pytest_llmeval.reports import Survival
from pytest_llmeval.suites import Registry, load_suite
from pytest_llmeval.suites._keys import SuiteEntry
from pytest_llmeval.workbench.mutation._mutants import mutation_of
from pytest_llmeval.workbench.mutation._survival import survival_of

SKILL = ROOT / "skills" / "llmeval" / "SKILL.md"
PAGES = sorted(
    [
        *ROOT.glob("docs/*.md"),
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "AGENTS.md", "ARCHITECTURE.md")),
        ROOT / ".github" / "RELEASING.md",
        SKILL,
    ],
    key=lambda path: path.name,
)

FENCE = re.compile(r"^```(?P<language>[\w-]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r".*`(?P<name>[\w./-]+\.(?:yaml|toml|jsonl?|csv|md|py|svg|txt))`.*:\Z", re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
FETCHED = re.compile(r"^curl -sSO \"https://\S+/main/(?P<path>\S+)\"$", re.MULTILINE)
LINKED = re.compile(r"\[[\w-]+\.jsonl\]\((?P<path>[\w/.-]+)\)")
LINK = re.compile(r"\]\((?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]*))?\)")

OTHER_TOOLS = {
    *(
        "--check",
        "--find-links",
        "--hypothesis-profile",
        "--no-binary",
        "--no-deps",
        "--only-binary",
        "--plot",
        "--release",
        "--write",
    ),
    "--wheel-dir",
}
OTHER_TOOLS |= {"--ablation", "--allowed", "--model", "--plugin-dir"}
OTHER_TOOLS |= {"--body-file", "--field", "--jq", "--method", "--paginate", "--repo"}
OTHER_TOOLS |= {"--full", "--generate-notes", "--reruns", "--verify-tag"}
OTHER_TOOLS |= {"--fill", "--no-edit", "--private", "--push", "--source"}
OTHER_TOOLS |= {"--message"}
OTHER_TOOLS |= {"--filter-failing", "--official", "--resume", "--use-cache"}
OTHER_TOOLS |= {"--array", "--dependency", "--parsable", "--wrap"}
OTHER_TOOLS |= {
    "--disable-pip",
    "--format",
    "--of",
    "--outdir",
    "--output-reproducible",
    "--pyproject",
    "--requirement",
}
"""Options of other commands that the pages show."""

TUTORIAL = ROOT / "docs" / "tutorial.md"
RAG_TUTORIAL = ROOT / "docs" / "rag-in-ten-minutes.md"
AFTERNOON = ROOT / "docs" / "from-traces-to-tests.md"
"""The commands of these are steps of one story, in one folder."""

STAND_INS = {
    "python": 'test "$*" = "-m venv .venv" && mkdir -p .venv/bin && touch .venv/bin/activate',
    "pip": 'test "$1" = install',
    "curl": f'test "$1" = -sSO && cp "{ROOT}/${{2#*/main/}}" .',
    "gh": """set -e
echo "$1 $2" >> .git/asked
if [ "$1" = repo ]; then
    git init --quiet --bare .git/hub && git remote add origin .git/hub && git push --quiet -u origin main
fi""",
}
"""Programs that would ask a network, by what takes their place in the tutorial."""

GIT = {
    **{f"GIT_{who}_{what}": "someone@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull),
}

JUDGE = "http://localhost:8000/v1"
"""The judge of the tutorial on RAG."""

SUITE_KEYS = {field.name for field in fields(SuiteEntry)}


@dataclass(frozen=True)
class Block:
    """A fenced block; `name` is the file that the sentence before it announces."""

    page: Path
    line: int
    language: str
    text: str
    name: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    text = page.read_text(encoding="utf-8")
    return tuple(
        Block(
            page,
            text.count("\n", 0, match.start()) + 1,
            match["language"],
            match["text"],
            _announced(text[: match.start()]),
        )
        for match in FENCE.finditer(text)
    )


def _announced(text: str) -> str | None:
    """Return the last file name in the paragraph that ends a text with a colon."""
    found = FILE_NAME.fullmatch(text.rstrip().rpartition("\n\n")[2])
    return found["name"] if found else None


def every(language: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language == language]


def is_broken(block: Block) -> bool:
    return block.name is not None and block.name.startswith("broken")


def write_files(folder: Path, page: Path, before: int | None = None) -> None:
    """Write what a page shows or fetches above a line; without a line, all that is not meant to be broken."""
    for block in blocks(page):
        wanted = not is_broken(block) if before is None else block.line < before
        if block.name is not None and wanted:
            write_block(folder, block)
        for path in FETCHED.findall(block.text):
            shutil.copy(ROOT / path, folder)


def write_linked(folder: Path, page: Path) -> None:
    """Copy the data files that a page links by their names."""
    for path in LINKED.findall(page.read_text(encoding="utf-8")):
        shutil.copy(page.parent / path, folder)


def write_block(folder: Path, block: Block) -> None:
    path = folder / str(block.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text, encoding="utf-8")
    if path.name == "pyproject.toml":
        install(path.parent, block.text)


def install(folder: Path, project: str) -> None:
    """Do in a folder, from which commands import, what pip does with the entry points of a pyproject.toml."""
    info = folder / "documented-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: documented\nVersion: 1.0\n", encoding="utf-8")
    points = tomllib.loads(project)["project"]["entry-points"]
    lines = [f"[{group}]\n{name} = {value}\n" for group in points for name, value in points[group].items()]
    (info / "entry_points.txt").write_text("".join(lines), encoding="utf-8")


def top_level_keys(text: str) -> set[str]:
    return set(re.findall(r"^(\w+):", text, re.MULTILINE))


def suite_blocks() -> list[Block]:
    return [each for each in every("yaml") if top_level_keys(each.text) <= SUITE_KEYS and not is_broken(each)]


def completed(text: str) -> str:
    """Add to a fragment of a suite what every suite must have."""
    keys = top_level_keys(text)
    if "evaluators" not in keys:
        text += "\nevaluators: [text, classification: {as: labels}]\n"
    if not keys & {"cases", "source"}:
        labels = sorted(set(re.findall(r"group_by: \[(\w+)|by: (\w+)", text)[0])) if "by: " in text else []
        text += f"\ncases: [{{prediction: x, labels: {{{', '.join(f'{label}: x' for label in labels if label)}}}}}]\n"
    return text


@pytest.mark.parametrize("block", suite_blocks(), ids=str)
def test_suite_in_the_docs_loads_without_fault(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_TOKENIZERS", dict(tokens._TOKENIZERS))
    write_files(tmp_path, block.page)
    path = (tmp_path / (block.name or "shown")).with_name("shown.eval.yaml")
    path.write_text(completed(block.text), encoding="utf-8")
    registry = Registry.installed()
    for each in blocks(block.page):
        if each.name is not None and each.name.endswith("conftest.py"):
            register = namespace_of(each.text).get("pytest_llmeval_register")
            if register is not None:
                register(registry)
    suite = load_suite(path, registry, root=tmp_path)
    assert suite.cases
    assert not suite.faults


def namespace_of(text: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "docs"}
    exec(compile(text, "docs", "exec"), namespace)
    return namespace


def normal(line: str) -> str:
    """Leave out what differs from run to run: durations, progress, the length of rules."""
    line = re.sub(r"\s*\[ *\d+%\]$", "", line)
    line = re.sub(r"\d+\.\d+s\b", "TIME", line)
    return re.sub(r"[=_]{3,}|\s+", " ", line).strip()


def run(command: str, folder: Path) -> str:
    """Run ``pytest``, ``llmeval`` or ``python`` as a user would, without traces of this environment."""
    words = shlex.split(command)
    own = dict(each.split("=") for each in takewhile(lambda word: "=" in word, words))
    tool, *arguments = words[len(own) :]
    start = {"pytest": ["-m", "pytest", *WITHOUT_UNUSED], "llmeval": ["-m", "pytest_llmeval"], "python": []}[tool]
    dropped = ("PYTEST_", "GITHUB_", "CI", "BUILD_NUMBER", "COVERAGE_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    done = run_python([*start, *arguments], {**environment, **own, "COLUMNS": "80"}, folder, cold=tool == "python")
    return done.out + done.err


def check_commands(block: Block, folder: Path) -> None:
    """Run the commands of a block; what they print has the lines that are shown, in this order."""
    for part in filter(None, re.split(r"^\$ ", block.text, flags=re.MULTILINE)):
        command, *shown = part.splitlines()
        output = run(command, folder)
        printed = [normal(line) for line in output.splitlines()]
        for line in shown:
            wanted = normal(line)
            if wanted in ("", "..."):
                continue
            assert wanted in printed, f"{block}: {line!r} is not in the rest of\n{output}"
            del printed[: printed.index(wanted) + 1]


@pytest.mark.parametrize(
    "block", [each for each in every("console") if each.page not in (TUTORIAL, RAG_TUTORIAL, AFTERNOON, SKILL)], ids=str
)
def test_command_in_the_docs_prints_what_is_shown(block: Block, tmp_path: Path) -> None:
    write_linked(tmp_path, block.page)
    if block is blocks(block.page)[0]:  # what the page leads to, above its files
        files = {other.name: other for other in reversed(blocks(block.page)) if other.name and not is_broken(other)}
        for file in files.values():
            write_block(tmp_path, file)
    else:
        write_files(tmp_path, block.page, before=block.line)
    check_commands(block, tmp_path)


def follow(page: Path, folder: Path, written: str = "", judge: str = JUDGE) -> Path:
    """Do the steps of a tutorial, one after the other; return the folder of its project.

    Args:
        page: The tutorial.
        folder: An empty one.
        written: A file that the tutorial shows and that its commands write.
        judge: The address of the judge that has a short one in the tutorial.
    """
    tools = folder / "tools"
    tools.mkdir()
    for name, script in STAND_INS.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tools / name).chmod(0o755)
    environment = {**os.environ, **GIT, "PATH": f"{tools}:{os.environ['PATH']}"}
    project = folder / "shop"
    for block in blocks(page):
        if block.name is not None and block.name == written:
            assert (project / block.name).read_text(encoding="utf-8").replace(judge, JUDGE) == block.text
        elif block.name is not None:
            (project / block.name).write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            start = project if project.exists() else folder
            subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=start, env=environment, check=True)
        elif block.language == "console":
            check_commands(replace(block, text=block.text.replace(JUDGE, judge)), project)
    return project


def test_tutorial_leads_from_nothing_to_a_gated_pull_request(tmp_path: Path) -> None:
    folder = follow(TUTORIAL, tmp_path)
    pushed = subprocess.run(
        ["git", "log", "--format=%s", "simpler"],
        cwd=folder / ".git" / "hub",
        check=True,
        capture_output=True,
        text=True,
    )
    first = "Answers about the shop, and an evaluation of them"
    assert pushed.stdout.splitlines() == ['Revert "Simplify the lookup"', "Simplify the lookup", first]
    assert (folder / ".git" / "asked").read_text(encoding="utf-8").splitlines() == ["repo create", "pr create"]


def test_rag_tutorial_leads_to_a_gated_pull_request_in_eight_commands(tmp_path: Path) -> None:
    project = tmp_path / "shop"
    subprocess.run(["git", "init", "--quiet", project], check=True)
    with messy_judge() as judge:
        follow(RAG_TUTORIAL, tmp_path, written="tests/evals/questions.eval.yaml", judge=judge.base_url)
    typed = [line for each in blocks(RAG_TUTORIAL) if each.language == "sh" for line in each.text.splitlines()]
    typed += [line for each in blocks(RAG_TUTORIAL) for line in each.text.splitlines() if line.startswith("$ ")]
    assert len(typed) <= 8
    # The pull request: the judge is gone, and so is all that the last commit does not have.
    subprocess.run(["git", "clean", "-qdfx"], cwd=project, check=True)
    workflow = yaml.safe_load((project / ".github" / "workflows" / "evals.yml").read_text(encoding="utf-8"))
    (evaluate,) = (each["run"] for each in workflow["jobs"]["evaluate"]["steps"] if each.get("name") == "Evaluate")
    evaluate = evaluate.replace("$SELECTION", "")  # empty but at night
    text = run(evaluate, project)
    assert "gate FAILED  mean(factual_f1) >= 0.5  (mean(factual_f1) is 0.0000, expected >= 0.5)" in text
    assert "judge: 36 verdicts, 0 requested in this run" in text
    (missing,) = (each.text for each in blocks(RAG_TUTORIAL) if each.text.startswith("replay: "))
    shutil.rmtree(project / "tests" / "evals" / "__llmeval__")
    assert run(evaluate, project).count(missing) == 1


def test_an_afternoon_leads_from_traces_to_two_evaluators_and_a_pull_request(tmp_path: Path) -> None:
    project = follow(AFTERNOON, tmp_path)
    assert (project / ".git" / "asked").read_text(encoding="utf-8").splitlines() == ["repo create", "pr create"]
    command = ["git", "show", "--format=", "--name-only", "right-direction"]
    shown = subprocess.run(command, cwd=project / ".git" / "hub", check=True, capture_output=True, text=True)
    evaluators = {"tickets.eval.yaml", "wrong-direction.md", "wrong-direction.eval.json"}
    assert {*shown.stdout.split()} == {"clerk.py", "conftest.py", "modes.jsonl", *evaluators}
    opened = [line for line in (project / "modes.jsonl").read_text(encoding="utf-8").splitlines() if '"open"' in line]
    assert len(opened) == 1


PROGRAM = "import sys; sys.path[:] = filter(None, sys.path); from pytest_llmeval.cli import main; sys.exit(main())"
"""What the program ``llmeval`` does, which does not import from the current folder as ``python -m`` does."""


def test_skill_leads_from_nothing_to_a_guarded_suite_by_commands_that_all_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in GIT.items():
        monkeypatch.setenv(name, value)
    write_files(tmp_path, SKILL)
    (tmp_path / "promptfooconfig.yaml").write_text("prompts: ['{{q}}']\nproviders: [echo]\ntests: [{vars: {q: x}}]\n")
    for command in ("init -q -b main", "add -A", "commit -q -m Evaluate"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    text = SKILL.read_text(encoding="utf-8")
    typed = re.findall(r"\| `((?:llmeval|pytest) [^`]+)` \|", text)
    for block in (each for each in blocks(SKILL) if each.language == "console"):
        untold = re.fullmatch(r"\$ (.+)\n\.\.\.\n?", block.text)
        if not (untold and untold[1] in typed):  # which runs it below
            check_commands(block, tmp_path)
    assert len(typed) > 15
    for command in typed:
        tool, *arguments = command.split()
        start = {"pytest": ["-m", "pytest", *WITHOUT_UNUSED], "llmeval": ["-c", PROGRAM], "python": []}[tool]
        done = run_python([*start, *arguments], dict(os.environ), tmp_path)
        assert done.code == 0, f"{command}: {done.out}{done.err}"
    assert len(text.splitlines()) < 300


def test_site_has_every_page_as_markdown_and_a_list_of_them(tmp_path: Path) -> None:
    conf = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    conf["write_markdown"](SimpleNamespace(srcdir=ROOT / "docs", outdir=tmp_path), None)
    listed = re.findall(r"\]\(([\w.-]+)\)", (tmp_path / "llms.txt").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted([*(page.name for page in ROOT.glob("docs/*.md")), "SKILL.md"])
    assert all((tmp_path / name).read_text(encoding="utf-8") for name in listed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_in_the_docs_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "example_suites").symlink_to(ROOT / "example_suites")
    monkeypatch.chdir(tmp_path)  # some blocks write files
    namespace: dict[str, object] = {}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    for block in blocks(page):
        if block.language == "python" and block.name is None:
            if block.text.startswith(">>>"):
                test = parser.get_doctest(block.text, namespace, str(block), str(page), 0)
                runner.run(test, clear_globs=False)
                namespace.update(test.globs)
            else:
                exec(compile(block.text, str(block), "exec"), namespace)
    assert not runner.failures


def anchors(page: Path) -> set[str]:
    """Return what links may name behind ``#``: headings in lower case, blanks as hyphens, marks dropped."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ +(.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_comparison_of_daily_jobs_says_what_was_tried_when_and_with_which_version() -> None:
    text = (ROOT / "benchmarks" / "daily_jobs.md").read_text(encoding="utf-8")
    jobs = re.findall(r"^\| (\d+)\. [^|]+\|([^|]+)\|([^|]+)\|([^|]+)\|$", text, re.MULTILINE)
    assert [int(number) for number, *_ in jobs] == list(range(1, 13))
    assert all(each.strip() for job in jobs for each in job)
    assert re.search(r"Tried on \d+ \w+ 20\d\d with promptfoo [\d.]+\d .*deepeval [\d.]+\d ", text)


def test_every_block_ends() -> None:
    """A block that does not end is neither run nor read as one."""
    fences = {page.name: re.findall("^```", page.read_text(encoding="utf-8"), re.MULTILINE) for page in PAGES}
    assert [name for name, found in fences.items() if len(found) % 2] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for match in LINK.finditer(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in match["target"]:
            continue
        target = page.parent / match["target"] if match["target"] else page
        assert target.exists(), f"{page.name}: {match[0]}"
        assert not match["anchor"] or match["anchor"] in anchors(target), f"{page.name}: {match[0]}"


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "ARCHITECTURE.md"])
def test_pages_about_the_code_name_only_paths_that_exist(name: str) -> None:
    named = set(re.findall(r"`([\w.]+/[\w./]*)`", (ROOT / name).read_text(encoding="utf-8")))
    assert named
    assert {
        each for each in named if not any((root / each).exists() for root in (ROOT, ROOT / "pytest_llmeval"))
    } == set()


@pytest.fixture(scope="module")
def known_options(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("help")
    listed = re.findall(r"^  ([a-z][a-z-]*) ", run("llmeval --help", folder), re.MULTILINE)
    nested = (
        "cache import",
        "cache prune",
        "cases add",
        "export mlflow",
        "judge migrate",
        "emotion-cause convert",
        "mcp lint",
    )
    tools = (*listed, *nested, "emotion-cause validate", "fact-check export", "mcp check", "retrieval build-set")
    commands = ("pytest --help", *(f"llmeval {name} --help" for name in tools))
    return {*(option for each in commands for option in OPTION.findall(run(each, folder))), *OTHER_TOOLS}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_name_only_options_that_exist(page: Path, known_options: set[str]) -> None:
    named = set(OPTION.findall(page.read_text(encoding="utf-8")))
    assert named <= known_options


def with_examples() -> list[str]:
    """Return the modules that have examples, which are found without importing all the others."""
    root = Path(pytest_llmeval.__path__[0])
    shown = sorted(path for path in root.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))
    names = (".".join(path.relative_to(root.parent).with_suffix("").parts) for path in shown)
    return [name.removesuffix(".__init__") for name in names]


@pytest.mark.parametrize("name", with_examples())
def test_examples_in_docstrings_run(name: str) -> None:
    public = {each: getattr(pytest_llmeval, each) for each in pytest_llmeval.__all__}
    done = doctest.testmod(importlib.import_module(name), extraglobs=public)
    assert done.attempted
    assert not done.failed


def test_json_report_in_the_docs_has_the_form_of_the_published_schema(tmp_path: Path) -> None:
    write_files(tmp_path, ROOT / "docs" / "reports.md")
    run("pytest --llmeval --llmeval-report=report.json --llmeval-texts=all", tmp_path)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    schema = json.loads((ROOT / "docs" / "report.schema.json").read_text(encoding="utf-8"))
    for form in schema["$defs"].values():
        form["additionalProperties"] = False  # each key is one that the schema describes
    jsonschema.Draft202012Validator(schema).validate(report)
    assert {case["outcome"] for case in report["suites"][0]["cases"]} == {"passed", "failed", "not_scored"}


def test_json_suite_in_the_docs_loads(tmp_path: Path) -> None:
    write_files(tmp_path, ROOT / "docs" / "suite-files.md")
    assert InputFile(tmp_path / "minimal.eval.json", "minimal.eval.json").read_document().data


_ONE_THING = "the page shows this one feature, and its suite has no other limits"

EXPLAINED_SURVIVORS = {
    ("case-retrieval.md", "search.eval.yaml"): "precision counts documents as often as listed, hit rates see no order",
    ("case-retrieval.md", "trec.eval.yaml"): "precision counts a document as often as it is listed",
    ("evaluators.md", "support.eval.yaml"): _ONE_THING,
    ("emotion-cause.md", "spans.eval.yaml"): "its weighted scores leave out emotions that gold does not have",
    ("extending.md", "short.eval.yaml"): _ONE_THING,
    ("fact-checking.md", "paper.eval.yaml"): _ONE_THING,
    ("from-traces-to-tests.md", "traces.eval.yaml"): "a suite that sees nothing, so that people look",
    ("judges.md", "assistant.eval.yaml"): _ONE_THING,
    ("thresholds-and-gates.md", "shop.eval.yaml"): "the page shows what a toothless suite lets pass",
    ("narrative.md", "swan.eval.yaml"): _ONE_THING,
    ("rag.md", "search.eval.yaml"): "mutators change answers, not what was retrieved",
    ("predictions.md", "costs.eval.yaml"): _ONE_THING,
    ("regressions.md", "limits.eval.yaml"): "f1 counts the words around an answer",
    ("reports.md", "capitals.eval.yaml"): "one of its answers is wrong, to be shown",
    ("tool-calls.md", "routing.eval.yaml"): "one of its answers is wrong, to be shown, which leaves two to change",
    ("snapshots.md", "weather.eval.yaml"): _ONE_THING,
    ("sources.md", "production.eval.yaml"): "nobody knows what is right in production",
}
"""Page and suite file to why it lets wrong answers pass, or fails right ones; no other suite that can fail does."""


def mutable_suites() -> list[Block]:
    named = (each for each in suite_blocks() if each.name is not None and ".eval." in each.name)
    return list({(each.page, each.name): each for each in named}.values())


@pytest.mark.parametrize("block", mutable_suites(), ids=str)
def test_what_survives_in_a_suite_of_the_docs_is_explained(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "_TOKENIZERS", dict(tokens._TOKENIZERS))
    write_files(tmp_path, block.page)
    registry = Registry.installed()
    for each in blocks(block.page):
        if each.name is not None and each.name.endswith("conftest.py"):
            register = namespace_of(each.text).get("pytest_llmeval_register")
            if register is not None:
                register(registry)
    assert block.name is not None
    path = tmp_path / block.name
    path.write_text(block.text, encoding="utf-8")  # a page may also show what the file of this name prints
    suite = load_suite(path, registry, root=tmp_path)
    can_fail = suite.can_fail or (suite.snapshot is not None and suite.snapshot.enabled)
    found: list[str] = []
    for system in suite.systems or [None]:
        with suppress(LlmevalError):  # without recorded answers that pass there is nothing to change
            found += survival_of(mutation_of(suite, registry.mutators, system=system)).weaknesses(Survival.SHOWN_FROM)
    explained = (block.page.name, block.name) in EXPLAINED_SURVIVORS
    assert bool(found and can_fail) == explained, found
