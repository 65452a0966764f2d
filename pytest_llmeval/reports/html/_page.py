"""The HTML page."""

import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import UNSET, Struct, structs

from pytest_llmeval.core import counted, excerpt
from pytest_llmeval.data import OutputFile
from pytest_llmeval.reports._form import FAILING, CaseReport, RunReport, SuiteReport, counts_of
from pytest_llmeval.reports._headline import MergeAnswer
from pytest_llmeval.reports._json import is_form, published
from pytest_llmeval.reports.html._data import (
    ViewTexts,
    case_texts,
    changes_json,
    entry_of,
    index_of,
    overview_texts,
    past_points,
    reasons_json,
    run_data,
    worst_changes,
)
from pytest_llmeval.reports.html._media import PageMedia
from pytest_llmeval.services import Secrets

_MEGABYTE = 1_000_000
WARN_FROM = 20 * _MEGABYTE
"""Size from which a page warns about it."""
CUT_FROM = 50 * _MEGABYTE
"""Size from which texts are dropped."""

_SCRIPTS = (
    *("words.js", "words_zh.js", "dom.js", "data.js", "figures.js", "state.js", "filters.js", "diff.js", "charts.js"),
    *("overview.js", "worst.js", "systems.js", "numbers.js", "table.js", "media.js", "values.js", "transcript.js"),
    *("trajectory.js", "case.js", "compare.js", "tools.js", "mutants.js", "main.js"),
)
_SHORT = 500
_CHUNK = 256_000
"""Characters of JSON in a piece: small enough to unpack while a case opens."""
_APPROVED = "approved run"
_QUOTING = ("input", "expected", "prediction", "answers", "details", "lines", "judgings")


class Page(NamedTuple):
    """The HTML report as text, with a note on what it lacks or on its size.

    Attributes:
        html: Its text.
        note: What was left out, or a warning about the size; may be empty.
    """

    html: str
    note: str = ""


class _Piece(NamedTuple):
    """A compressed part of the HTML report's data, which its script finds by name."""

    name: str
    text: str


class PageRun(Struct, frozen=True):
    """A run on the page of the HTML report.

    Attributes:
        label: Distinguishes it from the other runs of the page; may be empty if it is the only one.
        report: Its report.
        is_baseline: Whether it only serves as baseline.
        pairs: For each suite, the index of its counterpart among all suites of the page, or ``None``.
    """

    label: str
    report: RunReport
    is_baseline: bool = False
    pairs: Sequence[int | None] = ()

    def page(
        self,
        *others: "PageRun",
        folder: Path | None = None,
        warn_from: int = WARN_FROM,
        cut_from: int = CUT_FROM,
    ) -> Page:
        """The HTML report about the run.

        Args:
            others: The further runs of the page, such as a baseline.
            folder: Of the page, from which large images, sounds and documents are linked; ``None`` links none.
            warn_from: Size in bytes from which the page warns about it.
            cut_from: Size in bytes from which texts are dropped: those of passed cases, then all but beginnings, then
                all.
        """
        runs = [structs.replace(run, report=_mask_report(run.report)) for run in (self, *others)]
        head, pieces, lacking = _fit_texts(runs, cut_from)
        size = _size(pieces)
        note = lacking or (f"this page has {size / _MEGABYTE:.0f} MB" if size >= warn_from else "")
        head["note"] = note
        values = (case.media_values for run in runs for suite in run.report.suites for case in suite.cases)
        media = PageMedia(values, folder)
        head |= {"media": media.places} if media.places else {}
        pieces += [_Piece(*embedded) for embedded in media.embedded]
        assets = files(__package__) / "assets"
        scripts = (assets / name for name in _SCRIPTS)
        title = _title(runs[0].report)
        html = rendered_page(
            assets, "page.html.jinja", "page.css", scripts, head, head=head, pieces=pieces, title=title
        )
        return Page(html, note)


def _head(run: PageRun) -> dict[str, Any]:
    """A run as JSON data of the HTML report, without its suites."""
    return {"label": run.label, "baseline": run.is_baseline, **run_data(run.report)}


_MOST_NAMED = 3


def _title(run: RunReport) -> str:
    """The title of the HTML report: the verdict on the run, and its suites."""
    names = list(dict.fromkeys(suite.base_name for suite in run.suites))
    named = ", ".join(names) if 0 < len(names) <= _MOST_NAMED else counted(len(names), "suite")
    return f"{MergeAnswer.of_run(run).words}: {named}" if run.suites else str(MergeAnswer.of_run(run))


def _fit_texts(runs: Sequence[PageRun], limit: int) -> tuple[dict[str, Any], list[_Piece], str]:
    """Head and data pieces of the HTML report with as many texts as fit, and a note on what was dropped."""
    for lacking, shortened in _LEVELS:
        head, pieces = _data(runs, shortened)
        if _size(pieces) < limit:
            return head, pieces, lacking
    return (*_data(runs, _without_texts), _WITHOUT)


def _size(pieces: Sequence[_Piece]) -> int:
    """The length of the HTML report's data pieces in characters."""
    return sum(len(piece.text) for piece in pieces)


def _data(
    runs: Sequence[PageRun], shortened: Callable[[str, ViewTexts], ViewTexts]
) -> tuple[dict[str, Any], list[_Piece]]:
    """The head of the HTML report's data, and the pieces that its script unpacks later."""
    pieces: list[_Piece] = []
    entries: list[dict[str, Any]] = []
    every = [suite for run in runs for suite in run.report.suites]
    pairs = runs[0].pairs or [None] * len(runs[0].report.suites)
    reasons = reasons_json(runs[0].report, [None if pair is None else every[pair] for pair in pairs])
    headline = reasons["answer"]["headline"] or {}
    for number, run in enumerate(runs):
        failing = run.report.failing_count
        for place, suite in enumerate(run.report.suites):
            entry = entry_of(suite, number)
            index = index_of(suite.cases, failing)
            texts = (shortened(case.outcome, case_texts(case)) for case in suite.cases)
            name = f"s{len(entries)}"
            starts = []
            for chunk in chunked(texts):
                starts.append(len(chunk))
                pieces.append(_Piece(f"{name}c{len(starts) - 1}", pack(f"[{','.join(chunk)}]")))
            pieces.append(_Piece(f"{name}i", pack(as_json(index))))
            entry["chunks"] = starts
            pair = entry["pair"] = run.pairs[place] if run.pairs else None
            if number == 0:
                before = None if pair is None else every[pair]
                start = headline["case"] if headline.get("place") == place else ""
                entry["worst"] = worst_changes(suite, before, failing, start)
                pieces.append(_Piece(f"{name}w", pack(as_json(list(_worst(entry["worst"], suite, before, shortened))))))
            entries.append(entry)
    first, *others = runs
    listed = [{**_head(first), **reasons}, *map(_head, others)]
    return {"runs": listed, "entries": entries}, pieces


def _worst(
    worst: Mapping[str, Any],
    suite: SuiteReport,
    before: SuiteReport | None,
    shortened: Callable[[str, ViewTexts], ViewTexts],
) -> Iterator[dict[str, ViewTexts]]:
    """Yield the texts of the cases that the HTML report's overview shows, now and before."""
    others = {case.id: case for case in before.cases} if before else {}
    for row in worst["cases"]:
        case = suite.cases[row["place"]]
        sides = {"now": case, "before": others.get(case.id)}
        yield {name: shortened(case.outcome, overview_texts(side)) for name, side in sides.items()}


def _whole(_outcome: str, texts: ViewTexts) -> ViewTexts:
    """All texts of a case, for an HTML report that has room for them."""
    return texts


def _texts_of_failing(outcome: str, texts: ViewTexts) -> ViewTexts:
    """The texts of a failing case, for an HTML report without room for those of passed cases."""
    return texts if outcome in FAILING else _without_texts("", texts)


def _beginnings(outcome: str, texts: ViewTexts) -> ViewTexts:
    """Beginnings of a failing case's texts, for an HTML report without room for whole texts."""

    def begun(value: Any) -> Any:
        text = value if isinstance(value, str) else as_json(value)
        return value if len(text) <= _SHORT else excerpt(text, _SHORT, lines=True, count=True)

    return {
        name: begun(value) if name != "lines" else value for name, value in _texts_of_failing(outcome, texts).items()
    }


def _without_texts(_outcome: str, texts: ViewTexts) -> ViewTexts:
    """A case's data without quoted texts, for an HTML report without room for any."""
    return {name: value for name, value in texts.items() if name not in _QUOTING}


_WITHOUT = "texts are left out, because the page would be too large"
_LEVELS = (
    ("", _whole),
    ("texts of cases that passed are left out, because the page would be too large", _texts_of_failing),
    ("texts are cut to their beginnings, because the page would be too large", _beginnings),
)


def _mask_report(report: RunReport) -> RunReport:
    """The report with the values of secrets masked, for the HTML page."""
    secrets = Secrets.of_variables()
    if not secrets:
        return report
    more = [(suite.changes and changes_json(suite.changes), past_points(suite.past)) for suite in report.suites]
    text = as_json([published(report), more])
    masked: RunReport = report if secrets.without(text) == text else _without_secrets(report, secrets)
    return masked


def _without_secrets(value: Any, secrets: Secrets) -> Any:
    """A part of a report in which the values of secrets are masked, at any depth."""
    if is_form(type(value)):
        names = value.__struct_fields__ if isinstance(value, Struct) else [field.name for field in fields(value)]
        return type(value)(**{name: _without_secrets(getattr(value, name), secrets) for name in names})
    if isinstance(value, Mapping):
        return {_without_secrets(name, secrets): _without_secrets(part, secrets) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(part, secrets) for part in value]
    return secrets.without(value) if isinstance(value, str) else value


def rendered_page(
    assets: Traversable, name: str, style: str, scripts: Iterable[Traversable], data: Any, **more: Any
) -> str:
    """Render an HTML page that holds its style, scripts and data.

    Args:
        assets: The folder of the template and the style.
        name: Of the template.
        style: Of the style sheet.
        scripts: Its scripts, which share one scope.
        data: What the scripts read, as JSON.
        more: What the template has besides.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    css = (assets / style).read_text(encoding="utf-8")
    script = "".join(['"use strict";\n{\n', *(file.read_text(encoding="utf-8") for file in scripts), "}\n"])
    environment = Environment(autoescape=True, keep_trailing_newline=True)
    return environment.from_string((assets / name).read_text(encoding="utf-8")).render(
        data=Markup(embedded_json(data)),  # noqa: S704 (has no character that markup begins with)
        style=Markup(css),  # noqa: S704 (our own file)
        script=Markup(script),  # noqa: S704 (our own file)
        style_hash=inline_hash(css),
        script_hash=inline_hash(script),
        **more,
    )


def inline_hash(text: str) -> str:
    """The source by which a Content-Security-Policy names an inline script or style."""
    return f"sha256-{b64encode(sha256(text.encode('utf-8')).digest()).decode('ascii')}"


def write_html(report: RunReport, path: Path) -> str:
    """Write the HTML report of a run, from the same data as the JSON report.

    Returns:
        What was left out, or a warning about the size; may be empty.
    """
    run, *approved = _with_approved(report)
    page = run.page(*approved, folder=path.absolute().parent)
    OutputFile(path).write_text([page.html])
    return page.note


def _with_approved(report: RunReport) -> list[PageRun]:
    """The run of an HTML report, and as its baseline the approved run of suites that have one."""
    approved: list[SuiteReport] = []
    pairs: list[int | None] = []
    for suite in report.suites:
        cases = list(_approved_cases(suite))
        pairs.append(len(report.suites) + len(approved) if cases else None)
        if cases:
            counts = counts_of(cases, len(cases))
            approved.append(
                SuiteReport(
                    suite=suite.suite, path=suite.path, variant=suite.variant, counts=counts, metrics={}, cases=cases
                )
            )
    run = PageRun("", report, pairs=pairs)
    return [run, PageRun(_APPROVED, RunReport(suites=approved).with_derived(), is_baseline=True)] if approved else [run]


def _approved_cases(suite: SuiteReport) -> Iterator[CaseReport]:
    """Yield a suite's approved cases for the HTML report, with answers only where it has texts of the run."""
    quoted = {case.id for case in suite.cases if case.has_texts}
    for case in suite.changes.cases if suite.changes else ():
        yield case if case.id in quoted else structs.replace(case, prediction=UNSET, several=())


def as_json(value: Any) -> str:
    """A value as compact JSON for an HTML page; lone surrogates are escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def pack(text: str) -> str:
    """Compress a text for an HTML page; equal texts give equal results."""
    return b64encode(gzip.compress(text.encode("utf-8"), mtime=0)).decode("ascii")


def chunked(values: Iterable[Any], size: int = _CHUNK) -> Iterator[list[str]]:
    """Yield values as JSON in pieces of limited length for an HTML page, at least one value each.

    >>> list(chunked(["aaaa", "bbbb", "c"], 10))
    [['"aaaa"'], ['"bbbb"', '"c"']]
    """
    piece: list[str] = []
    length = 0
    for value in values:
        text = as_json(value)
        if piece and length + len(text) > size:
            yield piece
            piece, length = [], 0
        piece.append(text)
        length += len(text)
    if piece:
        yield piece


def embedded_json(value: Any) -> str:
    r"""JSON for the ``script`` element of an HTML page: no text in it can end the element or begin markup.

    >>> embedded_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    escapes = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
    return as_json(value).translate(escapes)
