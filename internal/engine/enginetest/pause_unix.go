//go:build unix

package enginetest

import "syscall"

// Pause stops a node's process without ending it, as a machine that hangs; Resume lets it go on.
func (c *Cluster) Pause(i int)  { c.signal(i, syscall.SIGSTOP) }
func (c *Cluster) Resume(i int) { c.signal(i, syscall.SIGCONT) }
