// Values that somebody else has put under the store's keys.

package engine

import (
	"path/filepath"
	"testing"

	"authhub/internal/etcd"
)

// FuzzStored: whatever lies under a key is read or refused, and no name of a set leads out of the folder.
func FuzzStored(f *testing.F) {
	f.Add([]byte(`{"id":"s","user":"u","gen":1,"w":"x"}`))
	f.Add([]byte(`{"id":"20260301T120000-AB","sizes":[1,2,3],"sha256":["a","b","c"]}`))
	f.Add([]byte(`{"id":"../../etc"}`))
	f.Add([]byte(`{"id":"/"}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		kv := &etcd.KeyValue{Key: []byte("key"), Value: value, ModRevision: 7}
		if one, err := decodeSession(kv); err == nil && one.revision != 7 {
			t.Errorf("%+v", one)
		}
		if u, err := new(Store).decodeUser(value); err == nil && u == nil {
			t.Error("no user and no error")
		}
		decodeImported(kv)
		if set, err := decodePublished(kv); err == nil {
			if in := filepath.Join("sets", set.ID); filepath.Dir(in) != "sets" || filepath.Base(in) != set.ID {
				t.Errorf("%q", set.ID)
			}
		}
	})
}
