// Package judge tells from the record of requests what a client did wrong, and what it could do better.
//
// It is a pure room: Judge takes copies of the exchanges in the order of their arrival and returns a verdict. It knows
// no hub, no store and no clock. Each rule has a file; the comment on its function is its definition. What a rule
// cannot tell for certain it does not say.
package judge

import "time"

// Exchange is a request and its answer, as the record has them.
type Exchange struct {
	Seq       int
	Epoch     int // counts changes of the policy, and changes of the hub's clock other than forwards
	Policy    Policy
	Arrival   Mark
	End       Mark      // the answer was sent, or given up; Order 0: the request is under way
	Conn      int64     // identity of the connection; 0: unknown
	Client    int64     // identity of the client that used a session over it, in whatever namespace; 0: nobody did
	Opened    time.Time // when the client opened the connection, by the machine's clock; zero: unknown
	Sent      time.Time // when the request began to come in; zero: unknown
	Busy      time.Time // since when its connection had not rested (Idle) then, in whatever namespace; zero: unknown
	Operation string
	Method    string
	Path      string // without the query
	Session   string
	User      string
	Origin    Origin
	Token     *Token  // that the request presented, if this hub signed it
	Presented uint64  // digest of the presented token, whoever signed it; 0: none; Unset: what stands for none
	Body      uint64  // digest of the body's beginning
	Query     uint64  // digest of the query, the Range and the body's length
	Browser   bool    // the client says that it is a browser
	Current   Current // the session when the request arrived

	InAddress  bool   // a token stood in the address
	Addressed  string // the session of that token; "": unknown
	Everywhere bool   // a logout of all sessions of the user
	Elsewhere  bool   // a logout of all of them but its own

	Status     int           // as the client saw it; 0: none
	Hub        int           // as the hub decided; 0: the hub's operation was not reached
	Code       string        // of the answer
	RetryAfter time.Duration // that the answer asked for
	Injected   bool          // a fault gave the answer
	Lost       bool          // a fault kept the answer, or a part of it, from the client
	Left       bool          // the client closed the connection before it was answered
	Given      *Pair         // that the hub issued with this answer

	sentAt Mark // when it began to come in (Sent), by both clocks; a slow line may have brought the rest much later
	conn   *connection
	client *connection
	before *Exchange // what came last over its connection; nil: nothing
	waited bool      // its connection had not rested (Idle)
	plea   *plea     // what its answer asked for with Retry-After; nil: nothing
	keeps  *plea     // what another answer had asked for, and it came in time; nil: nothing
	again  bool      // it may have been sent again with a new token, as others that got 401 (line.renew)

	// free is when its connection rested again, so that the client could react. A client that allows itself one or two
	// connections sends its refresh, too, behind what waits in front of it; while that is under way, it is now.
	free Mark

	began time.Time // when the client began it, by the machine's clock: when it opened the connection, if it did so for it
}

// Unset is presented by a client that writes "null" or "undefined" for the token that it does not have.
const Unset = 1

// Policy is the refresh policy in force.
type Policy struct {
	Allow      bool          // a spent refresh token works like the current one
	Grace      time.Duration // for which a spent refresh token gets the same successor again; 0: strict
	NoRotation bool          // the refresh token stays
}

// Spends reports whether a refresh makes its token worthless, sooner or later.
func (p Policy) Spends() bool { return !p.Allow && !p.NoRotation }

// Origin says where a session comes from.
type Origin int

const (
	FromLogin  Origin = iota
	FromOrder         // a sound token ordered from the lab: its client has one token of the pair only
	FromDefect        // a token ordered with something wrong: what a client does with it is not judged
)

// Mark is a point in the record: its place among all arrivals and ends, and its time by both clocks.
type Mark struct {
	Order   int // from 1
	Hub     time.Time
	Machine time.Time
}

// until returns how long it was from m to n. The longer of the two clocks counts: a test that advances the hub's clock
// lets time pass, and so does one that stops that clock and sleeps.
func (m *Mark) until(n *Mark) time.Duration {
	return max(n.Hub.Sub(m.Hub), n.Machine.Sub(m.Machine))
}

// ends is when the latest of some requests ended. Others don't wait for a long poll, which takes more than a second.
type ends struct{ quick, all Mark }

func (x *ends) add(e *Exchange) {
	if e.End.Order > x.all.Order {
		x.all = e.End
	}
	if e.End.Order > x.quick.Order && e.took() <= late {
		x.quick = e.End
	}
}

// until returns how long nothing that others wait for had been under way at m; 0 if nothing has ended.
func (x *ends) until(m *Mark) time.Duration {
	switch {
	case x.quick.Order > 0:
		return x.quick.until(m)
	case x.all.Order > 0:
		return x.all.until(m)
	}
	return 0
}

// Token is what a request presented.
type Token struct {
	Refresh    bool // a refresh token; else an access token
	Generation int  // of its pair: how many rotations came before it
	Issued     time.Time
	State      string // valid, expired, not_yet_valid, spent, revoked, wrong_type, malformed
}

// Pair is an access token and a refresh token that the hub issued together.
type Pair struct {
	Generation int
	Issued     time.Time     // of the access token, by the hub's clock
	Lifetime   time.Duration // of the access token
}

// Current is the state of a session when a request arrived.
type Current struct {
	Pair
	Expired     bool // the access token was expired by order
	RefreshOver bool // the refresh token had expired, or the session had ended
}

// isOver reports whether the access token was no longer good at a time of the hub's clock.
func (c *Current) isOver(at time.Time) bool {
	return c.Expired || !at.Before(c.Issued.Add(c.Lifetime))
}

// received reports whether the client got the whole answer.
func (e *Exchange) received() bool {
	return e.End.Order > 0 && e.Status != 0 && !e.Lost && !e.Left
}

// isCut reports whether a fault cut the connection before the client got anything of the answer.
func (e *Exchange) isCut() bool { return e.Lost && e.Status == 0 }

// failed reports whether e was answered with an error. A dialect may have given it the status of a success.
func (e *Exchange) failed() bool { return e.Status >= 400 || e.Code != "" }

// succeeded reports whether the client got a whole answer that is no error.
func (e *Exchange) succeeded() bool { return e.received() && !e.failed() }

// refused reports whether the client got a 401. A dialect may have given it another status.
func (e *Exchange) refused() bool {
	return e.received() && (e.Status == 401 || e.Hub == 401)
}

// saw reports whether the client got an answer with this code.
func (e *Exchange) saw(code string) bool { return e.received() && e.Code == code }

// took returns how long the answer took, by the machine's clock; 0 if the request is under way.
func (e *Exchange) took() time.Duration {
	if e.End.Order == 0 {
		return 0
	}
	return e.End.Machine.Sub(e.Arrival.Machine)
}

// endedBefore reports whether e was over when other arrived.
func (e *Exchange) endedBefore(other *Exchange) bool {
	return e.End.Order > 0 && e.End.Order < other.Arrival.Order
}

// apart is how much later than an answer a request must come to be after it, when their connections do not tell.
const apart = 100 * time.Millisecond

// follows reports whether e was certainly sent after before had been answered: it came on the same connection and was
// not sent ahead (pipelined), on a connection opened since, or long enough after. Behind a connection that a fault cut
// only time tells: HTTP libraries try another one by themselves (RFC 9112 section 9.3.1).
func (e *Exchange) follows(before *Exchange) bool {
	if !before.endedBefore(e) {
		return false
	}
	answered := before.End.Machine
	if before.isCut() {
		return before.End.until(&e.sentAt) > apart
	}
	return e.Conn != 0 && e.Conn == before.Conn && e.sentAt.Machine.After(answered) ||
		e.Opened.After(answered) || before.End.until(&e.sentAt) > apart
}

// isRefresh reports whether e sent a refresh token of this hub to be exchanged.
func (e *Exchange) isRefresh() bool {
	return e.Operation == "refresh" && e.Session != "" && e.Token != nil && e.Token.Refresh
}

// isLogin reports whether e asked for a new session.
func (e *Exchange) isLogin() bool { return e.Operation == "login" || e.Operation == "register" }

// isIntrospection reports whether e asked what a token is worth.
func (e *Exchange) isIntrospection() bool { return e.Operation == "introspect" }

// isPageGet reports whether e is a GET of a page, which may wait in the browser for an equal one.
func (e *Exchange) isPageGet() bool { return e.Browser && e.Method == "GET" }

// isAccess reports whether e used an access token of this hub.
func (e *Exchange) isAccess() bool {
	return e.Session != "" && e.Token != nil && !e.Token.Refresh && e.Operation != "refresh"
}

// exchanged reports whether e is a refresh whose new pair the client got.
func (e *Exchange) exchanged() bool {
	return e.isRefresh() && e.received() && e.Given != nil
}

// isOf reports whether t belongs to this pair or a later one of the session.
func (t *Token) isOf(p *Pair) bool { return t.Generation >= p.Generation }

// pair returns the pair of t, as far as t tells.
func (t *Token) pair() *Pair { return &Pair{Generation: t.Generation, Issued: t.Issued} }

// place is where a request goes, with whatever token.
type place struct{ operation, method, path string }

func (e *Exchange) place() place {
	if e.Method == "HEAD" {
		return place{e.Operation, "GET", e.Path} // it fails as a GET does
	}
	return place{e.Operation, e.Method, e.Path}
}

// address is what a request asks for, with whatever token.
type address struct {
	place
	query, body uint64
}

func (e *Exchange) address() address { return address{e.place(), e.Query, e.Body} }
