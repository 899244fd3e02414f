package main

import (
	"bytes"
	"os"
	"testing"
)

func TestCommittedFileIsWhatIsWritten(t *testing.T) {
	t.Parallel()
	committed, err := os.ReadFile("../../data/readings.csv")
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if err := write(&written); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written.Bytes(), committed) {
		t.Error("data/readings.csv is not what this command writes; run: go generate ./...")
	}
}
