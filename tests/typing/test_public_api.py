"""The public interface is typed, and says to users what it says to us."""

import doctest
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import mypy.api
import pytest
from project import ROOT
from running import run_python
from test_docs import PAGES, blocks

import pytest_llmeval

VIEW = Path(__file__).with_name("user_view.py")
PLUGIN = Path(__file__).with_name("plugin_view.py")


def with_mistakes(text: str) -> str:
    """Return the view with mistakes: a type, keys of a suite and of cases, a metric, and functions of other inputs."""
    wrong_type = text.replace("assert_type(total, Totals)", "assert_type(total, int)")
    wrong_function = wrong_type.replace("def is_new(case: ev.Case[Ask, ", "def is_new(case: ev.Case[str, ")
    wrong_key = wrong_function.replace("    snapshot=True,", "    snapshoot=True,")
    wrong_column = wrong_key.replace('ev.cases([{}], id="n")', 'ev.cases([{}], idd="n")')
    wrong_metric = wrong_column.replace('ev.text(metrics=["f1"])', 'ev.text(metrics=["f3"])')
    return wrong_metric.replace("    typed.run(reply)", "    typed.run(len)")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What strict mypy says of the view, and of one with a wrong type and a misspelt key; both take one run."""
    folder = tmp_path_factory.mktemp("mypy")
    text = VIEW.read_text(encoding="utf-8")
    wrong = folder / "wrong.py"
    wrong.write_text(with_mistakes(text), encoding="utf-8")
    # The options and the cache of our own checks, so that most of the work is done where they ran.
    options = (f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={ROOT / '.mypy_cache'}", "--no-error-summary")
    out, err, code = mypy.api.run([*options, str(VIEW), str(PLUGIN), str(wrong)])
    assert (err, code) == ("", 1)
    lines = out.splitlines(keepends=True)
    return {path.stem: "".join(line for line in lines if path.name in line) for path in (VIEW, PLUGIN, wrong)}


def test_a_user_with_strict_mypy_sees_no_error(said: dict[str, str]) -> None:
    assert said["user_view"] == ""


def test_an_author_of_a_plugin_needs_the_package_and_its_page_of_extensions_only(said: dict[str, str]) -> None:
    assert said["plugin_view"] == ""
    lines = PLUGIN.read_text(encoding="utf-8").splitlines()
    imports = [line for line in lines if line.startswith(("import ", "from ")) and "pytest_llmeval" in line]
    assert imports == ["import pytest_llmeval as ev", "from pytest_llmeval import extend"]


def test_a_wrong_type_would_be_seen(said: dict[str, str]) -> None:
    assert said["wrong"].count("error:") == 11  # of a suite with a misspelt key the types are unknown
    assert 'Unexpected keyword argument "idd"' in said["wrong"]
    assert "incompatible type \"Literal['f3']\"" in said["wrong"]
    assert 'Argument 1 to "run" of "Suite" has incompatible type' in said["wrong"]
    assert 'expected "Callable[[Case[Ask, Reply]], bool]"' in said["wrong"]
    assert 'Expression is of type "Totals", not "int"' in said["wrong"]
    assert 'Unexpected keyword argument "snapshoot"' in said["wrong"]


@pytest.fixture(scope="module")
def by_pyright(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What pyright finds in the view (strict), in one with mistakes, and in the Python of all pages, in one run."""
    pytest.importorskip("pyright")
    if shutil.which("node") is None:
        pytest.skip("pyright needs Node.js")
    folder = tmp_path_factory.mktemp("pyright")
    text = f"# pyright: strict\n{VIEW.read_text(encoding='utf-8')}"
    (folder / "view.py").write_text(text, encoding="utf-8")
    (folder / "wrong.py").write_text(with_mistakes(text), encoding="utf-8")
    for page in PAGES:
        for block in (each for each in blocks(page) if each.language == "python"):
            path = folder / page.stem.replace("-", "_").replace(".", "_") / (block.name or "page.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            examples = doctest.DocTestParser().get_examples(block.text)
            source = "".join(each.source for each in examples) or block.text
            with path.open("a" if block.name is None else "w", encoding="utf-8") as file:
                file.write(source)
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}), encoding="utf-8")
    command = ["-m", "pyright", "-p", str(folder), "--pythonpath", sys.executable, "--outputjson"]
    done = run_python(command, dict(os.environ), folder)
    found: list[dict[str, Any]] = json.loads(done.out)["generalDiagnostics"]
    return found


@pytest.mark.release
def test_a_user_with_strict_pyright_sees_no_error(by_pyright: list[dict[str, Any]]) -> None:
    assert [each["message"] for each in by_pyright if Path(each["file"]).name == "view.py"] == []


@pytest.mark.release
def test_pyright_would_see_a_wrong_type_and_a_misspelt_key(by_pyright: list[dict[str, Any]]) -> None:
    found = [each["message"] for each in by_pyright if Path(each["file"]).name == "wrong.py"]
    assert len(found) == 6
    assert any('"Ask" is not assignable to "str"' in each for each in found)
    assert any('No overloads for "__init__"' in each for each in found)
    assert any('No overloads for "cases"' in each for each in found)
    assert any('"list[str]" cannot be assigned to parameter "metrics"' in each for each in found)
    assert any('cannot be assigned to parameter "target"' in each for each in found)


@pytest.mark.release
def test_calls_and_names_in_the_documentation_have_the_right_types(by_pyright: list[dict[str, Any]]) -> None:
    rules = {"reportArgumentType", "reportAttributeAccessIssue", "reportCallIssue", "reportIndexIssue"}
    found = [each for each in by_pyright if each.get("rule") in rules and Path(each["file"]).name == "page.py"]
    lines = [f"{each['file']}:{each['range']['start']['line'] + 1} {each['message']}" for each in found]
    # Pages round scores that they show; a score may be None.
    assert [line for line in lines if 'overloads for "round"' not in line and "_SupportsRound2" not in line] == []


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(pytest_llmeval.__file__).parent / "py.typed").is_file()


def test_the_public_names_are_sorted_and_exist() -> None:
    names = pytest_llmeval.__all__
    assert list(names) == sorted(names, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(pytest_llmeval, name) for name in names)


@pytest.mark.parametrize("name", pytest_llmeval.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert (getattr(pytest_llmeval, name).__doc__ or "").strip()
