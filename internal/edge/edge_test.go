package edge

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"authhub/internal/reply"
)

func TestAPanicIsA500(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	panics := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a defect") })
	edge := New(Config{Next: panics, Loopback: true, BaseHost: "hub.test", Log: slog.New(slog.NewJSONHandler(&log, nil))})
	r := httptest.NewRequest("GET", "/api", nil)
	r.Host = "hub.test"
	w := httptest.NewRecorder()
	edge.ServeHTTP(w, r)

	var body reply.Error
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 500 || body.Code != "internal" || strings.Contains(w.Body.String(), "defect") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "a defect") {
		t.Errorf("log %s", &log)
	}
}
