// chain.go owns the checksums of the journal's lines. journal.go describes the format.

package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

const sumLen = 16 // hexadecimal digits of a checksum

// chain computes the checksums of successive lines.
type chain struct {
	sum    [sumLen]byte // of the last line
	digest hash.Hash
	raw    [sha256.Size]byte
}

func newChain() chain {
	c := chain{digest: sha256.New()}
	copy(c.sum[:], "0000000000000000")
	return c
}

// appendLine appends the line of one payload to out.
func (c *chain) appendLine(out, payload []byte) []byte {
	c.add(payload)
	out = append(append(out, payload...), ' ')
	return append(append(out, c.sum[:]...), '\n')
}

// accept splits a line, given without its end, and reports whether the checksum is right. If it is not, the chain
// can't be used any more.
func (c *chain) accept(line []byte) (payload []byte, ok bool) {
	at := len(line) - sumLen - 1
	if at < 0 || line[at] != ' ' {
		return nil, false
	}
	c.add(line[:at])
	return line[:at], bytes.Equal(line[at+1:], c.sum[:])
}

func (c *chain) add(payload []byte) {
	c.begin()
	c.digest.Write(payload)
	c.sum = c.digits()
}

// startsRecord reports whether tail, which has no line end, is a whole record and something after it.
func (c *chain) startsRecord(tail []byte) bool {
	c.begin()
	hashed := 0
	for at := range len(tail) - sumLen - 1 {
		if tail[at] != ' ' {
			continue
		}
		c.digest.Write(tail[hashed:at])
		hashed = at
		if digits := c.digits(); bytes.Equal(tail[at+1:at+1+sumLen], digits[:]) {
			return true
		}
	}
	return false
}

func (c *chain) begin() {
	c.digest.Reset()
	c.digest.Write(c.sum[:])
}

// digits is the checksum of what has been written to the digest.
func (c *chain) digits() (d [sumLen]byte) {
	hex.Encode(d[:], c.digest.Sum(c.raw[:0])[:sumLen/2])
	return d
}
