"""Another distribution named pytest-llmeval, with the same import package, is refused with the way out."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project


@pytest.mark.parametrize("llmeval", [True, False])
def test_the_foreign_distribution_is_a_usage_error_that_names_the_fix(
    capitals: "Project", llmeval: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = "Metadata-Version: 2.1\nName: pytest-llmeval\nVersion: 1.0\n"
    capitals.write("site/pytest_llmeval-1.0.dist-info/METADATA", metadata)
    monkeypatch.setenv("PYTHONPATH", str(capitals.path / "site"))
    ran = capitals.run(llmeval=llmeval, cold=True)
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert "the distribution pytest-llmeval 1.0 is installed beside pytest-llmeval-suite" in ran.text
    assert "Fix: pip uninstall -y pytest-llmeval && pip install --force-reinstall --no-deps git+https://" in ran.text
    assert "Traceback" not in ran.text


def test_a_distribution_with_a_longer_name_is_none_of_our_business(
    capitals: "Project", monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = "Metadata-Version: 2.1\nName: pytest-llmeval-extras\nVersion: 1.0\n"
    capitals.write("site/pytest_llmeval_extras-1.0.dist-info/METADATA", metadata)
    monkeypatch.setenv("PYTHONPATH", str(capitals.path / "site"))
    assert capitals.run("-k", "paris", cold=True).code == 0
