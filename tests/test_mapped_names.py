"""The pages for authors of the evaluation package and of himga.eval: every row runs, every name is mapped."""

import re
from pathlib import Path

import pytest
from project import ROOT, SHARED
from test_docs import blocks

DOCUMENTS = {"coming-from-evaluation.md": "narrative-json-v3.md", "coming-from-himga.md": "qa-metrics-and-judges.md"}
"""Page to the document whose names it maps."""

PROSE = {"llm_model", "1", "metrics", "action_layer.category"}
"""What a document quotes that is no name of its own."""

CODE = re.compile(r"`([^`]+)`")


def rows(page: str) -> list[tuple[str, str]]:
    """Return the two cells of each row of the tables whose right column is ``here``."""
    found, is_table = [], False
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        is_table = line.startswith("|") and (is_table or cells[-1] == "here")
        if is_table and cells[-1] != "here" and not line.startswith("|---"):
            assert len(cells) == 2, line
            found.append((cells[0], cells[1]))
    return found


def named(document: Path) -> set[str]:
    """Return the names that a document defines or quotes: of classes, functions, parameters, keys and files."""
    text = document.read_text(encoding="utf-8")
    fences = "".join(re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL))
    patterns = (r"(?:def|class) (\w+)", r'"(\w+)":', r"\b(\w+\.py)\b")
    names = {name for pattern in patterns for name in re.findall(pattern, fences)}
    quoted = CODE.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    names |= {name.strip('"') for name in quoted if re.fullmatch(r'"?[A-Za-z][\w.-]+"?', name)}
    return names - PROSE - {"__init__"}


@pytest.mark.parametrize("page", DOCUMENTS)
def test_every_row_of_a_mapping_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "docs"}
    for block in blocks(ROOT / "docs" / page):
        if block.name is not None:
            (tmp_path / block.name).write_text(block.text, encoding="utf-8")
        elif block.language == "python" and not block.text.startswith(">>>"):
            exec(compile(block.text, str(block), "exec"), namespace)
    assert rows(page)
    for left, right in rows(page):
        codes = CODE.findall(right)
        assert codes, f"{left}: nothing runs"
        for code in codes:
            if re.match(r"import |from ", code):
                exec(code, namespace)
            else:
                assert eval(code, namespace) is not False, f"{left}: {code}"


@pytest.mark.parametrize("page", DOCUMENTS)
def test_a_mapping_has_every_name_of_its_document(page: str) -> None:
    document = SHARED / "requirements" / DOCUMENTS[page]
    if not document.is_file():
        pytest.skip("the documents are not beside this repository")
    text = "\n".join(left for left, _ in rows(page))
    assert {name for name in named(document) if name not in text} == set()
