// Package dialect translates between the API that a client speaks and the hub's own.
//
// A description in JSON says which request is which operation, where its values come from, and what answers look like.
// A request that it describes becomes one of the hub's own API, and the hub's answer becomes one of the dialect. The
// package knows no store and no lab: whatever serves the hub's own API may stand behind it.
package dialect

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"authhub/internal/reply"
	"authhub/internal/request"
	"authhub/internal/route"
)

// Dialect is a description that has been checked. It does not change.
type Dialect struct {
	name            string
	description     []byte
	operations      []*operation
	errors          []*entry // the most special one first
	cookies         *cookies // nil: none
	access, refresh time.Duration
	rotation        bool
	claims          template // nil: none
	echoes          map[string]sources
}

// Name returns what the dialect is called; "" for none (nil).
func (d *Dialect) Name() string {
	if d == nil {
		return ""
	}
	return d.name
}

// Description returns the JSON that Parse has read.
func (d *Dialect) Description() []byte { return d.description }

// Lifetimes returns the lifetimes of the tokens of new sessions; 0 for one that the description leaves out.
func (d *Dialect) Lifetimes() (access, refresh time.Duration) { return d.access, d.refresh }

// Rotation reports whether a refresh replaces the refresh token, as it does without a dialect (nil).
func (d *Dialect) Rotation() bool { return d == nil || d.rotation }

// UsesCookies reports whether pages send cookies with their requests.
func (d *Dialect) UsesCookies() bool { return d.cookies != nil }

// Operation is what an index says of an operation, and what a page needs to ask for it.
type Operation struct {
	Op      string           `json:"op"`
	Method  string           `json:"method"`
	Path    string           `json:"path"`
	When    []Place          `json:"when"` // the values that choose it
	In      map[string]Place `json:"in"`   // where its values go, but for those of which only a browser can take care: cookies
	Purpose string           `json:"-"`
	Token   string           `json:"-"` // as in the index: none, access, refresh, access or refresh
}

// Place is where a client puts a value.
type Place struct {
	Kind  string   `json:"kind"` // body, query, header, path, authorization, basic
	Path  []string `json:"path"` // of a member of a body; else one name
	Unit  float64  `json:"unit"` // seconds that a number there stands for; 0 for a value that is no time
	Value string   `json:"value,omitempty"`
}

// Operations returns what clients may ask for, in the order of the description.
func (d *Dialect) Operations() []Operation {
	all := make([]Operation, len(d.operations))
	for i, op := range d.operations {
		o := Operation{op.verb.name, op.method, op.path, []Place{}, make(map[string]Place), op.verb.purpose, op.verb.token}
		for _, c := range op.when {
			if p, ok := c.from.written(); ok {
				p.Value = c.want
				o.When = append(o.When, p)
			}
			o.Purpose += fmt.Sprintf(", where %s is %s", c.where, c.want)
		}
		for name, s := range op.in {
			if p, ok := s.written(); ok {
				o.In[name] = p
			}
		}
		all[i] = o
	}
	return all
}

// written returns the first of the places that a page may write to.
func (s sources) written() (Place, bool) {
	for _, p := range s.places {
		if p.kind != "cookie" {
			return Place{Kind: p.kind, Path: p.path, Unit: s.unit}, true
		}
	}
	return Place{}, false
}

// Call is a request that the dialect has understood, or knows to refuse.
type Call struct {
	Operation string // as faults and the record name it: register, login, me, refresh, logout, introspect, other
	Path      string // for the record: the client's, cut short where it has parts that may be anything
	Token     string // that the request presents; "" for none
	Body      []byte // that has been read
	Result    Result // of Serve

	dialect *Dialect
	called  *operation     // nil: none
	in      map[string]any // the operation's values, as the client has sent them
	from    map[string]place
	refused error
	asked   *question
}

// Result is what the hub itself answered, in its own terms.
type Result struct {
	Status      int
	Code        string // of an error; "" for none, and for one that the client is not told of
	AccessToken string // of the pair that was given
}

// Everywhere reports whether the call ends all sessions of a user.
func (c *Call) Everywhere() bool { return c.op() == "logout_all" }

// Elsewhere reports whether the call ends all sessions of a user but the one that asks.
func (c *Call) Elsewhere() bool { return c.op() == "logout_others" }

// op returns the name of the operation; "" for none.
func (c *Call) op() string {
	if c.called == nil {
		return ""
	}
	return c.called.verb.name
}

// Read returns what a request means, or nil if the dialect does not describe its path. It reads the body of a request
// that it describes. After a body that is too large, w closes the connection.
func (d *Dialect) Read(w http.ResponseWriter, r *http.Request) *Call {
	segments := split(r.URL.Path)
	var at []*operation
	var params []map[string]string
	for _, op := range d.operations {
		if p, ok := op.match(segments); ok {
			at, params = append(at, op), append(params, p)
		}
	}
	if at == nil {
		return nil
	}
	c := &Call{dialect: d, Operation: "other", Path: r.URL.Path}
	if slices.ContainsFunc(params, func(named map[string]string) bool { return named != nil }) {
		c.Path = request.SafePath(r.URL.Path)
	}
	q := &question{r: r}
	c.asked = q
	if c.refused = q.readBody(w); c.refused == nil {
		c.refused = c.understand(q, at, params)
	}
	c.Body = q.raw
	return c
}

// understand finds which of the operations at its path a request is.
func (c *Call) understand(q *question, at []*operation, params []map[string]string) error {
	method := q.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	i := slices.IndexFunc(at, func(op *operation) bool { return op.method == method })
	if i < 0 {
		return methodNotAllowed(at)
	}
	c.Operation = at[i].verb.lab // as long as nothing tells which of those with this method it is
	var err error
	if q.query, err = request.Query(q.r); err != nil {
		return err
	}
	if slices.ContainsFunc(at, (*operation).readsBody) {
		if err := q.parseBody(); err != nil {
			return err
		}
	}
	return c.choose(q, method, at, params)
}

// choose finds the first operation whose conditions a request meets, and takes its values.
func (c *Call) choose(q *question, method string, at []*operation, params []map[string]string) error {
	var missing []string
	unknown := false
	for i, op := range at {
		if op.method != method {
			continue
		}
		q.params = params[i]
		lacks, differs := op.unmet(q)
		if !differs && lacks == "" {
			return c.take(op, q)
		}
		unknown = unknown || differs
		if lacks != "" {
			missing = append(missing, lacks)
		}
	}
	c.Operation = "other"
	if unknown {
		return reply.Fail(http.StatusBadRequest, "when_unknown", "This path knows no such "+strings.Join(wanted(at), " or ")+".")
	}
	return reply.Fail(http.StatusBadRequest, "when_missing", "The request lacks "+strings.Join(slices.Compact(missing), " or ")+".")
}

// methodNotAllowed refuses a request to a path that takes other methods.
func methodNotAllowed(at []*operation) error {
	var allow []string
	for _, op := range at {
		allow = append(allow, op.method)
		if op.method == http.MethodGet {
			allow = append(allow, http.MethodHead)
		}
	}
	slices.Sort(allow)
	return route.MethodNotAllowed(strings.Join(slices.Compact(allow), ", "))
}

// take makes c a call of op.
func (c *Call) take(op *operation, q *question) error {
	c.called, c.Operation = op, op.verb.lab
	c.in, c.from = make(map[string]any), make(map[string]place)
	for name, s := range op.in {
		value, from := q.value(s)
		if value == nil {
			continue
		}
		if text, ok := value.(string); ok && !utf8.ValidString(text) {
			return reply.Fail(http.StatusBadRequest, "malformed_body", "A value of the request is not valid UTF-8.")
		}
		if s.unit != 0 {
			value = seconds(value, s.unit)
		}
		c.in[name], c.from[name] = value, from
		if name == "token" || name == "refresh_token" {
			c.Token, _ = value.(string)
			if err := c.dialect.cookies.checkCSRF(q, from); err != nil {
				return err
			}
		}
	}
	return nil
}
