"""The pages that map other systems to this one: every row of their tables is executed."""

import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from project import ROOT
from running import own_loop
from test_docs import blocks, run, write_files

PAGES = sorted((ROOT / "docs").glob("coming-from-*.md"))
HEADER = re.compile(r"^\| .* \| try \|$")
CELL = re.compile(r"`([^`]+)`")
BROKEN = re.compile(r"\bFAILED|\bfailed|\berror:|INTERNALERROR|Traceback|, expected ")


class Row(NamedTuple):
    """A row of a table: what is mapped, and what proves it."""

    line: int
    what: str
    trial: str


def rows(page: Path) -> Iterator[Row]:
    """Yield the rows of the tables whose last column is headed "try"."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if HEADER.match(line):
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|---"):
            what, *_, trial = line.strip("|").split(" | ")
            found = CELL.search(trial)
            assert found, f"{page.name}:{number}: nothing to try"
            yield Row(number, what.strip(), found[1])


TABLED = [page for page in PAGES if any(rows(page))]


@pytest.mark.parametrize("page", TABLED, ids=lambda page: page.name)
def test_every_row_of_a_mapping_holds(page: Path, tmp_path: Path) -> None:
    write_files(tmp_path, page)
    namespace: dict[str, Any] = {}
    failures = []
    with chdir(tmp_path):
        for block in blocks(page):
            if block.language == "python" and block.name is None and not block.text.startswith(">>>"):
                exec(compile(block.text, str(block), "exec"), namespace)
        for row in rows(page):
            try:
                if row.trial.startswith(("pytest ", "llmeval ")):
                    output = run(row.trial, tmp_path)
                    assert not BROKEN.search(output), output
                else:
                    assert eval(row.trial, namespace)
            except Exception as error:  # noqa: BLE001 (one row must not hide the others)
                failures.append(f"{page.name}:{row.line}  {row.what}: {row.trial}: {error!r}")
    assert not failures, "\n".join(failures)


def test_three_systems_have_a_table() -> None:
    names = {page.name for page in TABLED}
    assert {f"coming-from-{each}.md" for each in ("case-retrieval", "emotion-cause", "fact-checking")} <= names


def test_the_same_eval_twice_has_the_same_result_and_ours_is_not_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydantic_evals")
    page = ROOT / "docs" / "import.md"
    write_files(tmp_path, page)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    texts = [(tmp_path / f"with_{name}.py").read_text(encoding="utf-8") for name in ("pydantic_evals", "llmeval")]
    assert len(texts[1].splitlines()) <= len(texts[0].splitlines())
    with own_loop():
        theirs, ours = (runpy.run_path(str(tmp_path / f"with_{name}.py")) for name in ("pydantic_evals", "llmeval"))
    monkeypatch.delitem(sys.modules, "shop")
    assert theirs["report"].averages().assertions == 1.0
    assert [gate.outcome for gate in ours["result"].gates] == ["passed"] * 3
    assert [case.outcome for case in ours["result"].cases] == ["passed"] * len(theirs["report"].cases)
