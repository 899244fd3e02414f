package results

import (
	"io/fs"
	"syscall"
)

// changeTime returns when the file was last changed in any way, which nobody can set; 0 if unknown.
func changeTime(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctim.Nano()
	}
	return 0
}
