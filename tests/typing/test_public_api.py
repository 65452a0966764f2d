"""The public interface is typed, and says to users what it says to us."""

from pathlib import Path

import mypy.api
import pytest
from project import ROOT

import pytest_llmeval

VIEW = Path(__file__).with_name("user_view.py")


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What strict mypy says of the view, and of one that takes a type for another; checking both takes one run."""
    folder = tmp_path_factory.mktemp("mypy")
    text = VIEW.read_text(encoding="utf-8")
    wrong = folder / "wrong.py"
    wrong.write_text(text.replace("assert_type(total, Totals)", "assert_type(total, int)"), encoding="utf-8")
    # The options and the cache of our own checks, so that whichever comes second finds most of its work done.
    options = (f"--config-file={ROOT / 'pyproject.toml'}", f"--cache-dir={ROOT / '.mypy_cache'}", "--no-error-summary")
    out, err, code = mypy.api.run([*options, str(VIEW), str(wrong)])
    assert (err, code) == ("", 1)
    lines = out.splitlines(keepends=True)
    return {path.stem: "".join(line for line in lines if path.name in line) for path in (VIEW, wrong)}


def test_a_user_with_strict_mypy_sees_no_error(said: dict[str, str]) -> None:
    assert said["user_view"] == ""


def test_a_wrong_type_would_be_seen(said: dict[str, str]) -> None:
    assert said["wrong"].count("error:") == 1
    assert 'Expression is of type "Totals", not "int"' in said["wrong"]


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(pytest_llmeval.__file__).parent / "py.typed").is_file()


def test_the_public_names_are_sorted_and_exist() -> None:
    names = pytest_llmeval.__all__
    assert list(names) == sorted(names, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(pytest_llmeval, name) for name in names)


@pytest.mark.parametrize("name", pytest_llmeval.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert (getattr(pytest_llmeval, name).__doc__ or "").strip()
