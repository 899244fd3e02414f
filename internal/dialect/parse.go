// Parse: from the JSON of a description to a Dialect, or to all that is wrong with it.

package dialect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxOperations = 64
	maxFaults     = 64
	maxTTL        = 10 * 365 * 24 * time.Hour
	maxPathLength = 256
)

// parser collects what is wrong, but not more than a person reads.
type parser struct {
	faults Faults
}

// fault notes what is wrong, once: a template is read for each operation that names it. It is kept out of its
// callers as request.Form.Fault is.
//
//go:noinline
func (p *parser) fault(path, detail string) {
	if f := (Fault{path, detail}); len(p.faults) < maxFaults && !slices.Contains(p.faults, f) {
		p.faults = append(p.faults, f)
	}
}

// node is a value of the description and where it is.
type node struct {
	p     *parser
	path  string
	value any
}

func (n node) fault(detail string) { n.p.fault(n.path, detail) }

// object returns the members of n, which may have these names only, or any for nil. It returns nil if n is no object.
func (n node) object(names []string) *object {
	o, ok := n.value.(*object)
	if !ok {
		n.fault("must be an object")
		return nil
	}
	for _, name := range o.names {
		if names != nil && !slices.Contains(names, name) {
			n.p.fault(join(n.path, name), "is not a known member; there are "+cmp.Or(strings.Join(names, ", "), "none"))
		}
	}
	return o
}

// member returns a member of o, which is the value of n, and whether it is there.
func (n node) member(o *object, name string) (node, bool) {
	value, ok := o.members[name]
	return node{n.p, join(n.path, name), value}, ok
}

func (n node) text() string {
	s, ok := n.value.(string)
	if !ok || s == "" {
		n.fault("must be a string with something in it")
	}
	return s
}

// oneOf returns a text that must be one of these; "" if it is not.
func (n node) oneOf(choices ...string) string {
	if s, ok := n.value.(string); ok && slices.Contains(choices, s) {
		return s
	}
	n.fault("must be one of " + strings.Join(choices, ", "))
	return ""
}

func (n node) truth() bool {
	v, ok := n.value.(bool)
	if !ok {
		n.fault("must be true or false")
	}
	return v
}

// status returns a status that fits allows; 0 for any other, which is a fault.
func (n node) status(fits func(int) bool, must string) int {
	literal, _ := n.value.(json.Number)
	status, err := strconv.Atoi(literal.String())
	if err != nil || !fits(status) {
		n.fault("must be " + must)
		return 0
	}
	return status
}

func (n node) duration() time.Duration {
	s, _ := n.value.(string)
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Millisecond || d > maxTTL {
		n.fault(`must be a duration from 1ms to ten years, such as "5m" or "24h"; its units are h, m, s and ms, so 30 days are "720h"`)
	}
	return d
}

// Parse reads a description, or the name alone of a built-in one: {"name": "supabase"}. Its error is Faults: all that
// is wrong, each with its path.
func Parse(description []byte) (*Dialect, error) {
	tree, fault := parseTree(description)
	if fault != nil {
		return nil, Faults{*fault}
	}
	if o, ok := tree.(*object); ok && len(o.names) == 1 && o.members["name"] != nil {
		name, _ := o.members["name"].(string)
		if description, ok = Builtin(name); !ok {
			return nil, Faults{{"name", "is no built-in dialect; there are " + strings.Join(Names(), ", ") + `. One of your own comes with "operations"`}}
		}
		return Parse(description)
	}
	d := &Dialect{rotation: true, echoes: make(map[string]sources)}
	p := new(parser)
	d.parse(node{p, "", tree})
	if len(p.faults) > 0 {
		return nil, p.faults
	}
	var indented bytes.Buffer
	json.Indent(&indented, bytes.TrimSpace(description), "", "  ") // it is JSON
	d.description = append(indented.Bytes(), '\n')
	return d, nil
}

func (d *Dialect) parse(root node) {
	o := root.object([]string{"name", "templates", "operations", "errors", "cookies", "lifetimes", "rotation", "claims"})
	if o == nil {
		return
	}
	t := &templates{p: root.p, echoes: d.echoes, used: make(map[string]bool)}
	t.source, _ = o.members["templates"].(*object)
	if claims, ok := o.members["claims"].(*object); ok {
		t.claims = claims.names
	}
	if name, ok := root.member(o, "name"); !ok {
		root.p.fault("name", "is missing: what this dialect is called")
	} else if d.name = name.text(); !isToken(d.name) || len(d.name) > 64 {
		name.fault("must be 1 to 64 of letters, digits, - and _")
	}
	if cookies, ok := root.member(o, "cookies"); ok {
		d.cookies = parseCookies(cookies)
	}
	if operations, ok := root.member(o, "operations"); ok {
		d.parseOperations(operations, t)
	} else {
		root.p.fault("operations", "is missing: an array of what clients may ask for")
	}
	d.answerWithoutCookies()
	if errors, ok := root.member(o, "errors"); ok {
		d.errors = d.parseErrors(errors, t)
	}
	if rotation, ok := root.member(o, "rotation"); ok {
		d.rotation = rotation.truth()
	}
	if lifetimes, ok := root.member(o, "lifetimes"); ok {
		d.parseLifetimes(lifetimes)
	}
	if claims, ok := root.member(o, "claims"); ok {
		d.parseClaims(claims, t)
	}
	if templates, ok := root.member(o, "templates"); ok {
		parseTemplates(templates, t)
	}
}

// parseTemplates refuses those that nothing uses, unless a fault elsewhere may be why.
func parseTemplates(n node, t *templates) {
	o := n.object(nil)
	if o == nil || len(n.p.faults) > 0 {
		return
	}
	for _, name := range o.names {
		if !t.used[name] {
			n.p.fault(join(n.path, name), `is used nowhere: write "@`+clip(name)+`" where it belongs, or remove it`)
		}
	}
}

func (d *Dialect) parseOperations(n node, t *templates) {
	all, ok := n.value.([]any)
	if !ok || len(all) == 0 || len(all) > maxOperations {
		n.fault(fmt.Sprintf("must be an array of 1 to %d operations", maxOperations))
		return
	}
	for i, value := range all {
		at := node{n.p, fmt.Sprintf("%s[%d]", n.path, i), value}
		op := d.parseOperation(at, t)
		if op == nil {
			continue
		}
		d.checkCookies(at, op)
		for j, earlier := range d.operations {
			if earlier.covers(op) {
				at.p.fault(at.path+".on", fmt.Sprintf("is never reached: operations[%d] %s", j, earlier.conflict(op)))
			}
		}
		d.operations = append(d.operations, op)
	}
}

// parseLifetimes reads the lifetimes of the tokens of new sessions.
func (d *Dialect) parseLifetimes(n node) {
	o := n.object([]string{"access", "refresh"})
	if o == nil {
		return
	}
	if access, ok := n.member(o, "access"); ok {
		d.access = access.duration()
	}
	if refresh, ok := n.member(o, "refresh"); ok {
		d.refresh = refresh.duration()
	}
}

const maxClaims = 64 // parts

// parseClaims reads the claims that the dialect adds to access tokens.
func (d *Dialect) parseClaims(n node, t *templates) {
	o := n.object(nil)
	if o == nil {
		return
	}
	for _, name := range o.names {
		if slices.Contains(ownClaims, name) {
			n.p.fault(join(n.path, name), "is said by the hub itself")
		}
	}
	compiled, size := t.in(&scope{of: `"claims"`, at: n.path, names: ofClaim}).compile(n.path, o)
	if size > maxClaims {
		n.fault(fmt.Sprintf("must have at most %d parts: tokens travel in a header", maxClaims))
	}
	d.claims = compiled
}
