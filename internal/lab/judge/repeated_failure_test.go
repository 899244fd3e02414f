package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestRepeatedFailure(t *testing.T) {
	t.Parallel()
	settled := slices.Clone(failures)
	for i := range settled {
		settled[i].script = strings.TrimSpace(settled[i].script) + "\nafter 3s" // what the client may do in time, it has done
	}
	check(t, settled)
	check(t, []row{
		{"while the client may still refresh", expired + loop(5, "c1 me a0 401 token_expired"), ""},
		{"while a poll with a dead token goes on", loop(20, "after 500ms\nc1 me a0 401 token_revoked"), "repeated_failure[" + numbers(2, 21) + "]"},
		{"while a refresh is under way for which they wait", expired + "c2 refresh r0 200 later\n" + loop(12, "after 300ms\nc1 me a0 401 token_expired"), ""},
		{"while a caller goes on that pauses as long", "slow 5ms c1 me a0 503 injected\nafter 43ms\nslow 5ms c1 me a0 503 injected\nafter 245ms\nslow 5ms c1 me a0 503 injected\nafter 244ms\nslow 5ms c1 me a0 503 injected\nafter 244ms\nslow 5ms c1 me a0 503 injected\nafter 300ms", "repeated_failure[2 3 4 5 6]"},
		{"while callers send again what waited for a slow refresh", "advance 15m\nc1 me a0 401 token_expired\nc9 refresh r0 200 later\nafter 3ms\n" + loop(5, "slow 6ms c1 me a0 401 token_expired\nafter 9ms") + "after 2400ms\nlater\nafter 50ms\nc1 me a1 200\nafter 50ms", ""},
		{"while the last of three widgets waits that began 25 ms apart", loop(2, "slow 5ms c1 me a0 503 injected\nafter 20ms") + "slow 5ms c1 me a0 503 injected\nafter 150ms\n" + loop(2, "slow 5ms c1 me a0 503 injected\nafter 20ms"), ""},
		{"while two widgets in step go on", loop(2, "c1 me a0 503 injected\nafter 20ms\nc1 me a0 503 injected\nafter 1s") + "after 990ms\nc1 me a0 503 injected", ""},
		{"while two widgets in step do not go on", loop(2, "c1 me a0 503 injected\nafter 20ms\nc1 me a0 503 injected\nafter 1s") + "after 990ms\nc1 me a0 503 injected\nafter 6s", ""},
		{"after they did not", "slow 5ms c1 me a0 503 injected\nafter 14ms\nslow 5ms c1 me a0 503 injected\nafter 7ms\nslow 5ms c1 me a0 503 injected\nafter 8ms\nslow 5ms c1 me a0 503 injected\nafter 22ms\nslow 5ms c1 me a0 503 injected\nafter 3s", "repeated_failure[2 3 4 5 6]"},
		{"while a crowd in a queue goes on", loop(50, "c1 me a0 401 token_revoked"), ""},
	})
}

var failures = []row{
	{"five times", loop(5, "c1 me a0 503 injected"), "repeated_failure[2 3 4 5 6]"},
	{"four times", loop(4, "c1 me a0 503 injected"), ""},
	{"over connections cut by a fault", loops(5, "cX me a0 0 lost\nafter 100ms"), "repeated_failure[2 3 4 5 6]"},
	{"over connections cut by a fault, which a library may repeat by itself", loops(5, "cX me a0 0 lost"), ""},
	{"over connections cut by a fault, more than a library repeats by itself", loops(15, "cX me a0 0 lost"), "repeated_failure[" + numbers(2, 16) + "]"},
	{"five callers side by side over connections cut by a fault, which a library repeats by itself", "slow 5ms c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 0 lost\n" +
		"slow 5ms c11 me a0 | c12 me a0 | c13 me a0 | c14 me a0 | c15 me a0 0 lost", ""},
	{"HEAD and GET in turn", loop(3, "c1 me:HEAD a0 401 token_revoked\nc1 me:GET a0 401 token_revoked") + "after 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"four tries, each of which the client's library sends again over another connection", "c2 me a0 0 lost\nafter 10ms\nc3 me a0 0 lost\nafter 1s\n" +
		"c4 me a0 0 lost\nafter 10ms\nc5 me a0 0 lost\nafter 2s\nc6 me a0 0 lost\nafter 10ms\nc7 me a0 0 lost\nafter 4s\nc8 me a0 0 lost\nafter 10ms\nc9 me a0 0 lost", ""},
	{"given up by the client", loop(6, "c1 me a0 0 left"), ""},
	{"together", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 503 injected", ""},
	{"over old connections, too close to tell", "c1 me a0 | c2 me a0 200\n" + loop(3, "c1 me a0 503 injected\nc2 me a0 503 injected"), ""},
	{"over old connections, more than 100 ms apart", "c1 me a0 | c2 me a0 200\n" + loop(3, "c1 me a0 503 injected\nafter 100ms\nc2 me a0 503 injected\nafter 100ms"),
		"repeated_failure[4 5 6 7 8 9]"},
	{"with a pause of more than 5 s", loop(3, "c1 me a0 503 injected") + "after 5s\n" + loop(2, "c1 me a0 503 injected"), ""},
	{"with a pause of less than 5 s", loop(3, "c1 me a0 503 injected") + "after 4900ms\n" + loop(2, "c1 me a0 503 injected"), "repeated_failure[2 3 4 5 6]"},
	{"with a pause by the hub's clock alone", loop(3, "c1 me a0 503 injected") + "advance 6s\n" + loop(2, "c1 me a0 503 injected"), ""},
	{"with a success between", loop(3, "c1 me a0 503 injected") + "c1 me a0 200\n" + loop(3, "c1 me a0 503 injected"), ""},
	{"with another operation between", loop(3, "c1 me a0 503 injected") + "c1 listing a0 200\n" + loop(3, "c1 me a0 503 injected"), "repeated_failure[2 3 4 6 7 8]"},
	{"without a token, with another operation between", loop(3, "c1 login:POST - 401 invalid_credentials injected") + "c1 listing - 200\n" +
		loop(3, "c1 login:POST - 401 invalid_credentials injected"), "repeated_failure[2 3 4 6 7 8]"},
	{"a crowd, and a few late ones with the old token", "advance 15m\n" + loop(2, "c1 me a0 | c2 me a0 401 token_expired") + "c1 refresh r0 200\n" + loop(4, "c1 me a1 200") +
		"after 1100ms\n" + loop(3, "c1 me a0 401 token_expired") + "after 3s", ""},
	{"a widget with the old token right behind another", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loop(11, "after 1s\nc1 me a1 200\nc1 me a0 401 token_expired") + "after 3s",
		"repeated_failure[2 6 8 10 12 14 16 18 20 22 24 26]"},
	{"the tests of a suite, each of which finds the same dead session and logs in", loop(6, "c1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked\nc1 login - 200 other\nc1 me b0 200\nafter 20ms"), ""},
	{"the tests of a suite, each of which finds a token of another hub and logs in", loop(6, "c1 me x0 401 token_malformed foreign\nc1 login - 200 other\nc1 me b0 200\nafter 20ms"), ""},
	{"a loop at pauses by chance, and a refresh that is tried twice", "advance 16m\n" + each("slow 5ms c1 me a0 401 token_expired\nafter %s", "112ms", "163ms", "118ms", "167ms", "121ms") +
		"c1 refresh r0 503 injected\nafter 110ms\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", "repeated_failure[2 3 4 5 6]"},
	{"refreshes that are refused, where nothing rotates, behind an expiry that was answered", "policy keep\nadvance 16m\n" + loop(4, "c1 me a0 | c2 me a0 401 token_expired") + "c1 refresh r0 200\n" + loop(8, "c1 me a1 200") +
		"after 300ms\nc1 me a1 401 token_revoked\n" + loop(5, "c1 refresh r0 401 token_revoked") + "after 3s", "repeated_failure[" + numbers(20, 24) + "]"},
	{"four tries, and the end of the token, whose refresh is tried twice", loop(4, "c1 me a0 503 injected\nafter 500ms") + "c1 me a0 401 token_expired ordered\nc1 refresh r0 503 injected\nafter 250ms\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", ""},
	{"four tries, and the end of the token, whose refresh fails", loop(4, "c1 me a0 503 injected\nafter 500ms") + "c1 me a0 401 token_expired ordered\nc1 refresh r0 503 injected\nafter 3s", "repeated_failure[2 3 4 5 6]"},
	{"five that come one by one, each with a refresh of its own under a lock", "advance 16m\nc2 me a0 401 token_expired later\nc1 me a0 401 token_expired\nslow 5ms c1 refresh r0 503 injected later\nlater\nslow 6ms c1 refresh r0 503 injected\n" +
		loop(3, "after 30ms\nslow 6ms c1 me a0 401 token_expired\nslow 6ms c1 refresh r0 503 injected") + "after 3s", ""},
	{"one that asks again each time its refresh fails", "advance 16m\n" + loop(5, "after 30ms\nslow 6ms c1 me a0 401 token_expired\nslow 6ms c1 refresh r0 503 injected") + "after 3s", "repeated_failure[" + numbers(2, 11) + "]"},
	{"three under a lock, each of whom refreshes twice", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\n" + loop(3, "slow 6ms c1 refresh r0 503 injected\nafter 100ms\nslow 6ms c1 refresh r0 503 injected") + "after 3s", ""},
	{"two under a lock, each of whom refreshes four times", "advance 16m\nc1 me a0 | c2 me a0 401 token_expired\n" + loop(2, loop(3, "slow 6ms c1 refresh r0 503 injected\nafter 100ms")+"slow 6ms c1 refresh r0 503 injected") + "after 3s", ""},
	{"five that log in anew under a lock, and fail", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\n" + loop(5, "slow 6ms c1 login - 503 injected") + "after 3s", ""},
	{"five whose refresh and login fail under a lock", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_revoked\n" + loop(5, "slow 6ms c1 refresh r0 401 token_revoked\nslow 40ms c1 login - 401 invalid_credentials") + "after 3s", ""},
	{"one that logs in five times behind a 401", "advance 16m\nc1 me a0 401 token_expired\n" + loop(5, "slow 6ms c1 login - 503 injected") + "after 3s", "repeated_failure[3 4 5 6 7]"},
	{"one that tries three times, waits, and tries twice", loop(3, "slow 6ms c1 me a0 401 token_revoked\nafter 30ms") + "after 4200ms\n" + loop(2, "slow 6ms c1 me a0 401 token_revoked\nafter 30ms") + "after 3s", "repeated_failure[" + numbers(2, 6) + "]"},
	{"one that tries twice, waits, and tries three times", loop(2, "slow 6ms c1 me a0 401 token_revoked\nafter 30ms") + "after 4200ms\n" + loop(3, "slow 6ms c1 me a0 401 token_revoked\nafter 30ms") + "after 3s", "repeated_failure[" + numbers(2, 6) + "]"},
	{"three and two over one connection, whose refresh fails each time", "advance 16m\n" + loop(3, "slow 6ms c1 me a0 401 token_expired\nafter 10ms") + "c1 refresh r0 503 injected\nafter 2s\n" + loop(2, "slow 6ms c1 me a0 401 token_expired\nafter 10ms") + "c1 refresh r0 503 injected\nafter 3s", ""},
	{"a page of three files and one of two, over one connection", each("slow 6ms c1 file/%s a0 503 injected\nafter 30ms", "1", "2", "3") + "after 2s\n" + each("slow 6ms c1 file/%s a0 503 injected\nafter 30ms", "4", "5") + "after 3s", ""},
	{"three widgets of a page, of whom two come again", "browser\n" + loop(3, "slow 6ms c1 me a0 503 injected\nafter 30ms") + "after 2s\n" + loop(2, "slow 6ms c1 me a0 503 injected\nafter 30ms") + "after 3s", ""},
	{"three that come again after a pause, and of whom the last is served then", loop(3, "slow 6ms c1 me a0 503 injected\nafter 30ms") + "after 2s\n" + loop(2, "slow 6ms c1 me a0 503 injected\nafter 30ms") + "c1 me a0 200\nafter 3s", ""},
	{"three that come again after a pause, twice", loop(3, loop(3, "slow 6ms c1 me a0 503 injected\nafter 30ms")+"after 2s\n") + "after 3s", ""},
	{"five that look at a lock every 100 ms", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\n" + loop(5, "slow 300ms c1 refresh r0 503 injected\nafter 90ms") + "after 3s", ""},
	{"six tries for five that look at a lock", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\n" + loop(6, "slow 300ms c1 refresh r0 503 injected\nafter 90ms") + "after 3s", "repeated_failure[" + numbers(7, 12) + "]"},
	{"two under a lock, each of whom refreshes four times, over connections that are cut", "advance 16m\nc1 me a0 | c2 me a0 401 token_expired\n" + each("slow 5ms %s", "c11 refresh r0 0 lost\nafter 110ms", "c12 refresh r0 0 lost\nafter 210ms", "c13 refresh r0 0 lost\nafter 410ms",
		"c14 refresh r0 0 lost", "c15 refresh r0 0 lost\nafter 110ms", "c16 refresh r0 0 lost\nafter 210ms", "c17 refresh r0 0 lost\nafter 410ms", "c18 refresh r0 0 lost\nafter 3s"), ""},
	{"three under a lock, each of whom refreshes four times, with pauses by chance", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\n" +
		each("slow 5ms c1 refresh r0 503 injected\nafter %s", "80ms", "30ms", "170ms", "1ms", "15ms", "140ms", "260ms", "1ms", "60ms", "190ms", "20ms", "3s"), ""},
	{"one for three logs in nine times, held up once", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\n" +
		each("slow 5ms c1 login - 503 injected\nafter %s", "430ms", "200ms", "210ms", "230ms", "220ms", "290ms", "200ms", "200ms", "3s"), "repeated_failure[" + numbers(5, 13) + "]"},
	{"two under a lock, each of whom refreshes ahead of the end and at the 401", "advance 16m\nslow 5ms c1 refresh r0 503 injected\n" + loop(2, "c2 me a0 401 token_expired later\nslow 5ms c1 refresh r0 503 injected\nlater\nslow 5ms c1 refresh r0 503 injected") + "after 3s", ""},
	{"one that refreshes ahead of the end and at the 401, three times", "advance 16m\n" + loop(3, "slow 5ms c1 refresh r0 503 injected\nslow 5ms c1 me a0 401 token_expired\nslow 5ms c1 refresh r0 503 injected") + "after 3s", "repeated_failure[2 4 5 7 8 10]"},
	{"two who try four times, and a third one whose first 401 is answered by a refresh", "advance 16m\n" + each("slow 5ms c1 file/1 a0 | c2 file/2 a0 401 token_expired\nafter %s", "100ms", "250ms", "180ms", "900ms") + "c1 file/3 a0 401 token_expired\nc1 refresh r0 200\nc1 file/3 a1 200\nafter 3s", "not_repeated[8 9 11]"},
	{"five that wait for a login, with a connection for each request", "advance 16m\nslow 6ms c11 me a0 401 token_expired\nc12 login - 200 other later\n" + each("after %s me a0 401 token_expired", "24ms\nslow 8ms c13", "67ms\nslow 6ms c14", "90ms\nslow 8ms c15", "46ms\nslow 8ms c16") + "after 140ms\nlater\n" + loops(5, "cX me b0 200") + "after 3s", ""},
	{"five that begin one after the other, while one prepares the refresh, and are served together", "advance 16m\nslow 6ms c1 me a0 401 token_expired\n" + each("after %s me a0 401 token_expired", "17ms\nslow 6ms c2", "101ms\nslow 6ms c3", "30ms\nslow 6ms c4", "190ms\nslow 6ms c5") + "after 25ms\nc1 refresh r0 200\nc1 me a1 | c2 me a1 | c3 me a1 | c4 me a1 | c5 me a1 200\nafter 3s", ""},
	{"five that begin one after the other without a token, and are served together", "c1 me - 401 token_missing\nc1 refresh r0 200 later\n" + each("after %s me - 401 token_missing", "15ms\nslow 6ms c2", "101ms\nslow 6ms c3", "30ms\nslow 6ms c4", "190ms\nslow 6ms c5") + "after 25ms\nlater\nc1 me a1 | c2 me a1 | c3 me a1 | c4 me a1 | c5 me a1 200\nafter 3s", ""},
	{"one that tries by a timer, and a page that is loaded right behind the refresh", "advance 16m\n" + loop(6, "slow 6ms c1 me a0 401 token_expired\nafter 250ms") + "c1 refresh r0 200\nc1 me a1 | c2 me a1 | c3 me a1 | c4 me a1 | c5 me a1 | c6 me a1 200\nafter 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"one that tries by chance for more than two seconds, and a page that is loaded right behind the refresh", "advance 16m\n" + each("slow 6ms c1 me a0 401 token_expired\nafter %s", "610ms", "340ms", "790ms", "420ms", "370ms") + "c1 refresh r0 200\nc1 me a1 | c2 me a1 | c3 me a1 | c4 me a1 | c5 me a1 200\nafter 3s", "no_refresh_after_expiry[2] repeated_failure[2 3 4 5 6]"},
	{"five that begin one after the other without a token, and come back one after the other behind a login", "c2 me - 401 token_missing\nc3 login - 200 later\n" +
		each("after %s me - 401 token_missing", "15ms\nslow 6ms c4", "101ms\nslow 6ms c5", "30ms\nslow 6ms c6", "190ms\nslow 6ms c7", "12ms\nslow 6ms c8") + "after 25ms\nlater\n" +
		each("after 11ms\nc%s me a0 200", "12", "13", "14", "15", "16", "17") + "after 3s", ""},
	{"six that begin one after the other without a token, and come back a little apart over two connections", "c2 me a0 200\nslow 6ms c1 me - 401 token_missing\nc1 refresh r0 200 later\n" +
		each("after %s\nslow 6ms c2 me - 401 token_missing", "48ms", "53ms", "16ms", "92ms", "44ms") + "after 110ms\nlater\n" + each("after %s me a1 200", "14ms\nc1", "7ms\nc1", "46ms\nc2", "0ms\nc1", "20ms\nc2", "19ms\nc2") + "after 3s", ""},
	{"one who loops, and then on its refresh", loop(6, "slow 6ms c1 me a0 401 token_revoked") + loop(6, "slow 6ms c1 refresh r0 401 token_revoked") + "after 3s", "repeated_failure[" + numbers(2, 13) + "]"},
	{"one who refreshes, and goes on with the old token", "advance 15m\n" + each("c1 me a0 401 token_expired\nafter 1ms\nslow 5ms c1 refresh r%s 200\nc1 me a0 401 token_expired\nafter 2500ms", "0", "1", "2") + "after 3s", "repeated_failure[2 4 5 7 8 10] not_repeated[2 3] early_refresh[9]"},
	{"a service that loops on a 503, beside another one of the user that began later, with a connection for each request", "c1 login - 200 other\n" + loops(6, "slow 6ms cX me a0 503 injected\nafter 20ms\ncY me b0 200\nafter 230ms") + "after 3s", "repeated_failure[3 5 7 9 11 13]"},
	{"one that is forbidden until its account is enabled, and that refreshes twice when the token expires then", each("slow 5ms c1 me a0 403 account_disabled\nafter %s", "150ms", "400ms", "200ms", "600ms", "300ms") + "c1 me a0 200\nafter 300ms\n" +
		"c1 me a0 401 token_expired ordered\nc1 refresh r0 200\nc1 refresh r0 401 token_reused\nafter 3s", "repeated_failure[2 3 4 5 6] two_refreshes[9 10]"},
	{"ten widgets of a page whose equal GETs wait for each other in a slow outage", "browser\nc1 me a0 | c2 me a0 200\n" + loop(5, "slow 250ms c1 me a0 503 injected\nafter 2ms\nslow 250ms c2 me a0 503 injected\nafter 2ms") + "after 3s", ""},
	{"a job by a timer that begins with an old token, over two connections in turn as Node's fetch does", "c1 me a0 401 token_expired\nc2 refresh r0 200\nc1 me a1 200\n" + loop(8, "after 480ms\nslow 6ms c2 me a0 401 token_expired\nafter 1ms\nc1 me a1 200") + "after 3s", ""},
	{"a service with a revoked session that keeps its timer, right ahead of another one that asks five times as often", "c2 login - 200 other\nc1 me a0 200\n" + loop(6, "slow 5ms c1 me a0 401 token_revoked\n"+loop(5, "c2 me b0 200\nafter 50ms")) + "after 3s", "repeated_failure[4 10 16 22 28 34]"},
	{"a service with a revoked session, beside another one of the user that began later, each over its connection and by chance", "c2 login - 200 other\nc1 me a0 200\n" +
		each("slow 5ms c1 me a0 401 token_revoked\nafter %s\nc2 me b0 200\nafter 100ms", "40ms", "130ms", "200ms", "70ms\nc2 me b0 200\nafter 90ms", "160ms", "90ms") + "after 3s", "repeated_failure[4 6 8 10 13 15]"},
	{"a client that was asked to wait, logs in again and goes on at once, past the time", "c1 me a0 503 injected wait=2s\nc1 login - 200 other\n" + loop(5, "after 500ms\nc1 me b0 503 injected") + "after 3s", "repeated_failure[4 5 6 7 8]"},
	{"a device with a revoked session, which a test asks side by side with another one", "c2 login - 200 other\nc1 me a0 200\n" +
		each("c1 me a0 401 token_revoked later\nc2 me b0 200\nafter 3ms\nlater\nafter %s", "300ms", "450ms", "700ms", "350ms", "600ms", "400ms") + "after 3s", "repeated_failure[4 6 8 10 12 14]"},
	{"a job by chance that begins with the token of a revoked session, over a client of its own, and then takes that of the next", "c2 login - 200 other\nc1 me a0 200\n" +
		each("slow 5ms c1 file/1 a0 401 token_revoked\nafter %s\nc2 file/1 b0 200\nc2 file/2 b0 200\nafter 100ms", "40ms", "130ms", "200ms", "70ms", "160ms", "90ms") + "after 3s", ""},
	{"a job by chance that begins with an old token, over a client of its own, and twice takes a new one from a slow store", "c1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\n" +
		each("after 400ms\nslow 6ms c2 file/1 a0 401 token_expired\nafter %s\nc1 file/1 a1 200\nc1 file/2 a1 200", "30ms", "90ms", "70ms", "120ms\nc1 file/1 a1 200\nafter 90ms", "53ms", "110ms", "32ms") + "after 3s", ""},
	{"a job by chance that begins with an old token, over two connections in turn as Node's fetch does", "c1 me a0 401 token_expired\nc2 refresh r0 200\nc1 me a1 200\n" +
		each("after %s\nslow 6ms c2 me a0 401 token_expired\nafter 15ms\nc1 me a1 200", "400ms", "90ms", "700ms", "250ms", "530ms", "1100ms", "320ms") + "after 3s", ""},
	{"a service with a revoked session that keeps its timer, right ahead of another one of the user that began later", "c2 login - 200 other\nc1 me a0 200\n" + loop(6, "slow 5ms c1 me a0 401 token_revoked\nafter 20ms\nc2 me b0 200\nafter 220ms") + "after 3s", "repeated_failure[4 6 8 10 12 14]"},
	{"a poll by a timer over connections in turn, behind three widgets that failed together", "slow 6ms c2 me a0 | c3 me a0 | c4 me a0 503 injected\n" + each("after 693ms\nslow 6ms %s me a0 503 injected", "c2", "c3", "c4", "c2", "c3", "c4", "c2", "c3", "c4") + "after 3s", "repeated_failure[" + numbers(2, 13) + "]"},
	{"a page that refreshes, and goes on with the old token", "browser\nadvance 15m\n" + each("c1 me a0 401 token_expired\nafter 12ms\nslow 5ms c1 refresh r%s 200\nafter 9ms\nc1 me a0 401 token_expired\nafter 2500ms", "0", "1", "2") + "after 3s", "repeated_failure[2 4 5 7 8 10] not_repeated[2 3] early_refresh[9]"},
	{"one who refreshes over a connection for each request, and goes on with the old token", "policy keep\nadvance 15m\n" + loops(3, "cX me a0 401 token_expired\nslow 5ms cY refresh r0 200\ncX0 me a0 401 token_expired\nafter 2500ms") + "after 3s", "repeated_failure[2 4 5 7 8 10] not_repeated[2 3]"},
	{"twelve over two connections who are forbidden, and give up with the refresh", "c2 me a0 200 | c3 me a0 200\n" + loop(6, "slow 6ms c2 me a0 | c3 me a0 403 account_disabled") +
		"slow 6ms c2 refresh r0 403 account_disabled\nafter 3s", ""},
	{"twelve over two connections without a token, and a login that is refused", loop(6, "slow 6ms c2 me - | c3 me - 401 token_missing") + "slow 6ms c2 login:POST - 401 invalid_credentials injected\nafter 3s", ""},
	{"two loops of six who are forbidden, with a pause between", "c2 me a0 200 | c3 me a0 200\n" + loop(6, "slow 6ms c2 me a0 | c3 me a0 403 account_disabled\nafter 100ms") +
		"slow 6ms c2 refresh r0 403 account_disabled\nafter 3s", "repeated_failure[4 5 6 7 8 9 10 11 12 13 14 15]"},
	{"one without a token that tries by a timer, and a page that is loaded right behind a slow refresh", loop(6, "slow 6ms c1 me - 401 token_missing\nafter 150ms") + "slow 300ms c1 refresh r0 200\nc1 me a1 | c2 me a1 | c3 me a1 | c4 me a1 | c5 me a1 | c6 me a1 200\nafter 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"five that begin one after the other, and find the new token when they look for it next", "advance 16m\nslow 6ms c1 me a0 401 token_expired\n" + each("after %s me a0 401 token_expired", "17ms\nslow 6ms c2", "101ms\nslow 6ms c3", "30ms\nslow 6ms c4", "190ms\nslow 6ms c5") + "after 325ms\nc1 refresh r0 200\nc1 me a1 200\nafter 60ms\nc2 me a1 | c3 me a1 | c4 me a1 200\nafter 50ms\nc5 me a1 200\nafter 3s", ""},
	{"five that begin while the client logs in, for a 401 at another path", "c1 listing a0 401 token_revoked\nc1 login - 200 other later\n" + each("after %s me a0 401 token_revoked", "17ms\nslow 6ms c2", "101ms\nslow 6ms c3", "30ms\nslow 6ms c4", "190ms\nslow 6ms c5", "41ms\nslow 6ms c6") + "after 125ms\nlater\nc1 listing b0 200\nc2 me b0 | c3 me b0 | c4 me b0 | c5 me b0 | c6 me b0 200\nafter 3s", ""},
	{"one that tries six times without a pause, and then tries its refresh twice, which is refused", "advance 200h\n" + loop(6, "slow 6ms c1 me a0 401 token_expired") + loop(2, "slow 6ms c1 refresh r0 401 token_expired") + "after 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"one that is served five times behind five failures, without a pause", "advance 16m\n" + each("slow 6ms c1 me a0 401 token_expired\nafter %s", "17ms", "101ms", "30ms", "190ms", "55ms") + "c1 refresh r0 200\n" + loop(5, "c1 me a1 200") + "after 3s", "repeated_failure[2 3 4 5 6]"},
	{"five that wait for a login, which is tried again", "c1 me a0 401 token_revoked\nc6 login - 503 injected\n" + each("after 160ms\n%s me a0 401 token_revoked", "c2", "c3", "c4", "c5") + "c6 login - 200 other\n" + each("%s me b0 200", "c1", "c2", "c3", "c4", "c5") + "after 3s", ""},
	{"one that comes back alone behind a login, which is tried again", "c1 me a0 401 token_revoked\nc1 login - 503 injected\n" + loop(4, "after 160ms\nc1 me a0 401 token_revoked") + "c1 login - 200 other\nc1 me b0 200\nafter 3s", "repeated_failure[2 4 5 6 7]"},
	{"two pollers of an address each, whose refreshes fail", "advance 16m\n" + each("c1 file/%s", "1 a0 401 token_expired\nc1 refresh r0 503 injected\nafter 130ms", "2 a0 401 token_expired\nc1 refresh r0 503 injected\nafter 360ms", "1 a0 401 token_expired\nc1 refresh r0 503 injected\nafter 130ms",
		"2 a0 401 token_expired\nc1 refresh r0 503 injected\nafter 360ms", "1 a0 401 token_expired\nc1 refresh r0 503 injected\nafter 3s"), ""},
	{"a timer that refreshes in vain, beside two who refresh for their 401s", "advance 16m\n" + loop(5, "slow 5ms c3 refresh r0 503 injected\nafter 200ms") + "c1 me a0 401 token_expired later\nc2 me a0 401 token_expired later\nslow 5ms c3 refresh r0 503 injected\nlater\n" +
		"c1 refresh r0 503 injected\nc2 refresh r0 503 injected\nafter 3s", "repeated_failure[2 3 4 5 6 9 10 11]"},
	{"five that log in anew under a lock, over a connection for logins alone", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\nc9 login - 503 injected\nafter 90ms\n" + loop(4, "slow 6ms c9 login - 503 injected") + "after 3s", ""},
	{"one of three under a lock refreshes until five have failed", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\n" + loop(5, "slow 6ms c1 refresh r0 503 injected\nafter 100ms") + "after 3s", "repeated_failure[5 6 7 8 9]"},
	{"one without a lock refreshes twice each time", "advance 16m\nc1 me a0 401 token_expired\n" + loop(3, "slow 6ms c1 refresh r0 503 injected\nafter 100ms\nslow 6ms c1 refresh r0 503 injected") + "after 3s", "repeated_failure[3 4 5 6 7 8]"},
	{"a refresh that a browser sends again over each connection that it has kept, four tries", "browser\nopen c2\nopen c3\nopen c4\nc2 me a0 200\nc3 me a0 200\nc4 me a0 200\nc5 me a0 200\nadvance 16m\nc1 me a0 401 token_expired\n" +
		each("slow 6ms %s refresh:POST r0 0 lost", "c1", "c2", "c3", "c4", "c5", "c6") + each("after %s refresh:POST r0 0 lost", "200ms\nslow 6ms c7", "400ms\nslow 6ms c8", "800ms\nslow 6ms c9") + "after 3s", ""},
	{"a page in Firefox that tries a cut GET four times, ten times each", "browser\n" + loops(4, cutGET+"after 400ms"), ""},
	{"a page in Firefox that tries a cut GET seven times, ten times each", "browser\n" + loops(7, cutGET+"after 400ms"), "repeated_failure[" + numbers(2, 71) + "]"},
	{"two under a lock, each of whom refreshes four times over connections that are cut, and a library that does so again", "c2 me a0 200\nadvance 16m\nslow 5ms c1 me a0 401 token_expired\nafter 10ms\nslow 5ms c2 me a0 401 token_expired\nafter 90ms\n" +
		each("%s refresh r0 0 lost", "slow 5ms c1", "slow 5ms c2", "after 240ms\nslow 5ms c11", "after 440ms\nslow 5ms c12", "after 810ms\nslow 5ms c13", "after 14ms\nslow 5ms c14", "after 240ms\nslow 5ms c15", "after 440ms\nslow 5ms c16", "after 810ms\nslow 5ms c17") + "after 3s", ""},
	{"five under a lock who take 403 for the end of the token", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 403 account_disabled\n" + loop(5, "slow 6ms c1 refresh r0 403 account_disabled") + "after 3s", ""},
	{"one who takes 403 for the end of the token, and refreshes five times", "c1 me a0 403 account_disabled\n" + loop(5, "slow 6ms c1 refresh r0 403 account_disabled") + "after 3s", "repeated_failure[3 4 5 6 7]"},
	{"five under a lock who have no access token any more", "c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 200\nc1 me - | c2 me - | c3 me - | c4 me - | c5 me - 401 token_missing\n" + loop(5, "slow 6ms c1 refresh r0 503 injected") + "after 3s", ""},
	{"five under a lock who have no access token, over new connections", "c1 me - | c2 me - | c3 me - | c4 me - | c5 me - 401 token_missing\n" + loop(5, "slow 6ms c1 refresh r0 503 injected") + "after 3s", ""},
	{"five under a lock who each prepare their refresh for a while", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\n" + each("after %s refresh r0 503 injected", "75ms\nslow 6ms c11", "133ms\nslow 6ms c12", "90ms\nslow 6ms c13", "73ms\nslow 6ms c14", "164ms\nslow 6ms c15") + "after 3s", ""},
	{"one flight for five that refreshes by a timer", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\n" + loop(5, "slow 6ms c1 refresh r0 503 injected\nafter 150ms") + "after 3s", "repeated_failure[7 8 9 10 11]"},
	{"jobs that take the new token from a store, which takes 60 ms", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loop(7, "after 30ms\nc1 me a0 401 token_expired\nafter 60ms\nc1 me a1 200"), ""},
	{"two workers that go on with a dead token, behind another one that has refreshed", expired + "c1 refresh r0 200\nc1 me a1 200\nafter 2500ms\n" + loop(15, "slow 6ms c2 me a0 | c3 me a0 401 token_expired\nafter 11ms\nslow 6ms c3 me a0 401 token_expired\nafter 17ms"), "repeated_failure[2 " + numbers(5, 49) + "]"},
	{"a worker that takes the new token from a store, over new connections", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loops(4, "after 130ms\nslow 6ms cX me a0 401 token_expired\nafter 60ms\ncY me a1 200\nafter 70ms\nslow 6ms cX1 me a0 401 token_expired\nafter 20ms\ncY1 me a1 200\nafter 90ms"), ""},
	{"a poll with the old token, and another with the new one, each over its connection", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loop(8, "after 430ms\nslow 6ms c2 me a0 401 token_expired\nafter 60ms\nc3 me a1 200"), "repeated_failure[2 5 7 9 11 13 15 17 19]"},
	{"two workers that begin each call with the first token and refresh, without rotation and over new connections", "policy keep\nadvance 16m\n" + loops(5, "slow 6ms cX me a0 401 token_expired\nslow 6ms cX9 refresh r0 200 later\nafter 5ms\nslow 6ms cY me a0 401 token_expired\nlater\nslow 6ms cY9 refresh r0 200 later\ncX8 me a1 200\nafter 5ms\nlater\ncY8 me a1 200\nafter 90ms") + "after 3s", ""},
	{"a job by a timer that takes the new token from a store, over new connections", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loops(7, "after 500ms\nslow 6ms cX me a0 401 token_expired\nafter 60ms\ncY me a1 200"), ""},
	{"two workers that take the new token from a store", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loop(3, "after 300ms\nslow 6ms c2 me a0 401 token_expired\nafter 2ms\nslow 6ms c3 me a0 401 token_expired\nafter 35ms\nc3 me a1 200\nafter 20ms\nc2 me a1 200\n"+
		"after 130ms\nslow 6ms c3 me a0 401 token_expired\nafter 30ms\nc3 me a1 200\nafter 90ms\nslow 6ms c2 me a0 401 token_expired\nafter 50ms\nslow 6ms c3 me a0 401 token_expired\nafter 34ms\nc2 me a1 200\nafter 66ms\nc3 me a1 200"), ""},
	{"two workers that take the new token from a store, over one connection", expired + "c1 refresh r0 200\nc1 me a1 200\n" + each("after %s\nslow 6ms c1 me a0 401 token_expired\nafter 52ms\nslow 6ms c1 me a0 401 token_expired\nafter 66ms\nc1 me a1 200\nafter 61ms\nc1 me a1 200", "180ms", "90ms", "210ms", "130ms"), ""},
	{"a poll with the old token, and one with the new one that takes two connections in turn", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loop(6, "after 90ms\nc2 me a0 401 token_expired\nafter 90ms\nc3 me a1 200\nafter 90ms\nc2 me a1 200\nafter 90ms\nc3 me a1 200"),
		"repeated_failure[2 5 9 13 17 21 25]"},
	{"a poll with the old token, beside a poll of the same address with the new one", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loop(7, "after 30ms\nc1 me a0 401 token_expired\nafter 60ms\nc1 me a1 200\nafter 90ms\nc1 me a1 200"), "repeated_failure[2 5 8 11 14 17 20 23]"},
	{"a loop of another user's login beside 401s of a session", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\nc1 refresh r0 200\n" + loop(5, "c1 me a1 200") + loop(5, "c9 login - 401 stranger invalid_credentials injected\nafter 150ms") + "after 3s", "repeated_failure[13 14 15 16 17]"},
	{"five under a lock, whose refreshes fail slowly", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\n" + loop(5, "slow 150ms c1 refresh r0 503 injected") + "after 3s", ""},
	{"six tries to refresh for five callers under a lock", "advance 16m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\n" + loop(6, "slow 150ms c1 refresh r0 503 injected") + "after 3s", "repeated_failure[" + numbers(7, 12) + "]"},
	{"a loop, and two who refresh at the next expiry", "policy keep\nadvance 16m\n" + loop(5, "c1 me a0 401 token_expired") + "c1 refresh r0 200\nc1 me a1 200\nafter 300ms\n" +
		"c2 listing a1 | c3 listing a1 401 token_expired ordered\nc2 refresh r0 | c3 refresh r0 200\nc2 listing a2 | c3 listing a2 200\nafter 3s", "repeated_failure[2 3 4 5 6]"},
	{"a loop that is refreshed, and widgets of another client of the user", "advance 16m\n" + loop(5, "c1 me a0 401 token_expired") + "c1 refresh r0 200\nc1 me a1 200\nafter 100ms\nc2 login - 200 other\n" + loop(5, "c2 me b0 200") + "after 3s", "repeated_failure[2 3 4 5 6]"},
	{"a loop, while another user logs in", loop(3, "c1 me a0 503 injected\nafter 120ms") + "c1 login - 200 other stranger\nc1 me b0 200 stranger\n" + loop(3, "c1 me a0 503 injected\nafter 120ms"), "repeated_failure[2 3 4 7 8 9]"},
	{"a loop with a dead token over connections of a pool, over which another user logs in", "c1 me a0 200 | c2 me a0 200 | c3 me a0 200\nc1 me a0 401 token_revoked\nc1 login - 200 other stranger\nafter 200ms\nc2 me a0 401 token_revoked\n" +
		"c2 login - 200 other stranger\nafter 200ms\nc3 me a0 401 token_revoked\nafter 200ms\n" + loop(2, "c3 me a0 401 token_revoked\nafter 200ms"), "repeated_failure[5 7 9 10 11]"},
	{"a dead session that is refreshed each time, and a login in the end", "c1 me a0 200\n" + loop(6, "c1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked\nafter 300ms") +
		"c1 login - 200 other\nc1 me b0 200\nafter 3s", "repeated_failure[" + numbers(3, 14) + "]"},
	{"the same wrong password over two connections, and the right one much later", "c2 me a0 200\n" + loop(3, "c1 login - 401 invalid_credentials injected\nafter 3s\nc2 login - 401 invalid_credentials injected\nafter 3s") +
		"c1 login - 401 invalid_credentials injected\nafter 60s\nc2 login - 200 other\nafter 3s", "repeated_failure[" + numbers(3, 9) + "]"},
	{"the same wrong password over two connections in turn, and the right one", "after 300ms\nc3 listing - 200 | c4 listing - 200\n" + loop(3, "c3 login - 401 invalid_credentials injected\nafter 200ms\n"+
		"c4 login - 401 invalid_credentials injected\nafter 200ms") + "c4 login - 200 other\nc4 me b0 200", "repeated_failure[" + numbers(4, 9) + "]"},
	{"two callers side by side who each try five times, over a new connection each time", loops(5, "cX me a0 | cY me a0 503 injected"), "repeated_failure[" + numbers(2, 11) + "]"},
	{"a widget with the old token right behind another, while the test lets time pass", expired + "c1 refresh r0 200\nc1 me a1 200\n" +
		loop(11, "advance 2s\nc1 me a1 200\nc1 me a0 401 token_expired"), "repeated_failure[2 6 8 10 12 14 16 18 20 22 24 26]"},
	{"five wrong passwords, the first over a connection of its own", "after 300ms\nc3 listing - 200\nc4 login - 401 invalid_credentials injected\n" +
		loop(4, "after 400ms\nc3 login - 401 invalid_credentials injected"), "repeated_failure[3 4 5 6 7]"},
	{"a poll through an outage, while the test lets time pass", loop(12, "c1 me a0 503 injected\nadvance 1s") + loop(40, "c1 me a0 200\nadvance 1s"), "repeated_failure[" + numbers(2, 13) + "]"},
	{"with a dead refresh token", loop(5, "c1 refresh r0 401 token_revoked"), "repeated_failure[2 3 4 5 6]"},
	{"a crowd that met the end of the token", "advance 15m\n" + loop(4, "c1 me a0 | c2 me a0 401 token_expired") + "c1 me a0 401 token_expired\nc1 refresh r0 200\n" +
		loop(9, "c1 me a1 200"), ""},
	{"a crowd, and one that tries on", expired + loop(5, "c1 me a0 401 token_expired") + "c1 refresh r0 200\n" + loop(2, "c1 me a1 200") + "\nafter 3s",
		"repeated_failure[2 3 4 5 6 7]"},
	{"a crowd whose refresh fails", "advance 15m\n" + loop(5, "c1 me a0 | c2 me a0 | c3 me a0 401 token_expired") + "c1 refresh r0 401 token_revoked", ""},
	{"the rest of a crowd, behind a refresh that failed", expired + "c1 refresh r0 503 injected\n" + loop(4, "c1 me a0 | c2 me a0 401 token_expired") + "c1 me a0 401 token_expired", ""},
	{"one caller, behind a refresh that failed", expired + "c1 refresh r0 503 injected\n" + loop(5, "c1 me a0 401 token_expired"), "repeated_failure[2 4 5 6 7 8]"},
	{"three callers of four tries each, the last of whom begins 200 ms later, while the first waits for an answer", "c1 me a0 503 injected later\nslow 6ms c2 me a0 503 injected\nafter 193ms\nslow 6ms c2 me a0 503 injected\nafter 500ms\nlater\n" +
		"after 290ms\nslow 6ms c2 me a0 503 injected\nafter 193ms\nslow 6ms c2 me a0 503 injected\nafter 500ms\nslow 6ms c2 me a0 503 injected\nafter 290ms\nslow 6ms c2 me a0 503 injected\nafter 193ms\nslow 6ms c2 me a0 503 injected\n" +
		"after 500ms\nslow 6ms c2 me a0 503 injected\nafter 290ms\nslow 6ms c2 me a0 503 injected\nafter 193ms\nslow 6ms c2 me a0 503 injected\nafter 500ms\nslow 6ms c2 me a0 503 injected\nafter 3s", ""},
	{"three callers of four tries each that begin 40 and 70 ms apart, the second of whom waits long for an answer", "slow 6ms c1 me a0 503 injected\nafter 33ms\nc1 me a0 503 injected later\nafter 73ms\nslow 6ms c2 me a0 503 injected\n" +
		"after 420ms\nlater\nafter 497ms\n" + each("slow 6ms c1 me a0 503 injected\nafter %s", "77ms", "419ms", "493ms", "77ms", "419ms", "493ms", "77ms", "419ms", "3s"), ""},
	{"four callers of four tries each that begin a little apart, one of whom waits for an answer while the others try", "slow 6ms c1 me a0 503 injected\nafter 20ms\nslow 6ms c1 me a0 503 injected\nafter 17ms\nc1 me a0 503 injected later\nafter 8ms\nslow 6ms c2 me a0 503 injected\n" +
		loop(3, "after 240ms\nslow 6ms c2 me a0 503 injected\nafter 20ms\nslow 6ms c2 me a0 503 injected\nafter 25ms\nslow 6ms c2 me a0 503 injected") + "after 50ms\nlater\nafter 300ms\n" + loop(3, "slow 6ms c2 me a0 503 injected\nafter 300ms") + "after 3s", ""},
	{"six callers of four tries each that begin up to 80 ms apart, one of whom waits for an answer while the others try", "slow 6ms c1 me a0 503 injected\nafter 8ms\nslow 6ms c1 me a0 503 injected\nafter 75ms\nslow 6ms c1 me a0 503 injected\nafter 32ms\nc1 me a0 503 injected later\n" +
		each("after %s\nslow 6ms c2 me a0 503 injected", "3ms", "8ms", "145ms", "8ms", "75ms", "38ms", "8ms", "145ms", "7ms", "8ms") + "later\n" +
		each("after %s\nslow 6ms c2 me a0 503 injected", "60ms", "38ms", "8ms", "160ms", "75ms", "38ms", "8ms", "160ms", "300ms") + "after 3s", ""},
	{"two callers of three and four tries without a token, each with a refresh without one", each("after %s - 401 token_missing\nslow 6ms c1 refresh - 401 token_missing", "0ms\nslow 6ms c1 me/2", "730ms\nslow 6ms c1 me", "230ms\nslow 6ms c1 me/2", "1730ms\nslow 6ms c1 me", "230ms\nslow 6ms c1 me/2", "3730ms\nslow 6ms c1 me", "230ms\nslow 6ms c1 me/2") + "after 6s", ""},
	{"one caller of five tries without a token, each with a refresh without one", each("after %s - 401 token_missing\nslow 6ms c1 refresh - 401 token_missing", "0ms\nslow 6ms c1 me", "980ms\nslow 6ms c1 me", "980ms\nslow 6ms c1 me", "980ms\nslow 6ms c1 me", "980ms\nslow 6ms c1 me") + "after 6s", "repeated_failure[2 3 4 5 6 7 8 9 10 11]"},
	{"two callers of four tries each, one of whom gives up the first", "c1 me a0 0 left later\nslow 6ms c2 me a0 503 injected\nafter 800ms\nlater\n" + each("after %s me a0 503 injected", "200ms\nslow 6ms c2", "780ms\nslow 6ms c3", "210ms\nslow 6ms c2", "780ms\nslow 6ms c3", "200ms\nslow 6ms c2", "790ms\nslow 6ms c3") + "after 6s", ""},
	{"one caller that gives up the first", "c1 me a0 0 left later\nafter 800ms\nlater\n" + each("after %s me a0 503 injected", "200ms\nslow 6ms c2", "980ms\nslow 6ms c2", "990ms\nslow 6ms c2", "980ms\nslow 6ms c2", "995ms\nslow 6ms c2") + "after 6s", "repeated_failure[3 4 5 6 7]"},
	{"one caller that gives up the first at once, as a page does that renders twice", "c1 me a0 0 left later\nc2 me a0 503 injected\nlater\n" + each("after %s me a0 503 injected", "200ms\nslow 6ms c2", "980ms\nslow 6ms c2", "990ms\nslow 6ms c2", "980ms\nslow 6ms c2", "995ms\nslow 6ms c2") + "after 6s", "repeated_failure[3 4 5 6 7 8]"},
	{"three callers of four tries each, one of whom waits for an answer for as long as the others pause", "c2 me a0 503 injected later\nslow 6ms c1 me a0 | c3 me a0 503 injected\nafter 992ms\nlater\nafter 5ms\nslow 6ms c1 me a0 | c3 me a0 503 injected\nafter 990ms\n" +
		"slow 6ms c1 me a0 503 injected\nafter 990ms\nslow 6ms c1 me a0 | c3 me a0 503 injected\nafter 990ms\nslow 6ms c1 me a0 503 injected\nafter 2990ms\nslow 6ms c1 me a0 | c3 me a0 503 injected\nafter 990ms\nslow 6ms c1 me a0 503 injected\nafter 6s", ""},
	{"a service that goes on by a timer while its refresh may not be tried again", expired + "slow 5ms c1 refresh r0 503 injected\n" + loop(5, "after 600ms\nslow 6ms c1 me a0 401 token_expired") + "c1 refresh r0 200\nc1 me a1 200\nafter 3s",
		"repeated_failure[2 4 5 6 7 8]"},
	{"a service that goes on by a timer while its refresh, which a fault cut, may not be tried again", "advance 15m\nslow 6ms c1 me a0 401 token_expired\nslow 5ms c1 refresh r0 503 lost\nafter 594ms\n" +
		loop(4, "slow 6ms c2 me a0 401 token_expired\nafter 600ms") + "c2 refresh r0 200\nc2 me a1 200\nafter 3s", "repeated_failure[2 4 5 6 7]"},
	{"three over one connection, who try once more when their refresh failed", expired + loop(2, "slow 6ms c1 me a0 401 token_expired") + "slow 6ms c1 refresh r0 503 injected\nafter 600ms\n" + loop(3, "slow 6ms c1 me a0 401 token_expired") +
		"c1 refresh r0 200\n" + loop(3, "c1 me a1 200") + "after 3s", ""},
	{"a loop that goes on behind a refresh that failed", expired + "c1 refresh r0 503 injected\n" + loop(6, "c1 me a0 401 token_expired\nafter 300ms") + "\nafter 3s",
		"repeated_failure[2 4 5 6 7 8 9] no_refresh_after_expiry[8 9]"},
	{"a loop without a refresh", "advance 15m\n" + loop(5, "c1 me a0 401 token_expired") + "\nafter 3s", "no_refresh_after_expiry[2 3 4 5 6] repeated_failure[2 3 4 5 6]"},
	{"a loop of a script that is no browser, and a refresh that fails", expired + loop(5, "c1 me a0 401 token_expired") + "c1 refresh r0 401 token_expired\nafter 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"a loop of a script with a revoked token, and a logout", loop(6, "c1 me a0 401 token_revoked") + "c1 logout a0 204\nafter 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"the same of a page, of which Chromium sends one at a time", "browser\n" + loop(12, "c1 me a0 503 injected") + "after 3s", ""},
	{"a page that tries with pauses", "browser\n" + loop(6, "c1 me a0 503 injected\nafter 300ms"), "repeated_failure[2 3 4 5 6 7]"},
	{"a page in a loop without end", "browser\n" + loop(250, "c1 me a0 503 injected"), "repeated_failure[" + numbers(2, 251) + "]"},
	{"a page that posts the same wrong password", "browser\n" + loop(6, "c1 login:POST - 401 invalid_credentials injected"), "repeated_failure[2 3 4 5 6 7]"},
	{"a loop around a refresh that fails", "advance 15m\n" + loop(5, "c1 me a0 401 token_expired\nc1 refresh r0 401 token_revoked") + "after 3s",
		"repeated_failure[" + numbers(2, 11) + "]"},
	{"callers in a browser's queue, whose refresh fails", "browser\n" + expired + loop(5, "c1 me a0 401 token_expired") + "c1 refresh r0 503 injected", ""},
	{"callers in a browser's slow queue, whose refresh fails behind them", "browser\n" + expired + loop(6, "slow 250ms c1 me a0 401 token_expired") + "c1 refresh r0 503 injected", ""},
	{"three widgets of a page that each try four times, while the server is down", "browser\nc1 me a0 200\nafter 500ms\n" + each("slow 5ms %s me a0 0 lost", "c1", "c2", "c3", "c4") + "after 990ms\n" +
		each("slow 5ms %s me a0 0 lost", "c5", "c6", "c7") + "after 1990ms\n" + each("slow 5ms %s me a0 0 lost", "c8", "c9", "c10") + "after 3990ms\n" + each("slow 5ms %s me a0 0 lost", "c11", "c12", "c13") + "after 9s", ""},
	{"a widget of a page that tries six times, while the server is down", "browser\nc1 me a0 200\nafter 500ms\nc1 me a0 0 lost\n" + each("c%s me a0 0 lost\nafter 300ms", "2", "3", "4", "5", "6", "7") + "after 9s",
		"repeated_failure[3 4 5 6 7 8 9]"},
	{"callers in a browser's queue, and a logout", "browser\n" + expired + loop(5, "c1 me a0 401 token_expired") + "c1 logout a0 204", ""},
	{"tries one after the other, and a refresh that fails", "advance 15m\n" + loop(5, "c1 me a0 401 token_expired\nafter 300ms") + "c1 refresh r0 503 injected" + "\nafter 3s",
		"repeated_failure[2 3 4 5 6]"},
	{"callers in a queue that wait as they are asked", loop(8, "c1 me a0 503 injected wait=1s") + "after 1s\n" + loop(8, "c1 me a0 200"), ""},
	{"a caller that waits longer each time than it is asked", loop(6, "c1 me a0 503 injected wait=1s\nafter 2500ms"), ""},
	{"a loop, and other work a little later", loop(6, "c1 me a0 503 injected") + "after 250ms\n" + loop(6, "c1 me a0 200"), "repeated_failure[2 3 4 5 6 7]"},
	{"a loop with a rest", loop(2, loop(5, "c1 me a0 503 injected")+"after 1s"), "repeated_failure[2 3 4 5 6 7 8 9 10 11]"},
	{"callers in a queue that each try five times", loop(5, loop(5, "c1 me a0 503 injected")+"after 250ms") + loop(5, "c1 me a0 200"),
		"repeated_failure[2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26]"},
	{"a loop, and other work at once", loop(5, "c1 me a0 503 injected") + loop(8, "c1 me a0 200"), "repeated_failure[2 3 4 5 6]"},
	{"a worker that begins with the old pair each time, over a pool of two connections", "c1 me a0 200 | c2 listing a0 200\nadvance 15m\nc1 me a0 401 token_expired\nc2 refresh r0 200\nc1 me a1 200\n" +
		loop(6, "c1 me a0 401 token_expired\nafter 5ms\nc2 refresh r0 401 token_reused"), "two_refreshes[5 8 10 12 14 16 18]"},
	{"a loop over three files", loop(2, "c1 file/1 a0 503 injected\nc1 file/2 a0 503 injected\nc1 file/3 a0 503 injected"), "repeated_failure[2 3 4 5 6 7]"},
	{"a loop over three files without a token", loop(2, "c1 file/1 - 503 injected\nc1 file/2 - 503 injected\nc1 file/3 - 503 injected"), "repeated_failure[2 3 4 5 6 7]"},
	{"a page that asks for three files that are not there, twice", loop(2, "c1 file/1 a0 404\nc1 file/2 a0 404\nc1 file/3 a0 404"), ""},
	{"a poll for a file that is not there", loop(5, "c1 file/1 a0 404\nafter 1s"), "repeated_failure[2 3 4 5 6]"},
	{"a poll for a file until it is there, and until it is gone", loop(4, "c1 file/1 a0 404\nafter 1s") + "c1 file/1 a0 200\n" + loop(4, "c1 file/1 a0 404\nafter 1s"), ""},
	{"a loop with a dead token over three files", loop(2, "c1 file/1 a0 401 token_revoked\nc1 file/2 a0 401 token_revoked\nc1 file/3 a0 401 token_revoked"), "repeated_failure[2 3 4 5 6 7]"},
	{"three files, with a success of one between", "c1 file/1 a0 404\nc1 file/2 a0 404\nc1 file/3 a0 404\nc1 file/1 a0 200\nc1 file/2 a0 404\nc1 file/3 a0 404", ""},
	{"three files in turn, of which one fails", loop(6, "c1 file/1 a0 503 injected\nc1 file/2 a0 200\nc1 file/3 a0 200\nafter 1s"), ""},
	{"four tries each for two files, and another one between", loop(4, "c1 file/1 a0 503 injected\nafter 300ms") + "c1 file/3 a0 200\n" + loop(4, "c1 file/2 a0 503 injected\nafter 300ms"), ""},
	{"three files side by side, each twice", loop(2, "c1 file/1 a0 | c2 file/2 a0 | c3 file/3 a0 503 injected\nafter 300ms"), ""},
	{"five addresses of no operation", each("c1 other/%s a0 404", "1", "2", "3", "4", "5"), ""},
	{"five times an address of no operation", loop(5, "c1 other/1 a0 404"), "repeated_failure[2 3 4 5 6]"},
	{"callers for three files in a queue, who met the end of the token and come back", expired + loop(2, "c1 file/1 a0 401 token_expired\nc1 file/2 a0 401 token_expired\nc1 file/3 a0 401 token_expired") +
		"c1 refresh r0 200\nc1 me a1 200\n" + loop(2, "c1 file/1 a1 200\nc1 file/2 a1 200\nc1 file/3 a1 200"), ""},
	{"a client with two connections that asks one thing after the other", "c1 me a0 200\nc2 me a0 200\n" + loop(5, "c1 me a0 503 injected\nc2 me a0 503 injected\nafter 101ms"),
		"repeated_failure[4 5 6 7 8 9 10 11 12 13]"},
	{"a client that takes turns with two new connections", "open c2\nopen c3\n" + loop(4, "slow 5ms c2 me a0 503 injected\nslow 5ms c3 me a0 503 injected") + "slow 5ms c2 me a0 503 injected",
		"repeated_failure[2 4 6 8 10]"},
	{"two callers out of step, five tries each", "c1 me a0 503 injected\nafter 60ms\nc2 me a0 503 injected\nafter 60ms\n" +
		loop(4, "c1 me a0 | c2 me a0 503 injected\nafter 120ms"), "repeated_failure[2 3 4 5 6 7 8 9 10 11]"},
	{"a slow loop, by chance twice three times", loop(2, loop(3, "c1 me a0 503 injected")+"after 200ms"), "repeated_failure[2 3 4 5 6 7]"},
	{"a loop with a dead token, and a login", loop(6, "c1 me a0 401 token_revoked") + "c1 login - 200 other\nc1 me b0 200\nafter 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"a crowd, and a login", loop(4, "c1 me a0 | c2 me a0 401 token_revoked") + "c1 me a0 401 token_revoked\nc1 login - 200 other\n" + loop(9, "c1 me b0 200"), ""},
	{"a loop with pauses, and the like behind it", loop(6, "c1 me a0 503 injected\nafter 90ms") + loop(6, "c1 me a0 200\nafter 90ms"), "repeated_failure[2 3 4 5 6 7]"},
	{"errors with the status of a success", loop(5, "c1 me a0 200 token_malformed\nafter 200ms"), "repeated_failure[2 3 4 5 6]"},
	{"a client that comes back each time as it is asked", loop(6, "c1 me a0 503 injected wait=1s\nafter 1s") + "c1 me a0 200\nafter 1s", ""},
	{"a loop that does not wait as it is asked", loop(6, "c1 me a0 503 injected wait=1s\nafter 900ms") + "c1 me a0 200\nafter 1s",
		"repeated_failure[2 3 4 5 6 7] retry_after_ignored[2 3 4 5 6 7 8]"},
	{"a poll with a dead token, while another client of the user logs in each time", loop(9, "c1 me a0 401 token_revoked\nafter 300ms\nc2 login - 200 other\n"+loop(4, "c2 me b0 200")),
		"repeated_failure[2 8 14 20 26 32 38 44 50]"},
	{"callers in the queue of a slow server, whose refresh has a connection of its own", "advance 15m\nc1 me a0 401 token_expired later\nafter 400ms\nlater\n" +
		"c1 me a0 401 token_expired later\nc2 refresh r0 200\nafter 400ms\nlater\n" + loop(6, "slow 400ms c1 me a0 401 token_expired") + loop(8, "c1 me a1 200"), ""},
	{"two tabs that loop, while the login of another client fails", "c9 login - 503 stranger injected\n" + loop(40, "c1 me a0 | c2 me a0 401 token_revoked") +
		"c9 login - 503 stranger injected\n" + loop(2, "c1 me a0 | c2 me a0 401 token_revoked"), "repeated_failure[" + numbers(3, 82) + " " + numbers(84, 87) + "]"},
	{"a poll of seven, while another client of the user logs in again and again", "c2 login - 200 other\n" + loop(7, "c1 me a0 401 token_revoked\nafter 200ms\nc2 login - 200 other\n"+loop(4, "c2 me b0 200")),
		"repeated_failure[3 9 15 21 27 33 39]"},
	{"one caller over two connections in turn, and a login at last", "c2 me a0 200\n" + loop(2, "c1 me a0 401 token_revoked\nafter 300ms\nc2 me a0 401 token_revoked\nafter 300ms") +
		"c1 me a0 401 token_revoked\nafter 1s\nc2 login - 200 other\nc2 me b0 200", "repeated_failure[3 4 5 6 7]"},
	{"one caller over two connections in turn, and a login over one and the next request over the other", "c2 me a0 200\n" + loop(2, "c1 me a0 401 token_revoked\nafter 300ms\nc2 me a0 401 token_revoked\nafter 300ms") +
		"c1 me a0 401 token_revoked\nafter 1s\nc2 login - 200 other\nc1 me b0 200", "repeated_failure[3 4 5 6 7]"},
	{"a browser's poll in a service that is down, where the page asked twice at first", "browser\n" + loop(2, "slow 5ms c1 me a0 503 injected") + "after 1500ms\n" + loop(5, "slow 5ms c1 me a0 503 injected\nafter 500ms") + "after 3s", "repeated_failure[2 3 4 5 6 7 8]"},
	{"widgets that poll during a slow refresh, all sent again at once, and that poll on", expired + "c2 refresh r0 200 later\n" + loop(6, "after 330ms\nslow 5ms c1 me a0 401 token_expired") + "after 200ms\nlater\n" +
		loop(7, "c1 me a1 200") + loop(7, "after 330ms\nc1 me a1 200"), ""},
	{"two polls in step during a slow refresh, all sent again at once, and that poll on", "advance 15m\nslow 5ms c1 me a0 | c2 me a0 401 token_expired\nc3 refresh r0 200 later\n" + loop(6, "after 300ms\nslow 5ms c1 me a0 | c2 me a0 401 token_expired") +
		"after 200ms\nlater\n" + loop(7, "c1 me a1 | c2 me a1 200") + loop(7, "after 300ms\nc1 me a1 | c2 me a1 200"), ""},
	{"callers a little apart, of whom all but one are sent again", expired + "c2 refresh r0 200 later\n" + loop(4, "after 20ms\nslow 5ms c1 me a0 401 token_expired") + "after 300ms\nlater\n" + loop(4, "c1 me a1 200") + "after 3s",
		""},
	{"three workers with a connection each, who begin a moment behind an answer and try four times", "slow 6ms c1 me a0 503 injected\nafter 14ms\nslow 6ms c2 me a0 503 injected\nslow 6ms c3 me a0 503 injected\nafter 380ms\n" +
		each("slow 6ms %s", "c2 me a0 503 injected\nafter 170ms", "c1 me a0 503 injected\nafter 15ms", "c3 me a0 503 injected\nafter 470ms", "c3 me a0 503 injected\nafter 260ms",
			"c1 me a0 503 injected\nafter 60ms", "c2 me a0 503 injected\nafter 1100ms", "c1 me a0 503 injected\nafter 250ms", "c2 me a0 503 injected\nafter 150ms", "c3 me a0 503 injected\nafter 6s"), ""},
	{"three processes that begin a few milliseconds apart, each with two tries", each("slow 6ms %s", "c1 me a0 503 injected\nafter 7ms", "c2 me a0 503 injected\nafter 1ms", "c3 me a0 503 injected\nafter 80ms",
		"c4 me a0 503 injected\nafter 7ms", "c5 me a0 503 injected\nafter 1ms", "c6 me a0 503 injected\nafter 3s"), ""},
	{"one query, and two others 60 ms later, each with four tries", loop(4, "slow 6ms c1 me a0 503 injected\nafter 60ms\nslow 6ms c1 me a0 | c2 me a0 503 injected\nafter 900ms"), ""},
	{"one query, and two others 150 ms later, whose pauses change by chance from the third try on", loop(2, "slow 6ms c1 me a0 503 injected\nafter 150ms\nslow 6ms c1 me a0 | c2 me a0 503 injected\nafter 700ms") +
		each("slow 6ms c1 me a0 503 injected\nafter %s", "20ms", "90ms", "2200ms", "20ms", "50ms", "3s"), ""},
	{"one query, and two others 60 ms later, each with five tries", loop(5, "slow 6ms c1 me a0 503 injected\nafter 60ms\nslow 6ms c1 me a0 | c2 me a0 503 injected\nafter 900ms"), "repeated_failure[" + numbers(2, 16) + "]"},
	{"one caller that tries four times, and four times again when the test has advanced the clock", loops(4, "slow 6ms cX me a0 503 injected\nafter 16ms") + "advance 4500ms\n" + loops(4, "slow 6ms cY me a0 503 injected\nafter 16ms"), "repeated_failure[" + numbers(2, 9) + "]"},
	{"four callers who met the end of the token, and one who tries to refresh five times later, when the session is over", "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 401 token_expired\nc1 refresh r0 200\n" + each("c%s me a1 200", "1", "2", "3", "4") +
		"after 300ms\nc1 me a1 401 token_revoked\n" + loop(5, "c1 refresh r1 401 token_revoked") + "after 3s", "repeated_failure[12 13 14 15 16]"},
	{"three widgets a little apart, of whom two try once more", each("slow 5ms c1 me a0 503 injected\nafter %s", "28ms", "15ms", "300ms", "28ms", "6s"), ""},
	{"six widgets side by side in an outage, and a poll that goes on with a dead token", "slow 5ms c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 503 injected\nafter 1s\n" +
		loop(10, "slow 5ms c1 me a0 401 token_revoked\nafter 300ms") + "after 3s", "repeated_failure[2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17]"},
	{"twelve callers in the queue of one connection, behind a slow refresh", "advance 15m\n" + loop(12, "slow 5ms c1 me a0 401 token_expired") + "c2 refresh r0 200 later\nafter 2200ms\nlater\n" + loop(12, "c1 me a1 200") + "after 3s", ""},
	{"a worker that goes on with a dead token beside a page that logs in anew", "c2 me a0 200\nc1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked\nafter 20ms\nc1 login - 200 other\nc1 me b0 200\nafter 200ms\n" +
		loop(4, "slow 5ms c2 me a0 401 token_revoked\nafter 60ms") + "c1 me b0 200\n" + loop(5, "slow 5ms c2 me a0 401 token_revoked\nafter 60ms") + "c1 logout b0 204\nafter 3s", "repeated_failure[7 8 9 10 12 13 14 15 16]"},
	{"twelve callers a little apart, a connection for each request, and a refresh that is refused", strings.Replace(loops(6, "slow 6ms cX me a0 | cY me a0 401 token_revoked\nafter 3ms"), "\nafter", "\nc9 refresh r0 401 token_revoked later\nafter", 1) + "after 30ms\nlater\nafter 3s", ""},
	{"twelve callers a little apart, over two connections in turn, and a refresh that is refused", strings.Replace(loop(6, "slow 6ms c1 me a0 | c2 me a0 401 token_revoked\nafter 3ms"), "\nafter", "\nc9 refresh r0 401 token_revoked later\nafter", 1) + "after 30ms\nlater\nafter 3s", ""},
	{"two widgets a little apart, the first of whose requests is cut", each("slow 5ms c1 me a0 %s", "0 lost\nafter 33ms", "503 injected\nafter 210ms", "503 injected\nafter 33ms", "503 injected\nafter 210ms", "503 injected\nafter 33ms", "503 injected\nafter 6s"), ""},
	{"a widget a little ahead of five side by side, that pause by chance", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 200\nafter 1s\nslow 6ms c1 me a0 503 injected\nafter 2ms\nslow 9ms c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 503 injected\n" +
		each("after %s\nslow 5ms c1 me a0 503 injected", "50ms", "20ms", "20ms", "25ms", "45ms", "18ms") + "after 400ms\n" + loop(6, "c1 me a0 200"), ""},
	{"logins at equal pauses, and then as many that succeed, a call behind each", loop(5, "slow 5ms c1 login - 503 injected\nafter 50ms") + "after 400ms\n" + loop(6, "c1 login - 200\nafter 3ms\nc1 me a0 200\nafter 100ms") + "after 3s", "repeated_failure[2 3 4 5 6]"},
	{"a poll with a dead token behind a gateway, between other users", loops(6, "cX me a0 401 token_revoked\nafter 200ms\ncX me b0 200 stranger\nafter 200ms") + "after 3s", "repeated_failure[2 4 6 8 10 12]"},
	{"a poll with a dead token over three connections in turn, then a login", "c1 me a0 | c2 me a0 | c3 me a0 200\nafter 1s\n" + each("%s me a0 401 token_revoked\nafter 300ms", "c1", "c2", "c3", "c1", "c2") + "c3 login - 200 other\nc1 me b0 200\nc2 me b0 200\nafter 3s", "repeated_failure[5 6 7 8 9]"},
	{"tries that wait longer each time, over three connections in turn, then a login", "c1 me a0 | c2 me a0 | c3 me a0 200\nafter 1s\nc1 me a0 401 token_revoked\nafter 100ms\nc2 me a0 401 token_revoked\nafter 200ms\nc3 me a0 401 token_revoked\nafter 400ms\nc1 me a0 401 token_revoked\nafter 800ms\nc2 me a0 401 token_revoked\nafter 400ms\nc3 login - 200 other\nc1 me b0 200\nc2 me b0 200\nafter 3s", "repeated_failure[5 6 7 8 9]"},
	{"a poll over four connections in turn, with one pause that is shorter, then a login", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 200\nafter 1s\n" + each("%s me a0 401 token_revoked\nafter 600ms", "c1", "c2", "c3") + "c4 me a0 401 token_revoked\nafter 300ms\nc1 me a0 401 token_revoked\nafter 300ms\nc2 login - 200 other\nc3 me b0 200\nc4 me b0 200\nc1 me b0 200\nafter 3s", "repeated_failure[6 7 8 9 10]"},
	{"a poll with a token that the hub can't read, behind a gateway, between other users", each("%[1]s me x0 401 token_malformed foreign\nafter 150ms\n%[1]s me a0 200\nafter 200ms", "c2", "c4", "c6") + each("%[1]s me x0 401 token_malformed foreign\nafter 210ms\n%[1]s me b0 200 stranger\nafter 200ms", "c3", "c5", "c7") + "after 3s", "repeated_failure[2 4 6 8 10 12]"},
	{"workers that take the new token from a store, one after the other", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loops(8, "after 700ms\ncX me a0 401 token_expired\ncX me a1 200"), ""},
	{"workers with one token, of which one begins with it each time, and then takes the newer one", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loops(4, "after 700ms\ncX me a0 401 token_expired\ncX me a1 200") +
		loop(5, "after 700ms\nc2 me a0 401 token_expired\nc2 me a1 200"), ""},
	{"a poll that goes on with the token that a refresh has just given", "c1 refresh r0 200\nc1 me a1 200\n" + loop(6, "after 300ms\nc1 me a1 401 token_expired ordered") + "after 300ms\nc1 refresh r1 200\n" +
		loop(6, "c1 me a2 200\nafter 300ms"), "repeated_failure[4 5 6 7 8 9] early_refresh[2]"},
	{"a poll that tries to refresh at every third 401, in vain, until the user logs in", "advance 15m\n" + loop(3, loop(3, "slow 5ms c1 me a0 401 token_expired\nafter 200ms")+"c1 refresh r0 503 injected") +
		"after 2500ms\nc1 login - 200 other\n" + loop(10, "c1 me b0 200\nafter 200ms"), "repeated_failure[2 3 4 6 7 8 10 11 12]"},
	{"refreshes in a loop, an hour after as many 401s", loop(5, "c1 me a0 401 token_revoked\nafter 6s") + "advance 1h\n" + loop(5, "c1 refresh r0 401 token_revoked"), "repeated_failure[7 8 9 10 11]"},
	{"a wrong password over a new connection each time, beside a client that keeps its own", "after 300ms\nc3 login - 200 other\nafter 20ms\n" + loops(5, "cX login:POST - 401 invalid_credentials injected\nafter 300ms\nc3 me b0 200"), "repeated_failure[3 5 7 9 11]"},
	{"two callers side by side, each in a loop, and a logout", "after 300ms\nc1 me a0 | c2 me a0 200\n" + loop(12, "slow 5ms c1 me a0 | c2 me a0 401 token_revoked\nafter 60ms") + "c1 logout a0 204", "repeated_failure[" + numbers(4, 27) + "]"},
	{"two callers side by side, each of whom waits longer each time, and a logout", "after 300ms\nc1 me a0 | c2 me a0 200\n" + each("after %s\nslow 6ms c1 me a0 | c2 me a0 401 token_revoked", "100ms", "50ms", "98ms", "200ms", "400ms", "800ms", "1600ms") + "c1 logout a0 204", "repeated_failure[" + numbers(4, 17) + "]"},
	{"a poll that uses the new token once, and then the old one, and the new one again", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loop(6, "after 150ms\nslow 5ms c1 me a0 401 token_expired") + loop(8, "after 150ms\nc1 me a1 200") + "after 3s",
		"repeated_failure[2 5 6 7 8 9 10]"},
	{"a busy poll of one caller through an outage", loop(14, "slow 5ms c1 me a0 503 injected\nafter 20ms") + loop(14, "c1 me a0 200\nafter 20ms") + "after 3s", "repeated_failure[" + numbers(2, 15) + "]"},
	{"two polls side by side that go on with the expired token, until the refresh works", "advance 15m\n" + loop(6, "slow 5ms c1 me a0 | c2 me a0 401 token_expired\nafter 300ms") + "c1 refresh r0 200\n" + loop(6, "c1 me a1 | c2 me a1 200\nafter 300ms"),
		"repeated_failure[" + numbers(2, 13) + "]"},
	{"a caller that waits longer each time, and whose library sends again what was cut", each("slow 5ms %s", "c1 me a0 503 injected\nafter 60ms", "c1 me a0 503 injected\nafter 120ms", "c1 me a0 503 injected\nafter 240ms",
		"c1 me a0 0 lost\nafter 1ms", "c3 me a0 503 injected\nafter 480ms", "c3 me a0 503 injected\nafter 960ms", "c3 me a0 503 injected\nafter 6s"), "repeated_failure[2 3 4 5 6 7 8]"},
	{"workers with one token that log in anew, one after the other", loops(6, "cX me a0 401 token_revoked\ncX login - 200 other\ncX me b0 200\nafter 1s"), ""},
	{"callers over one connection, and one login for all", "c1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked\nc1 login - 200 other\nc1 me b0 200\n" + loop(20, "c1 me a0 401 token_revoked\nc1 me b0 200"), ""},
	{"pages that look for a session at each load before the login", loop(6, "c1 refresh - 401 token_missing\nc1 login - 200 other\nc1 me b0 200\nafter 500ms"), ""},
	{"threads over two connections of a slow server, each sent again at once", "advance 15m\nslow 300ms c1 me a0 | c2 me a0 401 token_expired\nslow 20ms c1 refresh r0 200\n" +
		loop(9, "slow 300ms c1 me a1 | c2 me a1 200\nslow 300ms c1 me a0 | c2 me a0 401 token_expired") + "slow 300ms c1 me a1 | c2 me a1 200\nafter 3s", ""},
	{"a download in parts, each right at the second try", loop(6, "c1 file a0 503 injected\nafter 200ms\nc1 file a0 206\n") + "after 3s", ""},
	{"a download that goes on each time where it was cut", "c1 file a0 200 malformed\n" + each("c1 file a0 206 malformed query=%s\nafter 200ms", "1", "2", "3", "4", "5", "6") + "c1 file a0 206 query=7", ""},
	{"a download that asks for the same part each time", loop(6, "c1 file a0 206 malformed query=1\nafter 200ms"), "repeated_failure[2 3 4 5 6 7]"},
	{"a download that tries each part four times", loop(4, "c1 file a0 200 malformed\nafter 200ms") + loop(4, "c1 file a0 206 malformed query=1\nafter 200ms") + "c1 file a0 206 query=2", ""},
	{"a download of which a part comes at every other try", "c1 file a0 200 malformed\n" + each("c%[1]s file a0 206 lost query=%[1]s\nafter 200ms\nc%[1]s0 file a0 206 malformed query=%[1]s\nafter 200ms", "2", "3", "4", "5", "6", "7") + "c1 file a0 206 query=8\nafter 3s", ""},
	{"a download of which nothing more comes", "c1 file a0 200 malformed\n" + loops(6, "cX file a0 206 lost\nafter 200ms") + "c1 file a0 206\nafter 3s", "repeated_failure[2 3 4 5 6 7 8]"},
	{"a search that each key begins anew, while one refresh is under way", "advance 15m\nc1 me a0 401 token_expired query=a\nc2 refresh r0 200 later\n" + each("after 100ms\nc1 me a0 401 token_expired query=%s", "b", "c", "d", "e", "f") + "later\nc1 me a1 200 query=f\nafter 3s", "not_repeated[2 3 4 5 6 7]"},
	{"a search with a letter taken back, while one refresh is under way", "advance 15m\nc1 me a0 401 token_expired query=a\nc2 refresh r0 200 later\n" + each("after 100ms\nc1 me a0 401 token_expired query=%s", "b", "c", "b", "d", "e") + "later\nc1 me a1 200 query=e\nafter 3s", "not_repeated[2 3 5 6 7]"},
	{"a search typed at equal pauses that goes on behind the refresh", "advance 15m\nc1 me a0 401 token_expired query=a\nc2 refresh r0 200 later\n" + each("after 100ms\nc1 me a0 401 token_expired query=%s", "b", "c", "d", "e", "f") + "later\n" + each("c1 me a1 200 query=%s\nafter 100ms", "f", "g", "h", "i", "j", "k", "l") + "after 3s", ""},
	{"a suite that registers its user, who is there, before each login", loop(6, "c1 register:POST - 409 username_taken injected\nc1 login:POST - 200 other"), ""},
	{"callers in a browser's queue, whose login fails", "browser\n" + loop(6, "c1 me a0 401 token_revoked") + "c1 login - 503 injected\nafter 3s", ""},
	{"callers in a browser's queue, whose refresh fails, while another device logs in", "browser\n" + expired + loop(6, "c1 me a0 401 token_expired") +
		"c1 refresh r0 503 injected\nc2 login - 200 other\nc2 me b0 200\nafter 3s", ""},
	{"a loop with the old token right behind a refresh", "c1 refresh r0 200\n" + loop(6, "c1 me a0 401 token_expired") + "after 3s", "repeated_failure[3 4 5 6 7 8] early_refresh[2]"},
	{"two callers, some of whose answers at the expiry were cut", "advance 15m\n" + loop(3, "c1 me a0 401 lost\nafter 20ms") + loop(2, "c1 me a0 401 token_expired") +
		"c1 refresh r0 200\nc1 me a1 200\nc1 me a1 200\nafter 3s", ""},
	{"the callers of a race that has ended the session", expired + "c1 refresh r0 200\nc2 refresh r0 401 token_reused\n" + loop(8, "c1 me a1 | c2 me a1 401 token_revoked"), "two_refreshes[3 4]"},
	{"callers in a queue who each refresh, of whom only the first gets new tokens", expired + loop(5, "c1 me a0 401 token_expired") + "c1 refresh r0 200\n" +
		loop(5, "c1 refresh r0 401 token_reused") + "c1 me a1 401 token_revoked\nafter 3s", "two_refreshes[8 9 10 11 12 13]"},
	{"the callers of a race that has ended the session, and a login", "advance 15m\n" + loop(5, "c1 me a0 401 token_expired") + "c1 refresh r0 200\n" +
		loop(4, "c1 refresh r0 401 token_reused") + loop(3, "c1 me a1 | c2 me a1 401 token_revoked") + "c1 login - 200 other\nafter 3s", "two_refreshes[7 8 9 10 11]"},
	{"seventy callers of a race that has ended the session", expired + "c1 refresh r0 200\nc2 refresh r0 401 token_reused\n" + loop(35, "c1 me a0 | c2 me a0 401 token_revoked"), "two_refreshes[3 4]"},
	{"four callers side by side, who try again over new connections", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 503 injected\n" + loops(6, "after 150ms\ncX me a0 503 injected\nafter 220ms\ncY me a0 503 injected"), ""},
	{"four callers side by side, whose connections then take turns", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 503 injected\n" +
		loop(3, "after 50ms\nc1 me a0 503 injected\nafter 50ms\nc2 me a0 503 injected\nafter 50ms\nc3 me a0 503 injected\nafter 50ms\nc4 me a0 503 injected"), ""},
	{"a loop behind a race that has ended the session", expired + "c1 refresh r0 200\nc2 refresh r0 401 token_reused\n" + loop(8, "c1 me a1 401 token_revoked\nafter 300ms") + "after 3s",
		"two_refreshes[3 4] repeated_failure[5 6 7 8 9 10 11 12]"},
	{"the old access token, and the new one in the end", "policy keep\nadvance 15m\n" + loop(6, "c1 me a0 401 token_expired\nc1 refresh r0 200") + "c1 me a6 200\nafter 3s",
		"repeated_failure[2 4 6 8 10 12]"},
	{"a suite that types a wrong password before the right one", loop(6, "c1 login:POST - 401 invalid_credentials injected\nc1 login:POST - 200 other"), ""},
	{"pages that ask without a token over a connection and log in over another", loops(6, "cX me - 401 token_missing\ncY login - 200 other\ncY me b0 200"), ""},
	{"a page that tries over two connections in turn", "browser\nopen c2\n" + loop(4, "after 283ms\nc1 me a0 404 injected\nafter 283ms\nc2 me a0 404 injected\n"), "repeated_failure[2 3 4 5 6 7 8 9]"},
	{"a page that tries with pauses, and then refreshes", "browser\nadvance 15m\n" + loop(12, "c1 me a0 401 token_expired\nafter 70ms\n") + "c1 refresh r0 200\nc1 me a1 200\nafter 3s", "repeated_failure[" + numbers(2, 13) + "]"},
	{"a loop right before the policy is changed", loop(10, "c1 me a0 401 token_revoked\nafter 1s\n") + "policy allow\nafter 3s", "repeated_failure[" + numbers(2, 11) + "]"},
	{"a page that polls, then tries to refresh in vain, and polls once more", "browser\n" + loop(7, "c1 me a0 401 token_revoked\nafter 3s\n") + "c1 refresh r0 401 token_revoked\nc1 me a0 401 token_revoked\nafter 3s", "repeated_failure[2 3 4 5 6 7 8 10]"},
	{"a loop over two connections in turn, and a login later", "c1 me a0 200 | c2 listing a0 200\n" + loop(3, "after 300ms\nc1 me a0 500 injected\nafter 300ms\nc2 me a0 500 injected\n") + "after 3s\nc1 login - 200 other\nc1 me b0 200\nafter 3s",
		"repeated_failure[4 5 6 7 8 9]"},
	{"a page that meets the error of its login time and again", "browser\n" + loop(6, "c3 login:POST - 503 injected\nafter 500ms"), "repeated_failure[2 3 4 5 6 7]"},
	{"three widgets that begin 25 ms apart, each with two tries", loop(2, loop(2, "slow 5ms c1 me a0 503 injected\nafter 20ms")+"slow 5ms c1 me a0 503 injected\nafter 150ms") + "after 3s", ""},
	{"a suite that types a wrong password before the right one, over connections in turn", "open c2\nafter 110ms\nopen c3\nafter 110ms\nopen c4\n" + loop(3, each("c2 login:POST - 401 invalid_credentials injected pool\nc%s login:POST - 200 other pool\nafter 150ms", "3", "4")) + "after 3s", ""},
	{"callers that log in side by side, and are served over some of their connections", "after 200ms\nc2 login:POST - | c3 login:POST - | c4 login:POST - | c5 login:POST - | c6 login:POST - | c7 login:POST - | c8 login:POST - | c9 login:POST - 503 injected\nafter 39ms\n" +
		each("c%s login:POST - 503 injected\nafter 9ms", "10", "2", "11", "12", "5", "13", "14", "15") + "after 60ms\n" + each("c%s login:POST - 200\nafter 9ms", "2", "3", "4") + each("c%s login:POST - 200 other\nafter 9ms", "5", "6", "13") + "c8 login:POST - 200\nafter 9ms\nc14 login:POST - 200 other", ""},
	{"four callers side by side, with pauses that change by chance", "c1 me a0 200 | c2 me a0 200 | c3 me a0 200 | c4 me a0 200\nafter 200ms\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 503 injected\n" +
		each("after %s\nc1 me a0 503 injected", "14ms", "33ms", "11ms", "86ms", "29ms", "16ms", "44ms", "40ms", "335ms", "11ms", "145ms", "203ms") + "after 3s", ""},
	{"six callers side by side with slow answers, four tries each with pauses that grow and change by chance", "slow 200ms " + together("c1 c2 c3 c4 c5 c6") + "after 800ms\nslow 200ms c1 me a0 | c2 me a0 503 injected later\nafter 33ms\nc3 me a0 | c4 me a0 503 injected later\nafter 27ms\nc5 me a0 503 injected later\nafter 9ms\nc6 me a0 503 injected later\nafter 40ms\nlater\n" +
		"after 1300ms\n" + "slow 200ms c1 me a0 | c2 me a0 | c3 me a0 503 injected\nafter 175ms\nslow 200ms c4 me a0 | c5 me a0 | c6 me a0 503 injected\nafter 2200ms\nslow 200ms c1 me a0 | c2 me a0 | c3 me a0 503 injected\nafter 210ms\nslow 200ms c4 me a0 | c5 me a0 503 injected\nafter 300ms\nslow 200ms c6 me a0 503 injected\nafter 3s", ""},
	{"four widgets in step, seven tries each, over more connections than they need", "browser\nc1 me a0 200 | c2 me a0 200 | c3 me a0 200 | c4 me a0 200 | c5 me a0 200 | c6 me a0 200\nafter 1s\n" +
		"slow 5ms " + together("c1 c2 c3 c4") + "after 50ms\nslow 5ms " + together("c5 c6 c1 c2") + "after 104ms\nslow 5ms " + together("c3 c4 c5 c6") + "after 205ms\nslow 5ms " + together("c1 c2 c3 c4") +
		"after 399ms\nslow 5ms " + together("c5 c6 c1 c2") + "after 803ms\nslow 5ms " + together("c1 c3 c5 c6") + "after 1620ms\nslow 5ms " + together("c1 c2 c4 c6") + "after 3s", "repeated_failure[" + numbers(8, 35) + "]"},
	{"two callers that log in side by side, and are served over the one connection that they still use", "after 200ms\nc2 login:POST - | c3 login:POST - 503 injected\n" +
		each("after %s\nc2 login:POST - 503 injected", "170ms", "63ms", "182ms", "332ms") + "after 850ms\nc2 login:POST - 200\nc2 me a0 200\nafter 130ms\nc2 login:POST - 200 other\nc2 me b0 200", ""},
	{"a client that takes turns with two connections, of which one was opened behind another client's", "c2 login - 200 other\nc2 me b0 200\nc3 me b0 200\nafter 300ms\nc4 me b0 200\n" + loop(3, "c3 me - 401 token_missing\nafter 200ms\nc4 me - 401 token_missing\nafter 200ms"), "repeated_failure[6 7 8 9 10 11]"},
	{"callers side by side, whose session ends while they pause", "c1 me a0 200 | c2 me a0 200 | c3 me a0 200 | c4 me a0 200 | c5 me a0 200\nafter 1s\n" + together("c1 c2 c3 c4 c5") + "after 399ms\nc1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked\nafter 220ms\n" +
		each("c1 me a0 401 token_revoked\nafter %s", "14ms", "59ms", "45ms", "900ms"), ""},
	{"two callers that log in side by side, one over a new connection, and are served over the other", "c1 me a0 200\nafter 400ms\nc1 login:POST - | c3 login:POST - 503 injected\n" +
		each("after %s\nc1 login:POST - 503 injected", "170ms", "63ms", "182ms", "332ms") + "after 850ms\nc1 login:POST - 200\nc1 me a0 200\nafter 130ms\nc1 login:POST - 200 other\nc1 me b0 200", ""},
	{"a client that asks over a new connection each time", loops(6, "cX me - 401 token_missing\nafter 500ms"), "repeated_failure[2 3 4 5 6 7]"},
	{"a client without a token that takes turns with two connections", "c3 listing - 200 | c4 listing - 200\n" + loop(3, "c3 me - 401 token_missing\nafter 200ms\nc4 me - 401 token_missing\nafter 200ms"), "repeated_failure[4 5 6 7 8 9]"},
	{"a loop beside a long poll, and then a login", "c2 listing a0 200 later\n" + loop(8, "c1 me a0 401 token_revoked\nafter 300ms") + "later\nc1 login - 200 other\n" + loop(20, "c1 me b0 200\nafter 150ms"),
		"repeated_failure[3 4 5 6 7 8 9 10]"},
	{"two widgets that begin 20 ms apart, each with four tries", "c1 me a0 500 injected\nafter 20ms\nc1 me a0 500 injected\nafter 80ms\nc1 me a0 500 injected\nafter 20ms\nc1 me a0 500 injected\n" +
		"after 180ms\nc1 me a0 500 injected\nafter 20ms\nc1 me a0 500 injected\nafter 380ms\nc1 me a0 500 injected\nafter 20ms\nc1 me a0 500 injected\nafter 3s", ""},
	{"eight tries with the same pause", loop(8, "c1 me a0 500 injected\nafter 20ms") + "after 3s", "repeated_failure[2 3 4 5 6 7 8 9]"},
	{"eight tries with pauses that double", "c1 me a0 500 injected\nafter 5ms\nc1 me a0 500 injected\nafter 10ms\nc1 me a0 500 injected\nafter 20ms\nc1 me a0 500 injected\nafter 40ms\n" +
		"c1 me a0 500 injected\nafter 80ms\nc1 me a0 500 injected\nafter 160ms\nc1 me a0 500 injected\nafter 320ms\nc1 me a0 500 injected\nafter 3s", "repeated_failure[2 3 4 5 6 7 8 9]"},
	{"callers over two connections, each served at the second try", loop(6, "c1 me a0 | c2 me a0 503 injected") + "after 1s\n" + loop(6, "c1 me a0 | c2 me a0 200"), ""},
	{"callers over two connections, one of whom tries again", loop(6, "c1 me a0 | c2 me a0 503 injected") + "after 1s\nc1 me a0 200", "repeated_failure[" + numbers(2, 13) + "]"},
	{"a page that refreshes in vain, tries again at once, and polls", "browser\nc1 me a0 200\nc1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked\nc1 me a0 401 token_revoked\n" + loop(6, "after 700ms\nc1 me a0 401 token_revoked") + "after 3s",
		"repeated_failure[3 5 6 7 8 9 10 11]"},
	{"a poll over two connections in turn, and a login a minute later", "c1 me a0 200 | c2 listing a0 200\n" + loop(4, "after 1s\nc1 me a0 401 token_revoked\nafter 1s\nc2 me a0 401 token_revoked\n") + "after 60s\nc1 login - 200 other\nc1 me b0 200\nafter 3s",
		"repeated_failure[4 5 6 7 8 9 10 11]"},
	{"a poll over two connections in turn, and a login at once", "c1 me a0 200 | c2 listing a0 200\n" + loop(4, "after 1s\nc1 me a0 401 token_revoked\nafter 1s\nc2 me a0 401 token_revoked\n") + "c2 login - 200 other\nc2 me b0 200\nafter 3s",
		"repeated_failure[4 5 6 7 8 9 10 11]"},
	{"a poller that tries five times each time", loops(3, loop(5, "c1 me a0 503 injected\nafter 100ms")+"after 2s"), "repeated_failure[" + numbers(2, 16) + "]"},
	{"two widgets 30 ms apart that pause longer each time, by chance a little more", "c1 me a0 503 injected\nafter 30ms\nc1 me a0 503 injected\nafter 1100ms\nc1 me a0 503 injected\nafter 90ms\n" +
		"c1 me a0 503 injected\nafter 1950ms\nc1 me a0 503 injected\nafter 300ms\nc1 me a0 503 injected", ""},
	{"a poller that tries twice each time, by chance a little later", loop(2, "c1 me a0 503 injected\nafter 30ms\nc1 me a0 503 injected\nafter 1100ms\nc1 me a0 503 injected\nafter 90ms\n"+
		"c1 me a0 503 injected\nafter 950ms\n") + "c1 me a0 503 injected\nafter 150ms\nc1 me a0 503 injected", "repeated_failure[" + numbers(2, 11) + "]"},
	{"two widgets that load at once and pause longer each time, by chance a little more", "c1 me a0 | c2 me a0 503 injected\nafter 1029ms\nc1 me a0 503 injected\nafter 139ms\nc2 me a0 503 injected\nafter 1920ms\n" +
		"c1 me a0 503 injected\nafter 131ms\nc2 me a0 503 injected", ""},
	{"two widgets 30 ms apart, one of which comes again after a pause", loop(4, "c1 me a0 503 injected\nafter 30ms\nc1 me a0 503 injected\nafter 1s") + "after 7s\n" +
		loop(4, "c1 me a0 503 injected\nafter 1s"), ""},
	{"five widgets that load one after the other and each try twice", loop(2, "c1 me a0 503 injected\nafter 36ms\nc1 me a0 503 injected\nafter 20ms\nc1 me a0 503 injected\nafter 39ms\nc1 me a0 503 injected\nafter 22ms\nc1 me a0 503 injected\nafter 900ms"), ""},
	{"a poller that tries five times at once each time", loops(3, loop(5, "slow 5ms c1 me a0 503 injected")+"after 2s"), "repeated_failure[" + numbers(2, 16) + "]"},
	{"five tries at regular distances, and more work later", loop(5, "slow 5ms c1 me a0 503 injected\nafter 80ms") + "after 500ms\n" + loop(5, "c1 me a0 200\nafter 80ms"), "repeated_failure[2 3 4 5 6]"},
	{"three callers that are each served at the third try", loop(2, "slow 5ms c1 me a0 503 injected\nafter 11ms\nslow 5ms c1 me a0 503 injected\nafter 24ms\nslow 5ms c1 me a0 503 injected\nafter 440ms") +
		"c1 me a0 200\nafter 18ms\nc1 me a0 200\nafter 27ms\nc1 me a0 200", ""},
	{"a poll through an outage of the refresh", expired + loop(4, "c1 refresh r0 503 injected\nafter 1s\nc1 me a0 401 token_expired\nafter 1s\nc1 me a0 401 token_expired") + "c1 refresh r0 200\n" + loop(3, "c1 me a1 200\nafter 1s"),
		"repeated_failure[2 4 5 7 8 10 11 13 14]"},
	{"a loop, and later the end of the token", "c1 me a0 200\nadvance 14m\n" + loop(8, "c1 me a0 503 injected\nafter 300ms") + "advance 2m\nc1 me a0 401 token_expired\nc1 refresh r0 503 injected\nafter 300ms\nc1 refresh r0 200\n" +
		loop(9, "c1 me a1 200\nafter 50ms"), "repeated_failure[3 4 5 6 7 8 9 10]"},
	{"three widgets that each try twice while the server is down, and then the end of the token", loop(2, "slow 5ms c1 me a0 503 injected\nafter 8ms\nslow 5ms c1 me a0 503 injected\nafter 11ms\nslow 5ms c1 me a0 503 injected\nafter 480ms") + "advance 16m\nc1 me a0 401 token_expired\nc1 refresh r0 200\n" +
		loop(3, "c1 me a1 200") + "after 9s", ""},
	{"two widgets in step that give up, and a click", loop(3, "slow 5ms c1 me a0 503 injected\nafter 14ms\nslow 5ms c1 me a0 503 injected\nafter 980ms") + "after 400ms\nc1 me a0 503 injected\nafter 9s", ""},
	{"five widgets at distances that are much alike, three tries each", loop(3, "slow 5ms c1 me a0 503 injected\nafter 9ms\nslow 5ms c1 me a0 503 injected\nafter 14ms\nslow 5ms c1 me a0 503 injected\nafter 8ms\nslow 5ms c1 me a0 503 injected\nafter 11ms\nslow 5ms c1 me a0 503 injected\nafter 900ms"), ""},
	{"four widgets, while the server comes back", "slow 5ms c1 me a0 503 injected\nafter 8ms\nslow 5ms c1 me a0 503 injected\nafter 4ms\nslow 5ms c1 me a0 503 injected\nafter 18ms\nslow 5ms c1 me a0 503 injected\nafter 370ms\nslow 5ms c1 me a0 503 injected\nafter 9ms\nslow 5ms c1 me a0 503 injected\nafter 5ms\nslow 5ms c1 me a0 200\nafter 17ms\nslow 5ms c1 me a0 503 injected\nafter 770ms\nslow 5ms c1 me a0 200\nafter 9ms\nslow 5ms c1 me a0 200\nafter 9s", ""},
	{"a poll through a short outage", loop(5, "slow 5ms c1 me a0 503 injected\nafter 100ms") + loop(9, "c1 me a0 200\nafter 100ms"), "repeated_failure[2 3 4 5 6]"},
	{"six callers that begin one after the other, and each wait as they are asked", loop(6, "slow 5ms c1 me a0 503 injected wait=1s\nafter 25ms") + "after 830ms\n" + loop(6, "c1 me a0 200\nafter 30ms"), ""},
	{"widgets that load during a slow refresh that is refused, and give up", "c1 me a0 401 token_revoked\nc9 refresh r0 401 token_revoked later\n" + loop(6, "after 25ms\nc1 me a0 401 token_revoked") + "later\nafter 3s", ""},
	{"two widgets that each try seven times while the server is down, the first time with what their library sends again", "c1 me a0 | c2 me a0 200\nafter 300ms\n" +
		"slow 5ms c1 me a0 | c2 me a0 0 lost\nslow 5ms c4 me a0 | c5 me a0 0 lost\n" + loops(6, "after 200ms\nslow 5ms cX me a0 | cY me a0 0 lost") + "after 3s", "repeated_failure[" + numbers(4, 19) + "]"},
	{"clicks in a browser, and two widgets", "browser\n" + loops(6, "after 1300ms\nc1 me a0 503 injected\nafter 400ms\n") + "c1 me a0 | c2 me a0 503 injected\nafter 3s", "repeated_failure[" + numbers(2, 9) + "]"},
	{"two callers, each of whom pauses by chance, three tries each", "c1 me a0 503 injected\nafter 22ms\nc1 me a0 503 injected\nafter 410ms\nc1 me a0 503 injected\nafter 280ms\nc1 me a0 503 injected\nafter 600ms\nc1 me a0 503 injected\nafter 190ms\nc1 me a0 503 injected\nafter 9s", ""},
	{"three callers 40 ms apart that pause by chance, four tries each", "c1 me a0 503 injected\nafter 38ms\nc1 me a0 503 injected\nafter 44ms\nc1 me a0 503 injected\nafter 350ms\nc1 me a0 503 injected\nafter 90ms\nc1 me a0 503 injected\nafter 520ms\nc1 me a0 503 injected\nafter 700ms\nc1 me a0 503 injected\nafter 60ms\nc1 me a0 503 injected\nafter 410ms\nc1 me a0 503 injected\nafter 900ms\nc1 me a0 503 injected\nafter 1300ms\nc1 me a0 503 injected\nafter 240ms\nc1 me a0 503 injected\nafter 9s", ""},
	{"callers whose first tries take longer than half of their pauses", "c1 me a0 503 injected\nafter 60ms\nc1 me a0 503 injected\nafter 50ms\nc1 me a0 503 injected\nafter 200ms\nc1 me a0 503 injected\nafter 55ms\nc1 me a0 503 injected\nafter 60ms\nc1 me a0 503 injected\nafter 195ms\nc1 me a0 503 injected\nafter 62ms\nc1 me a0 503 injected\nafter 48ms\nc1 me a0 503 injected\nafter 9s", ""},
	{"three callers that each try three times, one of whom is late each time", "c1 me a0 503 injected\nafter 12ms\nc1 me a0 503 injected\nafter 14ms\nc1 me a0 503 injected\nafter 900ms\nc1 me a0 503 injected\nafter 10ms\nc1 me a0 503 injected\nafter 60ms\nc1 me a0 503 injected\nafter 850ms\nc1 me a0 503 injected\nafter 18ms\nc1 me a0 503 injected\nafter 95ms\nc1 me a0 503 injected\nafter 9s", ""},
	{"two callers that each try five times, with pauses by chance", "c1 me a0 503 injected\nafter 22ms\nc1 me a0 503 injected\nafter 410ms\nc1 me a0 503 injected\nafter 280ms\nc1 me a0 503 injected\nafter 600ms\nc1 me a0 503 injected\nafter 190ms\nc1 me a0 503 injected\nafter 700ms\nc1 me a0 503 injected\nafter 400ms\nc1 me a0 503 injected\nafter 150ms\nc1 me a0 503 injected\nafter 900ms\nc1 me a0 503 injected\nafter 9s", "repeated_failure[" + numbers(2, 11) + "]"},
	{"a caller with a short first pause that waits longer each time", "c1 me a0 503 injected\nafter 40ms\nc1 me a0 503 injected\nafter 200ms\nc1 me a0 503 injected\nafter 390ms\nc1 me a0 503 injected\nafter 820ms\nc1 me a0 503 injected\nafter 9s", "repeated_failure[2 3 4 5 6]"},
	{"a caller that pauses by chance", "c1 me a0 503 injected\nafter 480ms\nc1 me a0 503 injected\nafter 610ms\nc1 me a0 503 injected\nafter 430ms\nc1 me a0 503 injected\nafter 590ms\nc1 me a0 503 injected\nafter 9s", "repeated_failure[2 3 4 5 6]"},
	{"clicks, at any distance", "c1 me a0 503 injected\nafter 1900ms\nc1 me a0 503 injected\nafter 700ms\nc1 me a0 503 injected\nafter 2600ms\nc1 me a0 503 injected\nafter 400ms\nc1 me a0 503 injected\nafter 9s", "repeated_failure[2 3 4 5 6]"},
	{"a poller that tries three times at once, at each of two ticks", loop(2, loop(3, "c1 me a0 503 injected")+"after 2s"), "repeated_failure[2 3 4 5 6 7]"},
	{"callers that meet the end of the token one a little after the other, whose one refresh fails for now and is then refused", "advance 15m\nc1 me a0 401 token_expired\nafter 17ms\nc1 me a0 401 token_expired\nafter 44ms\nc1 me a0 401 token_expired\nafter 23ms\nc1 me a0 401 token_expired\nafter 31ms\nc1 me a0 401 token_expired\nafter 58ms\nc1 me a0 401 token_expired\nc1 refresh r0 503 injected\nafter 500ms\nc1 refresh r0 401 token_expired\nafter 3s", ""},
	{"jobs one a little after the other, all sent again after the refresh", "advance 15m\nc1 me a0 401 token_expired\nafter 17ms\nc1 me a0 401 token_expired\nafter 44ms\nc1 me a0 401 token_expired\nafter 23ms\nc1 me a0 401 token_expired\nafter 31ms\nc1 me a0 401 token_expired\nafter 58ms\nc1 me a0 401 token_expired\nc1 refresh r0 200\n" + loop(6, "c1 me a1 200"), ""},
	{"a poll each 40 ms, whose one refresh is refused at last", "advance 15m\nc1 me a0 401 token_expired\nafter 40ms\nc1 me a0 401 token_expired\nafter 41ms\nc1 me a0 401 token_expired\nafter 40ms\nc1 me a0 401 token_expired\nafter 42ms\nc1 me a0 401 token_expired\nafter 40ms\nc1 me a0 401 token_expired\nc1 refresh r0 401 token_expired\nafter 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"a loop whose pauses are the time that other work takes", "c1 me a0 503 injected\nafter 12ms\nc1 me a0 503 injected\nslow 90ms c1 login - 200 other\nc1 me a0 503 injected\n" +
		"after 12ms\nc1 me a0 503 injected\nc1 listing - 200\nc1 me a0 503 injected", "repeated_failure[2 3 5 6 8]"},
	{"a page of a list and two widgets that load one after the other, four tries each", loop(4, "c1 listing a0 503 injected\nafter 5ms\nc1 me a0 503 injected\nafter 25ms\nc1 me a0 503 injected\nafter 460ms"), ""},
	{"one caller whose first pauses grow by chance, and whose later ones change", "slow 5ms c1 me a0 503 injected\nafter 128ms\nslow 5ms c1 me a0 503 injected\nafter 210ms\nslow 5ms c1 me a0 503 injected\nafter 233ms\nslow 5ms c1 me a0 503 injected\nafter 699ms\nslow 5ms c1 me a0 503 injected\nafter 1011ms\nslow 5ms c1 me a0 503 injected\nafter 584ms\nslow 5ms c1 me a0 503 injected\nafter 757ms\nslow 5ms c1 me a0 503 injected\nafter 9s", "repeated_failure[" + numbers(2, 9) + "]"},
	{"a caller whose pauses grow up to a limit", "slow 5ms c1 me a0 503 injected\nslow 5ms c1 me a0 503 injected\nafter 50ms\nslow 5ms c1 me a0 503 injected\nafter 100ms\nslow 5ms c1 me a0 503 injected\nafter 200ms\nslow 5ms c1 me a0 503 injected\nafter 200ms\nslow 5ms c1 me a0 503 injected\nafter 200ms\nslow 5ms c1 me a0 503 injected\nafter 200ms\nslow 5ms c1 me a0 503 injected\nafter 9s", "repeated_failure[" + numbers(2, 9) + "]"},
	{"a caller whose pauses grow up to a limit, without a retry at once", "slow 5ms c1 me a0 503 injected\nafter 100ms\nslow 5ms c1 me a0 503 injected\nafter 200ms\nslow 5ms c1 me a0 503 injected\nafter 400ms\nslow 5ms c1 me a0 503 injected\nafter 400ms\nslow 5ms c1 me a0 503 injected\nafter 400ms\nslow 5ms c1 me a0 503 injected\nafter 9s", "repeated_failure[" + numbers(2, 7) + "]"},
	{"three widgets 15 ms apart whose library sends the first retry at once", "slow 5ms c1 me a0 503 injected\nslow 5ms c1 me a0 503 injected\nafter 3ms\nslow 5ms c1 me a0 503 injected\nslow 5ms c1 me a0 503 injected\nafter 4ms\nslow 5ms c1 me a0 503 injected\nslow 5ms c1 me a0 503 injected\nafter 272ms\nslow 5ms c1 me a0 503 injected\nafter 10ms\nslow 5ms c1 me a0 503 injected\nafter 9ms\nslow 5ms c1 me a0 503 injected\nafter 9s", ""},
	{"tries at once, between which the test advances the clock", loop(2, "slow 5ms c1 me a0 503 injected") + "advance 2s\n" + loop(3, "slow 5ms c1 me a0 503 injected"), "repeated_failure[2 3 4 5 6]"},
	{"three widgets that load within 110 ms, three tries each", each("slow 5ms c1 me a0 503 injected\nafter %s", "15ms", "80ms", "500ms", "15ms", "80ms", "900ms", "15ms", "80ms", "1s"), ""},
	{"nine callers over two connections, each once", loop(4, "slow 5ms c1 me a0 | c2 me a0 503 injected") + "slow 5ms c1 me a0 503 injected", ""},
	{"widgets that load during a slow login, and come back with it", "c1 me a0 401 token_revoked\nc9 refresh r0 401 token_revoked\nc9 login - 200 other later\n" +
		loop(5, "after 150ms\nslow 5ms c1 me a0 | c2 me a0 401 token_revoked") + "later\n" + loop(6, "c1 me b0 | c2 me b0 200"), ""},
	{"by a timer with the expired token, and two refreshes", "advance 16m\n" + loop(6, "after 150ms\nslow 5ms c1 me a0 401 token_expired") + "c1 refresh r0 200\nafter 20ms\nc1 refresh r0 401 token_reused",
		"repeated_failure[2 3 4 5 6 7] two_refreshes[8 9]"},
	{"four threads over a connection each, four tries each", loop(4, each("slow 5ms c%s me a0 503 injected\nafter 31ms", "2", "3")+"after 20ms\n"+each("slow 5ms c%s me a0 503 injected\nafter 20ms", "4", "5")+"after 200ms"), ""},
	{"tests with connections of their own, each of which logs in and sends a token that is none", "c9 me a0 200\n" + each("c%[1]s me x0 401 token_malformed foreign\nc%[1]s0 login - 200 other\nc%[1]s me b0 200\nafter 300ms", "2", "3", "4", "5", "6", "7"), ""},
	{"two polls that keep their timers during a slow refresh, which is refused", "advance 16m\nslow 5ms c1 me a0 | c2 me a0 401 token_expired\nc3 refresh r0 401 token_expired later\n" + loop(5, "after 300ms\nslow 5ms c1 me a0 | c2 me a0 401 token_expired") + "later\nc1 login - 200 other\nc1 me b0 200", "repeated_failure[2 3 " + numbers(5, 14) + "]"},
	{"widgets that meet the end of the token while the refresh for another path is under way", "advance 15m\nslow 5ms c1 file a0 401 token_expired\nc1 refresh r0 200 later\n" + each("after %s\nslow 5ms c2 me a0 401 token_expired", "110ms", "190ms", "150ms", "210ms", "160ms") +
		"after 300ms\nlater\nc1 file a1 200\n" + "c1 me a1 200 | c2 me a1 200 | c3 me a1 200 | c4 me a1 200 | c5 me a1 200", ""},
	{"a test that bends the token, which its client renews each time", strings.Join([]string{bent(0), bent(1), bent(2), bent(3), bent(4), bent(5)}, ""), ""},
	{"tries with the expired token, and a second expiry right behind the refresh", "advance 16m\n" + each("slow 5ms c1 me a0 401 token_expired\nafter %s", "60ms", "120ms", "180ms", "260ms", "350ms") +
		"c1 refresh r0 200\nc1 me a1 200\nafter 20ms\nc1 me a1 401 token_expired ordered\nc1 refresh r1 200\nc1 me a2 200", "repeated_failure[2 3 4 5 6]"},
	{"replicas that each find the end of the token and refresh", "open c2\nopen c3\nopen c4\nopen c5\nadvance 16m\nslow 5ms c1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\n" +
		each("after 110ms\nslow 5ms %[1]s me a0 401 token_expired\n%[1]s refresh r0 401 token_reused", "c2", "c3", "c4", "c5"), "two_refreshes[3 6 8 10 12]"},
	{"a poll by a timer that never takes the new token, beside a slow refresh", "advance 16m\nslow 5ms c1 file a0 401 token_expired\nc1 refresh r0 200 later\n" + loop(7, "after 195ms\nslow 5ms c2 me a0 401 token_expired") + "later\nc1 file a1 200\n" +
		loop(12, "after 195ms\nslow 5ms c2 me a0 401 token_expired"), "repeated_failure[" + numbers(4, 10) + " " + numbers(12, 23) + "] not_repeated[3 10]"},
	{"two quick tries, and three more after a rest", loop(2, "slow 5ms c1 me a0 503 injected") + "after 2s\n" + loop(3, "slow 5ms c1 me a0 503 injected"), "repeated_failure[2 3 4 5 6]"},
	{"a loop of a test that advances the clock before each try, one of whose answers is slow", "slow 5ms c1 me a0 503 injected\nadvance 4s\nslow 60ms c1 me a0 503 injected\nadvance 4s\n" + loop(5, "slow 5ms c1 me a0 503 injected\nadvance 4s"), "repeated_failure[" + numbers(2, 8) + "]"},
	{"a loop with pauses, one of whose answers is slow", "slow 5ms c1 me a0 503 injected\nafter 100ms\nslow 405ms c1 me a0 503 injected\nafter 100ms\n" + loop(4, "slow 5ms c1 me a0 503 injected\nafter 100ms"), "repeated_failure[2 3 4 5 6 7]"},
	{"a poller that tries ten times at each tick, and thinks a little before each", loop(3, "slow 5ms c1 me a0 503 injected\nafter 0ms\nslow 5ms c1 me a0 503 injected\nafter 4ms\nslow 5ms c1 me a0 503 injected\nafter 1ms\nslow 5ms c1 me a0 503 injected\nafter 5ms\nslow 5ms c1 me a0 503 injected\nafter 0ms\nslow 5ms c1 me a0 503 injected\nafter 2ms\nslow 5ms c1 me a0 503 injected\nafter 6ms\nslow 5ms c1 me a0 503 injected\nafter 1ms\nslow 5ms c1 me a0 503 injected\nafter 3ms\nslow 5ms c1 me a0 503 injected\nafter 0ms\n"+"after 1s"), "repeated_failure[" + numbers(2, 31) + "]"},
	{"three quick tries and then slower ones, and more work after the one that works", "slow 5ms c1 me a0 503 injected\n" + loop(3, "after 50ms\nslow 5ms c1 me a0 503 injected\n") + "after 500ms\nslow 5ms c1 me a0 503 injected\nafter 500ms\nc1 me a0 200\nafter 10ms\nc1 me a0 200 query=2\nafter 10ms\nc1 me a0 200 query=3\nafter 10ms\nc1 me a0 200 query=4\nafter 10ms\nc1 me a0 200 query=5\nafter 10ms\nc1 me a0 200 query=6\nafter 10ms\nc1 me a0 200 query=7\nafter 3s", "repeated_failure[2 3 4 5 6]"},
	{"one caller that waits longer each time, and a click of another", "slow 5ms c1 me a0 503 injected\nafter 200ms\nslow 5ms c1 me a0 503 injected\nafter 408ms\nslow 5ms c1 me a0 503 injected\nafter 474ms\nslow 5ms c1 me a0 503 injected\nafter 334ms\nslow 5ms c1 me a0 503 injected\nafter 1614ms\nslow 5ms c1 me a0 503 injected\nafter 9s", "repeated_failure[" + numbers(2, 7) + "]"},
	{"a loop with one lull on a busy machine", "slow 5ms c1 me a0 503 injected\nslow 5ms c1 me a0 503 injected\nafter 4ms\nslow 5ms c1 me a0 503 injected\nafter 60ms\n" + loop(4, "slow 5ms c1 me a0 503 injected"), "repeated_failure[" + numbers(2, 8) + "]"},
	{"five widgets whose library sends the first retry at once", "slow 5ms c1 me a0 503 injected\nafter 1ms\nslow 5ms c1 me a0 503 injected\nafter 8ms\nslow 5ms c1 me a0 503 injected\nafter 1ms\nslow 5ms c1 me a0 503 injected\nafter 6ms\nslow 5ms c1 me a0 503 injected\nafter 1ms\nslow 5ms c1 me a0 503 injected\nafter 11ms\nslow 5ms c1 me a0 503 injected\nafter 1ms\nslow 5ms c1 me a0 503 injected\nafter 6ms\nslow 5ms c1 me a0 503 injected\nafter 1ms\nslow 5ms c1 me a0 503 injected\nafter 417ms\nslow 5ms c1 me a0 503 injected\nafter 15ms\nslow 5ms c1 me a0 503 injected\nafter 13ms\nslow 5ms c1 me a0 503 injected\nafter 18ms\nslow 5ms c1 me a0 503 injected\nafter 13ms\nslow 5ms c1 me a0 503 injected\nafter 9s", ""},
	{"two widgets that load together and pause by chance, not for long", "c1 me a0 | c2 me a0 503 injected\nafter 50ms\nslow 5ms c1 me a0 503 injected\nafter 19ms\nslow 5ms c1 me a0 503 injected\nafter 69ms\nslow 5ms c1 me a0 503 injected\nafter 74ms\nslow 5ms c1 me a0 503 injected\nafter 9s", ""},
	{"two callers that each try six times", "c1 me a0 | c2 me a0 503 injected\n" + loop(5, "after 214ms\nslow 5ms c1 me a0 503 injected\nafter 14ms\nslow 5ms c1 me a0 503 injected") + "after 3s", "repeated_failure[" + numbers(2, 13) + "]"},
	{"a loop on answers that cannot be read", loop(5, "slow 5ms c1 me a0 200 malformed"), "repeated_failure[2 3 4 5 6]"},
	{"a loop on a login whose answer is lost", each("%s login - 200 lost\nafter 300ms", "c2", "c3", "c4", "c5", "c6", "c7"), "repeated_failure[2 3 4 5 6 7]"},
	{"two workers that log in at the start, while the service is down, three tries each", loop(3, "slow 5ms c1 login - 503 injected\nafter 20ms\nslow 5ms c1 login - 503 injected\nafter 450ms"), ""},
	{"six callers that go on with the old token behind a refresh ahead of time, at two loads", "after 1s\nc1 refresh r0 200\nafter 700ms\n" + loop(2, "slow 5ms c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 401 token_expired\nafter 1200ms"), "no_refresh_after_expiry[" + numbers(9, 14) + "] early_refresh[2]"},
	{"two callers that go on with the old token behind a refresh ahead of time, at six loads", "after 1s\nc1 refresh r0 200\nafter 700ms\n" + loop(6, "slow 5ms c1 me a0 | c2 me a0 401 token_expired\nafter 1200ms"), "repeated_failure[" + numbers(3, 14) + "] no_refresh_after_expiry[" + numbers(5, 14) + "] early_refresh[2]"},
	{"a loop of 401 and a refresh that is cut, and a login at last", "advance 15m\n" + loop(6, "slow 5ms c1 me a0 401 token_expired\nafter 1ms\nc1 refresh r0 200 lost\nafter 120ms") + "after 800ms\nc1 login - 200 other\nc1 me b0 200\nafter 3s", "repeated_failure[" + numbers(2, 13) + "]"},
	{"a loop of 401 and a login that fails, until it succeeds", "advance 15m\n" + loop(5, "slow 5ms c1 me a0 401 token_expired\nafter 1ms\nslow 5ms c1 login - 503 injected\nafter 20ms") + "c1 login - 200 other\nc1 me b0 200\nafter 3s", "repeated_failure[2 4 6 8 10] repeated_failure[3 5 7 9 11]"},
	{"a loop on a login that fails, and is cut now and then", each("slow 5ms %s\nafter 300ms", "c2 login - 503 injected", "c2 login - 503 injected", "c2 login - 200 lost",
		"c3 login - 503 injected", "c3 login - 503 injected", "c3 login - 200 lost", "c4 login - 503 injected"), "repeated_failure[" + numbers(2, 8) + "]"},
	{"a readiness check by login, and a suite whose tests log in", loop(8, "slow 5ms c2 login - 503 injected\nafter 50ms") + loop(10, "c2 login - 200\nafter 100ms") + "after 3s", "repeated_failure[" + numbers(2, 9) + "]"},
	{"a login that is cut and tried again at once, until it works", loop(6, "slow 5ms c2 login - 200 lost\nafter 1ms") + "c2 login - 200\nafter 3s", ""},
	{"eight callers in the queue of one connection, a little apart, behind a refresh that takes some time", "advance 15m\nslow 5ms c1 me a0 401 token_expired\nslow 100ms c1 refresh r0 200\n" +
		each("slow 5ms c1 me a0 401 token_expired\nafter %s", "1ms", "0ms", "2ms", "1ms", "0ms", "1ms", "1ms") + loop(8, "c1 me a1 200") + "after 3s", ""},
	{"a poller that logs in anew for each 401, in an outage", loop(5, "c1 me a0 401 token_revoked\nc1 login - 503 injected\nafter 400ms") + "c1 me a0 401 token_revoked\nc1 login - 200 other\nc1 me b0 200", "repeated_failure[2 4 6 8 10 12] repeated_failure[3 5 7 9 11]"},
	{"a login that is tried until the service is up", loop(6, "slow 5ms c2 login - 503 injected\nafter 300ms") + "c2 login - 200\nc2 me a0 200\nafter 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"five widgets a little apart, four tries each, of a server that is down", loop(4, each("slow 5ms c1 me a0 200 lost\nafter %s", "14ms", "34ms", "20ms", "38ms", "800ms")), ""},
	{"a loop whose requests the library sends again by itself", loop(5, "slow 5ms c1 me a0 200 lost\nafter 1ms\nslow 5ms c2 me a0 200 lost\nafter 400ms"), "repeated_failure[2 3 4 5 6 7 8 9 10 11]"},
	{"a loop with a refused refresh for each 401, with a hiccup", "advance 15m\n" + each("slow 5ms c1 me a0 401 token_expired\nafter %s\nslow 5ms c1 refresh r0 401 token_revoked", "0ms", "7ms", "1ms", "0ms", "0ms"), "repeated_failure[" + numbers(2, 11) + "]"},
	{"five widgets a little apart that fail once, and then wait for a slow refresh", "advance 15m\n" + each("slow 5ms c1 me a0 503 injected\nafter %s", "14ms", "34ms", "20ms", "38ms", "300ms") +
		"c1 me a0 401 token_expired\nc2 refresh r0 200 later\n" + each("after %s\nslow 5ms c1 me a0 401 token_expired", "14ms", "34ms", "20ms", "38ms") + "after 200ms\nlater\n" + loop(5, "c1 me a1 200") + "after 3s", ""},
	{"a program with a connection for each request, started six times with a dead token, that logs in", each("c1%[1]s me a0 401 token_revoked\nc2%[1]s login - 200 other\nc3%[1]s me b0 200\nafter 1s", "1", "2", "3", "4", "5", "6"), ""},
	{"eight tasks with a lock that each send a refused refresh for their own 401", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 | c7 me a0 | c8 me a0 401 token_revoked\n" +
		each("slow 12ms c%s refresh r0 401 token_revoked", "1", "2", "3", "4", "5", "6", "7", "8") + "after 3s", ""},
	{"a page in a loop with another query for each try", "browser\n" + each("c1 me a0 503 injected query=%s\nafter 300ms", "1", "2", "3", "4", "5", "6") + "after 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"a client whose calls each begin with its first token, refresh and succeed", "advance 15m\n" + "c1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 1500ms\nc1 me a0 401 token_expired\nc1 refresh r1 200\nc1 me a2 200\nafter 1500ms\n" +
		"c1 me a0 401 token_expired\nc1 refresh r2 200\nc1 me a3 200\nafter 1500ms\nc1 me a0 401 token_expired\nc1 refresh r3 200\nc1 me a4 200\nafter 1500ms\n" +
		"c1 me a0 401 token_expired\nc1 refresh r4 200\nc1 me a5 200\nafter 1500ms\nc1 me a0 401 token_expired\nc1 refresh r5 200\nc1 me a6 200\nafter 3s", "two_refreshes[3 6 9 12 15 18]"},
	{"a suite over two connections in turn, whose tests each send a token that is none, log in and succeed", "c2 me a0 200\nc1 me a0 200\n" + loop(6, "c1 me x0 401 foreign\nc2 login - 200\nc1 me a0 200\nc2 me a0 200\nafter 50ms"), ""},
	{"calls that begin with an old token, find the newer one in a store, and succeed", "advance 15m\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 1s\n" + loop(6, "c1 me a0 401 token_expired\nc1 me a1 200\nafter 1s"), ""},
	{"a loop that goes on until the token has ended", "advance 15m\n" + loop(5, "slow 5ms c1 me a0 503 injected\nafter 300ms") + "c1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", "repeated_failure[2 3 4 5 6]"},
	{"four tries, and the end of the token", "advance 15m\n" + loop(4, "slow 5ms c1 me a0 503 injected\nafter 300ms") + "c1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", ""},
	{"two widgets that try four times, and meet the end of the token", "advance 15m\n" + each("slow 5ms c1 me a0 | c2 me a0 503 injected\nafter %s", "100ms", "200ms", "400ms", "1s") + "c1 me a0 | c2 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 | c2 me a1 200\nafter 3s", ""},
	{"a tight loop that the machine holds up", loop(6, "slow 5ms c1 me a0 503 injected\nafter 18ms") + "after 180ms\n" + loop(14, "slow 5ms c1 me a0 503 injected\nafter 18ms"), "repeated_failure[" + numbers(2, 21) + "]"},
	{"three tries, and two more behind the end of the token", "advance 15m\n" + loop(3, "slow 5ms c1 me a0 503 injected\nafter 300ms") + loop(2, "c1 me a0 401 token_expired\nafter 30ms") + "c1 refresh r0 200\nc1 me a1 200\nafter 3s", "repeated_failure[2 3 4 5 6]"},
	{"four tries, and the end of the token without a refresh", "advance 15m\n" + loop(4, "slow 5ms c1 me a0 503 injected\nafter 300ms") + "c1 me a0 401 token_expired\nafter 3s", "repeated_failure[2 3 4 5 6] no_refresh_after_expiry[6]"},
	{"three queries of a page that each refresh for each of their tries", "browser\n" + loop(3, "c1 me a0 | c2 me a0 | c3 me a0 401 token_expired\nafter 9ms\nc1 refresh r0 503 injected\nc1 refresh r0 503 injected\nafter 1s") + "after 6s", ""},
	{"a caller that refreshes for each of its tries", expired + "c1 refresh r0 503 injected\n" + loop(4, "after 900ms\nc1 me a0 401 token_expired\nc1 refresh r0 503 injected") + "after 6s", "repeated_failure[2 3 4 5 6 7 8 9 10 11]"},
	{"a refresh that is tried at once, again and again, for a crowd", "advance 15m\n" + "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 401 token_expired\n" + loop(6, "c1 refresh r0 503 injected\nafter 200ms") + "after 6s", "repeated_failure[6 7 8 9 10 11]"},
	{"starts with the old pair that take 40 ms to refresh", "c1 me a0 200\nadvance 15m\nc2 me a0 401 token_expired\nafter 40ms\nc2 refresh r0 200\nc2 me a1 200\n" +
		loops(6, "after 300ms\ncX me a0 401 token_expired\nafter 40ms\ncX refresh r0 401 token_reused"), "two_refreshes[4 7 9 11 13 15 17]"},
	{"three widgets at equal distances, two tries each", "slow 5ms c1 me a0 503 injected\nafter 14ms\nslow 5ms c1 me a0 503 injected\nafter 14ms\nslow 5ms c1 me a0 503 injected\nafter 494ms\nslow 5ms c1 me a0 503 injected\nafter 14ms\nslow 5ms c1 me a0 503 injected\nafter 14ms\nslow 5ms c1 me a0 503 injected\nafter 9s", ""},
	{"three widgets that load one after the other and each try twice", loop(2, "slow 5ms c1 me a0 503 injected\nafter 11ms\nslow 5ms c1 me a0 503 injected\nafter 18ms\nslow 5ms c1 me a0 503 injected\nafter 900ms"), ""},
	{"three widgets that each try twice, one of them 8 ms late", "slow 5ms c1 me a0 503 injected\nafter 11ms\nslow 5ms c1 me a0 503 injected\nafter 18ms\nslow 5ms c1 me a0 503 injected\n" +
		"after 900ms\nslow 5ms c1 me a0 503 injected\nafter 19ms\nslow 5ms c1 me a0 503 injected\nafter 10ms\nslow 5ms c1 me a0 503 injected\nafter 9s", ""},
	{"two widgets that load 10 ms apart, try three times each, and wait three seconds", loop(3, "slow 5ms c1 me a0 503 injected\nafter 4ms\nslow 5ms c1 me a0 503 injected\nafter 2985ms"), ""},
	{"workers whose library sends the first retry at once", "slow 5ms c1 me a0 503 injected\nslow 5ms c1 me a0 503 injected\nafter 16ms\nslow 5ms c1 me a0 503 injected\nslow 5ms c1 me a0 503 injected\n" +
		"after 570ms\nslow 5ms c1 me a0 503 injected\nafter 24ms\nslow 5ms c1 me a0 503 injected\nafter 1170ms\nslow 5ms c1 me a0 503 injected\nafter 24ms\nslow 5ms c1 me a0 503 injected\nafter 9s", ""},
	{"two callers who each refresh in vain, time and again", "c1 me a0 | c2 me a0 401 token_revoked\n" + loop(6, "c1 refresh r0 | c2 refresh r0 401 token_revoked") + "after 3s", "repeated_failure[" + numbers(4, 15) + "]"},
	{"six threads over two connections, with three tries each", loop(3, "c1 me a0 | c2 me a0 503 injected") + "after 90ms\n" + loop(3, "c1 me a0 | c2 me a0 503 injected") + "after 190ms\n" +
		loop(3, "c1 me a0 | c2 me a0 503 injected") + "after 3s", ""},
	{"a page that loads twice and then polls by one timer", "browser\nslow 5ms c1 me a0 503 injected\nslow 5ms c1 me a0 503 injected\n" + loop(7, "after 993ms\nslow 5ms c1 me a0 503 injected\n") + "after 3s", "repeated_failure[" + numbers(2, 10) + "]"},
	{"callers over four connections that wait as they are asked, some twice", loop(4, "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 429 rate_limited wait=1s injected") + "c1 me a0 429 rate_limited wait=1s injected\nafter 1s\n" +
		"c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 429 rate_limited wait=1s injected\n" + loop(3, "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 200") + "c1 me a0 200\nafter 1s\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 200\nafter 3s", ""},
	{"a page that loads twice, polls by one timer, and is clicked once", "browser\nc1 me a0 503 injected\nc1 me a0 503 injected\n" + loop(4, "after 993ms\nc1 me a0 503 injected\n") + "after 400ms\nc1 me a0 503 injected\nafter 592ms\nc1 me a0 503 injected\n" +
		loop(4, "after 993ms\nc1 me a0 503 injected\n") + "after 3s", "repeated_failure[" + numbers(2, 13) + "]"},
	{"a suite that asks without a token before it logs in", loop(6, "c1 me - 401 token_missing\nc1 login - 200 other\nc1 me b0 200"), ""},
	{"two workers of a suite, each of whose wrong passwords is followed by the right one", "c1 login:POST - 401 invalid_credentials injected\n" +
		loop(6, "c2 login:POST - 401 invalid_credentials injected\nc1 login:POST - 200 other\nc1 login:POST - 401 invalid_credentials injected\nc2 login:POST - 200 other"), ""},
	{"two workers at the same time, each of whose wrong passwords is followed by the right one", "c1 login:POST - 401 invalid_credentials injected\n" +
		loop(6, "c2 login:POST - 401 invalid_credentials injected later\nc1 login:POST - 200 other\nlater\n"+
			"c1 login:POST - 401 invalid_credentials injected later\nc2 login:POST - 200 other\nlater"), ""},
	{"a poller that tries twelve times at each tick, with other work before some tries", loop(3, "slow 5ms c1 me a0 503 injected\nafter 0ms\nslow 5ms c1 me a0 503 injected\nafter 11ms\nslow 5ms c1 me a0 503 injected\nafter 1ms\nslow 5ms c1 me a0 503 injected\nafter 12ms\nslow 5ms c1 me a0 503 injected\nafter 0ms\nslow 5ms c1 me a0 503 injected\nafter 2ms\nslow 5ms c1 me a0 503 injected\nafter 9ms\nslow 5ms c1 me a0 503 injected\nafter 1ms\nslow 5ms c1 me a0 503 injected\nafter 3ms\nslow 5ms c1 me a0 503 injected\nafter 10ms\nslow 5ms c1 me a0 503 injected\nafter 4ms\nslow 5ms c1 me a0 503 injected\nafter 0ms\n"+"after 1s"), "repeated_failure[" + numbers(2, 37) + "]"},
	{"five wrong passwords, and then the right one", loop(5, "c1 login:POST - 401 invalid_credentials injected\n") + "c1 login:POST - 200 other", "repeated_failure[2 3 4 5 6]"},
	{"a loop while somebody mistypes a password", loop(8, "c1 me a0 401 token_revoked") + "c2 login - 401 stranger invalid_credentials injected\nafter 3s", "repeated_failure[2 3 4 5 6 7 8 9]"},
	{"two tabs in a loop without end", loop(40, "c1 me a0 | c2 me a0 503 injected"), "repeated_failure[" + numbers(2, 81) + "]"},
	{"two tabs in a loop with little pauses", loop(8, "c1 me a0 | c2 me a0 503 injected\nafter 50ms"), "repeated_failure[" + numbers(2, 17) + "]"},
	{"two tabs in a loop with little pauses, each time over a new connection", loops(8, "cX me a0 | cY me a0 503 injected\nafter 50ms"), "repeated_failure[" + numbers(2, 17) + "]"},
	{"two tabs, five tries each", loop(5, "c1 me a0 | c2 me a0 503 injected"), "repeated_failure[" + numbers(2, 11) + "]"},
	{"a poll with the expired token, then a refresh and more of the poll", expired + loop(5, "c1 me a0 401 token_expired\nafter 150ms") + "c1 refresh r0 200\n" + loop(6, "c1 me a1 200\nafter 150ms") + "after 2s",
		"repeated_failure[" + numbers(2, 7) + "]"},
	{"three tabs with three, five and seven tries", loop(3, "c1 me a0 | c2 me a0 | c3 me a0 503 injected") + loop(2, "c1 me a0 | c2 me a0 503 injected") + loop(2, "c1 me a0 503 injected"),
		"repeated_failure[2 3 5 6 8 9 11 12 13 14 15 16]"},
	{"two tabs, four tries each", loop(4, "c1 me a0 | c2 me a0 503 injected"), ""},
	{"thirty callers over five of a browser's six connections, and a slow request over the other one", "browser\nc6 listing a0 200 later\n" +
		loop(6, "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 503 injected") + "later", ""},
	{"forty callers over a browser's six connections", "browser\n" + loop(7, "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 503 injected"), ""},
	{"six callers side by side that are no browser's, seven tries each", loop(7, "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 503 injected"),
		"repeated_failure[" + numbers(2, 43) + "]"},
	{"a loop over new connections, while another tab works", loops(6, "c1 listing a0 200 later\ncX me a0 503 injected\nlater"), "repeated_failure[3 5 7 9 11 13]"},
	{"five methods on one path", "c1 other:GET - 405\nc1 other:PUT - 405\nc1 other:POST - 405\nc1 other:HEAD - 405\nc1 other:PATCH - 405", ""},
	{"a run and looks at it, in turn", loop(3, "c1 run:POST a0 503 injected\nc1 run:GET a0 503 injected"), "repeated_failure[2 3 4 5 6 7]"},
	{"a table of bad runs, with a look between", loop(6, "c1 run:POST a0 422\nc1 run:GET a0 200"), ""},
	{"a loop beside the many requests of another client", loop(6, "c1 me a0 503 injected\n"+loop(300, "c2 me b0 200")), "repeated_failure[2 303 604 905 1206 1507]"},
	{"three callers side by side, five tries each, one of them over a new connection", loop(4, "c1 me a0 | c2 me a0 | c3 me a0 503 injected\nafter 150ms") +
		"c1 me a0 | c2 me a0 | c4 me a0 503 injected", "repeated_failure[" + numbers(2, 16) + "]"},
	{"callers without a token", loop(3, "c1 me - | c2 me - 401 token_missing"), ""},
	{"five callers that each try five times", loop(5, "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 502 injected\nafter 250ms"), "repeated_failure[" + numbers(2, 26) + "]"},
	{"five callers that each try six times before the refresh", "advance 16m\n" + loop(6, "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\nafter 250ms") +
		"c1 refresh r0 200\n" + loop(5, "c1 me a1 200") + "after 3s", "repeated_failure[" + numbers(2, 31) + "]"},
	{"callers that start together, with pauses by chance that grow", "c1 me a0 | c2 me a0 503 injected\nafter 800ms\nc1 me a0 503 injected\nafter 430ms\nc2 me a0 503 injected\n" +
		"after 1200ms\nc1 me a0 503 injected\nafter 150ms\nc2 me a0 503 injected\nafter 900ms\nc1 me a0 503 injected\nafter 300ms\nc2 me a0 503 injected", ""},
	{"groups of callers while the refresh waits as it was asked, all sent again", "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired\nc4 refresh r0 503 injected wait=3s\n" +
		loop(5, "after 400ms\nc1 me a0 | c2 me a0 | c3 me a0 401 token_expired") + "after 1s\nc4 refresh r0 200\n" + loop(6, "c1 me a1 | c2 me a1 | c3 me a1 200"), ""},
	{"a poll while the refresh waits as it was asked, all sent again", expired + "c4 refresh r0 503 injected wait=3s\n" + loop(5, "after 500ms\nc1 me a0 401 token_expired") +
		"after 500ms\nc4 refresh r0 200\n" + loop(6, "c1 me a1 200"), ""},
	{"callers of another operation over another connection, all sent again", "advance 15m\nc2 listing a0 401 token_expired later\n" + loop(8, "c1 me a0 401 token_expired") +
		"later\nc2 refresh r0 200\n" + loop(8, "c1 me a1 200") + "c2 listing a1 200", ""},
	{"jobs that took the old token before another caller's refresh, each sent again", "advance 15m\nc2 listing a0 401 token_expired\nc2 refresh r0 200\n" +
		loop(7, "c1 me a0 401 token_expired\nc1 me a1 200") + "c2 listing a1 200", ""},
	{"ten workers over one connection, which the refresh holds for a while", "advance 15m\n" + loop(3, "c1 me a0 401 token_expired\nafter 7ms") + "slow 300ms c1 refresh r0 200\n" +
		loop(7, "slow 5ms c1 me a0 401 token_expired") + loop(10, "c1 me a1 200"), ""},
	{"many requests over one connection, all sent again", "advance 15m\n" + loop(12, "c1 me a0 401 token_expired") + "c1 refresh r0 200\n" + loop(12, "c1 me a1 200"), ""},
	{"callers over two connections who each refresh and give up", "advance 15m\n" + loop(6, "c1 me a0 | c2 me a0 401 token_expired") + "c1 refresh r0 200\n" +
		loop(5, "c1 refresh r0 | c2 refresh r0 401 token_reused"), "two_refreshes[" + numbers(14, 24) + "]"},
	{"callers over two connections, only one of whom is sent again", "advance 15m\n" + loop(6, "c1 me a0 | c2 me a0 401 token_expired") + "c1 refresh r0 200\nc1 me a1 200",
		"not_repeated[13 14]"},
	{"tries with pauses over one connection, and as many after a refresh", "advance 15m\n" + loop(14, "c1 me a0 401 token_expired\nafter 90ms") + "c1 refresh r0 200\n" + loop(14, "c1 me a1 200"),
		"repeated_failure[" + numbers(2, 15) + "]"},
	{"two that keep their timers with a dead token, 40 ms apart, before a page is loaded", loop(8, "slow 6ms c1 me a0 401 token_revoked\nafter 34ms\nslow 6ms c2 me a0 401 token_revoked\nafter 950ms") +
		"c1 login - 200 other\n" + each("c%s me b0 200", "1", "2", "3", "4", "5", "6", "7", "8", "9") + "after 3s", "repeated_failure[" + numbers(2, 17) + "]"},
	{"one that keeps a timer over two connections in turn, before a page is loaded", "c2 me a0 | c3 me a0 200\nadvance 15m\n" + loop(3, "slow 6ms c2 me a0 401 token_expired\nafter 250ms\nslow 6ms c3 me a0 401 token_expired\nafter 250ms") +
		"c2 refresh r0 200\nc2 me a1 | c3 me a1 | c4 me a1 | c5 me a1 | c6 me a1 | c7 me a1 200\nafter 3s", "repeated_failure[" + numbers(4, 9) + "]"},
	{"two that loop without a pause before a logout, 31 times each", "c2 me a0 200\n" + loop(31, "slow 6ms c1 me a0 | c2 me a0 401 token_revoked") + "c1 logout a0 204", "repeated_failure[" + numbers(3, 64) + "]"},
	{"two that loop without a rest before a logout", "c2 me a0 200\n" + loop(10, "slow 6ms c1 me a0 | c2 me a0 401 token_revoked\nafter 30ms") + "c1 logout a0 204", "repeated_failure[" + numbers(3, 22) + "]"},
	{"twenty over two connections, before a logout", "c2 me a0 200\n" + loop(10, "slow 6ms c1 me a0 | c2 me a0 401 token_revoked") + "c1 logout a0 204", ""},
	{"two polls until the outage ends", loop(7, "c1 me a0 | c2 me a0 503 injected\nafter 60ms") + loop(7, "c1 me a0 | c2 me a0 200\nafter 60ms"), "repeated_failure[" + numbers(2, 15) + "]"},
	{"six callers side by side, one of whom polls on", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 503 injected\n" + loop(24, "after 400ms\nc1 me a0 503 injected"), "repeated_failure[" + numbers(2, 31) + "]"},
	{"six callers side by side, three tries each, spread by chance", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 503 injected\n" +
		each("after %s\nc1 me a0 503 injected\nafter 70ms\nc2 me a0 503 injected", "90ms", "45ms", "110ms", "60ms", "130ms", "80ms"), ""},
	{"six parts of a page that load one after the other, and wait as they are asked", "slow 5ms c1 me a0 503 injected wait=1s\nafter 39ms\nslow 5ms c1 me a0 503 injected wait=1s\nafter 19ms\nslow 5ms c1 me a0 503 injected wait=1s\nafter 54ms\nslow 5ms c1 me a0 503 injected wait=1s\nafter 109ms\nslow 5ms c1 me a0 503 injected wait=1s\nafter 59ms\nslow 5ms c1 me a0 503 injected wait=1s\nafter 690ms\nc1 me a0 200\nafter 45ms\nc1 me a0 200\nafter 25ms\nc1 me a0 200\nafter 60ms\nc1 me a0 200\nafter 115ms\nc1 me a0 200\nafter 65ms\nc1 me a0 200\nafter 10ms\nafter 3s", ""},
	{"two widgets that load 400 ms apart, and come again as they are asked", loop(4, "c1 me a0 503 injected wait=1s\nafter 400ms\nc1 me a0 503 injected wait=1s\nafter 600ms"), ""},
	{"three widgets that load within half of the time, and come again as they are asked", loop(4, "c1 me a0 503 injected wait=1s\nafter 150ms\nc1 me a0 503 injected wait=1s\n"+
		"after 270ms\nc1 me a0 503 injected wait=1s\nafter 580ms"), ""},
	{"six widgets that load side by side, come again by chance up to a fifth later over fewer connections, and again", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 503 injected wait=5s\nafter 5s\n" +
		each("c1 me a0 503 injected wait=5s\nafter %s", "30ms", "120ms", "20ms", "90ms", "60ms", "4700ms") + each("c1 me a0 503 injected wait=5s\nafter %s", "80ms", "210ms", "170ms", "90ms", "140ms", "5s"), ""},
	{"five widgets that load side by side, and come again as they are asked or up to a fifth later", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 503 injected wait=5s\nafter 5s\n" +
		loop(2, each("%s me a0 503 injected wait=5s\nafter 190ms", "c1", "c2", "c3", "c4", "c5")+"after 4060ms"), ""},
	{"eight threads that begin 55 ms apart, come again as they are asked, and go on", loop(8, "slow 5ms c1 me a0 429 injected wait=1s\nafter 55ms") + "after 512ms\n" +
		loop(8, loop(3, "c1 me a0 200\nafter 8ms")+"after 30ms"), ""},
	{"a loop that waits a third of what it is asked", loop(9, "slow 6ms c1 me a0 503 injected wait=1s\nafter 333ms"),
		"repeated_failure[" + numbers(2, 10) + "] retry_after_ignored[" + numbers(2, 10) + "]"},
	{"callers in a queue that wait as they are asked once, and give up", loop(2, loop(6, "c1 me a0 503 injected wait=1s")+"after 1s") + "after 3s", ""},
	{"callers in a queue that wait as they are asked, and give up", loop(3, loop(6, "c1 me a0 503 injected wait=1s")+"after 1s") + "after 3s", ""},
	{"a loop under Retry-After until it works", loop(6, "c1 me a0 503 injected wait=1s") + loop(6, "c1 me a0 200") + "after 3s",
		"repeated_failure[2 3 4 5 6 7] retry_after_ignored[2 3 4 5 6 7 8]"},
	{"a loop under Retry-After with a stall", loop(6, "c1 me a0 503 injected wait=1s") + "after 120ms\n" + loop(3, "c1 me a0 503 injected wait=1s") + "after 3s",
		"repeated_failure[2 3 4 5 6 7 8 9 10] retry_after_ignored[2 3 4 5 6 7 8 9 10]"},
	{"ten callers over two connections that are served at the third try", loop(2, loop(5, "slow 5ms c1 me a0 | c2 me a0 503 injected")+"after 300ms") +
		loop(5, "c1 me a0 | c2 me a0 200"), ""},
	{"two callers that try five times at each tick, and go on when they are served", loop(2, loop(5, "slow 5ms c1 me a0 | c2 me a0 503 injected")+"after 300ms") +
		loop(6, "c1 me a0 | c2 me a0 200\nafter 300ms"), "repeated_failure[" + numbers(2, 21) + "]"},
	{"ten callers side by side, four tries each", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 200\n" + loop(4, "c1 me a0 503 injected\nc2 me a0 503 injected\nc3 me a0 503 injected\nc4 me a0 503 injected\nafter 200ms"), ""},
	{"six callers in a queue, three tries each", loop(3, loop(6, "c1 me a0 503 injected wait=1s")+"after 1s") + loop(6, "c1 me a0 200"), ""},
	{"widgets that load during a slow refresh that is refused, and a login", "c1 me a0 401 token_revoked\nc9 refresh r0 401 token_revoked later\n" +
		loop(6, "after 150ms\nc1 me a0 401 token_revoked") + "later\nc1 login - 200 other\n" + loop(7, "c1 me b0 200"), ""},
	{"jobs that took the old token before they waited, each sent again", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loop(7, "after 30ms\nc1 me a0 401 token_expired\nc1 me a1 200"), ""},
	{"a loop right behind a race that has ended the session", expired + "c1 refresh r0 200\nc2 refresh r0 401 token_reused\n" + loop(8, "c1 me a1 401 token_revoked"),
		"two_refreshes[3 4] repeated_failure[5 6 7 8 9 10 11 12]"},
	{"widgets that load during a slow refresh", "advance 15m\nc1 me a0 401 token_expired\nc9 refresh r0 200 later\n" + loop(6, "after 150ms\nc1 me a0 401 token_expired") + "later\n" + loop(7, "c1 me a1 200"), ""},
	{"goes on with the old access token", "policy keep\nadvance 15m\n" + loop(5, "c1 me a0 401 token_expired\nc1 refresh r0 200") + "\nafter 3s", "repeated_failure[2 4 6 8 10] not_repeated[2 3]"},
	{"after a logout", "c1 logout a0 204\n" + loop(5, "c1 me a0 401 token_revoked"), "token_after_logout[2 3 4 5 6 7]"},
	{"a race is not told again", expired + "c1 refresh r0 200\n" + loop(6, "c1 refresh r0 401 token_reused"), "two_refreshes[3 4 5 6 7 8 9]"},
}

// cutGET is a GET that a fault cuts after a while and Firefox sends ten times.
var cutGET = strings.Repeat("slow 45ms cX me a0 0 lost\nslow 45ms cY me a0 0 lost\n", 5)

// bent is a call with a token that the hub cannot read, for which the client refreshes once.
func bent(generation int) string {
	return fmt.Sprintf("c1 me x0 401 token_malformed foreign\nc1 refresh r%d 200\nc1 me a%d 200\nafter 40ms\n", generation, generation+1)
}
