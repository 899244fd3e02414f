"""Python's clients in their plain life and in the refresh race, and the true verdict on each. AUTHHUB_URL is the hub."""

import asyncio
import itertools
import json
import os
import time
import unittest
import urllib.request

import aiohttp
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from requests_oauthlib import OAuth2Session

os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"
REPEATS = 10
ME, REFRESH = "/api/authentication/me", "/api/authentication/refresh"
serial = itertools.count()


class Hub:
    """A namespace of the hub."""

    def __init__(self):
        self.url = f"{os.environ['AUTHHUB_URL']}/ns/python-{next(serial)}"

    def send(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method, data=json.dumps(body).encode() if body is not None else None,
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or "null")

    def login(self, **members):
        return self.send("POST", "/api/authentication/login", {"username": "demo", "password": "demo-password", **members})

    def advance(self, duration):
        self.send("PUT", "/lab/clock", {"advance": duration})

    def verdict(self):
        self.advance("3s")
        report = self.send("GET", "/lab/report")
        return [(f["rule"], len(f["seqs"])) for f in report["findings"]], [(n["rule"], len(n["seqs"])) for n in report["notes"]]


class Clients(unittest.TestCase):
    def repeat(self, story, findings, notes=()):
        for _ in range(REPEATS):
            hub = Hub()
            try:
                story(hub)
                self.assertEqual(hub.verdict(), (list(findings), list(notes)))
            finally:
                hub.send("DELETE", "")

    def test_requests_oauthlib_refreshes_by_the_clock(self):
        def story(hub):
            token = hub.login(expires_in=12)
            session = OAuth2Session("test", token={**token, "expires_at": time.time() - 1}, auto_refresh_url=hub.url + REFRESH,
                                    auto_refresh_kwargs={"client_id": "test"}, token_updater=lambda new: None)
            for _ in range(3):
                self.assertEqual(session.get(hub.url + ME).status_code, 200)
        self.repeat(story, [])

    def test_requests_oauthlib_does_not_know_a_401(self):
        def story(hub):
            session = OAuth2Session("test", token=hub.login(), auto_refresh_url=hub.url + REFRESH, token_updater=lambda new: None)
            hub.advance("16m")
            self.assertEqual(session.get(hub.url + ME).status_code, 401)
        self.repeat(story, [("no_refresh_after_expiry", 1)])

    def test_authlib_refreshes_by_the_clock(self):
        def story(hub):
            token = hub.login(expires_in=30)
            session = AuthlibSession("test", token={**token, "expires_at": int(time.time()) - 1}, token_endpoint=hub.url + REFRESH,
                                     token_endpoint_auth_method="none", update_token=lambda *args, **kwargs: None)
            for _ in range(3):
                self.assertEqual(session.get(hub.url + ME).status_code, 200)
        self.repeat(story, [])

    def test_aiohttp_with_a_lock(self):
        self.repeat(lambda hub: asyncio.run(race(hub, together=True)), [])

    def test_aiohttp_every_caller_for_itself(self):
        self.repeat(lambda hub: asyncio.run(race(hub, together=False)), [("two_refreshes", 5)])

    def test_aiohttp_five_times_over_two_connections(self):
        self.repeat(lambda hub: asyncio.run(race(hub, together=True, connections=2)), [])

    def test_aiohttp_five_times_over_one_connection(self):
        self.repeat(lambda hub: asyncio.run(race(hub, together=True, connections=1)), [])


async def race(hub, together, connections=100):
    """Five callers meet the end of the access token."""
    tokens = hub.login()
    hub.advance("16m")
    if connections > 4:
        hub.send("POST", "/lab/faults", {"operation": "me", "hold": 5})
    lock = asyncio.Lock()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:
        async def me():
            async with session.get(hub.url + ME, headers={"Authorization": "Bearer " + tokens["access_token"]}) as answer:
                return answer.status

        async def exchange(refresh_token):
            async with session.post(hub.url + REFRESH, json={"refresh_token": refresh_token}) as answer:
                if answer.status == 200:
                    tokens.update(await answer.json())

        async def call():
            used = tokens["access_token"]
            refresh_token = tokens["refresh_token"]
            if await me() != 401:
                return
            if together:
                async with lock:
                    if tokens["access_token"] == used:
                        await exchange(tokens["refresh_token"])
            else:
                await exchange(refresh_token)
            await me()

        await asyncio.gather(*(call() for _ in range(5)))


if __name__ == "__main__":
    unittest.main()
