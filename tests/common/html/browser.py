"""Headless Chromium over the DevTools protocol: opens a page from a file, and asks it."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

import websocket

KEYS = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "End": 35, "Home": 36, "PageDown": 34}


class Page:
    """A page, with every error that it or its console had."""

    def __init__(self, path, width=1280, height=900, fragment=""):
        self.errors, self.requests, self.number = [], [], 0
        self.home = tempfile.mkdtemp(prefix="chromium-")
        command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
                   "--remote-allow-origins=*", f"--user-data-dir={self.home}", "--no-first-run",
                   "--disable-dev-shm-usage", "about:blank"]
        self.browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket = websocket.create_connection(self._address(), timeout=120, suppress_origin=True)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", url="file://" + os.path.abspath(path) + (f"#{fragment}" if fragment else ""))
        self.wait("document.readyState === 'complete'")

    def _address(self):
        port = os.path.join(self.home, "DevToolsActivePort")
        for _ in range(600):
            if os.path.exists(port):
                lines = open(port).read().split("\n")
                if len(lines) > 1:
                    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            if self.browser.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError("chromium did not start")

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._event(answer.get("method"), answer.get("params"))

    def _event(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(params["exceptionDetails"])[:2000])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
            self.errors.append(json.dumps(params["args"])[:2000])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def ask(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {json.dumps(answer['exceptionDetails'])[:2000]}")
        return answer["result"].get("value")

    def wait(self, condition):
        for _ in range(600):
            if self.ask(condition):
                return
            time.sleep(0.1)
        raise RuntimeError(f"never: {condition}")

    def press(self, key, shift=False):
        code = KEYS.get(key, ord(key[0].upper()))
        shared = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="rawKeyDown", **shared)
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def drag(self, start, end):
        """Presses the mouse at one point of the view, and lets it go at another."""
        for kind, (x, y), buttons in (("mousePressed", start, 1), ("mouseMoved", end, 1), ("mouseReleased", end, 0)):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=buttons, clickCount=1)

    def screenshot(self, path, **clip):
        if clip:
            shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip={**clip, "scale": 1})
        else:
            shot = self.call("Page.captureScreenshot", format="png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def close(self):
        self.socket.close()
        self.browser.terminate()
        self.browser.wait()
        shutil.rmtree(self.home, ignore_errors=True)
