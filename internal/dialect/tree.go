// JSON as a description is read: members keep their order, and a member given twice is a fault.

package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// MaxDescription is the most bytes that a description may have.
	MaxDescription = 64 << 10
	maxDepth       = 32 // of arrays and objects in each other
)

// Fault is one thing that is wrong with a description: where, and what would be right.
type Fault struct {
	Path   string // such as operations[2].on; "" for the whole
	Detail string
}

// Faults is the error of Parse. There is at least one.
type Faults []Fault

// Error tells one fault, or how many there are and each on a line of its own.
func (f Faults) Error() string {
	if len(f) == 1 {
		return strings.TrimPrefix(f[0].Path+": ", ": ") + f[0].Detail
	}
	lines := fmt.Sprintf("%d faults", len(f))
	for _, fault := range f {
		lines += "\n  " + strings.TrimPrefix(fault.Path+": ", ": ") + fault.Detail
	}
	return lines
}

// object is a JSON object with its members in the order in which they were written.
type object struct {
	names   []string
	members map[string]any
}

// parseTree reads one JSON value: nil, bool, json.Number, string, []any or *object.
func parseTree(text []byte) (any, *Fault) {
	if len(text) > MaxDescription {
		return nil, &Fault{"", fmt.Sprintf("must be at most %d bytes", MaxDescription)}
	}
	if !utf8.Valid(text) {
		return nil, &Fault{"", "must be UTF-8"}
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, &Fault{"", "is empty"}
	}
	t := treeReader{json.NewDecoder(bytes.NewReader(text))}
	t.UseNumber()
	value, err := t.value("", 0)
	if err == nil {
		if _, err = t.Token(); err == io.EOF {
			return value, nil
		}
		err = errors.New("something follows the JSON value")
	}
	var fault *Fault
	if errors.As(err, &fault) {
		return nil, fault
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it breaks off")
	}
	return nil, &Fault{"", fmt.Sprintf("is not JSON: %v (line %d)", err, lineAt(text, t.InputOffset()))}
}

// lineAt returns the line of what comes next in a text of which so many bytes have been read.
func lineAt(text []byte, read int64) int {
	rest := bytes.TrimLeft(text[read:], " \t\r\n:,")
	return 1 + bytes.Count(text[:len(text)-len(rest)], []byte("\n"))
}

// Error makes a Fault an error, so that it passes through the reader as one.
func (f *Fault) Error() string { return Faults{*f}.Error() }

type treeReader struct{ *json.Decoder }

func (t treeReader) value(path string, depth int) (any, error) {
	token, err := t.Token()
	if err != nil {
		return nil, err
	}
	if _, opens := token.(json.Delim); opens && depth == maxDepth {
		return nil, &Fault{path, fmt.Sprintf("lies too deep: at most %d arrays and objects in each other", maxDepth)}
	}
	switch token {
	case json.Delim('{'):
		return t.object(path, depth)
	case json.Delim('['):
		return t.array(path, depth)
	}
	return token, nil
}

func (t treeReader) object(path string, depth int) (*object, error) {
	o := &object{members: make(map[string]any)}
	for t.More() {
		token, err := t.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string) // the decoder takes nothing else here
		if _, twice := o.members[name]; twice {
			return nil, &Fault{join(path, name), "is given twice"}
		}
		if o.members[name], err = t.value(join(path, name), depth+1); err != nil {
			return nil, err
		}
		o.names = append(o.names, name)
	}
	_, err := t.Token()
	return o, err
}

func (t treeReader) array(path string, depth int) ([]any, error) {
	values := []any{}
	for t.More() {
		v, err := t.value(fmt.Sprintf("%s[%d]", path, len(values)), depth+1)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	_, err := t.Token()
	return values, err
}

// join returns the path of a member of what is at path.
func join(path, name string) string {
	return strings.TrimPrefix(path+"."+clip(name), ".")
}
