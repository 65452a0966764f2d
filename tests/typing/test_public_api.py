"""The public interface is typed, and says to users what it says to us."""

from pathlib import Path

import mypy.api
import pytest

import pytest_llmeval

VIEW = Path(__file__).with_name("user_view.py")


def check(path: Path, cache: Path) -> tuple[str, int]:
    out, err, code = mypy.api.run(
        ["--strict", "--config-file=", f"--cache-dir={cache}", "--no-error-summary", str(path)]
    )
    assert err == ""
    return out, code


def test_a_user_with_strict_mypy_sees_no_error(tmp_path: Path) -> None:
    assert check(VIEW, tmp_path / "cache") == ("", 0)


def test_a_wrong_type_would_be_seen(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(VIEW.read_text(encoding="utf-8").replace("assert_type(total, Totals)", "assert_type(total, int)"))
    out, code = check(wrong, tmp_path / "cache")
    assert code == 1
    assert 'Expression is of type "Totals", not "int"' in out


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(pytest_llmeval.__file__).parent / "py.typed").is_file()


def test_the_public_names_are_sorted_and_exist() -> None:
    names = pytest_llmeval.__all__
    assert list(names) == sorted(names, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(pytest_llmeval, name) for name in names)


@pytest.mark.parametrize("name", pytest_llmeval.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert (getattr(pytest_llmeval, name).__doc__ or "").strip()
