"""Agreement of the jurors of a panel against scikit-learn and package krippendorff, and its corners."""

import math
import warnings
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import metrics

from pytest_llmeval.core import Case, CaseRecord, EvaluatorError, Observation, Totals
from pytest_llmeval.evaluators.judge._verdict_metrics import PanelAgreement
from pytest_llmeval.judges import PanelVerdict
from pytest_llmeval.judges._reduction import PanelError
from pytest_llmeval.numbers import summarize

JURORS = ("openai:a", "openai:b", "openai:c")
AGREEMENT = PanelAgreement("judge", JURORS)
LEVELS = (0.0, 0.5, 1.0)

Row = tuple[float | None, ...]
levels = st.sampled_from(LEVELS)
complete = st.lists(st.tuples(levels, levels, levels), min_size=2, max_size=20)
gappy = st.lists(st.tuples(*[st.none() | st.floats(0, 1)] * 3), min_size=2, max_size=12)


def verdict(row: Row) -> PanelVerdict:
    return PanelVerdict(0.0, votes=(dict(zip(JURORS, row, strict=True)),))


def pooled(rows: Sequence[Row]) -> dict[str, float | None]:
    total = Totals.add_up([AGREEMENT.measure_verdicts([verdict(row)]) for row in rows])
    with np.errstate(all="ignore"):
        columns = AGREEMENT.summarize(total.sums())
    return {name: None if math.isnan(column[0]) else float(column[0]) for name, column in columns.items()}


@given(complete)
def test_kappa_of_each_pair_is_that_of_scikit_learn(rows: list[Row]) -> None:
    values = pooled(rows)
    for one, two in combinations(range(3), 2):
        sides = [[LEVELS.index(row[side] or 0.0) for row in rows] for side in (one, two)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = metrics.cohen_kappa_score(*sides, labels=[0, 1, 2], weights="quadratic")
        value = values[f"judge_panel_kappa[{JURORS[one]}, {JURORS[two]}]"]
        assert math.isnan(expected) if value is None else value == pytest.approx(expected)


@given(gappy)
def test_alpha_is_that_of_package_krippendorff_also_where_jurors_failed(rows: list[Row]) -> None:
    krippendorff = pytest.importorskip("krippendorff")
    paired = [each for row in rows if sum(each is not None for each in row) > 1 for each in row if each is not None]
    assume(paired and np.ptp(paired) > 1e-3)
    table = np.array([[math.nan if each is None else each for each in row] for row in rows]).T
    expected = krippendorff.alpha(reliability_data=table, level_of_measurement="interval")
    assert expected >= -1
    assert pooled(rows)["judge_panel_alpha"] == pytest.approx(expected, abs=1e-6)


def test_spread_is_a_mean_over_questions_and_missing_a_share_of_all_verdicts() -> None:
    values = pooled([(0.0, 1.0, 0.5), (1.0, 1.0, None), (1.0, None, None)])
    assert (values["judge_panel_spread"], values["judge_panel_missing"]) == (0.5, 3 / 9)


def test_jurors_who_always_agreed_leave_room_for_cases_in_which_they_would_not() -> None:
    seen = [AGREEMENT.measure_verdicts([verdict((score,) * 3)]) for score in (0.0, 1.0) * 4]
    records = [CaseRecord(str(number), observations={AGREEMENT.name: each}) for number, each in enumerate(seen)]
    found = summarize({AGREEMENT.name: AGREEMENT}, records).find("judge_panel_alpha")
    assert found is not None
    assert (found.value, found.high) == (1, 1)
    assert found.low is not None
    assert found.low < 0.5


def test_a_case_has_its_spread_and_no_coefficients() -> None:
    observation = AGREEMENT.measure_verdicts([verdict((0.0, 1.0, 1.0)), verdict((1.0, 1.0, 1.0))])
    scores = AGREEMENT.scores(observation)
    assert (scores["judge_panel_spread"], scores["judge_panel_missing"], scores["judge_panel_alpha"]) == (0.5, 0, None)
    assert {value for name, value in scores.items() if "kappa" in name} == {None}


def test_verdicts_that_failed_count_as_missing_and_cases_without_a_panel_are_undefined() -> None:
    votes = ({"openai:a": 1.0, "openai:b": None, "openai:c": None},)
    observation = AGREEMENT.measure_verdicts([PanelError("too few", votes)])
    assert AGREEMENT.scores(observation)["judge_panel_missing"] == pytest.approx(2 / 3)
    assert observation.undefined["judge_panel_spread"] == "no two jurors gave a verdict"
    nobody = AGREEMENT.measure_verdicts([])
    assert set(nobody.undefined.values()) == {"no question was put to a panel"}
    with pytest.raises(EvaluatorError, match="a panel is asked, not measured"):
        AGREEMENT.measure(Case("a"))
    assert isinstance(nobody, Observation)
