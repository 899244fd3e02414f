// Sockets: requests out of shape, slow and idle clients, and more of them than a hub likes.

package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"authhub/internal/testkit"
)

// addr is where the hub listens.
func (h *hub) addr() string {
	host, _, _ := strings.Cut(strings.TrimPrefix(h.base, "http://"), "/")
	return host
}

// shape is a request as it is sent, with HOST in the place of the hub's address.
type shape struct {
	name, send string
	want       []int // statuses in order, then the connection ends or falls silent
}

// shapes has requests in every shape that two parsers might read in two ways.
func shapes() []shape {
	const form = "Content-Type: application/x-www-form-urlencoded\r\n"
	const smuggled = "GET /api HTTP/1.1\r\nHost: HOST\r\n\r\n"
	return []shape{
		{"Content-Length and Transfer-Encoding", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n" + form + "\r\n0\r\n\r\n", []int{422}},
		{"Content-Length that would smuggle", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 42\r\nTransfer-Encoding: chunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{422, 200}},
		{"two equal Content-Lengths", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3\r\nContent-Length: 3\r\n" + form + "\r\na=b", []int{422}},
		{"two Content-Lengths", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3\r\nContent-Length: 4\r\n" + form + "\r\na=b" + smuggled, []int{400}},
		{"list of Content-Lengths", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 3, 3\r\n" + form + "\r\na=b" + smuggled, []int{400}},
		{"negative Content-Length", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: -1\r\n\r\n", []int{400}},
		{"signed Content-Length", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: +3\r\n" + form + "\r\na=b", []int{400}},
		{"Content-Length beyond 64 bits", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 99999999999999999999\r\n\r\n", []int{400}},
		{"huge Content-Length", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9223372036854775807\r\n" + form + "\r\n", []int{413}},
		{"huge Content-Length of an upload", "POST /api/run-ph-barrier-phase2 HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9223372036854775807\r\nContent-Type: text/csv\r\n\r\n", []int{413}},
		{"chunked twice", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked, chunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{501}},
		{"Transfer-Encoding twice", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{501}},
		{"unknown Transfer-Encoding", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: xchunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{501}},
		{"Transfer-Encoding with a vertical tab", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: \x0bchunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{400}},
		{"space before the colon", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding : chunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{400}},
		{"chunk size of garbage", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n" + form + "\r\nzz\r\nabc\r\n0\r\n\r\n" + smuggled, []int{400}},
		{"chunk size beyond 64 bits", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n" + form + "\r\nfffffffffffffffff\r\nabc\r\n0\r\n\r\n" + smuggled, []int{400}},
		{"chunk that is longer than it says", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n" + form + "\r\n1\r\nabc\r\n0\r\n\r\n" + smuggled, []int{400}},
		{"chunks that end with a bare LF", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n" + form + "\r\n3\na=b\n0\n\n" + smuggled, []int{400}},
		{"bare LF", "GET /healthz HTTP/1.1\nHost: HOST\n\n", []int{200}},
		{"bare CR in a value", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nX: a\rb\r\n\r\n", []int{400}},
		{"NUL in a value", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nX: a\x00b\r\n\r\n", []int{400}},
		{"obs-fold", "GET /api/authentication/me HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer\r\n x\r\n\r\n", []int{401}},
		{"obs-fold first", "GET /healthz HTTP/1.1\r\n Host: HOST\r\n\r\n", []int{400}},
		{"no Host", "GET /healthz HTTP/1.1\r\n\r\n", []int{400}},
		{"two Hosts", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\n\r\n", []int{400}},
		{"Host of garbage", "GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", []int{400}},
		{"Host in the target", "GET http://evil.test/healthz HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{403}},
		{"HTTP/1.0", "GET /healthz HTTP/1.0\r\nHost: HOST\r\n\r\n", []int{200}},
		{"HTTP/1.0 without Host", "GET /healthz HTTP/1.0\r\n\r\n", []int{403}},
		{"HTTP/1.0 with Transfer-Encoding", "POST /api/authentication/login HTTP/1.0\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n" + form + "\r\n0\r\n\r\n" + smuggled, []int{422}},
		{"HTTP/0.9", "GET /healthz\r\n\r\n", []int{400}},
		{"HTTP/9.9", "GET /healthz HTTP/9.9\r\nHost: HOST\r\n\r\n", []int{505}},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", []int{403}},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", []int{400}},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{404}},
		{"OPTIONS * of another host", "OPTIONS * HTTP/1.1\r\nHost: evil.test\r\n\r\n", []int{403}},
		{"CONNECT", "CONNECT evil.test:80 HTTP/1.1\r\nHost: evil.test:80\r\n\r\n", []int{403}},
		{"method of garbage", "G(T /healthz HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{400}},
		{"target of garbage", "GET /%zz HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{400}},
		{"target with a control", "GET /\x01 HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{400}},
		{"target of 20 KiB", "GET /" + strings.Repeat("a", 20<<10) + " HTTP/1.1\r\nHost: HOST\r\n\r\n", []int{431}},
		{"field of 17 KiB", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nX: " + strings.Repeat("a", 17<<10) + "\r\n\r\n", []int{431}},
		{"5,000 fields", "GET /healthz HTTP/1.1\r\nHost: HOST\r\n" + strings.Repeat("X: a\r\n", 5_000) + "\r\n", []int{431}},
		{"body of 65 KiB", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\n" + form + "Content-Length: 66560\r\n\r\n" + strings.Repeat("a", 65<<10), []int{413}},
		{"chunked body of 65 KiB", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\n" + form + "Transfer-Encoding: chunked\r\n\r\n10400\r\n" + strings.Repeat("a", 65<<10) + "\r\n0\r\n\r\n", []int{413}},
		{"body of a GET", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\n\r\nhello" + smuggled, []int{200, 200}},
		{"Expect: 100-continue", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\n" + form + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\na=b", []int{100, 422}},
		{"Expect: 100-continue with too much", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\n" + form + "Expect: 100-continue\r\nContent-Length: 70000\r\n\r\n", []int{413}},
		{"Expect: 100-continue at a foreign host", "POST /api/authentication/login HTTP/1.1\r\nHost: evil.test\r\n" + form + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n", []int{403}},
		{"Expect: something else", "POST /api/authentication/login HTTP/1.1\r\nHost: HOST\r\nExpect: miracles\r\nContent-Length: 0\r\n\r\n", []int{417}},
		{"Upgrade to h2c", "GET /healthz HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", []int{200}},
		{"fifty in a row", strings.Repeat(smuggled, 50), slices.Repeat([]int{200}, 50)},
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-log", "off")
	for _, row := range shapes() {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := testkit.Dial(t, h.addr())
			io.WriteString(c, strings.ReplaceAll(row.send, "HOST", h.addr()))
			c.CloseWrite()
			if got := testkit.Statuses(c, len(row.want)+1); !slices.Equal(got, row.want) {
				t.Errorf("%v, want %v", got, row.want)
			}
			testkit.MustBeWell(t, h.addr())
		})
	}
}

// TestIdleConnections opens thousands of connections and leaves them alone.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-log", "off")
	_, err := os.Stat("/proc/self/fd")
	require(t, err == nil, "/proc to look processes up in")
	testkit.MustBeWell(t, h.addr())
	descriptors, resident := h.process.holdings(t)

	many := testkit.Times(1_000, 3_000)
	var conns []net.Conn
	for i := range many {
		c, err := net.Dial("tcp", h.addr())
		require(t, err == nil, fmt.Sprintf("room for %d connections: %v", many, err))
		defer c.Close()
		conns = append(conns, c)
		if i%2 == 0 { // half of them have been used
			fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", h.addr())
		}
	}
	for i := 0; i < many; i += 2 {
		testkit.Statuses(conns[i], 1)
	}
	testkit.Eventually(t, "the hub has taken them all", func() bool {
		now, _ := h.process.holdings(t)
		return now >= many
	})
	for range 20 {
		testkit.MustBeWell(t, h.addr())
	}
	_, now := h.process.holdings(t)
	t.Logf("%d idle connections hold %d KiB each", many, (now-resident)/many)
	limit := 50 // KiB
	if raceDetector {
		limit *= 4 // its shadow memory
	}
	if (now-resident)/many > limit {
		t.Errorf("an idle connection holds %d KiB", (now-resident)/many)
	}
	for _, c := range conns {
		c.Close()
	}
	testkit.Eventually(t, "the hub has let go of them", func() bool {
		now, _ := h.process.holdings(t)
		return now <= descriptors
	})
}

// holdings returns how many descriptors the process has open and how many KiB of it are resident.
func (p *process) holdings(t testing.TB) (descriptors, resident int) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	status := testkit.ReadFile(t, proc+"status")
	fmt.Sscanf(status[strings.Index(status, "VmRSS:"):], "VmRSS: %d", &resident)
	return len(testkit.List(t, proc+"fd")), resident
}
