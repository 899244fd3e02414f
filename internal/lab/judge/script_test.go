// Scripts: records in short, for the tests of the rules.

package judge

import (
	"cmp"
	"fmt"
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
//	c1 login - 200 other         of another session, whose access token is b0, and its refresh token s0
//	c1 me x0 401 foreign         with a token that this hub has not signed
//	c1 me a0 503 injected        what a fault did: injected, lost, malformed; left: the client closed the connection;
//	                             stopped: its body stopped when it was refused
//	c1 me a0 | c2 me a0 401 …    steps on one line arrive together and are answered together, alike
//	c1 file/2 - 404              another path of the operation
//	c1 me - 401 pool             the connection is of a client that other namespaces know
//	c1 me a0 200 shared          and these have used it without a rest before
//	browser                      the client is a browser
//	proxy                        and a proxy opens a connection for each of its requests
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
	pending []func() // answers that are still to come
	session string
	browser bool
	proxy   bool
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
	case "proxy":
		s.browser, s.proxy = true, true
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
	if s.proxy {
		e.Opened = time.Time{}
	}
	if token == "-" {
		return e
	}
	generation, _ := strconv.Atoi(token[1:])
	e.Session, e.User, e.Presented = s.session, "demo", uint64(len(token))<<8|uint64(token[0])<<16|uint64(generation+1)
	e.Token = &Token{Refresh: token[0] == 'r' || token[0] == 's', Generation: generation, Issued: s.issued[generation], State: "valid"}
	if token[0] == 'b' || token[0] == 's' {
		e.Session, e.Token.Issued = "other", s.issued[-1-generation]
		e.Current.Pair = Pair{Generation: generation, Issued: e.Token.Issued, Lifetime: s.life}
	}
	return e
}

func (s *script) answer(e *Exchange, words []string) {
	e.Status, _ = strconv.Atoi(words[0])
	e.Hub, e.Code = e.Status, ""
	if e.Operation == "login" && e.Hub == 200 { // only then the hub knows the session and the user
		e.Session, e.User = s.session, "demo"
	}
	for _, word := range words[1:] {
		s.note(e, word)
	}
	if e.Code == "token_wrong_type" {
		e.Token.State = "wrong_type"
	}
	if e.Hub == 200 && (e.Operation == "login" || e.Operation == "refresh") {
		e.Given = s.give(e)
	}
	e.End = s.mark()
}

// note puts into e what one word of the script's answer says.
func (s *script) note(e *Exchange, word string) {
	switch {
	case word == "injected":
		e.Injected, e.Hub = true, 0
		if e.Operation == "login" {
			e.Session, e.User = "", ""
		}
	case word == "lost":
		e.Lost, e.Status = true, 0
		if e.Operation == "login" {
			e.Session = fmt.Sprint("lost", e.Seq)
		}
	case word == "malformed":
		e.Lost = true
	case word == "left":
		e.Left, e.Status = true, 0
	case word == "stopped":
		e.Left = true
	case word == "shared":
		e.Busy = e.Arrival.Machine.Add(-time.Hour)
	case word == "pool":
		e.Client = 1
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
	case word == "foreign":
		e.Session, e.User, e.Token = "", "", nil
	case word == "ordered":
		e.Current.Expired = true
	case word == "open":
		e.Token.State = "expired"
	case word == "over":
		e.Current.RefreshOver = true
	case word == "ended":
		e.Current = Current{RefreshOver: true}
	case word == "address":
		e.InAddress, e.Addressed = true, s.session
	case strings.HasPrefix(word, "query="):
		e.Query = uint64(len(word)) + uint64(word[6])
	case strings.HasPrefix(word, "body="):
		e.Body = uint64(word[5])
	case strings.HasPrefix(word, "wait="):
		e.RetryAfter = s.span(word[5:])
	default:
		e.Code = word
	}
}

// give issues the next pair; within grace the same again.
func (s *script) give(e *Exchange) *Pair {
	if e.Session != s.session {
		generation := 0
		if e.Operation == "refresh" {
			generation = e.Token.Generation + 1
			s.issued[-1-generation] = s.now.Hub
		}
		return &Pair{Generation: generation, Issued: s.now.Hub, Lifetime: s.life}
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

// each repeats lines with each of these words.
func each(line string, words ...string) (text string) {
	for _, word := range words {
		text += fmt.Sprintf(line, word) + "\n"
	}
	return text
}

// together is requests over these connections that fail together.
func together(connections string) string {
	return strings.ReplaceAll(connections, " ", " me a0 | ") + " me a0 503 injected\n"
}

// loop returns a script in which a line is played so many times.
func loop(n int, line string) string { return strings.Repeat(line+"\n", n) }

// numbers spells the numbers from a to b.
func numbers(a, b int) string {
	var all []int
	for ; a <= b; a++ {
		all = append(all, a)
	}
	return strings.Trim(fmt.Sprint(all), "[]")
}

const (
	expired  = "advance 15m\nc1 me a0 401 token_expired\n"
	twoUsers = "c1 login - 200 other\nc1 me a0 200\nc1 me b0 200\nadvance 16m\n" // of one client, whose tokens are over
)
