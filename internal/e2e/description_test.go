// openapi.json held against itself, against the hub's routes, and against every answer that these tests get.

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// description is openapi.json as a hub with a lab serves it.
var description = sync.OnceValue(func() object {
	p, err := sharedProcess()
	if err != nil {
		panic(err)
	}
	resp, err := http.Get(p.base + "/openapi.json")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	var doc object
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		panic(err)
	}
	return doc
})

// mustBeDescribed holds an answer against openapi.json: the status must be one that the operation has, with its
// media type, its headers and a body that fits the schema.
func (h *hub) mustBeDescribed(r *http.Request, target string, a *answer) {
	h.t.Helper()
	path, _, _ := strings.Cut(target, "?")
	for _, fault := range answerFaults(r.Method, path, a) {
		h.t.Errorf("%s %s: %d: %s", r.Method, target, a.Status, fault)
	}
}

// TestDescriptionAndIndexAgree: what is described is what the index lists, and each path takes these methods and no
// others.
func TestDescriptionAndIndexAgree(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	methods := map[string][]string{} // by path
	for path, item := range at(description(), "paths") {
		for method := range item.(object) {
			methods[path] = append(methods[path], strings.ToUpper(method))
		}
	}
	listed := map[string]bool{}
	for _, o := range h.get("/api").Want(200).List("operations") {
		path, within := strings.CutPrefix(o["href"].(string), h.base)
		if within && path == "" || !within {
			path = "/ns/{name}"
		}
		listed[o["method"].(string)+" "+path] = true
	}
	for path, of := range methods {
		if !strings.HasPrefix(path, "/ns") {
			h.wantAllowed(path, of)
		}
		for _, method := range of {
			page := path == "/" || strings.HasPrefix(path, "/web/") || path == "/openapi.json" || method+" "+path == "GET /ns/{name}" || path == "/ns" // which the root alone has
			if !page && !listed[method+" "+path] {
				t.Errorf("%s %s is described and not in the index", method, path)
			}
			delete(listed, method+" "+path)
		}
	}
	for operation := range listed {
		t.Errorf("%s is in the index and not described", operation)
	}
}

// wantAllowed fails the test unless a path takes these methods, and HEAD where it takes GET.
func (h *hub) wantAllowed(path string, methods []string) {
	h.t.Helper()
	want := slices.Clone(methods)
	if slices.Contains(want, "GET") {
		want = append(want, "HEAD")
	}
	slices.Sort(want)
	path = strings.NewReplacer("{sid}", "s", "{id}", "f", "{file}", "app.js").Replace(path)
	if got := h.do("BREW", path, nil).Want(405, "method_not_allowed").Header.Get("Allow"); got != strings.Join(want, ", ") {
		h.t.Errorf("%s: Allow %q, described are %v", path, got, want)
	}
}

func TestDescriptionTellsOfTheLabWhereThereIsOne(t *testing.T) {
	t.Parallel()
	for _, lab := range []bool{false, true} {
		doc := start(t, "-ephemeral", fmt.Sprintf("-lab=%v", lab)).get("/openapi.json").Want(200)
		paths := doc.JSON()["paths"].(object)
		if (paths["/lab"] != nil) != lab || (paths["/ns/{name}"] != nil) != lab || paths["/api"] == nil || (len(doc.List("servers")) == 2) != lab {
			t.Errorf("with -lab=%v the description has the paths %v", lab, slices.Sorted(maps.Keys(paths)))
		}
		for _, tag := range doc.List("tags") {
			if tag["name"] == "lab" && !lab {
				t.Error("without -lab the description has the tag lab")
			}
		}
	}
}

func TestDescriptionExamplesAreValid(t *testing.T) {
	t.Parallel()
	examples := 0
	eachObject(description(), "", func(where string, o object) {
		schema, ok := o["schema"].(object)
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

// TestLabAnswersAsDescribed asks every operation of the lab, well and badly; do holds the answers against
// openapi.json.
func TestLabAnswersAsDescribed(t *testing.T) {
	t.Parallel()
	h := start(t, "-ephemeral", "-lab").space("a")
	id := sid(t, h.login("demo").Access)
	h.post(runPath, nil).Want(200)
	var snapshot string
	for _, row := range []struct {
		want               int
		method, path, body string
	}{
		{200, "GET", "/lab", ""},
		{201, "POST", "/lab/faults", `{"operation":"me","status":503,"headers":{"Retry-After":"1"},"skip":1}`},
		{201, "POST", "/lab/faults", `{"operation":"*","hold":2,"within":"1ms","times":0}`},
		{422, "POST", "/lab/faults", `{"operation":"me","nonsense":1}`},
		{200, "GET", "/lab/faults", ""},
		{204, "DELETE", "/lab/faults/f2", ""}, {404, "DELETE", "/lab/faults/f2", ""},
		{401, "GET", mePath, ""},
		{200, "GET", "/lab/requests", ""}, {200, "GET", "/lab/requests?operation=login&status=200", ""}, {422, "GET", "/lab/requests?x=1", ""},
		{200, "POST", "/lab/expect", `{"operation":"login","count":{"at_least":1}}`},
		{409, "POST", "/lab/expect", `{"operation":"refresh","count":{"exactly":1},"within":"1ms"}`},
		{200, "GET", "/lab/report", ""},
		{200, "PUT", "/lab/clock", `{"advance":"16m"}`}, {422, "PUT", "/lab/clock", `{}`}, {400, "PUT", "/lab/clock", ""},
		{200, "PUT", "/lab/refresh-policy", `{"reuse":"grace","grace":"10s"}`},
		{200, "GET", "/lab/sessions", ""},
		{200, "POST", "/lab/sessions/" + id + "/expire", `{"token":"refresh"}`}, {404, "POST", "/lab/sessions/none/expire", ""},
		{201, "POST", "/lab/tokens", `{"user":"demo","defect":"tampered"}`},
		{200, "GET", "/lab/snapshot", ""}, {204, "PUT", "/lab/snapshot", ""}, {422, "PUT", "/lab/snapshot", `{"version":2}`},
		{204, "POST", "/lab/sessions/" + id + "/revoke", ""},
		{204, "DELETE", "/lab/faults", ""}, {204, "DELETE", "/lab/requests", ""}, {204, "POST", "/lab/reset", ""},
	} {
		var options []string
		if row.path == "/lab/snapshot" && row.want == 204 {
			row.body = snapshot
		}
		if row.body != "" {
			options = jsonType
		}
		a := h.do(row.method, row.path, row.body, options...).Want(row.want)
		if row.path == "/lab/snapshot" && row.want == 200 {
			snapshot = string(a.Body)
		}
	}
}

// TestDescriptionChecksAnswers makes sure that the checker itself finds what is wrong.
func TestDescriptionChecksAnswers(t *testing.T) {
	t.Parallel()
	a := &answer{T: t, Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{}`)}
	if found := answerFaults("GET", "/healthz", a); len(found) != 2 {
		t.Errorf("an answer without Cache-Control and status has the faults %q", found)
	}
}

// answerFaults returns what an answer has that openapi.json does not describe.
func answerFaults(method, path string, a *answer) []string {
	status, header, body := a.Status, a.Header, a.Body
	operation := operationOf(method, path)
	if method == http.MethodOptions && operation == nil {
		return nil // a preflight
	}
	labIsOff := status == http.StatusNotFound && (strings.HasPrefix(path, "/lab") || strings.HasPrefix(path, "/ns/"))
	if operation == nil || labIsOff {
		if status < 400 {
			return []string{"no such operation is described"}
		}
		if method == http.MethodHead {
			return nil
		}
		return bodyFaults(object{"application/problem+json": object{"schema": at(description(), "components", "schemas", "Problem")}}, header, body)
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
	if method == http.MethodHead || header.Get("Content-Encoding") != "" || status == http.StatusPartialContent {
		return found // no body, or not one that can be read by itself
	}
	return append(found, bodyFaults(at(answer, "content"), header, body)...)
}

// bodyFaults holds a body against the media types of an answer.
func bodyFaults(content object, header http.Header, body []byte) []string {
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

// template is a path of the description with the expression that its requests match.
type template struct {
	matches *regexp.Regexp
	item    any
}

// templates are the description's paths; those without a parameter come first.
var templates = sync.OnceValue(func() (list []template) {
	parameter := regexp.MustCompile(`\\\{[^/]*\\\}`)
	for path, item := range at(description(), "paths") {
		pattern := parameter.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+")
		t := template{regexp.MustCompile("^" + pattern + "$"), item}
		if strings.Contains(path, "{") {
			list = append(list, t)
		} else {
			list = slices.Insert(list, 0, t)
		}
	}
	return list
})

var namespacePath = regexp.MustCompile("^/ns/[^/]+/")

// operationOf returns the operation that describes a request, or nil.
func operationOf(method, path string) object {
	method = strings.ToLower(method)
	if method == "head" {
		method = "get"
	}
	if method == "delete" {
		path = strings.TrimSuffix(path, "/") // a namespace may be deleted by the address of its page
	}
	target := namespacePath.ReplaceAllString(path, "/")
	for _, t := range templates() {
		if t.matches.MatchString(target) {
			return at(t.item, method)
		}
	}
	return nil
}
