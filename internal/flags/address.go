// Addresses: of hubs and of the origins of pages, in the form that browsers send.

package flags

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

func (o *Options) setBaseURL(text string) (err error) {
	if text != "" {
		o.BaseURL, err = Address(text)
	}
	return err
}

// Address returns the address of a hub as browsers write it: scheme and host in lower case, without the port that the
// scheme implies and without a slash at the end.
func Address(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.HasSuffix(u.Host, ":") || strings.ContainsAny(base, "?#") {
		return "", fmt.Errorf("%q is not an http or https address", base)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return "", fmt.Errorf("%q has a port that is not a number from 1 to 65535", base)
	}
	u.Host = hostOf(u)
	return strings.TrimRight(u.String(), "/"), nil
}

// hostOf returns the host in lower case, without the port that the scheme implies (RFC 6454 section 6.2).
func hostOf(u *url.URL) string {
	implied := ":80"
	if u.Scheme == "https" {
		implied = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(u.Host), implied)
}

func (o *Options) setCORS(origins string) error {
	for text := range strings.SplitSeq(origins, ",") {
		text = strings.TrimSpace(text)
		switch text {
		case "":
			continue
		case "*":
			o.CORS = append(o.CORS, text)
			continue
		}
		origin, err := readOrigin(text)
		if err != nil {
			return err
		}
		o.CORS = append(o.CORS, origin)
	}
	return nil
}

// readOrigin returns an origin as browsers send it (RFC 6454 section 6.2).
func readOrigin(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") || strings.ContainsFunc(u.Host, func(c rune) bool { return c == '*' || c > '~' }) {
		return "", fmt.Errorf("%q is not an origin such as https://app.example (names in other scripts as xn--…)", text)
	}
	origin := u.Scheme + "://" + hostOf(u)
	if u.User != nil || u.Path != "" || strings.ContainsAny(text, "?#") {
		return "", fmt.Errorf("%q is more than an origin, which ends with host and port; say %s", text, origin)
	}
	return origin, nil
}
