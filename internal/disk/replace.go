// replace.go owns the replacement of one file by another: after a crash at any instant the file has the whole old
// content or the whole new content.
//
// These are the system calls on Linux, in their order:
//
//	open(DIR, O_RDONLY)                                        the folder, while an error is still harmless
//	open(DIR/name.tmp-RANDOM, O_RDWR|O_CREAT|O_EXCL, mode)     a new file in the folder, so on its file system
//	write(…)
//	fsync(file)                                                the content is on the disk before the name points to it
//	rename(DIR/name.tmp-RANDOM, DIR/name)                      the commit point for processes
//	fsync(folder)                                              the commit point for power cuts
//	close(…)
//
// A crash before the rename leaves a temporary file behind; RemoveLeftovers removes it.

package disk

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// ReplaceFile makes data the content of the file at path. If it returns nil, the content survives a power cut. After
// an error the file has its old content; if the rename or the sync after it failed, it has the old or the new
// content. The file gets mode, less the umask.
func ReplaceFile(d Disk, path string, data []byte, mode fs.FileMode) error {
	r, err := BeginReplacement(d, path, mode)
	if err != nil {
		return err
	}
	if _, err = r.Write(data); err == nil {
		err = r.Sync()
	}
	if err != nil {
		r.Abandon()
		return err
	}
	r.Close() // the content is synced, so this error can't matter; Windows renames closed files only
	return r.Place()
}

// Replacement is a file that is being written and is to take the place of another one.
type Replacement struct {
	File
	disk      Disk
	folder    Folder
	path, tmp string
}

// BeginReplacement makes an empty file beside the file at path. The caller writes and syncs it, and then calls Place,
// or calls Abandon.
func BeginReplacement(d Disk, path string, mode fs.FileMode) (*Replacement, error) {
	dir, err := d.OpenFolder(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	tmp := path + leftoverInfix + rand.Text()
	f, err := d.Create(tmp, mode)
	if err != nil {
		dir.Close()
		return nil, err
	}
	return &Replacement{File: f, disk: d, folder: dir, path: path, tmp: tmp}, nil
}

// Abandon removes the replacement. The file at path stays as it was.
func (r *Replacement) Abandon() {
	r.Close()
	r.folder.Close()
	r.disk.Remove(r.tmp) // if this fails, Settle does it at the next start
}

// Place gives the synced replacement the name of the file that it replaces. After an error it is unknown which of the
// two files has the name.
func (r *Replacement) Place() error {
	defer r.folder.Close()
	if err := r.disk.Rename(r.tmp, r.path); err != nil {
		r.disk.Remove(r.tmp)
		return err
	}
	return r.folder.Sync()
}

// leftoverInfix stands between the name of a file and the random part in the name of its temporary file.
const leftoverInfix = ".tmp-"

// Settle removes the temporary files that a crash has left beside the file at path, and makes the names in its folder
// durable. No replacement of that file may be under way.
func Settle(d Disk, path string) error {
	dir := filepath.Dir(path)
	if err := removeLeftovers(d, dir, filepath.Base(path)); err != nil {
		return fmt.Errorf("removing temporary files: %w", err)
	}
	if err := SyncFolder(d, dir); err != nil {
		return fmt.Errorf("syncing the folder: %w", err)
	}
	return nil
}

func removeLeftovers(d Disk, dir, base string) error {
	names, err := d.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, base+leftoverInfix) {
			continue
		}
		if err := d.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// SyncFolder makes the names in a folder durable.
func SyncFolder(d Disk, dir string) error {
	f, err := d.OpenFolder(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
