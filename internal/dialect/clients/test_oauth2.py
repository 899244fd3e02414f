"""Debian's python3-requests-oauthlib and python3-authlib against the hub at AUTHHUB, which speaks the dialect oauth2."""

import json
import os
import subprocess
import unittest
import urllib.request

os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"  # both libraries want https
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from authlib.integrations.base_client.errors import OAuthError as AuthlibError
from oauthlib.oauth2 import InvalidGrantError, LegacyApplicationClient
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

    def test_requests_oauthlib(self):
        kept = []
        client = OAuth2Session(client=LegacyApplicationClient(client_id="app", scope=["profile"]), scope=["profile"], auto_refresh_url=self.token_url,
                               auto_refresh_kwargs={"client_id": "app"}, token_updater=kept.append)
        self.addCleanup(client.close)
        with self.assertRaises(InvalidGrantError):
            client.fetch_token(self.token_url, username="demo", password="wrong")
        client.fetch_token(self.token_url, username="demo", password="demo-password")
        self.assertEqual(client.get(self.userinfo).json()["preferred_username"], "demo")

        self.space.lab("PUT", "/clock", {"advance": "16m"})
        client.token["expires_at"] -= 16 * 60
        client._client.populate_token_attributes(client.token)
        for _ in range(5):
            self.assertEqual(client.get(self.userinfo).status_code, 200)
        self.assertEqual(len(kept), 1)
        self.assert_clean()

    def test_authlib(self):
        client = AuthlibSession("app", "secret", token_endpoint=self.token_url)
        self.addCleanup(client.close)
        with self.assertRaises(AuthlibError) as refused:
            client.fetch_token(self.token_url, username="demo", password="wrong", grant_type="password")
        self.assertEqual(refused.exception.error, "invalid_grant")
        client.fetch_token(self.token_url, username="demo", password="demo-password", grant_type="password")
        self.assertEqual(client.get(self.userinfo).json()["name"], "Demo User")

        self.space.lab("PUT", "/clock", {"advance": "16m"})
        client.token["expires_at"] -= 16 * 60
        for _ in range(5):
            self.assertEqual(client.get(self.userinfo).status_code, 200)
        looked = client.introspect_token(self.space.address + "/oauth/introspect", token=client.token["refresh_token"])
        self.assertEqual(looked.json()["active"], True)

        for _ in range(2):  # the second time it is dead already
            answer = client.revoke_token(self.space.address + "/oauth/revoke", token=client.token["refresh_token"])
            self.assertEqual((answer.status_code, answer.json()), (200, {}))
        self.assertEqual(client.get(self.userinfo).status_code, 401)
        self.assertEqual(client.introspect_token(self.space.address + "/oauth/introspect", token="none").json(), {"active": False})


if __name__ == "__main__":
    unittest.main()
