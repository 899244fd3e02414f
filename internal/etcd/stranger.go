// stranger.go tells what waiting does not cure: answers that no etcd gives, and certificates that the hub doesn't
// trust.

package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// remedy returns what the operator can do about err, the error of a request to n, if the next request will have the
// same; else "".
func (c *Client) remedy(ctx context.Context, n *node, err error) string {
	untrusted, noTLS := (*tls.CertificateVerificationError)(nil), tls.RecordHeaderError{}
	switch text := err.Error(); {
	case errors.As(err, &untrusted):
		return trust(untrusted.Err)
	case errors.As(err, &noTLS), errors.Is(err, http.ErrSchemeMismatch):
		return "write http:// into the address"
	case strings.Contains(text, "remote error: tls: ") && strings.Contains(text, "certificate"):
		return "the hub has none to show"
	case isNoHTTP(err):
		return "is this an etcd?"
	case errors.Is(err, io.EOF) && c.takesTLS(ctx, n):
		return "write https:// into the address"
	}
	return ""
}

// takesTLS reports whether n, which has an http address, takes TLS: an etcd that does closes other connections without
// an answer.
func (c *Client) takesTLS(ctx context.Context, n *node) bool {
	host, plain := strings.CutPrefix(n.address, "http://")
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, "https://"+host, nil)
	if err != nil || !plain {
		return false
	}
	response, err := c.http.Do(r)
	if err == nil {
		response.Body.Close()
	}
	return err == nil || errors.As(err, new(*tls.CertificateVerificationError))
}

// trust returns what the operator can do about a certificate that is refused with err.
func trust(err error) string {
	wrongName, unknown := x509.HostnameError{}, x509.UnknownAuthorityError{}
	switch {
	case errors.As(err, &wrongName):
		return "use one of these names"
	case errors.As(err, &unknown) && unknown.Cert != nil:
		return fmt.Sprintf("name a file with the certificate of %q in SSL_CERT_FILE", unknown.Cert.Issuer)
	}
	return "replace the certificate"
}

func isNoHTTP(err error) bool { return strings.Contains(err.Error(), "malformed HTTP") }
