// A hub as its clients see it: requests, answers, tokens.

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"authhub/internal/testkit"
)

// Where the operations are.
const (
	registerPath = "/api/authentication/register"
	loginPath    = "/api/authentication/login"
	mePath       = "/api/authentication/me"
	refreshPath  = "/api/authentication/refresh"
	logoutPath   = "/api/authentication/logout"
	listingPath  = "/api/files/phase2"
	runPath      = "/api/run-ph-barrier-phase2"
)

// The names of the three files, in the listing's order.
var fileNames = []string{"barrier_phi_phase2.json", "impact_phi.json", "alertesph.json"}

// filePaths are where they are served.
var filePaths = []string{listingPath + "/barrier", listingPath + "/impact", listingPath + "/alertesph"}

const csvHeader = "time,station,ph"

// fourReadings is about the least input that gives something in each file.
const fourReadings = csvHeader + "\n" +
	"2025-01-01T00:00:00Z,a,7.5\n" +
	"2025-01-01T00:15:00Z,a,8.6\n" +
	"2025-01-01T00:30:00Z,a,9.1\n" +
	"2025-01-01T00:45:00Z,a,7.5\n"

// What several tests put on the wire.
var (
	formType = []string{"Content-Type", "application/x-www-form-urlencoded"}
	jsonType = []string{"Content-Type", "application/json"}
	csvType  = []string{"Content-Type", "text/csv"}
)

// object is a JSON object, as tests write it.
type object = map[string]any

// hub is a hub, or a namespace of one.
type hub struct {
	t       testing.TB
	base    string // base URL; of a namespace with its path
	process *process
	client  *http.Client
	mayFail bool // the process may log a defect
	faulty  bool // answers may be faults, which openapi.json does not describe
}

// serial numbers the namespaces.
var serial atomic.Int64

// newHub returns a namespace of the shared hub, which is deleted at the end of the test.
func newHub(t testing.TB) *hub {
	t.Helper()
	p, err := sharedProcess()
	if err != nil {
		t.Fatal(err)
	}
	test := regexp.MustCompile("[^A-Za-z0-9_-]+").ReplaceAllString(t.Name(), "-")
	h := &hub{t: t, process: p, client: sharedClient, base: fmt.Sprintf("%s/ns/%.50s-%d", p.base, test, serial.Add(1))}
	t.Cleanup(func() {
		if r, err := http.NewRequest("DELETE", h.base, nil); err == nil {
			if resp, err := h.client.Do(r); err == nil {
				resp.Body.Close()
			}
		}
	})
	return h
}

var sharedClient = newClient("")

// newStillHub is newHub with a clock that stands at noon of 1 March 2026 until the test advances it.
func newStillHub(t testing.TB) *hub {
	t.Helper()
	h := newHub(t)
	h.clock(object{"at": "2026-03-01T12:00:00Z", "frozen": true})
	return h
}

// noon is when the clock of newStillHub begins to stand.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// of is the same hub for another test, such as a subtest.
func (h *hub) of(t testing.TB) *hub {
	other := *h
	other.t = t
	return &other
}

// from is the same hub for a client at another address of this machine.
func (h *hub) from(address string) *hub {
	other := *h
	other.client = newClient(address)
	h.t.Cleanup(other.client.CloseIdleConnections)
	return &other
}

func dialer(from string) *net.Dialer {
	if from == "" {
		return new(net.Dialer)
	}
	return &net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
}

// space is a namespace of h.
func (h *hub) space(name string) *hub {
	other := *h
	other.base += "/ns/" + name
	return &other
}

// answer and pair are what a hub answers.
type (
	answer = testkit.Answer
	pair   = testkit.Pair
)

// do sends a request, its target byte for byte as given. body is sent as JSON unless it is a string, which is sent
// as it is; options are pairs of header name and value. The answer is held against openapi.json.
func (h *hub) do(method, target string, body any, options ...string) *answer {
	h.t.Helper()
	a, err := h.try(method, target, body, options...)
	if err != nil {
		h.t.Fatalf("%s %s: %v", method, target, err)
	}
	return a
}

// try is do for requests that may get no whole answer.
func (h *hub) try(method, target string, body any, options ...string) (*answer, error) {
	h.t.Helper()
	r, err := h.newRequest(method, target, body, options...)
	if err != nil {
		return nil, err
	}
	resp, err := h.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	whole, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	a := &answer{T: h.t, Status: resp.StatusCode, Header: resp.Header, Body: whole}
	if !h.faulty || labPath.MatchString(target) {
		h.mustBeDescribed(r, target, a)
	}
	return a, nil
}

var labPath = regexp.MustCompile(`^(/ns/[^/]+)?/lab(/|$)|^/ns/[^/]+$`)

func (h *hub) newRequest(method, target string, body any, options ...string) (*http.Request, error) {
	var reader io.Reader
	header := http.Header{}
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	case io.Reader:
		reader = b
	default:
		data, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		reader, header = bytes.NewReader(data), http.Header{"Content-Type": {"application/json"}}
	}
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.base, reader)
	if err != nil {
		return nil, err
	}
	r.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Opaque: r.URL.Path + target}
	r.Header = header
	for name, value := range pairs(options) {
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Add(name, value)
		}
	}
	return r, nil
}

// pairs yields names and values of a list in which they alternate.
func pairs(list []string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for pair := range slices.Chunk(list, 2) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
}

func (h *hub) get(target string, options ...string) *answer {
	h.t.Helper()
	return h.do("GET", target, nil, options...)
}

func (h *hub) post(target string, body any, options ...string) *answer {
	h.t.Helper()
	return h.do("POST", target, body, options...)
}

func (h *hub) put(target string, body any, options ...string) *answer {
	h.t.Helper()
	return h.do("PUT", target, body, options...)
}

func (h *hub) delete(target string, options ...string) *answer {
	h.t.Helper()
	return h.do("DELETE", target, nil, options...)
}

// right is the login of a demo account, and of every account whose password is its name and "-password".
func right(username string) object {
	return object{"username": username, "password": username + "-password"}
}

func wrong(username string) object {
	return object{"username": username, "password": "guess-guess"}
}

func (h *hub) login(name string) pair {
	h.t.Helper()
	return h.post(loginPath, right(name)).Want(200).Pair()
}

func (h *hub) me(token string) *answer {
	h.t.Helper()
	return h.get(mePath, bearer(token)...)
}

func (h *hub) refresh(token string) *answer {
	h.t.Helper()
	return h.post(refreshPath, object{"refresh_token": token})
}

func (h *hub) logout(token string) *answer {
	h.t.Helper()
	return h.post(logoutPath, nil, bearer(token)...)
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// payload returns the claims of a token, unchecked.
func payload(t testing.TB, token string) object {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("not a compact JWS: %q", token)
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims object
	if err := json.Unmarshal(data, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// sid returns the session that a token belongs to.
func sid(t testing.TB, token string) string {
	t.Helper()
	id, _ := payload(t, token)["sid"].(string)
	return id
}

// upload runs phase 2 on these readings.
func (h *hub) upload(readings string) *answer {
	h.t.Helper()
	return h.post(runPath, readings, csvType...)
}

// entries returns the listing's three entries.
func (h *hub) entries() []object {
	h.t.Helper()
	return h.get(listingPath).Want(200).List("phase2_files")
}
