package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestReadme types what the README's console blocks show into a shell, in a clean copy of the project, and holds
// what comes back against what the README prints there; … stands for what differs each time. It uses port 8080,
// so it runs in CI only, or where AUTHHUB_README is set.
func TestReadme(t *testing.T) {
	if os.Getenv("CI") == "" && os.Getenv("AUTHHUB_README") == "" {
		t.Skip("needs port 8080; set AUTHHUB_README=1 to run it")
	}
	blocks := consoleBlocks(readFile(t, "README.md"))
	if len(blocks) < 5 {
		t.Fatalf("only %d console blocks", len(blocks))
	}
	r := &reader{t: t, dir: cleanCopy(t)}
	r.shell = r.start("bash")
	defer r.stopHub()
	for _, block := range blocks {
		for _, c := range block {
			if strings.Contains(c.output, " is ready at ") {
				r.startHub(c)
			} else {
				r.typeIn(c)
			}
		}
	}
}

// command is one command of a console block and the output that the README shows for it.
type command struct{ line, output string }

// consoleBlocks returns the commands of each ```console block: "$ " begins one, "> " goes on with it.
func consoleBlocks(text string) (blocks [][]command) {
	for _, fence := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(text, -1) {
		var block []command
		for line := range strings.Lines(fence[1]) {
			if typed, ok := strings.CutPrefix(line, "$ "); ok {
				block = append(block, command{line: typed})
			} else if more, ok := strings.CutPrefix(line, "> "); ok && len(block) > 0 {
				block[len(block)-1].line += more
			} else if len(block) > 0 {
				block[len(block)-1].output += line
			}
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// matches reports whether got is what the README shows.
func (c command) matches(got string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(c.output)), "…", ".*?")
	return regexp.MustCompile(`(?s)^\s*` + pattern + `\s*$`).MatchString(got)
}

// cleanCopy returns a folder with the project's files as git has them in the working tree.
func cleanCopy(t *testing.T) string {
	t.Helper()
	list, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.Trim(string(list), "\x00"), "\x00") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		info, _ := os.Stat(name)
		if err := os.WriteFile(path, data, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reader is somebody who follows the README: a shell, and a hub in another terminal.
type reader struct {
	t     *testing.T
	dir   string
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
	ctx, cancel := context.WithCancel(r.t.Context())
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
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
	term.stop = func() { stdin.Close(); cancel(); <-ended }
	r.t.Cleanup(term.stop)
	return term
}

// typeIn runs one command in the shell and compares its output.
func (r *reader) typeIn(c command) {
	r.t.Helper()
	const mark = "end of the command's output"
	fmt.Fprintf(r.shell.stdin, "%s\necho %q $?\n", c.line, mark)
	got, last := r.collect(r.shell, func(_, line string) bool { return strings.Contains(line, mark) })
	before, _, _ := strings.Cut(last, mark)
	if got += before; !c.matches(got) {
		r.t.Errorf("$ %sprints\n%s\nthe README says\n%s", c.line, got, c.output)
	}
}

// startHub runs a hub in its own terminal, in the place of the one before.
func (r *reader) startHub(c command) {
	r.t.Helper()
	r.stopHub()
	// Built first: go run does not pass an interrupt's exit status on, nor die with its child.
	build := exec.Command("go", "build", "-o", "authhub", ".")
	build.Dir = r.dir
	if out, err := build.CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	line := strings.Replace(strings.TrimSpace(c.line), "go run .", "./authhub", 1)
	r.hub = r.start("bash", "-c", "exec "+line)
	got, _ := r.collect(r.hub, func(sofar, _ string) bool { return c.matches(sofar) })
	if !c.matches(got) {
		r.t.Fatalf("$ %sprints\n%s\nthe README says\n%s", c.line, got, c.output)
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
