// The output folder against what somebody may have planted in it, and against its own edges.

package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"authhub/internal/testkit"
)

// planted returns a folder outside DIR with a file in it, and what checks that nobody has touched either.
func planted(t *testing.T) (dir string, check func()) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range fileNames {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("outside"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, func() {
		t.Helper()
		if names := testkit.List(t, dir); len(names) != len(fileNames) {
			t.Errorf("the folder outside now holds %v", names)
		}
		for _, name := range fileNames {
			if got := testkit.ReadFile(t, filepath.Join(dir, name)); got != "outside" {
				t.Errorf("%s outside now holds %.40q", name, got)
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
		{"a file", func(outside string) string { return filepath.Join(outside, "impact_phi.json") }, "impact_phi.json"},
		{"a file, relative", func(outside string) string {
			return "../../../../../../../../../.." + filepath.Join(outside, "impact_phi.json")
		}, "impact_phi.json"},
		{"a file inside", func(string) string { return "../journal" }, "impact_phi.json"},
		{"a device", func(string) string { return "/dev/zero" }, "impact_phi.json"},
		{"nothing", func(outside string) string { return filepath.Join(outside, "absent") }, "impact_phi.json"},
		{"staging", func(outside string) string { return outside }, ".staging"},
		{"commit", func(outside string) string { return outside }, ".commit"},
		{"commit to itself", func(string) string { return ".commit" }, ".commit"},
		{"commit to nothing", func(string) string { return "absent" }, ".commit"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			outside, check := planted(t)
			dir := t.TempDir()
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "phase2"), 0o700), os.Symlink(row.link(outside), filepath.Join(dir, "phase2", row.at))); err != nil {
				t.Fatal(err)
			}
			h := start(t, "-dir", dir)
			if a := h.get(listingPath+"/impact").Want(404, "file_unavailable"); strings.Contains(string(a.Body), "outside") {
				t.Errorf("read through: %s", a.Body)
			}
			h.upload(fourReadings).Want(200)
			h.get(listingPath + "/impact").Want(200)
			check()

			// And once more while the hub runs.
			os.Remove(filepath.Join(dir, "phase2", row.at))
			if err := os.Symlink(row.link(outside), filepath.Join(dir, "phase2", row.at)); err != nil {
				t.Fatal(err)
			}
			h.get(listingPath).Want(200)
			h.upload(fourReadings).Want(200)
			check()
		})
	}
}

// TestPlantedFolder: if DIR/phase2 itself leads out of DIR, the files are unavailable, and everything else works.
func TestPlantedFolder(t *testing.T) {
	t.Parallel()
	outside, check := planted(t)
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "phase2")); err != nil {
		t.Fatal(err)
	}
	h := start(t, "-dir", dir)
	h.mayFail = true
	h.login("demo")
	h.get(listingPath+"/impact").Want(503, "store_unavailable")
	h.upload(fourReadings).Want(503, "store_unavailable")
	h.post(runPath, nil).Want(503, "store_unavailable")
	if h.entries()[0]["available"] != false {
		t.Error("a file outside DIR is listed")
	}
	check()

	os.Remove(filepath.Join(dir, "phase2"))
	h.upload(fourReadings).Want(200)
	h.get(listingPath + "/impact").Want(200)
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
		{"FIFO", plantFIFO, 200},
		{"folder", func(path string) error { return os.MkdirAll(filepath.Join(path, "kept"), 0o700) }, 503},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "phase2", "alertesph.json")
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), row.plant(path)); err != nil {
				t.Fatal(err)
			}
			h := start(t, "-dir", dir)
			h.get(listingPath).Want(200)
			h.get(listingPath+"/alertesph").Want(404, "file_unavailable")
			if row.run == 200 {
				h.upload(fourReadings).Want(200)
				return
			}
			h.mayFail = true
			h.upload(fourReadings).Want(row.run, "store_unavailable")
			if names := testkit.List(t, filepath.Dir(path)); len(names) != 1 {
				t.Errorf("left behind: %v", names)
			}
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			h.upload(fourReadings).Want(200)
		})
	}
}

// TestNoPathLeadsElsewhere: of all the ways to spell another file none is answered with one.
func TestNoPathLeadsElsewhere(t *testing.T) {
	t.Parallel()
	h := start(t, "-dir", t.TempDir())
	h.upload(fourReadings).Want(200)
	for _, path := range []string{
		"/secret", "/journal", "/lock", listingPath + "/secret", listingPath + "/../secret", listingPath + "/..%2fsecret", listingPath + "/%2e%2e/secret",
		listingPath + "/..%5csecret", listingPath + "/barrier%00", listingPath + "/barrier/", listingPath + "/barrier/..", listingPath + "//barrier", listingPath + "/barrier_phi_phase2.json",
		listingPath + "/.staging/", "/../../etc/passwd", "/%2fetc/passwd", "/x//etc/passwd", listingPath + "/BARRIER",
	} {
		if a := h.get(path); a.Status != 404 || a.Text("code") != "not_found" {
			t.Errorf("%s: %d %.80s", path, a.Status, a.Body)
		}
	}
}

// plantFIFO makes a FIFO, or where there are none another thing that is no file, a link to nothing.
func plantFIFO(path string) error {
	if err := mkfifo(path); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return os.Symlink("absent", path)
}

// TestTemporaryFolderCannotBeMade: a run that finds nowhere to put its files fails, and the hub goes on.
func TestTemporaryFolderCannotBeMade(t *testing.T) {
	t.Parallel()
	folders := filepath.Join(t.TempDir(), "folders")
	if err := os.Mkdir(folders, 0o700); err != nil {
		t.Fatal(err)
	}
	h := startIn(t, []string{"TMPDIR=" + folders, "TMP=" + folders}, "-ephemeral")
	h.mayFail = true
	if err := os.Remove(folders); err != nil {
		t.Fatal(err)
	}
	h.post(runPath, nil).Want(503, "store_unavailable")
	h.upload(fourReadings).Want(503, "store_unavailable")
	h.get(listingPath).Want(200)
	h.login("demo")
	if err := os.Mkdir(folders, 0o700); err != nil {
		t.Fatal(err)
	}
	h.upload(fourReadings).Want(200)
}
