package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"authhub/internal/edge"
)

// The operations as a benchmark sees them: edge, mux and handler, without socket and net/http. What they cost on
// the wire, beside a server that does nothing, is bench/compare's to say.

func BenchmarkMe(b *testing.B) {
	h := newTestHub(b)
	handler := benchEdge(h)
	r := newBenchRequest(b, "GET", "/api/authentication/me", bearerOf(h.login("demo").access)...)
	b.ReportAllocs()
	for b.Loop() {
		r.send(handler, http.StatusOK, "")
	}
}

func BenchmarkLogin(b *testing.B) {
	h := newTestHub(b)
	handler := benchEdge(h)
	h.login("demo") // from here on the password is known
	r := newBenchRequest(b, "POST", "/api/authentication/login", "Content-Type", "application/json")
	b.ReportAllocs()
	for b.Loop() {
		r.send(handler, http.StatusOK, `{"username":"demo","password":"demo-password"}`)
	}
}

func BenchmarkRefresh(b *testing.B) {
	h := newTestHub(b)
	handler := benchEdge(h)
	token := h.login("demo").refresh
	r := newBenchRequest(b, "POST", "/api/authentication/refresh", "Content-Type", "application/json")
	b.ReportAllocs()
	for b.Loop() {
		answer := r.send(handler, http.StatusOK, `{"refresh_token":"`+token+`"}`)
		token = member(answer, "refresh_token")
	}
}

func BenchmarkFiles(b *testing.B) {
	h := newTestHub(b)
	handler := benchEdge(h)
	h.post("/api/run-ph-barrier-phase2", nil).want(http.StatusOK)
	path := "/api/files/phase2/barrier"
	etag := h.get(path).header.Get("ETag")
	for name, r := range map[string]*benchRequest{
		"listing": newBenchRequest(b, "GET", "/api/files/phase2"),
		"plain":   newBenchRequest(b, "GET", path),
		"gzip":    newBenchRequest(b, "GET", path, "Accept-Encoding", "gzip"),
		"304":     newBenchRequest(b, "GET", path, "If-None-Match", etag),
	} {
		b.Run(name, func(b *testing.B) {
			status := http.StatusOK
			if name == "304" {
				status = http.StatusNotModified
			}
			b.ReportAllocs()
			for b.Loop() {
				r.send(handler, status, "")
			}
		})
	}
}

// member returns a member of a session body without the cost of parsing it.
func member(body []byte, name string) string {
	_, rest, _ := bytes.Cut(body, []byte(`"`+name+`":"`))
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(value)
}

// benchEdge is the front door of h without what holds the answers of other tests against openapi.json.
func benchEdge(h *testHub) http.Handler {
	return edge.New(edge.Config{Next: h.Hub, Loopback: true, BaseHost: "hub.test"})
}

// benchRequest is a request that is sent again and again.
type benchRequest struct {
	b       *testing.B
	request *http.Request
	writer  benchWriter
}

func newBenchRequest(b *testing.B, method, path string, header ...string) *benchRequest {
	r, err := http.NewRequest(method, "http://127.0.0.1:8080"+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.RemoteAddr = "127.0.0.1:40000"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return &benchRequest{b: b, request: r}
}

// send returns the body of the answer, which is valid until the next send.
func (r *benchRequest) send(h http.Handler, status int, body string) []byte {
	r.request.Body, r.request.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	r.writer = benchWriter{header: make(http.Header), body: r.writer.body[:0]}
	h.ServeHTTP(&r.writer, r.request)
	if r.writer.status != status {
		r.b.Fatalf("%d %s", r.writer.status, r.writer.body)
	}
	return r.writer.body
}

// benchWriter keeps the body in a buffer that is used again.
type benchWriter struct {
	header http.Header
	status int
	body   []byte
}

func (w *benchWriter) Header() http.Header { return w.header }

func (w *benchWriter) WriteHeader(status int) { w.status = status }

func (w *benchWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.body = append(w.body, p...)
	return len(p), nil
}
