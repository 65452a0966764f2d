"""Open each page of a built site in Chromium, on a desk and on a telephone, and name what scrolls sideways.

On a telephone, blocks of code may.

Run it as ``python docs/check_widths.py SITE``; without Chromium it says so, and passes unless ``CI`` is set.
"""

__all__ = ()

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from selenium import webdriver

SCREENS = ({"width": 1280, "mobile": False}, {"width": 360, "mobile": True})
TOO_WIDE = """
const wide = each => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflowX !== 'visible';
const scrolls = each => wide(each) && !(innerWidth < 700 && each.tagName === 'PRE');
const found = [...document.querySelectorAll('article, article *')].filter(each => each.clientWidth && scrolls(each));
const page = document.documentElement.scrollWidth > innerWidth ? ['the page'] : [];
return page.concat(found.map(each => `${each.tagName.toLowerCase()}: ${each.innerText.slice(0, 60)}`));
"""


def too_wide(site: Path, program: str, server: str) -> Iterator[str]:
    """Yield a line for each element that is wider than its place."""
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for each in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(each)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(server))
    try:
        for page in sorted(site.glob("*.html")):
            browser.get(page.as_uri())
            for screen in SCREENS:
                metrics = {**screen, "height": 900, "deviceScaleFactor": 1}
                browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
                for found in browser.execute_script(TOO_WIDE):
                    yield f"{page.name} at {screen['width']}px: {found!r}"
    finally:
        browser.quit()


def main() -> int:
    """Return the exit code."""
    program, server = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or server is None:
        sys.stderr.write("found no chromium and chromedriver: widths are not checked\n")
        return 1 if os.environ.get("CI") else 0
    found = list(too_wide(Path(sys.argv[1]).resolve(), program, server))
    sys.stderr.writelines(f"{each}\n" for each in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
