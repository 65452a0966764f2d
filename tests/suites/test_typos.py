"""Keys that are misspelt, and keys that are absent."""

from pytest_llmeval.core import Fault, SuiteError


def fault(line: int, path: str, message: str, file: str = "a.eval.yaml") -> Fault:
    return Fault(file, line, 1, path, message)


def test_unknown_keys_come_first_and_an_absent_key_that_is_only_misspelt_is_not_listed() -> None:
    misspelt = fault(2, "gates[0].metrc", "unknown key metrc, did you mean metric?")
    explained = fault(1, "gates[0]", "metric is missing")
    absent = fault(1, "gates[0]", "min is missing")
    elsewhere = fault(3, "gates[1]", "metric is missing")
    other_file = fault(1, "gates[0]", "metric is missing", "b.eval.yaml")
    found = SuiteError([explained, absent, misspelt, elsewhere, other_file]).faults
    assert found == (misspelt, absent, elsewhere, other_file)
