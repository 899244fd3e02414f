package main

import (
	"bytes"
	"compress/gzip"
	"io"
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
	embedded, err := os.Open("../../data/readings.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer embedded.Close()
	z, err := gzip.NewReader(embedded)
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(z); err != nil || !bytes.Equal(content, committed) {
		t.Errorf("data/readings.csv.gz is not data/readings.csv (%v); run: go generate ./...", err)
	}
}
