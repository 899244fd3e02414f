package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A script is a record in short, a step a line:
//
//	c1 me a0 401 token_expired   over connection c1, with the access token of pair 0, answered so
//	c2 refresh r0 200            with the refresh token of pair 0; a 200 gives pair 1
//	c1 login - 200               without a token
//	c1 login - 200 other         of another session, whose access token is b0
//	c1 me a0 503 injected        what a fault did: injected, lost; left: the client closed the connection
//	c1 me a0 | c2 me a0 401 …    steps on one line arrive together and are answered together, alike
//	c1 file/2 - 404              another path of the operation
//	browser                      the client is a browser
//	c1 refresh r0 200 later      answered at a line "later" only
//	slow 1s c1 me a0 200         the answer takes its time
//	empty                        the record is emptied
//	open c3                      a connection is opened, for a request that comes later
//	after 3s                     time passes by both clocks
//	advance 16m                  by the hub's
//	frozen 3s                    by the machine's, while the hub's stands
//	policy grace 10s             or allow, keep, strict; back: the clock is put back
//
// Between two lines there is a millisecond.
type script struct {
	t       testing.TB
	record  []*Exchange
	now     Mark
	order   int
	ended   []Mark
	policy  Policy
	slow    time.Duration // that an answer takes
	life    time.Duration
	pair    int                  // the session's current one
	issued  map[int]time.Time    // of the pairs
	opened  map[string]time.Time // of the connections
	origin  Origin
	line    string   // of the script, that is being played
	pending []func() // answers that are still to come
	session string
	browser bool
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newScript(t testing.TB) *script {
	return &script{t: t, now: Mark{Hub: noon, Machine: noon}, life: 15 * time.Minute, session: "s",
		issued: map[int]time.Time{0: noon}, opened: make(map[string]time.Time)}
}

// run plays a script about a session whose access tokens live 15 minutes, and returns the verdict at its end.
func run(t *testing.T, text string) Verdict {
	t.Helper()
	s := newScript(t)
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(text), "\n\n", "\n"), "\n") {
		s.step(strings.TrimSpace(line))
	}
	return Judge(s.record, s.now, s.ended)
}

func (s *script) step(line string) {
	s.pass(time.Millisecond, time.Millisecond)
	words := strings.Fields(line)
	switch words[0] {
	case "after":
		s.pass(s.span(words[1]), s.span(words[1]))
	case "advance":
		s.pass(s.span(words[1]), 0)
	case "frozen":
		s.pass(0, s.span(words[1]))
	case "life":
		s.life = s.span(words[1])
	case "ordered":
		s.origin = FromOrder
	case "slow":
		s.slow = s.span(words[1])
		s.exchange(strings.Join(words[2:], " "))
		s.slow = 0
	case "later":
		s.pass(time.Millisecond, time.Millisecond)
		for _, finish := range s.pending {
			finish()
		}
		s.pending = nil
	case "empty":
		s.record = nil
	case "open":
		s.opened[words[1]] = s.now.Machine
	case "browser":
		s.browser = true
	case "defect":
		s.origin = FromDefect
	case "policy":
		s.startEpoch()
		s.policy = Policy{Allow: words[1] == "allow", NoRotation: words[1] == "keep"}
		if words[1] == "grace" {
			s.policy.Grace = s.span(words[2])
		}
	case "back":
		s.startEpoch()
		s.now.Hub = s.now.Hub.Add(-s.span(words[1]))
	default:
		s.line = line
		s.exchange(line)
	}
}

func (s *script) pass(hub, machine time.Duration) {
	s.now.Hub, s.now.Machine = s.now.Hub.Add(hub), s.now.Machine.Add(machine)
}

func (s *script) startEpoch() { s.ended = append(s.ended, s.now) }

func (s *script) span(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// mark is now, as the next point of the record.
func (s *script) mark() Mark {
	s.order++
	m := s.now
	m.Order = s.order
	return m
}

// exchange adds what arrives together.
func (s *script) exchange(line string) {
	steps := strings.Split(line, "|")
	answer := strings.Fields(steps[len(steps)-1])[3:]
	first := len(s.record)
	for _, step := range steps {
		s.record = append(s.record, s.arrive(strings.Fields(step)))
	}
	s.pass(max(s.slow, 100*time.Microsecond), max(s.slow, 100*time.Microsecond))
	for _, e := range s.record[first:] {
		if answer[len(answer)-1] == "later" {
			s.pending = append(s.pending, func() { s.answer(e, answer[:len(answer)-1]) })
		} else {
			s.answer(e, answer)
		}
	}
}

func (s *script) arrive(words []string) *Exchange {
	conn, path, token := words[0], words[1], words[2]
	path, method, _ := strings.Cut(path, ":")
	operation, _, _ := strings.Cut(path, "/")
	if s.opened[conn].IsZero() {
		s.opened[conn] = s.now.Machine
	}
	id, _ := strconv.ParseInt(conn[1:], 10, 64)
	e := &Exchange{Seq: len(s.record) + 1, Epoch: len(s.ended), Policy: s.policy, Arrival: s.mark(), Conn: id, Opened: s.opened[conn], Sent: s.now.Machine,
		Operation: operation, Method: cmp.Or(method, "GET"), Path: "/" + path, Origin: s.origin, Browser: s.browser,
		Current: Current{Pair: Pair{Generation: s.pair, Issued: s.issued[s.pair], Lifetime: s.life}}}
	if operation == "login" && !strings.HasSuffix(s.line, "injected") {
		e.Session, e.User = s.session, "demo"
	}
	if strings.HasPrefix(token, "b") {
		e.Session, e.User, e.Presented, e.Token = "other", "demo", 77, &Token{State: "valid", Issued: s.issued[-1]}
	} else if token != "-" {
		generation, _ := strconv.Atoi(token[1:])
		e.Session, e.User, e.Presented = s.session, "demo", uint64(len(token))<<8|uint64(token[0])<<16|uint64(generation+1)
		e.Token = &Token{Refresh: token[0] == 'r', Generation: generation, Issued: s.issued[generation], State: "valid"}
	}
	return e
}

func (s *script) answer(e *Exchange, words []string) {
	e.Status, _ = strconv.Atoi(words[0])
	e.Hub, e.Code = e.Status, ""
	for _, word := range words[1:] {
		switch {
		case word == "injected":
			e.Injected, e.Hub = true, 0
		case word == "lost":
			e.Lost, e.Status = true, 0
		case word == "left":
			e.Left, e.Status = true, 0
		case word == "unreached":
			e.Hub = 0
		case word == "all":
			e.Everywhere = true
		case word == "others":
			e.Elsewhere = true
		case word == "stranger":
			e.User = word
		case word == "other":
			e.Session, e.Body, s.issued[-1] = "other", 1, s.now.Hub
		case word == "ordered":
			e.Current.Expired = true
		case word == "open":
			e.Token.State = "expired"
		case word == "over":
			e.Current.RefreshOver = true
		case word == "address":
			e.InAddress = true
		case strings.HasPrefix(word, "query="):
			e.Query = uint64(len(word)) + uint64(word[6])
		case strings.HasPrefix(word, "wait="):
			e.RetryAfter = s.span(word[5:])
		default:
			e.Code = word
		}
	}
	if e.Code == "token_wrong_type" {
		e.Token.State = "wrong_type"
	}
	if e.Hub == 200 && (e.Operation == "login" || e.Operation == "refresh") {
		e.Given = s.give(e)
	}
	e.End = s.mark()
}

// give issues the next pair; within grace the same again.
func (s *script) give(e *Exchange) *Pair {
	if e.Session != s.session {
		return &Pair{Issued: s.now.Hub, Lifetime: s.life}
	}
	if e.Operation == "refresh" && (s.policy.Grace == 0 || e.Token.Generation == s.pair) {
		s.pair++
	}
	if s.issued[s.pair].IsZero() || e.Operation == "login" {
		s.issued[s.pair] = s.now.Hub
	}
	return &Pair{Generation: s.pair, Issued: s.issued[s.pair], Lifetime: s.life}
}

// row is a script and what is said of it: rules with the numbers of their requests.
type row struct{ name, script, want string }

// check plays all rows.
func check(t *testing.T, rows []row) {
	t.Helper()
	for _, tt := range rows {
		t.Run(tt.name, func(t *testing.T) {
			login := "c1 login - 200\n"
			if strings.HasPrefix(tt.script, "ordered") || strings.HasPrefix(tt.script, "defect") {
				login = ""
			}
			v := run(t, login+tt.script)
			var got []string
			for _, f := range append(v.Findings, v.Notes...) {
				got = append(got, fmt.Sprint(f.Rule, f.Seqs))
				if !strings.HasPrefix(f.Sentence, "Request") || !strings.HasSuffix(f.Sentence, ".") || strings.Contains(f.Sentence, "%!") {
					t.Errorf("sentence %q", f.Sentence)
				}
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
}

// loops is n times the line, with new connections for cX and cY.
func loops(n int, line string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, strings.NewReplacer("cX", fmt.Sprint("c", 100+2*i), "cY", fmt.Sprint("c", 101+2*i)).Replace(line))
	}
	return b.String()
}

// numbers spells the numbers from a to b.
func numbers(a, b int) string {
	var all []int
	for ; a <= b; a++ {
		all = append(all, a)
	}
	return strings.Trim(fmt.Sprint(all), "[]")
}

const expired = "advance 15m\nc1 me a0 401 token_expired\n"

func TestTwoRefreshes(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"together", expired + "c1 refresh r0 200\nc2 refresh r0 401 token_reused", "two_refreshes[3 4]"},
		{"the loser is answered first", expired + "c2 refresh r0 401 token_reused\nc1 refresh r0 200", "two_refreshes[3 4]"},
		{"before half of the new pair's life", expired + "c1 refresh r0 200\nc1 me a1 200\nadvance 7m29s\nc1 refresh r0 401 token_reused", "two_refreshes[3 5]"},
		{"after half of it", expired + "c1 refresh r0 200\nc1 me a1 200\nadvance 7m31s\nc1 refresh r0 401 token_reused", "spent_refresh_token[3 5]"},
		{"none succeeded", expired + "c1 refresh r0 401 token_revoked\nc2 refresh r0 401 token_revoked", ""},
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
	check(t, []row{
		{"three times", "c1 refresh r0 200\nc1 refresh r1 200\nc1 refresh r2 200", "refresh_without_need[2 3 4]"},
		{"twice", "c1 refresh r0 200\nc1 refresh r1 200", "early_refresh[2 3]"},
		{"three times, but not within a lifetime", "c1 refresh r0 200\nadvance 7m\nc1 refresh r1 200\nadvance 7m\nadvance 2m\nc1 refresh r2 200", "early_refresh[2 3]"},
		{"three times in more than a lifetime, with others on time between", "c1 refresh r0 200\nadvance 8m\nc1 refresh r1 200\nadvance 1m\nc1 refresh r2 200\nadvance 8m\n" +
			"c1 refresh r3 200\nadvance 1m\nc1 refresh r4 200", "early_refresh[2 4 6]"},
		{"three times, but the policy changes", "c1 refresh r0 200\nc1 refresh r1 200\npolicy strict\nc1 refresh r2 200", "early_refresh[2 3 4]"},
		{"with two minutes left of three", "life 3m\nafter 61s\nc1 refresh r0 200\nafter 61s\nc1 refresh r1 200\nafter 61s\nc1 refresh r2 200", ""},
		{"with half left", "after 7m30s\nc1 refresh r0 200", ""},
		{"with less than half left by the client's clock, while the hub's is frozen", "frozen 8m\nc1 refresh r0 200", ""},
		{"with a little more than half left", "after 7m29s\nc1 refresh r0 200", "early_refresh[2]"},
		{"after a 401, whoever gave it", "c1 me a0 401 injected\nc1 refresh r0 200", ""},
		{"tries of one refresh", "c1 refresh r0 503 injected\nc1 refresh r0 503 injected\nc1 refresh r0 200", "early_refresh[4]"},
		{"without rotation", "policy keep\nc1 refresh r0 200\nc1 refresh r0 200\nc1 refresh r0 200", "refresh_without_need[2 3 4]"},
		{"with an ordered token", "ordered\nc1 refresh r0 200\nc1 refresh r1 200\nc1 refresh r2 200", ""},
	})
}

// loop returns a script in which a line is played so many times.
func loop(n int, line string) string { return strings.Repeat(line+"\n", n) }

func TestRepeatedFailure(t *testing.T) {
	t.Parallel()
	settled := slices.Clone(failures)
	for i := range settled {
		settled[i].script = strings.TrimSpace(settled[i].script) + "\nafter 3s" // what the client may do in time, it has done
	}
	check(t, settled)
	check(t, []row{{"while the client may still refresh", expired + loop(5, "c1 me a0 401 token_expired"), ""}})
}

var failures = []row{
	{"five times", loop(5, "c1 me a0 503 injected"), "repeated_failure[2 3 4 5 6]"},
	{"four times", loop(4, "c1 me a0 503 injected"), ""},
	{"over connections cut by a fault", loops(5, "cX me a0 0 lost\nafter 100ms"), "repeated_failure[2 3 4 5 6]"},
	{"over connections cut by a fault, which a library may repeat by itself", loops(5, "cX me a0 0 lost"), ""},
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
		"after 1100ms\n" + loop(3, "c1 me a0 401 token_expired") + "after 3s", "no_refresh_after_expiry[11 12 13]"},
	{"with a dead refresh token", loop(5, "c1 refresh r0 401 token_revoked"), "repeated_failure[2 3 4 5 6]"},
	{"a crowd that met the end of the token", "advance 15m\n" + loop(4, "c1 me a0 | c2 me a0 401 token_expired") + "c1 me a0 401 token_expired\nc1 refresh r0 200\n" +
		loop(9, "c1 me a1 200"), ""},
	{"tries one after the other over one connection, then a refresh and as many requests", expired + loop(5, "c1 me a0 401 token_expired") + "c1 refresh r0 200\n" + loop(6, "c1 me a1 200"),
		"repeated_failure[2 3 4 5 6 7]"},
	{"a crowd, and one that tries on", expired + loop(5, "c1 me a0 401 token_expired") + "c1 refresh r0 200\n" + loop(2, "c1 me a1 200") + "\nafter 3s",
		"repeated_failure[2 3 4 5 6 7]"},
	{"a crowd whose refresh fails", "advance 15m\n" + loop(5, "c1 me a0 | c2 me a0 | c3 me a0 401 token_expired") + "c1 refresh r0 401 token_revoked", ""},
	{"the rest of a crowd, behind a refresh that failed", expired + "c1 refresh r0 503 injected\n" + loop(4, "c1 me a0 | c2 me a0 401 token_expired") + "c1 me a0 401 token_expired", ""},
	{"one caller, behind a refresh that failed", expired + "c1 refresh r0 503 injected\n" + loop(5, "c1 me a0 401 token_expired"), "repeated_failure[2 4 5 6 7 8]"},
	{"a loop that goes on behind a refresh that failed", expired + "c1 refresh r0 503 injected\n" + loop(6, "c1 me a0 401 token_expired\nafter 300ms") + "\nafter 3s",
		"repeated_failure[2 4 5 6 7 8 9] no_refresh_after_expiry[8 9]"},
	{"a loop without a refresh", "advance 15m\n" + loop(5, "c1 me a0 401 token_expired") + "\nafter 3s", "no_refresh_after_expiry[2 3 4 5 6] repeated_failure[2 3 4 5 6]"},
	{"a loop of a script that is no browser, and a refresh that fails", expired + loop(5, "c1 me a0 401 token_expired") + "c1 refresh r0 401 token_expired\nafter 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"a loop of a script with a revoked token, and a logout", loop(6, "c1 me a0 401 token_revoked") + "c1 logout a0 204\nafter 3s", "repeated_failure[2 3 4 5 6 7]"},
	{"the same of a page, of which Chromium sends one at a time", "browser\n" + loop(12, "c1 me a0 503 injected") + "after 3s", ""},
	{"a page that tries with pauses", "browser\n" + loop(6, "c1 me a0 503 injected\nafter 300ms"), "repeated_failure[2 3 4 5 6 7]"},
	{"a page in a loop without end", "browser\n" + loop(70, "c1 me a0 503 injected"), "repeated_failure[" + numbers(2, 71) + "]"},
	{"a page that posts the same wrong password", "browser\n" + loop(6, "c1 login:POST - 401 invalid_credentials injected"), "repeated_failure[2 3 4 5 6 7]"},
	{"a loop around a refresh that fails", "advance 15m\n" + loop(5, "c1 me a0 401 token_expired\nc1 refresh r0 401 token_revoked") + "after 3s",
		"repeated_failure[" + numbers(2, 11) + "]"},
	{"callers in a browser's queue, whose refresh fails", "browser\n" + expired + loop(5, "c1 me a0 401 token_expired") + "c1 refresh r0 503 injected", ""},
	{"callers in a browser's slow queue, whose refresh fails behind them", "browser\n" + expired + loop(6, "slow 250ms c1 me a0 401 token_expired") + "c1 refresh r0 503 injected", ""},
	{"callers in a browser's queue, and a logout", "browser\n" + expired + loop(5, "c1 me a0 401 token_expired") + "c1 logout a0 204", ""},
	{"tries one after the other, and a refresh that fails", "advance 15m\n" + loop(5, "c1 me a0 401 token_expired\nafter 300ms") + "c1 refresh r0 503 injected" + "\nafter 3s",
		"repeated_failure[2 3 4 5 6]"},
	{"callers in a queue that wait as they are asked", loop(8, "c1 me a0 503 injected wait=1s") + "after 1s\n" + loop(8, "c1 me a0 200"), ""},
	{"a loop, and other work a little later", loop(6, "c1 me a0 503 injected") + "after 250ms\n" + loop(6, "c1 me a0 200"), "repeated_failure[2 3 4 5 6 7]"},
	{"a loop with a rest", loop(2, loop(5, "c1 me a0 503 injected")+"after 1s"), "repeated_failure[2 3 4 5 6 7 8 9 10 11]"},
	{"callers in a queue that each try five times", loop(5, loop(5, "c1 me a0 503 injected")+"after 250ms") + loop(5, "c1 me a0 200"),
		"repeated_failure[2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26]"},
	{"a loop, and other work at once", loop(5, "c1 me a0 503 injected") + loop(8, "c1 me a0 200"), "repeated_failure[2 3 4 5 6]"},
	{"three files, each twice", loop(2, "c1 file/1 a0 503 injected\nc1 file/2 a0 503 injected\nc1 file/3 a0 503 injected"), ""},
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
	{"workers with one token that log in anew, one after the other", loops(6, "cX me a0 401 token_revoked\ncX login - 200 other\ncX me b0 200\nafter 1s"), ""},
	{"callers over one connection, and one login for all", "c1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked\nc1 login - 200 other\nc1 me b0 200\n" + loop(20, "c1 me a0 401 token_revoked\nc1 me b0 200"), ""},
	{"pages that look for a session at each load before the login", loop(6, "c1 refresh - 401 token_missing\nc1 login - 200 other\nc1 me b0 200\nafter 500ms"), ""},
	{"the same wrong password, while another client logs in over a new connection each time", loops(8, "c1 login:POST - 401 invalid_credentials injected\nafter 300ms\ncX login:POST - 200 other"), "repeated_failure[2 4 6 8 10 12 14 16]"},
	{"threads over two connections of a slow server, each sent again at once", "advance 15m\nslow 300ms c1 me a0 | c2 me a0 401 token_expired\nslow 20ms c1 refresh r0 200\n" +
		loop(9, "slow 300ms c1 me a1 | c2 me a1 200\nslow 300ms c1 me a0 | c2 me a0 401 token_expired") + "slow 300ms c1 me a1 | c2 me a1 200\nafter 3s", ""},
	{"a download in parts, each right at the second try", loop(6, "c1 file a0 503 injected\nafter 200ms\nc1 file a0 206\n") + "after 3s", ""},
	{"a page without a token that polls, while another client works", "c2 login - 200 other\n" + loop(6, "c1 me - 401 token_missing\nafter 300ms\nc2 me b0 200\nafter 300ms"), "repeated_failure[3 5 7 9 11 13]"},
	{"a download that goes on each time where it was cut", "c1 file a0 200 lost\n" + loop(6, "c1 file a0 206 lost\nafter 200ms") + "c1 file a0 206", ""},
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
	{"four callers side by side, who try again over new connections", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 503 injected\n" + loops(12, "after 150ms\ncX me a0 503 injected"), ""},
	{"four callers side by side, whose connections then take turns", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 503 injected\n" +
		loop(3, "after 50ms\nc1 me a0 503 injected\nafter 50ms\nc2 me a0 503 injected\nafter 50ms\nc3 me a0 503 injected\nafter 50ms\nc4 me a0 503 injected"), ""},
	{"a loop behind a race that has ended the session", expired + "c1 refresh r0 200\nc2 refresh r0 401 token_reused\n" + loop(8, "c1 me a1 401 token_revoked\nafter 300ms") + "after 3s",
		"two_refreshes[3 4] repeated_failure[5 6 7 8 9 10 11 12]"},
	{"the old access token, and the new one in the end", "policy keep\nadvance 15m\n" + loop(6, "c1 me a0 401 token_expired\nc1 refresh r0 200") + "c1 me a6 200\nafter 3s",
		"repeated_failure[2 4 6 8 10 12]"},
	{"a suite that types a wrong password before the right one", loop(6, "c1 login:POST - 401 invalid_credentials injected\nc1 login:POST - 200 other"), ""},
	{"a suite that asks without a token before it logs in", loop(6, "c1 me - 401 token_missing\nc1 login - 200 other\nc1 me b0 200"), ""},
	{"two workers of a suite, each of whose wrong passwords is followed by the right one", "c1 login:POST - 401 invalid_credentials injected\n" +
		loop(6, "c2 login:POST - 401 invalid_credentials injected\nc1 login:POST - 200 other\nc1 login:POST - 401 invalid_credentials injected\nc2 login:POST - 200 other"), ""},
	{"two workers at the same time, each of whose wrong passwords is followed by the right one", "c1 login:POST - 401 invalid_credentials injected\n" +
		loop(6, "c2 login:POST - 401 invalid_credentials injected later\nc1 login:POST - 200 other\nlater\n"+
			"c1 login:POST - 401 invalid_credentials injected later\nc2 login:POST - 200 other\nlater"), ""},
	{"five wrong passwords, and then the right one", loop(5, "c1 login:POST - 401 invalid_credentials injected\n") + "c1 login:POST - 200 other", "repeated_failure[2 3 4 5 6]"},
	{"the same wrong password, while another client logs in over its own connection", "c2 login:POST - 200 other\n" +
		loop(6, "c1 login:POST - 401 invalid_credentials injected\nc2 login:POST - 200 other"), "repeated_failure[3 5 7 9 11 13]"},
	{"a loop while somebody mistypes a password", loop(8, "c1 me a0 401 token_revoked") + "c2 login - 401 stranger invalid_credentials injected\nafter 3s", "repeated_failure[2 3 4 5 6 7 8 9]"},
	{"two tabs in a loop without end", loop(40, "c1 me a0 | c2 me a0 503 injected"), "repeated_failure[" + numbers(2, 81) + "]"},
	{"two tabs in a loop with little pauses", loop(8, "c1 me a0 | c2 me a0 503 injected\nafter 50ms"), "repeated_failure[" + numbers(2, 17) + "]"},
	{"two tabs in a loop with little pauses, each time over a new connection", loops(8, "cX me a0 | cY me a0 503 injected\nafter 50ms"), "repeated_failure[" + numbers(2, 17) + "]"},
	{"two tabs, five tries each", loop(5, "c1 me a0 | c2 me a0 503 injected"), "repeated_failure[" + numbers(2, 11) + "]"},
	{"a loop beside callers who try once", "c2 me a0 | c3 me a0 | c4 me a0 | c1 me a0 503 injected\n" + loop(5, "c1 me a0 503 injected"), "repeated_failure[" + numbers(5, 10) + "]"},
	{"a poll with the expired token, then a refresh and more of the poll", expired + loop(5, "c1 me a0 401 token_expired\nafter 150ms") + "c1 refresh r0 200\n" + loop(6, "c1 me a1 200\nafter 150ms") + "after 2s",
		"repeated_failure[" + numbers(2, 7) + "]"},
	{"three tabs, of which one tries five times", loop(4, "c1 me a0 | c2 me a0 | c3 me a0 503 injected") + "c1 me a0 503 injected", "repeated_failure[2 5 8 11 14]"},
	{"three tabs with three, five and seven tries", loop(3, "c1 me a0 | c2 me a0 | c3 me a0 503 injected") + loop(2, "c1 me a0 | c2 me a0 503 injected") + loop(2, "c1 me a0 503 injected"),
		"repeated_failure[2 3 5 6 8 9 11 12 13 14 15 16]"},
	{"two tabs, four tries each", loop(4, "c1 me a0 | c2 me a0 503 injected"), ""},
	{"thirty callers over five of a browser's six connections, and a slow request over the other one", "browser\nc6 listing a0 200 later\n" +
		loop(6, "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 503 injected") + "later", ""},
	{"forty callers over a browser's six connections", "browser\n" + loop(7, "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 503 injected"), ""},
	{"six callers side by side that are no browser's, seven tries each", loop(7, "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 503 injected"),
		"repeated_failure[" + numbers(2, 43) + "]"},
	{"a loop, and one request of another tab", "c1 me a0 | c2 me a0 503 injected\n" + loop(5, "c1 me a0 503 injected"), "repeated_failure[2 4 5 6 7 8]"},
	{"a loop over new connections, while another tab works", loops(6, "c1 listing a0 200 later\ncX me a0 503 injected\nlater"), "repeated_failure[3 5 7 9 11 13]"},
	{"five methods on one path", "c1 me:GET - 405\nc1 me:PUT - 405\nc1 me:POST - 405\nc1 me:HEAD - 405\nc1 me:PATCH - 405", ""},
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
	{"many requests over one connection, all sent again", "advance 15m\n" + loop(12, "c1 me a0 401 token_expired") + "c1 refresh r0 200\n" + loop(12, "c1 me a1 200"), ""},
	{"callers over two connections who each refresh and give up", "advance 15m\n" + loop(6, "c1 me a0 | c2 me a0 401 token_expired") + "c1 refresh r0 200\n" +
		loop(5, "c1 refresh r0 | c2 refresh r0 401 token_reused"), "two_refreshes[" + numbers(14, 24) + "]"},
	{"callers over two connections, only one of whom is sent again", "advance 15m\n" + loop(6, "c1 me a0 | c2 me a0 401 token_expired") + "c1 refresh r0 200\nc1 me a1 200",
		"not_repeated[13 14]"},
	{"tries with pauses over one connection, and as many after a refresh", "advance 15m\n" + loop(14, "c1 me a0 401 token_expired\nafter 90ms") + "c1 refresh r0 200\n" + loop(14, "c1 me a1 200"),
		"repeated_failure[" + numbers(2, 15) + "]"},
	{"two polls until the outage ends", loop(7, "c1 me a0 | c2 me a0 503 injected\nafter 60ms") + loop(7, "c1 me a0 | c2 me a0 200\nafter 60ms"), "repeated_failure[" + numbers(2, 15) + "]"},
	{"six callers side by side, one of whom polls on", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 503 injected\n" + loop(24, "after 400ms\nc1 me a0 503 injected"), "repeated_failure[" + numbers(2, 31) + "]"},
	{"six callers side by side, three tries each, spread by chance", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 | c6 me a0 503 injected\n" + loop(6, "after 90ms\nc1 me a0 503 injected\nafter 70ms\nc2 me a0 503 injected"), ""},
	{"callers in a queue that wait as they are asked, five times", loop(5, loop(6, "c1 me a0 503 injected wait=1s")+"after 1s") + "after 3s", "repeated_failure[" + numbers(2, 31) + "]"},
	{"callers in a queue that wait as they are asked, and give up", loop(3, loop(6, "c1 me a0 503 injected wait=1s")+"after 1s") + "after 3s", ""},
	{"a loop under Retry-After until it works", loop(6, "c1 me a0 503 injected wait=1s") + loop(6, "c1 me a0 200") + "after 3s",
		"repeated_failure[2 3 4 5 6 7] retry_after_ignored[2 3 4 5 6 7 8]"},
	{"a loop under Retry-After with a stall", loop(6, "c1 me a0 503 injected wait=1s") + "after 120ms\n" + loop(3, "c1 me a0 503 injected wait=1s") + "after 3s",
		"repeated_failure[2 3 4 5 6 7 8 9 10] retry_after_ignored[2 3 4 5 6 7 8 9 10]"},
	{"a loop with the old token, and a refresh at the second try that nobody uses", expired + loop(6, "c1 me a0 401 token_expired") + "c1 refresh r0 503 injected\nc1 refresh r0 200\nafter 3s",
		"repeated_failure[2 3 4 5 6 7 8] not_repeated[8 10]"},
	{"ten callers side by side, four tries each", "c1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 200\n" + loop(4, "c1 me a0 503 injected\nc2 me a0 503 injected\nc3 me a0 503 injected\nc4 me a0 503 injected\nafter 200ms"), ""},
	{"six callers in a queue, three tries each", loop(3, loop(6, "c1 me a0 503 injected wait=1s")+"after 1s") + loop(6, "c1 me a0 200"), ""},
	{"widgets that load during a slow refresh that is refused, and a login", "c1 me a0 401 token_revoked\nc9 refresh r0 401 token_revoked later\n" +
		loop(6, "after 150ms\nc1 me a0 401 token_revoked") + "later\nc1 login - 200 other\n" + loop(7, "c1 me b0 200"), ""},
	{"jobs that took the old token before they waited, each sent again", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loop(7, "after 30ms\nc1 me a0 401 token_expired\nc1 me a1 200"), ""},
	{"a stale poll beside another one", expired + "c1 refresh r0 200\nc1 me a1 200\n" + loop(9, "after 500ms\nc1 me a0 401 token_expired\nc2 me a1 200"),
		"repeated_failure[2 5 7 9 11 13 15 17 19 21]"},
	{"a stale poll behind a crowd", "advance 15m\n" + loop(6, "c1 me a0 | c2 me a0 401 token_expired") + "c1 refresh r0 200\n" + loop(12, "c1 me a1 200") + "after 1s\n" +
		loop(5, "c1 me a0 401 token_expired\nc2 me a1 200\nafter 500ms"), "repeated_failure[27 29 31 33 35]"},
	{"a loop right behind a race that has ended the session", expired + "c1 refresh r0 200\nc2 refresh r0 401 token_reused\n" + loop(8, "c1 me a1 401 token_revoked"),
		"two_refreshes[3 4] repeated_failure[5 6 7 8 9 10 11 12]"},
	{"widgets that load during a slow refresh", "advance 15m\nc1 me a0 401 token_expired\nc9 refresh r0 200 later\n" + loop(6, "after 150ms\nc1 me a0 401 token_expired") + "later\n" + loop(7, "c1 me a1 200"), ""},
	{"goes on with the old access token", "policy keep\nadvance 15m\n" + loop(5, "c1 me a0 401 token_expired\nc1 refresh r0 200") + "\nafter 3s", "repeated_failure[2 4 6 8 10] not_repeated[2 3]"},
	{"after a logout", "c1 logout a0 204\n" + loop(5, "c1 me a0 401 token_revoked"), "token_after_logout[2 3 4 5 6 7]"},
	{"a race is not told again", expired + "c1 refresh r0 200\n" + loop(6, "c1 refresh r0 401 token_reused"), "two_refreshes[3 4 5 6 7 8 9]"},
}

func TestTokenAfterLogout(t *testing.T) {
	t.Parallel()
	check(t, []row{
		{"on the same connection", "c1 logout a0 204\nc1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked", "token_after_logout[2 3 4]"},
		{"on a new connection", "c1 logout a0 204\nc2 me a0 401 token_revoked", "token_after_logout[2 3]"},
		{"on the same connection, behind one over a connection opened before", "open c2\nafter 5ms\nc1 logout a0 204\nc2 me a0 401 token_revoked\nc1 me a0 401 token_revoked", "token_after_logout[2 4]"},
		{"on another, too close to tell", "c2 me a0 200\nc1 logout a0 204\nc2 me a0 401 token_revoked", ""},
		{"on another, more than 100 ms later", "c2 me a0 200\nc1 logout a0 204\nafter 101ms\nc2 me a0 401 token_revoked", "token_after_logout[3 4]"},
		{"behind it on its connection, where others came beside it", "c1 me a0 200\nc1 logout a0 | c2 me a0 204\nc1 me a0 401 token_revoked", ""},
		{"a quick poll that goes on, where one came beside it", "c1 me a0 200\nc1 logout a0 | c2 me a0 204\n" + loop(5, "after 100ms\nc2 me a0 401 token_revoked"),
			"token_after_logout[3 5 6 7 8 9]"},
		{"another tab's slow request over the logout, and one 150 ms later", "c1 me a0 200\nc2 me a0 200 later\nc1 logout a0 | c3 me a0 204\nafter 150ms\nc1 me a0 401 token_revoked\nlater", "token_after_logout[4 6]"},
		{"behind it on its connection, where others were opened for what left with it", "c1 me a0 200\nc1 logout a0 204 later\nopen c2\nopen c3\nlater\nafter 60ms\nc2 me a0 | c3 me a0 | c1 me a0 401 token_revoked", ""},
		{"a little later, where others came beside it", "c1 me a0 200\nc1 logout a0 | c2 me a0 204\nafter 300ms\nc1 me a0 401 token_revoked", "token_after_logout[3 5]"},
		{"a refresh, soon after one before the logout", "advance 16m\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 logout a1 204\nc1 refresh r1 401 token_revoked",
			"token_after_logout[4 5]"},
		{"two tabs that hear one by one that a logout from elsewhere has ended the session", "c1 me a0 200\nc2 me a0 200\nc3 login - 200 other\nc3 logout b0 204 all\nc1 me a0 401 token_revoked\nc1 refresh r0 401 token_revoked\nafter 2s\n" +
			"c2 me a0 401 token_revoked\nc2 refresh r0 401 token_revoked", ""},
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
		{"with the next pair's token", "c1 me a0 503 injected wait=2m\nc1 refresh r0 200\nc1 me a1 200", "retry_after_ignored[2 4] early_refresh[3]"},
		{"another operation", "c1 me a0 503 injected wait=2m\nc1 listing a0 200", ""},
		{"together", "c1 me a0 | c2 me a0 | c3 me a0 503 injected wait=2s", ""},
		{"callers in a queue that wait as they are asked", "c1 me a0 503 injected wait=2s\nc1 me a0 503 injected wait=2s\nafter 2s\nc1 me a0 200\nc1 me a0 200", ""},
		{"another caller in a browser's queue fares better", "browser\nc1 me a0 503 injected wait=2s\nc1 me a0 200\nafter 2s\nc1 me a0 200", ""},
		{"a retry at once that works, and more work later", "c1 me a0 503 injected wait=1s\nc1 me a0 200\nafter 1300ms\nc1 me a0 503 injected wait=1s\nc1 me a0 200\nafter 1300ms\nc1 me a0 200",
			"retry_after_ignored[2 3 4 5]"},
		{"another caller's first request, and a retry at once after the other's success", "c2 me a0 200\nc1 me a0 503 injected wait=1s\nafter 200ms\nc2 me a0 200\nafter 800ms\nc1 me a0 200\n" +
			"after 1s\nc1 me a0 503 injected wait=1s\nafter 300ms\nc1 me a0 503 injected wait=1s\nafter 400ms\nc1 me a0 200\nafter 2s", "retry_after_ignored[6 7 8]"},
		{"another client's poll of the same list without a token", "c2 listing - 200\nc1 listing - 503 injected wait=3s\nafter 1s\nc2 listing - 200\nafter 2s\nc1 listing - 200\nc2 listing - 200\nafter 3s", ""},
		{"two callers of a slow server that wait as they are asked and give up", loop(2, "slow 400ms c1 me a0 503 injected wait=1s") + "after 620ms\n" + loop(2, "slow 400ms c1 me a0 503 injected wait=1s") + "after 5s", ""},
		{"another page of a list, and the one that was asked to wait in time", "c1 listing a0 503 injected wait=2s query=1\nafter 300ms\nc1 listing a0 200 query=2\nafter 1700ms\nc1 listing a0 200 query=1", ""},
		{"another page of a list at once, and the one that was asked to wait in time", "c1 listing a0 503 injected wait=2s query=1\nc1 listing a0 200 query=2\nafter 2s\nc1 listing a0 200 query=1", ""},
		{"another query for each try", "c1 listing a0 503 injected wait=2s query=1\nc1 listing a0 200 query=2\nafter 2s\nc1 listing a0 200 query=3", "retry_after_ignored[2 3]"},
		{"another caller's first request half a second later, and the retry to the moment", "c1 me a0 503 injected wait=2s\nafter 500ms\nc1 me a0 200\nafter 1500ms\nc1 me a0 200", ""},
		{"another caller's first request, and the retry a little after the moment, by chance", "c1 me a0 503 injected wait=2s\nafter 500ms\nc1 me a0 200\nafter 1800ms\nc1 me a0 200", ""},
		{"a retry half a second later that works, and more work after the moment", "c1 me a0 503 injected wait=2s\nafter 500ms\nc1 me a0 200\nafter 2s\nc1 me a0 200",
			"retry_after_ignored[2 3]"},
		{"a retry at once over a new connection that works, and more work later", "c1 me a0 503 injected wait=2s\nc2 me a0 200\nafter 2500ms\nc1 me a0 200", "retry_after_ignored[2 3]"},
		{"a request of another caller over a connection of its own, and the retry later", "c2 me a0 200\nc1 me a0 503 injected wait=2s\nafter 200ms\nc2 me a0 200\nafter 2300ms\nc1 me a0 200", ""},
		{"another caller on a page fares better, and the retry later", "browser\nc1 me a0 503 injected wait=2s\nafter 200ms\nc1 me a0 200\nafter 2300ms\nc1 me a0 200", ""},
		{"a page that tries again soon", "browser\nc1 me a0 503 injected wait=2s\nafter 200ms\nc1 me a0 200\nafter 3s", "retry_after_ignored[2 3]"},
		{"a retry at once that works, and a poll to the moment", "c1 me a0 503 injected wait=2s\nc1 me a0 200\nafter 2s\nc1 me a0 200", "retry_after_ignored[2 3]"},
		{"a retry at once that works, and more work after the clock was advanced", "c1 me a0 503 injected wait=2s\nc1 me a0 200\nadvance 10m\nc1 me a0 200", "retry_after_ignored[2 3]"},
		{"three callers side by side that come again soon", "c1 me a0 | c2 me a0 | c3 me a0 503 injected wait=2s\nafter 400ms\nc1 me a0 | c2 me a0 | c3 me a0 200\nafter 3s",
			"retry_after_ignored[2 3 4 5 6 7]"},
		{"two answers that ask for different times", "c1 me a0 503 injected wait=3s\nc2 me a0 503 injected wait=1s\nafter 1200ms\nc2 me a0 200\nafter 1800ms\nc1 me a0 200", ""},
		{"a retry at once, and one in time", "c1 me a0 503 injected wait=2s\nc1 me a0 503 injected wait=2s\nafter 2s\nc1 me a0 200", "retry_after_ignored[2 3]"},
		{"callers in the queue of a slow server", loop(12, "slow 200ms c1 me a0 503 injected wait=1s") + loop(12, "slow 200ms c1 me a0 200"), ""},
		{"callers in two queues of a slow server", loop(12, "slow 200ms c1 me a0 | c2 me a0 503 injected wait=1s") + loop(12, "slow 200ms c1 me a0 | c2 me a0 200"), ""},
		{"a loop that waits for a slow server", loop(12, "slow 200ms c1 me a0 503 injected wait=1s") + "slow 200ms c1 me a0 200\nafter 2s",
			"repeated_failure[2 3 4 5 6 7 8 9 10 11 12 13] retry_after_ignored[2 3 4 5 6 7 8 9 10 11 12 13 14]"},
		{"callers of a slow server whose retries meet first tries", loop(6, "slow 200ms c1 me a0 503 injected wait=1s") +
			loop(3, "slow 200ms c1 me a0 200\nslow 200ms c1 me a0 503 injected wait=1s") + loop(9, "slow 200ms c1 me a0 200"), ""},
		{"two tabs in a loop that do not care", loop(40, "c1 me a0 | c2 me a0 503 injected wait=30s"), "repeated_failure[" + numbers(2, 81) + "] retry_after_ignored[" + numbers(2, 81) + "]"},
		{"a poll that does not care", loop(20, "c1 me a0 503 injected wait=1s\nafter 300ms") + loop(9, "c1 me a0 200\nafter 300ms"),
			"repeated_failure[2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21] retry_after_ignored[2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22]"},
		{"two callers, one a little later", "c1 me a0 503 injected wait=2s\nafter 300ms\nc1 me a0 503 injected wait=2s\nafter 1700ms\nc1 me a0 200\nafter 300ms\nc1 me a0 200", ""},
		{"a retry soon, and one in time", "c1 me a0 503 injected wait=2s\nafter 300ms\nc1 me a0 503 injected wait=2s\nafter 2s\nc1 me a0 200\nafter 1s\nc1 me a0 200",
			"retry_after_ignored[2 3]"},
		{"four tries, each too soon", "c1 me a0 503 injected wait=2s\nc1 me a0 503 injected wait=2s\nc1 me a0 503 injected wait=2s\nc1 me a0 200", "retry_after_ignored[2 3 4 5]"},
		{"the answer was lost", "c1 me a0 503 lost wait=2s\nc2 me a0 200", ""},
		{"the answer was lost, and the next try comes soon", "c1 me a0 503 lost busy wait=2s\nafter 300ms\nc2 me a0 200\nafter 3s", ""},
		{"a success that says when to ask again", "c1 me a0 200 wait=2s\nc1 me a0 200", ""},
		{"an error with the status of a success", "c1 me a0 200 busy wait=2s\nc1 me a0 200", "retry_after_ignored[2 3]"},
		{"the clock is put back", "c1 me a0 429 wait=1m\nback 1h\nc1 me a0 200", ""},
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
	{"nothing in two seconds", expired + "after 2s", "no_refresh_after_expiry[2]"},
	{"nothing yet", expired + "after 1s", ""},
	{"nothing, where another client of the user had logged in since the token expired", "c2 me a0 200\nadvance 15m\nc3 login - 200 other\nc3 me b0 200\nafter 700ms\nc1 me a0 | c2 me a0 401 token_expired\nafter 100ms\nc3 me b0 200\nafter 2s",
		"no_refresh_after_expiry[5 6]"},
	{"workers that each send two requests and log in anew", "advance 15m\n" + loops(3, "cX me a0 | cY me a0 401 token_expired\ncX login - 200 other\ncX me b0 200\ncY me b0 200\nafter 3s"), ""},
	{"another tab that hears late of a login, beside one that reads what is open to all", "advance 15m\nc1 me a0 401 token_expired\nc1 login - 200 other\nc1 me b0 200\nc3 listing a0 200 open\nafter 700ms\nc3 listing a0 200 open\nafter 300ms\nc2 me a0 401 token_expired\nc2 me b0 200\nc3 listing a0 200 open\nafter 3s", ""},
	{"threads over two connections of a slow server, and one login for all", "advance 15m\nslow 300ms c1 me a0 | c2 me a0 401 token_expired\nslow 300ms c1 login - 200 other\n" +
		loop(3, "slow 300ms c1 me b0 | c2 me b0 200\nslow 300ms c1 me a0 | c2 me a0 401 token_expired") + "slow 300ms c1 me b0 | c2 me b0 200\nafter 3s", ""},
	{"a poll that meets the end of its token beside others, and one login for all", "life 3s\n" + loop(15, "after 200ms\nc1 me a0 200\n") + "c1 me a0 401 token_expired\nc1 login - 200 other\n" + loop(2, "c1 me a0 401 token_expired\nc1 me b0 200\n") + "c1 me b0 200\nafter 3s", ""},
	{"nothing, while a guest's page tries to refresh without a token", "c2 refresh - 401 token_missing\n" + expired + "after 900ms\nc2 refresh - 401 token_missing\nafter 2s", "no_refresh_after_expiry[3]"},
	{"workers with one token that log in anew, one after the other", "advance 15m\n" + loop(3, "c1 me a0 401 token_expired\nc1 login - 200 other\nc1 me b0 200\nafter 3s"), ""},
	{"a quick poll that goes on, while another client of the user logs in", expired + loop(16, "after 200ms\nc1 me a0 401 token_expired\nc2 login - 200 other") + "after 3s",
		"no_refresh_after_expiry[2 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31 33] repeated_failure[2 3 5 7 9 11 13 15 17 19 21 23 25 27 29 31 33]"},
	{"time passes by the hub's clock", expired + "advance 3s", "no_refresh_after_expiry[2]"},
	{"time passes while the hub's clock is frozen", expired + "frozen 3s", "no_refresh_after_expiry[2]"},
	{"the refresh token has expired, too", "advance 15m\nc1 me a0 401 token_expired over\nafter 3s", ""},
	{"a refresh in time", expired + "after 1900ms\nc1 refresh r0 200\nc1 me a1 200", ""},
	{"a refresh that waited behind others", "browser\n" + expired + loop(6, "slow 500ms c1 me a0 401 token_expired") + "c1 refresh r0 503 injected\nafter 3s", ""},
	{"a poll that goes on, and a refresh", expired + loop(6, "after 500ms\nc1 me a0 401 token_expired") + "c1 refresh r0 503 injected\nafter 3s",
		"no_refresh_after_expiry[2 3 4] repeated_failure[2 3 4 5 6 7 8]"},
	{"a refresh too late", expired + "after 2100ms\nc1 refresh r0 200\nc1 me a1 200", "no_refresh_after_expiry[2]"},
	{"a refresh after the hub's clock was advanced", expired + "advance 1m\nc1 refresh r0 200\nc1 me a1 200", ""},
	{"a refresh that fails", expired + "c1 refresh r0 503 injected\nafter 3s", ""},
	{"the new pair is there already", "advance 15m\nc1 refresh r0 200\nc2 me a0 401 token_expired\nafter 3s", ""},
	{"the new pair is there already, without rotation, and the clock was put back", "policy keep\nadvance 15m\nback 20m\nadvance 20m\n" +
		"c1 refresh r0 200\nc2 me a0 401 token_expired\nafter 3s", ""},
	{"one of a crowd that comes after a refresh that failed", "policy keep\n" + expired + "c1 refresh r0 503 injected\nc2 me a0 401 token_expired\nafter 3s", ""},
	{"while the client waits to refresh again, as it was asked", expired + "c1 refresh r0 503 injected wait=5s\nafter 2s\nc2 me a0 401 token_expired\nafter 4s\n" +
		"c1 refresh r0 200\nc1 me a1 200\nc2 me a1 200\nafter 3s", ""},
	{"while the client waits to refresh again, by the hub's clock", expired + "c1 refresh r0 429 wait=2m\nafter 2s\nc2 me a0 401 token_expired\nadvance 2m\n" +
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
	{"a login instead, over another connection, that fails", expired + "c2 login - 503 injected\nafter 3s", ""},
	{"a client that never refreshes again", expired + "c1 refresh r0 503 injected wait=30s\nafter 5s\nc2 me a0 401 token_expired\nafter 30s", "no_refresh_after_expiry[4]"},
	{"a refresh that was refused before", expired + "c1 refresh r0 400\nafter 2s\nc2 me a0 401 token_expired\nafter 2500ms\nc1 refresh r0 200\nc1 me a1 200\nc2 me a1 200\nafter 3s",
		"no_refresh_after_expiry[4]"},
	{"the clock is put back, and the token works", expired + "back 15m\nc1 me a0 200\nafter 3s", ""},
	{"long after a refresh that failed", expired + "c1 refresh r0 503 injected\nafter 3s\nc2 me a0 401 token_expired\nafter 3s", "no_refresh_after_expiry[4]"},
	{"of a pair that had been exchanged before the record begins", "advance 15m\nc1 refresh r0 200\nempty\nc1 me a0 401 token_expired\nc1 me a1 200\nafter 3s", ""},
	{"a login before the record begins", "c1 me a0 200\nadvance 16m\nc1 login - 200 other\nempty\nc1 me a0 401 token_expired\nc1 me b0 200\nafter 3s", ""},
	{"a poll with the old token after a refresh by a timer", "advance 14m\nc1 refresh r0 200\nadvance 2m\n" + loop(3, "c1 me a0 401 token_expired\nafter 700ms") + "after 3s",
		"no_refresh_after_expiry[3 4 5]"},
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
	{"a crowd's refresh with the access token", "browser\n" + expired + loop(5, "c1 me a0 401 token_expired") + "c1 refresh a0 401 token_wrong_type\nafter 3s", "wrong_token_type[8]"},
	{"the old token long after, by the hub's clock, and then a logout", expired + "advance 16m\nc1 me a0 401 token_expired\nc1 logout a0 204\nafter 3s", "no_refresh_after_expiry[2]"},
	{"the old token long after, by the hub's clock, and then a refresh", expired + "advance 16m\nc1 me a0 401 token_expired\nc1 refresh r0 200\nc1 me a1 200\nafter 3s", ""},
	{"another caller's request that is still under way when the clock is put back", expired + "c2 me a0 401 left later\nc1 me a0 401 token_expired\nc1 refresh r0 200\n" +
		"c1 me a1 200\nc1 me a1 200\nback 10m\nlater\nafter 3s", ""},
	{"the old token long after, by the hub's clock, and then a login", expired + "advance 16m\nc1 me a0 401 token_expired\nc1 login - 200 other\nc1 me b0 200\nafter 3s", "no_refresh_after_expiry[2]"},
	{"a logout instead", expired + "after 1s\nc1 logout a0 204\nafter 3s", ""},
	{"a login long after", expired + "after 10s\nc1 login - 200", "no_refresh_after_expiry[2]"},
	{"an answer that did not arrive", "advance 15m\nc1 me a0 401 token_expired lost\nafter 3s", ""},
	{"the clock is put back before two seconds have passed", expired + "after 1s\nback 20m\nafter 3s", ""},
	{"the clock is put back after it", expired + "after 3s\nback 20m", "no_refresh_after_expiry[2]"},
}

func TestNotRepeated(t *testing.T) {
	t.Parallel()
	five := "advance 15m\nc1 me a0 | c2 me a0 | c3 me a0 | c4 me a0 | c5 me a0 401 token_expired\nc1 refresh r0 200\n"
	check(t, []row{
		{"four of five", five + "c1 me a1 200\nafter 2s", "not_repeated[3 4 5 6 7]"},
		{"four of five, too early to tell", five + "c1 me a1 200", ""},
		{"none", five + loop(5, "c1 me a1 200") + "after 2s", ""},
		{"again, but too late", five + "after 3s\n" + loop(5, "c1 me a1 200"), "not_repeated[2 3 4 5 6 7]"},
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
