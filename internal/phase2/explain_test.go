package phase2

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Readings that can't be used are refused with what is wrong, where, and what to write instead.
func TestUnusableReadingsAreExplained(t *testing.T) {
	t.Parallel()
	usual := Parameters{Low: 6500, High: 8500, Interval: time.Hour, MaxGap: time.Hour}
	for input, want := range map[string]string{
		"":                               `the first line is empty; it must be "time,station,ph"`,
		"time;station;ph\n":              `the first line is "time;station;ph", with semicolons between the fields; use commas`,
		"time\tstation\tph\n":            `the first line is "time\tstation\tph", with tabs between the fields; use commas`,
		"Time,Station,pH\r\n":            `the first line is "Time,Station,pH"; it must be "time,station,ph"`,
		"\xff\xfet\x00i\x00m\x00e\x00":   `the input is in UTF-16; save it as CSV in UTF-8`,
		"2026-01-01T00:00:00Z,tap,7.4\n": `which is a reading already; put the line "time,station,ph" before it`,
		strings.Repeat("x", 1000):        `the first line is "` + strings.Repeat("x", 60) + `…"; it must be`,

		Header + "\n": `there is no reading after the first line`,
		Header + "\n2026-01-01T00:00:00,tap,7.4\n":                              `none of the 1 readings can be accepted; line 2 is malformed: the time "2026-01-01T00:00:00" has no zone; put Z for UTC`,
		Header + "\n2026-01-01 00:00:00Z,tap,7.4\n":                             `the time "2026-01-01 00:00:00Z" has a space between date and time; write T`,
		Header + "\n2026-01-01 00:00:00,tap,7.4\n":                              `no zone; write it as 2026-01-01T00:00:00Z`,
		Header + "\n01/02/2026 00:00,tap,7.4\n":                                 `the time "01/02/2026 00:00" is not an RFC 3339 time, such as`,
		Header + "\n2026-01-01T00:00:00Z,,7.4\n":                                `line 2 is malformed: the station is empty`,
		Header + "\n2026-01-01T00:00:00Z,t\xffp,7.4\n":                          `the station is not UTF-8`,
		Header + "\n2026-01-01T00:00:00Z," + strings.Repeat("s", 65) + ",7.4\n": `is longer than 64 bytes`,
		Header + "\n2026-01-01T00:00:00Z,tap,7,4\n":                             `the pH "7,4" has a comma; write a decimal point`,
		Header + "\n2026-01-01T00:00:00Z,tap,acid\n":                            `the pH "acid" is not a decimal number`,
		Header + "\n2026-01-01T00:00:00Z,tap,14\n":                              `line 2 is saturated: its pH is not between 0 and 14`,
		Header + "\n2026-01-01T00:00:00Z;tap;7.4\n":                             `line 2 is malformed: it does not have three fields`,
		Header + "\n\"2026-01-01\",tap,7.4\n":                                   `the time "2026-01-01" is not an RFC 3339 time`,
		Header + "\n" + strings.Repeat("x", 70_000) + "\n":                      `line 2 is malformed: it is longer than 65536 bytes`,
		Header + "\n\n2026-01-01T00:00:00Z,tap,0\n":                             `none of the 2 readings can be accepted; line 2 is malformed`,
	} {
		_, err := Compute(t.Context(), strings.NewReader(input), usual, nil)
		if !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, not %q", input, err, want)
		}
	}
}
