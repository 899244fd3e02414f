// Package built builds the hub for tests that start it as a process.
package built

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

// Hub compiles the program whose source is in the folder root into the folder dir, with these flags of go build, and
// returns the path of the binary. The error has what the compiler said.
//
// It also looks at every file below root. go test remembers a passed test until a file changes that the test itself
// has looked at, and the compiler is another process: without the look, a changed hub would pass by its old result.
func Hub(root, dir string, flags ...string) (string, error) {
	path := filepath.Join(dir, "authhub")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	cmd := exec.Command("go", slices.Concat([]string{"build", "-o", path}, flags, []string{"."})...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, filepath.WalkDir(root, look)
}

// look takes notice of a file, and passes over the folders that the build does not read.
func look(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if entry.IsDir() && slices.Contains([]string{".git", "node_modules", "dist"}, entry.Name()) {
		return fs.SkipDir
	}
	_, err = os.Stat(path)
	return err
}
