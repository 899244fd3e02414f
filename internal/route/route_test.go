package route

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"authhub/internal/reply"
)

func TestServe(t *testing.T) {
	t.Parallel()
	show := func(hub string, w http.ResponseWriter, r *http.Request) error {
		_, err := io.WriteString(w, hub+" "+r.Pattern+" "+r.PathValue("id"))
		return err
	}
	refuse := func(string, http.ResponseWriter, *http.Request) error { return reply.Fail(409, "taken", "Taken.") }
	table := NewTable[string]()
	table.Add("GET", "/things/{id}", "", "", "", show)
	table.Add("DELETE", "/things/{id}", "", "", "", show)
	table.Add("POST", "/things", "", "", "", refuse)
	table.Add("GET", "/{$}", "", "", "", show)
	for _, row := range []struct {
		method, target string
		status         int
		body, allow    string
	}{
		{"GET", "/things/a", 200, "hub GET /things/{id} a", ""},
		{"HEAD", "/things/a", 200, "hub GET /things/{id} a", ""},
		{"DELETE", "/things/a%2Fb", 200, "hub DELETE /things/{id} a/b", ""}, // not the thing a
		{"GET", "/", 200, "hub GET /{$} ", ""},
		{"POST", "/things", 409, "", ""},
		{"PUT", "/things/a", 405, "", "DELETE, GET, HEAD"},
		{"GET", "/things", 405, "", "POST"},
		{"GET", "/things/", 404, "", ""},
		{"GET", "/things/a/b", 404, "", ""},
		{"GET", "//things/a", 404, "", ""},
		{"GET", "/x/../things/a", 404, "", ""},
	} {
		w := httptest.NewRecorder()
		err := table.Serve("hub", w, httptest.NewRequest(row.method, row.target, nil))
		if err != nil {
			reply.Write(w, err)
		}
		if w.Code != row.status || row.status == 200 && w.Body.String() != row.body || w.Header().Get("Allow") != row.allow {
			t.Errorf("%s %s: %d %q, Allow %q", row.method, row.target, w.Code, w.Body, w.Header().Get("Allow"))
		}
	}
}
