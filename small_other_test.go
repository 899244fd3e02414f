//go:build !linux

package main

import "errors"

func mountSmall(string, int) error { return errors.ErrUnsupported }
func unmount(string) error         { return nil }
