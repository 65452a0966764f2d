"""Python tests over the cases of a suite: ``@pytest.mark.llmeval("capitals.eval.yaml")``."""

__all__ = ("over_suite",)

import pytest

from pytest_llmeval.errors import LlmevalError, SuiteError


def over_suite(metafunc: pytest.Metafunc, name: str, *, enabled: bool) -> None:
    """Parametrise a test function by the cases of a suite.

    Without ``--llmeval`` the test is skipped and the file is not read.

    Args:
        metafunc: The test function; it must take the fixture ``eval_case``.
        name: The suite file, relative to the test's file.
        enabled: Whether suites are collected.

    Raises:
        pytest.Collector.CollectError: The function does not take the fixture, or the file cannot be used. Faults of
            single cases are one more parameter, which fails.
    """
    node = metafunc.definition
    if "eval_case" not in metafunc.fixturenames:
        raise pytest.Collector.CollectError(
            f"{node.nodeid} is marked llmeval({name!r}), so it must take the fixture eval_case"
        )
    if not enabled:
        skip = pytest.mark.skip(reason="runs with --llmeval")
        metafunc.parametrize("eval_case", [pytest.param(None, marks=skip)], ids=["llmeval"], indirect=True)
        return
    from pytest_llmeval.collect import SUITES
    from pytest_llmeval.runtime import LoadedCase

    suites = metafunc.config.stash[SUITES]
    path = (node.path.parent / name).resolve()
    try:
        suite = suites.load(path, node.session)
    except LlmevalError as error:
        suites.faulty_files += 1
        raise pytest.Collector.CollectError(str(error)) from None
    key = suites.key(suite, test=node.nodeid)
    cases = [
        pytest.param(
            LoadedCase(suites, suite, case, key),
            id=case.id,
            marks=[getattr(pytest.mark, tag) for tag in case.tags],
        )
        for case in suite.cases
    ]
    if suite.problems:
        cases.append(pytest.param(SuiteError(suite.problems), id="<faults>"))
    metafunc.parametrize("eval_case", cases, indirect=True)
