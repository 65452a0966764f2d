"""Configuration of the documentation site: ``sphinx-build -W -b html docs docs/_build``."""

from pytest_llmeval import __version__

project = "pytest-llmeval"
author = "The pytest-llmeval authors"
release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
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
