"""The review page: answers, style and script in one file that opens from disk, without network."""

from importlib.resources import files
from typing import Any

from pytest_llmeval.data.formats.human_labels import SCALES
from pytest_llmeval.reports.html.page import embedded_json, inline_hash
from pytest_llmeval.services.secrets import masked, secret_values
from pytest_llmeval.workbench.reviews.items import Review, ReviewItem


def review_page(review: Review, annotator: str = "", *, served: bool = False) -> str:
    """Return the page of a review.

    Args:
        review: The answers.
        annotator: Who labels; empty: the page asks.
        served: Whether labels are sent to the server that the page came from, and kept by it.
    """
    from jinja2 import Environment
    from markupsafe import Markup

    assets = files(__package__) / "assets"
    style = (assets / "review.css").read_text(encoding="utf-8")
    shared = files("pytest_llmeval.reports.html") / "assets" / "dom.js"
    parts = [each.read_text(encoding="utf-8") for each in (shared, assets / "labels.js", assets / "review.js")]
    script = "".join(['"use strict";\n{\n', *parts, "}\n"])
    data = {
        "review": review.id,
        "scale": review.scale,
        "labels": list(SCALES[review.scale]),
        "ask": review.ask,
        "annotator": annotator,
        "served": served,
        "items": [_item(each) for each in review.items],
    }
    template = Environment(autoescape=True, keep_trailing_newline=True).from_string(
        (assets / "review.html.jinja").read_text(encoding="utf-8")
    )
    return template.render(
        data=Markup(embedded_json(masked(data, secret_values()))),  # noqa: S704 (nothing in it begins markup)
        style=Markup(style),  # noqa: S704 (our own file)
        script=Markup(script),  # noqa: S704 (our own file)
        style_hash=inline_hash(style),
        script_hash=inline_hash(script),
        served=served,
    )


def _item(item: ReviewItem) -> dict[str, Any]:
    """Return an answer as the page has it: nothing of it tells a system, a judge or a score."""
    question, answer, reference = item.prints
    return {
        "line": {
            "question": question,
            "answer": answer,
            "cases": list(item.cases),
            "reference": reference,
            "probability": item.probability,
        },
        "question": item.question,
        "answer": item.answer,
        "reference": item.reference,
        "more": [[name, text] for name, text in item.more.items()],
    }
