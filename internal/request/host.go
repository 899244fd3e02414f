// host.go owns what a host names.

package request

import (
	"net"
	"net/netip"
	"strings"
)

// HostName returns a host without port, brackets and final dot, in lower case. Rebinding is a matter of names: the
// port is not looked at.
func HostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// IsLoopback reports whether a host, with or without a port, names this machine itself.
func IsLoopback(host string) bool {
	name := HostName(host)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") { // RFC 6761 section 6.3
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}
