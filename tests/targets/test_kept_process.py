"""What a call of a target leaves as it was, if it changes what later cases need."""

import sys
from types import ModuleType

import pytest

from pytest_llmeval.core import PredictionError
from pytest_llmeval.targets._process import kept_process


@pytest.mark.parametrize("gone", [(), ("llmeval_first",)])
def test_modules_of_earlier_calls_and_those_since_are_put_back(
    monkeypatch: pytest.MonkeyPatch, gone: tuple[str, ...]
) -> None:
    monkeypatch.setitem(sys.modules, "llmeval_first", ModuleType("llmeval_first"))
    with kept_process():
        pass
    for name in gone:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "llmeval_second", ModuleType("llmeval_second"))
    before = dict(sys.modules)
    with pytest.raises(PredictionError, match=r"emptied sys\.modules"), kept_process():
        sys.modules.clear()
    assert sys.modules == before
