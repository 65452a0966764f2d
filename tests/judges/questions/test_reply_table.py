"""What is read of every form of replies in every mode, which is the table of the page about judges."""

import pytest
from project import script

PAGE = script("replies_page")
WORDS = ("default_binary", "criterion", "abstention")


@pytest.mark.parametrize("mode", PAGE.READERS)
@pytest.mark.parametrize("form", PAGE.FORMS, ids=[form.name for form in PAGE.FORMS])
def test_a_form_is_read_alike_in_all_modes(form: "PAGE.Form", mode: str) -> None:
    expected = form.of_word if mode in WORDS else form.of_object
    if expected is None:
        return
    score = PAGE.reading(mode, form.text)
    assert score == (PAGE.reading(mode, "GOOD") if expected else None)


@pytest.mark.parametrize(("mode", "forms"), [("continuous", PAGE.OBJECTS), ("default_binary", PAGE.WORDS)])
def test_a_form_of_one_kind_of_modes_is_read_or_refused(mode: str, forms: tuple["PAGE.Form", ...]) -> None:
    for form in forms:
        expected = form.of_word if mode in WORDS else form.of_object
        assert (PAGE.reading(mode, form.text) is not None) == expected, form.text


def test_the_table_of_the_page_is_what_is_read() -> None:
    assert PAGE.PUBLISHED.read_text(encoding="utf-8") == PAGE.text(), "run python .ci/replies_page.py"
