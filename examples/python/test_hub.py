"""A download client held to bad days: a hub that is busy, slow, cut off in the middle, or that forgets its session.

    python3 -m unittest          with the hub built beforehand: (cd ../.. && go build), or AUTHHUB=/path/to/authhub

Python 3.8 or newer with the standard library. One hub for the run, a namespace (a hub within the hub) for each test.
"""

import http.client
import json
import os
import pathlib
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request
import uuid

FROM_REPOSITORY = pathlib.Path(__file__).resolve().parents[2] / "authhub"


def request(method, url, body=None, token=None, timeout=5):
    """Sends JSON and returns the JSON of the answer, None for an empty one."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = "Bearer " + token
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(asked, timeout=timeout) as answer:
        content = answer.read()
    return json.loads(content) if content else None


class Downloader:
    """The client under test: fetches result files, tries again where that makes sense, and never returns half a file."""

    TRIES = 3

    def __init__(self, base, timeout=5):
        self.base = base
        self.timeout = timeout

    def produce(self):
        return request("POST", self.base + "/api/run-ph-barrier-phase2", timeout=30)

    def fetch(self, name):
        for rest in reversed(range(self.TRIES)):
            try:
                return request("GET", f"{self.base}/api/files/phase2/{name}", timeout=self.timeout)
            except urllib.error.HTTPError as error:
                wait = error.headers.get("Retry-After")
                if not rest or not wait:
                    raise
                error.close()
                time.sleep(float(wait))
            except (http.client.IncompleteRead, ConnectionError, TimeoutError):
                if not rest:
                    raise


def setUpModule():
    """Starts the hub. It ends with this process, however that ends: then its standard input is closed."""
    global hub, hub_url
    hub = subprocess.Popen(
        [os.environ.get("AUTHHUB", FROM_REPOSITORY),
         "-addr", "127.0.0.1:0", "-ephemeral", "-lab", "-log", "off", "-exit-with-stdin"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    hub_url = hub.stdout.readline().strip()
    if not hub_url:
        raise RuntimeError("the hub does not start: " + " ".join(map(str, hub.args)))


def tearDownModule():
    hub.communicate()  # closes its standard input and waits for it


class BadDays(unittest.TestCase):
    def setUp(self):
        self.client = Downloader(self.base)

    def run(self, result=None):
        """Runs a test with a namespace of its own. If it fails, prints what the hub received."""
        self.base = f"{hub_url}/ns/{uuid.uuid4()}"
        problems = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > problems:
            print(f"\n{self.base}/ received:", file=sys.stderr)
            for r in self.lab("GET", "/requests")["requests"]:
                print(f"#{r['seq']} {r['method']} {r['path']} {r['status']} {r['code'] or ''} {r['fault'] or ''}", file=sys.stderr)
        request("POST", self.base + "/lab/reset")  # makes the namespace where no request has
        request("DELETE", self.base)

    def lab(self, method, path, body=None):
        return request(method, self.base + "/lab" + path, body)

    def findings(self):
        return [finding["sentence"] for finding in self.lab("GET", "/report")["findings"]]

    def test_a_good_day(self):
        run = self.client.produce()
        self.assertEqual(run["status"], "succeeded")
        self.assertTrue(self.client.fetch("alertesph")["alerts"])
        self.assertEqual(self.findings(), [])

    def test_no_files_yet(self):
        with self.assertRaises(urllib.error.HTTPError) as raised:
            self.client.fetch("impact")
        self.assertEqual(json.load(raised.exception)["code"], "file_unavailable")
        self.lab("POST", "/expect", {"operation": "file", "count": {"exactly": 1}, "within": "100ms"})  # it did not insist

    def test_a_download_that_breaks_off(self):
        self.client.produce()
        self.lab("POST", "/faults", {"operation": "file", "truncate": 1000})
        self.assertTrue(self.client.fetch("barrier")["stations"])
        self.assertEqual(len(self.lab("GET", "/requests?operation=file")["requests"]), 2)

    def test_a_busy_hub(self):
        self.client.produce()
        self.lab("POST", "/faults", {"operation": "file", "status": 503, "headers": {"Retry-After": "1"}})
        self.assertTrue(self.client.fetch("impact")["stations"])
        self.assertEqual(self.findings(), [])  # with a shorter wait: retry_after_ignored

    def test_a_slow_hub(self):
        self.client.produce()
        self.client.timeout = 1
        self.lab("POST", "/faults", {"operation": "file", "delay": "10s"})
        self.assertTrue(self.client.fetch("impact")["stations"])

    def test_a_hub_that_stays_away(self):
        self.client.produce()
        self.lab("POST", "/faults", {"operation": "file", "drop": "before", "times": 0})  # until the fault is deleted
        with self.assertRaises(ConnectionError):
            self.client.fetch("impact")
        self.assertEqual(len(self.lab("GET", "/requests?operation=file")["requests"]), Downloader.TRIES)

    def test_a_token_that_runs_out(self):
        login = {"username": "demo", "password": "demo-password", "expires_in": 60}
        session = request("POST", self.base + "/api/authentication/login", login)
        self.lab("PUT", "/clock", {"advance": "1m"})  # nobody waits for the minute
        with self.assertRaises(urllib.error.HTTPError) as raised:
            request("GET", self.base + "/api/authentication/me", token=session["access_token"])
        self.assertEqual(json.load(raised.exception)["code"], "token_expired")


if __name__ == "__main__":
    unittest.main()
