package ready

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"authhub/internal/dialect"
	"authhub/internal/flags"
	"authhub/internal/logs"
)

func TestTheWelcomeTellsWhatADialectSpeaks(t *testing.T) {
	t.Parallel()
	operations := `{"op":"register","on":"PUT /v9/people/{login}","in":{"username":"path.login","password":"body.secret"}},
		{"op":"login","on":"POST /v9","when":{"body.kind":"a"}},{"op":"refresh","on":"POST /v9","when":{"body.kind":"b"}}`
	for _, row := range []struct{ operations, want string }{
		{operations, "\nIt speaks v9: PUT /v9/people/{login}, POST /v9\n"},
		{operations + `,{"op":"me","on":"GET /a"},{"op":"me","on":"GET /b"},{"op":"me","on":"GET /c"}`,
			"\nIt speaks v9: PUT /v9/people/{login}, POST /v9, GET /a, GET /b, … (all at http://hub.test/api)\n"},
	} {
		d, err := dialect.Parse([]byte(`{"name":"v9","operations":[` + row.operations + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		n := Notice{&flags.Options{BaseURL: "http://hub.test", LogFormat: "text", Dialect: d}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}}
		var stdout, stderr bytes.Buffer
		if err := n.Announce(&stdout, &stderr, logs.Logs{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stderr.String(), row.want) {
			t.Errorf("%s lacks %s", &stderr, row.want)
		}
	}
}
