// Package etcdtest is a fake of etcd's JSON gateway in memory, for answers that are hard to provoke from a real
// cluster: an error before or after the request was carried out, an answer that is lost, silence, a token that ends.
//
// It knows what the client sends and nothing else: transactions without nesting, leases that end only when told,
// one user. What it says was compared with etcd 3.6.16; the tests of the engine run against both.
package etcdtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"authhub/internal/etcd/wire"
)

// A Fault is what becomes of a request. The zero value answers it.
type Fault struct {
	Silent  bool // it is not carried out and there is no answer until the client leaves
	Lost    bool // it is carried out and the connection ends without an answer
	Status  int  // of an answer that is an error
	Code    int  // of gRPC
	Message string
	Applied bool // an error although it was carried out
}

// Cluster is a cluster of nodes that share one state.
type Cluster struct {
	nodes []*httptest.Server

	mu       sync.Mutex
	fault    func(path string) Fault
	hold     func(path string)
	requests map[string]int
	revision int64
	keys     map[string]wire.KeyValue
	leases   map[int64]int64 // id to seconds
	user     string          // "" when nobody needs to log in
	password string
	tokens   map[string]bool
	down     map[int]bool
}

// New starts a cluster that ends with the test.
func New(t testing.TB, nodes int) *Cluster {
	c := &Cluster{revision: 1, keys: map[string]wire.KeyValue{}, leases: map[int64]int64{}, tokens: map[string]bool{},
		requests: map[string]int{}, down: map[int]bool{}}
	for i := range nodes {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.serve(i, w, r) }))
		t.Cleanup(server.Close)
		c.nodes = append(c.nodes, server)
	}
	return c
}

// Address returns the addresses of the nodes, separated by commas, without a path.
func (c *Cluster) Address() string {
	var addresses []string
	for _, n := range c.nodes {
		addresses = append(addresses, n.URL)
	}
	return strings.Join(addresses, ",")
}

// Fail lets fault decide what becomes of each request from now on; nil ends it. fault is called by one request at a
// time.
func (c *Cluster) Fail(fault func(path string) Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

// Hold calls hold before each request is carried out, by as many at once as there are; nil ends it.
func (c *Cluster) Hold(hold func(path string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold = hold
}

// FailNext lets the next n requests to path meet fault.
func (c *Cluster) FailNext(n int, path string, fault Fault) {
	c.Fail(func(at string) Fault {
		if at != path || n == 0 {
			return Fault{}
		}
		n--
		return fault
	})
}

// Stop lets a node answer 503 to everything, as a proxy before a dead node does; Start ends it.
func (c *Cluster) Stop(node int)  { c.set(node, true) }
func (c *Cluster) Start(node int) { c.set(node, false) }

func (c *Cluster) set(node int, down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down[node] = down
}

// Require asks for a login as user from now on.
func (c *Cluster) Require(user, password string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.user, c.password = user, password
}

// EndTokens makes all tokens that were given invalid.
func (c *Cluster) EndTokens() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.tokens)
}

// EndLeases ends all leases and deletes their keys.
func (c *Cluster) EndLeases() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.leases {
		c.endLease(id)
	}
}

// Lives returns for how long the lease of a key was granted; 0 if it has none.
func (c *Cluster) Lives(key string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.leases[c.keys[key].Lease]) * time.Second
}

// Requests returns how many requests to path there were.
func (c *Cluster) Requests(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[path]
}

// Keys returns the names of all keys, sorted.
func (c *Cluster) Keys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name := range c.keys {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *Cluster) serve(node int, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c.mu.Lock()
	if hold := c.hold; hold != nil {
		c.mu.Unlock()
		hold(r.URL.Path)
		c.mu.Lock()
	}
	f, status, answer := c.carryOut(node, r, body)
	c.mu.Unlock()
	switch {
	case f.Silent:
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	case f.Lost:
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		status, answer = f.Status, wire.Error{Code: f.Code, Message: f.Message}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(answer)
}

func (c *Cluster) carryOut(node int, r *http.Request, body []byte) (Fault, int, any) {
	c.requests[r.URL.Path]++
	if c.down[node] {
		return Fault{Status: http.StatusServiceUnavailable}, 0, nil
	}
	var f Fault
	if c.fault != nil {
		f = c.fault(r.URL.Path)
	}
	if f.Silent || f.Status != 0 && !f.Applied {
		return f, 0, nil
	}
	status, answer := c.answer(r, body)
	return f, status, answer
}

// refused is an error in the words of etcd.
func refused(status, code int, message string) (int, any) {
	return status, wire.Error{Code: code, Message: message}
}

func (c *Cluster) answer(r *http.Request, body []byte) (int, any) {
	if r.URL.Path == wire.AuthenticatePath {
		return c.authenticate(body)
	}
	if token := r.Header.Get("Authorization"); c.user != "" && token == "" {
		return refused(400, wire.CodeInvalidArgument, "etcdserver: user name is empty")
	} else if c.user != "" && !c.tokens[token] {
		return refused(401, wire.CodeUnauthenticated, "etcdserver: invalid auth token")
	}
	var lease wire.Lease
	json.Unmarshal(body, &lease)
	switch r.URL.Path {
	case wire.TxnPath:
		return c.txn(body)
	case wire.GrantPath:
		lease.ID = int64(len(c.leases)) + c.revision*1000
		c.leases[lease.ID] = lease.TTL
		return 200, lease
	case wire.KeepAlivePath:
		return 200, map[string]wire.Lease{"result": {ID: lease.ID, TTL: c.leases[lease.ID]}}
	case wire.RevokePath:
		if _, ok := c.leases[lease.ID]; !ok {
			return refused(404, wire.CodeNotFound, "etcdserver: requested lease not found")
		}
		c.endLease(lease.ID)
		return 200, struct{}{}
	case wire.StatusPath:
		return 200, wire.Status{Version: "fake", Leader: 1}
	}
	return refused(404, wire.CodeNotFound, "Not Found")
}

func (c *Cluster) authenticate(body []byte) (int, any) {
	var a wire.Authenticate
	json.Unmarshal(body, &a)
	if c.user == "" {
		return refused(400, wire.CodeFailedPrecondition, "etcdserver: authentication is not enabled")
	}
	if a.Name != c.user || a.Password != c.password {
		return refused(400, wire.CodeInvalidArgument, "etcdserver: authentication failed, invalid user ID or password")
	}
	token := fmt.Sprint("token.", c.requests[wire.AuthenticatePath])
	c.tokens[token] = true
	return 200, wire.Authenticate{Token: token}
}

func (c *Cluster) endLease(id int64) {
	delete(c.leases, id)
	for name, kv := range c.keys {
		if kv.Lease == id {
			delete(c.keys, name)
		}
	}
}

func (c *Cluster) txn(body []byte) (int, any) {
	var t wire.TxnRequest
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&t); err != nil {
		return refused(400, wire.CodeInvalidArgument, err.Error())
	}
	for _, branch := range [][]wire.RequestOp{t.Success, t.Failure} {
		if status, answer := c.check(branch); status != 0 {
			return status, answer
		}
	}
	answer := wire.TxnResponse{Succeeded: !slices.ContainsFunc(t.Compare, func(p wire.Compare) bool { return !c.holds(p) })}
	branch := t.Failure
	if answer.Succeeded {
		branch = t.Success
	}
	if slices.ContainsFunc(branch, func(op wire.RequestOp) bool { return op.Range == nil }) {
		c.revision++
	}
	for _, op := range branch {
		answer.Responses = append(answer.Responses, c.do(op))
	}
	answer.Header.Revision = c.revision
	return 200, answer
}

// check refuses what etcd refuses before it does anything.
func (c *Cluster) check(branch []wire.RequestOp) (int, any) {
	put := map[string]bool{}
	if len(branch) > 128 {
		return refused(400, wire.CodeInvalidArgument, "etcdserver: too many operations in txn request")
	}
	for _, op := range branch {
		if op.Put == nil {
			continue
		}
		if put[string(op.Put.Key)] {
			return refused(400, wire.CodeInvalidArgument, "etcdserver: duplicate key given in txn request")
		}
		if _, ok := c.leases[op.Put.Lease]; op.Put.Lease != 0 && !ok {
			return refused(404, wire.CodeNotFound, "etcdserver: requested lease not found")
		}
		put[string(op.Put.Key)] = true
	}
	return 0, nil
}

func (c *Cluster) holds(p wire.Compare) bool {
	kv := c.keys[string(p.Key)]
	stands, wanted := kv.ModRevision, p.ModRevision
	if p.Target == "CREATE" {
		stands, wanted = kv.CreateRevision, p.CreateRevision
	}
	if p.Result == "GREATER" {
		return stands > *wanted
	}
	return stands == *wanted
}

func (c *Cluster) do(op wire.RequestOp) wire.ResponseOp {
	switch {
	case op.Range != nil:
		return wire.ResponseOp{Range: c.find(op.Range)}
	case op.Put != nil:
		name := string(op.Put.Key)
		kv := c.keys[name]
		if kv.CreateRevision == 0 {
			kv.CreateRevision = c.revision
		}
		c.keys[name] = wire.KeyValue{Key: op.Put.Key, Value: op.Put.Value, Lease: op.Put.Lease, Version: kv.Version + 1,
			CreateRevision: kv.CreateRevision, ModRevision: c.revision}
		return wire.ResponseOp{Put: &struct{}{}}
	}
	deleted := c.within(op.Delete.Key, op.Delete.RangeEnd)
	for _, kv := range deleted {
		delete(c.keys, string(kv.Key))
	}
	return wire.ResponseOp{Delete: &wire.Found{Deleted: int64(len(deleted))}}
}

// within returns the keys of a range in the order of their names.
func (c *Cluster) within(from, end []byte) []wire.KeyValue {
	if len(end) == 0 {
		end = append(slices.Clone(from), 0)
	}
	var found []wire.KeyValue
	for _, kv := range c.keys {
		if bytes.Compare(kv.Key, from) >= 0 && bytes.Compare(kv.Key, end) < 0 {
			found = append(found, kv)
		}
	}
	slices.SortFunc(found, func(a, b wire.KeyValue) int { return bytes.Compare(a.Key, b.Key) })
	return found
}

func (c *Cluster) find(r *wire.Range) *wire.Found {
	found := c.within(r.Key, r.RangeEnd)
	answer := &wire.Found{Count: int64(len(found))}
	if r.CountOnly {
		return answer
	}
	if r.SortTarget == "CREATE" {
		slices.SortStableFunc(found, func(a, b wire.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) })
	}
	for _, kv := range found {
		if r.KeysOnly {
			kv.Value = nil
		}
		if kv.ModRevision >= r.MinModRevision {
			answer.KVs = append(answer.KVs, kv)
		}
	}
	if r.Limit > 0 && len(answer.KVs) > int(r.Limit) {
		answer.KVs = answer.KVs[:r.Limit]
	}
	return answer
}
