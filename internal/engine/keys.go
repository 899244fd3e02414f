// keys.go names the keys.

package engine

import "authhub/internal/account"

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
type keys struct{ prefix string }

func newKeys(path string) keys {
	if path == "" {
		path = "authhub"
	}
	return keys{"/" + path + "/1/"}
}

func (k keys) name(login string) string { return k.prefix + "n/" + account.Fold(login) }
func (k keys) user(id string) string    { return k.users() + id }
func (k keys) users() string            { return k.prefix + "u/" }

func (k keys) session(ref account.SessionRef) string { return k.sessions(ref.User) + ref.Session }
func (k keys) sessions(user string) string           { return k.prefix + "s/" + user + "/" }
func (k keys) reused(session string) string          { return k.prefix + "r/" + session }

func (k keys) secret() string   { return k.prefix + "secret" }
func (k keys) seeds() string    { return k.prefix + "seeds" }
func (k keys) imported() string { return k.prefix + "import" }

// names returns the keys that u's user name and e-mail address take: one where both are the same.
func (k keys) names(u *account.User) []string {
	names := []string{k.name(u.Username)}
	if u.Email != "" && k.name(u.Email) != names[0] {
		names = append(names, k.name(u.Email))
	}
	return names
}
