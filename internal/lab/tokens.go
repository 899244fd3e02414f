// Tokens to order: sound ones, and ones with exactly one thing wrong.

package lab

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"authhub/internal/account"
	"authhub/internal/jwt"
	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

// tokenAnswer is a token that was ordered.
type tokenAnswer struct {
	Token   string          `json:"token"`
	Kind    string          `json:"kind"`
	Defect  string          `json:"defect"`
	Session string          `json:"session"`
	User    string          `json:"user"`
	Claims  json.RawMessage `json:"claims"`
}

var defects = []string{"none", "expired", "not_yet_valid", "wrong_key", "alg_none", "wrong_type", "truncated", "tampered", "revoked"}

// The report knows the sessions of ordered tokens by the prefix of their ids: one for sound tokens, and one for tokens
// with a defect, or with claims that the hub does not accept.
const (
	orderedPrefix = "ordered-"
	defectPrefix  = orderedPrefix + "defect-"
)

// orderToken starts a session of the user and answers with a token of it, so that a sound one works at once.
func (b *bench) orderToken(w http.ResponseWriter, r *http.Request) error {
	in, err := strict.Read(w, r, false, "user", "kind", "defect", "claims")
	if err != nil {
		return err
	}
	h := b.hub.Load()
	owner := h.userOf(in)
	k := readKind(in, "kind")
	defect, overrides := in.OneOf("defect", defects...), in.Object("claims")
	if err := in.Err(); err != nil {
		return err
	}

	asked := k
	if defect == "wrong_type" { // a sound token of the other kind
		k = theOther(k)
	}
	id, prefix := b.lab.NewID(), defectPrefix
	if defect == "none" {
		prefix = orderedPrefix
	}
	access, refresh := h.Lifetimes()
	s := owner.NewSession(prefix+id, h.Now(), access, refresh)
	sign := func() (string, []byte, error) {
		return h.signDefective(k, override(b.orderedPayload(&s, owner, k, defect), overrides), defect)
	}
	token, payload, err := sign()
	if err == nil && defect == "none" && !h.accepts(token, k, &s) { // for its claims
		s.ID = defectPrefix + id
		token, payload, err = sign()
	}
	if err != nil {
		return err
	}
	if err := h.Store.StartSession(r.Context(), s); err != nil {
		return err
	}
	if defect == "revoked" {
		if err := h.Store.EndSession(r.Context(), s.Ref(), false); err != nil {
			return err
		}
	}

	return reply.WriteJSON(w, http.StatusCreated, tokenAnswer{token, asked.String(), defect, s.ID, owner.Username, payload})
}

// accepts reports whether the hub accepts a token as one of this session.
func (h *Parts) accepts(token string, k jwt.Kind, s *account.Session) bool {
	c, err := h.Signer.Open(token)
	return err == nil && c.Session == s.ID && c.Subject == s.User && c.Check(k, h.Now()) == nil
}

// readKind reads a member that names a kind of token. Absent is access.
func readKind(in *strict.Form, name string) jwt.Kind {
	if in.OneOf(name, "access", "refresh") == "refresh" {
		return jwt.Refresh
	}
	return jwt.Access
}

func theOther(k jwt.Kind) jwt.Kind {
	if k == jwt.Access {
		return jwt.Refresh
	}
	return jwt.Access
}

// userOf returns the user whom a body names, by name or id.
func (h *Parts) userOf(in *strict.Form) *account.User {
	given := in.Text("user")
	if u := h.Store.UserByLogin(given); u != nil {
		return u
	}
	u := h.Store.UserByID(given)
	if u == nil {
		in.Fault("user", "must be the user name or the id of a user")
	}
	return u
}

const defectMargin = time.Hour // how far from the time of the hub a defect of time lies

// orderedPayload returns what the current token of s says, with what the dialect adds to access tokens, and with the
// defect if that is one of time.
func (b *bench) orderedPayload(s *account.Session, owner *account.User, k jwt.Kind, defect string) []byte {
	c := s.Claims(k, owner)
	life, margin := c.ExpiresAt-c.IssuedAt, defectMargin.Milliseconds()
	switch defect {
	case "expired":
		c.IssuedAt, c.ExpiresAt = c.IssuedAt-margin-life, c.ExpiresAt-margin-life
	case "not_yet_valid":
		c.NotBefore = c.IssuedAt + margin
		c.ExpiresAt = c.NotBefore + life
	}
	if k == jwt.Access {
		issued := time.UnixMilli(c.IssuedAt)
		c.More = b.dialect.Load().Claims(owner.Record(), issued, issued)
	}
	return c.AppendJSON(nil)
}

// override returns the payload with its members replaced in place by those of the same name, and the others
// appended by name. A null leaves a member out. nbf is the last of the claims that a hub knows. Times that a hub could
// issue are rounded to the milliseconds that it issues.
func override(payload []byte, overrides map[string]any) []byte {
	left := maps.Clone(overrides)
	out := []byte{'{'}
	add := func(name string, value any) {
		if value == nil {
			return
		}
		if number, ok := value.(json.Number); ok && (name == "exp" || name == "iat" || name == "nbf") {
			value = roundSeconds(number)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, strict.Quote(name)...), ':'), strict.Quote(value)...)
	}
	for name, value := range members(payload) {
		if _, ok := left[name]; ok {
			value = left[name]
			delete(left, name)
		}
		add(name, value)
	}
	add("nbf", left["nbf"])
	delete(left, "nbf")
	for _, name := range slices.Sorted(maps.Keys(left)) {
		add(name, left[name])
	}
	return append(out, '}')
}

// roundSeconds returns a time as tokens have it (jwt.AppendSeconds), or as it is where that is none.
func roundSeconds(number json.Number) json.Number {
	seconds, err := number.Float64()
	if err != nil || math.Abs(seconds) > 1<<40 {
		return number
	}
	return json.Number(jwt.AppendSeconds(nil, int64(math.Round(seconds*1000))))
}

// members yields the members of a JSON object in their order.
func members(object []byte) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		decoder := json.NewDecoder(bytes.NewReader(object))
		decoder.Token()
		for decoder.More() {
			var value json.RawMessage
			name, _ := decoder.Token()
			if decoder.Decode(&value) != nil || !yield(name.(string), value) {
				return
			}
		}
	}
}

// signDefective returns the token of this payload, with the defect if it lies outside the claims, and its payload.
func (h *Parts) signDefective(k jwt.Kind, payload []byte, defect string) (string, []byte, error) {
	token := h.Signer.SignPayload(k, payload)
	switch defect {
	case "wrong_key":
		other, err := jwt.NewSigner([]byte(rand.Text()), "")
		if err != nil {
			return "", nil, err
		}
		token = other.SignPayload(k, payload)
	case "alg_none": // RFC 8725 section 2.1
		header, _, _ := strings.Cut(token, ".")
		decoded, _ := base64.RawURLEncoding.DecodeString(header)
		token = base64.RawURLEncoding.EncodeToString(bytes.Replace(decoded, []byte("HS256"), []byte("none"), 1)) + "." +
			base64.RawURLEncoding.EncodeToString(payload) + "."
	case "truncated":
		signature := len(token) - strings.LastIndexByte(token, '.') - 1
		token = token[:len(token)-signature/2]
	case "tampered": // the signature of what it was, under what it is now
		parts := strings.Split(token, ".")
		payload = override(payload, map[string]any{"sub": "user-somebody-else"})
		token = parts[0] + "." + base64.RawURLEncoding.EncodeToString(payload) + "." + parts[2]
	}
	return token, payload, nil
}
