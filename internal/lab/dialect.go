// The dialect of a bench: which it is, and another one while tests run.

package lab

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"

	"authhub/internal/dialect"
	"authhub/internal/reply"
	"authhub/internal/request"
)

func (b *bench) showDialect(w http.ResponseWriter, _ *http.Request) error {
	d := b.dialect.Load()
	if d == nil {
		return reply.Fail(http.StatusNotFound, "no_dialect", "No dialect is in force: the hub only speaks its own API. Set one with PUT /lab/dialect.")
	}
	reply.WriteBody(w, http.StatusOK, d.Description())
	return nil
}

// setDialect takes the name of a built-in dialect, or a description.
func (b *bench) setDialect(w http.ResponseWriter, r *http.Request) error {
	body, err := request.ReadRawJSON(w, r, dialect.MaxDescription)
	if err != nil {
		return err
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(body, &given) != nil || given == nil {
		return unreadable("The body is not a JSON object.")
	}
	d, err := dialect.Parse(body)
	if err != nil {
		in := new(request.Form)
		noteFaults(in, "", err)
		return in.Err()
	}

	b.changePolicy(func() { b.dialect.Store(d) })
	reply.WriteBody(w, http.StatusOK, d.Description())
	return nil
}

// readDialect reads the description in a snapshot.
func readDialect(description []byte, in *request.Form) *dialect.Dialect {
	d, err := dialect.Parse(description)
	if err != nil {
		noteFaults(in, "dialect.", err)
	}
	return d
}

// noteFaults adds the faults of a description to in, with prefix before their paths.
func noteFaults(in *request.Form, prefix string, err error) {
	var faults dialect.Faults
	errors.As(err, &faults) // Parse has no other errors
	for _, f := range faults {
		in.Fault(cmp.Or(prefix+f.Path, "description"), f.Detail)
	}
}

func (b *bench) deleteDialect(w http.ResponseWriter, r *http.Request) error {
	b.changePolicy(func() { b.dialect.Store(nil) })
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// UsesCookies reports whether the hub that r asks for speaks a dialect with cookies. It makes no namespace.
func (l *Lab) UsesCookies(r *http.Request) bool {
	d := l.Dialect
	name, _, err := l.split(r)
	if err != nil {
		return false
	}
	l.mu.RLock()
	b := l.spaces[name]
	l.mu.RUnlock()
	if name == "" {
		b = l.root
	}
	if b != nil {
		d = b.dialect.Load()
	}
	return d != nil && d.UsesCookies()
}
