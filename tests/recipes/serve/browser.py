"""Headless Chromium for tests of the page, driven by selenium."""

import base64
import importlib.util
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

BINARY, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
IS_MISSING = not (BINARY and DRIVER and importlib.util.find_spec("selenium"))
SECONDS = 30.0  # until a condition counts as failed
QUIET = (
    "disable-dev-shm-usage",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
    "disable-quic",
)
DROP = """
const [name, content] = arguments;
const bytes = Uint8Array.from(atob(content), (c) => c.charCodeAt(0));
const dropped = new DataTransfer();
dropped.items.add(new File([bytes], name));
const event = new DragEvent("drop", {dataTransfer: dropped, bubbles: true, cancelable: true});
document.getElementById("choose").dispatchEvent(event);
"""
SIZES = {"width": 1280, "height": 1000}


class Browser:
    """A browser with a microphone that plays a file; downloads are saved to a directory."""

    def __init__(self, microphone: Path | None = None, downloads: Path | None = None):
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = BINARY
        names = ["headless=new", "disable-gpu", "hide-scrollbars", *QUIET]
        names += ["use-fake-ui-for-media-stream", "use-fake-device-for-media-stream"]
        names += ["no-sandbox"] if os.geteuid() == 0 else []  # Chromium has no sandbox for root
        names += [f"use-file-for-fake-audio-capture={microphone}%noloop"] if microphone else []
        for name in names:
            options.add_argument(f"--{name}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        self.driver.set_script_timeout(SECONDS)
        self.look("light", **SIZES)
        if downloads is not None:
            self.command("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))

    def close(self) -> None:
        self.driver.quit()

    def command(self, name: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, parameters)

    def look(self, theme: str, width: int, height: int) -> None:
        """Choose light or dark, and the size of the window in CSS pixels."""
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def find(self, selector: str):
        """The first element of a CSS selector."""
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        """The texts of all elements of a CSS selector."""
        return self.run(f"return [...document.querySelectorAll({selector!r})].map((one) => one.textContent)")

    def run(self, script: str, *arguments: Any) -> Any:
        """Run the body of an asynchronous JavaScript function and return its value."""
        wrapped = (
            "const done = arguments[arguments.length - 1];"
            f"(async function () {{{script}}}).apply(null, arguments).then(done, (fault) => done(`${{fault.stack}}`))"
        )
        return self.driver.execute_async_script(wrapped, *arguments)

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Return the value of the condition as soon as it is true."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, SECONDS, 0.05).until(lambda _: condition())

    def faults(self) -> list[str]:
        """Messages of the console since the last call that are errors."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]


def drop(page: Browser, name: str, content: bytes) -> None:
    """Drop a file on the page."""
    page.run(DROP, name, base64.b64encode(content).decode())


def show_result(page: Browser, speech: Path) -> None:
    """Recognise the recording on the page."""
    drop(page, "speech.wav", speech.read_bytes())
    page.wait(lambda: page.find("#details").is_displayed())
