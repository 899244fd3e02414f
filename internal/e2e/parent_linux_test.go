package e2e

import "syscall"

// endWithParent has the kernel end a child when this process ends, however it ends.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
