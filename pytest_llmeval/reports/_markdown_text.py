"""Text in Markdown."""

import re

from pytest_llmeval.core import excerpt

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$@])")
_LINK = re.compile(
    r"://|www\.|[^\s@]@[^\s@]|mailto:|xmpp:|@\w|[#!$&]\d|\bgh-\d|(?<![\w~%])[~%][\w\"]|\*iteration:|\[[a-z_]+:\d",
    re.IGNORECASE,
)
"""GitHub and GitLab make links, mentions and references of these after parsing Markdown: backslashes do not help."""
_LONGEST = 300


def text(value: str, *, cell: bool = True) -> str:
    r"""A text for the Markdown report: displayed, without markup, HTML or line breaks.

    Text with what GitHub and GitLab would turn into a link, a mention or a reference becomes code.

    Args:
        value: The text.
        cell: Whether it may be a cell of a table, which a vertical bar would end even in code.

    >>> text("a|b <b>"), text("see https://example.org")
    ('a\\|b \\<b\\>', '`see https://example.org`')
    """
    line = excerpt(" ".join(value.split()), _LONGEST)
    if _LINK.search(line):
        fence = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
        space = " " if "`" in line else ""
        inert = (line.replace("|", r"\|") if cell else line).replace("<!--", r"<\!--")
        return f"{fence}{space}{inert}{space}{fence}"
    return _SPECIAL.sub(r"\\\1", line)
