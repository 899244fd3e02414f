// The listing and the three files.

package e2e

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestListingBeforeAnyRun(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)

	const want = `{"phase2_files":[` +
		`{"name":"barrier_phi_phase2.json","endpoint":"/api/files/phase2/barrier","available":false,"size_bytes":0,"last_modified":null},` +
		`{"name":"impact_phi.json","endpoint":"/api/files/phase2/impact","available":false,"size_bytes":0,"last_modified":null},` +
		`{"name":"alertesph.json","endpoint":"/api/files/phase2/alertesph","available":false,"size_bytes":0,"last_modified":null}],` +
		`"hint":"POST /api/run-ph-barrier-phase2 produces the three files."}` + "\n"
	if got := h.get(listingPath).want(200).body; string(got) != want {
		t.Errorf("listing\n%s", got)
	}
	for _, path := range filePaths {
		problem := h.get(path).want(404, "file_unavailable")
		if hint := problem.str("hint"); hint != "POST "+runPath+" produces the three files." || !strings.Contains(problem.str("detail"), hint) {
			t.Errorf("hint %q, detail %q", hint, problem.str("detail"))
		}
	}
}

func TestListingAfterARun(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.advance(1234 * time.Millisecond)
	h.upload(fourReadings).want(200)

	for _, e := range h.entries() {
		file := h.get(e["endpoint"].(string)).want(200)
		if e["available"] != true || e["size_bytes"] != float64(len(file.body)) || e["last_modified"] != "2026-03-01T12:00:01.234Z" {
			t.Errorf("%v, %d bytes", e, len(file.body))
		}
		file.json()
	}
}

func TestTheDiskIsTheTruth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := start(t, "-dir", dir)
	h.upload(fourReadings).want(200)
	path := filepath.Join(dir, "phase2", "impact_phi.json")
	old := h.get(listingPath + "/impact").want(200)

	edited := strings.Replace(string(old.body), `"rows":4`, `"rows":44`, 1)
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := h.get(listingPath + "/impact").want(200); string(got.body) != edited || got.header.Get("ETag") == old.header.Get("ETag") {
		t.Errorf("%s with ETag %s", got.body, got.header.Get("ETag"))
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if e := h.entries()[1]; e["available"] != false || e["size_bytes"] != 0.0 || e["last_modified"] != nil {
		t.Errorf("%v", e)
	}
	h.get(listingPath+"/impact").want(404, "file_unavailable")
	h.get(listingPath + "/barrier").want(200)

	h.upload(fourReadings).want(200)
	if got := h.get(listingPath + "/impact").want(200); string(got.body) != string(old.body) {
		t.Errorf("%s", got.body)
	}
}

func TestServingAFile(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.upload(fourReadings).want(200)
	const path = listingPath + "/barrier"

	whole := h.get(path).want(200)
	etag, modified := whole.header.Get("ETag"), whole.header.Get("Last-Modified")
	if !regexp.MustCompile(`^"[0-9a-f]{32}"$`).MatchString(etag) {
		t.Errorf("ETag %s is not a strong one", etag)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-cache", "Last-Modified": "Sun, 01 Mar 2026 12:00:00 GMT",
		"Content-Length": strconv.Itoa(len(whole.body)), "Accept-Ranges": "bytes", "Vary": "Accept-Encoding, Origin",
	} {
		if got := whole.header.Get(name); got != want {
			t.Errorf("%s %q, want %q", name, got, want)
		}
	}

	if head := h.do("HEAD", path, nil).want(200); len(head.body) > 0 || head.header.Get("ETag") != etag || head.header.Get("Content-Length") != whole.header.Get("Content-Length") {
		t.Errorf("HEAD: %v", head.header)
	}
	for name, row := range map[string]struct {
		option, value string
		status        int
		body          string
	}{
		"same ETag":         {"If-None-Match", etag, 304, ""},
		"one of the ETags":  {"If-None-Match", `"x", ` + etag, 304, ""},
		"any ETag":          {"If-None-Match", "*", 304, ""},
		"other ETag":        {"If-None-Match", `"x"`, 200, string(whole.body)},
		"not modified":      {"If-Modified-Since", modified, 304, ""},
		"modified":          {"If-Modified-Since", "Sun, 01 Mar 2026 11:59:59 GMT", 200, string(whole.body)},
		"first bytes":       {"Range", "bytes=0-9", 206, string(whole.body[:10])},
		"last bytes":        {"Range", "bytes=-5", 206, string(whole.body[len(whole.body)-5:])},
		"gzip not accepted": {"Accept-Encoding", "gzip;q=0, br", 200, string(whole.body)},
	} {
		if got := h.get(path, row.option, row.value).want(row.status); string(got.body) != row.body {
			t.Errorf("%s: body %q", name, got.body)
		}
	}
}

func TestRefusalsOfAFileHaveTheirShape(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.upload(fourReadings).want(200)
	for _, coding := range []string{"gzip", "identity"} {
		h.get(listingPath+"/barrier", "Accept-Encoding", coding, "If-Match", `"x"`).want(412, "precondition_failed")
		a := h.get(listingPath+"/barrier", "Accept-Encoding", coding, "Range", "bytes=9999999-").want(416, "range_not_satisfiable")
		if got := a.header.Get("Content-Range"); !strings.HasPrefix(got, "bytes */") || a.header.Get("Content-Encoding") != "" {
			t.Errorf("%v", a.header)
		}
	}
}

func TestServingAFileCompressed(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.upload(fourReadings).want(200)
	const path = listingPath + "/barrier"
	plain := h.get(path).want(200)

	packed := h.get(path, "Accept-Encoding", "br, gzip;q=0.5").want(200)
	z, err := gzip.NewReader(bytes.NewReader(packed.body))
	if err != nil {
		t.Fatal(err)
	}
	if unpacked, err := io.ReadAll(z); err != nil || !bytes.Equal(unpacked, plain.body) {
		t.Errorf("%v: %q", err, unpacked)
	}
	if packed.header.Get("Content-Encoding") != "gzip" || packed.header.Get("Content-Length") != strconv.Itoa(len(packed.body)) {
		t.Errorf("%v", packed.header)
	}
	if packed.header.Get("ETag") == plain.header.Get("ETag") {
		t.Errorf("two representations with one strong ETag (RFC 9110 section 8.8.3)")
	}
	for _, known := range []*answer{packed, plain} {
		etag := known.header.Get("ETag")
		if got := h.get(path, "Accept-Encoding", "gzip", "If-None-Match", etag).want(304).header.Get("ETag"); got != etag {
			t.Errorf("not modified is %s, asked for %s", got, etag)
		}
	}
	ranged := h.get(path, "Accept-Encoding", "gzip", "Range", "bytes=0-9").want(206)
	if ranged.header.Get("Content-Encoding") != "" || !bytes.Equal(ranged.body, plain.body[:10]) {
		t.Errorf("range of %q: %q", ranged.header.Get("Content-Encoding"), ranged.body)
	}
}

func TestProtection(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		groups     string
		files, run int
	}{
		{"files", 401, 200}, {"run", 200, 401}, {"files,run", 401, 401},
	} {
		t.Run(row.groups, func(t *testing.T) {
			t.Parallel()
			h := start(t, "-ephemeral", "-protect", row.groups)
			token := bearer(h.login("demo").access)

			h.post(runPath, nil).want(row.run)
			h.post(runPath, nil, token...).want(200)
			h.get(runPath).want(row.run)
			h.get(listingPath).want(row.files)
			h.get(listingPath+"/impact", token...).want(200)
			h.get(listingPath + "/impact").want(row.files)
			h.get(listingPath, "Authorization", "Bearer x").want(row.files)
		})
	}
}
