// The listing and the three files.

package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
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
	if got := h.get(listingPath).Want(200).Body; string(got) != want {
		t.Errorf("listing\n%s", got)
	}
	for _, path := range filePaths {
		problem := h.get(path).Want(404, "file_unavailable")
		if hint := problem.Text("hint"); hint != "POST "+runPath+" produces the three files." || !strings.Contains(problem.Text("detail"), hint) {
			t.Errorf("hint %q, detail %q", hint, problem.Text("detail"))
		}
	}
}

func TestListingAfterARun(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.advance(1234 * time.Millisecond)
	h.upload(fourReadings).Want(200)

	for _, e := range h.entries() {
		file := h.get(e["endpoint"].(string)).Want(200)
		if e["available"] != true || e["size_bytes"] != float64(len(file.Body)) || e["last_modified"] != "2026-03-01T12:00:01.234Z" {
			t.Errorf("%v, %d bytes", e, len(file.Body))
		}
		file.JSON()
	}
}

func TestTheDiskIsTheTruth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := start(t, "-dir", dir)
	h.upload(fourReadings).Want(200)
	path := filepath.Join(dir, "phase2", "impact_phi.json")
	old := h.get(listingPath + "/impact").Want(200)

	edited := strings.Replace(string(old.Body), `"rows":4`, `"rows":44`, 1)
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := h.get(listingPath + "/impact").Want(200); string(got.Body) != edited || got.Header.Get("ETag") == old.Header.Get("ETag") {
		t.Errorf("%s with ETag %s", got.Body, got.Header.Get("ETag"))
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if e := h.entries()[1]; e["available"] != false || e["size_bytes"] != 0.0 || e["last_modified"] != nil {
		t.Errorf("%v", e)
	}
	h.get(listingPath+"/impact").Want(404, "file_unavailable")
	h.get(listingPath + "/barrier").Want(200)

	h.upload(fourReadings).Want(200)
	if got := h.get(listingPath + "/impact").Want(200); string(got.Body) != string(old.Body) {
		t.Errorf("%s", got.Body)
	}
}

func TestServingAFile(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.upload(fourReadings).Want(200)
	const path = listingPath + "/barrier"

	whole := h.get(path).Want(200)
	etag, modified := whole.Header.Get("ETag"), whole.Header.Get("Last-Modified")
	if !regexp.MustCompile(`^"[0-9a-f]{32}"$`).MatchString(etag) {
		t.Errorf("ETag %s is not a strong one", etag)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-cache", "Last-Modified": "Sun, 01 Mar 2026 12:00:00 GMT",
		"Content-Length": strconv.Itoa(len(whole.Body)), "Accept-Ranges": "bytes", "Vary": "Accept-Encoding, Origin",
	} {
		if got := whole.Header.Get(name); got != want {
			t.Errorf("%s %q, want %q", name, got, want)
		}
	}

	if head := h.do("HEAD", path, nil).Want(200); len(head.Body) > 0 || head.Header.Get("ETag") != etag || head.Header.Get("Content-Length") != whole.Header.Get("Content-Length") {
		t.Errorf("HEAD: %v", head.Header)
	}
	for name, row := range map[string]struct {
		option, value string
		status        int
		body          string
	}{
		"same ETag":         {"If-None-Match", etag, 304, ""},
		"one of the ETags":  {"If-None-Match", `"x", ` + etag, 304, ""},
		"any ETag":          {"If-None-Match", "*", 304, ""},
		"other ETag":        {"If-None-Match", `"x"`, 200, string(whole.Body)},
		"not modified":      {"If-Modified-Since", modified, 304, ""},
		"modified":          {"If-Modified-Since", "Sun, 01 Mar 2026 11:59:59 GMT", 200, string(whole.Body)},
		"first bytes":       {"Range", "bytes=0-9", 206, string(whole.Body[:10])},
		"last bytes":        {"Range", "bytes=-5", 206, string(whole.Body[len(whole.Body)-5:])},
		"gzip not accepted": {"Accept-Encoding", "gzip;q=0, br", 200, string(whole.Body)},
	} {
		if got := h.get(path, row.option, row.value).Want(row.status); string(got.Body) != row.body {
			t.Errorf("%s: body %q", name, got.Body)
		}
	}
}

func TestRefusalsOfAFileHaveTheirShape(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.upload(fourReadings).Want(200)
	for _, coding := range []string{"gzip", "identity"} {
		h.get(listingPath+"/barrier", "Accept-Encoding", coding, "If-Match", `"x"`).Want(412, "precondition_failed")
		a := h.get(listingPath+"/barrier", "Accept-Encoding", coding, "Range", "bytes=9999999-").Want(416, "range_not_satisfiable")
		if got := a.Header.Get("Content-Range"); !strings.HasPrefix(got, "bytes */") || a.Header.Get("Content-Encoding") != "" {
			t.Errorf("%v", a.Header)
		}
	}
}

func TestServingAFileCompressed(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.upload(fourReadings).Want(200)
	const path = listingPath + "/barrier"
	plain := h.get(path).Want(200)

	packed := h.get(path, "Accept-Encoding", "br, gzip;q=0.5").Want(200)
	z, err := gzip.NewReader(bytes.NewReader(packed.Body))
	if err != nil {
		t.Fatal(err)
	}
	if unpacked, err := io.ReadAll(z); err != nil || !bytes.Equal(unpacked, plain.Body) {
		t.Errorf("%v: %q", err, unpacked)
	}
	if packed.Header.Get("Content-Encoding") != "gzip" || packed.Header.Get("Content-Length") != strconv.Itoa(len(packed.Body)) {
		t.Errorf("%v", packed.Header)
	}
	if packed.Header.Get("ETag") == plain.Header.Get("ETag") {
		t.Errorf("two representations with one strong ETag (RFC 9110 section 8.8.3)")
	}
	if head := h.do("HEAD", path, nil, "Accept-Encoding", "gzip").Want(200); head.Header.Get("Content-Length") != packed.Header.Get("Content-Length") || head.Header.Get("ETag") != packed.Header.Get("ETag") {
		t.Errorf("HEAD %v\nGET %v", head.Header, packed.Header)
	}
	for _, known := range []*answer{packed, plain} {
		etag := known.Header.Get("ETag")
		if got := h.get(path, "Accept-Encoding", "gzip", "If-None-Match", etag).Want(304).Header.Get("ETag"); got != etag {
			t.Errorf("not modified is %s, asked for %s", got, etag)
		}
	}
	ranged := h.get(path, "Accept-Encoding", "gzip", "Range", "bytes=0-9").Want(206)
	if ranged.Header.Get("Content-Encoding") != "" || !bytes.Equal(ranged.Body, plain.Body[:10]) {
		t.Errorf("range of %q: %q", ranged.Header.Get("Content-Encoding"), ranged.Body)
	}
}

// TestConditionsOfAClientThatTakesGzip: it may use the ETag of either form, and a refusal is well framed.
func TestConditionsOfAClientThatTakesGzip(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	h.upload(fiveHundredReadings).Want(200)
	const path = listingPath + "/barrier"
	plain := h.get(path).Want(200)
	head := h.do("HEAD", path, nil).Want(200).Header.Get("ETag")
	packedHead := h.do("HEAD", path, nil, "Accept-Encoding", "gzip").Want(200).Header.Get("ETag")
	if head != plain.Header.Get("ETag") || packedHead == head {
		t.Errorf("HEAD gives %s and %s", head, packedHead)
	}
	for _, row := range []struct {
		coding, match string
		status        int
		encoding      string
	}{
		{"gzip", head, 200, ""},
		{"gzip", packedHead, 200, "gzip"},
		{"gzip", head + ", " + packedHead, 200, "gzip"},
		{"gzip", `"x", ` + head, 200, ""},
		{"gzip", "*", 200, "gzip"},
		{"gzip", `"x"`, 412, ""},
		{"gzip", "W/" + head, 412, ""}, // RFC 9110 section 13.1.1: strong comparison
		{"identity", head, 200, ""},
		{"identity", packedHead, 412, ""},
		{"identity", `"x"`, 412, ""},
	} {
		a := h.get(path, "Accept-Encoding", row.coding, "If-Match", row.match).Want(row.status)
		if got := a.Header.Get("Content-Encoding"); got != row.encoding {
			t.Errorf("%s, If-Match %s: %q", row.coding, row.match, got)
		}
		if length := a.Header.Get("Content-Length"); length != "" && length != strconv.Itoa(len(a.Body)) {
			t.Errorf("%s, If-Match %s: Content-Length %s over %d bytes", row.coding, row.match, length, len(a.Body))
		}
	}
	for _, range_ := range []string{"bytes=0-9", "bytes=9999999-"} {
		a := h.get(path, "Accept-Encoding", "gzip", "If-Match", packedHead, "Range", range_).Want(200)
		if a.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s of the gzip form: %v", range_, a.Header)
		}
	}
	if a := h.get(path, "Accept-Encoding", "gzip", "If-Match", head, "Range", "bytes=0-9").Want(206); string(a.Body) != string(plain.Body[:10]) {
		t.Errorf("%q", a.Body)
	}
	unmodified := plain.Header.Get("Last-Modified")
	h.get(path, "Accept-Encoding", "gzip", "If-Modified-Since", unmodified).Want(304)
	h.get(path, "Accept-Encoding", "gzip", "If-Unmodified-Since", unmodified).Want(200)
	h.get(path, "Accept-Encoding", "gzip", "If-Unmodified-Since", "Sun, 01 Mar 2020 12:00:00 GMT").Want(412, "precondition_failed")
}

// TestFilesOfALaterRun are served at once, also while the clock stands still: the files of both runs have one date.
func TestFilesOfALaterRun(t *testing.T) {
	t.Parallel()
	h := newStillHub(t)
	for _, ph := range []string{"7.1", "7.2", "7.3"} {
		h.upload(csvHeader + "\n2025-01-01T00:00:00Z,a," + ph + "\n").Want(200)
		for _, coding := range []string{"identity", "gzip"} {
			a := h.get(listingPath+"/impact", "Accept-Encoding", coding).Want(200)
			body := a.Body
			if coding == "gzip" {
				body = unzip(t, body)
			}
			if !strings.Contains(string(body), `"mean":`+ph) {
				t.Errorf("after a run on pH %s, %s: %s", ph, coding, body)
			}
		}
	}
	snapshot := h.get("/lab/snapshot").Want(200)
	h.upload(csvHeader + "\n2025-01-01T00:00:00Z,a,7.9\n").Want(200)
	h.get(listingPath + "/impact").Want(200)
	h.put("/lab/snapshot", string(snapshot.Body), jsonType...)
	if a := h.get(listingPath + "/impact").Want(200); !strings.Contains(string(a.Body), `"mean":7.3`) {
		t.Errorf("after the snapshot was put back: %s", a.Body)
	}
}

// TestALargeFileCompressed is sent while it is compressed, and whole.
func TestALargeFileCompressed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := start(t, "-dir", dir)
	h.upload(fourReadings).Want(200)
	large := bytes.Repeat([]byte(`{"padding":"0123456789"}`), 1<<20)
	if err := os.WriteFile(filepath.Join(dir, "phase2", fileNames[0]), large, 0o600); err != nil {
		t.Fatal(err)
	}
	first := h.get(filePaths[0], "Accept-Encoding", "gzip").Want(200)
	again := h.get(filePaths[0], "Accept-Encoding", "gzip").Want(200)
	if !bytes.Equal(unzip(t, first.Body), large) || !bytes.Equal(first.Body, again.Body) || again.Header.Get("Content-Length") == "" {
		t.Errorf("%d bytes, then %d with Content-Length %q", len(first.Body), len(again.Body), again.Header.Get("Content-Length"))
	}
}

func unzip(t *testing.T, packed []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// fiveHundredReadings give a barrier file larger than any refusal.
var fiveHundredReadings = func() string {
	var b strings.Builder
	b.WriteString(csvHeader + "\n")
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 500 {
		fmt.Fprintf(&b, "%s,a,7.%d\n", at.Add(time.Duration(i)*time.Hour).Format(time.RFC3339), i%10)
	}
	return b.String()
}()

func TestProtectedGroupsAskForAToken(t *testing.T) {
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
			token := bearer(h.login("demo").Access)

			h.post(runPath, nil).Want(row.run)
			h.post(runPath, nil, token...).Want(200)
			h.get(runPath).Want(row.run)
			h.get(listingPath).Want(row.files)
			h.get(listingPath+"/impact", token...).Want(200)
			h.get(listingPath + "/impact").Want(row.files)
			h.get(listingPath, "Authorization", "Bearer x").Want(row.files)
		})
	}
}
