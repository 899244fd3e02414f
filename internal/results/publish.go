// Publishing: how a new set takes the place of the old one, and what a crash or an error on the way leads to.
//
//	.staging/   the new files are written and synced here
//	.old/       each old file is moved here
//	.commit/    .staging is renamed to this: the commit point
//	NAME        each new file is moved from .commit to its place; then .old and .commit are removed
//
// Before the commit point recovery moves the old files back, after it the new files in. The old files are moved away
// first, so that a file that can't be replaced (immutable, or held open on Windows) fails a run before the commit
// point. Requests get the old files, wherever they are, until all of the new set is in place.

package results

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"authhub/internal/disk"
)

const (
	stagingName = ".staging"
	oldName     = ".old"
	commitName  = ".commit"
)

// replace puts the set that stage leaves in .staging in the place of the old one. stage returns the files' digests.
func (f *Folder) replace(stage func(disk.Tree) ([][]byte, error)) error {
	f.publishing.Lock()
	defer f.publishing.Unlock()
	tree, err := f.ready()
	if err == nil {
		err = f.recover(tree)
	}
	if err != nil {
		return disk.Full(err)
	}
	digests, err := stage(tree)
	if err == nil {
		err = f.commit(tree)
	}
	if err != nil {
		f.recover(tree) // if this fails, the next Publish tries again
		return disk.Full(err)
	}
	if err := f.finish(tree, digests); err != nil {
		return disk.Full(err)
	}
	f.sweep(tree) // likewise
	return nil
}

// stage writes the new set into .staging and returns the digest of each file.
func (f *Folder) stage(tree disk.Tree, write Writer, modified time.Time) ([][]byte, error) {
	if err := tree.MakeFolder(stagingName); err != nil {
		return nil, err
	}
	digests := make([][]byte, Count)
	for file := range digests {
		path := stagingName + "/" + File(file).Name()
		digest := newDigester()
		err := f.writeFile(tree, path, digest, func(w io.Writer) error { return write(File(file), w) })
		digests[file] = digest.end()
		if err == nil {
			err = tree.SetModified(path, modified)
		}
		if err != nil {
			return nil, err
		}
	}
	return digests, f.sync(tree, stagingName)
}

func (f *Folder) writeFile(tree disk.Tree, path string, digest io.Writer, write func(io.Writer) error) error {
	out, err := tree.Create(path)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(io.MultiWriter(out, digest), 64<<10)
	err = write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil && !f.temporary {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// digester takes the digest of what is written to it. A goroutine does the work, because it takes as long as writing
// does.
type digester struct {
	full, empty chan []byte
	digest      chan []byte
}

func newDigester() *digester {
	d := &digester{full: make(chan []byte, 2), empty: make(chan []byte, 2), digest: make(chan []byte, 1)}
	d.empty <- nil
	d.empty <- nil
	go func() {
		h := sha256.New()
		for b := range d.full {
			h.Write(b)
			d.empty <- b
		}
		d.digest <- h.Sum(nil)
	}()
	return d
}

func (d *digester) Write(b []byte) (int, error) {
	d.full <- append((<-d.empty)[:0], b...)
	return len(b), nil
}

// end returns the digest of all that was written. It must be called, and nothing may be written after it.
func (d *digester) end() []byte {
	close(d.full)
	return <-d.digest
}

// commit moves the old set into .old, where requests find it from then on, and renames .staging to .commit.
func (f *Folder) commit(tree disk.Tree) error {
	if err := f.held(); err != nil {
		return err
	}
	if err := tree.MakeFolder(oldName); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for file := range f.at {
		name := File(file).Name()
		if err := moveAway(tree, name); err != nil {
			return err
		}
		f.at[file] = oldName + "/" + name
	}
	return tree.Rename(stagingName, commitName)
}

// moveAway moves an old file into .old, if there is an old file. A folder of that name is not the hub's to remove.
func moveAway(tree disk.Tree, name string) error {
	info, err := tree.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%w: a folder stands where %s belongs", ErrBroken, name)
	}
	if err != nil {
		return err
	}
	return tree.Rename(name, oldName+"/"+name)
}

// finish moves what is in .commit to its place. Then requests get that set; digests are those of its files, or nil.
func (f *Folder) finish(tree disk.Tree, digests [][]byte) error {
	if err := f.sync(tree, "."); err != nil {
		return err
	}
	for file := range Count {
		name := File(file).Name()
		err := tree.Rename(commitName+"/"+name, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // moved before a crash
			return err
		}
	}
	if err := f.sync(tree, "."); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serveFromPlace(tree, digests)
	return nil
}

// undo moves what is in .old to its place, where there is no file. Then requests get that set.
func (f *Folder) undo(tree disk.Tree) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for file := range f.at {
		name := File(file).Name()
		_, err := tree.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			err = tree.Rename(oldName+"/"+name, name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		f.at[file] = name
	}
	if err := f.sync(tree, "."); err != nil {
		return err
	}
	f.serveFromPlace(tree, nil)
	return nil
}

// serveFromPlace has requests get the files in their places, under f.mu. What is remembered of other files is let go.
func (f *Folder) serveFromPlace(tree disk.Tree, digests [][]byte) {
	if digests == nil {
		digests = make([][]byte, Count)
	}
	f.at, f.broken = inPlace(), nil
	f.set++
	for file := range f.kept {
		f.kept[file].renew(tree, File(file).Name(), digests[file])
	}
}

// recover finishes or undoes what a crash, or a publish that failed, has left. Errors: ErrBroken.
func (f *Folder) recover(tree disk.Tree) error {
	committed, err := removeUnlessFolder(tree, commitName)
	begun := false
	if err == nil {
		begun, err = removeUnlessFolder(tree, oldName)
	}
	switch {
	case err != nil:
	case committed:
		err = f.finish(tree, nil)
	case begun || f.Err() != nil:
		err = f.undo(tree)
	}
	if err == nil {
		err = f.sweep(tree)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return nil
}

// removeUnlessFolder reports whether there is a folder of that name. Anything else of that name is removed: nothing is
// moved through a link.
func removeUnlessFolder(tree disk.Tree, name string) (bool, error) {
	info, err := tree.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || info.IsDir() {
		return err == nil, err
	}
	return false, tree.Remove(name)
}

// sweep removes what publishing needs besides the files. While .commit is there, a crash leads to finish, so .commit
// goes after .old.
func (f *Folder) sweep(tree disk.Tree) error {
	for _, name := range []string{oldName, commitName, stagingName} {
		if err := tree.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}
