#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `inspect_dataset report` in headless Chromium: no errors, charts, the numbers of stats --json, keys,
narrow screens, dark mode, and texts that look like HTML.

usage: report_page.py BIN      BIN: the folder of the programs

Talks to the browser by its DevTools protocol, over a WebSocket without any package. Exits with 77 without Chromium.
"""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time

EVIL = ["</script><script>document.title='attacked'</script>", "<img src=x onerror=\"document.title='attacked'\">",
        "<!-- <script> & &lt; ]]> \u2028 \u202e \x07 \U0001f600"]


class Browser:
    """A page of a browser that was started for it."""

    def __init__(self, program, folder):
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.events, self.number = [], 0
        port_file = pathlib.Path(folder) / "DevToolsActivePort"
        port, path = self.wait(lambda: port_file.exists() and port_file.read_text().split())
        self.stream = socket.create_connection(("127.0.0.1", int(port)), timeout=30)
        self.stream.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}\r\n"
                            "Sec-WebSocket-Version: 13\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.read(1)
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(f"{domain}.enable")

    def wait(self, get):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if value := get():
                return value
            time.sleep(0.05)
        sys.exit("the browser did not answer in 30 s")

    def read(self, count):
        data = b""
        while len(data) < count:
            part = self.stream.recv(count - len(data))
            if not part:
                sys.exit("the browser ended")
            data += part
        return data

    def receive(self):
        text = b""
        while True:
            first, size = self.read(2)
            if size == 126:
                size = struct.unpack(">H", self.read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.read(8))[0]
            text += self.read(size)
            if first & 0x80:
                return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        text = json.dumps(message).encode()
        size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack(">H", len(text))
        self.stream.sendall(b"\x81" + size + bytes(4) + text)  # masked with zeros
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, path, width=1400, scheme="light", media=""):
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait(lambda: self.value("document.readyState === 'complete' && location.protocol === 'file:'"))

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def faults(self):
        """Errors and messages of the page, and what it asked the network for."""
        found = []
        for event in self.events:
            if event["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                found.append(event["params"])
            elif event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if event["params"].get("type") != "Document":
                    found.append(url)
        return found

    def close(self):
        with contextlib.suppress(AttributeError):
            self.stream.close()
        self.process.kill()
        self.process.wait()


def expect(is_true, what):
    if not is_true:
        sys.exit(f"report_page: {what}")


def run(program, *words):
    ended = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)
    expect(ended.returncode == 0, f"{words[0]}: exit {ended.returncode}: {ended.stderr}")
    return ended.stdout


def check_one(browser, page, figures, documents):
    for width in (1400, 400):
        for scheme in ("light", "dark"):
            browser.open(page, width, scheme)
            expect(not browser.faults(), f"{width} pixels, {scheme}: {browser.faults()}")
            wide = browser.value("document.documentElement.scrollWidth")
            expect(wide <= width, f"a page of {width} pixels scrolls sideways to {wide}")
            expect(browser.value("document.title") != "attacked", "a text of the dataset ran as a script")
    expect(browser.value("document.querySelectorAll('img, main script').length") == 0, "a text became HTML")
    expect(browser.value("[...document.querySelectorAll('svg')].every((each) => each.querySelectorAll('title').length > 2 "
                         "&& each.getBoundingClientRect().height > 100)"), "a chart is empty")
    expect(browser.value("document.querySelectorAll('svg').length") == 2, "a chart is missing")
    dark = browser.value("getComputedStyle(document.body).backgroundColor")
    browser.open(page)
    expect(browser.value("getComputedStyle(document.body).backgroundColor") != dark, "dark and light look the same")

    text = browser.value("document.body.innerText")
    for name in ("documents", "tokens", "never_seen", "sequences"):
        expect(f"{figures[name]:,}" in text, f"{name} {figures[name]:,} is not on the page")
    expect(f"{figures['entropy_bits']:.3f}" in text, "the entropy is not on the page")
    rows = browser.value("[...document.querySelectorAll('#document-lengths table')][0].innerText")
    for value in figures["document_tokens"]["quantiles"].values():
        expect(f"{value:,}" in rows, f"the quantile {value:,} is not in the table")
    bars = browser.value("[...document.querySelectorAll('#document-lengths rect title')].map((each) => each.textContent)")
    counts = [each["count"] for each in figures["document_tokens"]["histogram"] if each["count"]]
    expect([int(bar.split(": ")[1].split(" ")[0].replace(",", "")) for bar in bars] == counts,
           f"bars {bars}, expected {counts}")
    shown = browser.value("[...document.querySelectorAll('#token-frequencies tbody tr')].map((each) => each.cells[1].innerText)")
    expect([int(each.replace(",", "")) for each in shown] == [each["count"] for each in figures["frequent_ids"]],
           "the most frequent ids differ from stats --json")

    run = browser.value("document.querySelector('#a-run').innerText")
    for value in ("order instant", "64 tokens per sample", "2 ranks", "Samples\t50", "Steps\t25", "Tokens\t3,200"):
        expect(value.lower() in run.lower(), f"the run lacks {value!r}: {run}")

    # The keys and the buttons show one document after another, and no text is lost or changed.
    for d, document in enumerate(documents):
        pieces = browser.value("[...document.querySelectorAll('.document > span')].map((each) => each.textContent)")
        expect(len(pieces) == len(document.encode()), f"document {d}: {len(pieces)} tokens")
        plain = "".join(piece for piece in pieces if len(piece) == 1 and " " <= piece <= "~")
        expect(plain == "".join(c for c in document if " " <= c <= "~"), f"document {d} is shown as {''.join(pieces)!r}")
        if d % 2 == 0:
            browser.key("ArrowRight")
        else:
            browser.value("[...document.querySelectorAll('button')].at(-1).click()")
    expect(browser.value("[...document.querySelectorAll('button')].at(-1).disabled"), "the last document is not the end")
    browser.key("ArrowLeft")
    expect(f"document {len(documents) - 2} " in browser.value("document.querySelector('[aria-live]').innerText"),
           "the left key does not go back")
    browser.open(page, media="print")
    expect(browser.value("getComputedStyle(document.querySelector('.document')).overflowY") == "visible",
           "a printed document is cut")


def main():
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.stderr.write("report_page: there is no Chromium here (scripts/setup --browser), so the page is not tested\n")
        sys.exit(77)
    programs = pathlib.Path(sys.argv[1]).resolve()
    inspect = programs / "inspect_dataset"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:
        os.chdir(work)
        documents = [*EVIL, "a red fox " * 40, "", "a red fox", *(f"line {i}\n" * i for i in range(1, 30))]
        sources = {"a": documents, "b": documents[5:] + EVIL[:1]}
        for name, texts in sources.items():
            lines = [json.dumps({"text": text}) for text in texts if text]
            pathlib.Path(f"{name}.jsonl").write_text("\n".join(lines) + "\n")
            run(programs / "preprocess_data", "--input", f"{name}.jsonl", "--output-prefix", name,
                "--tokenizer-type", "ByteLevelTokenizer")
        a, b = "a_text_document", "b_text_document"
        figures = json.loads(run(inspect, "stats", a, "--top", 12, "--json"))
        run(inspect, "report", a, "--output", "one.html", "--documents", 35, "--verify", "--order", "instant",
            "--seq-length", 64, "--train-samples", 50, "--ranks", 2)
        run(inspect, "report", a, b, "--output", "two.html")
        run(inspect, "report", a, "--output", "redacted.html", "--redact")
        redacted = pathlib.Path("redacted.html").read_text(encoding="utf-8")
        expect("red fox" not in redacted and "attacked" not in redacted, "--redact leaves a text")
        browser = Browser(chromium, pathlib.Path(work) / "profile")
        try:
            check_one(browser, pathlib.Path("one.html"), figures, [text for text in documents if text])
            for name in ("two.html", "redacted.html"):
                browser.open(pathlib.Path(name), 400)
                expect(not browser.faults(), f"{name}: {browser.faults()}")
                expect(browser.value("document.documentElement.scrollWidth") <= 400, f"{name} scrolls sideways")
            browser.open(pathlib.Path("two.html"))
            expect(browser.value("document.querySelectorAll('.fill1').length") > 3, "the second dataset has no bars")
            expect(browser.value("document.querySelector('#a-run')") is None, "a run that was not asked for")
            found = json.loads(subprocess.run([inspect, "diff", a, b, "--json"], capture_output=True, text=True).stdout)
            shown = browser.value("[...document.querySelectorAll('#comparison tbody tr')].map((each) => each.cells[1].innerText)")
            expect([int(each.replace(",", "")) for each in shown][:4]
                   == [found[key] for key in ("common", "only_in_a", "only_in_b", "moved")],
                   f"the comparison has {shown}, but diff says {found}")
            expect(f"document {found['first']['document']}" in browser.value("document.querySelector('#comparison').innerText"),
                   "the first difference is not on the page")
        finally:
            browser.close()
    print("the page is right: numbers, charts, keys, 400 and 1400 pixels, light and dark, texts that look like HTML")


if __name__ == "__main__":
    main()
