// The output folder against what somebody may have planted in it, and against its own edges.

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// planted returns a folder outside DIR with a file in it, and what checks that nobody has touched either.
func planted(t *testing.T) (dir string, check func()) {
	t.Helper()
	dir = t.TempDir()
	for file := range resultFile(resultFiles) {
		if err := os.WriteFile(filepath.Join(dir, file.name()), []byte("outside"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func() {
		t.Helper()
		if names := mustList(t, dir); len(names) != resultFiles {
			t.Errorf("the folder outside now holds %v", names)
		}
		for file := range resultFile(resultFiles) {
			if got := readFile(t, filepath.Join(dir, file.name())); got != "outside" {
				t.Errorf("%s outside now holds %.40q", file.name(), got)
			}
		}
	}
}

// TestPlantedLinks: links in DIR/phase2 are neither read through nor written through, and a run replaces them.
func TestPlantedLinks(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		link func(outside string) string // what the link points to
		at   string
	}{
		{"a file", func(outside string) string { return filepath.Join(outside, impactFile.name()) }, impactFile.name()},
		{"a file, relative", func(outside string) string {
			return "../../../../../../../../../.." + filepath.Join(outside, impactFile.name())
		}, impactFile.name()},
		{"a file inside", func(string) string { return "../journal" }, impactFile.name()},
		{"a device", func(string) string { return "/dev/zero" }, impactFile.name()},
		{"nothing", func(outside string) string { return filepath.Join(outside, "absent") }, impactFile.name()},
		{"staging", func(outside string) string { return outside }, stagingName},
		{"commit", func(outside string) string { return outside }, commitName},
		{"commit to itself", func(string) string { return commitName }, commitName},
		{"commit to nothing", func(string) string { return "absent" }, commitName},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			outside, check := planted(t)
			dir := t.TempDir()
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "phase2"), 0o700), os.Symlink(row.link(outside), filepath.Join(dir, "phase2", row.at))); err != nil {
				t.Fatal(err)
			}
			h := newTestHub(t, "-dir", dir)
			if a := h.get(listingPath+"/impact").want(404, "file_unavailable"); strings.Contains(string(a.body), "outside") {
				t.Errorf("read through: %s", a.body)
			}
			h.runOn(fourReadings).want(200)
			h.get(listingPath + "/impact").want(200)
			check()

			// And once more while the hub runs.
			os.Remove(filepath.Join(dir, "phase2", row.at))
			if err := os.Symlink(row.link(outside), filepath.Join(dir, "phase2", row.at)); err != nil {
				t.Fatal(err)
			}
			h.get(listingPath).want(200)
			h.runOn(fourReadings).want(200)
			check()
		})
	}
}

// TestPlantedFolder: where DIR/phase2 itself leads out of DIR the hub does not start.
func TestPlantedFolder(t *testing.T) {
	t.Parallel()
	outside, check := planted(t)
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "phase2")); err != nil {
		t.Fatal(err)
	}
	o, err := newProgram([]string{"-dir", dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, stop, err := openHub(o, testLog(t)); err == nil {
		stop()
		t.Error("the hub works outside DIR")
	}
	check()
}

// TestPlantedOthers: what is no file is unavailable, holds nobody up, and breaks no run but that of a folder, whose
// content is not the hub's to throw away.
func TestPlantedOthers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		plant func(path string) error
		run   int
	}{
		{"FIFO", mkfifo, 200},
		{"folder", func(path string) error { return os.MkdirAll(filepath.Join(path, "kept"), 0o700) }, 500},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "phase2", alertsFile.name())
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), row.plant(path)); err != nil {
				t.Fatal(err)
			}
			h := newTestHub(t, "-dir", dir)
			h.get(listingPath).want(200)
			h.get(listingPath+"/alertesph").want(404, "file_unavailable")
			if row.run == 200 {
				h.runOn(fourReadings).want(200)
				return
			}
			h.Hub.log = quietLog()
			h.runOn(fourReadings).want(row.run)
			if names := mustList(t, filepath.Dir(path)); len(names) != 1 {
				t.Errorf("left behind: %v", names)
			}
		})
	}
}

// TestNoPathLeadsElsewhere: of all the ways to spell another file none is answered with one.
func TestNoPathLeadsElsewhere(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, "-dir", t.TempDir())
	h.runOn(fourReadings).want(200)
	for _, path := range []string{
		"/secret", "/journal", "/lock", "/api/files/phase2/secret", "/api/files/phase2/../secret", "/api/files/phase2/..%2fsecret", "/api/files/phase2/%2e%2e/secret",
		"/api/files/phase2/..%5csecret", "/api/files/phase2/barrier%00", "/api/files/phase2/barrier/", "/api/files/phase2/barrier/..", "/api/files/phase2//barrier", "/api/files/phase2/barrier_phi_phase2.json",
		"/api/files/phase2/.staging/", "/../../etc/passwd", "/%2fetc/passwd", "//etc/passwd", "/api/files/phase2/BARRIER",
	} {
		if a := h.get(path); a.status != 404 || a.str("code") != "not_found" {
			t.Errorf("%s: %d %.80s", path, a.status, a.body)
		}
	}
}

// TestLargeFileCompressed: a file too large to be kept in memory is compressed from its first byte, whoever has
// read it before.
func TestLargeFileCompressed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newTestHub(t, "-dir", dir)
	h.output.keepPlain = 1 << 10
	large := bytes.Repeat([]byte(`{"padding":"0123456789"}`), 1_000)
	if err := os.WriteFile(filepath.Join(dir, "phase2", barrierFile.name()), large, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a := h.get(listingPath+"/barrier", "Accept-Encoding", "gzip").want(200)
		z, err := gzip.NewReader(bytes.NewReader(a.body))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !bytes.Equal(got, large) {
			t.Fatalf("%d of %d bytes, %v", len(got), len(large), err)
		}
	}
}

// TestTemporaryFolderCannotBeMade: a run that finds nowhere to put its files fails, and the hub goes on.
func TestTemporaryFolderCannotBeMade(t *testing.T) {
	t.Parallel()
	h := newTestHub(t)
	h.Hub.log = quietLog()
	h.output.place = func() (string, error) { return "", fs.ErrPermission }
	h.post(runPath, nil).want(500, "internal")
	h.runOn(fourReadings).want(500, "internal")
	h.get(listingPath).want(200)
}

// TestNothingIsWrittenAfterTheEnd: a request that outlives its hub makes no folder that nobody will remove.
func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	t.Parallel()
	h, stop := openTestHub(t, newTestClock(), "-ephemeral")
	h.runOn(fourReadings).want(200)
	made := h.output.path
	stop()
	h.runOn(fourReadings).want(503, "busy")
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) || h.output.path != made {
		t.Errorf("%s: %v; then %s", made, err, h.output.path)
	}
}
