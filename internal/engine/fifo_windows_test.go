package engine_test

import "testing"

func longReadings(t *testing.T) string {
	t.Helper()
	t.Skip("needs a named pipe")
	return ""
}
