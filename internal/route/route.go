// Package route serves a table of operations with one http.ServeMux, for as many hubs as there are.
//
// A mux takes 20 KB and a lab has up to 10,000 hubs, so they share it. The hub travels to the handler inside the
// ResponseWriter, which the handler takes off.
package route

import (
	"net/http"
	"sync"

	"authhub/internal/reply"
)

// Operation is one line of a table.
type Operation struct {
	Method, Path string // pattern of net/http.ServeMux; a GET answers HEAD as well
	Name         string // what faults, filters and dialects call it
	Purpose      string // what the index says of it; "" leaves it out
	Token        string // that it asks for
}

// Table is a list of operations and the mux that finds them.
type Table[T any] struct {
	Operations []Operation
	mux        *http.ServeMux
	carriers   sync.Pool // of *carrier[T]: without it each request makes one more allocation
}

// NewTable returns an empty table.
func NewTable[T any]() *Table[T] { return &Table[T]{mux: http.NewServeMux()} }

// Add adds an operation; Operation explains the parameters.
func (t *Table[T]) Add(method, path, name, purpose, token string, serve func(T, http.ResponseWriter, *http.Request) error) {
	t.Operations = append(t.Operations, Operation{method, path, name, purpose, token})
	t.mux.Handle(method+" "+path, handler[T](serve))
}

// Serve lets the hub of answer r. Errors: the operation's own; a 404 where the table has nothing at this path, a 405
// with Allow where it has another method. A path that the mux would redirect to a cleaner one is not found.
func (t *Table[T]) Serve(of T, w http.ResponseWriter, r *http.Request) error {
	c, ok := t.carriers.Get().(*carrier[T])
	if !ok {
		c = new(carrier[T])
	}
	c.of, c.w = of, w
	t.mux.ServeHTTP(c, r)
	served := *c
	*c = carrier[T]{}
	t.carriers.Put(c)
	switch served.refused {
	case 0:
		return served.err
	case http.StatusMethodNotAllowed:
		return MethodNotAllowed(served.header.Get("Allow"))
	}
	return reply.Fail(http.StatusNotFound, "not_found", "This path does not exist. GET /api lists the operations.")
}

// MethodNotAllowed is the answer to a path that takes these other methods.
func MethodNotAllowed(allow string) error {
	e := reply.Fail(http.StatusMethodNotAllowed, "method_not_allowed", "This path only takes "+allow+".")
	e.Header = http.Header{"Allow": {allow}}
	return e
}

// carrier brings a hub and a ResponseWriter through a mux to a handler, and the handler's error back. Only the mux
// itself writes to it, when it has no handler.
type carrier[T any] struct {
	of      T
	w       http.ResponseWriter
	err     error
	refused int // status of the mux's own answer; 0: a handler has served
	header  http.Header
}

func (c *carrier[T]) Header() http.Header {
	if c.header == nil {
		c.header = make(http.Header)
	}
	return c.header
}

func (c *carrier[T]) WriteHeader(status int)      { c.refused = status }
func (c *carrier[T]) Write(b []byte) (int, error) { return len(b), nil }

type handler[T any] func(T, http.ResponseWriter, *http.Request) error

func (serve handler[T]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := w.(*carrier[T])
	c.err = serve(c.of, c.w, r)
}
