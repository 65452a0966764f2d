"""The command ``llmeval judge``."""

import json
import uuid
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from pytest_llmeval.baselines import ScoreFile, Stamp
from pytest_llmeval.cli import OPTIONS, CommandResult, say
from pytest_llmeval.core import FieldsError, LlmevalError, OptionError, SuiteError, counted, interval, number
from pytest_llmeval.data import display_path
from pytest_llmeval.judges import Budget, JudgeOptions, JudgeSpec, PanelSpec
from pytest_llmeval.suites import LoadedSuite, SuiteKey
from pytest_llmeval.targets import Recordings
from pytest_llmeval.workbench._console import open_noted, table_lines
from pytest_llmeval.workbench._migration import Migration, approve_migration, judged_labels, migrate
from pytest_llmeval.workbench._requests import add_actions

_LISTED = 20
_OWN = ("temperature", "max_tokens", "seed")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the actions of ``llmeval judge``."""
    actions = parser.add_subparsers(dest="action", required=True)
    text = (
        "Put the recorded questions of a suite to another judge. Print how far both agree, which cases flip, and which "
        "gates and snapshots would change. With --approve, the score file gets a bridge, across which later runs are "
        "compared with the approved scores."
    )
    migrate = actions.add_parser("migrate", help="measure what another judge would change", description=text)
    migrate.add_argument("suite", type=Path, metavar="SUITE", help="the suite file")
    migrate.add_argument("--to", required=True, metavar="PROVIDER:NAME", help="the judge that is to take its place")
    migrate.add_argument(
        "--from",
        dest="old",
        metavar="PROVIDER:NAME",
        help="the judge whose verdicts are recorded (default: that of the approved scores, else the suite's); the "
        "juror of a panel whose place is taken",
    )
    migrate.add_argument("--approve", action="store_true", help="write the bridge into the score file")
    migrate.add_argument("--base-url", metavar="URL", help="address of the new judge")
    predictions = OPTIONS["predictions"]._replace(help="recorded predictions, as for pytest")
    OPTIONS.add_to(migrate, predictions, "budget", "concurrency", "cache")
    migrate.set_defaults(run=_migrate)
    add_actions(actions)


def _migrate(options: Namespace) -> CommandResult:
    """Run ``llmeval judge migrate``: put a suite's recorded questions to another judge and compare the two."""
    suite = _suite(options.suite)
    with closing(options.cache.open()):  # an unusable store would be reported for each case
        file, recordings = display_path(suite.path, Path.cwd()), _recordings(options)
    systems: list[dict[str, Any]] = []
    lines: list[str] = []
    try:
        for name in suite.systems or [""]:
            key, way = SuiteKey(str(suite.path), file, variant=name), suite.for_variant(name)
            judges = _judges(options, way, key)
            migration = migrate(way, key, judges, judge_options(options, "migrate"), recordings)
            systems.append({"system": name, **_data(migration)})
            lines += _report(migration)
            unchanged = "nothing was changed; --approve lets later runs be compared"
            lines.append(_approved(migration) if options.approve else unchanged)
    except LlmevalError:
        say(lines)  # of what was done before
        raise
    return CommandResult(0, {"systems": systems, "approved": options.approve}, lines)


def _data(migration: Migration) -> dict[str, Any]:
    """The comparison of two judges as JSON data: agreement, flips of cases and gates."""
    gates = [{"gate": old.gate, "old": old.outcome, "new": new.outcome} for old, new in migration.gates()]
    flips, agreement = to_builtins(list(migration.flips())), to_builtins(migration.agreement())
    counts = {"compared": len(migration.old.records), "calls": migration.calls}
    return {**counts, "left_out": dict(migration.left_out), "agreement": agreement, "flips": flips, "gates": gates}


def _suite(path: Path) -> LoadedSuite:
    """Read the suite file of ``llmeval judge migrate``, which has to ask a judge."""
    suite = open_noted(path.resolve(), str(path))
    if suite.all_faults:
        raise SuiteError(suite.all_faults)
    if not suite.asks_judge:
        raise LlmevalError(f"{path}: no evaluator asks a judge")
    return suite


def _recordings(options: Namespace) -> Recordings:
    """The recorded predictions of a suite for a judge migration, which calls no target."""
    if options.predictions is None:
        return Recordings(Path("--predictions FILE"), "replay")
    return Recordings.open(options.predictions, "replay")


def judge_options(options: Namespace, purpose: str) -> JudgeOptions:
    """The settings of judge calls from the options ``concurrency``, ``budget`` and ``cache`` of a command.

    Args:
        options: Of the command.
        purpose: Begins the id of the run.
    """
    return JudgeOptions(
        concurrency=options.concurrency,
        budget=options.budget or Budget(),
        cache=options.cache,
        run=f"{purpose} {uuid.uuid4().hex}",
    )


def _judges(
    options: Namespace, suite: LoadedSuite, key: SuiteKey
) -> tuple[JudgeSpec, JudgeSpec] | tuple[PanelSpec, PanelSpec]:
    """The judge of the recorded verdicts and the new one of a judge migration, or a panel before and after.

    Raises:
        LlmevalError: They are the same, or the new one cannot be asked here.
    """
    if isinstance(suite.judge, PanelSpec) and suite.judge.cascade is not None:
        raise LlmevalError(
            f"{key.display_path}: found a cascade of judges, which this command does not migrate, expected one "
            "judge or a panel: approve a run of the new cascade with --snapshot-update"
        )
    if isinstance(suite.judge, PanelSpec):
        return _panels(options, suite.judge, _approved_judge(suite, key))
    old = _old(options.old, suite.judge, suite, key)
    return old, _new(options, suite.judge, old)


def _panels(options: Namespace, panel: PanelSpec, approved: Mapping[str, str]) -> tuple[PanelSpec, PanelSpec]:
    """The judge panel before and after one juror is replaced; the suite may have either.

    Raises:
        LlmevalError: No juror is named, or one that the panel does not have, or the new one cannot be asked here.
    """
    named = [place for place, name in enumerate(panel.names) if options.old in (name, panel.judges[place].model)]
    matches = [place for place, spec in enumerate(panel.judges) if options.to == spec.model]
    if not named and (options.old is None or not matches):
        known = ", ".join(panel.names)
        raise LlmevalError(f"--from: found {options.old or 'none'}, expected a juror of the panel: {known}")
    place = (named or matches)[0]
    old = panel.judges[place] if named else _former(options.old, panel.judges[place], approved, place)
    new = _new(options, panel.judges[place], old)
    before, after = ((*panel.judges[:place], spec, *panel.judges[place + 1 :]) for spec in (old, new))
    try:
        return replace(panel, judges=before), replace(panel, judges=after)
    except ValueError as error:
        raise LlmevalError(f"--to: {error}") from None


def _former(model: str, juror: JudgeSpec, approved: Mapping[str, str], place: int) -> JudgeSpec:
    """The replaced juror of a panel, with the request parameters of the approved scores."""
    spec = _spec_of("--from", model.partition(" #")[0], juror)
    parameters = json.loads(approved.get("parameters", "{}"))
    return _with(spec, parameters[place]) if isinstance(parameters, list) and place < len(parameters) else spec


def _new(options: Namespace, judge: JudgeSpec, old: JudgeSpec) -> JudgeSpec:
    """The judge that ``--to`` names, which has to differ from the judge so far."""
    new = _spec_of("--to", options.to, judge, options.base_url)
    if new.provider == "fixture":
        raise OptionError(f"--to: found {options.to!r}, expected a model: a fixture judges in pytest only")
    if (old.model, old.request_parameters()) == (new.model, new.request_parameters()):
        raise LlmevalError(f"--to: found {options.to!r}, which judges already, expected another judge")
    return new


def _old(model: str | None, judge: JudgeSpec, suite: LoadedSuite, key: SuiteKey) -> JudgeSpec:
    """The judge of the approved scores with its request parameters, or else the suite's judge."""
    known = _approved_judge(suite, key)
    if not known or model not in (None, known["model"]):
        return _spec_of("--from", model, judge)
    parameters: Mapping[str, Any] | list[Any] = json.loads(known["parameters"])
    if isinstance(parameters, list):
        raise LlmevalError(f"{key.display_path}: found approved scores of a panel, expected those of one judge")
    return _with(_spec_of("--from", known["model"], judge), parameters)


def _spec_of(option: str, model: str | None, judge: JudgeSpec, base_url: str | None = None) -> JudgeSpec:
    """The judge that an option such as ``--to`` names, in place of a judge of the suite.

    Raises:
        OptionError: It is none.
    """
    try:
        return JudgeOptions(model=model, base_url=base_url).spec(judge)
    except FieldsError as error:
        options = {"model": option, "base_url": "--base-url"}
        faults = (f"{options.get(name, name)}: {fault}" for name, fault in error.faults)
        raise OptionError("\n".join(faults)) from None


def _approved_judge(suite: LoadedSuite, key: SuiteKey) -> Mapping[str, str]:
    """The judge of the approved scores, as far as the score file names it; empty if there are none."""
    scores = ScoreFile.of_suite(key).read_suite()
    judges = {} if scores is None else scores.comparable.judges
    return next((judges[label] for label in judged_labels(suite) if label in judges), {})


def _with(spec: JudgeSpec, parameters: Mapping[str, Any]) -> JudgeSpec:
    """A judge's settings with the request parameters that approved scores were made with."""
    return replace(
        spec,
        temperature=parameters.get("temperature"),
        max_tokens=parameters.get("max_tokens"),
        seed=parameters.get("seed"),
        parameters={name: value for name, value in parameters.items() if name not in _OWN},
    )


def _report(migration: Migration) -> Iterator[str]:
    """Yield the lines of ``llmeval judge migrate``: agreement, metrics, flipped cases and gates."""
    variant = f"[{migration.key.variant}]" if migration.key.variant else ""
    label = next(iter(migration.shifts))
    old, new = (side.judges[label]["model"] for side in (migration.old, migration.new))
    compared = counted(len(migration.old.records), "case")
    place, left_out = f"{migration.key.display_path}{variant}", len(migration.left_out)
    yield f"{place}: {old} -> {new}, {compared} compared, {left_out} left out"
    yield f"{counted(migration.calls, 'call')} of the new judge"
    yield ""
    rows = []
    for agreement in migration.agreement():
        scores = (agreement.old, agreement.new, agreement.new - agreement.old, agreement.alpha)
        rows.append((agreement.mode, str(agreement.verdicts), str(agreement.equal), *map(number, scores)))
    headers = ("mode", "verdicts", "equal", "old", "new", "bias", "alpha")
    yield from table_lines(rows, "lrrrrrr", headers)
    yield ""
    yield from _moved(migration)
    flips = [f"{flip.case}: {flip.what} {flip.old} -> {flip.new}" for flip in migration.flips()]
    yield from _named("cases that flip", flips)
    changed = [f"{before.gate}: {before.outcome} -> {after.outcome}" for before, after in migration.gates()]
    yield from _named("gates that change", changed)
    yield from _named("left out", [f"{case}: {why}" for case, why in migration.left_out.items()])


def _moved(migration: Migration) -> Iterator[str]:
    """Yield the table of metrics by the old and the new judge, and the scores whose snapshot changes."""
    shifts = {name: shift for label_shifts in migration.shifts.values() for name, shift in label_shifts.items()}
    rows = []
    for name, shift in shifts.items():
        old, new = migration.old.result.find(name), migration.new.result.find(name)
        if old is not None and new is not None:
            figures = (number(old.value), number(new.value), number(shift.value), interval(shift.low, shift.high))
            rows.append((name, *figures))
    headers = ("metric", "old", "new", "difference", "95% interval")
    yield from table_lines(rows, "lrrrr", headers)
    moved = [f"{name}: {old} -> {new}" for name, old, new, *_ in rows if old != new]
    yield ""
    yield from _named("scores that change, with their snapshots", moved)


def _named(title: str, lines: list[str]) -> Iterator[str]:
    """Yield a titled list of the first lines of a judge migration's report, with the number of further ones."""
    if not lines:
        yield f"{title}: none"
        return
    yield f"{title}:"
    yield from (f"  {line}" for line in lines[:_LISTED])
    if len(lines) > _LISTED:
        yield f"  ... and {len(lines) - _LISTED} more"


def _approved(migration: Migration) -> str:
    """Approve a judge migration, and return the lines about the bridge in the score file."""
    from datetime import UTC, datetime

    written_to, notes = approve_migration(migration, Stamp.of_checkout(datetime.now(UTC), migration.suite.path.parent))
    agreement = (
        "; how far jurors agree is not, until a run is approved" if isinstance(migration.suite.judge, PanelSpec) else ""
    )
    written = f"bridge written to {written_to}: runs by the new judge are compared with the approved scores{agreement}"
    return "\n".join([written, *notes])
