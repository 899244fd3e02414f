package judge

import (
	"strings"
	"testing"
)

// TestCallers: a row of failures is told if it has more than four for each caller that the record shows.
func TestCallers(t *testing.T) {
	t.Parallel()
	const settled = "after 3s"                         // what the client may do in time, it has done
	numbered := func(n int, pauses ...string) string { // rounds of callers side by side, over the same connections
		conns := strings.Join([]string{"c2", "c3", "c4", "c5", "c6", "c7", "c8"}[:n], " ")
		return each("slow 5ms "+together(conns)+"after %s", pauses...)
	}
	const more = "c2 me a0 503 injected\n"
	apart := func(pauses ...string) string { // two callers, 20 ms apart
		return each("slow 5ms c1 me a0 503 injected\nafter 15ms\nslow 5ms c1 me a0 503 injected\nafter %s", pauses...)
	}
	check(t, []row{
		{"one caller: four", loop(4, "c1 me a0 503 injected") + settled, ""},
		{"one caller: five", loop(5, "c1 me a0 503 injected") + settled, "repeated_failure[2 3 4 5 6]"},
		{"two side by side: eight", numbered(2, "200ms", "300ms", "250ms", "200ms") + settled, ""},
		{"two side by side: nine", numbered(2, "200ms", "300ms", "250ms", "200ms") + more + settled, "repeated_failure[" + numbers(2, 10) + "]"},
		{"seven side by side: 28", numbered(7, "200ms", "300ms", "250ms", "200ms") + settled, ""},
		{"seven side by side: 29", numbered(7, "200ms", "300ms", "250ms", "200ms") + more + settled, "repeated_failure[" + numbers(2, 30) + "]"},
		{"two a little apart: eight", apart("175ms", "375ms", "775ms", "1s") + settled, ""},
		{"two a little apart: nine", apart("175ms", "375ms", "775ms", "1s") + "c1 me a0 503 injected\n" + settled, "repeated_failure[" + numbers(2, 10) + "]"},
		{"two side by side: ten by chance, and both are served before the token ends", each("slow 5ms %s", "c1 me a0 | c2 me a0 503 injected\nafter 210ms", "c2 me a0 503 injected\nafter 110ms", "c1 me a0 503 injected\nafter 290ms", "c2 me a0 503 injected\nafter 60ms", "c1 me a0 503 injected\nafter 250ms",
			"c2 me a0 503 injected\nafter 90ms", "c1 me a0 503 injected\nafter 310ms", "c1 me a0 503 injected\nafter 130ms", "c2 me a0 503 injected\nafter 170ms") +
			"c1 me a0 | c2 me a0 200\nafter 1s\nslow 5ms c1 me a0 | c2 me a0 401 token_expired\nc3 refresh r0 200\nc1 me a1 | c2 me a1 200\n" + settled, "repeated_failure[" + numbers(2, 11) + "]"},
		{"two side by side whose first retry comes at once, as urllib3's", each("slow 5ms c2 me a0 | c3 me a0 503 injected\nafter %s", "1ms", "400ms", "800ms", "1600ms", "3200ms", "1s") + settled, "repeated_failure[" + numbers(2, 13) + "]"},
		{"two side by side whose first retry comes at once, five tries each", each("slow 5ms c2 me a0 | c3 me a0 503 injected\nafter %s", "1ms", "400ms", "800ms", "1600ms", "1s") + settled, ""},
		{"two side by side with a backoff from ten milliseconds", each("slow 5ms c2 me a0 | c3 me a0 503 injected\nafter %s", "10ms", "20ms", "40ms", "80ms", "160ms", "320ms", "1s") + settled, "repeated_failure[" + numbers(2, 15) + "]"},
		{"two and two whose first retry comes at once, four tries each", each("slow 5ms %s me a0 503 injected\n", "c2", "c2", "c3", "c3") + "after 20ms\n" + each("slow 5ms %s me a0 503 injected\n", "c4", "c4", "c5", "c5") +
			each("after %s\nslow 5ms c2 me a0 | c3 me a0 503 injected\nafter 50ms\nslow 5ms c4 me a0 | c5 me a0 503 injected\n", "400ms", "400ms") + settled, ""},
		{"two at a time with a connection each, three tries side by side, and two behind them", each("slow 300ms %s", "c2 me a0 | c3 me a0 503 injected\nafter 600ms", "c2 me a0 | c3 me a0 503 injected\nafter 600ms", "c2 me a0 | c3 me a0 503 injected\nafter 750ms",
			"c4 me a0 | c5 me a0 503 injected\nafter 600ms", "c4 me a0 | c5 me a0 503 injected\nafter 600ms", "c4 me a0 | c5 me a0 503 injected") + settled, ""},
		{"two side by side that open a new connection behind each third try", each("slow 5ms %s me a0 503 injected\nafter 300ms", "c2 me a0 | c3", "c2 me a0 | c3", "c2 me a0 | c3", "c4 me a0 | c5", "c4 me a0 | c5", "c4 me a0 | c5", "c6 me a0 | c7", "c6 me a0 | c7") + settled, "repeated_failure[" + numbers(2, 17) + "]"},
		{"two at a time with a connection each, three tries, and two behind them", each("slow 300ms %s", "c2 me a0 | c3 me a0 503 injected\nafter 300ms", "c2 me a0 503 injected\nafter 10ms", "c3 me a0 503 injected\nafter 250ms", "c2 me a0 503 injected\nafter 60ms", "c3 me a0 503 injected\nafter 20ms",
			"c4 me a0 | c5 me a0 503 injected\nafter 350ms", "c5 me a0 503 injected\nafter 30ms", "c4 me a0 503 injected\nafter 410ms", "c4 me a0 503 injected\nafter 90ms", "c5 me a0 503 injected") + settled, ""},
		{"three at a time, whose client closes connections and opens others", each("slow 5ms %s me a0 503 injected\nafter 300ms", "c2 me a0 | c3 me a0 | c4", "c2 me a0 | c5", "c5 me a0 | c6 me a0 | c7", "c6 me a0 | c8 me a0 | c9",
			"c8 me a0 | c10", "c10 me a0 | c11 me a0 | c12", "c11 me a0 | c13") + settled, "repeated_failure[" + numbers(2, 19) + "]"},
		{"four that start within 90 ms, two of them side by side, with a connection for each request", "slow 6ms c2 me a0 503 injected\nafter 69ms\nslow 6ms c3 me a0 | c4 me a0 503 injected\nafter 8ms\nslow 6ms c5 me a0 503 injected\n" +
			each("after %s me a0 503 injected", "180ms\nslow 6ms c6", "60ms\nslow 6ms c7", "30ms\nslow 6ms c8", "50ms\nslow 6ms c9", "440ms\nslow 6ms c10", "30ms\nslow 6ms c11", "150ms\nslow 6ms c12", "40ms\nslow 6ms c13") + settled, ""},
		{"one whose pauses double, and who asks once more", each("slow 6ms c1 me a0 503 injected\nafter %s", "48ms", "98ms", "198ms", "398ms", "798ms", "398ms") + "slow 6ms c1 me a0 503 injected\n" + settled, "repeated_failure[" + numbers(2, 8) + "]"},
		{"one whose pauses double, and who begins anew, over new connections", each("slow 6ms %s", "c2 me a0 503 injected\nafter 18ms", "c3 me a0 503 injected\nafter 38ms", "c4 me a0 503 injected\nafter 78ms", "c5 me a0 503 injected\nafter 158ms", "c6 me a0 503 injected\nafter 318ms", "c7 me a0 503 injected\nafter 18ms", "c8 me a0 503 injected") + settled, "repeated_failure[" + numbers(2, 8) + "]"},
		{"a page without a pause: 240", "browser\n" + loop(240, "c1 me a0 503 injected") + settled, ""},
		{"a page without a pause: 241", "browser\n" + loop(241, "c1 me a0 503 injected") + settled, "repeated_failure[" + numbers(2, 242) + "]"},
		{"a page with pauses: four", "browser\n" + loop(4, "c1 me a0 503 injected\nafter 50ms") + settled, ""},
		{"a page with pauses: five", "browser\n" + loop(5, "c1 me a0 503 injected\nafter 50ms") + settled, "repeated_failure[2 3 4 5 6]"},
		{"six side by side, and three ticks of one", numbered(6, "300ms") + loop(3, "slow 5ms c2 me a0 503 injected\nafter 300ms") + settled, ""},
		{"six side by side, and four more of one by its timer", numbered(6, "300ms") + loop(4, "slow 5ms c2 me a0 503 injected\nafter 300ms") + settled, "repeated_failure[" + numbers(2, 11) + "]"},
		{"six side by side, and five ticks of one", numbered(6, "500ms") + loop(5, "slow 5ms c2 me a0 503 injected\nafter 300ms") + settled, "repeated_failure[" + numbers(2, 12) + "]"},
		{"two without end, while they go on", loop(121, "c1 me a0 | c2 me a0 503 injected"), "repeated_failure[" + numbers(2, 243) + "]"},
		{"three side by side: five rounds of three", numbered(3, "200ms", "300ms", "250ms", "200ms", "200ms") + settled, "repeated_failure[" + numbers(2, 16) + "]"},
		{"three side by side: five rounds of three, and more that are torn apart", numbered(3, "200ms", "300ms", "250ms", "200ms", "200ms") + "c2 me a0 503 injected\nafter 60ms\nslow 5ms c3 me a0 | c4 me a0 503 injected\n" + settled, "repeated_failure[" + numbers(2, 19) + "]"},
		{"three side by side who try five times, the last time torn apart", numbered(3, "200ms", "400ms", "800ms", "1600ms") + "slow 5ms c2 me a0 503 injected\nafter 60ms\nslow 5ms c3 me a0 503 injected\nafter 50ms\nslow 5ms c4 me a0 503 injected\n" + settled, "repeated_failure[" + numbers(2, 16) + "]"},
		{"one with pauses by chance, whose four connections take turns, as in Firefox", "c2 me a0 | c3 me a0 | c4 me a0 200\n" + each("%s me a0 503 injected", "slow 6ms c1", "after 170ms\nslow 6ms c2", "after 390ms\nslow 6ms c3", "after 260ms\nslow 6ms c4",
			"after 440ms\nslow 6ms c1", "after 120ms\nslow 6ms c2", "after 310ms\nslow 6ms c3", "after 230ms\nslow 6ms c4", "after 480ms\nslow 6ms c1") + settled, "repeated_failure[" + numbers(5, 13) + "]"},
		{"two side by side: eight rounds of two, and a page that is loaded then", each("slow 5ms c2 me a0 | c3 me a0 503 injected\nafter %s", "300ms", "300ms", "300ms", "300ms", "300ms", "300ms", "300ms", "500ms") +
			"c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 200\nafter 3s", "repeated_failure[" + numbers(2, 17) + "]"},
		{"ten over two connections who come back", "advance 15m\n" + each("slow 5ms c1 me a0 | c2 me a0 401 token_expired\nafter %s", "20ms", "20ms", "20ms", "20ms", "20ms") +
			"c1 refresh r0 200\n" + loop(10, "c1 me a1 200") + settled, ""},
	})
}

// TestCallersByBackoff: rounds that come further apart each time are of callers who back off alike, or of one caller
// who retries within a retry.
func TestCallersByBackoff(t *testing.T) {
	t.Parallel()
	const settled = "after 3s"
	backOff := func(pauses ...string) string {
		return each("slow 5ms c1 me a0 503 injected\nafter %s", pauses...) + "slow 5ms c1 me a0 503 injected\n"
	}
	const one, three = "slow 5ms c3 me a0 503 injected\n", "slow 5ms c3 me a0 | c4 me a0 | c5 me a0 503 injected\n"
	const oneAndThree = one + "after 195ms\n" + one + "after 95ms\n" + three + "after 195ms\n" + three + "after 95ms\n" + one + "after 295ms\n" + three + "after 495ms\n" + one + "after 295ms\n" + three
	check(t, []row{
		{"two that begin 300 ms apart and double their pauses: eight", backOff("295ms", "695ms", "295ms", "1695ms", "295ms", "3695ms", "295ms") + settled, ""},
		{"two that begin 300 ms apart and double their pauses: nine", backOff("295ms", "695ms", "295ms", "1695ms", "295ms", "3695ms", "295ms", "4s") + settled, "repeated_failure[" + numbers(2, 10) + "]"},
		{"one, and three that begin behind its second try, who double their pauses: 16", oneAndThree + settled, ""},
		{"one, and three that begin behind its second try, who double their pauses: 17", oneAndThree + "after 295ms\n" + one + settled, "repeated_failure[" + numbers(2, 18) + "]"},
		{"three that begin one after the other and double their pauses", backOff("150ms", "400ms", "430ms", "155ms", "402ms", "1430ms", "149ms", "410ms", "3430ms", "151ms", "399ms") + settled, ""},
		{"three that begin evenly and double their pauses", backOff("117ms", "88ms", "89ms", "115ms", "89ms", "390ms", "113ms", "90ms") + settled, ""},
		{"five that double their pauses, of whom two overlap", "slow 5ms c1 me a0 503 injected\nafter 3ms\nslow 8ms c1 me a0 | c2 me a0 503 injected\nafter 110ms\n" + backOff("140ms", "230ms") + "after 1ms\n" +
			"slow 8ms c1 me a0 | c2 me a0 503 injected\nafter 110ms\n" + backOff("140ms", "725ms") + "after 1ms\nslow 8ms c1 me a0 | c2 me a0 503 injected\nafter 110ms\n" + backOff("140ms") + settled, ""},
		{"one that tries three times, within a query that doubles its pauses", backOff("295ms", "595ms", "995ms", "296ms", "595ms", "1995ms", "295ms", "597ms", "3995ms", "295ms", "595ms") + settled, "repeated_failure[" + numbers(2, 13) + "]"},
		{"one that tries three times 60 ms apart, within a query that doubles its pauses", backOff("60ms", "60ms", "995ms", "61ms", "60ms", "1995ms", "60ms", "62ms") + settled, "repeated_failure[" + numbers(2, 10) + "]"},
		{"one that tries three times, within a job that triples its pauses", backOff("100ms", "101ms", "1s", "99ms", "100ms", "3s", "101ms", "100ms") + settled, "repeated_failure[" + numbers(2, 10) + "]"},
		{"one that tries three times at once, within a query that doubles its pauses", backOff("0s", "0s", "995ms", "0s", "0s", "1995ms", "0s", "0s") + settled, "repeated_failure[" + numbers(2, 10) + "]"},
		{"one that tries three times at once, within a query that doubles its pauses, over new connections",
			loops(3, "slow 5ms cX me a0 503 injected") + "after 995ms\n" + loops(3, "slow 5ms cX0 me a0 503 injected") + "after 1995ms\n" + loops(3, "slow 5ms cX00 me a0 503 injected") + settled, "repeated_failure[" + numbers(2, 10) + "]"},
		{"two that begin one right behind the other and double their pauses, over new connections", loops(2, "slow 5ms cX me a0 503 injected") + "after 288ms\n" + loops(2, "slow 5ms cX0 me a0 503 injected") +
			"after 588ms\n" + loops(2, "slow 5ms cX00 me a0 503 injected") + "after 1188ms\n" + loops(2, "slow 5ms cX000 me a0 503 injected") + settled, ""},
		{"three a little apart whose last round comes 60 ms early", backOff("20ms", "20ms", "950ms", "20ms", "20ms", "1900ms", "20ms", "20ms") + settled, ""},
		{"three a little apart whose last round comes 85 ms early", backOff("45ms", "45ms", "900ms", "45ms", "45ms", "1825ms", "45ms", "45ms") + settled, ""},
		{"one that tries twice each time", backOff("300ms", "1s", "300ms", "1s", "300ms", "1s", "300ms") + settled, "repeated_failure[" + numbers(2, 9) + "]"},
		{"one that tries four times, and twice much later", backOff("200ms", "200ms", "200ms", "4500ms", "200ms") + settled, "repeated_failure[" + numbers(2, 7) + "]"},
	})
}

// TestCallersByAddress: what half of a row's addresses or more are asked for again shows a caller for each at one time.
func TestCallersByAddress(t *testing.T) {
	t.Parallel()
	const settled = "after 3s"
	const two, third = "slow 5ms c2 file/1 a0 | c3 file/2 a0 503 injected\n", "slow 5ms c4 file/3 a0 503 injected\n"
	lone := func(file, pause string) string {
		return "slow 5ms c1 file/" + file + " a0 503 injected\nafter " + pause + "\n"
	}
	jobs := func(n string) string { // one for each of five workers, three tries
		side := "slow 5ms "
		for i, worker := range []string{"c2", "c3", "c4", "c5", "c6"} {
			side += worker + " file/" + n + string(rune('a'+i)) + " a0 | "
		}
		return each(strings.TrimSuffix(side, "| ")+"503 injected\nafter %s", "300ms", "600ms", "10ms")
	}
	check(t, []row{
		{"two of an address each who double their pauses, and one that begins behind their first retry", two + "after 995ms\n" + two + "after 295ms\n" + third + "after 995ms\n" + third +
			"after 695ms\n" + two + "after 1295ms\n" + third + "after 2695ms\n" + two + "after 1295ms\n" + third + settled, ""},
		{"two who go from file to file, and try each twice with a dead token", each("slow 5ms c2 file/%[1]s a0 | c3 file/%[1]s0 a0 401 token_revoked\nafter 200ms\n"+
			"slow 5ms c2 file/%[1]s a0 | c3 file/%[1]s0 a0 401 token_revoked\nafter 100ms", "1", "2", "3") + settled, "repeated_failure[" + numbers(2, 13) + "]"},
		{"ten jobs for five workers, each tried three times", jobs("1") + jobs("2") + settled, ""},
		{"twenty jobs for five workers, each tried three times", jobs("1") + jobs("2") + jobs("3") + jobs("4") + settled, "repeated_failure[" + numbers(2, 61) + "]"},
		{"two of an address each who never overlap", lone("1", "995ms") + lone("1", "395ms") + lone("2", "995ms") + lone("1", "595ms") + lone("2", "1395ms") + lone("2", "2595ms") + lone("1", "1395ms") + lone("2", "1s") + settled, ""},
		{"three of an address each who never overlap, the last of whom is served at its second try", lone("1", "230ms") + lone("2", "1s") + lone("1", "180ms") + lone("3", "1ms") + lone("2", "500ms") + settled, ""},
		{"three of an address each who back off by chance, in no order", lone("1", "30ms") + lone("2", "13ms") + lone("1", "24ms") + lone("3", "41ms") + lone("3", "36ms") + lone("2", "118ms") +
			lone("1", "44ms") + lone("3", "21ms") + lone("2", "57ms") + lone("2", "34ms") + lone("3", "35ms") + lone("1", "1s") + settled, ""},
		{"two workers in a queue, each with two jobs, three tries each", lone("1", "150ms") + lone("2", "100ms") + lone("1", "310ms") + lone("2", "270ms") + lone("1", "30ms") + lone("3", "260ms") + lone("2", "35ms") + lone("4", "20ms") +
			lone("3", "280ms") + lone("4", "310ms") + lone("3", "290ms") + lone("4", "1s") + settled, ""},
		{"one who tries two pages twice each, and comes back to them", lone("1", "200ms") + lone("1", "200ms") + lone("2", "200ms") + lone("2", "200ms") + lone("1", "200ms") + lone("1", "1s") + settled, "repeated_failure[" + numbers(2, 7) + "]"},
		{"one who goes through three addresses, again and again", loop(3, lone("1", "0s")+lone("2", "0s")+lone("3", "400ms")) + settled, "repeated_failure[" + numbers(2, 10) + "]"},
		{"one who goes through two addresses", loop(3, lone("1", "1s")+lone("2", "1s")) + settled, "repeated_failure[" + numbers(2, 7) + "]"},
		{"one who tries each address twice, and goes on at once", lone("1", "200ms") + lone("1", "0s") + lone("2", "300ms") + lone("2", "0s") + lone("1", "250ms") + lone("1", "0s") + settled, "repeated_failure[" + numbers(2, 7) + "]"},
		{"one who tries one address after the other", lone("1", "200ms") + lone("1", "100ms") + lone("2", "300ms") + lone("2", "100ms") + lone("3", "250ms") + lone("3", "100ms") + settled, "repeated_failure[" + numbers(2, 7) + "]"},
		{"two who go through the same files", each("slow 5ms c2 file/%[1]s a0 | c3 file/%[1]s a0 401 token_revoked\nafter 300ms", "1", "2", "3", "4", "5", "6") + settled, "repeated_failure[" + numbers(2, 13) + "]"},
	})
}
