"""Debian's python3-requests-oauthlib and python3-authlib against the hub at AUTHHUB, which speaks the dialect oauth2."""

import json
import os
import subprocess
import unittest
import urllib.request
from concurrent.futures import ThreadPoolExecutor

os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # both libraries want https
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from authlib.integrations.base_client.errors import OAuthError as AuthlibError
from oauthlib.oauth2 import InvalidGrantError, LegacyApplicationClient
from requests.exceptions import ConnectionError as ConnectionLost
from requests_oauthlib import OAuth2Session


class Hub:
    def __init__(self):
        self.process = subprocess.Popen(
            [os.environ["AUTHHUB"], "-addr", "127.0.0.1:0", "-ephemeral", "-lab", "-log", "off", "-exit-with-stdin", "-dialect", "oauth2"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Space:
    """A namespace of a hub."""

    def __init__(self, hub, name):
        self.address = hub.address + "/ns/" + name

    def lab(self, method, path, body=None):
        request = urllib.request.Request(self.address + "/lab" + path, method=method, headers={"Content-Type": "application/json"},
                                         data=body and json.dumps(body).encode())
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or "null")


class OAuth2(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hub = Hub()
        cls.addClassCleanup(cls.hub.close)

    def setUp(self):
        self.space = Space(self.hub, self.id().rpartition(".")[2])
        self.token_url = self.space.address + "/oauth/token"
        self.userinfo = self.space.address + "/oauth/userinfo"

    def assert_clean(self):
        self.assertEqual(self.space.lab("GET", "/report")["findings"], [])

    def at_once(self, call):
        """Makes five calls at once, whose refreshes meet at the hub, and returns what they raised."""
        self.space.lab("POST", "/faults", {"operation": "refresh", "hold": 5})
        with ThreadPoolExecutor(5) as pool:
            failures = [f.exception() for f in [pool.submit(call) for _ in range(5)]]
        return [f for f in failures if f]

    def findings(self):
        return [f["rule"] for f in self.space.lab("GET", "/report")["findings"]]

    def lose_refresh(self):
        self.space.lab("POST", "/faults", {"operation": "refresh", "drop": "after"})

    def refreshes(self):
        return [r["code"] for r in self.space.lab("GET", "/requests?operation=refresh")["requests"]]

    def requests_oauthlib(self, kept):
        client = OAuth2Session(client=LegacyApplicationClient(client_id="app", scope=["profile"]), scope=["profile"], auto_refresh_url=self.token_url,
                               auto_refresh_kwargs={"client_id": "app"}, token_updater=kept.append)
        self.addCleanup(client.close)
        return client

    def requests_oauthlib_passes(self, client):
        self.space.lab("PUT", "/clock", {"advance": "16m"})
        client.token["expires_at"] -= 16 * 60
        client._client.populate_token_attributes(client.token)

    def test_requests_oauthlib(self):
        kept = []
        client = self.requests_oauthlib(kept)
        with self.assertRaises(InvalidGrantError):
            client.fetch_token(self.token_url, username="demo", password="wrong")
        client.fetch_token(self.token_url, username="demo", password="demo-password")
        self.assertEqual(client.get(self.userinfo).json()["preferred_username"], "demo")

        self.requests_oauthlib_passes(client)
        for _ in range(5):
            self.assertEqual(client.get(self.userinfo).status_code, 200)
        self.assertEqual(len(kept), 1)
        revoked = client.post(self.space.address + "/oauth/revoke", data={"token": client.token["refresh_token"]})
        self.assertEqual(revoked.status_code, 200)
        self.assert_clean()

    def test_requests_oauthlib_loses_a_refresh(self):
        kept = []
        client = self.requests_oauthlib(kept)
        client.fetch_token(self.token_url, username="demo", password="demo-password")
        self.requests_oauthlib_passes(client)
        self.lose_refresh()
        with self.assertRaises(ConnectionLost):
            client.get(self.userinfo)
        with self.assertRaises(InvalidGrantError):  # it sends the spent token again
            client.get(self.userinfo)
        self.assertEqual(self.refreshes(), [None, "token_reused"])
        self.assertEqual(kept, [])

        client.fetch_token(self.token_url, username="demo", password="demo-password")
        self.assertEqual(client.get(self.userinfo).status_code, 200)
        self.assert_clean()

    def test_requests_oauthlib_in_threads(self):
        client = self.requests_oauthlib([])
        client.fetch_token(self.token_url, username="demo", password="demo-password")
        self.requests_oauthlib_passes(client)
        raised = self.at_once(lambda: client.get(self.userinfo))
        self.assertEqual([type(e) for e in raised], [InvalidGrantError] * 4)
        self.assertEqual(self.findings(), ["two_refreshes"])  # it is true: each thread refreshes for itself

    def authlib(self):
        client = AuthlibSession("app", "secret", token_endpoint=self.token_url)
        self.addCleanup(client.close)
        return client

    def authlib_passes(self, client):
        self.space.lab("PUT", "/clock", {"advance": "16m"})
        client.token["expires_at"] -= 16 * 60

    def test_authlib(self):
        client = self.authlib()
        with self.assertRaises(AuthlibError) as refused:
            client.fetch_token(self.token_url, username="demo", password="wrong", grant_type="password")
        self.assertEqual(refused.exception.error, "invalid_grant")
        client.fetch_token(self.token_url, username="demo", password="demo-password", grant_type="password")
        self.assertEqual(client.get(self.userinfo).json()["name"], "Demo User")

        self.authlib_passes(client)
        for _ in range(5):
            self.assertEqual(client.get(self.userinfo).status_code, 200)
        looked = client.introspect_token(self.space.address + "/oauth/introspect", token=client.token["refresh_token"])
        self.assertEqual(looked.json()["active"], True)

        for _ in range(2):  # the second time it is dead already
            answer = client.revoke_token(self.space.address + "/oauth/revoke", token=client.token["refresh_token"])
            self.assertEqual((answer.status_code, answer.json()), (200, {}))
        self.assertEqual(client.introspect_token(self.space.address + "/oauth/introspect", token="none").json(), {"active": False})
        self.assert_clean()
        self.assertEqual(client.get(self.userinfo).status_code, 401)
        self.assertEqual(self.findings(), ["token_after_logout"])  # this test's own doing

    def test_authlib_loses_a_refresh(self):
        client = self.authlib()
        client.fetch_token(self.token_url, username="demo", password="demo-password", grant_type="password")
        self.authlib_passes(client)
        self.lose_refresh()
        with self.assertRaises(ConnectionLost):
            client.get(self.userinfo)
        with self.assertRaises(AuthlibError) as refused:  # it sends the spent token again
            client.get(self.userinfo)
        self.assertEqual(refused.exception.error, "invalid_grant")
        self.assertEqual(self.refreshes(), [None, "token_reused"])

        client.fetch_token(self.token_url, username="demo", password="demo-password", grant_type="password")
        self.assertEqual(client.get(self.userinfo).status_code, 200)
        self.assert_clean()

    def test_authlib_in_threads(self):
        client = self.authlib()
        client.fetch_token(self.token_url, username="demo", password="demo-password", grant_type="password")
        self.authlib_passes(client)
        raised = self.at_once(lambda: client.get(self.userinfo))
        self.assertEqual([e.error for e in raised], ["invalid_grant"] * 4)
        self.assertEqual(self.findings(), ["two_refreshes"])  # it is true: each thread refreshes for itself


if __name__ == "__main__":
    unittest.main()
