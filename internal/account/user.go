// Accounts: what an account is, in the store, in the journal and to clients, and where those of the start come from.

package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"authhub/internal/passwd"
)

// User is an account. It is immutable once in the store.
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
	public     json.RawMessage // the user record of the contract and a line end, made once
}

// publicUser is the user record that clients see: never a password or a hash.
type publicUser struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Email    string `json:"email"`
	Name     string `json:"name"`
	Role     string `json:"role"`
	Created  string `json:"created_at"`
}

// Record returns the user record of the contract as JSON.
func (u *User) Record() json.RawMessage {
	if u.public == nil {
		line, _ := json.Marshal(publicUser{u.ID, u.Username, u.Email, u.Name, u.Role, time.UnixMilli(u.Created).UTC().Format(timeLayout)})
		u.public = append(line, '\n')
	}
	return u.public
}

type UserRecord struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Email    string `json:"email,omitempty"`
	Name     string `json:"name,omitempty"`
	Role     string `json:"role"`
	Created  int64  `json:"created"`
	Hash     string `json:"hash"`
}

// Fold maps names that differ by case alone to one.
func Fold(name string) string { return strings.ToLower(name) }

// stored is the user as the journal has it.
func (u *User) stored() *UserRecord {
	return &UserRecord{u.ID, u.Username, u.Email, u.Name, u.Role, u.Created, u.Credential.String()}
}

func (r *UserRecord) user() (*User, error) {
	credential, err := passwd.ParseHash(r.Hash)
	return &User{ID: r.ID, Username: r.Username, Email: r.Email, Name: r.Name, Role: r.Role, Created: r.Created,
		Credential: credential}, err
}

// IsUsername reports whether s is 3 to 64 of ASCII letters, digits and ._@+-
func IsUsername(s string) bool { return isWord(s, 3, 64, "._@+-") }

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

// IsEmail reports whether s is one address and nothing else (RFC 5322 section 3.4.1), of at most 254 bytes.
func IsEmail(s string) bool {
	parsed, err := mail.ParseAddress(s)
	return err == nil && parsed.Address == s && len(s) <= 254 && utf8.ValidString(s)
}

// seed is a user of -users or data/users.json.
type seed struct {
	ID           string    `json:"id"`
	Username     string    `json:"username"`
	Password     string    `json:"password"`
	PasswordHash string    `json:"password_hash"`
	Email        string    `json:"email"`
	Name         string    `json:"name"`
	Role         string    `json:"role"`
	Disabled     bool      `json:"disabled"`
	CreatedAt    time.Time `json:"created_at"`
}

// ParseSeeds reads a JSON array of seeds, strictly: the operator wants to know of a misspelt member.
func ParseSeeds(data io.Reader) ([]*User, error) {
	decoder := json.NewDecoder(data)
	decoder.DisallowUnknownFields()
	var seeds []seed
	err := decoder.Decode(&seeds)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return nil, fmt.Errorf(`the JSON %s that ends at byte %d does not belong there; wanted is [{"username":…,"password":…},…]`, wrong.Value, wrong.Offset)
	}
	if err != nil {
		return nil, err
	}
	if seeds == nil {
		return nil, errors.New("null is no JSON array")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("something follows the JSON array")
	}
	users := make([]*User, len(seeds))
	for i, s := range seeds {
		u, err := s.user()
		if err != nil {
			return nil, errors.New("user " + strconv.Itoa(i+1) + " (" + strconv.Quote(s.Username) + "): " + err.Error())
		}
		users[i] = u
	}
	return users, nil
}

// user checks a seed by the rules of register. Without an id it has one made of its name, without a role it is a
// plain user, and without a date it is as old as the demo accounts, so that it is the same at every start.
func (s seed) user() (*User, error) {
	u := &User{ID: s.ID, Username: s.Username, Email: s.Email, Name: s.Name, Role: s.Role, Disabled: s.Disabled, Seed: true,
		Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()}
	if u.Username == "" {
		u.Username = u.Email
	}
	if u.ID == "" {
		u.ID = "user-" + Fold(u.Username)
	}
	if u.Role == "" {
		u.Role = "user"
	}
	if !s.CreatedAt.IsZero() {
		u.Created = s.CreatedAt.UnixMilli()
	}
	switch {
	case !IsUsername(u.Username):
		return nil, errors.New("username must be 3 to 64 of letters, digits and . _ @ + -")
	case !IsUsername(u.ID):
		return nil, errors.New("id must be 3 to 64 of letters, digits and . _ @ + -")
	case u.Email != "" && !IsEmail(u.Email):
		return nil, errors.New("email is not an e-mail address")
	case u.Role != "user" && u.Role != "admin":
		return nil, errors.New(`role must be "user" or "admin"`)
	case (s.Password == "") == (s.PasswordHash == ""):
		return nil, errors.New("give either password or password_hash")
	}
	u.Credential = passwd.Plain(s.Password)
	if s.PasswordHash != "" {
		credential, err := passwd.ParseHash(s.PasswordHash)
		if err != nil {
			return nil, err
		}
		u.Credential = credential
	}
	return u, nil
}
