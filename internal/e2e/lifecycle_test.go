// The life of a process: flags and environment, the line on stdout, the ready file, signals, exit status.

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"authhub/internal/testkit"
)

// TestStory is the newcomer's story, from the start of the process to a restart that has forgotten nothing.
func TestStory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	h := start(t, "-dir", dir, "-log", "text")
	first := h.post(loginPath, "username=demo&password=demo-password", formType...).Want(200).Pair()
	if name := h.me(first.Access).Want(200).Text("username"); name != "demo" {
		t.Errorf("me is %q", name)
	}
	second := h.post(refreshPath, "refresh_token="+first.Refresh, formType...).Want(200).Pair()
	h.wantAvailable(0)
	if status := h.post(runPath, nil).Want(200).Text("status"); status != "succeeded" {
		t.Errorf("run %s", status)
	}
	h.wantAvailable(3)
	for _, path := range filePaths {
		h.get(path).Want(200).JSON()
	}
	fresh := h.post(registerPath, object{"username": "kim", "password": "correct horse", "email": "kim@example.test"}).Want(201).Pair()
	if status := h.process.stop(t); status != 0 {
		t.Fatalf("exit status %d\n%s", status, &h.process.stderr)
	}
	for _, secret := range []string{"correct horse", first.Access, second.Refresh} {
		if strings.Contains(h.process.stderr.String(), secret) {
			t.Errorf("the log holds a secret: %s", secret)
		}
	}

	h = start(t, "-dir", dir, "-log", "off")
	h.me(second.Access).Want(200)
	h.me(fresh.Access).Want(200)
	h.post(loginPath, "email=kim@example.test&password=correct+horse", formType...).Want(200)
	h.wantAvailable(3)
	h.logout(second.Access).Want(204)
	h.me(second.Access).Want(401, "token_revoked")
	h.refresh(first.Refresh).Want(401, "token_revoked")
	if status := h.process.stop(t); status != 0 || h.process.stderr.String() != "" {
		t.Errorf("exit status %d with -log off: %s", status, &h.process.stderr)
	}
}

// wantAvailable fails the test unless so many of the three files are there.
func (h *hub) wantAvailable(want int) {
	h.t.Helper()
	n := 0
	for _, e := range h.entries() {
		if e["available"] == true {
			n++
		}
	}
	if n != want {
		h.t.Errorf("%d files are available, want %d", n, want)
	}
}

func TestStdoutIsOneLine(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab", "-run")
	h.login("demo")
	h.process.stop(t)
	if got := h.process.stdout.String(); got != h.base+"\n" {
		t.Errorf("stdout %q", got)
	}
}

// The welcome names what there is to look at, and says nothing of a lab that is off.
func TestTheWelcomeNamesThePageAndTheLab(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{"-lab"}, nil} {
		h := start(t, append(flags, "-log", "text", "-ephemeral")...)
		h.process.stop(t) // by then all of it has arrived
		said := h.process.stderr.String()
		if !strings.Contains(said, "The page: "+h.base+"/\n") {
			t.Errorf("without the page:\n%s", said)
		}
		if named := strings.Contains(said, h.base+"/lab") && strings.Contains(said, h.base+"/ns/NAME"); named != (flags != nil) {
			t.Errorf("%v:\n%s", flags, said)
		}
	}
}

// Somebody who looks for the lab of a hub without one is told how to get it.
func TestWithoutALabItsPathsSayHowToGetIt(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral")
	for _, path := range []string{"/lab", "/lab/clock", "/ns", "/ns/test", "/ns/test/api"} {
		if detail := h.get(path).Want(404, "not_found").Text("detail"); !strings.Contains(detail, "start the hub with -lab") {
			t.Errorf("%s: %s", path, detail)
		}
	}
	for _, path := range []string{"/labs", "/api/lab", "/nsx/test"} {
		if detail := h.get(path).Want(404, "not_found").Text("detail"); strings.Contains(detail, "-lab") {
			t.Errorf("%s: %s", path, detail)
		}
	}
}

func TestTheReadyFileComesAndGoesWithTheHub(t *testing.T) {
	t.Parallel()
	file, dir := testkit.WriteFile(t, "ready", "what an earlier hub wrote"), t.TempDir()
	h := start(t, "-dir", dir, "-ready-file", file)
	if got := testkit.ReadFile(t, file); got != h.base+"\n" {
		t.Errorf("%q after the line on stdout, which says %s", got, h.base)
	}
	for _, args := range [][]string{
		{"-dir", t.TempDir(), "-addr", h.addr()},   // its port
		{"-dir", dir, "-addr", "127.0.0.1:0"},      // its folder
		{"-ephemeral", "-addr", "127.0.0.1:99999"}, // misuse
	} {
		if status, _, said := run(t, append(args, "-ready-file", file)...); status == 0 {
			t.Errorf("%v: exit status %d, %s", args, status, said)
		}
		if got := testkit.ReadFile(t, file); got != h.base+"\n" {
			t.Errorf("%v: %q after a start that failed", args, got)
		}
	}
	h.process.stop(t)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a hub that is gone is still ready: %v", err)
	}
}

// TestOnlyAFileIsAReadyFile: an empty folder is not taken away, nor a device, and no hub starts that could not say
// that it is ready.
func TestOnlyAFileIsAReadyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	status, stdout, said := run(t, "-ephemeral", "-addr", "127.0.0.1:0", "-ready-file", dir)
	if status != 1 || stdout != "" || !strings.Contains(said, "-ready-file") || !strings.Contains(said, "is no regular file") {
		t.Errorf("exit status %d, %q, %q", status, stdout, said)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		t.Errorf("the folder is gone: %v", err)
	}
	null := filepath.Join(dir, "null") // stands for the device, which a hub that may would replace for the whole machine
	if err := os.Symlink(os.DevNull, null); err != nil {
		t.Skip(err)
	}
	if status, _, said := run(t, "-ephemeral", "-addr", "127.0.0.1:0", "-ready-file", null); status != 1 || !strings.Contains(said, "is no regular file") {
		t.Errorf("a device: exit status %d, %q", status, said)
	}
}

func TestExitWithStdin(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"serving": nil, "with -lab": {"-lab"}} {
		h := start(t, append(flags, "-ephemeral", "-exit-with-stdin")...)
		h.login("demo")
		h.process.stdin.Close()
		if status := h.process.mustEnd(t); status != 0 {
			t.Errorf("%s: exit status %d", name, status)
		}
	}
	h := start(t, "-ephemeral") // without the flag nobody's stdin matters
	h.process.stdin.Close()
	h.login("demo")
}

// A terminal signals the whole group, and a parent such as npm passes its signal on: a second one, while a client
// still uploads, stops nothing that the first has not stopped.
func TestASecondSignalDoesNotKill(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals to send")
	}
	ready := filepath.Join(t.TempDir(), "ready")
	h := start(t, "-ephemeral", "-ready-file", ready)
	upload := testkit.Dial(t, h.addr())
	fmt.Fprintf(upload, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n", runPath)
	if line, err := bufio.NewReader(upload).ReadString('\n'); !strings.Contains(line, "100") {
		t.Fatalf("%q, %v", line, err)
	}

	h.process.cmd.Process.Signal(os.Interrupt)
	testkit.Eventually(t, "the hub stops", func() bool { return strings.Contains(h.process.stderr.String(), "stopping") })
	h.process.cmd.Process.Signal(os.Interrupt)
	time.AfterFunc(50*time.Millisecond, func() { upload.Close() }) // had the second one killed it, it would be dead by then
	if status := h.process.mustEnd(t); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if _, err := os.Stat(ready); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the ready file: %v", err)
	}
}

// A test run that reads the address and lets go of the pipes keeps its hub.
func TestNobodyHasToReadTheLog(t *testing.T) {
	t.Parallel()
	p, err := launchDeaf("-addr", "127.0.0.1:0", "-ephemeral", "-log", "text")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	p.mustBeReady(t)
	for range 3 {
		resp, err := http.Get(p.base + "/api")
		if err != nil || resp.StatusCode != 200 || resp.Body.Close() != nil {
			t.Fatal(resp, err)
		}
	}
}

func TestTheAddressThatClientsKnow(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-base-url", "HTTPS://Hub.Example:443/a/", "-log", "text")
	h.process.stop(t)
	if said := h.process.stderr.String(); h.base != "https://hub.example/a" || !strings.Contains(said, "It listens on http://127.0.0.1:") {
		t.Errorf("stdout %q, stderr\n%s", h.base, said)
	}
}

func TestAHubStoppedDuringItsFirstRunIsNotAnnounced(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "readings.csv")
	if err := mkfifo(fifo); err != nil {
		t.Skip("no FIFO to hold the run with: ", err)
	}
	p := launchHub(t, nil, "-ephemeral", "-run", "-readings", fifo)
	r := &heldRun{hub: &hub{t: t}, fifo: fifo}
	w := r.open()
	p.cmd.Process.Signal(os.Interrupt)
	testkit.Eventually(t, "the signal has arrived", func() bool {
		fmt.Fprintln(w, "2025-01-01T00:00:00Z,a,7") // until nobody reads any more
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	if status := p.cmd.ProcessState.ExitCode(); status != 0 || p.stdout.String() != "" {
		t.Errorf("exit status %d, stdout %q", status, &p.stdout)
	}
}

// The demo accounts on a network are worth a warning to those, too, who want no log.
func TestABindToOthersIsWarnedOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args   []string
		warned bool
	}{
		{[]string{"-log", "off"}, true},
		{[]string{"-log", "json"}, true},
		{[]string{"-log", "off", "-users", testkit.WriteFile(t, "users.json", `[{"username":"kim","password":"x"}]`)}, false},
	} {
		h := start(t, append(row.args, "-ephemeral", "-addr", "0.0.0.0:0")...)
		h.process.stop(t)
		if warned := strings.Contains(h.process.stderr.String(), "demo accounts"); warned != row.warned {
			t.Errorf("%v: stderr %q", row.args, &h.process.stderr)
		}
	}
}

func TestAFileOfReadingsMayComeLater(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plant.csv")
	h := start(t, "-ephemeral", "-readings", file)
	h.post(runPath, nil).Want(422, "unusable_readings")
	if err := os.WriteFile(file, []byte(fourReadings), 0o600); err != nil {
		t.Fatal(err)
	}
	h.post(runPath, nil).Want(200)
	h.process.stop(t)
	if said := h.process.stderr.String(); !strings.Contains(said, "no readings yet") || !strings.Contains(said, "plant.csv") {
		t.Errorf("no warning in\n%s", said)
	}
}

func TestTheSecretIsTheSameFromFileAndEnvironment(t *testing.T) {
	t.Parallel()
	dir, users := t.TempDir(), writeUsers(t, 0)
	h := start(t, "-dir", dir, "-users", users)
	token := h.login("demo").Access
	h.process.stop(t)
	file := filepath.Join(dir, "secret")
	secret := strings.TrimSpace(testkit.ReadFile(t, file))
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 || len(secret) < 32 {
		t.Errorf("%v, %d bytes, %v", info.Mode(), len(secret), err)
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	h = startIn(t, []string{"AUTHHUB_SECRET=" + secret}, "-dir", dir, "-users", users)
	h.me(token).Want(200)
	h.process.stop(t)
	h = startIn(t, []string{"AUTHHUB_SECRET=" + secret + "x"}, "-dir", dir, "-users", users)
	h.me(token).Want(401, "token_malformed")
	if status, _, said := runIn(t, []string{"AUTHHUB_SECRET=" + secret[:31]}, "-addr", "127.0.0.1:0", "-ephemeral"); status == 0 || !strings.Contains(said, "32 bytes") {
		t.Errorf("a short secret: exit status %d, %s", status, said)
	}
}

// exit is a command line and how it ends.
type exit struct {
	name, args     string
	status         int
	stdout, stderr string // substrings
}

// exits has command lines beside a hub that holds a folder.
func exits(t *testing.T, holder *hub, held string) []exit {
	t.Helper()
	missing := filepath.Join(t.TempDir(), "missing", "file")
	short := filepath.Join(t.TempDir(), "short")
	if err := errors.Join(os.Mkdir(short, 0o700), os.WriteFile(filepath.Join(short, "secret"), []byte("too short"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return []exit{
		{"help", "-help", 0, "Usage:", ""},
		{"version", "-version", 0, "authhub ", ""},
		{"unknown flag", "-adr :80", 2, "", "-adr"},
		{"argument", "serve", 2, "", `"serve"`},
		{"bad address", "-addr 8080", 2, "", "-addr"},
		{"no port", "-addr 127.0.0.1:99999", 2, "", "-addr"},
		{"no folder", "-dir=", 2, "", "-dir"},
		{"bad lifetime", "-access-ttl 15", 2, "", "access-ttl"},
		{"no lifetime", "-refresh-ttl 0s", 2, "", "-refresh-ttl"},
		{"bad group", "-protect files,everything", 2, "", "everything"},
		{"bad origin", "-cors app.example", 2, "", "app.example"},
		{"pattern of origins", "-cors https://*.example", 2, "", "*.example"},
		{"bad base URL", "-base-url ftp://x", 2, "", "-base-url"},
		{"base URL with a user", "-base-url http://u:p@x", 2, "", "-base-url"},
		{"base URL with a query", "-base-url http://x?", 2, "", "-base-url"},
		{"base URL of no port", "-base-url http://x:99999", 2, "", "port"},
		{"base URL with an empty port", "-base-url http://x:", 2, "", "-base-url"},
		{"bad log", "-log loud", 2, "", "loud"},
		{"taken port", "-ephemeral -addr " + holder.addr(), 1, "", "is in use"},
		{"address of another machine", "-ephemeral -addr 192.0.2.1:8080", 1, "", "with -addr, name an address of this machine"},
		{"held folder", "-dir " + held, 1, "", fmt.Sprintf("process %d; name another folder with -dir, or keep nothing with -ephemeral", holder.process.cmd.Process.Pid)},
		{"short secret", "-dir " + short, 1, "", "32 bytes"},
		{"no users", "-ephemeral -users " + missing, 1, "", "missing"},
		{"users of a costly hash", "-ephemeral -users " + testkit.WriteFile(t, "costly.json",
			`[{"username":"kim","password_hash":"$pbkdf2-sha256$i=10000000$`+strings.Repeat("A", 22)+"$"+strings.Repeat("A", 43)+`"}]`), 1, "", "2000000 rounds"},
		{"run without readings", "-ephemeral -run -log off -readings " + missing, 1, "", "can't be opened: "},
		{"run on a folder", "-ephemeral -run -log off -readings " + held, 1, "", "it is not a file"},
		{"check of nothing", "-check=", 2, "", "-check"},
		{"check of no address", "-check 127.0.0.1:8080", 1, "", "127.0.0.1:8080"},
		{"ready file in no folder", "-ephemeral -log off -ready-file " + missing, 1, "", "-ready-file"},
		{"unhealthy", "-check http://127.0.0.1:1", 1, "", "127.0.0.1:1"},
		{"healthy", "-check " + holder.base, 0, "", ""},
		{"healthy by the address of its health", "-check " + holder.base + "/healthz", 0, "", ""},
	}
}

func TestExitStatusAndOutput(t *testing.T) {
	t.Parallel()
	held := filepath.Join(t.TempDir(), "held")
	for _, row := range exits(t, start(t, "-dir", held), held) {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(row.args)
			if !strings.Contains(row.args, "-addr") && !strings.HasPrefix(args[0], "-check") {
				args = append([]string{"-addr", "127.0.0.1:0"}, args...)
			}
			status, stdout, stderr := run(t, args...)
			if status != row.status {
				t.Errorf("exit status %d, want %d", status, row.status)
			}
			if !strings.Contains(stdout, row.stdout) || row.stdout == "" && stdout != "" {
				t.Errorf("stdout %q", stdout)
			}
			if !strings.Contains(stderr, row.stderr) || strings.Count(stderr, "\n") > 1 {
				t.Errorf("stderr %q, want one line with %q", stderr, row.stderr)
			}
		})
	}
}

// TestFlagsFromTheEnvironment: each flag has a variable, and the flag wins.
func TestFlagsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	h := startIn(t, []string{"AUTHHUB_LAB=true", "AUTHHUB_ACCESS_TTL=5s", "AUTHHUB_EPHEMERAL=true", "AUTHHUB_LOG=loud", "AUTHHUB_PROTECT=run"}, "-access-ttl", "7s")
	h.get("/lab").Want(200)
	h.post(runPath, nil).Want(401, "token_missing")
	if got := h.post(loginPath, right("demo")).Want(200).JSON()["expires_in"]; got != 7.0 {
		t.Errorf("expires_in %v", got)
	}
	for name, value := range map[string]string{"AUTHHUB_LOG": "loud", "AUTHHUB_ADDR": "19003"} {
		if status, _, said := runIn(t, []string{name + "=" + value}, "-ephemeral"); status != 2 || !strings.Contains(said, name+"="+value) || strings.Count(said, "\n") != 1 {
			t.Errorf("exit status %d, %s", status, said)
		}
	}
}
