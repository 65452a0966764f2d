"""A project of twelve suites whose answers depend on files in twelve ways, its history, and what really changes."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from running import WITHOUT_UNUSED, run_python

from pytest_llmeval.run import Checkout, ChoiceTerms
from pytest_llmeval.suites import SuiteKey
from pytest_llmeval.workbench._affected import choose_affected

ROOT = "from pathlib import Path\nROOT = Path(__file__).parent.parent\n"

AGENTS = {
    "constant": f"{ROOT}PROMPTS = ROOT / 'prompts'\n"
    "def answer(value):\n    return (PROMPTS / 'constant.md').read_text() + value\n",
    "helper": "from app import middle\ndef answer(value):\n    return middle.through(value)\n",
    "package": "from .inner import shout\ndef answer(value):\n    return shout(value)\n",
    "listing": f"{ROOT}def answer(value):\n"
    "    return value + ''.join(p.read_text() for p in sorted((ROOT / 'kb').glob('*.txt')))\n",
    "table": f"import json\n{ROOT}with open(ROOT / 'data/table.json') as file:\n    TABLE = json.load(file)\n"
    "def answer(value):\n    return str(TABLE.get(value[-1], '?'))\n",
    "filled": f"{ROOT}def answer(value):\n"
    "    name = 'even' if len(value) % 2 else 'odd'\n    return (ROOT / f'prompts/{name}.md').read_text() + value\n",
    "star": "from app.words import *\ndef answer(value):\n    return GREETING + value\n",
    "named": "import importlib\nTOOL = importlib.import_module('app.tool')\n"
    "def answer(value):\n    return TOOL.use(value)\n",
    "attribute": f"{ROOT}class Agent:\n    FOLDER = ROOT / 'templates'\n    def __call__(self, value):\n"
    "        return (self.FOLDER / 'reply.txt').read_text() + value\nanswer_with = Agent()\n"
    "def answer(value):\n    return answer_with(value)\n",
    "loaded": "import importlib\ndef answer(value):\n"
    "    return importlib.import_module('plugins.' + ('a' if 'a' in value else 'b')).use(value)\n",
    "styled": "from app.config import STYLE\ndef answer(value):\n    return (STYLE / 'style.md').read_text() + value\n",
}
"""Name of a suite to its agent; the twelfth, `rows`, has predictions."""

FILES = {
    ".gitignore": "__pycache__\n.llmeval\nreport*.json\n",
    "pyproject.toml": "[project]\nname = 'demo'\n[tool.pytest.ini_options]\n",
    "requirements.txt": "left-pad==1.0\n",
    "README.md": "A demo.\n",
    "prompts/constant.md": "Say: ",
    "prompts/even.md": "Even: ",
    "prompts/odd.md": "Odd: ",
    "prompts/unused.md": "Nobody reads this.\n",
    "kb/a.txt": "one",
    "kb/b.txt": "two",
    "data/table.json": '{"0": "zero", "1": "one", "2": "two"}',
    "templates/reply.txt": "Reply: ",
    "style/style.md": "In style: ",
    "app/__init__.py": "",
    "app/middle.py": "from app.deep import last\ndef through(value):\n    return last(value)\n",
    "app/deep.py": "MARK = '!'\ndef last(value):\n    return value + MARK\n",
    "app/inner.py": "def shout(value):\n    return value.upper()\n",
    "app/words.py": "GREETING = 'Hello '\n",
    "app/tool.py": "def use(value):\n    return value[::-1]\n",
    "app/config.py": f"{ROOT}STYLE = ROOT / 'style'\n",
    "app/unused.py": "X = 1\n",
    "plugins/__init__.py": "",
    "plugins/a.py": "def use(value):\n    return 'a' + value\n",
    "plugins/b.py": "def use(value):\n    return 'b' + value\n",
}

ANSWER = """
import asyncio, importlib, inspect, json, os, re, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
os.chdir(sys.argv[1])
sys.dont_write_bytecode = True
out = {}

def answer(suite, row):
    try:
        target = row.get('prediction') or importlib.import_module(suite['target']['python'].split(':')[0]).answer
        said = target if isinstance(target, str) else target(row['input'])
        said = asyncio.run(said) if inspect.iscoroutine(said) else said
        return re.sub(' at 0x[0-9a-f]+', '', said)
    except BaseException as error:
        return [type(error).__name__, str(error)]

def read(text):  # a row that cannot be read is in no suite, and a fault that fails the run
    try:
        return [json.loads(text)]
    except ValueError:
        return []

for path in sorted(Path(sys.argv[1]).glob('*.eval.json')):
    for suite in read(path.read_text()):
        rows = suite.get('cases')
        source = suite.get('source', {}).get('path', '')
        lines = Path(sys.argv[1], source).read_text().splitlines() if source and rows is None else []
        for row in rows or [row for line in lines for row in read(line)]:
            if isinstance(row, dict) and 'id' in row:
                out[f"{path.name}::{row['id']}"] = [row, answer(suite, row), suite.get('evaluators')]
print(json.dumps(out))
"""


LINK = "link to "
"""What the text of a link begins with."""


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith(LINK):
            path.unlink(missing_ok=True)
            path.symlink_to(text.removeprefix(LINK))
        else:
            path.write_text(text, encoding="utf-8", newline="")


def git(root: Path, *arguments: str) -> str:
    settings = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *settings, *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(root: Path, message: str) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-qm", message, "--allow-empty")
    return git(root, "rev-parse", "HEAD")


def make(root: Path, cases: int) -> None:
    """Write the project, without approvals, and commit it."""
    write(root, FILES)
    for name, agent in AGENTS.items():
        write(root, {f"app/{name}.py": agent})
        suite = {
            "evaluators": [{"text": {"metrics": ["exact_match"]}}],
            "target": {"python": f"app.{name}:answer"},
            "snapshot": True,
            "gates": ["exact_match >= 0.3"],
            "cases": [{"id": f"c{n}", "input": f"{'ab'[n % 2]} word {n}", "expected": "?"} for n in range(cases)],
        }
        if name == "loaded":
            suite["inputs"] = ["plugins/**"]
        write(root, {f"{name}.eval.json": json.dumps(suite, indent=1)})
    rows = [{"id": f"r{n}", "input": f"i{n}", "expected": "x", "prediction": "xy"[n % 3 == 0]} for n in range(cases)]
    write(root, {"data/rows.jsonl": "".join(json.dumps(each) + "\n" for each in rows)})
    suite = {
        "evaluators": [{"text": {"metrics": ["exact_match"]}}],
        "snapshot": True,
        "gates": ["exact_match >= 0", {"metric": "exact_match", "max_drop": 0.02}],
        "source": {"path": "data/rows.jsonl", "format": "jsonl"},
    }
    write(root, {"rows.eval.json": json.dumps(suite, indent=1)})
    now = answers(root)
    for name in AGENTS:
        change = edit_suite(
            f"{name}.eval.json", cases=lambda rows, name=name: [_expecting(now, name, row) for row in rows]
        )
        change(root)
    git(root, "init", "-qb", "main")
    commit(root, "begin")


def _expecting(answers: Mapping[str, Any], name: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a case of which every other expects the answer of now."""
    answer = answers[f"{name}.eval.json::{row['id']}"][1]
    return {**row, "expected": answer if int(row["id"][1:]) % 2 else "?"}


def answers(root: Path, options: Sequence[str] = ("-S", "-E")) -> dict[str, object]:
    """Return the row, the answer and the evaluators of every case, as a run of all of them finds them now.

    Args:
        root: The project.
        options: Of Python; these leave libraries out.
    """
    done = subprocess.run(
        [sys.executable, *options, "-c", ANSWER, str(root)], cwd=root, capture_output=True, text=True, check=True
    )
    out: dict[str, object] = json.loads(done.stdout)
    return out


def chosen(root: Path, since: str, suite: str = "*") -> dict[str, str]:
    """Return case to why it runs, empty where it does not, of one suite or all."""
    suites = Checkout(root, {})
    paths = sorted(root.glob(f"{suite}.eval.json"))
    loaded = {SuiteKey(str(path), path.name): suites.read(path) for path in paths}
    chooser = choose_affected(suites, ChoiceTerms(since, collected=lambda: loaded))
    return {
        f"{key.display_path}::{case}": choice.selection.cause
        for key, suite in loaded.items()
        for case, choice in chooser.choose(key, suite).items()
    }


def mutate(root: Path, draw: random.Random) -> str:
    """Change one file at random, and return its name: a letter, a line, or the file itself."""
    files = [each for each in sorted(root.rglob("*")) if each.is_file() and not {".git", "__llmeval__"} & {*each.parts}]
    files = [each for each in files if each.suffix in (".py", ".md", ".txt", ".json", ".jsonl", ".toml")]
    path = draw.choice(files)
    text = path.read_text(encoding="utf-8")
    kind = draw.randrange(4)
    if kind == 0 and path.suffix in (".md", ".txt"):
        path.unlink()
    elif kind == 1 and path.suffix in (".md", ".txt"):
        path.with_name(f"new{draw.randrange(9)}{path.suffix}").write_text("new", encoding="utf-8")
    elif "'" in text and path.suffix == ".py":
        parts = text.split("'")
        place = draw.randrange(1, len(parts), 2)
        parts[place] += draw.choice("xyz")
        path.write_text("'".join(parts), encoding="utf-8")
    else:
        place = draw.randrange(len(text) + 1)
        path.write_text(text[:place] + draw.choice("xyz 1") + text[place:], encoding="utf-8")
    return path.relative_to(root).as_posix()


def approve(root: Path, *, may_fail: bool = False) -> str:
    """Approve a run of all suites, and commit it."""
    options = ["--llmeval", "--snapshot-update", "-q", *WITHOUT_UNUSED, "-pno:syrupy"]
    done = run_python(["-m", "pytest", *options], os.environ, root)
    assert may_fail or done.code == 0, done.out
    return commit(root, "approve")


def edit(name: str, text: str = "more ") -> Callable[[Path], None]:
    def change(root: Path) -> None:
        path = root / name
        write(root, {name: text + (path.read_text(encoding="utf-8") if path.exists() else "")})

    return change


def edit_suite(name: str, **top: object) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        suite = json.loads((root / name).read_text(encoding="utf-8"))
        for key, value in top.items():
            suite[key] = value(suite[key]) if callable(value) else value
        write(root, {name: json.dumps(suite, indent=1)})

    return change


def on_a_branch(*changes: Callable[[Path], None], rebases: bool) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        git(root, "checkout", "-qb", "work")
        changes[0](root)
        commit(root, "on the branch")
        git(root, "checkout", "-q", "main")
        changes[1](root)
        commit(root, "on main")
        if rebases:
            git(root, "checkout", "-q", "work")
            git(root, "rebase", "-q", "main")
            git(root, "checkout", "-q", "main")
        git(root, "merge", "-q", "work", "-m", "merge")
        git(root, "branch", "-qD", "work")

    return change


def add_row(root: Path) -> None:
    path = root / "data/rows.jsonl"
    rows = path.read_text(encoding="utf-8")
    new = {"id": f"new{rows.count('new')}", "input": "n", "expected": "x", "prediction": "x"}
    path.write_text(json.dumps(new) + "\n" + rows, encoding="utf-8")


def rename(root: Path) -> None:
    names = ["kb/a.txt", "kb/0.txt"]
    git(root, "mv", *(names if (root / names[0]).exists() else names[::-1]))


STEPS: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "docs": (edit("README.md"), ""),
    "unused module": (edit("app/unused.py", "# "), ""),
    "unused prompt": (edit("prompts/unused.md"), "filled"),
    "lock file of another package": (edit("requirements.txt", "right-pad==2.0\n"), ""),
    "settings of another tool": (edit("tox.ini", "[testenv]\n"), ""),
    "gates": (edit_suite("star.eval.json", gates=["exact_match >= 0.0"], description="new"), ""),
    "prompt": (edit("prompts/constant.md"), ""),
    "revert": (lambda root: git(root, "revert", "--no-edit", "HEAD"), ""),
    "helper two imports away": (edit("app/deep.py", "MARK = '-'\nMARK2 = '+'\nMARK = MARK2\n#"), ""),
    "data row": (add_row, ""),
    "row of a suite": (
        edit_suite(
            "listing.eval.json", cases=lambda rows: [{**rows[0], "expected": f"{rows[0]['expected']}!"}, *rows[1:]]
        ),
        "",
    ),
    "new file in a folder": (edit("kb/c.txt"), ""),
    "evaluators": (
        edit_suite(
            "table.eval.json",
            evaluators=lambda old: [{"text": {"metrics": ["exact_match", "f1"][: 3 - len(old[0]["text"]["metrics"])]}}],
        ),
        "",
    ),
    "plugin": (edit("plugins/a.py", "Y = 1\n"), "loaded"),
    "comment": (edit("app/star.py", "# A comment.\n"), "star"),
    "rename": (rename, ""),
    "merge": (on_a_branch(edit("templates/reply.txt"), edit("style/style.md"), rebases=False), ""),
    "rebase": (on_a_branch(edit("prompts/even.md"), edit("README.md"), rebases=True), "filled"),
    "tool": (lambda root: write(root, {"app/tool.py": "def use(value):\n    return value.title()\n"}), ""),
}
"""Kind of a commit to the change, and the suite of which more cases run than have changed, since files decide."""
