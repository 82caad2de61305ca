"""Take the picture of a report that the README shows: python docs/screenshot.py report.html."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

OUT = Path(__file__).with_name("report.png")


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1000, "height": 1060}, color_scheme="light")
        page.goto(Path(sys.argv[1]).resolve().as_uri())
        page.screenshot(path=OUT)
        browser.close()
    Image.open(OUT).convert("RGB").quantize(128).save(OUT, optimize=True)
    print(f"wrote {OUT}, {OUT.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
