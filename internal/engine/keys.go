// keys.go names the keys.

package engine

import (
	"authhub/internal/account"
	"authhub/internal/etcd"
)

// keys names the keys of one store. The prefix ends in the version of this layout.
//
//	n/NAME       the id of the user of that name or e-mail address, folded: each means one account only
//	u/UID        user
//	s/UID/SID    write: a session, and the id of the write
//	r/SID        the generation that a session had reached when the reuse of a spent token ended it
//	secret       a fingerprint of AUTHHUB_SECRET
//	seeds        the ids of the users of -users
//	import       what is being, or has been, moved in
//	folder, files, run, latest: see files.go
//
// The keys under s/ and r/ go with leases.
type keys struct{ prefix etcd.Prefix }

func newKeys(path string) keys {
	if path == "" {
		path = "authhub"
	}
	return keys{etcd.Prefix("/" + path + "/1/")}
}

func (k keys) name(login string) etcd.Key { return k.allNames().Key(account.Fold(login)) }
func (k keys) allNames() etcd.Prefix      { return k.prefix + "n/" }
func (k keys) user(id string) etcd.Key    { return k.users().Key(id) }
func (k keys) users() etcd.Prefix         { return k.prefix + "u/" }

func (k keys) session(ref account.SessionRef) etcd.Key { return k.sessions(ref.User).Key(ref.Session) }
func (k keys) sessions(user string) etcd.Prefix        { return k.prefix + etcd.Prefix("s/"+user+"/") }
func (k keys) reused(session string) etcd.Key          { return k.prefix.Key("r/" + session) }

func (k keys) secret() etcd.Key   { return k.prefix.Key("secret") }
func (k keys) seeds() etcd.Key    { return k.prefix.Key("seeds") }
func (k keys) imported() etcd.Key { return k.prefix.Key("import") }

// names returns the keys that u's user name and e-mail address take: one where both are the same.
func (k keys) names(u *account.User) []etcd.Key {
	names := []etcd.Key{k.name(u.Username)}
	if u.Email != "" && k.name(u.Email) != names[0] {
		names = append(names, k.name(u.Email))
	}
	return names
}
