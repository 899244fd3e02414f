package judge

import (
	"testing"
	"time"
)

func TestTokenAfterLogout(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"on the same connection", "c1 logout a0 204\nc1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked", "token_after_logout[2 3 4]"},
		{"on a new connection", "c1 logout a0 204\nc2 me a0 401 token_revoked", "token_after_logout[2 3]"},
		{"on the same connection, behind one over a connection opened before", "open c2\nafter 5ms\nc1 logout a0 204\nc2 me a0 401 token_revoked\nc1 me a0 401 token_revoked", "token_after_logout[2 4]"},
		{"on another, too close to tell", "c2 me a0 200\nc1 logout a0 204\nc2 me a0 401 token_revoked", ""},
		{"on another, more than 100 ms later", "c2 me a0 200\nc1 logout a0 204\nafter 101ms\nc2 me a0 401 token_revoked", "token_after_logout[3 4]"},
		{"behind it on its connection, where others came beside it", "c1 me a0 200\nc1 logout a0 | c2 me a0 204\nc1 me a0 401 token_revoked", ""},
		{"the second of two equal GETs of a page, which its browser sends when the first is answered", "browser\nc1 me a0 200 later\nopen c2\nc2 logout a0 204\nafter 200ms\nlater\nc1 me a0 401 token_revoked\nc1 me a0 401 token_revoked\nafter 300ms\nc1 me a0 401 token_revoked",
			"token_after_logout[3 6]"},
		{"six equal GETs of a page and its logout, over a line of 30 ms", "browser\nc1 me a0 200\nopen c2\nc2 logout a0 204\n" + loop(5, "after 30ms\nc1 me a0 401 token_revoked"), ""},
		{"another GET of a page, behind one that was under way", "browser\nc1 listing a0 200 later\nopen c2\nc2 logout a0 204\nafter 200ms\nlater\nc1 me a0 401 token_revoked", "token_after_logout[3 4]"},
		{"a quick poll that goes on, where one came beside it", "c1 me a0 200\nc1 logout a0 | c2 me a0 204\n" + loop(5, "after 100ms\nc2 me a0 401 token_revoked"),
			"token_after_logout[3 5 6 7 8 9]"},
		{"another tab's slow request over the logout, and one 150 ms later", "c1 me a0 200\nc2 me a0 200 later\nc1 logout a0 | c3 me a0 204\nafter 150ms\nc1 me a0 401 token_revoked\nlater", "token_after_logout[4 6]"},
		{"behind it on its connection, where others were opened for what left with it", "c1 me a0 200\nc1 logout a0 204 later\nopen c2\nopen c3\nlater\nafter 60ms\nc2 me a0 | c3 me a0 | c1 me a0 401 token_revoked", ""},
		{"a little later, where others came beside it", "c1 me a0 200\nc1 logout a0 | c2 me a0 204\nafter 300ms\nc1 me a0 401 token_revoked", "token_after_logout[3 5]"},
		{"a refresh, soon after one before the logout", "advance 16m\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 logout a1 204\nc1 refresh r1 401 token_revoked",
			"token_after_logout[4 5]"},
		{"two tabs that hear one by one that a logout from elsewhere has ended the session", "c1 me a0 200\nc2 me a0 200\nc3 login - 200 other\nc3 logout b0 204 all\nc1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked\nafter 2s\n" +
			"c2 me a0 401 token_revoked\nc2 refresh r0 401 token_revoked", ""},
		{"a poll that goes on after that, and logs out at last", "c1 me a0 200\nc3 login - 200 other\nc3 logout b0 204 all\nafter 500ms\nc1 me a0 401 token_revoked\n" + loop(3, "after 2s\nc1 me a0 401 token_revoked\n") + "c1 logout a0 204\nafter 3s", "token_after_logout[4 6 7 8]"},
		{"a poll that hears of that while the logout is under way, and goes on", "c1 me a0 200\nc3 login - 200 other\nc1 me a0 401 token_revoked later\nc3 logout b0 204 all\nlater\nafter 3s\nc1 me a0 401 token_revoked\nafter 700ms\nc1 me a0 401 token_revoked", "token_after_logout[5 6 7]"},
		{"a poll that goes on after that, and refreshes at last", "c1 me a0 200\nc3 login - 200 other\nc3 logout b0 204 all\nafter 500ms\nc1 me a0 401 token_revoked\n" + loop(3, "after 2s\nc1 me a0 401 token_revoked\n") + "c1 refresh r0 401 token_revoked\nafter 3s", "token_after_logout[4 6 7 8]"},
		{"a device whose refresh is down after that, and that asks again later", "c1 me a0 200\nc3 login - 200 other\nc3 logout b0 204 all\nafter 500ms\nc1 me a0 401 token_revoked\nc1 refresh r0 503 injected\nafter 3s\n" +
			"c1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked\nafter 3s", ""},
		{"one of two tabs goes on after that", "c1 me a0 200\nc2 me a0 200\nc3 login - 200 other\nc3 logout b0 204 all\nc1 me a0 401 token_revoked\nc2 me a0 401 token_revoked\nafter 2s\nc2 me a0 401 token_revoked",
			"token_after_logout[5 8]"},
		{"a tab that goes on after that, while another had been closed before", "c4 me a0 200\nc1 me a0 200\nc3 login - 200 other\nc3 logout b0 204 all\nc1 me a0 401 token_revoked\nafter 2s\nc1 me a0 401 token_revoked", "token_after_logout[5 7]"},
		{"a tab that goes on for less than a second after that", "c1 me a0 200\nc3 login - 200 other\nc3 logout b0 204 all\nc1 me a0 401 token_revoked\nafter 900ms\nc1 me a0 401 token_revoked", ""},
		{"a tab whose refresh after that gets no answer of the hub", "c1 me a0 200\nc3 login - 200 other\nc3 logout b0 204 all\nc1 me a0 401 token_revoked\nafter 1500ms\nc1 refresh r0 503 injected\nafter 3s", ""},
		{"the callers of a race that has ended the session, half a second after the logout", expired + "c1 refresh r0 200\nc2 refresh r0 401 token_reused\nc2 logout a0 204\n" +
			"after 500ms\nc1 me a1 401 token_revoked", "two_refreshes[3 4]"},
		{"another user's logout of all sessions", "c1 me a0 200\nc3 login - 200 other stranger\nc3 logout b0 204 all stranger\nc1 me a0 401 token_revoked\nafter 2s\nc1 me a0 401 token_revoked", ""},
		{"a logout of the other sessions, of one that the lab ends later", "c1 logout a0 204 others\nc1 me a0 200\nc1 me a0 401 token_revoked\nafter 2s\nc1 me a0 401 token_revoked", ""},
		{"a session that was over when the others were logged out", "c1 me a0 401 token_revoked\nc3 login - 200 other\nc3 logout b0 204 all\nc1 me a0 401 token_revoked\nafter 2s\nc1 me a0 401 token_revoked", ""},
		{"another logout", "c1 logout a0 204\nc1 logout a0 204", ""},
		{"the logout's answer is lost", "c1 logout a0 204 lost\nc1 me a0 401 token_revoked", ""},
		{"the client left before the logout was answered", "c1 logout a0 204 left\nc2 me a0 401 token_revoked", ""},
		{"the logout failed", "c1 logout a0 503 injected\nc1 me a0 200", ""},
		{"introspection", "c1 logout a0 204\nc1 introspect a0 200", ""},
		{"a logout that failed with the status of a success", "c1 logout a0 200 token_malformed\nc1 me a0 200", ""},
	})
}

func TestWrongTokenType(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"the refresh token to me", "c1 me r0 401 token_wrong_type\nc1 me r0 401 token_wrong_type", "wrong_token_type[2 3]"},
		{"the access token to refresh", "c1 refresh a0 401 token_wrong_type", "wrong_token_type[2]"},
		{"the two tokens the wrong way round", "c1 me r0 401 token_wrong_type\nc1 refresh a0 401 token_wrong_type", "wrong_token_type[2 3]"},
		{"the refresh token to an open listing", "c1 listing r0 200", ""},
	})
}

func TestRetryAfterIgnored(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"too soon", "c1 me a0 503 injected wait=2s\nafter 1900ms\nc1 me a0 200", "retry_after_ignored[2 3]"},
		{"in time", "c1 me a0 503 injected wait=2s\nafter 1990ms\nc1 me a0 200", ""},
		{"in time by the hub's clock", "c1 me a0 503 injected wait=2m\nadvance 2m\nc1 me a0 200", ""},
		{"another operation", "c1 me a0 503 injected wait=2m\nc1 listing a0 200", ""},
		{"together", "c1 me a0 | c2 me a0 | c3 me a0 503 injected wait=2s", ""},
		{"a retry at once that works, and more work later", "c1 me a0 503 injected wait=1s\nc1 me a0 200\nafter 1300ms\nc1 me a0 503 injected wait=1s\nc1 me a0 200\nafter 1300ms\nc1 me a0 200",
			"retry_after_ignored[2 3 4 5]"},
		{"a widget that waits longer than asked, and another one that begins meanwhile", "c1 me a0 503 injected wait=1s query=1\nafter 120ms\nc1 me a0 200 query=2\nafter 2s\nc1 me a0 200 query=1\nafter 3s", ""},
		{"a widget that tries at once, and one that waits longer than asked", "c1 me a0 503 injected wait=1s query=1\nafter 120ms\nc1 me a0 200 query=1\nafter 2s\nc1 me a0 200 query=1\nafter 3s", "retry_after_ignored[2 3]"},
		{"a poll that begins a second after the start", "c1 me a0 200\nafter 1s\n" + loop(3, "c1 me a0 200\nafter 100ms") + "c1 me a0 503 injected wait=1s\n" + loop(3, "after 100ms\nc1 me a0 200") + "after 3s", "retry_after_ignored[6 7]"},
		{"a client that tries again after 300 ms each time", "c1 me a0 200\nafter 700ms\nc1 me a0 502 injected\nafter 300ms\nc1 me a0 200\nc1 me a0 503 injected wait=5s\nafter 300ms\nc1 me a0 200\nafter 3s", "retry_after_ignored[5 6]"},
		{"a client that tries again after 300 ms each time, after other work", "c1 me a0 200\nafter 298ms\nc1 me a0 502 injected\nafter 300ms\nc1 me a0 200\nc1 me a0 503 injected wait=5s\nafter 300ms\nc1 me a0 200\nafter 3s", "retry_after_ignored[5 6]"},
		{"a retry at once behind a refresh, and a 401 of a session before", "c1 me b0 200\nc1 me b0 401 token_revoked\nc1 me a0 200\nadvance 15m\nc1 me a0 401 token_expired\n" +
			"c1 refresh r0 200\nc1 me a1 503 injected wait=5s\nc1 me a1 200\nafter 6s", "retry_after_ignored[7 8]"},
		{"callers who come back one after the other over their connections, while one is asked to wait and gives up", "c2 me a0 | c3 me a0 | c4 me a0 200\nadvance 15m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 401 token_expired\n" +
			"c1 refresh r0 200\nc1 me a1 503 injected wait=5s\n" + each("after 150ms\nc%s me a1 200", "2", "3", "4") + "after 6s", ""},
		{"a retry at once behind a refresh, and a second 401 at the expiry before", "advance 15m\nc1 me a0 401 token_expired\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nadvance 15m\nc1 me a1 401 token_expired\n" +
			"c1 refresh r1 200\nc1 me a2 503 injected wait=5s\nc1 me a2 200\nafter 6s", "retry_after_ignored[8 9]"},
		{"a poll that goes on as before", loop(3, "c1 me a0 200\nafter 100ms") + "c1 me a0 503 injected wait=1s\nafter 100ms\nc1 me a0 200\nafter 3s", "retry_after_ignored[5 6]"},
		{"a retry half a second later that works, and more work after the moment", "c1 me a0 503 injected wait=2s\nafter 500ms\nc1 me a0 200\nafter 2s\nc1 me a0 200",
			"retry_after_ignored[2 3]"},
		{"a page that refreshes again at once", "browser\nadvance 15m\nc1 me a0 401 token_expired\nc1 refresh:POST r0 503 injected wait=2s\nafter 20ms\nc1 refresh:POST r0 200\nc1 me a1 200\nafter 3s", "retry_after_ignored[3 4]"},
		{"a page that tries again soon", "browser\nc1 me a0 503 injected wait=2s\nafter 200ms\nc1 me a0 200\nafter 3s", "retry_after_ignored[2 3]"},
		{"a retry at once that works, and a poll to the moment", "c1 me a0 503 injected wait=2s\nc1 me a0 200\nafter 2s\nc1 me a0 200", "retry_after_ignored[2 3]"},
		{"a retry at once that works, and more work after the clock was advanced", "c1 me a0 503 injected wait=2s\nc1 me a0 200\nadvance 10m\nc1 me a0 200", "retry_after_ignored[2 3]"},
		{"two answers that ask for different times", "c1 me a0 503 injected wait=3s\nc2 me a0 503 injected wait=1s\nafter 1200ms\nc2 me a0 200\nafter 1800ms\nc1 me a0 200", ""},
		{"a retry at once, and one in time", "c1 me a0 503 injected wait=2s\nc1 me a0 503 injected wait=2s\nafter 2s\nc1 me a0 200", "retry_after_ignored[2 3]"},
		{"a poll that does not care", loop(20, "c1 me a0 503 injected wait=1s\nafter 300ms") + loop(9, "c1 me a0 200\nafter 300ms"),
			"repeated_failure[2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21] retry_after_ignored[2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22]"},
		{"with a connection for each request, and more work later", "c2 me a0 503 injected wait=2s\nafter 200ms\nc3 me a0 200\nafter 2500ms\nc4 me a0 200\nafter 3s", "retry_after_ignored[2 3]"},
		{"a poll with changing pauses that does not wait", "c1 me a0 503 injected wait=1s\n" + each("after %s\nc1 me a0 503 injected wait=1s", "750ms", "850ms", "700ms") + "after 3s", "retry_after_ignored[2 3 4 5]"},
		{"tries that wait longer each time", "c1 me a0 503 injected wait=3s\nafter 1s\nc1 me a0 503 injected wait=3s\nafter 2s\nc1 me a0 200\nafter 5s", "retry_after_ignored[2 3 4]"},
		{"a retry soon, and one in time", "c1 me a0 503 injected wait=2s\nafter 300ms\nc1 me a0 503 injected wait=2s\nafter 2s\nc1 me a0 200\nafter 1s\nc1 me a0 200",
			"retry_after_ignored[2 3]"},
		{"a timer that fires each second", loop(3, "slow 5ms c1 me a0 503 injected wait=2s\nafter 994ms\n") + "c1 me a0 200\nafter 1s\nc1 me a0 200\nafter 3s", "retry_after_ignored[2 3 4 5]"},
		{"the next page of a suite", "browser\nc3 login:POST - 503 wait=30s injected\nafter 500ms\nc4 login:POST - 200\nc4 me a0 200", ""},
		{"a page that logs in too soon", "browser\nc3 login:POST - 503 wait=30s injected\nafter 500ms\nc3 login:POST - 200\nc3 me a0 200", "retry_after_ignored[2 3]"},
		{"a poll of a page behind a proxy", "proxy\n" + each("%s me a0 200\nafter 400ms", "c3", "c4") + "c5 me a0 429 wait=2s injected\nafter 400ms\n" + each("%s me a0 200\nafter 400ms", "c6", "c7", "c8", "c9", "c10", "c11") + "after 3s", "retry_after_ignored[4 5]"},
		{"a suite that logs in too soon over another connection of its pool", "open c4\nafter 500ms\nc3 login:POST - 503 wait=30s injected pool\nafter 500ms\nc4 login:POST - 200 pool\nc4 me a0 200", "retry_after_ignored[2 3]"},
		{"a suite that logs in too soon over a connection of its pool that another test has used", "open c4\nafter 500ms\nc3 login:POST - 503 wait=30s injected body=1\nafter 500ms\nc4 login:POST - 200 other body=1 pool\nc4 me b0 200 pool", "retry_after_ignored[2 3]"},
		{"a suite that logs in too soon over a connection of its pool, and is asked to wait again", loop(2, "c3 me - | c4 me - 401 token_missing") + "after 500ms\nc3 login:POST - 503 wait=30s injected\nafter 500ms\nc4 login:POST - 503 wait=30s injected", "retry_after_ignored[6 7]"},
		{"three callers side by side that don't care, over their connections in another order, and a page that is loaded later", "c1 me a0 200 | c2 me a0 200 | c3 me a0 200\nc1 me a0 | c2 me a0 | c3 me a0 503 injected wait=1s\nafter 200ms\nc2 me a0 | c3 me a0 | c1 me a0 200\nafter 1200ms\nc1 me a0 | c2 me a0 | c3 me a0 200\nafter 3s", "retry_after_ignored[5 6 7 8 9 10]"},
		{"a suite that logs in, while a client was asked to wait", "c1 me a0 200 pool\nafter 200ms\nc3 login:POST - 503 wait=30s injected\nafter 500ms\nc1 login:POST - 200 pool\nc1 me a0 200", ""},
		{"a page that logs in too soon, behind a proxy", "proxy\nc3 login:POST - 503 wait=30s injected\nafter 500ms\nc4 login:POST - 200\nc5 me a0 200", "retry_after_ignored[2 3]"},
		{"four tries, each too soon", "c1 me a0 503 injected wait=2s\nc1 me a0 503 injected wait=2s\nc1 me a0 503 injected wait=2s\nc1 me a0 200", "retry_after_ignored[2 3 4 5]"},
		{"the answer was lost", "c1 me a0 503 lost wait=2s\nc2 me a0 200", ""},
		{"the answer was lost, and the next try comes soon", "c1 me a0 503 lost busy wait=2s\nafter 300ms\nc2 me a0 200\nafter 3s", ""},
		{"a success that says when to ask again", "c1 me a0 200 wait=2s\nc1 me a0 200", ""},
		{"an error with the status of a success", "c1 me a0 200 busy wait=2s\nc1 me a0 200", "retry_after_ignored[2 3]"},
		{"widgets over a pool of three connections, the first of which waits as it was asked", "c2 me a0 200\nc3 me a0 200\nc4 me a0 200\nafter 1s\nc2 me a0 503 injected wait=1s\nc2 me a0 200\nc3 me a0 | c4 me a0 200\nafter 1010ms\nc2 me a0 200\nafter 3s", ""},
		{"a 401 that asks to wait, a refresh at once, and more work", "c1 me a0 401 injected wait=2s\nc1 refresh r0 200\nc1 me a1 200\nc1 me a1 200\nafter 3s", ""},
		{"a 401 that asks to wait, a try with the same token, and then a refresh", "c1 me a0 401 injected wait=2s\nc1 me a0 401 injected wait=2s\nc1 refresh r0 200\nc1 me a1 200\nc1 me a1 200\nafter 3s", "retry_after_ignored[2 3]"},
		{"the clock is put back", "c1 me a0 429 wait=1m\nback 1h\nc1 me a0 200", ""},
	})
}

func TestRetryAfterOfOtherQueriesAndTokens(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"four workers who wait twice as long as they are asked, each over a connection of its own", each("slow 6ms c%s me a0 429 injected wait=1s\nafter 293ms", "2", "3", "4", "5") + "after 800ms\n" +
			each("c%s me a0 200\nafter 299ms", "2", "3", "4", "5") + "after 3s", ""},
		{"four workers, each of which comes too soon", "slow 6ms c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 503 injected wait=2s\nafter 400ms\n" + each("%s me a0 200\nafter 60ms", "c5", "c6", "c7", "c8") + "after 3s", "retry_after_ignored[2 3 4 5 6 7 8 9]"},
		{"four workers with kept connections, each of which comes too soon", "slow 6ms c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 503 injected wait=2s\nafter 400ms\n" + each("%s me a0 200\nafter 60ms", "c2", "c2", "c3", "c3") + "after 3s", "retry_after_ignored[2 3 4 5 6 7 8 9]"},
		{"workers that begin more than half of the time apart, and wait as they are asked", "c2 me a0 503 injected wait=1s\nafter 700ms\nc3 me a0 503 injected wait=1s\nafter 310ms\nc2 me a0 200\nafter 700ms\nc3 me a0 200\nafter 3s", ""},
		{"long after 401s of which one was sent again, by a clock that stands", "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nfrozen 6s\nc1 me a1 503 injected wait=2s\nfrozen 300ms\nc1 me a1 200\nfrozen 6s", "retry_after_ignored[7 8] not_repeated[3 4 5]"},
		{"right behind another, while two others came as far apart", "c1 me a0 200\nafter 70ms\nc1 me a0 503 injected wait=2s\nafter 200ms\nc1 me a0 200\nafter 3s\nc1 me a0 200\nafter 200ms\nc1 me a0 200\nafter 3s", "retry_after_ignored[3 4]"},
		{"at once, of a browser whose answers are slow, after two came side by side", "browser\nslow 1200ms c1 me a0 | c2 me a0 200\nafter 6s\n" + loop(3, "slow 1200ms c1 me a0 503 injected wait=2s\nafter 60ms") + "c1 me a0 200\nafter 6s", "retry_after_ignored[4 5 6 7]"},
		{"long after 401s of which one was sent again", "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 6s\nc1 me a1 503 injected wait=2s\nafter 300ms\nc1 me a1 200\nafter 6s", "retry_after_ignored[7 8] not_repeated[3 4 5]"},
		{"with the next pair's token", "c1 me a0 503 injected wait=2m\nc1 refresh r0 200\nc1 me a1 200", "retry_after_ignored[2 4] early_refresh[3]"},
		{"another page of a list, and the one that was asked to wait in time", "c1 listing a0 503 injected wait=2s query=1\nafter 300ms\nc1 listing a0 200 query=2\nafter 1700ms\nc1 listing a0 200 query=1", ""},
		{"other jobs at a pace, and the one that was asked to wait in time", "slow 5ms c1 listing a0 429 injected wait=2s query=1\n" + each("after 344ms\nslow 5ms c1 listing a0 200 query=%s", "2", "3", "4", "5", "6", "1", "7") + "after 3s", ""},
		{"the same job at a pace", "slow 5ms c1 listing a0 429 injected wait=2s query=1\n" + each("after 344ms\nslow 5ms c1 listing a0 200 query=%s", "1", "1", "1", "1", "1", "1", "1") + "after 3s", "retry_after_ignored[2 3]"},
		{"other pages of a list, and the one that was asked to wait is still to come", "c1 listing a0 503 injected wait=1s query=1\nafter 300ms\nc1 listing a0 200 query=2\nafter 400ms\nc1 listing a0 200 query=3", ""},
		{"other pages of a list by other workers, and the one that was asked to wait in time, behind another", "c1 listing a0 503 injected wait=1s query=1\nafter 300ms\n" +
			"c1 listing a0 200 query=2\nafter 400ms\nc1 listing a0 200 query=3\nafter 320ms\nc1 listing a0 200 query=4\nafter 20ms\nc1 listing a0 200 query=1\nafter 3s", ""},
		{"two pages of a list by workers that wait as they are asked, and a third page", "c1 listing a0 503 injected wait=1s query=1\nc1 listing a0 503 injected wait=1s query=2\n" +
			"c1 listing a0 200 query=3\nafter 1020ms\nc1 listing a0 200 query=1\nafter 40ms\nc1 listing a0 200 query=2\nafter 3s", ""},
		{"other pages of a list, and the one that was asked to wait too soon", "c1 listing a0 429 rate_limited wait=2s query=1\nafter 30ms\nc1 listing a0 200 query=2\n" +
			"after 200ms\nc1 listing a0 200 query=3\nafter 400ms\nc1 listing a0 200 query=1\nafter 3s", "retry_after_ignored[2 5]"},
		{"ten rows of a list by five workers, none of which comes again", "c1 listing a0 | c2 listing a0 | c3 listing a0 503 injected wait=3s query=1\nc1 listing a0 | c2 listing a0 | c3 listing a0 503 injected wait=3s query=2\nafter 9s", ""},
		{"another page of a list at once, and the one that was asked to wait in time", "c1 listing a0 503 injected wait=2s query=1\nc1 listing a0 200 query=2\nafter 2s\nc1 listing a0 200 query=1", ""},
		{"another query for each try", "c1 listing a0 503 injected wait=2s query=1\nc1 listing a0 200 query=2\nafter 2s\nc1 listing a0 200 query=3", ""},
		{"one of two widgets too soon, each with its own query", "c2 me a0 200\nc1 me a0 503 injected wait=2s query=1\nc2 me a0 503 injected wait=2s query=2\nafter 300ms\nc1 me a0 200 query=1\nafter 1750ms\nc2 me a0 200 query=2",
			"retry_after_ignored[3 5]"},
		{"one of two widgets too soon over one connection, each with its own query", "c1 me a0 503 injected wait=2s query=1\nc1 me a0 503 injected wait=2s query=2\nafter 300ms\nc1 me a0 200 query=1\nafter 1750ms\nc1 me a0 200 query=2",
			"retry_after_ignored[2 4]"},
		{"three widgets too soon, each with its own query", "c2 me a0 200\nc3 me a0 200\n" + each("c%[1]s me a0 503 injected wait=2s query=%[1]s", "1", "2", "3") + "after 300ms\n" + each("c%[1]s me a0 200 query=%[1]s", "1", "2", "3") + "after 3s",
			"retry_after_ignored[4 5 6 7 8 9]"},
		{"a refresh too soon, and the next expiry's in time", expired + "c1 refresh r0 503 injected wait=2s\nafter 300ms\nc1 refresh r0 200\nc1 me a1 200\nafter 1800ms\nc1 me a1 401 token_expired ordered\nc1 refresh r1 200\nc1 me a2 200\nafter 3s",
			"retry_after_ignored[3 4]"},
		{"one of three that meet the end of the token is throttled, and gives up", "c2 me a0 200\nc3 me a0 200\nadvance 15m\nc1 me a0 429 rate_limited wait=1s later\nc2 me a0 401 token_expired\nc3 me a0 401 token_expired\nlater\nc1 refresh r0 200\nc1 me a1 200\nc1 me a1 200\nafter 3s", ""},
		{"one of three that meet the end of the token is throttled, and comes again at once", "c2 me a0 200\nc3 me a0 200\nadvance 15m\nc1 me a0 429 rate_limited wait=1s later\nc2 me a0 401 token_expired\nc3 me a0 401 token_expired\nlater\nc1 refresh r0 200\n" + loop(3, "c1 me a1 200") + "after 3s",
			"retry_after_ignored[4 10]"},
		{"a poll beside a long poll of its own", "c2 me a0 200 query=9 later\nc1 me a0 503 wait=2s injected\nafter 300ms\nc1 me a0 200\nafter 300ms\nc1 me a0 200\nafter 2s\nlater\nafter 3s", "retry_after_ignored[3 4]"},
	})
}

func TestRetryAfterOfSeveralCallers(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"by a service, while another one of its user, which logged in later, comes in time", "c1 me a0 503 injected wait=2s\nafter 100ms\nc2 login - 200 other\nc2 me b0 200\nafter 1s\nc1 me a0 200\nafter 950ms\nc2 me b0 200",
			"retry_after_ignored[2 5]"},
		{"by nobody: another widget polls, and the client logs in anew meanwhile and ends the old session at last", "c2 me a0 200\nc1 me a0 503 injected wait=2s\nafter 600ms\nc2 me a0 200\nafter 400ms\nc3 login - 200 other\nafter 100ms\nc2 me a0 200\n" +
			"after 600ms\nc2 me b0 200\nafter 300ms\nc3 me b0 200\nafter 300ms\nc3 logout a0 204", ""},
		{"two threads that wait as they are asked, of which the first goes on with its work", "c1 me a0 429 injected wait=1s\nafter 60ms\nc1 me a0 429 injected wait=1s\nafter 940ms\n" +
			loop(3, "c1 me a0 200\nafter 12ms") + "after 20ms\n" + loop(3, "c1 me a0 200\nafter 12ms") + "after 3s", ""},
		{"five workers over a connection for each request, which wait as they are asked and go on", each("%s me a0 429 injected wait=1s\nafter 33ms", "c11", "c12", "c13", "c14", "c15") + "after 835ms\n" +
			each("%s me a0 200\nafter 15ms", "c21", "c31", "c22", "c32", "c23", "c33", "c24", "c34", "c25", "c35") + "after 3s", ""},
		{"callers in a queue that wait as they are asked", "c1 me a0 503 injected wait=2s\nc1 me a0 503 injected wait=2s\nafter 2s\nc1 me a0 200\nc1 me a0 200", ""},
		{"another caller in a browser's queue fares better", "browser\nc1 me a0 503 injected wait=2s\nc1 me a0 200\nafter 2s\nc1 me a0 200", ""},
		{"another caller's first request, and a retry at once after the other's success", "c2 me a0 200\nc1 me a0 503 injected wait=1s\nafter 200ms\nc2 me a0 200\nafter 800ms\nc1 me a0 200\n" +
			"after 1s\nc1 me a0 503 injected wait=1s\nafter 300ms\nc1 me a0 503 injected wait=1s\nafter 400ms\nc1 me a0 200\nafter 2s", "retry_after_ignored[6 7 8]"},
		{"another client's poll of the same list without a token", "c2 listing - 200\nc1 listing - 503 injected wait=3s\nafter 1s\nc2 listing - 200\nafter 2s\nc1 listing - 200\nc2 listing - 200\nafter 3s", ""},
		{"two callers of a slow server that wait as they are asked and give up", loop(2, "slow 400ms c1 me a0 503 injected wait=1s") + "after 620ms\n" + loop(2, "slow 400ms c1 me a0 503 injected wait=1s") + "after 5s", ""},
		{"another caller's first request a little later, and the retry to the moment", "slow 5ms c1 me a0 503 injected wait=1s\nafter 12ms\nc1 me a0 200\nafter 1020ms\nc1 me a0 200", ""},
		{"another caller's first request half a second later, and the retry to the moment", "c1 me a0 503 injected wait=2s\nafter 500ms\nc1 me a0 200\nafter 1500ms\nc1 me a0 200", ""},
		{"another caller's first request, and the retry a little after the moment, by chance", "c1 me a0 503 injected wait=2s\nafter 500ms\nc1 me a0 200\nafter 1800ms\nc1 me a0 200", ""},
		{"another caller's first request, and the retry a fifth later, on a slow machine", "c1 me a0 503 injected wait=2s\nafter 500ms\nc1 me a0 200\nafter 1960ms\nc1 me a0 200", ""},
		{"a request of another caller over a connection of its own, and the retry later", "c2 me a0 200\nc1 me a0 503 injected wait=2s\nafter 200ms\nc2 me a0 200\nafter 2300ms\nc1 me a0 200", ""},
		{"another caller on a page fares better, and the retry later", "browser\nc1 me a0 503 injected wait=2s\nafter 200ms\nc1 me a0 200\nafter 2300ms\nc1 me a0 200", ""},
		{"three callers side by side that come again soon", "c1 me a0 | c2 me a0 | c3 me a0 503 injected wait=2s\nafter 400ms\nc1 me a0 | c2 me a0 | c3 me a0 200\nafter 3s",
			"retry_after_ignored[2 3 4 5 6 7]"},
		{"callers in the queue of a slow server", loop(12, "slow 200ms c1 me a0 503 injected wait=1s") + loop(12, "slow 200ms c1 me a0 200"), ""},
		{"callers in two queues of a slow server", loop(12, "slow 200ms c1 me a0 | c2 me a0 503 injected wait=1s") + loop(12, "slow 200ms c1 me a0 | c2 me a0 200"), ""},
		{"a loop that waits for a slow server, or six callers who come back as they are asked, but for the last time", loop(12, "slow 200ms c1 me a0 503 injected wait=1s") + "slow 200ms c1 me a0 200\nafter 2s",
			""},
		{"two tabs in a loop that do not care", loop(40, "c1 me a0 | c2 me a0 503 injected wait=30s") + "after 3s", "repeated_failure[" + numbers(2, 81) + "] retry_after_ignored[" + numbers(2, 81) + "]"},
		{"one of four hurries twice, and the others wait", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 429 injected wait=2s\nafter 100ms\nc4 me a0 429 injected wait=2s\nafter 100ms\nc4 me a0 200\nafter 1800ms\n" + loop(3, "c4 me a0 200\nafter 5ms") + "after 3s",
			"retry_after_ignored[2 3 4 5 6 7]"},
		{"one worker is asked to wait with its refresh, and another one refreshes for a 401 of its own", "c2 me a0 200\nadvance 16m\nc1 me a0 401 token_expired\nc1 refresh r0 503 injected wait=1s\nafter 200ms\nc2 me a0 401 token_expired\n" +
			"c2 refresh r0 200\nc2 me a1 200\nafter 810ms\nc1 me a1 200\nafter 3s", ""},
		{"one worker without keep-alive is asked to wait with its refresh, and another one refreshes for a 401 of its own", "c2 me a0 200\nadvance 16m\nc11 me a0 401 token_expired\nc12 refresh r0 503 injected wait=1s\nafter 200ms\nc2 me a0 401 token_expired\n" +
			"c2 refresh r0 200\nc2 me a1 200\nafter 810ms\nc13 me a1 200\nafter 3s", ""},
		{"one worker is asked to wait with its refresh, goes on at once, and another one refreshes for a 401 of its own", "c2 me a0 200\nadvance 16m\nc1 me a0 401 token_expired\nc1 refresh r0 503 injected wait=1s\nafter 200ms\nc2 me a0 401 token_expired\n" +
			"c2 refresh r0 200\nc2 me a1 200\nafter 10ms\nc1 me a1 200\nafter 3s", "retry_after_ignored[4 6]"},
		{"two callers, one a little later", "c1 me a0 503 injected wait=2s\nafter 300ms\nc1 me a0 503 injected wait=2s\nafter 1700ms\nc1 me a0 200\nafter 300ms\nc1 me a0 200", ""},
		{"one of two callers, each over its own connection, waits", "c1 me a0 200\nc2 me a0 200\nc1 me a0 503 injected wait=1s\nafter 600ms\nc2 me a0 200\nafter 700ms\nc1 me a0 200\nafter 3s", ""},
		{"one of two callers, each over its own connection, hurries", "c1 me a0 200 | c2 me a0 200\nc1 me a0 | c2 me a0 503 injected wait=2s\nafter 400ms\nc2 me a0 200\nafter 1600ms\nc1 me a0 200\nafter 3s", "retry_after_ignored[5 6]"},
		{"a third caller begins while two wait", "c1 me a0 200 | c2 me a0 200 | c3 me a0 200\nc1 me a0 | c2 me a0 503 injected wait=2s\nafter 400ms\nc3 me a0 200\nafter 1600ms\nc1 me a0 | c2 me a0 200\nafter 3s", ""},
	})
}

func TestRetryAfterOfJobsAndPolls(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"a poll that does not wait, over connections in turn", each("%s me a0 200\nafter 500ms", "c3", "c4", "c5") + "c3 me a0 503 injected wait=3s\n" + each("after 500ms\n%s me a0 200", "c4", "c5", "c3", "c4", "c5", "c3", "c4") + "after 3s", "retry_after_ignored[5 6]"},
		{"a job that is put back behind two others, and comes too soon, at a pace", "c1 listing a0 429 injected wait=2s query=1\n" + each("after 400ms\nc1 listing a0 200 query=%s", "2", "3", "1", "4", "5", "6", "7") + "after 3s", "retry_after_ignored[2 5]"},
		{"one of two polls over connections of their own, which waits as it is asked", "c1 me a0 200 | c2 me a0 200\nafter 500ms\nslow 6ms c1 me a0 503 injected wait=2s\nc2 me a0 200\n" + loop(4, "after 499ms\nc2 me a0 200") + "after 15ms\nc1 me a0 200\nafter 3s", ""},
		{"one of two polls that waits as it is asked, and another one half as often, over connections of their own", "c1 me a0 200 | c2 me a0 200\nafter 500ms\nc1 me a0 200\nafter 499ms\nc1 me a0 200 | c2 me a0 200\nafter 500ms\nc1 me a0 503 injected wait=1s\n" +
			"after 499ms\nc2 me a0 200\nafter 500ms\nc1 me a0 200\nafter 498ms\nc2 me a0 200\nc1 me a0 200\nafter 3s", ""},
		{"a retry too soon between the ticks of a poll, over connections in turn", each("%s me a0 200\nafter 500ms", "c3", "c4", "c5") + "c3 me a0 503 injected wait=2s\nafter 200ms\nc4 me a0 200\nafter 300ms\n" +
			each("%s me a0 200\nafter 500ms", "c3", "c5", "c4", "c3", "c4", "c5") + "after 3s", "retry_after_ignored[5 6]"},
		{"a poll of a page that does not wait, over connections in turn and by a timer that is late at times", each("%s me a0 200", "c3", "after 514ms\nc4", "after 486ms\nc5") + "after 505ms\nc3 me a0 503 injected wait=2s\n" +
			each("after %s me a0 200", "480ms\nc4", "530ms\nc5", "470ms\nc3", "515ms\nc4", "497ms\nc5", "520ms\nc3") + "after 3s", "retry_after_ignored[5 6]"},
		{"a poll of a page that begins anew behind its retry, which came too soon, over connections in turn", each("%s me a0 200\nafter 2s", "c3", "c4") + "c5 me a0 503 injected wait=6s\nafter 1s\n" +
			each("%s me a0 200\nafter 2s", "c4", "c4", "c5", "c3", "c5") + "after 3s", "retry_after_ignored[4 5]"},
		{"a retry too soon between the ticks of a poll", "slow 5ms c1 me a0 503 injected wait=5s\nafter 94ms\nslow 5ms c1 me a0 200\nafter 894ms\n" + loop(6, "slow 5ms c1 me a0 200\nafter 994ms") + "after 3s", "retry_after_ignored[2 3]"},
		{"a retry too soon, and then a poll", "c1 me a0 503 injected wait=2s\nafter 300ms\nc1 me a0 200\n" + loop(9, "after 250ms\nc1 me a0 200") + "after 3s", "retry_after_ignored[2 3]"},
		{"a retry too soon, and then the next pages", "c1 listing a0 503 injected wait=2s query=1\nafter 300ms\nc1 listing a0 200 query=1\n" + each("after %s\nc1 listing a0 200", "400ms", "150ms", "610ms", "330ms", "250ms") + "after 3s", "retry_after_ignored[2 3]"},
		{"a poll with a pause of 200 ms that does not wait", "c3 me a0 200\nafter 199ms\nslow 6ms c3 me a0 503 injected wait=1s\nafter 199ms\n" + loop(8, "c3 me a0 200\nafter 199ms") + "after 3s", "retry_after_ignored[3 4]"},
		{"two users who log in side by side, and both too soon, over their connections in another order", "slow 6ms c3 login - 503 injected wait=2s body=1\nc4 login - 503 injected wait=2s body=2\nafter 300ms\nc4 login - 200 body=1\nc3 login - 200 body=2\nafter 3s", "retry_after_ignored[2 3 4 5]"},
		{"five jobs that a ticker starts each 500 ms, each of which waits as it is asked", loop(2, "slow 6ms c1 me a0 503 injected wait=1s\nafter 492ms") + loop(3, "slow 6ms c1 me a0 503 injected wait=1s\nc1 me a0 200\nafter 490900us") +
			loop(2, "after 8ms\nc1 me a0 200\nafter 489900us") + "after 3s", ""},
		{"two threads, the first of whom tries again too soon, behind a request of the other", "c2 me a0 200\nafter 80ms\nc1 me a0 200\nafter 200ms\nslow 6ms c1 me a0 503 injected wait=3s\nafter 300ms\nc2 me a0 200\nafter 300ms\nc1 me a0 200\nafter 9s", "retry_after_ignored[4 6]"},
		{"four threads with a connection for each request, the first of whom waits as it is asked", "slow 6ms c1 me a0 200\nslow 6ms c3 me a0 503 injected wait=1s\n" + each("after 14ms\nc%s me a0 200", "4", "5", "6") + "after 956ms\nc7 me a0 200\nafter 3s", ""},
		{"one of two callers who waits, while the test advances the clock", "c2 me a0 200\nc1 me a0 503 injected wait=1s\nafter 300ms\nc2 me a0 200\nadvance 3s\nafter 720ms\nc1 me a0 200\nafter 3s", ""},
		{"one of two callers over one connection who waits, while the test advances the clock", "c1 me a0 503 injected wait=1s\nafter 300ms\nc1 me a0 200\nadvance 30s\nafter 720ms\nc1 me a0 200\nafter 3s", ""},
		{"three widgets of which a library sends one again, and that too soon", "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 503 injected wait=2s\nafter 300ms\nc1 me a1 200\nafter 9s", "retry_after_ignored[6 7] not_repeated[4 5]"},
		{"two widgets that wait as they are asked, and come back in a new session", "c1 me a0 429 injected wait=1s\nafter 20ms\nc1 me a0 429 injected wait=1s\nafter 100ms\nc1 login - 200 other\nafter 878ms\nc1 me b0 200\nafter 20ms\nc1 me b0 200\nafter 3s", ""},
		{"a poll at half of the time that does not wait", loop(6, "slow 5ms c1 me a0 503 injected wait=1s\nafter 505ms") + "after 3s", "repeated_failure[2 3 4 5 6 7] retry_after_ignored[2 3 4 5 6 7]"},
		{"a poll at half of the time that goes on, served", "c1 me a0 503 injected wait=2s\n" + loop(6, "after 1s\nc1 me a0 200") + "after 3s", "retry_after_ignored[2 3]"},
		{"two logins that come again as they are asked, and succeed", "slow 5ms c1 login - 429 injected wait=1s body=x\nafter 300ms\nslow 5ms c1 login - 429 injected wait=1s body=x\nafter 695ms\nc1 login - 200 other body=x\nafter 310ms\nc1 login - 200 body=x\nafter 5s", ""},
		{"two users who log in half a period apart, and wait as they are asked", "c2 login - 200 other\nc2 me b0 200\nc1 me a0 200\nafter 1s\n" +
			loop(2, each("slow 5ms c%s login - 429 injected wait=1s body=x\nafter 496ms", "1", "2")) + "slow 5ms c1 login - 429 injected wait=1s body=x\nafter 497ms\nslow 5ms c2 login - 429 injected wait=1s body=x\nafter 5s", ""},
		{"six jobs that start by chance, each of which waits as it is asked", each("c1 me a0 503 injected wait=1s\nafter %s", "300ms", "200ms", "410ms", "89ms") + each("c1 me a0 %s", "200\nafter 180ms", "503 injected wait=1s\nafter 118ms",
			"200\nafter 200ms", "200\nafter 10ms", "503 injected wait=1s\nafter 399ms", "200\nafter 269ms", "200\nafter 330ms", "200\nafter 3s"), ""},
		{"six workers that begin over more than half of the time, and wait as they are asked", each("c1 me a0 429 injected wait=1s\nafter %s", "70ms", "190ms", "110ms", "160ms", "90ms", "370ms") +
			each("c1 me a0 200\nafter %s", "70ms", "190ms", "110ms", "160ms", "90ms", "3s"), ""},
		{"a click that waits as it is asked, between the ticks of a poll", loop(4, "c1 me a0 200\nafter 150ms") + "after -90ms\nc1 me a0 429 injected wait=1s\nafter 89ms\n" + loop(6, "c1 me a0 200\nafter 150ms") +
			"c1 me a0 200\nafter 8ms\nc1 me a0 200\nafter 142ms\n" + loop(4, "c1 me a0 200\nafter 150ms") + "after 3s", ""},
		{"a click that waits as it is asked, soon after a quick poll has begun", loop(4, "c1 me a0 200\nafter 59ms") + "after -25ms\nc1 me a0 429 injected wait=1s\nafter 24ms\n" + loop(16, "c1 me a0 200\nafter 59ms") +
			"c1 me a0 200\nafter 8ms\nc1 me a0 200\nafter 50ms\n" + loop(4, "c1 me a0 200\nafter 59ms") + "after 3s", ""},
		{"a click that is asked to wait between the ticks of a poll, and tries again too soon, which a tick in time hides", loop(4, "c1 me a0 200\nafter 150ms") + "after -90ms\nc1 me a0 429 injected wait=1s\nafter 20ms\nc1 me a0 200\nafter 68ms\n" +
			loop(12, "c1 me a0 200\nafter 150ms") + "after 3s", ""},
		{"a click between the ticks of a poll that is asked to wait, and tries again behind the next tick, which a tick in time hides", loop(4, "c1 me a0 200\nafter 150ms") + "after -90ms\nc1 me a0 429 injected wait=1s\nafter 89ms\nc1 me a0 200\nafter 30ms\nc1 me a0 200\nafter 119ms\n" +
			loop(12, "c1 me a0 200\nafter 150ms") + "after 3s", ""},
		{"two widgets that poll every second, one of which waits as it is asked", loop(4, "c1 me a0 200\nafter 300ms\nc1 me a0 200\nafter 700ms") + "c1 me a0 200\nafter 300ms\nc1 me a0 429 injected wait=2s\nafter 700ms\n" +
			"c1 me a0 200\nafter 1s\n" + loop(3, "c1 me a0 200\nafter 300ms\nc1 me a0 200\nafter 700ms") + "after 3s", ""},
		{"four callers in the queue of a slow server, each of which waits as it is asked", loop(4, "slow 300ms c1 me a0 503 injected wait=5s") + "after 4100ms\n" + loop(4, "slow 300ms c1 me a0 200") + "after 3s", ""},
		{"a program that waits as it is asked, and another one in the second half of that time", "c2 me a0 429 injected wait=1s\nafter 600ms\nc3 me a0 200\nafter 400ms\nc4 me a0 200\nafter 3s", ""},
		{"two programs that wait as they are asked, over a connection for each request", "c2 me a0 429 injected wait=1s\nafter 120ms\nc3 me a0 429 injected wait=1s\nafter 885ms\nc4 me a0 200\nafter 20ms\nc5 me a0 200\nafter 95ms\nc6 me a0 200\nafter 20ms\nc7 me a0 200\nafter 3s", ""},
		{"two callers and another session's, who have two connections", "c2 login - 200 other\nc2 me b0 200 later\nslow 5ms c1 me a0 503 injected wait=1s\nc1 me a0 200\nafter 140ms\nlater\nafter 860ms\nc1 me a0 200\nafter 3s", ""},
		{"a poll that does not wait, beside that of another session of its user", "c2 login - 200 other\n" + loop(3, "c1 me a0 200\nafter 140ms\nc2 me b0 200\nafter 350ms") + "slow 5ms c1 me a0 503 injected wait=2s\nafter 140ms\nc2 me b0 200\nafter 350ms\n" +
			loop(6, "c1 me a0 200\nafter 140ms\nc2 me b0 200\nafter 350ms") + "after 3s", "retry_after_ignored[9 11]"},
		{"a poll of four times a second that is asked to wait once", loop(6, "c1 me a0 200\nafter 250ms") + "c1 me a0 429 injected wait=1s\nafter 250ms\n" + loop(8, "c1 me a0 200\nafter 250ms"), "retry_after_ignored[8 9]"},
		{"a poll of five times a second that does not care", loop(12, "c1 me a0 429 injected wait=1s\nafter 200ms") + loop(12, "c1 me a0 200\nafter 200ms") + "after 3s",
			"repeated_failure[" + numbers(2, 13) + "] retry_after_ignored[" + numbers(2, 14) + "]"},
		{"a poll with changing pauses that does not care and goes on, or jobs that each wait as they are asked", loop(2, each("c1 me a0 429 injected wait=1s\nafter %s", "120ms", "250ms", "180ms")) +
			loop(6, each("c1 me a0 200\nafter %s", "120ms", "250ms", "180ms")) + "after 3s", ""},
	})
}

func TestTokenInAddress(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"twice", "c1 me - 401 token_missing address\nc1 listing - 200 address", "token_in_address[2 3]"},
	})
}

func TestNoRefreshAfterExpiry(t *testing.T) {
	t.Parallel()
	check(t, unanswered)
}

var unanswered = []row{
	{"an ordered expiry, while another client that logged in before goes on", "c2 login - 200 other\nc1 me a0 200\nc2 me b0 200\nafter 1s\nc3 me a0 401 token_expired ordered\nc4 me b0 200\nafter 3s", "no_refresh_after_expiry[5]"},
	{"logs in at each 401, over a connection of its own, and fails", "advance 16m\nc2 me a0 401 token_expired\nc3 login - 503 injected\nafter 500ms\nc4 me a0 401 token_expired\nc3 login - 503 injected\nafter 1500ms\nc5 me a0 401 token_expired\nc3 login - 503 injected\n" +
		"after 1500ms\nc6 me a0 401 token_expired\nc3 login - 503 injected\nafter 3s", ""},
	{"logs in at the second 401, over a connection of its own, and goes on in the new session", "advance 16m\nc2 me a0 401 token_expired\nc3 login - 503 injected\nafter 1500ms\nc4 me a0 401 token_expired\nc3 login - 200 other\nc5 me b0 200\nafter 3s", ""},
	{"a test that advances the clock by two seconds before the refresh", "advance 16m\nc1 me a0 401 token_expired\nadvance 2s\nc1 refresh r0 200\nc1 me a1 200", ""},
	{"nothing in two seconds", expired + "after 2s", "no_refresh_after_expiry[2]"},
	{"nothing yet", expired + "after 1s", ""},
	{"nothing, with the older of two pairs that both are over", "policy keep\nadvance 16m\nc1 me a0 | c2 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nc2 refresh r0 200\nc2 me a2 200\nadvance 16m\nc1 me a1 401 token_expired\nafter 3s",
		"no_refresh_after_expiry[8]"},
	{"nothing, with the older of two pairs of which the newer is good", "policy keep\nadvance 16m\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nadvance 10m\nc2 refresh r0 200\nc2 me a2 200\nadvance 6m\nc1 me a1 401 token_expired\nafter 3s", ""},
	{"nothing, where another client of the user had logged in since the token expired", "c2 me a0 200\nadvance 15m\nc3 login - 200 other\nc3 me b0 200\nafter 700ms\nc1 me a0 | c2 me a0 401 token_expired\nafter 100ms\nc3 me b0 200\nafter 2s",
		"no_refresh_after_expiry[5 6]"},
	{"workers that each send two requests and log in anew", "advance 15m\n" + loops(3, "cX me a0 | cY me a0 401 token_expired\ncX login - 200 other\ncX me b0 200\ncY me b0 200\nafter 3s"), ""},
	{"another tab that hears late of a login, beside one that reads what is open to all", "advance 15m\nc1 me a0 401 token_expired\nc1 login - 200 other\nc1 me b0 200\nc3 listing a0 200 open\nafter 700ms\nc3 listing a0 200 open\nafter 300ms\nc2 me a0 401 token_expired\nc2 me b0 200\nc3 listing a0 200 open\nafter 3s", ""},
	{"threads over two connections of a slow server, and one login for all", "advance 15m\nslow 300ms c1 me a0 | c2 me a0 401 token_expired\nslow 300ms c1 login - 200 other\n" +
		loop(3, "slow 300ms c1 me b0 | c2 me b0 200\nslow 300ms c1 me a0 | c2 me a0 401 token_expired") + "slow 300ms c1 me b0 | c2 me b0 200\nafter 3s", ""},
	{"a poll that meets the end of its token beside others, and one login for all", "life 3s\n" + loop(15, "after 200ms\nc1 me a0 200\n") + "c1 me a0 401 token_expired\nc1 login - 200 other\n" + loop(2, "c1 me a0 401 token_expired\nc1 me b0 200\n") + "c1 me b0 200\nafter 3s", ""},
	{"nothing, while a guest's page tries to refresh without a token", "c2 refresh - 401 token_missing\n" + expired + "after 900ms\nc2 refresh - 401 token_missing\nafter 2s", "no_refresh_after_expiry[3]"},
	{"workers who take the session of the first one's login from a store, one after the other", "open c2\nopen c3\nopen c4\nadvance 15m\nc1 me a0 401 token_expired\nc1 login - 200 other\nc1 me b0 200\n" +
		each("after 700ms\n%[1]s me a0 401 token_expired\n%[1]s me b0 200", "c2", "c3", "c4") + "after 3s", ""},
	{"workers with one token that log in anew, one after the other", "advance 15m\n" + loop(3, "c1 me a0 401 token_expired\nc1 login - 200 other\nc1 me b0 200\nafter 3s"), ""},
	{"a quick poll that goes on, while another client of the user logs in", expired + loop(16, "after 200ms\nc1 me a0 401 token_expired\nc2 login - 200 other") + "after 3s",
		"no_refresh_after_expiry[2 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31 33] repeated_failure[2 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31 33]"},
	{"one login for two callers, a connection for each request, that waits as it is asked", "advance 15m\nc2 me a0 401 token_expired\nc3 login - 503 injected wait=3s\nafter 400ms\nc4 me a0 401 token_expired\nafter 2610ms\nc5 login - 200 other\nc6 me b0 200\nc7 me b0 200\nafter 3s", ""},
	{"one login for two callers, a connection for each request, while somebody else logs in", "advance 15m\nc2 me a0 401 token_expired\nc3 login - 503 injected wait=3s\nafter 200ms\nc8 login - 200 other stranger body=z\nafter 200ms\nc4 me a0 401 token_expired\nafter 2610ms\nc5 login - 200\nc6 me a0 200\nc7 me a0 200\nafter 3s", ""},
	{"nothing, a connection for each request, while somebody else logs in at the second try", "advance 15m\nc3 login - 503 injected body=z wait=3s\nafter 300ms\nc2 me a0 401 token_expired\nafter 500ms\nc4 me a0 401 token_expired\nafter 2500ms\nc5 login - 200 other stranger body=z\nafter 3s", "no_refresh_after_expiry[3 4]"},
	{"a refresh long after slow answers over a connection each", "advance 15m\nslow 1500ms c2 me a0 401 token_expired\nafter 4s\nc3 refresh r0 200\nc4 me a1 200\nafter 3s", "no_refresh_after_expiry[2]"},
	{"time passes by the hub's clock", expired + "advance 3s", "no_refresh_after_expiry[2]"},
	{"time passes while the hub's clock is frozen", expired + "frozen 3s", "no_refresh_after_expiry[2]"},
	{"the refresh token has expired, too", "advance 15m\nc1 me a0 401 token_expired over\nafter 3s", ""},
	{"a refresh in time", expired + "after 1900ms\nc1 refresh r0 200\nc1 me a1 200", ""},
	{"a refresh that still waits behind a slow answer", "open c1\n" + expired + "c1 listing a0 200 later\nafter 3s", ""},
	{"a refresh that waited behind a slow answer", expired + "c1 listing a0 200 later\nafter 3s\nlater\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", ""},
	{"a refresh that waited behind others", "browser\n" + expired + loop(6, "slow 500ms c1 me a0 401 token_expired") + "c1 refresh r0 503 injected\nafter 3s", ""},
	{"a poll that goes on, and a refresh", expired + loop(6, "after 500ms\nc1 me a0 401 token_expired") + "c1 refresh r0 503 injected\nafter 3s",
		"no_refresh_after_expiry[2 3 4] repeated_failure[2 3 4 5 6 7 8]"},
	{"nothing, right behind a refresh with the access token while that was valid", "c1 refresh a0 401 token_wrong_type\nafter 300ms\nc1 me a0 401 token_expired ordered\nafter 3s", "wrong_token_type[2] no_refresh_after_expiry[3]"},
	{"a caller that comes late, behind another's refresh without a token", expired + "c1 refresh - 422\nafter 300ms\nc2 me a0 401 token_expired\nafter 3s", ""},
	{"a refresh as soon as other namespaces have done with the connection", expired + "after 2100ms\nc1 refresh r0 200 shared\nc1 me a1 200", ""},
	{"a refresh behind other namespaces, after the hub's clock was advanced", expired + "after 1s\nadvance 1m\nc1 refresh r0 200 shared\nc1 me a1 200", "no_refresh_after_expiry[2]"},
	{"a refresh too late", expired + "after 2100ms\nc1 refresh r0 200\nc1 me a1 200", "no_refresh_after_expiry[2]"},
	{"a refresh after the hub's clock was advanced", expired + "advance 1m\nc1 refresh r0 200\nc1 me a1 200", "no_refresh_after_expiry[2]"},
	{"a refresh under way when the hub's clock was advanced", expired + "c1 refresh r0 200 later\nadvance 1m\nlater\nc1 me a1 200", ""},
	{"a refresh that fails", expired + "c1 refresh r0 503 injected\nafter 3s", ""},
	{"the new pair is there already", "advance 15m\nc1 refresh r0 200\nc2 me a0 401 token_expired\nafter 3s", ""},
	{"jobs with a connection for each request that take the new token from a file, where the first of them logged in", "open c9\nc1 me a0 200\nadvance 16m\nc2 me a0 401 token_expired\nc3 login - 200 other\nc4 me b0 200\n" +
		"after 2500ms\nc5 me a0 401 token_expired\nc6 me b0 200\nafter 1s\nc7 me a0 401 token_expired\nc8 me b0 200\nafter 3s", ""},
	{"calls over two connections in turn that each begin with the old token, log in and succeed", "c2 me a0 200\nadvance 15m\n" + loop(4, "c1 me a0 401 token_expired\nc2 login - 200 other\nc1 me b0 200\nafter 1500ms\nc2 me a0 401 token_expired\nc1 login - 200 other\nc2 me b0 200\nafter 1500ms"), ""},
	{"a worker with a connection for each request, beside another program that logs in", "advance 15m\n" + each("c%s me a0 401 token_expired\nafter 400ms\nopen c9\nc9 login - 200 other\nc9 me b0 200\nafter 500ms", "3", "4", "5") + "c6 me a0 401 token_expired\nafter 3s",
		"no_refresh_after_expiry[2 5 8 11]"},
	{"the new pair is there already, without rotation, and the clock was put back", "policy keep\nadvance 15m\nback 20m\nadvance 20m\n" +
		"c1 refresh r0 200\nc2 me a0 401 token_expired\nafter 3s", ""},
	{"one of a crowd that comes after a refresh that failed", "policy keep\n" + expired + "c1 refresh r0 503 injected\nc2 me a0 401 token_expired\nafter 3s", ""},
	{"while the client waits to refresh again, as it was asked", expired + "c1 refresh r0 503 injected wait=5s\nafter 2s\nc2 me a0 401 token_expired\nafter 4s\n" +
		"c1 refresh r0 200\nc1 me a1 200\nc2 me a1 200\nafter 3s", ""},
	{"while the client waits to refresh again, by the hub's clock", expired + "c1 refresh r0 429 wait=2m\nafter 1s\nc2 me a0 401 token_expired\nadvance 2m\n" +
		"c1 refresh r0 200\nc1 me a1 200\nc2 me a1 200\nafter 3s", ""},
	{"while the client waits longer each time to refresh again", expired + "c1 refresh r0 0 lost\nafter 1s\nc1 refresh r0 503 injected\nafter 2s\nc1 refresh r0 502\nafter 1100ms\n" +
		"c2 me a0 401 token_expired\nafter 2900ms\nc1 refresh r0 200\nc1 me a1 200\nc2 me a1 200\nafter 3s", ""},
	{"while the client waits to refresh again, which a fault answered", expired + "c1 refresh r0 408 injected\nafter 2s\nc2 me a0 401 token_expired\nafter 2500ms\n" +
		"c1 refresh r0 200\nc1 me a1 200\nc2 me a1 200\nafter 3s", ""},
	{"asked while the client waits to refresh again", expired + "c1 refresh r0 503 injected wait=30s\nafter 5s\nc2 me a0 401 token_expired\nafter 20s", ""},
	{"while the client waits to refresh again, as it was throttled", expired + "c1 refresh r0 429\nafter 2s\nc2 me a0 401 token_expired\nafter 2500ms\n" +
		"c1 refresh r0 200\nc1 me a1 200\nc2 me a1 200\nafter 3s", ""},
	{"while the client waits to refresh again, having given up a try", expired + "c1 refresh r0 0 left\nafter 2s\nc2 me a0 401 token_expired\nafter 2500ms\n" +
		"c1 refresh r0 200\nc1 me a1 200\nc2 me a1 200\nafter 3s", ""},
	{"refreshes without a token, over a connection that the client has for them alone", "c1 me a0 200\nadvance 16m\n" + loop(2, "c1 me a0 401 token_expired\nc2 refresh - 401 token_missing\nafter 3s"), ""},
	{"while the client waits to refresh again for another user, and with that for this", twoUsers + "c1 me a0 401 token_expired\nc1 refresh r0 429 injected wait=3s\nafter 500ms\nc1 me b0 401 token_expired\nafter 2500ms\nc1 refresh s0 200\nc1 me b1 200\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", ""},
	{"before the client waits to refresh again for another user, and with that for this", twoUsers + "c1 me a0 401 token_expired\nc1 me b0 401 token_expired\nc1 refresh r0 429 injected wait=3s\nafter 3s\nc1 refresh r0 200\nc1 me a1 200\nc1 refresh s0 200\nc1 me b1 200\nafter 3s", ""},
	{"while the client waits twice to refresh again for another user", twoUsers + "c1 me a0 401 token_expired\nc1 refresh r0 503 injected\nafter 100ms\nc1 me b0 401 token_expired\nafter 3s\nc1 refresh r0 503 injected\nafter 4s\nc1 refresh r0 200\nc1 me a1 200\nafter 1s\nc1 refresh s0 200\nc1 me b1 200\nafter 3s", ""},
	{"while the client waits as it was asked for another user, whose next try was under way", twoUsers + "c1 me a0 401 token_expired\nc1 refresh r0 429 injected wait=3s\nc2 me b0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 3s\nc2 refresh s0 200\nc2 me b1 200\nafter 3s", "retry_after_ignored[6 8]"},
	{"while the client waits as it was asked for another user, and a refresh was served that had left before", twoUsers + "c1 me b0 401 token_expired\nc1 refresh s0 429 injected wait=3s later\nc2 refresh s0 200 later\nlater\nc1 me b1 200\nafter 500ms\nc1 me a0 401 token_expired\nafter 2500ms\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", ""},
	{"while the client was asked to wait for another user, and then nothing", twoUsers + "c1 me a0 401 token_expired\nc1 refresh r0 429 injected wait=3s\nafter 500ms\nc1 me b0 401 token_expired\nafter 9s", ""},
	{"asked while the client waits to refresh again for another user", twoUsers + "c1 me a0 401 token_expired\nc1 refresh r0 503 injected\nafter 1500ms\nc1 me b0 401 token_expired\nafter 400ms", ""},
	{"asked when the client refreshed again for another user", twoUsers + "c1 me a0 401 token_expired\nc1 refresh r0 503 injected\nafter 500ms\nc1 me b0 401 token_expired\nafter 3s\nc1 refresh r0 200\nafter 1900ms", ""},
	{"while the client waits to refresh again for another user, and never for this", twoUsers + "c1 me a0 401 token_expired\nc1 refresh r0 503 injected\nafter 300ms\nc1 me b0 401 token_expired\nafter 700ms\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", "no_refresh_after_expiry[7]"},
	{"while the client waits to refresh again for another user, and late for this", twoUsers + "c1 me a0 401 token_expired\nc1 refresh r0 503 injected\nafter 300ms\nc1 me b0 401 token_expired\nafter 700ms\nc1 refresh r0 200\nc1 me a1 200\nafter 2500ms\nc1 refresh s0 200\nc1 me b1 200\nafter 3s", "no_refresh_after_expiry[7]"},
	{"long before the client refreshes again for another user, and for this", twoUsers + "c1 me a0 401 token_expired\nc1 refresh r0 503 injected\nafter 300ms\nc1 me b0 401 token_expired\nafter 5s\nc1 refresh r0 200\nc1 me a1 200\nc1 refresh s0 200\nc1 me b1 200\nafter 3s", "no_refresh_after_expiry[7]"},
	{"while another client waits to refresh again", "c2 login - 200 other\nc1 me a0 200\nc2 me b0 200\nadvance 16m\nc1 me a0 401 token_expired\nc1 refresh r0 429 injected wait=3s\nafter 500ms\nc2 me b0 401 token_expired\nafter 2500ms\nc1 refresh r0 200\nc1 me a1 200\nc2 refresh s0 200\nc2 me b1 200\nafter 3s", "no_refresh_after_expiry[7]"},
	{"a login instead, over another connection, that fails", expired + "c2 login - 503 injected\nafter 3s", ""},
	{"while the client was asked to wait before it refreshes again, and then nothing", expired + "c1 refresh r0 503 injected wait=30s\nafter 5s\nc2 me a0 401 token_expired\nafter 40s", ""},
	{"a client that never refreshes again", expired + "c1 refresh r0 503 injected wait=3s\nafter 2s\nc2 me a0 401 token_expired\nafter 4s\nc2 me a0 401 token_expired\nafter 9s", "no_refresh_after_expiry[5]"},
	{"a refresh that was refused before", expired + "c1 refresh r0 400\nafter 2s\nc2 me a0 401 token_expired\nafter 2500ms\nc1 refresh r0 200\nc1 me a1 200\nc2 me a1 200\nafter 3s",
		"no_refresh_after_expiry[4]"},
	{"the clock is put back, and the token works", expired + "back 15m\nc1 me a0 200\nafter 3s", ""},
	{"long after a refresh that failed", expired + "c1 refresh r0 503 injected\nafter 3s\nc2 me a0 401 token_expired\nafter 3s", "no_refresh_after_expiry[4]"},
	{"of a pair that had been exchanged before the record begins", "advance 15m\nc1 refresh r0 200\nempty\nc1 me a0 401 token_expired\nc1 me a1 200\nafter 3s", ""},
	{"a login before the record begins", "c1 me a0 200\nadvance 16m\nc1 login - 200 other\nempty\nc1 me a0 401 token_expired\nc1 me b0 200\nafter 3s", ""},
	{"a poll with the old token after a refresh by a timer", "advance 14m\nc1 refresh r0 200\nadvance 2m\n" + loop(3, "c1 me a0 401 token_expired\nafter 700ms") + "after 3s",
		"no_refresh_after_expiry[3 4 5]"},
	{"a widget with the old token, when another has used the new one", expired + "c1 refresh r0 200\nc1 me a1 200\nafter 3s\nc1 me a0 401 token_expired\nafter 3s", ""},
	{"expired by order, and a login in whose session the user goes on", "c1 login - 200 other\nc1 me a0 401 token_expired ordered\nc1 me b0 200\nafter 3s", ""},
	{"of a logout", "advance 15m\nc1 logout a0 401 token_expired\nafter 3s", ""},
	{"a login before it, in whose session the user goes on", "advance 16m\nc1 login - 200 other\nc1 me a0 401 token_expired\nc1 me b0 200\nafter 3s", ""},
	{"a login before it, and both sessions are used", "advance 16m\nc1 login - 200 other\nc1 me a0 401 token_expired\nc2 me b0 200\nafter 700ms\nc1 me a0 401 token_expired\nc2 me b0 200\nafter 3s",
		"no_refresh_after_expiry[3 5]"},
	{"a login of another device", expired + "c2 login - 200 other\n" + loop(2, "after 700ms\nc1 me a0 401 token_expired") + "after 3s", "no_refresh_after_expiry[2 4 5]"},
	{"a login, and another tab that hears of it later", "advance 16m\nc1 me a0 401 token_expired\nc1 login - 200 other\nc1 me b0 200\nafter 1s\nc2 me a0 401 token_expired\nc2 me b0 200\nafter 3s", ""},
	{"other work goes on, and the refresh comes late", expired + loop(20, "after 200ms\nc1 listing - 200\nc1 file a0 200") + "c1 refresh r0 200\nc1 me a1 200\nafter 3s",
		"no_refresh_after_expiry[2]"},
	{"a login of another user", expired + "c2 login - 200 other stranger\nafter 3s", "no_refresh_after_expiry[2]"},
	{"a login as another user", expired + "c1 login - 200 other stranger\nafter 3s", ""},
	{"an answer of its own kind", "c1 me a0 403 injected token_expired\nafter 3s", "no_refresh_after_expiry[2]"},
	{"a login before it, in whose session nobody goes on", "advance 16m\nc1 login - 200 other\nc1 me a0 401 token_expired\nafter 3s", "no_refresh_after_expiry[3]"},
	{"a login instead", expired + "after 1s\nc1 login - 200\nafter 3s", ""},
	{"a login instead that fails, and one later", expired + "c1 login - 401 stranger invalid_credentials injected\nafter 4s\nc1 login - 200 other\nc1 me b0 200", ""},
	{"a login instead as somebody else, and back to the first user later", expired + "c1 login - 200 other stranger\nafter 3s\nc1 login - 200 other\nc1 me b0 200", ""},
	{"a refresh with the access token instead", expired + "c1 refresh a0 401 token_wrong_type\nafter 3s", "wrong_token_type[3]"},
	{"a refresh with the access token while others are under way", "advance 15m\n" + loop(2, "c1 me a0 | c2 me a0 401 token_expired") + "c3 refresh a0 401 token_wrong_type\n" +
		loop(2, "c1 me a0 | c2 me a0 401 token_expired") + "after 3s", "wrong_token_type[6]"},
	{"of the new token, right after the refresh", expired + "c1 refresh r0 200\nc1 me a1 200\nc1 me a1 401 token_expired\nafter 600ms\nc1 me a1 401 token_expired\nafter 3s", "no_refresh_after_expiry[5 6]"},
	{"a crowd's refresh with the access token", "browser\n" + expired + loop(5, "c1 me a0 401 token_expired") + "c1 refresh a0 401 token_wrong_type\nafter 3s", "wrong_token_type[8]"},
	{"the old token long after, by the hub's clock, and then a logout", expired + "advance 16m\nc1 me a0 401 token_expired\nc1 logout a0 204\nafter 3s", "no_refresh_after_expiry[2]"},
	{"the old token long after, by the hub's clock, and then a refresh", expired + "advance 16m\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", "no_refresh_after_expiry[2]"},
	{"another caller's request that is still under way when the clock is put back", expired + "c2 me a0 401 left later\nc1 me a0 401 token_expired\nc1 refresh r0 200\n" +
		"c1 me a1 200\nc1 me a1 200\nback 10m\nlater\nafter 3s", ""},
	{"the old token long after, by the hub's clock, and then a login", expired + "advance 16m\nc1 me a0 401 token_expired\nc1 login - 200 other\nc1 me b0 200\nafter 3s", "no_refresh_after_expiry[2]"},
	{"a logout instead", expired + "after 1s\nc1 logout a0 204\nafter 3s", ""},
	{"nothing beside a long poll, with a connection for each request", "advance 15m\nc2 listing a0 200 later\nc3 me a0 401 token_expired\nafter 3s\nlater", "no_refresh_after_expiry[3]"},
	{"nothing beside a long poll", "advance 15m\nc2 listing a0 200 later\nc1 me a0 401 token_expired\nafter 3s", "no_refresh_after_expiry[3]"},
	{"injected, and again for the token of the refresh", expired + "c1 refresh r0 200\nc1 me a1 401 injected token_expired\nafter 3s", ""},
	{"injected for the token of a refresh of long ago", expired + "c1 refresh r0 200\nc1 me a1 200\nafter 3s\nc1 me a1 401 injected token_expired\nafter 3s", "no_refresh_after_expiry[5]"},
	{"a poll that goes on, while another user logs in over its connections", "advance 15m\n" + loop(4, "c1 me a0 401 token_expired\nafter 250ms\nc1 login - 200 other stranger\nafter 250ms") + "after 3s", "no_refresh_after_expiry[2 4]"},
	{"a login in place of a refresh, which is tried again as it was asked, and a second caller meanwhile", expired + "c1 login - 503 injected wait=3s\nafter 400ms\nc1 me a0 401 token_expired\nafter 2600ms\nc1 login - 200 other\n" +
		loop(2, "c1 me b0 200") + "after 3s", ""},
	{"a slow login in place of a refresh, for which a second caller waits", "c2 me a0 200\n" + expired + "c1 login - 200 other later\nafter 20ms\nc2 me a0 401 token_expired\nafter 2500ms\nlater\nc1 me b0 200\nc2 me b0 200\nafter 3s", ""},
	{"a tab that goes on with the old token, over the connection of another that has logged in anew", "advance 15m\nc1 me a0 401 token_expired\nc1 login - 200 other\nc1 me b0 200\n" +
		loop(3, "after 1s\nc1 me a0 401 token_expired\nafter 1s\nc1 me b0 200") + "after 3s", "no_refresh_after_expiry[5 7]"},
	{"the next expiry, less than a second after a refresh that failed for now and then worked", expired + "c1 refresh r0 503 injected\nafter 100ms\nc1 refresh r0 200\nc1 me a1 200\nafter 100ms\nc1 me a1 401 token_expired ordered\nafter 3s", "no_refresh_after_expiry[6]"},
	{"a login in place of a refresh that fails for now, over a connection that had been opened before for other namespaces", "open c5\nafter 200ms\nc1 me a0 200\n" + expired + "c5 login - 503 injected wait=3s\nafter 3s\nc1 login - 200 other\nc1 me b0 200\nafter 3s", ""},
	{"a login too late beside a long poll", "advance 15m\nc2 listing a0 200 later\nc1 me a0 401 token_expired\nafter 5s\nlater\nc1 login - 200 other\nc1 me b0 200", "no_refresh_after_expiry[3]"},
	{"a login for two callers after the clock was put back", "c1 me a0 200 | c2 me a0 200\nback 21m\nc1 me a0 401 token_expired ordered\nc1 login - 200 other\nc2 me a0 401 token_expired ordered\nc1 me b0 200\nc2 me b0 200\nafter 3s", ""},
	{"callers of a slow server, two at a time, each over a connection of its own", "advance 15m\n" + loops(6, "slow 450ms cX me a0 | cY me a0 401 token_expired") + "c99 refresh r0 200\n" +
		loops(6, "slow 450ms cX00 me a1 | cY00 me a1 200"), ""},
	{"an answer of its own kind, in one of two sessions", "c1 login - 200 other\nc1 me b0 200\nc1 me a0 403 injected token_expired\nafter 3s", "no_refresh_after_expiry[4]"},
	{"a login long after", expired + "after 10s\nc1 login - 200", "no_refresh_after_expiry[2]"},
	{"an answer that did not arrive", "advance 15m\nc1 me a0 401 token_expired lost\nafter 3s", ""},
	{"the clock is put back before two seconds have passed", expired + "after 1s\nback 20m\nafter 3s", ""},
	{"the clock is put back after it", expired + "after 3s\nback 20m", "no_refresh_after_expiry[2]"},
}

func TestNotRepeated(t *testing.T) {
	t.Parallel()
	five := "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\nc1 refresh r0 200\n"
	four := "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 401 token_expired\n"
	check(t, []row{
		{"sent again in a session that began right behind the refresh", "advance 16m\nc1 me a0 401 token_expired query=a\nc1 me a0 401 token_expired query=b\nc1 refresh r0 200\nc1 login - 200 other\nc1 me b0 200 query=a\nc1 me b0 200 query=b\nafter 3s", ""},
		{"four of five", five + "c1 me a1 200\nafter 2s", "not_repeated[3 4 5 6 7]"},
		{"four of five, too early to tell", five + "c1 me a1 200", ""},
		{"none", five + loop(5, "c1 me a1 200") + "after 2s", ""},
		{"again, with the new refresh token", "advance 15m\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me r1 401 token_wrong_type\nafter 3s", "wrong_token_type[4]"},
		{"with the refresh token before the refresh", "advance 15m\nc1 me a0 401 token_expired\nc1 me r0 401 token_wrong_type\nc1 refresh r0 200\nafter 3s", "wrong_token_type[3] not_repeated[2 4]"},
		{"callers that gave up when a refresh failed, and one that asks later", four + "c1 refresh r0 500 injected\nafter 6s\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", ""},
		{"callers of whom two hear that the token is over while a refresh fails, and one that asks later", "advance 15m\nc2 me a0 | c3 me a0 401 token_expired later\nc1 me a0 401 token_expired\nc1 refresh r0 503 injected later\nlater\nafter 2s\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", ""},
		{"one more whose 401 comes when the refresh has failed, and who refreshes for itself", "advance 15m\nc5 me a0 | c6 me a0 401 token_expired later\n" + "c1 me a0 | c2 me a0 401 token_expired\nc1 refresh r0 500 injected later\nlater\nc5 refresh r0 200\nc5 me a1 200\nafter 3s", ""},
		{"callers that gave up when a refresh failed, and four soon after, of which one comes again", four + "c1 refresh r0 500 injected\nafter 300ms\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", "not_repeated[8 9 10 11]"},
		{"callers that try their old token once more behind a refresh that failed, give up, and all come again later", "advance 15m\nc1 me/1 a0 | c2 me/2 a0 | c3 me/3 a0 401 token_expired\nc4 refresh r0 503 injected\n" +
			"c1 me/2 a0 | c2 me/3 a0 401 token_expired\nafter 1s\nc1 me/1 a0 | c2 me/3 a0 | c3 me/2 a0 401 token_expired\nc4 refresh r0 200\nc1 me/1 a1 200\nc2 me/2 a1 200\nc3 me/3 a1 200\nafter 3s", ""},
		{"callers that wait for a refresh, try again when it has failed, and are loaded once more", "open c5\nc2 me a0 | c3 me a0 | c4 me a0 200\nadvance 15m\nslow 6ms c1 me a0 | c2 me a0 | c3 me a0 401 token_expired\nslow 6ms c4 refresh r0 503 injected\n" +
			"slow 6ms c1 me a0 | c2 me a0 | c3 me a0 401 token_expired\nslow 7ms c4 me a0 | c5 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 | c2 me a1 | c3 me a1 200\nafter 3s", ""},
		{"callers that wait until a refresh is tried again, of which one comes again", four + "c1 refresh r0 500 injected\nafter 300ms\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", "not_repeated[3 4 5 7]"},
		{"one of two, whose refresh failed under a lock, and the other refreshes next", "advance 15m\nc1 me a0 | c2 me a0 401 token_expired\nc1 refresh r0 503 injected\nc2 refresh r0 200\nc2 me a1 200\nafter 3s", ""},
		{"two of four, whose refreshes failed under a lock", four + loop(2, "c1 refresh r0 0 lost\nafter 100ms") + "c1 refresh r0 200\n" + loop(2, "c1 me a1 200") + "after 3s", ""},
		{"one, whose refresh is tried twice", "advance 15m\nc1 me a0 401 token_expired\nc1 refresh r0 503 injected\nc1 refresh r0 200\nafter 3s", "not_repeated[2 4]"},
		{"an upload, while a poll of the run goes on", "advance 15m\nc1 run:POST a0 401 token_expired\nc1 refresh r0 200\nc1 run:GET a1 200\nafter 300ms\nc1 run:GET a1 200\nafter 3s", "not_repeated[2 3]"},
		{"three uploads of equal length over one connection", "advance 15m\nc1 run:POST a0 401 token_expired body=a\nc1 run:POST a0 401 token_expired body=b\nc1 run:POST a0 401 token_expired body=c\nc1 refresh r0 200\nafter 3s", "not_repeated[2 3 4 5]"},
		{"one that tries once more over another connection before it refreshes", "c2 me a0 200\nadvance 15m\nc1 me a0 401 token_expired\nafter 30ms\nc2 me a0 401 token_expired\nc1 refresh r0 200\nc2 me a1 200\nafter 3s", ""},
		{"two, one after the other, while a refresh is under way", "c2 me a0 200\nc3 me a0 200\nadvance 15m\nc1 me a0 401 token_expired\nc1 refresh r0 200 later\nc2 me a0 401 token_expired\nafter 30ms\nc3 me a0 401 token_expired\nlater\nc1 me a1 200\nafter 3s", "not_repeated[5 6 7]"},
		{"again, but too late", five + "after 3s\n" + loop(5, "c1 me a1 200"), "not_repeated[2 3 4 5 6 7]"},
		{"the first of three, each with an address of its own", "advance 15m\nc1 me a0 401 token_expired query=1\nc1 me a0 401 token_expired query=2\nc1 me a0 401 token_expired query=3\n" +
			"c1 refresh r0 200\nc1 me a1 200 query=2\nc1 me a1 200 query=3\nafter 3s", "not_repeated[2 5]"},
		{"none, each with another address for its next try", "advance 15m\nc1 me a0 401 token_expired query=1\nc1 me a0 401 token_expired query=2\nc1 refresh r0 200\n" +
			"c1 me a1 200 query=3\nc1 me a1 200 query=4\nafter 3s", ""},
		{"none, some with another address for their next try", "advance 15m\nc1 me a0 401 token_expired query=1\nc1 me a0 401 token_expired query=2\nc1 me a0 401 token_expired query=3\nc1 me a0 401 token_expired query=4\nc1 refresh r0 200\n" +
			"c1 me a1 200 query=9\nc1 me a1 200 query=1\nc1 me a1 200 query=8\nc1 me a1 200 query=2\nafter 3s", ""},
		{"one of three with a new address, and two without", "advance 15m\nc1 me a0 401 token_expired query=1\nc1 me a0 401 token_expired query=2\nc1 me a0 401 token_expired query=3\nc1 refresh r0 200\n" +
			"c1 me a1 200 query=9\nc1 me a1 200 query=1\nafter 3s", "not_repeated[4 5]"},
		{"callers that try once more behind a refresh that failed, and come again later, each time to a new address", "advance 15m\nc1 me a0 401 token_expired query=1\nc2 me a0 401 token_expired query=2\nc4 refresh r0 503 injected\n" +
			"c1 me a0 401 token_expired query=3\nc2 me a0 401 token_expired query=4\nafter 1s\nc1 me a0 401 token_expired query=5\nc2 me a0 401 token_expired query=6\nc4 refresh r0 200\nc1 me a1 200 query=7\nc2 me a1 200 query=8\nafter 3s", "not_repeated[5 6 9]"},
		{"the first of two, and the other with a new address, over its connection", "advance 15m\nc1 me a0 401 token_expired query=1\nc2 me a0 401 token_expired query=2\nc3 refresh r0 200\nc2 me a1 200 query=9\nafter 3s", "not_repeated[2 4]"},
		{"a logout instead", five + "c1 logout a1 204\nafter 3s", ""},
	})
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for script, open := range map[string]bool{
		expired:                       true,
		expired + "advance 3s":        false,
		expired + "c1 refresh r0 200": true,
		expired + "c1 refresh r0 200\nc1 me a1 200": false,
		"c1 me a0 200": false,
		expired + loop(5, "c1 me a0 401 token_expired"):       true,
		loop(5, "c1 me a0 503 injected"):                      false,
		loop(2, "c1 me a0 503 injected wait=1s"):              true,
		loop(2, "c1 me a0 503 injected wait=1s") + "after 2s": false,
		loop(2, "c1 me a0 503 injected wait=30s"):             false,
	} {
		if v := run(t, "c1 login - 200\n"+script); v.Open > 0 != open || v.Open > reaction+time.Millisecond {
			t.Errorf("open for %v after\n%s", v.Open, script)
		}
	}
}
