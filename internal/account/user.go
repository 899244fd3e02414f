// user.go owns what a user is: in a store, in the journal, and to clients.

package account

import (
	"encoding/json"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"authhub/internal/passwd"
)

// User is an account. It is immutable once it is in a store.
type User struct {
	ID         string
	Username   string
	Email      string
	Name       string
	Role       string // "user" or "admin"
	Created    int64  // milliseconds since the Unix epoch
	Disabled   bool
	Seed       bool // of -users or data/users.json, not of the journal
	Credential passwd.Credential
	public     json.RawMessage // what Record returns, made once
}

// timeLayout is ISO 8601 in UTC with exactly three decimals.
const timeLayout = "2006-01-02T15:04:05.000Z"

// publicUser is the user record of the contract: never a password or a hash.
type publicUser struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Email    string `json:"email"`
	Name     string `json:"name"`
	Role     string `json:"role"`
	Created  string `json:"created_at"`
}

// logins returns what the user may log in with: the user name and the e-mail address, if there is one.
func (u *User) logins() []string {
	if u.Email == "" {
		return []string{u.Username}
	}
	return []string{u.Username, u.Email}
}

// Record returns the user record that clients see, as JSON with a line end.
func (u *User) Record() json.RawMessage {
	if u.public == nil {
		line, _ := json.Marshal(publicUser{u.ID, u.Username, u.Email, u.Name, u.Role, time.UnixMilli(u.Created).UTC().Format(timeLayout)})
		u.public = append(line, '\n')
	}
	return u.public
}

// UserRecord is a user as the journal and a snapshot have it.
type UserRecord struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Email    string `json:"email,omitempty"`
	Name     string `json:"name,omitempty"`
	Role     string `json:"role"`
	Created  int64  `json:"created"`
	Disabled bool   `json:"disabled,omitempty"`
	Hash     string `json:"hash"`           // "": the password of the seed of this id
	Gone     bool   `json:"gone,omitempty"` // the seed of this id is deleted
}

// Fold returns the same string for names and e-mail addresses that differ by case alone, by simple case folding
// (Unicode chapter 5.18, CaseFolding.txt status C and S).
func Fold(name string) string { return strings.Map(foldRune, name) }

// foldRune returns the least of the characters that differ from r by case alone. Of ASCII letters it is the small one.
func foldRune(r rune) rune {
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	if 'A' <= least && least <= 'Z' {
		return least + 'a' - 'A'
	}
	return least
}

// Stored returns the user as the journal has it.
func (u *User) Stored() *UserRecord {
	return &UserRecord{ID: u.ID, Username: u.Username, Email: u.Email, Name: u.Name, Role: u.Role, Created: u.Created,
		Disabled: u.Disabled, Hash: u.Credential.String()}
}

// User returns the user of the record. seed is the seed of its id, or nil.
func (r *UserRecord) User(seed *User) (*User, error) {
	u := &User{ID: r.ID, Username: r.Username, Email: r.Email, Name: r.Name, Role: r.Role, Created: r.Created, Disabled: r.Disabled}
	if r.Hash == "" && seed != nil {
		u.Credential = seed.Credential
		return u, nil
	}
	var err error
	u.Credential, err = passwd.ParseStored(r.Hash)
	return u, err
}

const maxWord = 64 // bytes of a user name or an id

// FaultOf returns what is wrong with the username, email, name or password of a user, as a part of a sentence; "" if
// nothing is. An email may be absent. Limits are in bytes.
func FaultOf(field, value string) string {
	switch {
	case field == "username" && !isUsername(value):
		return "must be 3 to 64 of letters, digits and . _ @ + -"
	case field == "email" && value != "" && !isEmail(value):
		return "must be an e-mail address"
	case field == "name" && len(value) > 256:
		return "must be at most 256 bytes"
	case field == "password" && (len(value) < 8 || len(value) > 256):
		return "must be 8 to 256 bytes"
	}
	return ""
}

// isUsername reports whether s is 3 to 64 of ASCII letters, digits and ._@+-
func isUsername(s string) bool { return isWord(s, 3, maxWord, "._@+-") }

// isWord reports whether s is least to most of ASCII letters, digits and the bytes of others.
func isWord(s string, least, most int, others string) bool {
	for _, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && !('0' <= c && c <= '9') && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return least <= len(s) && len(s) <= most
}

// isEmail reports whether s is one address and nothing else (RFC 5322 section 3.4.1), of at most 254 bytes.
func isEmail(s string) bool {
	parsed, err := mail.ParseAddress(s)
	return err == nil && parsed.Address == s && len(s) <= 254 && utf8.ValidString(s)
}
