package account

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

// FuzzParseEvent: every event is read back as it was written, the quick way or the other.
func FuzzParseEvent(f *testing.F) {
	f.Add("id", "user-demo", "", int64(1), int64(-2), 3, false)
	f.Add(`a"b\`, "é\n<", "ended", int64(1)<<62, int64(0), -1, true)
	f.Fuzz(func(t *testing.T, id, user, ended string, created, ttl int64, gen int, rotate bool) {
		if !utf8.ValidString(id) || !utf8.ValidString(user) || !utf8.ValidString(ended) || len(id+user+ended) > 500 {
			return // every beginning of the line is tried below
		}
		want := event{Start: &Session{ID: id, User: user, Created: created, AccessTTL: ttl, RefreshTTL: ttl / 2, Generation: gen, Issued: created}}
		if rotate {
			want = event{Rotate: &rotation{Session: id, Generation: gen, Issued: created}}
		}
		if ended != "" {
			want.End = []string{ended}
		}
		line, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseEvent(line)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v (%v)", line, got, err)
		}
		for n := range line {
			if _, ok := scanEvent(string(line[:n])); ok {
				t.Errorf("%s: its first %d bytes were taken", line, n)
			}
		}
	})
}
