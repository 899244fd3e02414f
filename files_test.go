package main

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"authhub/internal/results"
	"authhub/internal/testkit"
)

const (
	listingPath = "/api/files/phase2"
	runPath     = "/api/run-ph-barrier-phase2"
)

// fourReadings is about the least input that gives something in each file.
const fourReadings = "time,station,ph\n" +
	"2025-01-01T00:00:00Z,a,7.5\n" +
	"2025-01-01T00:15:00Z,a,8.6\n" +
	"2025-01-01T00:30:00Z,a,9.1\n" +
	"2025-01-01T00:45:00Z,a,7.5\n"

func (h *testHub) runOn(readings string) *answer {
	h.t.Helper()
	return h.post(runPath, readings, "Content-Type", "text/csv")
}

// entries returns the listing's three entries.
func (h *testHub) entries() []map[string]any {
	h.t.Helper()
	return h.get(listingPath).Want(200).List("phase2_files")
}

func TestListingAfterARun(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.clock.Advance(1234 * time.Millisecond)
	h.runOn(fourReadings).Want(200)

	for _, e := range h.entries() {
		file := h.get(e["endpoint"].(string)).Want(200)
		if e["available"] != true || e["size_bytes"] != float64(len(file.Body)) || e["last_modified"] != "2026-03-01T12:00:01.234Z" {
			t.Errorf("%v, %d bytes", e, len(file.Body))
		}
		file.JSON()
	}
}

// TestNothingIsWrittenAfterTheEnd: a request that outlives its hub makes no folder that nobody will remove.
func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	t.Parallel()
	h, stop := openTestHub(t, testkit.NewClock(), "-ephemeral")
	h.runOn(fourReadings).Want(200)
	made := h.output.Path()
	stop()
	h.runOn(fourReadings).Want(503, "busy")
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) || h.output.Path() != made {
		t.Errorf("%s: %v; then %s", made, err, h.output.Path())
	}
}

func TestTheRecordHasTheAnswerToAHead(t *testing.T) {
	t.Parallel()
	h := newTestLab(t)
	h.post(runPath, nil).Want(200)
	for _, coding := range []string{"identity", "gzip"} {
		h.do("HEAD", listingPath+"/barrier", nil, "Accept-Encoding", coding).Want(200)
	}
	for _, r := range h.get("/lab/requests?operation=file").Want(200).List("requests") {
		if r["status"] != 200.0 {
			t.Errorf("%s %v: status %v, want 200", r["method"], r["path"], r["status"])
		}
	}
}

// FuzzServing: ranges, conditions and codings to the files, which must come out as the bytes asked for.
func FuzzServing(f *testing.F) {
	h, _ := newFuzzHub(f)
	whole := string(h.get(listingPath + "/impact").Want(200).Body)
	etag := h.get(listingPath + "/impact").Header.Get("ETag")
	for _, r := range []string{
		"bytes=0-0", "bytes=-1", "bytes=5-", "bytes=0-,0-,0-", "bytes=9223372036854775807-", "bytes=-9223372036854775808", "bytes=1-0", "bytes= 1 - 2 ", "lines=1-2", "bytes=0-0,2-3",
		"bytes=" + strings.Repeat("0-1,", 1_000),
	} {
		f.Add(r, etag, "", "gzip;q=0.5, *;q=x")
		f.Add(r, `W/"x", *`, "Thu, 01 Jan 1970 00:00:00 GMT", "x-gzip")
	}
	f.Fuzz(func(t *testing.T, ranges, match, since, coding string) {
		h.t = t
		for i, endpoint := range []string{"/impact", "/barrier", "/alertesph"} {
			for _, method := range []string{"GET", "HEAD"} {
				r := httptest.NewRequest(method, listingPath+endpoint, nil)
				for name, value := range map[string]string{"Range": ranges, "Accept-Encoding": coding,
					[]string{"If-None-Match", "If-Match", "If-Range"}[i]: match, []string{"If-Modified-Since", "If-Unmodified-Since", "If-Range"}[i]: since} {
					if value != "" {
						r.Header.Set(name, value)
					}
				}
				a := h.mustStand(t, r)
				if method == "HEAD" && a.Status < 400 && len(a.Body) > 0 {
					t.Errorf("HEAD has a body: %q", a.Body)
				}
				if a.Status == 200 && method == "GET" && i == 0 && a.Header.Get("Content-Encoding") == "" && string(a.Body) != whole {
					t.Errorf("another file than asked for: %q", a.Body)
				}
			}
		}
	})
}

func BenchmarkFiles(b *testing.B) {
	h := newTestHub(b)
	handler := benchEdge(h)
	h.post(runPath, nil).Want(http.StatusOK)
	path := listingPath + "/barrier"
	etag := h.get(path).Header.Get("ETag")
	for name, r := range map[string]*benchRequest{
		"listing": newBenchRequest(b, "GET", listingPath),
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

// growFile measures a GET of a file of n bytes.
func growFile(b *testing.B, n int) {
	h := newTestHub(b, "-dir", filepath.Join(b.TempDir(), "hub"))
	if err := os.WriteFile(filepath.Join(h.output.Path(), results.Barrier.Name()), make([]byte, n), 0o600); err != nil {
		b.Fatal(err)
	}
	handler, r := benchEdge(h), newBenchRequest(b, "GET", listingPath+"/barrier")
	before := liveMB()
	r.send(handler, http.StatusOK, "")
	r.writer.body = nil // the benchmark keeps a buffer of its own
	held := liveMB() - before
	r.send(handler, http.StatusOK, "")
	b.SetBytes(int64(n))
	for b.Loop() {
		r.send(handler, http.StatusOK, "")
	}
	b.ReportMetric(held, "MB")
}
