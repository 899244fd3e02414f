package judge

import "testing"

func TestTwoRefreshes(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"a second tab that refreshes when it loads, and the first one at its own expiry", "advance 9m\nc2 refresh r0 200\nc2 me a1 200\nadvance 7m\n" + loop(3, "c1 me a0 401 token_expired") + "c1 refresh r1 200\n" + loop(3, "c1 me a2 200") + "after 3s", ""},
		{"three tabs under a lock, each of which keeps its own access token", "advance 13m\nc2 refresh r0 200\nc2 me a1 200\nadvance 3m\n" + loop(3, "c1 me a0 401 token_expired") + "c1 refresh r1 200\nc1 me a2 200\n" +
			"c1 refresh r2 200\nc1 me a3 200\nc1 refresh r3 200\nc1 me a4 200\nafter 3s", ""},
		{"a second caller that refreshes when the first one is done, while another page is loaded", "advance 15m\nc1 listing a0 401 token_expired query=1\nc2 listing a0 401 token_expired query=2\nc1 refresh r0 200\nc1 listing a1 200 query=1\n" +
			"c3 listing a1 200 query=9\nafter 300ms\nc2 refresh r1 200\nc2 listing a2 200 query=2\nafter 3s", "two_refreshes[4 7]"},
		{"a run that was refused, and a look at the run before it comes again", "advance 15m\nc1 run:POST a0 401 token_expired\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nc1 run:GET a1 200\nc1 refresh r1 200\nc1 run:POST a2 200\nafter 3s", "two_refreshes[4 7]"},
		{"together", expired + "c1 refresh r0 200\nc2 refresh r0 401 token_reused", "two_refreshes[3 4]"},
		{"the loser is answered first", expired + "c2 refresh r0 401 token_reused\nc1 refresh r0 200", "two_refreshes[3 4]"},
		{"for two expiries by order, while callers of the first have left", "c1 me a0 | c2 me a0 401 token_expired ordered\nc1 refresh r0 200\nafter 300ms\nc1 refresh r1 200 ordered\nc1 me a2 200\nafter 3s", "not_repeated[3 4]"},
		{"that was not stored, when the session is revoked", expired + "c1 refresh r0 200\nc1 me a1 200\nc1 me a1 401 token_revoked\nc1 refresh r0 401 token_revoked", "spent_refresh_token[3 6]"},
		{"by another caller, when the session is revoked meanwhile", "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nc1 me a1 401 token_revoked\nc2 refresh r0 401 token_revoked", "two_refreshes[5 8]"},
		{"before half of the new pair's life", expired + "c1 refresh r0 200\nc1 me a1 200\nadvance 7m29s\nc1 refresh r0 401 token_reused", "two_refreshes[3 5]"},
		{"after half of it", expired + "c1 refresh r0 200\nc1 me a1 200\nadvance 7m31s\nc1 refresh r0 401 token_reused", "spent_refresh_token[3 5]"},
		{"none succeeded", expired + "c1 refresh r0 401 token_revoked\nc2 refresh r0 401 token_revoked", ""},
		{"by five workers in turn, who go on with other work, where the 401s of some take longer", "advance 15m\nc1 me a0 | c2 me a0 401 token_expired\nc3 me a0 | c4 me a0 | c5 me a0 401 token_expired later\nc1 refresh r0 200\nc2 refresh r1 200\nlater\n" +
			"c6 me a1 200\nc7 me a2 200\nafter 45ms\nc3 refresh r2 200\n" + loop(8, "c6 me a3 200") +
			"c4 refresh r3 200\n" + loop(8, "c6 me a4 200") + "c5 refresh r4 200\nafter 3s", "two_refreshes[7 8 11 20 29]"},
		{"a page that loads again, after a refresh that was tried twice", "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 401 token_expired\nc1 refresh r0 503 injected\nafter 300ms\nc1 refresh r0 200\n" +
			loop(4, "c1 me a1 200") + "after 1s\nc1 refresh r1 200\n" + loop(4, "c1 me a2 200"), "early_refresh[12]"},
		{"in time, where the pair came for the second time", "policy grace 10s\nlife 4s\nadvance 4s\nc1 me a0 | c2 me a0 401 token_expired\nc1 refresh r0 200 lost\nafter 1500ms\nc1 refresh r0 200\n" +
			"c1 me a1 200\nafter 1500ms\nc1 refresh r1 200\nc1 me a2 200\nafter 3s", ""},
		{"of a caller whose address has not come again", "advance 15m\nc1 me a0 401 token_expired query=1\nc2 me a0 401 token_expired query=2\nc1 refresh r0 200\n" +
			"c1 me a1 200 query=1\nc1 me a1 200 query=1\nc2 refresh r1 200\nc2 me a2 200 query=2", "two_refreshes[4 7]"},
		{"for a slow request whose 401 comes last", "advance 15m\nc1 me a0 401 token_expired later\nc2 me a0 401 token_expired\nc2 refresh r0 200\nc2 me a1 200\nc2 me a1 200\nlater\nc1 refresh r1 200\nc1 me a2 200", "two_refreshes[4 7]"},
		{"right behind a slow request's 401, beside a poll", "advance 15m\nc1 me a0 401 token_expired later\nc2 me a0 401 token_expired\nc2 refresh r0 200\nc2 me a1 200\nlater\nc2 me a1 200\nc1 refresh r1 200\nc1 me a2 200", "two_refreshes[4 7]"},
		{"in turn, in a session that was refreshed without rotation before", "policy keep\nc1 me a0 200\nadvance 16m\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\npolicy strict\nadvance 16m\n" +
			"c1 me a1 401 token_expired\nc1 refresh r0 200\nc1 me a2 200\nc1 listing a1 401 token_expired\nc1 refresh r2 200\nc1 listing a3 200\nafter 3s", "two_refreshes[7 10]"},
		{"a poll whose first refresh fails, and a page that is loaded later", expired + "c1 refresh r0 503 injected\nafter 2s\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 3s\nc1 refresh r1 200\nc1 me a2 200\nafter 3s", "early_refresh[7]"},
		{"a page whose first refresh fails, and that is loaded again after it asked for something else", "advance 15m\nc1 me a0 401 token_expired query=a\nc1 refresh r0 503 injected\nafter 1s\nc1 me a0 401 token_expired query=b\nc1 refresh r0 200\nc1 me a1 200 query=b\nafter 500ms\nc1 refresh r1 200\nc1 me a2 200 query=c\nafter 3s", "early_refresh[7]"},
		{"a poll whose refresh comes late, and a page that is loaded later", expired + loop(2, "after 400ms\nc1 me a0 401 token_expired") + "c1 refresh r0 200\nc1 me a1 200\nafter 3s\nc1 refresh r1 200\nc1 me a2 200\nafter 3s", "early_refresh[7]"},
		{"a poll whose first refresh fails, and a page that is loaded soon", expired + "c1 refresh r0 503 injected\nafter 2s\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 700ms\nc1 refresh r1 200\nc1 me a2 200\nafter 3s", "early_refresh[7]"},
		{"by a worker whose first refresh fails, while others poll", "c2 listing a0 200\n" + expired + "c1 refresh r0 503 injected\nafter 40ms\nc2 me a0 401 token_expired\nc2 refresh r0 200\nc2 me a1 200\nafter 400ms\nc2 me a1 200\nafter 400ms\nc2 me a1 200\nafter 300ms\nc1 refresh r1 200\nc1 me a2 200\nafter 3s", "two_refreshes[6 10]"},
		{"for a slow page of a list, while other pages come", "advance 15m\nc1 me a0 401 token_expired query=1 later\nc2 me a0 401 token_expired query=0\nc2 refresh r0 200\nc2 me a1 200 query=0\nafter 100ms\nlater\n" + each("c2 me a1 200 query=%s", "2", "3", "4") + "after 40ms\nc1 refresh r1 200\nc1 me a2 200 query=1", "two_refreshes[4 9]"},
		{"a search of which the last one is sent again, and a page that is loaded later", expired + "slow 400ms c2 refresh r0 200 later\nc1 me a0 401 token_expired query=b\nlater\nc1 me a1 200 query=b\nafter 6s\nc1 refresh r1 200\nc1 me a2 200 query=c\nafter 3s", "not_repeated[2 3] early_refresh[6]"},
		{"one caller after the other, over the connections of their 401s, while other widgets load", "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nc4 me a1 200\nc5 me a1 200\n" +
			"after 50ms\nc2 refresh r1 200\nc2 me a2 200\nc3 refresh r2 200\nc3 me a3 200", "two_refreshes[5 9 11]"},
		{"a caller that hears late, and refreshes long after all were served", "advance 15m\nc2 me a0 | c3 me a0 | c4 me a0 401 token_expired later\nc1 me a0 401 token_expired\nc1 refresh r0 200\nlater\n" + each("c%s me a1 200", "1", "2", "3", "4") +
			"after 15ms\nc2 refresh r1 200\nc2 me a2 200\nafter 1s\nc3 refresh r2 200\nc3 me a3 200\nafter 200ms\nc4 refresh r3 200\nc4 me a4 200", "two_refreshes[6 11] early_refresh[13 15]"},
		{"one worker after the other, and one that joins with the new access token", "advance 15m\nc1 me a0 | c2 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nc1 me a0 401 token_expired\nc1 refresh r1 200\n" +
			"c1 me a0 401 token_expired\nc1 me a1 200\nc1 me a2 200\nc1 refresh r2 200\nc1 me a3 200\nc1 refresh r3 200\nc1 me a4 200", "two_refreshes[4 7 11 13]"},
		{"a page that is loaded anew, over a connection of an earlier 401", "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\nc1 refresh r0 200\n" + loop(3, "c1 me a1 200") +
			"after 400ms\nc2 refresh r1 200\nc2 me a2 200", "early_refresh[9]"},
	})
}

func TestTwoRefreshesInAChain(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"in a chain while a request is unsent", expired + "c2 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nc2 refresh r1 200\nc2 me a2 200", "two_refreshes[4 6]"},
		{"one caller after the other, beside other work", "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 401 token_expired\n" + "c1 refresh r0 200\nc1 me a1 200\nc2 refresh r1 200\n" +
			loop(3, "c9 me a2 200") + "c2 me a2 200\nc3 refresh r2 200\nc3 me a3 200\nc4 refresh r3 200\nc4 me a4 200", "two_refreshes[6 8 13 15]"},
		{"no chain once all is sent again", expired + "c1 refresh r0 200\nc1 me a1 200\nc1 refresh r1 200", "early_refresh[5]"},
		{"in a chain whose second caller is slow", expired + "c2 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 3s\nc2 refresh r1 200\nc2 me a2 200",
			"two_refreshes[4 6]"},
		{"in a chain whose second caller gives up after its refresh", expired + "c2 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nc2 refresh r1 200",
			"two_refreshes[4 6]"},
		{"no chain of what was given up", expired + "c2 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 3s\nc2 refresh r1 200",
			"early_refresh[6]"},
		{"no chain after a 401 of the new pair", expired + "c2 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 401 injected\nc1 refresh r1 200\nc1 me a2 200\nc2 me a2 200", ""},
		{"in a chain after a race that has ended the session", expired + "c2 me a0 401 token_expired\nc1 refresh r0 200\nc2 refresh r0 401 token_reused\n" +
			"c1 me a1 401 token_revoked\nc1 refresh r1 401 token_revoked", "two_refreshes[4 5 7]"},
		{"no chain after the session was revoked", expired + "c2 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 401 token_revoked\nc1 refresh r1 401 token_revoked", ""},
		{"a retry after a lost answer", expired + "c1 refresh r0 200 lost\nc2 refresh r0 401 token_reused", ""},
		{"a retry after an abandoned one", expired + "c1 refresh r0 200 left\nc2 refresh r0 401 token_reused", ""},
		{"a retry after an injected failure", expired + "c1 refresh r0 503 injected\nc1 refresh r0 200\nc1 me a1 200", ""},
		{"after the success, whatever was answered", expired + "c1 refresh r0 200\nc1 refresh r0 503 injected\nc1 me a1 200", "two_refreshes[3 4]"},
		{"within grace", "policy grace 10s\n" + expired + "c1 refresh r0 200\nc2 refresh r0 200\nc1 me a1 200", ""},
		{"after grace, of a refresh whose first answer was lost", "policy grace 1s\n" + expired + "c1 refresh r0 200 lost\nc1 refresh r0 200\nc1 me a1 200\nafter 2s\nc2 refresh r0 401 token_reused", "two_refreshes[4 6]"},
		{"within grace, of a refresh whose first answer was lost", "policy grace 9s\n" + expired + "c1 refresh r0 200 lost\nc1 refresh r0 200\nc1 me a1 200\nafter 2s\nc2 refresh r0 200", ""},
		{"after grace", "policy grace 10s\n" + expired + "c1 refresh r0 200\nc1 me a1 200\nadvance 11s\nc2 refresh r0 401 token_reused", "two_refreshes[3 5]"},
		{"where reuse is allowed", "policy allow\n" + expired + "c1 refresh r0 200\nc2 refresh r0 200\nc1 me a2 200", ""},
		{"without rotation", "policy keep\n" + expired + "c1 refresh r0 200\nc2 refresh r0 200\nc1 me a2 200", ""},
		{"the policy changes", expired + "c1 refresh r0 200\nc1 me a1 200\npolicy grace 1s\nc2 refresh r0 401 token_reused", ""},
		{"the clock is put back", expired + "c1 refresh r0 200\nc1 me a1 200\nback 1m\nc2 refresh r0 401 token_reused", ""},
		{"with an ordered token", "ordered\nc1 refresh r0 200\nc1 refresh r0 401 token_reused", "two_refreshes[1 2]"},
		{"with a token that has a defect", "defect\nc1 refresh r0 200\nc1 refresh r0 401 token_reused", ""},
	})
}

func TestSpentRefreshToken(t *testing.T) {
	t.Parallel()
	next := expired + "c1 refresh r0 200\nc1 me a1 200\nadvance 15m\nc1 me a1 401 token_expired\n"
	check(t, []row{
		{"at the next expiry", next + "c1 refresh r0 401 token_reused", "spent_refresh_token[3 6]"},
		{"several times", next + "c1 refresh r0 401 token_reused\nc2 refresh r0 401 token_reused", "spent_refresh_token[3 6 7]"},
		{"once the new pair was found expired", expired + "c1 refresh r0 200\nc1 me a1 401 token_expired\nc1 refresh r0 401 token_reused", "spent_refresh_token[3 5]"},
		{"three times, once the new pair was expired by order", expired + "c1 refresh r0 200\nc1 me a1 200\nc1 refresh r0 401 token_reused ordered\nc1 refresh r0 401 token_revoked\nafter 1s\nc1 refresh r0 401 token_revoked", "spent_refresh_token[3 5 6 7]"},
		{"once the new pair was expired by order", expired + "c1 refresh r0 200\nc1 me a1 200\nc1 refresh r0 401 token_reused ordered", "spent_refresh_token[3 5]"},
		{"with the new token", next + "c1 refresh r1 200\nc1 me a2 200", ""},
		{"where the answer was lost", expired + "c1 refresh r0 200 lost\nadvance 15m\nc1 refresh r0 401 token_reused", ""},
		{"where reuse is allowed", "policy allow\n" + next + "c1 refresh r0 200\nc1 me a2 200", ""},
		{"without rotation", "policy keep\n" + next + "c1 refresh r0 200\nc1 me a2 200", ""},
		{"within a long grace", "life 4s\npolicy grace 10s\nadvance 4s\nc1 refresh r0 200\nadvance 3s\nc1 refresh r0 200", ""},
	})
}

func TestRefreshWithoutNeed(t *testing.T) {
	t.Parallel()
	const hearsLate = "advance 16m\nc2 me/2 a0 401 token_expired later\nc1 me/1 a0 401 token_expired\nc1 refresh r0 200\nc1 me/1 a1 200\nlater\n" // of two callers, the second
	check(t, []row{
		{"before every request, over two connections in turn, without rotation", "policy keep\nc2 me a0 200\nafter 200ms\nc1 refresh r0 200\nc2 me a1 200\nc2 refresh r0 200\nc1 me a2 200\nc1 refresh r0 200\nc2 me a3 200\nc2 refresh r0 200\nc1 me a4 200", "refresh_without_need[3 5 7 9]"},
		{"each behind a 401 without a token, over another connection", "c2 me a0 200\n" + each("c1 me - 401 token_missing\nc2 refresh r%[1]s 200\nafter 1s", "0", "1", "2", "3"), ""},
		{"behind the access token sent to refresh", "c1 refresh a0 401 token_wrong_type\nc1 refresh r0 200\nc1 me a1 200", "wrong_token_type[2]"},
		{"behind the refresh token sent to me", "c1 me r0 401 token_wrong_type\nc1 refresh r0 200\nc1 me a1 200", "wrong_token_type[2]"},
		{"each behind a 401 for the look at its token", "c1 me a0 200\n" + each("c1 introspect a%[1]s 401 injected\nc1 refresh r%[1]s 200\nafter 200ms", "0", "1", "2"), ""},
		{"each behind an upload that was refused in the middle, over a connection of its own", "c9 me a0 200\n" + each("slow 1s c%[1]s0 run:POST a%[1]s 401 injected stopped\nafter 400ms\nc9 refresh r%[1]s 200\nafter 1s", "0", "1", "2") + "c9 run:POST a3 200", ""},
		{"three times", "c1 refresh r0 200\nc1 refresh r1 200\nc1 refresh r2 200", "refresh_without_need[2 3 4]"},
		{"three times, and a copy of the tab sends the first token again", "c1 refresh r0 200\nafter 500ms\nc1 refresh r1 200\nafter 500ms\nc1 refresh r2 200\nafter 2s\nc2 refresh r0 401 token_reused",
			"refresh_without_need[2 3 4] two_refreshes[2 5]"},
		{"with reuse allowed, behind an expiry that three callers met", "policy allow\nadvance 15m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 | c2 me a1 | c3 me a1 200\nafter 1s\n" +
			"c1 refresh r1 200\nc1 me a2 200\nc1 refresh r2 200\nc1 me a3 200\nc1 refresh r3 200", "refresh_without_need[9 11 13]"},
		{"twice", "c1 refresh r0 200\nc1 refresh r1 200", "early_refresh[2 3]"},
		{"for a tab whose 401 came late, while another tab's request goes on with the new token", "advance 14m\nc3 refresh r0 200\nadvance 16m\nc1 me a0 401 token_expired\nc2 me a1 401 token_expired later\nafter 5ms\nc3 refresh r1 200\nafter 6ms\nlater\nc1 me a2 200\nafter 2ms\nc3 refresh r2 200\nc2 me a3 200", "two_refreshes[5 7]"},
		{"of two tabs that each keep an access token, right behind another tab's", "advance 13m\nc3 refresh r0 200\nadvance 13m\nc2 me a1 200\nadvance 3m\nc1 me a0 401 token_expired\nc3 refresh r1 200\nc1 me a2 200\nc3 refresh r2 200\nc2 me a3 200", "early_refresh[7]"},
		{"of a tab, behind a refresh of another that came before its 401", "advance 13m\nc3 refresh r0 200\nc1 me a0 401 token_expired\nc1 me a1 200\nafter 50ms\nc3 refresh r1 200\nc1 me a2 200", ""},
		{"for a request without a token", "c1 me - 401 token_missing\nc1 refresh r0 200", ""},
		{"for a wrong password", "c1 login - 401 invalid_credentials injected\nc1 refresh r0 200", "early_refresh[3]"},
		{"three times, but not within a lifetime", "c1 refresh r0 200\nadvance 7m\nc1 refresh r1 200\nadvance 7m\nadvance 2m\nc1 refresh r2 200", "early_refresh[2 3]"},
		{"three times in more than a lifetime, with others on time between", "c1 refresh r0 200\nadvance 8m\nc1 refresh r1 200\nadvance 1m\nc1 refresh r2 200\nadvance 8m\n" +
			"c1 refresh r3 200\nadvance 1m\nc1 refresh r4 200", "early_refresh[2 4 6]"},
		{"three times, but the policy changes", "c1 refresh r0 200\nc1 refresh r1 200\npolicy strict\nc1 refresh r2 200", "early_refresh[2 3 4]"},
		{"with two minutes left of three", "life 3m\nafter 61s\nc1 refresh r0 200\nafter 61s\nc1 refresh r1 200\nafter 61s\nc1 refresh r2 200", ""},
		{"behind a 401 since the token stands in the address, with a request of another caller beside it", "c1 me - 401 token_missing address later\nc2 listing a0 200\nlater\nc1 refresh r0 200", "token_in_address[2]"},
		{"behind a 401 since the token stands in the address, with another caller served between", "c1 me/2 - 401 token_missing address\nc2 listing a0 200\nafter 1s\nc1 refresh r0 200", "token_in_address[2]"},
		{"behind a 401 without a token that the hub can read, with another caller beside it", "c1 me/2 x0 401 token_malformed foreign later\nc2 me a0 200\nlater\nc1 refresh r0 200", ""},
		{"behind a 401 without a token, with another caller served between", "c1 me/2 - 401 token_missing\nc2 me a0 200\nc1 refresh r0 200", ""},
		{"behind a 401 without a token, of which the same request has been served since", "c1 me - 401 token_missing\nc1 me a0 200\nc1 refresh r0 200", "early_refresh[4]"},
		{"once more behind a 401 without a token, for which there was a refresh", "c1 me/2 - 401 token_missing\nc1 refresh r0 200\nc1 me a1 200\nc1 refresh r1 200", "early_refresh[5]"},
		{"right behind a refresh for a crowd, all of which has been sent again, the last one late", hearsLate + "c1 me/2 a1 200\nafter 10ms\nc1 refresh r1 200\nc1 me/3 a2 200", "early_refresh[7]"},
		{"right behind a refresh for a crowd, the last of which heard late and refreshes as well", hearsLate + "after 10ms\nc2 refresh r1 200\nc2 me/2 a2 200", "two_refreshes[4 6]"},
		{"on each 401, since the token stands in the address", "after 1s\n" + each("c1 me - 401 token_missing address\nc1 refresh r%s 200\nc1 me - 401 token_missing address\nafter 700ms", "0", "1", "2") + "after 3s", "token_in_address[2 4 5 7 8 10]"},
		{"by a timer, beside a widget that sends the wrong token", "after 1s\n" + each("c1 me r%[1]s 401 token_wrong_type\nc1 me a%[1]s 200\nafter 1s\nc1 refresh r%[1]s 200", "0", "1", "2") + "after 3s", "wrong_token_type[2 5 8] refresh_without_need[4 7 10]"},
		{"on each 401, since it is the wrong token", "after 1s\nc1 me r0 401 token_wrong_type\nc1 refresh r0 200\nc1 me r1 401 token_wrong_type\nafter 700ms\nc1 refresh r1 200\nc1 me r2 401 token_wrong_type\nafter 700ms\nc1 refresh r2 200\nc1 me r3 401 token_wrong_type\nafter 3s", "wrong_token_type[2 4 6 8]"},
		{"by exp, which is past by the client's clock", "back 8h\nc1 login - 200\nc1 refresh r0 200\nc1 me a1 200\nc1 refresh r1 200\nc1 me a2 200\nc1 refresh r2 200\nc1 me a3 200\nc1 refresh r3 200\nc1 me a4 200", "early_refresh[3]"},
		{"by exp, which is past by the client's clock, while requests are under way", "back 8h\nc1 login - 200\nc1 refresh r0 200\nc1 me a1 200 later\nc2 refresh r1 200\nc2 me a2 200 later\nc3 refresh r2 200\nc3 me a3 200 later\nc4 refresh r3 200\nlater", "early_refresh[3]"},
		{"by exp, which is past by the client's clock, twice before each use", "back 8h\nc1 login - 200\nc1 refresh r0 200\nc1 refresh r1 200\nc1 me a2 200\nc1 refresh r2 200\nc1 refresh r3 200\nc1 me a4 200\nc1 refresh r4 200\nc1 refresh r5 200\nc1 me a6 200", "early_refresh[3 4]"},
		{"three times, where exp is past, and without a use between", "back 8h\nc1 login - 200\nc1 refresh r0 200\nc1 refresh r1 200\nc1 refresh r2 200", "refresh_without_need[3 4 5]"},
		{"with half left", "after 7m30s\nc1 refresh r0 200", ""},
		{"with less than half left by the client's clock, while the hub's is frozen", "frozen 8m\nc1 refresh r0 200", ""},
		{"with a little more than half left", "after 7m29s\nc1 refresh r0 200", "early_refresh[2]"},
		{"after a 401, whoever gave it", "c1 me a0 401 injected\nc1 refresh r0 200", ""},
		{"tries of one refresh", "c1 refresh r0 503 injected\nc1 refresh r0 503 injected\nc1 refresh r0 200", "early_refresh[4]"},
		{"without rotation", "policy keep\nc1 refresh r0 200\nc1 refresh r0 200\nc1 refresh r0 200", "refresh_without_need[2 3 4]"},
		{"two replicas with an access token of their own each, who refresh a minute ahead, without rotation", "policy keep\nc1 me a0 200\nadvance 7m\nc2 refresh r0 200\nc2 me a1 200\n" +
			"advance 7m\nc1 refresh r0 200\nc1 me a2 200\nadvance 7m\nc2 refresh r0 200\nc2 me a3 200\nadvance 7m\nc1 refresh r0 200\nc1 me a4 200\nadvance 7m\nc2 refresh r0 200\nafter 3s", "early_refresh[3]"},
		{"two such replicas, with a connection for each refresh", "policy keep\nc1 me a0 200\nadvance 7m\nc3 refresh r0 200\nc2 me a1 200\nc1 me a0 200\n" +
			"advance 7m\nc4 refresh r0 200\nc1 me a2 200\nc2 me a1 200\nadvance 7m\nc5 refresh r0 200\nc2 me a3 200\nc1 me a2 200\nadvance 7m\nc6 refresh r0 200\nc1 me a4 200\nc2 me a3 200\nadvance 7m\nc7 refresh r0 200\nafter 3s", "early_refresh[3]"},
		{"a test that gives its client a token with a defect, four times", each("c1 me x0 401 token_malformed foreign\nc1 refresh %s 200", "r0", "r1", "r2", "r3") + "after 3s", ""},
		{"with an ordered token", "ordered\nc1 refresh r0 200\nc1 refresh r1 200\nc1 refresh r2 200", ""},
	})
}

func TestRefreshWithoutNeedWhereNoTokenIsSpent(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"at the same expiry without rotation, after one that was needed", "policy keep\nc1 me a0 200\nadvance 16m\nc1 refresh r0 200\nc1 me a1 200\n" +
			"after 1s\nc1 refresh r0 200\nc1 me a2 200\nafter 1s\nc1 refresh r0 200\nc1 me a3 200\nafter 1s\nc1 refresh r0 200\nc1 me a4 200\nafter 3s", ""},
		{"each of five callers of a page that loads, without rotation", "policy keep\nc1 refresh r0 | c2 refresh r0 | c3 refresh r0 200\nc4 refresh r0 200\nc5 refresh r0 200", "early_refresh[2]"},
		{"each of three callers of a page that loads three times, without rotation", "policy keep\n" + loop(3, "c1 refresh r0 | c2 refresh r0 200\nc3 refresh r0 200\nafter 1s"), "refresh_without_need[2 5 8]"},
		{"each of five callers without rotation", "policy keep\nadvance 15m\n" + loop(5, "c1 me a0 401 token_expired") + loop(5, "c1 refresh r0 200") + loop(5, "c1 me a5 200"), ""},
		{"of tabs that each have a pair of their own, where reuse is allowed", "policy allow\nadvance 16m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\n" +
			"c1 refresh r0 200\nc2 refresh r0 200\nc3 refresh r0 200\nc1 me a1 200\nc2 me a2 200\nc3 me a3 200\nadvance 16m\nc1 me a1 401 token_expired\nc1 refresh r1 200\nc1 me a4 200\n" +
			"after 200ms\nc2 me a2 401 token_expired\nc2 refresh r2 200\nc2 me a5 200\nafter 200ms\nc3 me a3 401 token_expired\nc3 refresh r3 200\nc3 me a6 200", ""},
		{"ahead of the end, of three that each keep a chain of their own and open a connection for each refresh, where reuse is allowed", "policy allow\nc1 me a0 200\n" +
			each("advance 870s\n%s", "c2 refresh r0 200\nafter 1s\nc3 refresh r0 200\nafter 1s\nc4 refresh r0 200", "c5 refresh r1 200\nafter 1s\nc6 refresh r2 200\nafter 1s\nc7 refresh r3 200",
				"c8 refresh r4 200\nafter 1s\nc9 refresh r5 200\nafter 1s\nc10 refresh r6 200") + "c10 me a9 200", ""},
		{"ahead of the end, of three that each keep a chain of their own and share a connection, where reuse is allowed", "policy allow\nc1 me a0 200\n" +
			each("advance 870s\n%s", "c1 refresh r0 200\nafter 1s\nc1 refresh r0 200\nafter 1s\nc1 refresh r0 200", "c1 refresh r1 200\nafter 1s\nc1 refresh r2 200\nafter 1s\nc1 refresh r3 200",
				"c1 refresh r4 200\nafter 1s\nc1 refresh r5 200\nafter 1s\nc1 refresh r6 200") + "c1 me a9 200", ""},
		{"every five minutes under allow, over connections in turn", "policy allow\nc1 me a0 | c2 me a0 | c3 me a0 200\n" +
			each("advance 5m\n%s", "c1 refresh r0 200\nc1 me a1 200", "c2 refresh r1 200\nc2 me a2 200", "c3 refresh r2 200\nc3 me a3 200", "c1 refresh r3 200\nc1 me a4 200", "c2 refresh r4 200\nc2 me a5 200", "c3 refresh r5 200\nc3 me a6 200"),
			"refresh_without_need[5 7 9 11 13 15]"},
	})
}

// TestRefreshForOldAccessToken: who refreshes for one old access token again and again does not take the new ones.
func TestRefreshForOldAccessToken(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"behind each 401 for the access token of the login, at the second expiry", expired + "c1 refresh r0 200\nc1 me a1 200\nadvance 16m\n" + each("c1 me a0 401 token_expired\nc1 refresh %s\nafter 1s", "r1 200\nc1 me a2 200", "r2 200\nc1 me a3 200", "r3 200\nc1 me a4 200", "r4 200\nc1 me a5 200") + "after 3s", "refresh_without_need[9 12 15]"},
		{"once for each tab that kept the first access token", expired + "c1 refresh r0 200\nc1 me a1 200\nadvance 16m\n" + "c1 me a1 401 token_expired\nc1 refresh r1 200\nc1 me a2 200\nafter 3s\nc2 me a0 401 token_expired\nc2 refresh r2 200\nc2 me a3 200\nafter 3s", ""},
	})
}
