// Forgeries: tokens that this hub did not issue, or did not issue for this.
//
// The keys are derived here a second time from the hub's secret (HKDF-SHA256, RFC 5869), so that a forgery can be
// right in everything but what it is about, and so that tokens stay good from one version of the hub to the next.

package e2e

import (
	"crypto"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"strings"
	"sync"
	"testing"
)

const forgersSecret = "a secret that the forger knows, for once"

var b64 = base64.RawURLEncoding.EncodeToString

// Kinds of tokens, and the header of each.
const (
	access = iota
	refresh
)

var tokenHeaders = []string{b64([]byte(`{"alg":"HS256","typ":"at+jwt"}`)), b64([]byte(`{"alg":"HS256","typ":"rt+jwt"}`))}

// keysOfSecret derives the key of each kind.
func keysOfSecret(t *testing.T, secret, hub string) (keys [2][]byte) {
	t.Helper()
	for kind, name := range []string{"access", "refresh"} {
		key, err := hkdf.Key(sha256.New, []byte(secret), nil, "authhub "+name+" token v1 "+hub, sha256.Size)
		if err != nil {
			t.Fatal(err)
		}
		keys[kind] = key
	}
	return keys
}

// forger makes forgeries of one genuine token.
type forger struct {
	header, payload, mac string // encoded parts
	claims               string // the payload decoded
	kind                 int
	keys                 [2][]byte
}

func newForger(t *testing.T, kind int, genuine string) *forger {
	t.Helper()
	parts := strings.Split(genuine, ".")
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	return &forger{parts[0], parts[1], parts[2], string(claims), kind, keysOfSecret(t, forgersSecret, "")}
}

// sign returns a token of this payload as the hub itself would sign it.
func sign(kind int, keys [2][]byte, payload string) string {
	signed := tokenHeaders[kind] + "." + b64([]byte(payload))
	return signed + "." + b64(macOf(sha256.New, keys[kind], signed))
}

func (f *forger) sign(payload string) string { return sign(f.kind, f.keys, payload) }

// under returns the genuine claims under another header, with the MAC that the right key gives for it.
func (f *forger) under(header string) string {
	signed := b64([]byte(header)) + "." + f.payload
	return signed + "." + b64(macOf(sha256.New, f.keys[f.kind], signed))
}

func macOf(h func() hash.Hash, key []byte, message string) []byte {
	m := hmac.New(h, key)
	m.Write([]byte(message))
	return m.Sum(nil)
}

// claiming returns a token signed with the right key whose claims have old replaced by changed.
func (f *forger) claiming(old, changed string) string {
	if !strings.Contains(f.claims, old) {
		panic("no " + old + " in " + f.claims)
	}
	return f.sign(strings.Replace(f.claims, old, changed, 1))
}

// lastBits returns part with its last character replaced by one that differs in the unused bits alone.
func lastBits(part string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, part[len(part)-1])
	return part[:len(part)-1] + alphabet[last^1:last^1+1]
}

// forgeries returns tokens by what was done to them. None is the hub's own.
func (f *forger) forgeries(t *testing.T, foreign [2][]byte) map[string]string {
	t.Helper()
	forged := f.wrongMACs(t, foreign)
	maps.Copy(forged, f.wrongShapes())
	maps.Copy(forged, f.wrongClaims())
	for name, header := range wrongHeaders(f.typ()) {
		forged[name] = f.under(header)
		if strings.Contains(name, "one") || strings.Contains(name, "empty") {
			forged[name+", no MAC"] = b64([]byte(header)) + "." + f.payload + "."
		}
	}
	return forged
}

func (f *forger) typ() string { return []string{"at+jwt", "rt+jwt"}[f.kind] }

// wrongMACs are signed with what is not the key, or not signed.
func (f *forger) wrongMACs(t *testing.T, foreign [2][]byte) map[string]string {
	t.Helper()
	typ, key := f.typ(), f.keys[f.kind]
	signed := f.header + "." + f.payload
	return map[string]string{
		"foreign key":            sign(f.kind, foreign, f.claims),
		"key of the other type":  signed + "." + b64(macOf(sha256.New, f.keys[1-f.kind], signed)),
		"header of the other":    tokenHeaders[1-f.kind] + "." + f.payload + "." + f.mac,
		"empty key":              signed + "." + b64(macOf(sha256.New, nil, signed)),
		"HS384":                  b64([]byte(`{"alg":"HS384","typ":"`+typ+`"}`)) + "." + f.payload + "." + b64(macOf(sha512.New384, key, b64([]byte(`{"alg":"HS384","typ":"`+typ+`"}`))+"."+f.payload)),
		"HS512 under HS256":      signed + "." + b64(macOf(sha512.New, key, signed)),
		"RS256":                  f.rs256(t, typ),
		"SHA-256 without key":    signed + "." + b64(sum256(signed)),
		"MAC of the decoded":     signed + "." + b64(macOf(sha256.New, key, f.claims)),
		"MAC of zeros":           signed + "." + b64(make([]byte, 32)),
		"MAC cut to 16 bytes":    signed + "." + b64(macOf(sha256.New, key, signed)[:16]),
		"MAC longer":             signed + "." + b64(append(macOf(sha256.New, key, signed), 0)),
		"MAC in hex":             signed + "." + fmt.Sprintf("%x", macOf(sha256.New, key, signed)),
		"MAC in standard base64": signed + "." + strings.NewReplacer("-", "+", "_", "/").Replace(f.mac) + "=",
		"no MAC":                 signed + ".",
		"no MAC, no dot":         signed,
		"detached payload":       f.header + ".." + b64(macOf(sha256.New, key, signed)),
		"last bits of the MAC":   signed + "." + lastBits(f.mac),
		"a megabyte of claims":   sign(f.kind, foreign, `{"iss":"`+strings.Repeat("a", 1<<19)+`"}`),
	}
}

// wrongShapes are genuine parts put together wrongly, and what is no token at all.
func (f *forger) wrongShapes() map[string]string {
	signed := f.header + "." + f.payload
	genuine := signed + "." + f.mac
	return map[string]string{
		"no header":          "." + f.payload + "." + f.mac,
		"no payload":         f.header + ".." + f.mac,
		"dots alone":         "..",
		"one dot":            ".",
		"four parts":         genuine + "." + f.mac,
		"five parts (JWE)":   f.header + ".." + f.payload + "." + f.payload + "." + f.mac,
		"nested":             f.sign(`"` + genuine + `"`),
		"nested, bare":       f.sign(genuine),
		"JSON serialization": `{"payload":"` + f.payload + `","protected":"` + f.header + `","signature":"` + f.mac + `"}`,
		"first byte cut":     genuine[1:],
		"last byte cut":      genuine[:len(genuine)-1],
		"byte added":         genuine + "A",
		"padded header":      f.header + "=." + f.payload + "." + f.mac,
		"padded payload":     f.header + "." + f.payload + "=." + f.mac,
		"padded MAC":         genuine + "=",
		"upper case":         strings.ToUpper(genuine),
		"lower case":         strings.ToLower(genuine),
		"CR LF within":       f.header + ".\r\n" + f.payload + "." + f.mac,
		"LF behind":          genuine + "\n",
		"CR behind":          genuine + "\r",
		"NUL behind":         genuine + "\x00",
		"tab within":         f.header + ".\t" + f.payload + "." + f.mac,
		"space within":       f.header + "." + f.payload + ". " + f.mac,
		"percent-encoded":    strings.ReplaceAll(genuine, ".", "%2E"),
		"quoted":             `"` + genuine + `"`,
		"twice":              genuine + genuine,
		"twice, by comma":    genuine + "," + genuine,
		"wide dots":          strings.ReplaceAll(genuine, ".", "．"),
		"a megabyte":         strings.Repeat("A", 1<<20),
		"a megabyte of dots": strings.Repeat(".", 1<<20),
		"not UTF-8":          "\xff\xfe." + f.payload + "." + f.mac,
		"SQL":                "' OR 1=1 --",
	}
}

// wrongClaims are signed with the right key.
func (f *forger) wrongClaims() map[string]string {
	exp := f.claims[strings.Index(f.claims, `"exp":`):]
	exp = exp[:strings.IndexAny(exp, ",}")]
	odd := strings.TrimSuffix(f.claims, "}") + `,"x":"` + strings.Repeat("x", (3-(len(f.claims)+7)%3)%3+1) + `"}` // its last character has bits to spare
	twisted := f.header + "." + lastBits(b64([]byte(odd)))
	return map[string]string{
		"last bits of the payload": twisted + "." + b64(macOf(sha256.New, f.keys[f.kind], twisted)),
		"exp fractional too fine":  f.claiming(exp, `"exp":4000000000.0001`),
		"exp with exponent":        f.claiming(exp, `"exp":4e9`),
		"exp as text":              f.claiming(exp, `"exp":"4000000000"`),
		"exp missing":              f.claiming(","+exp, ""),
		"exp null":                 f.claiming(exp, `"exp":null`),
		"exp true":                 f.claiming(exp, `"exp":true`),
		"exp empty":                f.claiming(exp, `"exp":`),
		"exp beyond 64 bits":       f.claiming(exp, `"exp":99999999999999999999`),
		"exp beyond all years":     f.claiming(exp, `"exp":9007199254740993`),
		"exp NaN":                  f.claiming(exp, `"exp":NaN`),
		"exp hexadecimal":          f.claiming(exp, `"exp":0xffffffff`),
		"exp with a sign":          f.claiming(exp, `"exp":+4000000000`),
		"exp with a leading zero":  f.claiming(exp, `"exp":04000000000`),
		"exp with a bare point":    f.claiming(exp, `"exp":4000000000.`),
		"exp minus nothing":        f.claiming(exp, `"exp":-`),
		"exp with a negative zero": f.claiming(exp, `"exp":-0`),
		"exp twice":                f.claiming(exp, `"exp":1,"exp":4000000000`),
		"iss of another":           f.claiming(`"authhub"`, `"evil"`),
		"iss in another case":      f.claiming(`"authhub"`, `"AuthHub"`),
		"sub twice":                f.claiming(`"sub":`, `"sub":"user-admin","sub":`),
		"sub escaped":              f.claiming(`"user-demo"`, `"user\u002ddemo"`),
		"jti of another session":   f.claiming(`"jti":"`, `"jti":"x`),
		"space in the claims":      f.claiming(`,"sub"`, `, "sub"`),
		"claims are no object":     f.sign(`[]`),
		"claims are empty":         f.sign(""),
		"claims are cut":           f.sign(f.claims[:len(f.claims)-1]),
		"claims go on":             f.sign(f.claims + " "),
	}
}

// wrongHeaders are headers other than that of a token of this type.
func wrongHeaders(typ string) map[string]string {
	return map[string]string{
		"alg none": `{"alg":"none","typ":"` + typ + `"}`, "alg None": `{"alg":"None","typ":"` + typ + `"}`, "alg NONE": `{"alg":"NONE","typ":"` + typ + `"}`, "alg nOnE": `{"alg":"nOnE","typ":"` + typ + `"}`,
		"alg empty": `{"alg":"","typ":"` + typ + `"}`, "alg null": `{"alg":null,"typ":"` + typ + `"}`, "no alg": `{"typ":"` + typ + `"}`, "alg hs256": `{"alg":"hs256","typ":"` + typ + `"}`,
		"alg twice": `{"alg":"none","alg":"HS256","typ":"` + typ + `"}`, "typ JWT": `{"alg":"HS256","typ":"JWT"}`, "no typ": `{"alg":"HS256"}`, "typ in another case": `{"alg":"HS256","typ":"` + strings.ToUpper(typ) + `"}`,
		"other order": `{"typ":"` + typ + `","alg":"HS256"}`, "space": `{"alg": "HS256","typ":"` + typ + `"}`, "space in front": ` {"alg":"HS256","typ":"` + typ + `"}`, "line end behind": `{"alg":"HS256","typ":"` + typ + `"}` + "\n",
		"crit": `{"alg":"HS256","typ":"` + typ + `","crit":["exp"],"exp":1}`, "b64 false": `{"alg":"HS256","typ":"` + typ + `","b64":false,"crit":["b64"]}`, "zip": `{"alg":"HS256","typ":"` + typ + `","zip":"DEF"}`,
		"jwk": `{"alg":"HS256","typ":"` + typ + `","jwk":{"kty":"oct","k":""}}`, "jku": `{"alg":"HS256","typ":"` + typ + `","jku":"http://evil.test/keys"}`, "x5u": `{"alg":"HS256","typ":"` + typ + `","x5u":"http://evil.test/c"}`,
		"kid of a path": `{"alg":"HS256","typ":"` + typ + `","kid":"../../../../dev/null"}`, "kid of SQL": `{"alg":"HS256","typ":"` + typ + `","kid":"x' UNION SELECT 'k'--"}`, "cty JWT": `{"alg":"HS256","typ":"` + typ + `","cty":"JWT"}`,
		"escaped": `{"alg":"\u0048S256","typ":"` + typ + `"}`, "empty header": ``, "header no object": `"HS256"`, "byte order mark": "\ufeff" + `{"alg":"HS256","typ":"` + typ + `"}`,
	}
}

func sum256(s string) []byte { sum := sha256.Sum256([]byte(s)); return sum[:] }

var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// rs256 is the classic: the algorithm says RSA, so that a public key would serve as the secret.
func (f *forger) rs256(t *testing.T, typ string) string {
	t.Helper()
	key, err := rsaKey()
	if err != nil {
		t.Fatal(err)
	}
	signed := b64([]byte(`{"alg":"RS256","typ":"`+typ+`"}`)) + "." + f.payload
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum256(signed))
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + b64(signature)
}

// TestForgeries shows each forgery of each type to each operation that takes a token. All are token_malformed, and
// the session they are made from is none the worse.
func TestForgeries(t *testing.T) {
	t.Parallel()
	h := startIn(t, []string{"AUTHHUB_SECRET=" + forgersSecret}, "-ephemeral")
	demo := h.login("demo")
	foreign := keysOfSecret(t, strings.Repeat("another secret ", 3), "")
	for kind, genuine := range []string{demo.Access, demo.Refresh} {
		f := newForger(t, kind, genuine)
		if f.sign(f.claims) != genuine {
			t.Fatal("the forger's own signature is not the hub's")
		}
		forged := f.forgeries(t, foreign)
		if len(forged) < 100 {
			t.Errorf("only %d kinds of forgery", len(forged))
		}
		for name, token := range forged {
			t.Run([]string{"access", "refresh"}[kind]+"/"+name, func(t *testing.T) {
				h := h.of(t)
				if len(token) < 16<<10 && !strings.ContainsAny(token, "\r\n\x00") { // more than net/http takes
					h.me(token).Want(401, "token_malformed")
					h.logout(token).Want(401, "token_malformed")
					h.post(refreshPath, nil, bearer(token)...).Want(401, "token_malformed")
				}
				if body, _ := json.Marshal(token); len(token) < 64<<10-100 && !strings.Contains(string(body), `\ufffd`) {
					h.refresh(token).Want(401, "token_malformed")
				}
			})
		}
	}
	h.me(demo.Access).Want(200)
	h.refresh(demo.Refresh).Want(200)
}

// TestMisuse shows the hub its own tokens where they don't belong.
func TestMisuse(t *testing.T) {
	t.Parallel()
	h := startIn(t, []string{"AUTHHUB_SECRET=" + forgersSecret}, "-ephemeral", "-lab")
	demo := h.login("demo")
	for _, other := range []*hub{start(t, "-ephemeral"), h.space("a")} {
		other.me(demo.Access).Want(401, "token_malformed")
		other.refresh(demo.Refresh).Want(401, "token_malformed")
		other.logout(demo.Refresh).Want(401, "token_malformed")
	}

	h.me(demo.Refresh).Want(401, "token_wrong_type")
	h.refresh(demo.Access).Want(401, "token_wrong_type")
	for _, place := range []string{mePath + "?access_token=" + demo.Access, mePath + "?token=" + demo.Access} {
		h.get(place).Want(401, "token_missing")
	}
	h.get(mePath, "Cookie", "access_token="+demo.Access).Want(401, "token_missing")
	h.get(mePath, "Proxy-Authorization", "Bearer "+demo.Access).Want(401, "token_missing")
	h.get(mePath, "X-Authorization", "Bearer "+demo.Access).Want(401, "token_missing")
	h.get(mePath, "Authorization", "Bearer "+demo.Access, "Authorization", "Bearer "+demo.Access).Want(401, "token_malformed")

	// Signed with the right key, but over, never begun, or of a session that never was.
	f := newForger(t, access, demo.Access)
	exp := f.claims[strings.Index(f.claims, `"exp":`):]
	exp = exp[:strings.IndexAny(exp, ",}")]
	for _, changed := range []string{`"exp":0`, `"exp":-1`, `"exp":-1125899906842624`, `"exp":0.001`} {
		h.me(f.claiming(exp, changed)).Want(401, "token_expired")
	}
	h.me(f.claiming(exp, `"exp":1125899906842624`)).Want(200) // the largest there is, and this hub's own key
	h.me(f.sign(strings.ReplaceAll(f.claims, sid(t, demo.Access), "never"))).Want(401, "token_revoked")

	// A role that was claimed is not the role that is answered.
	if role := h.me(f.claiming(`"role":"user"`, `"role":"admin"`)).Want(200).Text("role"); role != "user" {
		t.Errorf("role %s", role)
	}
	future := newForger(t, refresh, demo.Refresh)
	h.refresh(future.sign(strings.NewReplacer(`"gen":0`, `"gen":7`, `.0r"`, `.7r"`).Replace(future.claims))).Want(401, "token_revoked")
	h.refresh(demo.Refresh).Want(200)
}
