// Package request reads what requests bring: bodies of JSON and forms, queries, paths, and bearer tokens.
//
// request.go owns what stands outside of the body.
package request

import (
	"net/http"
	"net/url"
	"strings"

	"authhub/internal/reply"
)

// Query returns the parameters of r's query. Errors: a 422 for a query of which a part can't be read.
func Query(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, reply.Invalid("query", "must be name=value pairs with & between them, percent-encoded")
	}
	return query, nil
}

var (
	tokenMissing   = reply.Fail(http.StatusUnauthorized, "token_missing", "This operation needs a token: Authorization: Bearer TOKEN.")
	tokenAmbiguous = reply.Fail(http.StatusUnauthorized, "token_malformed", "The request has more than one Authorization header. Send one.")
)

// Bearer returns the token of the Authorization header (RFC 6750 section 2.1; the scheme in any case, RFC 9110
// section 11.1), and ignores the other places of RFC 6750, form and address. Errors: a 401.
func Bearer(r *http.Request) (string, error) {
	given := r.Header["Authorization"]
	if len(given) == 0 {
		return "", tokenMissing
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", tokenMissing
	}
	if len(given) > 1 {
		return "", tokenAmbiguous
	}
	if token = strings.TrimLeft(token, " "); token == "" {
		return "", tokenMissing
	}
	return token, nil
}

// SafePath returns a path for the log and the record: each of its parts is cut short, so that no token that a client
// puts there by mistake is kept whole.
func SafePath(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 8 {
		parts = append(parts[:8], "…")
	}
	for i, p := range parts {
		if len(p) > 24 {
			parts[i] = strings.ToValidUTF8(p[:16], "") + "…"
		}
	}
	return strings.Join(parts, "/")
}
