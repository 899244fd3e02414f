// Templates: what an answer looks like. A string that begins with $ names a value, which keeps its JSON type; ${…}
// inside of a string puts a value there as text; a string that begins with @ names another template.

package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// values are what templates may name, by name. A value is nil (not there), a string, json.Number, bool or
// json.RawMessage.
type values map[string]any

// template writes itself as JSON. It reports false, and writes nothing, if all that it would say is not there.
type template interface {
	write(b []byte, v values) ([]byte, bool)
}

type (
	literal []byte       // JSON as it is
	named   []string     // the first of these values that is there; 'text' always is
	text    []textPart   // a string that has values in it
	list    []template   // an array; elements that are not there are left out
	record  []recordPart // an object; members that are not there are left out
)

type textPart struct {
	literal string
	value   named // nil: literal counts
}

type recordPart struct {
	name     []byte // as JSON, with the colon
	template template
}

func (t literal) write(b []byte, _ values) ([]byte, bool) { return append(b, t...), true }

func (t named) write(b []byte, v values) ([]byte, bool) {
	value := t.of(v)
	if value == nil {
		return b, false
	}
	return append(b, encode(value)...), true
}

func (t named) of(v values) any {
	for _, name := range t {
		if fixed, ok := strings.CutPrefix(name, "'"); ok {
			return strings.TrimSuffix(fixed, "'")
		}
		if value := v[name]; value != nil {
			return value
		}
	}
	return nil
}

func (t text) write(b []byte, v values) ([]byte, bool) {
	s, ok := t.string(v)
	if !ok {
		return b, false
	}
	return append(b, encode(s)...), true
}

// string returns the text with its values in it; false if one of them is not there.
func (t text) string(v values) (string, bool) {
	var s strings.Builder
	for _, part := range t {
		if part.value == nil {
			s.WriteString(part.literal)
			continue
		}
		value := part.value.of(v)
		if value == nil {
			return "", false
		}
		if plain, ok := value.(string); ok {
			s.WriteString(plain)
		} else {
			s.Write(encode(value))
		}
	}
	return s.String(), true
}

func (t list) write(b []byte, v values) ([]byte, bool) {
	b = append(b, '[')
	for _, element := range t {
		if longer, ok := element.write(b, v); ok {
			b = append(longer, ',')
		}
	}
	return append(bytes.TrimSuffix(b, []byte(",")), ']'), true
}

func (t record) write(b []byte, v values) ([]byte, bool) {
	b = append(b, '{')
	for _, part := range t {
		if longer, ok := part.template.write(append(b, part.name...), v); ok {
			b = append(longer, ',')
		}
	}
	return append(bytes.TrimSuffix(b, []byte(",")), '}'), true
}

// encode returns a value as JSON, with <, > and & as they are.
func encode(value any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.Encode(value) // strings, numbers and JSON: it can't fail
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

const (
	maxExpanded = 4_000 // parts of a template with those in it that it names, at most
	repeated    = 64    // parts that a value of the request counts for
)

// templates compiles the templates of one scope, and each named template once.
type templates struct {
	p        *parser
	source   *object            // of the named ones; may be nil
	echoes   map[string]sources // the values of requests that answers repeat, by name
	used     map[string]bool    // the named ones that are a part of something
	claims   []string           // that the description adds to tokens
	scope    *scope
	compiled map[string]template
	sizes    map[string]int
	open     []string // those being compiled, to see one that names itself
}

// in returns what compiles the templates of a scope.
func (t *templates) in(s *scope) *templates {
	return &templates{p: t.p, source: t.source, echoes: t.echoes, used: t.used, claims: t.claims, scope: s, compiled: make(map[string]template), sizes: make(map[string]int)}
}

// compile returns the template that value is, and in how many parts.
func (t *templates) compile(path string, value any) (template, int) {
	switch v := value.(type) {
	case string:
		return t.compileString(path, v)
	case []any:
		all, size := make(list, len(v)), 1
		for i, element := range v {
			var n int
			all[i], n = t.compile(fmt.Sprintf("%s[%d]", path, i), element)
			size += n
		}
		return all, t.limit(path, size)
	case *object:
		all, size := make(record, len(v.names)), 1
		for i, name := range v.names {
			compiled, n := t.compile(join(path, name), v.members[name])
			all[i] = recordPart{append(encode(name), ':'), compiled}
			size += n
		}
		return all, t.limit(path, size)
	}
	return literal(encode(value)), 1
}

// limit reports a template that has become too large, and returns a size that its users can go on with.
func (t *templates) limit(path string, size int) int {
	if size > maxExpanded {
		t.p.fault(path, fmt.Sprintf("is too large with the templates that it names: at most %d parts", maxExpanded))
		return 1
	}
	return size
}

func (t *templates) compileString(path, s string) (template, int) {
	rest, isName := strings.CutPrefix(s, "@")
	if isName && !strings.HasPrefix(rest, "@") {
		return t.named(path, rest)
	}
	if isName {
		return literal(encode(rest)), 1
	}
	if name, ok := valueName(s); ok {
		all := t.names(path, name)
		return all, t.limit(path, all.size())
	}
	all, size := t.text(path, s)
	if size == 1 { // without values
		fixed, _ := all.string(nil)
		return literal(encode(fixed)), 1
	}
	return all, size
}

// valueName returns the name in a text that is "$name", and whether it is one.
func valueName(s string) (string, bool) {
	name, ok := strings.CutPrefix(s, "$")
	return name, ok && !strings.HasPrefix(name, "{") && !strings.HasPrefix(name, "$")
}

// text compiles a string that is no name, and returns in how many parts.
func (t *templates) text(path, s string) (text, int) {
	var all text
	size := 1
	if rest, escaped := strings.CutPrefix(s, "$$"); escaped {
		all, s = text{{literal: "$"}}, rest
	}
	for {
		before, after, ok := strings.Cut(s, "${")
		all = append(all, textPart{literal: before})
		for _, word := range strings.Fields(before) {
			_, bare, _ := strings.Cut(word, "$")
			if bare = strings.Trim(bare, `.,:;!?'"()/`); t.scope.lacks(path, bare) == "" {
				t.p.fault(path, "has $"+bare+" in a longer text, where it is ${"+bare+"}")
			}
		}
		if !ok {
			break
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			t.p.fault(path, "has a ${ without its }")
			break
		}
		value := t.names(path, name)
		all = append(all, textPart{value: value})
		size += value.size()
		s = rest
	}
	return all, t.limit(path, size)
}

// size returns for how many parts of an answer a value counts: one of the request may be as long as the request.
func (t named) size() int {
	for _, name := range t {
		if _, fault := parsePlace(name); fault == "" {
			return repeated
		}
	}
	return 1
}

// names reads names of values with | between them. The last may be a 'text' for when no value is there. One of the
// others has to be a value of the scope.
func (t *templates) names(path, s string) named {
	all := named(strings.Split(s, "|"))
	values := all
	if last := all[len(all)-1]; len(last) > 1 && strings.HasPrefix(last, "'") && strings.HasSuffix(last, "'") {
		values = all[:len(all)-1]
	}
	var faults []string
	for _, name := range values {
		if name == "" && len(values) > 1 {
			t.p.fault(path, fmt.Sprintf(`"$%s" has an empty name; write '' behind the last | for an empty text`, clip(s)))
			return all
		}
		if strings.HasPrefix(name, "$") {
			right := strings.NewReplacer("$", "", "{", "", "}", "").Replace(s)
			t.p.fault(path, fmt.Sprintf(`"$%s" has %s among its names, which stand without $ after a |: "$%s"`, clip(s), clip(name), clip(right)))
			return all
		}
		if fault := t.scope.lacks(path, name); fault != "" {
			faults = append(faults, fault)
		}
		if from, fault := parsePlace(name); fault == "" {
			t.echoes[name] = sources{places: []place{from}}
		}
	}
	if len(faults) > 0 && len(faults) == len(values) {
		t.p.fault(path, faults[0])
	}
	return all
}

// named returns the template of that name.
func (t *templates) named(path, name string) (template, int) {
	if done, ok := t.compiled[name]; ok {
		return done, t.sizes[name]
	}
	if t.source == nil || !slices.Contains(t.source.names, name) {
		t.p.fault(path, "@"+clip(name)+" names no template of \"templates\" (write @@ for a text that begins with @)")
		return literal("null"), 1
	}
	if slices.Contains(t.open, name) {
		t.p.fault(path, "@"+clip(name)+" names a template that is in itself: "+strings.Join(append(t.open, name), " → "))
		return literal("null"), 1
	}
	t.used[name] = true
	t.open = append(t.open, name)
	compiled, size := t.compile(join("templates", name), t.source.members[name])
	t.open = t.open[:len(t.open)-1]
	t.compiled[name], t.sizes[name] = compiled, size
	return compiled, size
}

func clip(s string) string {
	if len(s) > 64 {
		return strings.ToValidUTF8(s[:64], "") + "…"
	}
	return s
}
