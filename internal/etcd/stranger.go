// stranger.go tells what waiting does not cure: answers that no etcd gives, and certificates that the hub doesn't trust.

package etcd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// remedy returns what the operator can do about err, which sending a request had, if the next request will have the
// same; else "".
func remedy(err error) string {
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
	}
	return ""
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
