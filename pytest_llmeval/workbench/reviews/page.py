"""The review page: answers, style and script in one file that opens from disk, without network."""

from importlib.resources import files
from typing import Any

from pytest_llmeval.data.formats.human_labels import SCALES
from pytest_llmeval.reports.html.page import rendered_page
from pytest_llmeval.services.secrets import masked, secret_values
from pytest_llmeval.workbench.reviews.items import Review, ReviewItem


def review_page(review: Review, annotator: str = "", *, served: bool = False) -> str:
    """Return the page of a review.

    Args:
        review: The answers.
        annotator: Who labels; empty: the page asks.
        served: Whether labels are sent to the server that the page came from, and kept by it.
    """
    assets = files(__package__) / "assets"
    shared = files("pytest_llmeval.reports.html") / "assets" / "dom.js"
    data = {
        "review": review.id,
        "scale": review.scale,
        "labels": list(SCALES[review.scale]),
        "ask": review.ask,
        "annotator": annotator,
        "served": served,
        "items": [_item(each) for each in review.items],
    }
    return rendered_page(
        assets,
        "review.html.jinja",
        "review.css",
        [shared, assets / "labels.js", assets / "review.js"],
        masked(data, secret_values()),
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
            **({"again": item.again} if item.again else {}),
            **({"others": list(item.others)} if item.others else {}),
        },
        "question": item.question,
        "answer": item.answer,
        "reference": item.reference,
        "more": [[name, text] for name, text in item.more.items()],
    }
