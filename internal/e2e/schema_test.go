// JSON Schema 2020-12, as much of it as openapi.json uses.

package e2e

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestDescriptionChecker(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["a"],"additionalProperties":false,"properties":{
		"a":{"type":["integer","null"],"minimum":1,"exclusiveMaximum":4},"b":{"type":"string","pattern":"^x"},
		"c":{"type":"array","items":{"enum":["p","q"]},"maxItems":2},"d":{"oneOf":[{"const":1},{"type":"null"}]},"e":{"type":"number"}}}`
	for _, row := range []struct {
		value string
		valid bool
	}{
		{`{"a":1}`, true}, {`{"a":3,"b":"xy","c":["p","q"],"d":null,"e":1.5}`, true}, {`{"a":null,"d":1}`, true},
		{`{}`, false}, {`[]`, false}, {`{"a":0}`, false}, {`{"a":4}`, false}, {`{"a":1.5}`, false}, {`{"a":"1"}`, false}, {`{"a":1,"z":1}`, false},
		{`{"a":1,"b":"y"}`, false}, {`{"a":1,"c":["r"]}`, false}, {`{"a":1,"c":["p","p","p"]}`, false}, {`{"a":1,"d":2}`, false}, {`{"a":1,"e":null}`, false},
	} {
		var s object
		var v any
		if json.Unmarshal([]byte(schema), &s) != nil || json.Unmarshal([]byte(row.value), &v) != nil {
			t.Fatal("bad row")
		}
		if found := faults(s, v); (len(found) == 0) != row.valid {
			t.Errorf("%s: %v", row.value, found)
		}
	}
}

// faults holds a JSON value against a schema. A keyword that is not known here is a fault too, so that nothing goes
// unchecked in silence.
func faults(schema object, value any) (found []string) {
	schema = resolve(schema)
	members, _ := value.(object)
	for keyword, want := range schema {
		switch keyword {
		case "description", "default", "format", "example", "examples":
		case "type", "const", "enum", "pattern":
			if !isValue(keyword, want, value) {
				found = append(found, fmt.Sprintf("%v is not of %s %v", brief(value), keyword, want))
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "minProperties", "maxProperties":
			if !isWithin(keyword, want.(float64), value) {
				found = append(found, fmt.Sprintf("%v is beyond %s %v", brief(value), keyword, want))
			}
		case "items", "required", "properties":
			found = append(found, partFaults(keyword, want, value)...)
		case "additionalProperties":
			found = append(found, additionalFaults(schema, want, members)...)
		case "allOf", "anyOf", "oneOf":
			found = append(found, combinedFaults(keyword, want.([]any), value)...)
		default:
			found = append(found, fmt.Sprintf("the test knows no keyword %q", keyword))
		}
	}
	return found
}

// isValue reports whether a value is one that a keyword about values as a whole allows.
func isValue(keyword string, want, value any) bool {
	switch keyword {
	case "type":
		return isOfType(want, value)
	case "const":
		return reflect.DeepEqual(value, want)
	case "enum":
		return slices.Contains(want.([]any), value)
	}
	text, isText := value.(string)
	return !isText || regexp.MustCompile(want.(string)).MatchString(text)
}

// isWithin reports whether a number, or the size of a list or an object, is within a bound. A value of another type
// is.
func isWithin(keyword string, limit float64, value any) bool {
	var n float64
	switch v := value.(type) {
	case float64:
		n = v
	case []any:
		n = float64(len(v))
	case object:
		n = float64(len(v))
	default:
		return true
	}
	switch {
	case strings.HasPrefix(keyword, "min"):
		return n >= limit
	case strings.HasPrefix(keyword, "max"):
		return n <= limit
	case keyword == "exclusiveMinimum":
		return n > limit
	}
	return n < limit
}

// partFaults holds the items of a list, or the members of an object, against their schemas.
func partFaults(keyword string, want, value any) (found []string) {
	list, _ := value.([]any)
	members, isObject := value.(object)
	switch keyword {
	case "items":
		for i, item := range list {
			for _, f := range faults(want.(object), item) {
				found = append(found, fmt.Sprintf("[%d]: %s", i, f))
			}
		}
	case "required":
		for _, name := range want.([]any) {
			if _, ok := members[name.(string)]; isObject && !ok {
				found = append(found, fmt.Sprintf("%v is missing", name))
			}
		}
	case "properties":
		for name, s := range want.(object) {
			if member, ok := members[name]; ok {
				for _, f := range faults(s.(object), member) {
					found = append(found, name+": "+f)
				}
			}
		}
	}
	return found
}

func additionalFaults(schema object, want any, members object) (found []string) {
	for name, member := range members {
		if _, known := at(schema, "properties")[name]; known {
			continue
		}
		if want == false {
			found = append(found, "member "+name+" is not described")
		} else if s, ok := want.(object); ok {
			found = append(found, faults(s, member)...)
		}
	}
	return found
}

func combinedFaults(keyword string, schemas []any, value any) (found []string) {
	fit := 0
	for _, s := range schemas {
		f := faults(s.(object), value)
		found = append(found, f...)
		if len(f) == 0 {
			fit++
		}
	}
	if keyword == "anyOf" && fit > 0 || keyword == "oneOf" && fit == 1 {
		return nil
	}
	if keyword == "oneOf" && fit > 1 {
		return []string{fmt.Sprintf("%v fits more than one of oneOf", brief(value))}
	}
	return found
}

func isOfType(want, value any) bool {
	if names, ok := want.([]any); ok {
		return slices.ContainsFunc(names, func(name any) bool { return isOfType(name, value) })
	}
	switch v := value.(type) {
	case nil:
		return want == "null"
	case bool:
		return want == "boolean"
	case string:
		return want == "string"
	case float64:
		return want == "number" || want == "integer" && v == float64(int64(v))
	case []any:
		return want == "array"
	default:
		return want == "object"
	}
}

func brief(value any) string {
	text := fmt.Sprintf("%#v", value)
	return text[:min(len(text), 80)]
}

// at returns the object at a path of member names, references followed, or nil.
func at(o any, names ...string) object {
	m := resolve(o)
	for _, name := range names {
		m = resolve(m[name])
	}
	return m
}

// resolve returns o as an object, or the one that its $ref points to; nil for what is no object.
func resolve(o any) object {
	m, _ := o.(object)
	ref, ok := m["$ref"].(string)
	if !ok {
		return m
	}
	return at(description(), strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

func eachObject(o any, where string, visit func(string, object)) {
	switch v := o.(type) {
	case object:
		visit(where, v)
		for name, member := range v {
			eachObject(member, where+"/"+name, visit)
		}
	case []any:
		for i, item := range v {
			eachObject(item, fmt.Sprintf("%s/%d", where, i), visit)
		}
	}
}
