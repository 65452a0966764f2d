"""Cases, and answers, that are alike within a label: a line says so, and clusters cover what they should."""

import numpy as np
from builders import gate, judge, run

from pytest_llmeval.workbench.modes import alike_answers, mode_shares
from pytest_llmeval.workbench.reviews.modes import ModeNote


def sessions(seed: int, share: float) -> list[ModeNote]:
    """Return notes on 100 answers of ten sessions, of which the share has a mode in nine of ten answers."""
    rng = np.random.default_rng(seed)
    bad = rng.random(10) < share
    return [
        ModeNote(
            "ana",
            "2026-01-01T00:00:00.000Z",
            "q",
            f"a{n}",
            modes=("late",) if bad[n // 10] and rng.random() < 0.9 else (),
            labels=(f"session=s{n // 10}",),
        )
        for n in range(100)
    ]


def test_shares_of_answers_in_sessions_cover_with_the_label() -> None:
    """Of 200 simulated draws, 0.95 are covered, with an error of 0.015; without the label, half of them."""
    for share in (0.1, 0.3):
        covered = {"session": 0, "": 0}
        for seed in range(200):
            for label in covered:
                (found,) = mode_shares(sessions(seed, share), ["late"], label or None)
                covered[label] += found.low <= 0.9 * share <= found.high
        assert covered["session"] >= 183
        assert covered[""] < 150


def test_shares_cover_where_few_long_sessions_have_most_answers() -> None:
    """Sessions of 1 to 80 answers, half of them shorter than 6; 0.95 are covered, with an error of 0.013."""
    rng, covered = np.random.default_rng(3), 0
    for _ in range(300):
        sizes = np.minimum(np.ceil(2.5 * rng.pareto(1.3, 20)) + 1, 80).astype(int)
        notes = [
            ModeNote(
                "ana",
                "2026-01-01T00:00:00.000Z",
                "q",
                f"a{session}-{n}",
                modes=("late",) if late else (),
                labels=(f"session=s{session}",),
            )
            for session, (size, rate) in enumerate(zip(sizes, rng.beta(0.3, 0.7, 20), strict=True))
            for n, late in enumerate(rng.random(size) < rate)
        ]
        (found,) = mode_shares(notes, ["late"], "session")
        covered += found.low <= 0.3 <= found.high
    assert covered >= 0.93 * 300


def test_a_line_names_the_label_of_answers_that_are_alike() -> None:
    (line,) = alike_answers(sessions(1, 0.5), ["late"])
    assert line.startswith("answers with the same session share modes: --cluster-by session makes intervals up to ")
    mixed = [
        ModeNote(
            "ana",
            "2026-01-01T00:00:00.000Z",
            "q",
            f"a{n}",
            modes=("late",) if n % 7 < 2 else (),
            labels=(f"s={n // 4}",),
        )
        for n in range(80)
    ]
    assert not list(alike_answers(mixed, ["late"]))


def test_a_gate_names_the_label_whose_cases_change_alike() -> None:
    """Twelve documents with ten questions each: all questions of a document move together, or none with another."""
    rng = np.random.default_rng(5)
    labels = [f"d{n // 10}" for n in range(120)]
    old = [1.0 if rng.random() < 0.7 else 0.0 for _ in labels]
    fell = [0.0 if label in ("d1", "d2", "d3") else score for label, score in zip(labels, old, strict=True)]
    said = judge(gate(), run(fell, labels), run(old, labels)).reason
    assert "cases with the same talk change alike, and 120 are worth " in said
    assert "set cluster_by: talk" in said
    alone = [1.0 - score if rng.random() < 0.2 else score for score in old]
    for seen in (
        judge(gate(), run(alone, labels), run(old, labels)),
        judge(gate(cluster_by="talk"), run(fell, labels), run(old, labels)),
    ):
        assert "change alike" not in seen.reason


def test_nothing_is_ruled_out_by_cases_that_change_alike() -> None:
    """Of 400 cases that change by themselves, a drop of 0.05 is ruled out; by 40 documents it is not."""
    labels = [f"d{n // 10}" for n in range(400)]
    old = [0.9] * 400
    alike = [0.9 + (0.08, -0.08)[(n // 10) % 2] for n in range(400)]
    alone = [0.9 + (0.08, -0.08)[n % 2] for n in range(400)]
    assert judge(gate(), run(alone, labels), run(old, labels)).word == "no drop"
    said = judge(gate(), run(alike, labels), run(old, labels))
    assert said.word == "no drop"
    few = judge(gate(), run(alike[:120], labels[:120]), run(old[:120], labels[:120]))
    assert (few.word, "by talk): cases with the same talk change alike" in few.known) == ("cannot tell", True)
    rise = [0.9 + 0.04 + (0.06, -0.06)[(n // 10) % 2] for n in range(120)]
    assert judge(gate(), run(rise, labels[:120]), run(old[:120], labels[:120])).word != "better"
