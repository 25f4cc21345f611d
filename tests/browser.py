"""A page as a reader's browser shows it: opened by a headless Chromium on a phone and on a desktop, light and
dark, and looked over."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

import pytest

SCREENS = {"phone": (390, 844), "desktop": (1280, 900), "wide": (1920, 1080)}
SCHEMES = ("light", "dark")
LEAST_SIZE = 11  # px of any text
LEAST_CONTRAST = 4.5  # of text against what lies behind it
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHECKS = Path(__file__).with_name("browser_checks.js")


@contextmanager
def open_browser() -> Iterator[Any]:
    """Playwright's Browser; skips the test where playwright or a Chromium is missing."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="pages are looked at with playwright: pip install -e '.[browser]'"
    )
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not executable:
        pytest.skip(f"pages are looked at with Chromium: none of {', '.join(BROWSERS)} is on PATH")
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        yield browser
        browser.close()


def faults_of(browser: Any, path: Path) -> list[str]:
    """What is wrong with a page, one line each, with the screen and scheme it was first seen in."""
    checks = (
        CHECKS.read_text()
        .replace("LEAST_SIZE", str(LEAST_SIZE))
        .replace("LEAST_CONTRAST", str(LEAST_CONTRAST))
    )
    found: dict[str, str] = {}
    for screen, (width, height) in SCREENS.items():
        for scheme in SCHEMES:
            with opened(browser, path, {"width": width, "height": height}, scheme) as (page, noticed):
                for fault in [*page.evaluate(checks), *noticed]:
                    found.setdefault(fault, f"{screen}, {scheme}: {fault}")
    return list(found.values())


@contextmanager
def opened(
    browser: Any, path: Path, viewport: dict[str, int], scheme: str
) -> Iterator[tuple[Any, list[str]]]:
    """The page with no network, and a list that fills with what it asked the network for and with its
    errors."""
    context = browser.new_context(viewport=viewport, color_scheme=scheme, offline=True)
    page, noticed, address = context.new_page(), [], path.resolve().as_uri()

    def requested(request: Any) -> None:
        if request.url.partition("#")[0] != address and not request.url.startswith("data:"):
            noticed.append(f"network: asks for {request.url}")

    def logged(message: Any) -> None:
        if message.type in ("error", "warning"):
            noticed.append(f"console: {message.text}")

    page.on("request", requested)
    page.on("console", logged)
    page.on("pageerror", lambda error: noticed.append(f"script: {error}"))
    try:
        page.goto(address)
        yield page, noticed
    finally:
        context.close()
