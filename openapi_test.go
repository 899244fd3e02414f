// openapi.json held against the routes, against itself, and against every answer that passes described.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"authhub/internal/reply"
	"authhub/internal/route"
	"authhub/web"
)

// description is openapi.json as it lies in the repository.
var description = sync.OnceValue(func() map[string]any {
	content, err := web.Files.ReadFile(web.Description)
	if err != nil {
		panic(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(content, &doc); err != nil {
		panic(err)
	}
	return doc
})

// patternsOf returns "METHOD /path" of each operation of a table.
func patternsOf[T any](table *route.Table[T]) (patterns []string) {
	for _, o := range table.Operations {
		patterns = append(patterns, o.Method+" "+o.Path)
	}
	return patterns
}

func TestDescriptionAndRoutesAgree(t *testing.T) {
	t.Parallel()
	described := make(map[string]bool)
	for path, item := range at(description(), "paths") {
		for method := range item.(map[string]any) {
			described[strings.ToUpper(method)+" "+path] = true
		}
	}
	routed := map[string]bool{"GET /ns/{name}": true, "DELETE /ns/{name}": true}
	for _, pattern := range patternsOf(newOperations()) {
		routed[strings.Replace(pattern, "{$}", "", 1)] = true
	}
	for _, pattern := range patternsOf(labTable()) {
		routed[pattern] = true
	}
	for _, missing := range slices.Sorted(maps.Keys(routed)) {
		if !described[missing] {
			t.Errorf("%s is a route that openapi.json does not describe", missing)
		}
	}
	for _, extra := range slices.Sorted(maps.Keys(described)) {
		if !routed[extra] {
			t.Errorf("%s is in openapi.json and no route", extra)
		}
	}
}

func TestDescriptionTellsOfTheLabWhereThereIsOne(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		flag string
		lab  bool
	}{{"-run=false", false}, {"-lab", true}} {
		p := startProcess(t, "-ephemeral", "-log", "off", row.flag)
		doc := p.call(t, 200, "GET", "/openapi.json", "", "", "").json()
		paths := doc["paths"].(map[string]any)
		if (paths["/lab"] != nil) != row.lab || (paths["/ns/{name}"] != nil) != row.lab || paths["/api"] == nil || (len(doc["servers"].([]any)) == 2) != row.lab {
			t.Errorf("%s: the description has the paths %v", row.flag, slices.Sorted(maps.Keys(paths)))
		}
		for _, tag := range doc["tags"].([]any) {
			if name := tag.(map[string]any)["name"]; name == "lab" && !row.lab {
				t.Errorf("%s: the description has the tag lab", row.flag)
			}
		}
	}
}

func TestDescriptionExamplesAreValid(t *testing.T) {
	t.Parallel()
	examples := 0
	eachObject(description(), "", func(where string, o map[string]any) {
		schema, ok := o["schema"].(map[string]any)
		if !ok {
			return
		}
		given := []any{}
		if example, ok := o["example"]; ok {
			given = append(given, example)
		}
		for _, example := range at(o, "examples") {
			given = append(given, resolve(example)["value"])
		}
		for _, example := range given {
			examples++
			for _, fault := range faults(schema, example) {
				t.Errorf("example at %s: %s", where, fault)
			}
		}
	})
	if examples < 40 {
		t.Errorf("found %d examples, so the walk has lost its way", examples)
	}
}

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
		var s map[string]any
		var v any
		if json.Unmarshal([]byte(schema), &s) != nil || json.Unmarshal([]byte(row.value), &v) != nil {
			t.Fatal("bad row")
		}
		if found := faults(s, v); (len(found) == 0) != row.valid {
			t.Errorf("%s: %v", row.value, found)
		}
	}
}

// TestLabAnswersAsDescribed asks every operation of the lab once, well and badly; call holds the answers against
// openapi.json.
func TestLabAnswersAsDescribed(t *testing.T) {
	t.Parallel()
	p := startProcess(t, "-ephemeral", "-log", "off", "-lab")
	const jsonBody = "application/json"
	login := p.call(t, 200, "POST", "/ns/a/api/authentication/login", jsonBody, `{"username":"demo","password":"demo-password"}`, "")
	sid, _ := payload(t, login.str("access_token"))["sid"].(string)
	p.call(t, 200, "POST", "/ns/a/api/run-ph-barrier-phase2", "", "", "")
	var snapshot string
	for _, row := range []struct {
		want               int
		method, path, body string
	}{
		{200, "GET", "/lab", ""}, {200, "GET", "/ns/a/lab", ""},
		{201, "POST", "/ns/a/lab/faults", `{"operation":"me","status":503,"headers":{"Retry-After":"1"},"skip":1}`},
		{201, "POST", "/ns/a/lab/faults", `{"operation":"*","hold":2,"within":"1ms","times":0}`},
		{422, "POST", "/ns/a/lab/faults", `{"operation":"me","nonsense":1}`},
		{200, "GET", "/ns/a/lab/faults", ""},
		{204, "DELETE", "/ns/a/lab/faults/f2", ""}, {404, "DELETE", "/ns/a/lab/faults/f2", ""},
		{401, "GET", "/ns/a/api/authentication/me", ""},
		{200, "GET", "/ns/a/lab/requests", ""}, {200, "GET", "/ns/a/lab/requests?operation=login&status=200", ""}, {422, "GET", "/ns/a/lab/requests?x=1", ""},
		{200, "POST", "/ns/a/lab/expect", `{"operation":"login","count":{"at_least":1}}`},
		{409, "POST", "/ns/a/lab/expect", `{"operation":"refresh","count":{"exactly":1},"within":"1ms"}`},
		{200, "GET", "/ns/a/lab/report", ""},
		{200, "PUT", "/ns/a/lab/clock", `{"advance":"16m"}`}, {422, "PUT", "/ns/a/lab/clock", `{}`}, {400, "PUT", "/ns/a/lab/clock", ""},
		{200, "PUT", "/ns/a/lab/refresh-policy", `{"reuse":"grace","grace":"10s"}`},
		{200, "GET", "/ns/a/lab/sessions", ""},
		{200, "POST", "/ns/a/lab/sessions/" + sid + "/expire", `{"token":"refresh"}`}, {404, "POST", "/ns/a/lab/sessions/none/expire", ""},
		{201, "POST", "/ns/a/lab/tokens", `{"user":"demo","defect":"tampered"}`},
		{200, "GET", "/ns/a/lab/snapshot", ""}, {204, "PUT", "/ns/a/lab/snapshot", ""}, {422, "PUT", "/ns/a/lab/snapshot", `{"version":2}`},
		{204, "POST", "/ns/a/lab/sessions/" + sid + "/revoke", ""},
		{204, "DELETE", "/ns/a/lab/faults", ""}, {204, "DELETE", "/ns/a/lab/requests", ""}, {204, "POST", "/ns/a/lab/reset", ""},
		{204, "DELETE", "/ns/a", ""}, {404, "DELETE", "/ns/a", ""},
	} {
		mediaType := ""
		if row.path == "/ns/a/lab/snapshot" && row.want == 204 {
			row.body = snapshot
		}
		if row.body != "" {
			mediaType = jsonBody
		}
		a := p.call(t, row.want, row.method, row.path, mediaType, row.body, "")
		if row.path == "/ns/a/lab/snapshot" && row.want == 200 {
			snapshot = string(a.body)
		}
	}
}

// described passes requests on to next and holds every answer against openapi.json: the status must be one that
// the operation has, with its media type, its headers and a body that fits the schema.
func described(t testing.TB, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &teeWriter{ResponseWriter: w}
		next.ServeHTTP(seen, r)
		if seen.status == 0 {
			seen.status = http.StatusOK
		}
		for _, fault := range answerFaults(r, seen.status, w.Header(), seen.body) {
			t.Errorf("%s %s: %d: %s", r.Method, r.URL.Path, seen.status, fault)
		}
	})
}

// teeWriter keeps what it passes on.
type teeWriter struct {
	http.ResponseWriter
	status int
	body   []byte
}

func (w *teeWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *teeWriter) Write(b []byte) (int, error) {
	w.body = append(w.body, b...)
	return w.ResponseWriter.Write(b)
}

func (w *teeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func answerFaults(r *http.Request, status int, header http.Header, body []byte) []string {
	operation := operationOf(r)
	if r.Method == http.MethodOptions && operation == nil {
		return nil // a preflight
	}
	labIsOff := status == http.StatusNotFound && (strings.HasPrefix(r.URL.Path, "/lab") || strings.HasPrefix(r.URL.Path, "/ns/"))
	if operation == nil || labIsOff {
		if status < 400 {
			return []string{"no such operation is described"}
		}
		return bodyFaults(map[string]any{"application/problem+json": map[string]any{"schema": at(description(), "components", "schemas", "Problem")}}, header, body)
	}
	answer := resolve(at(operation, "responses")[fmt.Sprint(status)])
	if answer == nil {
		return []string{"the operation is not described with this status"}
	}
	var found []string
	for name, h := range at(answer, "headers") {
		value, given := header[http.CanonicalHeaderKey(name)]
		switch {
		case !given && resolve(h)["required"] == true:
			found = append(found, "header "+name+" is missing")
		case given && at(resolve(h), "schema")["type"] == "string":
			found = append(found, faults(at(resolve(h), "schema"), value[0])...)
		}
	}
	if r.Method == http.MethodHead || header.Get("Content-Encoding") != "" || status == http.StatusPartialContent {
		return found // no body, or not one that can be read by itself
	}
	return append(found, bodyFaults(at(answer, "content"), header, body)...)
}

// bodyFaults holds a body against the media types of an answer.
func bodyFaults(content map[string]any, header http.Header, body []byte) []string {
	if content == nil {
		if len(body) > 0 {
			return []string{"has a body, and none is described"}
		}
		return nil
	}
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	described, ok := content[mediaType]
	if !ok {
		return []string{"media type " + mediaType + " is not described"}
	}
	schema := at(described, "schema")
	if schema["type"] == "string" {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return []string{"the body is not JSON: " + err.Error()}
	}
	return faults(schema, value)
}

// operationOf returns the operation that describes a request, or nil.
func operationOf(r *http.Request) map[string]any {
	method := strings.ToLower(r.Method)
	if method == "head" {
		method = "get"
	}
	target := regexp.MustCompile("^/ns/[^/]+/").ReplaceAllString(r.URL.Path, "/")
	if item, ok := at(description(), "paths")[target]; ok {
		return at(item, method)
	}
	for path, item := range at(description(), "paths") {
		if !strings.Contains(path, "{") {
			continue
		}
		pattern := regexp.MustCompile(`\\\{[^/]*\\\}`).ReplaceAllString(regexp.QuoteMeta(path), "[^/]+")
		if regexp.MustCompile("^" + pattern + "$").MatchString(target) {
			return at(item, method)
		}
	}
	return nil
}

// faults holds a JSON value against a schema: the part of JSON Schema 2020-12 that openapi.json uses. A keyword
// that is not known here is a fault too, so that nothing goes unchecked in silence.
func faults(schema map[string]any, value any) []string {
	schema = resolve(schema)
	var found []string
	fault := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	text, _ := value.(string)
	n, isNumber := value.(float64)
	list, _ := value.([]any)
	object, isObject := value.(map[string]any)
	for keyword, want := range schema {
		limit, _ := want.(float64)
		switch keyword {
		case "description", "default", "format", "example", "examples":
		case "type":
			if !isOfType(want, value) {
				fault("%v is not of type %v", brief(value), want)
			}
		case "const":
			if !reflect.DeepEqual(value, want) {
				fault("%v is not %v", brief(value), want)
			}
		case "enum":
			if !slices.Contains(want.([]any), value) {
				fault("%v is none of %v", brief(value), want)
			}
		case "pattern":
			if value != nil && !regexp.MustCompile(want.(string)).MatchString(text) {
				fault("%v does not match %v", brief(value), want)
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
			if isNumber && (keyword == "minimum" && n < limit || keyword == "maximum" && n > limit ||
				keyword == "exclusiveMinimum" && n <= limit || keyword == "exclusiveMaximum" && n >= limit) {
				fault("%v is beyond %s %v", n, keyword, want)
			}
		case "minItems", "maxItems":
			if size := float64(len(list)); value != nil && (keyword == "minItems" && size < limit || keyword == "maxItems" && size > limit) {
				fault("%d items, %s %v", len(list), keyword, want)
			}
		case "minProperties", "maxProperties":
			if size := float64(len(object)); isObject && (keyword == "minProperties" && size < limit || keyword == "maxProperties" && size > limit) {
				fault("%d members, %s %v", len(object), keyword, want)
			}
		case "items":
			for i, item := range list {
				for _, f := range faults(want.(map[string]any), item) {
					fault("[%d]: %s", i, f)
				}
			}
		case "required":
			for _, name := range want.([]any) {
				if _, ok := object[name.(string)]; isObject && !ok {
					fault("%v is missing", name)
				}
			}
		case "properties":
			for name, s := range want.(map[string]any) {
				if member, ok := object[name]; ok {
					for _, f := range faults(s.(map[string]any), member) {
						fault("%s: %s", name, f)
					}
				}
			}
		case "additionalProperties":
			found = append(found, additionalFaults(schema, want, object)...)
		case "allOf", "anyOf", "oneOf":
			found = append(found, combinedFaults(keyword, want.([]any), value)...)
		default:
			fault("the test knows no keyword %q", keyword)
		}
	}
	return found
}

func additionalFaults(schema map[string]any, want any, object map[string]any) (found []string) {
	for name, member := range object {
		if _, known := at(schema, "properties")[name]; known {
			continue
		}
		if want == false {
			found = append(found, "member "+name+" is not described")
		} else if s, ok := want.(map[string]any); ok {
			found = append(found, faults(s, member)...)
		}
	}
	return found
}

func combinedFaults(keyword string, schemas []any, value any) (found []string) {
	fit := 0
	for _, s := range schemas {
		f := faults(s.(map[string]any), value)
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
func at(o any, names ...string) map[string]any {
	m := resolve(o)
	for _, name := range names {
		m = resolve(m[name])
	}
	return m
}

// resolve returns o as an object, or the one that its $ref points to; nil for what is no object.
func resolve(o any) map[string]any {
	m, _ := o.(map[string]any)
	ref, ok := m["$ref"].(string)
	if !ok {
		return m
	}
	return at(description(), strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
}

func eachObject(o any, where string, visit func(string, map[string]any)) {
	switch v := o.(type) {
	case map[string]any:
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

// What a recorder would make of an answer must pass through described unchanged.
func TestDescribedPassesAnswersOn(t *testing.T) {
	t.Parallel()
	hub := described(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Cache-Control"] = []string{"no-store"}
		reply.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	}))
	w := httptest.NewRecorder()
	hub.ServeHTTP(w, httptest.NewRequest("GET", "/healthz", nil))
	if body, _ := io.ReadAll(w.Body); string(body) != "{\"status\":\"ok\"}\n" {
		t.Errorf("got %q", body)
	}
	if found := answerFaults(httptest.NewRequest("GET", "/healthz", nil), 200, http.Header{"Content-Type": []string{"application/json"}}, []byte(`{}`)); len(found) != 2 {
		t.Errorf("an answer without Cache-Control and status has the faults %q", found)
	}
}
