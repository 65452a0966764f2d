"""Configuration of the documentation site: ``sphinx-build -W -b html docs docs/_build``."""

from pathlib import Path
from typing import Any

from pytest_llmeval import __version__
from pytest_llmeval.suites._schema import without_links

project = "pytest-llmeval"
author = "The pytest-llmeval authors"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
root_doc = "toc"  # so that the first page has no directive, and reads well on code hosts
exclude_patterns = ["_build"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_preserve_defaults = True

html_theme = "furo"
html_title = f"pytest-llmeval {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")  # Sphinx looks it up in the current folder


def write_markdown(app: Any, _error: object) -> None:
    """Write each page as Markdown next to its HTML, and llms.txt, which lists them."""
    source, target = Path(app.srcdir), Path(app.outdir)
    lines = [f"# {project}", "", "> A pytest plugin for evaluation as tests: cases, evaluators, gates, reports.", ""]
    for page in sorted(source.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        title = text.partition("\n")[0].lstrip("# ")
        first = next((part for part in text.split("\n\n")[1:] if part[:1].isalnum()), "")
        summary = without_links(" ".join(first.split())).partition(". ")[0].rstrip(".:")
        lines.append(f"- [{title}]({page.name}){f': {summary}' if summary else ''}")
        (target / page.name).write_text(text, encoding="utf-8")
    skill = source.parent / "skills" / "llmeval" / "SKILL.md"
    lines.append("- [Skill for coding agents](SKILL.md): the command for each task, and a first suite")
    (target / skill.name).write_text(skill.read_text(encoding="utf-8"), encoding="utf-8")
    (target / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app: Any) -> None:
    """Add the Markdown to every build."""
    app.connect("build-finished", write_markdown)
