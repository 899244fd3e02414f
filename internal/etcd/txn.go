// txn.go owns transactions: their conditions, operations and outcomes.

package etcd

import (
	"context"

	"authhub/internal/etcd/wire"
)

// Txn is a transaction: Then happens if all of If hold, else Else, as one step. No key may be put twice in it.
type Txn struct {
	If         []Cond
	Then, Else []Op
}

// MaxOps is how many operations etcd takes in one branch of a transaction, unless it is told otherwise
// (--max-txn-ops 128).
const MaxOps = 120

// A Cond is a condition of a transaction.
type Cond = wire.Compare

// An Op is an operation of a transaction.
type Op = wire.RequestOp

// Key is the name of a key, with the conditions and operations on it.
type Key string

// Absent holds if there is no such key.
func (k Key) Absent() Cond { return k.created("EQUAL", 0) }

// Present holds if there is such a key.
func (k Key) Present() Cond { return k.created("GREATER", 0) }

// CreatedAt holds if the key was made at revision and has not been deleted since.
func (k Key) CreatedAt(revision int64) Cond { return k.created("EQUAL", revision) }

// Unchanged holds if the key was last changed at revision.
func (k Key) Unchanged(revision int64) Cond {
	return Cond{Result: "EQUAL", Target: "MOD", Key: []byte(k), ModRevision: &revision}
}

func (k Key) created(result string, revision int64) Cond {
	return Cond{Result: result, Target: "CREATE", Key: []byte(k), CreateRevision: &revision}
}

// Get reads the key.
func (k Key) Get() Op { return Op{Range: &wire.Range{Key: []byte(k)}} }

// GetNewer reads the key if it was changed after revision; a key that was not counts, but has no value.
func (k Key) GetNewer(revision int64) Op {
	return Op{Range: &wire.Range{Key: []byte(k), MinModRevision: revision + 1}}
}

// Put sets the key, which goes with the lease; 0 stands for none.
func (k Key) Put(value []byte, lease int64) Op {
	return Op{Put: &wire.PutRequest{Key: []byte(k), Value: value, Lease: lease}}
}

// Delete deletes the key.
func (k Key) Delete() Op { return Op{Delete: &wire.Range{Key: []byte(k)}} }

// Prefix is what the names of several keys begin with. It is not empty and ends in a byte below 255.
type Prefix string

// Key returns the key of this name under the prefix.
func (p Prefix) Key(name string) Key { return Key(string(p) + name) }

// GetAll reads the keys, in the order in which they were made.
func (p Prefix) GetAll() Op {
	return Op{Range: &wire.Range{Key: []byte(p), RangeEnd: p.end(), SortOrder: "ASCEND", SortTarget: "CREATE"}}
}

// Count counts the keys.
func (p Prefix) Count() Op {
	return Op{Range: &wire.Range{Key: []byte(p), RangeEnd: p.end(), CountOnly: true}}
}

// DeleteAll deletes the keys.
func (p Prefix) DeleteAll() Op {
	return Op{Delete: &wire.Range{Key: []byte(p), RangeEnd: p.end()}}
}

// DeleteAllBut deletes the keys, but for one of them.
func (p Prefix) DeleteAllBut(spared Key) []Op {
	return []Op{
		{Delete: &wire.Range{Key: []byte(p), RangeEnd: []byte(spared)}},
		{Delete: &wire.Range{Key: []byte(spared + "\x00"), RangeEnd: p.end()}},
	}
}

// end is the first name after all that begin with the prefix.
func (p Prefix) end() []byte {
	last := []byte(p)
	last[len(last)-1]++
	return last
}

// Outcome is what a transaction did.
type Outcome struct {
	Succeeded bool // Then was done, not Else
	Repeated  bool // an earlier try may have been carried out as well
	Revision  int64
	Results   []Result // of each operation of that branch
}

// Result is what one operation found. A put finds nothing.
type Result struct {
	KVs   []KeyValue
	Count int64 // of keys in the range, whether they are in KVs or not; of a delete, of those that were deleted
}

// KeyValue is a key as it stands.
type KeyValue = wire.KeyValue

// First returns the key that was read, or nil where there is none.
func (r Result) First() *KeyValue {
	if len(r.KVs) == 0 {
		return nil
	}
	return &r.KVs[0]
}

// Do carries t out. Errors: ErrUnavailable, ErrUnknown, ErrNoLease, *RefusedError.
func (c *Client) Do(ctx context.Context, t Txn) (Outcome, error) {
	var answer wire.TxnResponse
	repeated, err := c.call(ctx, wire.TxnPath, wire.TxnRequest{Compare: t.If, Success: t.Then, Failure: t.Else}, &answer)
	if err != nil {
		return Outcome{}, err
	}
	asked := t.Else
	if answer.Succeeded {
		asked = t.Then
	}
	if len(answer.Responses) != len(asked) {
		at, _ := c.choose()
		return Outcome{}, gaveUp(false, &RefusedError{Node: c.nodes[at].address, Message: "its answer is not etcd's"})
	}
	out := Outcome{Succeeded: answer.Succeeded, Repeated: repeated, Revision: answer.Header.Revision, Results: make([]Result, len(answer.Responses))}
	for i, r := range answer.Responses {
		switch {
		case r.Range != nil:
			out.Results[i] = Result{r.Range.KVs, r.Range.Count}
		case r.Delete != nil:
			out.Results[i] = Result{nil, r.Delete.Deleted}
		}
	}
	return out, nil
}
