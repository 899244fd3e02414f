// body.go reads whole bodies: their size, their media type, their coding.

package request

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"authhub/internal/reply"
)

const MaxBody = 64 << 10 // bytes of a JSON or form body

// ReadForm reads the body of r: JSON or application/x-www-form-urlencoded, at most 64 KiB, in UTF-8. If mayBeEmpty, no
// body is an empty form. ReadForm ignores the query, because queries end up in logs and histories. Errors: a 400, 413
// or 415.
func ReadForm(w http.ResponseWriter, r *http.Request, mayBeEmpty bool) (*Form, error) {
	body, err := readBody(w, r, MaxBody)
	if err != nil {
		return nil, err
	}
	if mayBeEmpty && len(body) == 0 {
		return &Form{}, nil
	}
	if err := CheckCoding(r); err != nil {
		return nil, err
	}
	mediaType, err := mediaTypeOf(r)
	switch {
	case err == nil && mediaType == "application/json":
		members, err := parseObject(body)
		return &Form{Members: members}, err
	case err == nil && mediaType == "application/x-www-form-urlencoded":
		members, err := parseURLEncoded(body)
		return &Form{Members: members}, err
	}
	return nil, reply.Fail(http.StatusUnsupportedMediaType, "unsupported_media_type",
		"Send the body as application/json or application/x-www-form-urlencoded, and say so in Content-Type.")
}

// ReadJSON reads a JSON body of at most 64 KiB. It may leave out Content-Type but must not name another media type.
func ReadJSON(w http.ResponseWriter, r *http.Request, mayBeEmpty bool) (*Form, error) {
	body, err := ReadRawJSON(w, r, MaxBody)
	if err != nil || mayBeEmpty && len(body) == 0 {
		return &Form{}, err
	}
	members, err := parseObject(body)
	return &Form{Members: members}, err
}

// CheckCoding refuses a body in a content coding such as gzip (RFC 9110 section 15.5.16): the hub takes bodies as they
// are.
func CheckCoding(r *http.Request) error {
	coding := r.Header.Get("Content-Encoding")
	if coding == "" || strings.EqualFold(coding, "identity") {
		return nil
	}
	e := reply.Fail(http.StatusUnsupportedMediaType, "unsupported_media_type", "Send the body as it is, without Content-Encoding.")
	e.Header = http.Header{"Accept-Encoding": {"identity"}}
	return e
}

// ReadRawJSON reads a body that says that it is JSON, or does not say what it is. An empty body may say anything.
func ReadRawJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := readBody(w, r, limit)
	if err == nil && len(body) > 0 {
		err = checkJSON(r)
	}
	if err == nil {
		err = checkText(body)
	}
	return body, err
}

// checkJSON returns a 415 if the body says that it is something else than JSON, or JSON in a content coding.
func checkJSON(r *http.Request) error {
	if err := CheckCoding(r); err != nil || r.Header["Content-Type"] == nil {
		return err
	}
	if mediaType, err := mediaTypeOf(r); err != nil || mediaType != "application/json" {
		return reply.Fail(http.StatusUnsupportedMediaType, "unsupported_media_type", "Send the body as application/json, and say so in Content-Type.")
	}
	return nil
}

// mediaTypeOf returns what Content-Type says, without parameters. Nearly every client has none.
func mediaTypeOf(r *http.Request) (string, error) {
	given := r.Header.Get("Content-Type")
	if given == "application/json" {
		return given, nil
	}
	mediaType, _, err := mime.ParseMediaType(given)
	return mediaType, err
}

// readBody returns the whole body, or the answer to one that is too large, too slow or cut short.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	var body []byte
	var err error
	if r.ContentLength < 0 { // not told
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	} else {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	}
	if err != nil {
		return nil, BodyError(err)
	}
	return body, nil
}

// BodyError is the answer to a body that could not be read to its end: the client's doing, one way or another.
func BodyError(err error) error {
	var tooMuch *http.MaxBytesError
	if errors.As(err, &tooMuch) {
		return tooLarge(tooMuch.Limit)
	}
	return malformed("The body ended too early.")
}

func tooLarge(limit int64) *reply.Error {
	return reply.Fail(http.StatusRequestEntityTooLarge, "body_too_large", "The body is larger than "+strconv.FormatInt(limit, 10)+" bytes. Send a smaller one.")
}

func malformed(detail string) *reply.Error {
	return reply.Fail(http.StatusBadRequest, "malformed_body", detail)
}
