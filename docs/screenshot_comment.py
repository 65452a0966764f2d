"""Draw pull requests with the comments that a workflow writes: that of the tutorial, and one on a fall.

The commands of the tutorial make the one, two runs of a larger suite the other; a small page shows their Markdown as a
code host would. Run it as
``python docs/screenshot_comment.py`` where Chromium and the extras ``test`` and ``docs`` are installed.
"""

__all__ = ()

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt
from screenshots import cases
from selenium import webdriver

HERE = Path(__file__).resolve().parent
BASE, NEW = "eval-baseline/report.json", "eval-reports/report.json"
WIDTH = 900
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Pull request</title>
<style>
  body {{ margin: 0; padding: 28px 32px; font: 15px/1.5 system-ui, sans-serif; color: #1f2328; background: #fff; }}
  h1 {{ font-size: 26px; font-weight: 400; margin: 0 0 8px; }}
  h1 span {{ color: #6a737d; }}
  .state {{ display: inline-block; background: #1a7f37; color: #fff; border-radius: 2em; padding: 3px 12px; }}
  .from {{ color: #59636e; margin-left: 8px; }}
  code {{ background: #eff1f3; border-radius: 5px; padding: 2px 5px; font-size: 85%; }}
  pre {{ background: #f6f8fa; border-radius: 6px; padding: 10px 14px; overflow: hidden; }}
  pre code {{ background: none; padding: 0; }}
  pre .old {{ display: block; background: #ffebe9; color: #82071e; }}
  pre .new {{ display: block; background: #dafbe1; color: #116329; }}
  .box {{ border: 1px solid #d1d9e0; border-radius: 7px; margin-top: 20px; overflow: hidden; }}
  .head {{ background: #f6f8fa; border-bottom: 1px solid #d1d9e0; padding: 8px 16px; color: #59636e; }}
  .head b {{ color: #1f2328; }}
  .text {{ padding: 4px 16px 14px; }}
  h2 {{ font-size: 21px; border-bottom: 1px solid #d1d9e0; padding-bottom: 5px; margin: 12px 0; }}
  h3 {{ font-size: 17px; margin: 18px 0 8px; }}
  p {{ margin: 8px 0; }}
  table {{ border-collapse: collapse; font-size: 14px; }}
  th, td {{ border: 1px solid #d1d9e0; padding: 5px 11px; text-align: left; vertical-align: top; }}
  .check {{ padding: 10px 16px; border-top: 1px solid #d1d9e0; }}
  .check:first-child {{ border-top: 0; }}
  .cross {{ color: #c02028; font-weight: 700; margin-right: 8px; }}
  .note {{ color: #59636e; }}
</style>
<h1>{title} <span>#2</span></h1>
<span class="state">Open</span>
<span class="from">wants to merge 1 commit into <code>main</code> from <code>{branch}</code></span>
<div class="box"><div class="head"><b>github-actions</b> bot commented</div><div class="text">{comment}</div></div>
<div class="box">
  <div class="check"><span class="cross">\u2717</span><b>Some checks were not successful</b>
    <span class="note">1 failing check</span></div>
  <div class="check"><span class="cross">\u2717</span><b>evals / evaluate</b>
    <span class="note">Failing \u2014 required</span></div>
  <div class="check"><span class="cross">\u2717</span><b>Merging is blocked</b>
    <span class="note">A required check has failed.</span></div>
</div>
</html>
"""


def comment() -> str:
    """Return the Markdown that the tutorial's workflow writes."""
    tutorial = (HERE / "tutorial.md").read_text(encoding="utf-8")
    before, after = re.findall(r"^```python\n(.*?)^```$", tutorial, re.MULTILINE | re.DOTALL)
    (suite,) = re.findall(r"^```yaml\n(.*?)^```$", tutorial, re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "evals").mkdir()
        (folder / "evals" / "first.eval.yaml").write_text(suite, encoding="utf-8")
        for application, report in ((before, BASE), (after, NEW)):
            (folder / "my_app.py").write_text(application, encoding="utf-8")
            python(folder, "pytest", "--llmeval", "evals", f"--llmeval-report={report}", "-p", "no:cacheprovider")
        return python(folder, "pytest_llmeval", "comment", NEW, "--baseline", BASE)


def fall() -> str:
    """Return the comment on answers about one topic that got worse than the approved ones."""
    suite = {
        "suite": "support",
        "evaluators": [{"text": {"metrics": ["f1"]}}],
        "thresholds": {"f1": 0.5},
        "snapshot": {"tolerance": 1},
        "gates": [{"metric": "f1", "max_drop": 0.02}],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for worse, report, options in ((0.0, BASE, ["--snapshot-update"]), (0.6, NEW, [])):
            text = json.dumps({**suite, "cases": cases(worse)}, indent=1)
            (folder / "support.eval.json").write_text(text, encoding="utf-8")
            command = ["pytest", "--llmeval", "--llmeval-texts=all", f"--llmeval-report={report}", *options]
            python(folder, *command, "-p", "no:cacheprovider")
        return python(folder, "pytest_llmeval", "comment", NEW, "--baseline", BASE)


def python(folder: Path, *arguments: str) -> str:
    """Run a module of Python in a folder; return what it prints."""
    command = [sys.executable, "-B", "-m", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout  # noqa: S603 (our own)


def coloured(code: str, language: str, _attributes: str) -> str:
    """Return the lines of a difference in the colours of a code host; other code stays as it is."""
    if language != "diff":
        return ""
    kinds = {"-": "old", "+": "new"}
    lines = (f'<span class="{kinds.get(line[:1], "")}">{html.escape(line)}</span>' for line in code.splitlines())
    return "".join(lines)


def draw(markdown: str, path: Path, title: str, branch: str) -> None:
    """Draw the page of a comment on a pull request."""
    rendered = MarkdownIt("commonmark", {"html": True, "highlight": coloured}).enable("table").render(markdown)
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for each in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--force-device-scale-factor=1.5"):
        options.add_argument(each)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    with tempfile.TemporaryDirectory() as name:
        page = Path(name, "page.html")
        page.write_text(PAGE.format(comment=rendered, title=title, branch=branch), encoding="utf-8")
        try:
            browser.set_window_size(WIDTH, 2000)
            browser.get(page.as_uri())
            height = browser.execute_script("return document.documentElement.offsetHeight")
            browser.set_window_size(WIDTH, int(height) + browser.execute_script("return outerHeight - innerHeight"))
            path.parent.mkdir(exist_ok=True)
            browser.save_screenshot(str(path))
        finally:
            browser.quit()


if __name__ == "__main__":
    draw(comment(), HERE / "images" / "pull-request.png", "Simplify the lookup", "simpler")
    draw(fall(), HERE / "images" / "pull-request-fall.png", "Shorten the prompt", "shorter")
