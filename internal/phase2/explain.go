// What is wrong with readings that can't be used, in words for the people who wrote them.

package phase2

import (
	"bytes"
	"fmt"
	"strings"
)

// explainHeader says how the first line of an input differs from Header.
func explainHeader(line []byte) string {
	line = bytes.TrimRight(line, "\r\n")
	at, _, _ := bytes.Cut(line, []byte{','})
	switch {
	case bytes.HasPrefix(line, []byte("\xff\xfe")), bytes.HasPrefix(line, []byte("\xfe\xff")):
		return fmt.Sprintf("the input is in UTF-16; save it as CSV in UTF-8 with the first line %q", Header)
	case len(line) == 0:
		return fmt.Sprintf("the first line is empty; it must be %q", Header)
	case bytes.IndexByte(line, ';') >= 0 && bytes.IndexByte(line, ',') < 0:
		return fmt.Sprintf("the first line is %s, with semicolons between the fields; use commas, and decimal points in the numbers: %q", show(line), Header)
	case bytes.IndexByte(line, '\t') >= 0 && bytes.IndexByte(line, ',') < 0:
		return fmt.Sprintf("the first line is %s, with tabs between the fields; use commas: %q", show(line), Header)
	}
	if _, ok := new(clock).parse(at); ok {
		return fmt.Sprintf("the first line is %s, which is a reading already; put the line %q before it", show(line), Header)
	}
	return fmt.Sprintf("the first line is %s; it must be %q", show(line), Header)
}

// explainLine says why a line without quotes is malformed.
func explainLine(line []byte) string {
	if len(line) > maxRecord {
		return fmt.Sprintf("it is longer than %d bytes", maxRecord)
	}
	var rec record
	rec.cut(trimLineEnd(line))
	return explainRecord(&rec)
}

// explainRecord says why a record is malformed.
func explainRecord(rec *record) string {
	_, timeOK := new(clock).parse(rec.time)
	switch {
	case rec.time == nil && rec.station == nil && rec.ph == nil:
		return "it does not have three fields with commas between them, or its quotes are not closed"
	case !timeOK:
		return fmt.Sprintf("the time %s %s", show(rec.time), explainTime(rec.time))
	case len(rec.station) == 0:
		return "the station is empty"
	case len(rec.station) > maxStation:
		return fmt.Sprintf("the station %s is longer than %d bytes", show(rec.station), maxStation)
	case bytes.Count(rec.ph, []byte{','}) == 1:
		return fmt.Sprintf("the pH %s has a comma; write a decimal point, and three fields a line", show(rec.ph))
	}
	return fmt.Sprintf("the pH %s is not a decimal number", show(rec.ph))
}

// explainTime says what a time lacks that does not parse.
func explainTime(text []byte) string {
	parses := func(text string) bool { _, ok := new(clock).parse([]byte(text)); return ok }
	given := string(text)
	joined := strings.Replace(given, " ", "T", 1)
	switch {
	case parses(given + "Z"):
		return "has no zone; put Z for UTC or an offset such as +01:00 at its end"
	case parses(joined):
		return "has a space between date and time; write T"
	case parses(joined + "Z"):
		return "has a space between date and time and no zone; write it as " + joined + "Z"
	}
	return "is not an RFC 3339 time, such as 2026-01-31T08:00:00Z"
}

// show returns the beginning of text in quotes.
func show(text []byte) string {
	const most = 60
	if len(text) > most {
		return fmt.Sprintf("%q", strings.ToValidUTF8(string(text[:most]), "�")+"…")
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(string(text), "�"))
}
