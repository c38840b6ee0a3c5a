"""Look at every page of the site in Chromium, on a desktop and on a phone, light and dark.

``python -m tools.screenshots`` builds the site and writes one picture of each page and width below
``build/screenshots``. What is wider than its window, and code that is hardly seen, is printed, and
makes the exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.chromium import Tab, browser, chromium

PROJECT: Final = Path(__file__).resolve().parents[1]
WIDTHS: Final = {
    "desktop": (1280, 900),
    "phone": (390, 844),
    "desktop-dark": (1280, 900),
    "phone-dark": (390, 844),
}

# Blocks of code and tables may scroll inside their own box on a phone; nothing may widen the page.
# On a desktop a table shall fit as it is, and so shall code, but for lines over 100 characters.
OVERFLOW: Final = """
(() => {
  const wide = document.documentElement.scrollWidth;
  const out = [...document.querySelectorAll("body *")].find(
    node => node.getBoundingClientRect().right > innerWidth + 1);
  const found = wide > innerWidth
    ? [`the page is ${wide} px wide: ${out && out.outerHTML.slice(0, 90)}`] : [];
  const say = (kind, node) => found.push(
    `${kind} ${node.scrollWidth} px in ${node.clientWidth}: ${node.innerText.slice(0, 60)}`);
  if (innerWidth > 1000) {
    for (const node of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset__table"))
      if (node.scrollWidth > node.clientWidth + 1) say("a table of", node);
    for (const node of document.querySelectorAll(".md-typeset pre > code"))
      if (node.scrollWidth > node.clientWidth + 1
          && Math.max(...node.innerText.split("\\n").map(line => line.length)) <= 100)
        say("code of", node);
  }
  for (const node of document.images)
    if (!node.complete || !node.naturalWidth) found.push(`no picture: ${node.src}`);
  return found;
})()
"""

# WCAG 2 (1.4.3) measures contrast so, and asks for 4.5; here it is about words that nobody sees.
FAINT: Final = """
(() => {
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].reduce((sum, part, at) => {
    part /= 255;
    part = part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    return sum + part * [0.2126, 0.7152, 0.0722][at];
  }, 0);
  const found = new Set();
  for (const code of document.querySelectorAll(".md-typeset pre > code")) {
    const back = parts(getComputedStyle(code).backgroundColor);
    for (const node of code.querySelectorAll("span:not(:has(*))")) {
      if (!node.innerText.trim()) continue;
      const [r, g, b, alpha = 1] = parts(getComputedStyle(node).color);
      const shown = [r, g, b].map((part, at) => part * alpha + back[at] * (1 - alpha));
      const [low, high] = [light(shown), light(back)].sort((one, other) => one - other);
      if ((high + 0.05) / (low + 0.05) < 3)
        found.add(`hardly seen: ${node.className} ${node.innerText.slice(0, 40)}`);
    }
  }
  return [...found].slice(0, 5);
})()
"""


@dataclass(frozen=True)
class Seen:
    """One page at one width."""

    page: str
    screen: str
    faults: list[str]
    picture: bytes


async def look(program: str, site: Path, pages: Iterable[str], *, draw: bool) -> list[Seen]:
    """Open each page once, and look at it at each width; ``draw`` takes pictures of the whole."""
    found = []
    async with browser(program) as tab:
        # Every page would read the index of all; nothing of that is seen.
        await tab.send("Network.setBlockedURLs", urls=["*search_index*"])
        for page in pages:
            for screen, size in WIDTHS.items():
                if screen.startswith("desktop"):
                    await tab.resize(*size)
                    await _choose(tab, "dark" if screen.endswith("-dark") else "light")
                    await tab.open((site / page).as_uri())
                await tab.resize(*size)
                faults = await tab.ask(OVERFLOW) + await tab.ask(FAINT)
                picture = await tab.picture() if draw else b""
                found.append(Seen(page, screen, faults, picture))
    return found


async def _choose(tab: Tab, scheme: str) -> None:
    """Choose light or dark, as a system does; pages take it when they are opened."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    await tab.send("Emulation.setEmulatedMedia", features=[feature])


def build(folder: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=PROJECT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="screenshots", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("pages", nargs="*", help="as in index.html; all of them without")
    parser.add_argument("--site", type=Path, help="a site that is built already")
    options = parser.parse_args()
    program = chromium()
    if program is None:
        print("screenshots: there is no chromium on PATH", file=sys.stderr)
        return 1
    site = (options.site or PROJECT / "build" / "site").resolve()
    if options.site is None:
        build(site)
    found = sorted(str(page.relative_to(site)) for page in site.rglob("*.html"))
    pages = options.pages or [page for page in found if page != "404.html"]
    target = PROJECT / "build" / "screenshots"
    seen = asyncio.run(look(program, site, pages, draw=True))
    for one in seen:
        file = target / one.screen / Path(one.page).with_suffix(".png")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(one.picture)
        for fault in one.faults:
            print(f"{one.page}, {one.screen}: {fault}")
    print(f"{len(seen)} pictures below {target}")
    return 1 if any(one.faults for one in seen) else 0


if __name__ == "__main__":
    sys.exit(main())
