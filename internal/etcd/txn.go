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

// Absent holds if there is no such key.
func Absent(key string) Cond { return created("EQUAL", key, 0) }

// Present holds if there is such a key.
func Present(key string) Cond { return created("GREATER", key, 0) }

// CreatedAt holds if the key was made at revision and has not been deleted since.
func CreatedAt(key string, revision int64) Cond { return created("EQUAL", key, revision) }

// Unchanged holds if the key was last changed at revision.
func Unchanged(key string, revision int64) Cond {
	return Cond{Result: "EQUAL", Target: "MOD", Key: []byte(key), ModRevision: &revision}
}

func created(result, key string, revision int64) Cond {
	return Cond{Result: result, Target: "CREATE", Key: []byte(key), CreateRevision: &revision}
}

// An Op is an operation of a transaction.
type Op = wire.RequestOp

// Get reads one key.
func Get(key string) Op { return Op{Range: &wire.RangeRequest{Key: []byte(key)}} }

// GetNewer reads one key if it was changed after revision; a key that was not counts, but has no value.
func GetNewer(key string, revision int64) Op {
	return Op{Range: &wire.RangeRequest{Key: []byte(key), MinModRevision: revision + 1}}
}

// GetAll reads the keys that begin with prefix, in the order in which they were made.
func GetAll(prefix string) Op {
	return Op{Range: &wire.RangeRequest{Key: []byte(prefix), RangeEnd: end(prefix), SortOrder: "ASCEND", SortTarget: "CREATE"}}
}

// GetPage reads the values of at most limit keys that begin with prefix and are not before from, in the order of the keys.
func GetPage(prefix, from string, limit int) Op {
	return Op{Range: &wire.RangeRequest{Key: []byte(max(prefix, from)), RangeEnd: end(prefix), Limit: int64(limit)}}
}

// Oldest reads the names of the n oldest keys that begin with prefix.
func Oldest(prefix string, n int) Op {
	op := GetAll(prefix)
	op.Range.KeysOnly, op.Range.Limit = true, int64(n)
	return op
}

// Count counts the keys that begin with prefix.
func Count(prefix string) Op {
	return Op{Range: &wire.RangeRequest{Key: []byte(prefix), RangeEnd: end(prefix), CountOnly: true}}
}

// Put sets a key, which goes with the lease; 0 stands for none.
func Put(key string, value []byte, lease int64) Op {
	return Op{Put: &wire.PutRequest{Key: []byte(key), Value: value, Lease: lease}}
}

// Delete deletes a key.
func Delete(key string) Op { return Op{Delete: &wire.DeleteRangeRequest{Key: []byte(key)}} }

// DeleteAll deletes the keys that begin with prefix.
func DeleteAll(prefix string) Op {
	return Op{Delete: &wire.DeleteRangeRequest{Key: []byte(prefix), RangeEnd: end(prefix)}}
}

// DeleteAllBut deletes the keys that begin with prefix, but for one of them.
func DeleteAllBut(prefix, spared string) []Op {
	return []Op{
		{Delete: &wire.DeleteRangeRequest{Key: []byte(prefix), RangeEnd: []byte(spared)}},
		{Delete: &wire.DeleteRangeRequest{Key: []byte(spared + "\x00"), RangeEnd: end(prefix)}},
	}
}

// end is the first key after all that begin with prefix, which is not empty and ends in a byte below 255.
func end(prefix string) []byte {
	last := []byte(prefix)
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
