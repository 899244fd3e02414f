// seed.go owns the users that are there from the start: the demo accounts, or those of -users.

package account

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"authhub/internal/passwd"
)

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
		return nil, errors.New("the file must hold a JSON array, not null")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("the file goes on after the JSON array")
	}
	users := make([]*User, len(seeds))
	for i, s := range seeds {
		u, err := s.user()
		if err != nil {
			return nil, fmt.Errorf("user %d (%q): %w", i+1, s.Username, err)
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
		u.ID = seedID(u.Username)
	}
	if u.Role == "" {
		u.Role = "user"
	}
	if !s.CreatedAt.IsZero() {
		u.Created = s.CreatedAt.UnixMilli()
	}
	switch {
	case FaultOf("username", u.Username) != "":
		return nil, errors.New("username " + FaultOf("username", u.Username))
	case FaultOf("username", u.ID) != "": // ids are made of the same
		return nil, errors.New("id " + FaultOf("username", u.ID))
	case FaultOf("email", u.Email) != "":
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

// seedID returns the id of a seed that gives none: made of its user name, so that it is the same at every start.
func seedID(username string) string {
	id := "user-" + Fold(username)
	if len(id) <= maxWord {
		return id
	}
	sum := sha256.Sum256([]byte(Fold(username)))
	return "user-" + hex.EncodeToString(sum[:16])
}
