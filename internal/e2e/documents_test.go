// Every command of the documents, run as a reader would.

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"authhub/internal/engine/enginetest"
	"authhub/internal/testkit"
)

// TestDocuments follows the README and each page of docs/ as a reader would: in a clean copy of the project, with a
// shell of its own a page. A code block does one of three things, by its first line:
//
//   - "```js hub.mjs" (a language and a file name) is written to that file;
//   - "```sh" is pasted into the shell; what it prints must be the "```text" block that follows it, in which … stands
//     for what differs each time, or, where there is none, it must exit with status 0;
//   - "```sh" whose text block ends with the address of a hub, or says "is ready at", starts that hub, in the place of
//     the one before.
//
// The pages use ports 8080, 2379 and 2380; here each page has ports of its own in their place. docs/many-hubs.md needs
// etcd.
func TestDocuments(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the pages are for a POSIX shell")
	}
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatal(pages, err)
	}
	for _, page := range append([]string{root + "/README.md"}, pages...) {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			r := &reader{t: t, dir: cleanCopy(t), port: testkit.FreePort(t)}
			if filepath.Base(page) == "many-hubs.md" {
				copyFile(t, enginetest.Binary(t), filepath.Join(r.dir, "internal/engine/enginetest/etcd/bin/etcd"))
			}
			ports := strings.NewReplacer("8080", r.port, "2379", testkit.FreePort(t), "2380", testkit.FreePort(t))
			r.shell = r.start("bash")
			defer r.stopHub()
			for _, b := range codeBlocks(ports.Replace(testkit.ReadFile(t, page))) {
				switch {
				case b.file != "":
					r.write(b)
				case strings.Contains(b.output, " is ready at ") || b.output == "http://127.0.0.1:"+r.port+"\n":
					r.startHub(b)
				default:
					r.paste(b)
				}
			}
		})
	}
}

// TestDocumentsNameTestsThatExist: SECURITY.md and the pages name a test behind each promise, and show commands that
// run some.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{} // also with their folder: internal/e2e.TestCrashes
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, "_test.go") {
			folder, _ := filepath.Rel(root, filepath.Dir(path))
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`).FindAllStringSubmatch(testkit.ReadFile(t, path), -1) {
				tests[m[1]], tests[filepath.ToSlash(folder)+"."+m[1]] = true, true
			}
		}
		return err
	})
	pages, err2 := filepath.Glob(root + "/docs/*.md")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, page := range append(pages, root+"/SECURITY.md", root+"/README.md", root+"/CONTRIBUTING.md", root+"/BENCHMARKS.md") {
		for _, m := range regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w+)`").FindAllStringSubmatch(testkit.ReadFile(t, page), -1) {
			if named++; !tests[m[1]] {
				t.Errorf("%s names %s, which is no test", filepath.Base(page), m[1])
			}
		}
		for _, m := range regexp.MustCompile(`go test .*-run (\w+).* \./?(\S*)`).FindAllStringSubmatch(testkit.ReadFile(t, page), -1) {
			if folder := path.Clean(strings.Trim(m[2], "`.")); !tests[folder+"."+m[1]] {
				t.Errorf("%s: %s runs no test", filepath.Base(page), m[0])
			}
		}
	}
	if named < 20 {
		t.Errorf("found %d names of tests", named)
	}
}

// block is what a page has a reader type into the shell, and the output that it shows for it; or the text of a file.
type block struct{ typed, output, file string }

// codeBlocks returns the blocks of a page that a reader acts on.
func codeBlocks(text string) (blocks []block) {
	fences := regexp.MustCompile("(?ms)^```(?:sh|[a-z]+ (\\S+))\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?")
	for _, fence := range fences.FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, block{file: fence[1], typed: fence[2], output: fence[3]})
	}
	return blocks
}

// matches reports whether got is what the page shows.
func (b block) matches(got string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(b.output)), "…", ".*?")
	return regexp.MustCompile(`(?s)^\s*` + pattern + `\s*$`).MatchString(got)
}

// cleanCopy returns a folder with the project's files as git has them in the working tree, and the built hub.
func cleanCopy(t *testing.T) string {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copyFile(t, binary(), filepath.Join(dir, "authhub"))
	for name := range strings.SplitSeq(strings.Trim(string(names), "\x00"), "\x00") {
		copyFile(t, filepath.Join(root, name), filepath.Join(dir, name))
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err1 := os.Stat(from)
	data, err2 := os.ReadFile(from)
	if err := errors.Join(err1, err2, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, info.Mode())); err != nil {
		t.Fatal(err)
	}
}

// reader is somebody who follows a page: a shell, and a hub in another terminal.
type reader struct {
	t     *testing.T
	dir   string
	port  string // in the place of 8080
	shell *terminal
	hub   *terminal
}

// terminal is a running program and what it prints, both outputs as one.
type terminal struct {
	stdin io.WriteCloser
	lines chan string
	stop  func()
}

func (r *reader) start(name string, args ...string) *terminal {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // the test's own would interrupt a shell before its input ends
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second // for what keeps its output open
	stdin, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	term := &terminal{stdin: stdin, lines: make(chan string, 10_000)}
	ended := make(chan struct{})
	go func() {
		defer close(term.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			term.lines <- s.Text() + "\n"
		}
	}()
	go func() { cmd.Wait(); in.Close(); close(ended) }()
	term.stop = func() {
		stdin.Close()
		if len(args) == 0 { // a shell ends with its input, and its trap ends what it has started
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
			}
		}
		cancel()
		<-ended
	}
	r.t.Cleanup(term.stop)
	return term
}

// write makes the file that a block shows.
func (r *reader) write(b block) {
	r.t.Helper()
	path := filepath.Join(r.dir, b.file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(b.typed), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// paste runs a block in the shell and compares its output, or its exit status where the page shows no output.
func (r *reader) paste(b block) {
	r.t.Helper()
	const mark = "end of the command's output"
	fmt.Fprintf(r.shell.stdin, "%s\necho %q $?\n", b.typed, mark)
	got, last := r.collect(r.shell, func(_, line string) bool { return strings.Contains(line, mark) })
	before, status, _ := strings.Cut(last, mark)
	got += before
	switch {
	case last == "":
		r.t.Fatalf("%sdoes not end, and prints\n%s", b.typed, got)
	case b.output == "" && strings.TrimSpace(status) != "0":
		r.t.Errorf("%sends with status %sand prints\n%s", b.typed, status, got)
	case b.output != "" && !b.matches(got):
		r.t.Errorf("%sprints\n%s\nthe page says\n%s", b.typed, got, b.output)
	}
}

// startHub runs a hub in its own terminal, in the place of the one before.
func (r *reader) startHub(b block) {
	r.t.Helper()
	r.stopHub()
	// Not by go run, which passes an interrupt's exit status on no more than it dies with its child.
	line := strings.Replace(strings.TrimSpace(b.typed), "go run .", "./authhub", 1)
	r.hub = r.start("bash", "-c", "export AUTHHUB_ADDR=127.0.0.1:"+r.port+"; exec "+line)
	got, _ := r.collect(r.hub, func(sofar, _ string) bool { return b.matches(sofar) })
	if !b.matches(got) {
		r.t.Fatalf("%sprints\n%s\nthe page says\n%s", b.typed, got, b.output)
	}
}

func (r *reader) stopHub() {
	if r.hub != nil {
		r.hub.stop()
		r.hub = nil
	}
}

// collect reads lines until enough; it returns those before the last, or all when the program ends or takes too long.
func (r *reader) collect(term *terminal, enough func(sofar, line string) bool) (before, last string) {
	r.t.Helper()
	patience := time.After(time.Minute)
	for {
		select {
		case line, ok := <-term.lines:
			switch {
			case !ok:
				return before, ""
			case enough(before+line, line):
				if strings.Contains(line, "end of the command's output") {
					return before, line
				}
				return before + line, line
			}
			before += line
		case <-patience:
			return before + "(and nothing more for a minute)", ""
		}
	}
}
