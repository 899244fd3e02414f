package web

import (
	"bytes"
	"os"
	"testing"
)

func TestEmbeddedDescriptionIsTheCommittedOne(t *testing.T) {
	t.Parallel()
	committed, err := os.ReadFile(descriptionWithLab)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(descriptions()[descriptionWithLab].content, committed) {
		t.Error("openapi.json.gz is not openapi.json; run: go generate ./web")
	}
}
