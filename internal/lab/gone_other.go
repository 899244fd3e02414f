//go:build !unix

package lab

// gone reports nothing here: that the client has closed the connection shows in the context of its request only.
func (c *connection) gone() bool { return false }
