// The verdict: what all rules say, in the order of the requests.

package judge

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// reaction is how long a client may take to do what an answer calls for.
const reaction = 2 * time.Second

// Finding is something that the client did, and the requests that show it.
type Finding struct {
	Rule     string
	Sentence string
	Session  string // "" for none
	Seqs     []int  // in order
}

// Verdict is what a record says about its client.
type Verdict struct {
	Findings []Finding // mistakes; none for a clean client
	Notes    []Finding // advice

	// Open is how long, by the machine's clock, it takes until the verdict depends on nothing that the client may
	// still do in time. 0: it depends on nothing now.
	Open time.Duration
}

// Judge returns the verdict on a record at the time now, whose Order may be 0. Exchanges stand in the order of their
// arrival. ended says when each epoch but the one in force was over, by the hub's clock before it was changed.
// Introspection is no use of a token (RFC 7662), so no rule looks at it; but its 401 calls for a refresh. The exchanges
// are the judge's own: it notes in them what it finds.
func Judge(all []*Exchange, now Mark, ended []Mark) Verdict {
	record := slices.DeleteFunc(slices.Clone(all), (*Exchange).isIntrospection)
	c := &trial{record: record, now: now, ended: ended, sessions: make(map[string]*session), owners: make(map[uint64]string),
		refreshes: make(map[*connection][]*Exchange), told: make(map[*Exchange]bool), loops: make(map[*Exchange]bool)}
	findClients(record, now)
	for _, e := range record {
		if e.isRefresh() {
			c.refreshes[e.client] = append(c.refreshes[e.client], e)
		}
		switch {
		case e.isLogin():
			c.logins = append(c.logins, e)
			if e.User != "" {
				c.owners[e.Body] = e.User
			}
		case e.Operation == "refresh" && (e.Token == nil || !e.Token.Refresh):
			c.useless = append(c.useless, e)
		case (e.Everywhere || e.Elsewhere) && e.isLogout():
			c.everywhere = append(c.everywhere, e)
		}
	}
	sessions := sessionsOf(all)
	for _, s := range sessions {
		c.sessions[s.id] = s
	}
	for _, s := range sessions {
		c.judgeSession(s)
	}
	c.retryAfterIgnored()
	c.repeatedFailure() // knows what the other has told
	c.tokenInAddress()
	for _, list := range [][]Finding{c.verdict.Findings, c.verdict.Notes} {
		sort.Slice(list, func(i, j int) bool {
			a, b := &list[i], &list[j]
			return cmp.Or(slices.Compare(a.Seqs, b.Seqs), cmp.Compare(a.Rule, b.Rule)) < 0
		})
	}
	return c.verdict
}

// trial is one judgement under way.
type trial struct {
	record     []*Exchange
	now        Mark
	ended      []Mark
	sessions   map[string]*session         // by id
	logins     []*Exchange                 // and registrations
	owners     map[uint64]string           // by the body of a login: its user
	everywhere []*Exchange                 // logouts of other sessions of a user as well
	useless    []*Exchange                 // refreshes without a token that this hub can read, or with an access token
	refreshes  map[*connection][]*Exchange // by client
	told       map[*Exchange]bool          // shown by a finding about refreshes or a logout
	loops      map[*Exchange]bool          // shown as repeated_failure
	races      []*Exchange                 // the refreshes by which a race has ended its session
	verdict    Verdict
}

// judgeSession applies the rules that look at one session.
func (c *trial) judgeSession(s *session) {
	if s.origin == FromDefect {
		return
	}
	c.wrongTokenType(s)
	c.tokenAfterLogout(s)
	s.findExpiries(c.told)
	for _, x := range s.expiries {
		c.twoRefreshes(x)
		c.spentRefreshToken(x)
	}
	if s.origin == FromLogin {
		c.refreshWithoutNeed(s)
		c.noRefreshAfterExpiry(s)
		c.notRepeated(s)
	}
}

// find adds a finding that these exchanges show, if there are any.
func (c *trial) find(rule, sentence string, shown ...*Exchange) {
	add(&c.verdict.Findings, rule, sentence, shown)
}

// note adds a note that these exchanges show, if there are any.
func (c *trial) note(rule, sentence string, shown ...*Exchange) {
	add(&c.verdict.Notes, rule, sentence, shown)
}

func add(list *[]Finding, rule, sentence string, shown []*Exchange) {
	if len(shown) == 0 {
		return
	}
	f := Finding{Rule: rule, Sentence: sentence, Seqs: seqs(shown)}
	for _, e := range shown {
		f.Session = cmp.Or(f.Session, e.Session, e.Addressed)
	}
	*list = append(*list, f)
}

// timeIsUp reports whether the client has had its time to react to the answer to e. A change of epoch ends the time
// without a result.
func (c *trial) timeIsUp(e *Exchange) bool {
	if e.Epoch < len(c.ended) {
		return e.free.until(&c.ended[e.Epoch]) > reaction
	}
	return c.isPast(e.free)
}

// isPast reports whether a client that was free to react at that time has had the time for it. If nothing but time is
// missing, the verdict is open.
func (c *trial) isPast(free Mark) bool {
	waited := free.until(&c.now)
	if waited <= reaction {
		c.verdict.Open = max(c.verdict.Open, reaction-waited+time.Millisecond)
	}
	return waited > reaction
}

// waitIsOver reports whether a client that waits as the answer to e asked has had the time to come again, a second
// late. A verdict does not wait for that longer than for a reaction.
func (c *trial) waitIsOver(e *Exchange, wait time.Duration) bool {
	over := min(wait+late, reaction) - e.End.until(&c.now)
	if wait == 0 || wait+stall > reaction || e.Epoch < len(c.ended) || over <= 0 {
		return true
	}
	c.verdict.Open = max(c.verdict.Open, over)
	return false
}

// seqs returns the numbers of these exchanges, in order, each once.
func seqs(shown []*Exchange) []int {
	numbers := make([]int, len(shown))
	for i, e := range shown {
		numbers[i] = e.Seq
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// requests names exchanges: "Request 3", "Requests 3, 4 and 7".
func requests(shown []*Exchange) string {
	var names []string
	for _, n := range seqs(shown) {
		names = append(names, strconv.Itoa(n))
	}
	last := len(names) - 1
	if last <= 0 {
		return "Request " + strings.Join(names, "")
	}
	return "Requests " + strings.Join(names[:last], ", ") + " and " + names[last]
}
