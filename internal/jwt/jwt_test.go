package jwt

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// FuzzOpen: what open accepts was issued byte for byte: whoever has the keys gets the same token from the same
// claims, or from the same payload where further members follow them.
func FuzzOpen(f *testing.F) {
	s, err := NewSigner([]byte(strings.Repeat("s", 32)), "")
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range []Claims{
		{Kind: Access, Subject: "user-demo", Session: "S", Generation: 3, IssuedAt: 1, ExpiresAt: 1_700_000_000_120, Username: "demo", Role: "user"},
		{Kind: Refresh, Subject: "user-demo", Session: "S", IssuedAt: -1, ExpiresAt: 1 << 49, NotBefore: 5},
	} {
		f.Add(string(s.Append(nil, &c)), []byte(c.AppendJSON(nil)), uint8(c.Kind))
	}
	f.Add("a.b.c", []byte(`{"iss":"authhub","sub":"","sid":"","jti":".0a","iat":-0.5,"exp":0,"username":"","role":"","x":1}`), uint8(0))
	f.Add("..", []byte(`{"iss":"authhub","sub":"a","sid":"b","jti":"b.01r","iat":01,"exp":1.10,"gen":1}`), uint8(1))
	for _, number := range []string{"1.", "-0", "1.0004", ".5", "", "1125899906842625", "99999999999999999999"} {
		f.Add("..", []byte(`{"iss":"authhub","sub":"a","sid":"b","jti":"b.1r","iat":`+number+`,"exp":1,"gen":1}`), uint8(1))
	}
	f.Fuzz(func(t *testing.T, token string, payload []byte, k uint8) {
		for _, token := range []string{token, s.SignPayload(Kind(k%2), payload)} {
			c, err := s.Open(token)
			if err != nil {
				continue
			}
			decoded, err := base64.RawURLEncoding.Strict().DecodeString(strings.Split(token, ".")[1])
			if err != nil {
				t.Fatalf("%q is accepted and its payload can't be decoded: %v", token, err)
			}
			if again := s.SignPayload(c.Kind, decoded); again != token {
				t.Errorf("accepted %q, issued %q", token, again)
			}
			canonical := strings.TrimSuffix(string(c.AppendJSON(nil)), "}")
			if !strings.HasPrefix(string(decoded), canonical) {
				t.Errorf("the payload %s is read as %s", decoded, canonical)
			}
		}
	})
}

func BenchmarkToken(b *testing.B) {
	s, err := NewSigner([]byte("a secret of more than thirty-two bytes"), "")
	if err != nil {
		b.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	c := Claims{Kind: Access, Subject: "user-demo", Session: "AAAAAAAAAAAAAAAAAAAAAA", Generation: 7, IssuedAt: now.UnixMilli(),
		ExpiresAt: now.Add(time.Hour).UnixMilli(), Username: "demo", Role: "user"}
	token := string(s.Append(nil, &c))
	b.Run("sign", func(b *testing.B) {
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			buf = s.Append(buf[:0], &c)
		}
	})
	b.Run("verify", func(b *testing.B) { // as a client sends it, again and again
		b.ReportAllocs()
		for b.Loop() {
			got, err := s.Open(token)
			if err != nil || got.Check(Access, now) != nil {
				b.Fatal(got, err)
			}
		}
	})
}

// TestOneTokenOpensAgainAndItsForgeriesNever: what is remembered of a token is of no use without its signature.
func TestOneTokenOpensAgainAndItsForgeriesNever(t *testing.T) {
	t.Parallel()
	s, err := NewSigner([]byte(strings.Repeat("s", 32)), "")
	if err != nil {
		t.Fatal(err)
	}
	issued := make([]string, 2*maxOpened+1) // more than are remembered
	for i := range issued {
		issued[i] = string(s.Append(nil, &Claims{Subject: "u", Session: "S", Generation: i, IssuedAt: 1, ExpiresAt: 2, Username: "kim", Role: "user"}))
	}
	for range 2 {
		for i, token := range issued {
			if c, err := s.Open(token); err != nil || c.Generation != i || c.Username != "kim" {
				t.Fatalf("token %d opens as %+v, %v", i, c, err)
			}
			other := issued[(i+1)%len(issued)]
			message, signature := token[:len(token)-encodedMACLen], other[len(other)-encodedMACLen:]
			for _, forged := range []string{message + signature, token[:len(token)-1] + "!", token + "A", token[:len(token)-1]} {
				if c, err := s.Open(forged); err != ErrMalformed {
					t.Fatalf("%s is accepted: %+v, %v", forged, c, err)
				}
			}
		}
	}
	if n := len(s.opened.known); n == 0 || n > maxOpened {
		t.Errorf("%d tokens are remembered", n)
	}
}

// TestTokenIDsAreCanonical: a signed token whose id is not written as the hub writes it is not the hub's.
func TestTokenIDsAreCanonical(t *testing.T) {
	t.Parallel()
	s, err := NewSigner([]byte(strings.Repeat("s", 32)), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []Kind{Access, Refresh} {
		c := Claims{Kind: k, Subject: "u", Session: "S", Generation: 10, IssuedAt: 1, ExpiresAt: 2, Username: "kim", Role: "user"}
		payload := string(c.AppendJSON(nil))
		letter := string(k.letter())
		canonical := `"jti":"S.10` + letter + `"`
		if !strings.Contains(payload, canonical) {
			t.Fatal(payload)
		}
		for _, id := range []string{"S.10", "S.010" + letter, "S.00010" + letter, "S.+10" + letter, "S.-10" + letter, "S.10.0" + letter, "S.1e1" + letter,
			"S.0xa" + letter, "S. 10" + letter, "S.10" + letter + letter, "S.10" + strings.ToUpper(letter), "S.1_0" + letter, "T.10" + letter, "S10" + letter,
			".10" + letter, "S." + letter, "S.2147483648" + letter, "S.4294967306" + letter, "S.１０" + letter, ""} {
			token := s.SignPayload(k, []byte(strings.Replace(payload, canonical, `"jti":"`+id+`"`, 1)))
			if _, err := s.Open(token); err != ErrMalformed {
				t.Errorf("%v token with the id %q: %v", k, id, err)
			}
		}
		if got, err := s.Open(s.SignPayload(k, []byte(payload))); err != nil || got.Generation != 10 {
			t.Errorf("%v token: %+v %v", k, got, err)
		}
	}
}
