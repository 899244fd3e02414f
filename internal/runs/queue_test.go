package runs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"authhub/internal/phase2"
	"authhub/internal/results"
)

const readings = phase2.Header + "\n2025-01-01T00:00:00Z,a,7.5\n"

// newQueue returns a queue on a temporary folder; report may be nil.
func newQueue(t *testing.T, report func(*Run)) (*Queue, *results.Folder) {
	t.Helper()
	if report == nil {
		report = func(*Run) {}
	}
	folder := results.Temporary()
	q := New(folder, func() time.Time { return time.Unix(1e9, 0) }, report)
	t.Cleanup(func() {
		q.Close()
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	return q, folder
}

// inputOf returns an input with this key and text.
func inputOf(key, text string) Input {
	return Input{Name: key, Key: key, Open: func() (io.ReadCloser, int64, error) {
		return io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
	}}
}

// ended starts a run and waits for its end.
func ended(t *testing.T, q *Queue, in Input) State {
	t.Helper()
	r, err := q.Start("id", phase2.Default(), in)
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	return r.State()
}

func TestARunPublishes(t *testing.T) {
	t.Parallel()
	q, folder := newQueue(t, nil)
	s := ended(t, q, inputOf("a", readings))
	if s.Err != nil || s.Progress != 1 || s.Finished.IsZero() || s.Screening.Accepted != 1 || s.Source.Bytes != int64(len(readings)) {
		t.Errorf("%+v", s)
	}
	if !folder.List()[results.Alerts].Available {
		t.Error("there are no files")
	}
}

// TestAnEndedRunIsNotJoined: a client that hears of the end of a run and asks again gets another run.
func TestAnEndedRunIsNotJoined(t *testing.T) {
	t.Parallel()
	heard := make(chan *Run, 1)
	var q *Queue
	q, _ = newQueue(t, func(r *Run) {
		if r.ID == "first" {
			again, err := q.Start("second", r.Parameters, r.Input)
			if err != nil {
				t.Error(err)
			}
			heard <- again
		}
	})
	first, err := q.Start("first", phase2.Default(), inputOf("a", readings))
	if err != nil {
		t.Fatal(err)
	}
	again := <-heard
	if again == first {
		t.Error("the run that has ended is joined")
	}
	<-first.Done()
	<-again.Done()
}

func TestAPanicEndsOneRunOnly(t *testing.T) {
	t.Parallel()
	q, _ := newQueue(t, nil)
	s := ended(t, q, Input{Key: "panics", Open: func() (io.ReadCloser, int64, error) { panic("a defect") }})
	if s.Err == nil || !strings.Contains(s.Err.Error(), "a defect") {
		t.Errorf("%v", s.Err)
	}
	if s := ended(t, q, inputOf("a", readings)); s.Err != nil {
		t.Error(s.Err)
	}
}

// TestAnInputThatCanNotBeOpened is at fault, unless the hub has no file descriptor left.
func TestAnInputThatCanNotBeOpened(t *testing.T) {
	t.Parallel()
	q, _ := newQueue(t, nil)
	for _, row := range []struct{ err, want error }{
		{&os.PathError{Op: "open", Err: os.ErrPermission}, phase2.ErrUnusable},
		{&os.PathError{Op: "open", Err: syscall.EMFILE}, syscall.EMFILE},
		{&os.PathError{Op: "open", Err: syscall.ENFILE}, syscall.ENFILE},
	} {
		in := Input{Name: "plant.csv", Key: row.err.Error(), Open: func() (io.ReadCloser, int64, error) { return nil, 0, row.err }}
		if s := ended(t, q, in); !errors.Is(s.Err, row.want) || row.want != phase2.ErrUnusable && errors.Is(s.Err, phase2.ErrUnusable) {
			t.Errorf("%v: %v", row.err, s.Err)
		}
	}
}

// TestNoRunBeginsAfterClose, wherever the two meet. Every input is dropped that nobody will read.
func TestNoRunBeginsAfterClose(t *testing.T) {
	t.Parallel()
	for i := range 200 {
		q, _ := newQueue(t, nil)
		var dropped, started sync.WaitGroup
		dropped.Add(1)
		in := inputOf(fmt.Sprint(i), readings)
		in.Drop = dropped.Done
		var r *Run
		var err error
		started.Go(func() { r, err = q.Start("id", phase2.Default(), in) })
		q.Close()
		latest := q.Latest()
		started.Wait()
		if err == nil && latest == nil {
			t.Fatal("a run began after Close")
		}
		if err != nil && !errors.Is(err, ErrBusy) {
			t.Fatal(err)
		}
		if err == nil {
			<-r.Done()
		}
		dropped.Wait()
	}
}

// TestWaitingRunsNeverStartAfterClose: their clients hear that the hub was stopped, and their inputs are dropped.
func TestWaitingRunsNeverStartAfterClose(t *testing.T) {
	t.Parallel()
	q, _ := newQueue(t, nil)
	gate := make(chan struct{})
	held := inputOf("held", readings)
	open := held.Open
	held.Open = func() (io.ReadCloser, int64, error) { <-gate; return open() }
	if _, err := q.Start("held", phase2.Default(), held); err != nil {
		t.Fatal(err)
	}
	drops := 0
	in := inputOf("waits", readings)
	in.Drop = func() { drops++ }
	in.Open = func() (io.ReadCloser, int64, error) { t.Error("it starts"); return nil, 0, io.EOF }
	waiting, err := q.Start("waits", phase2.Default(), in)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-q.ctx.Done()
		close(gate)
	}()
	q.Close()
	<-waiting.Done()
	if s := waiting.State(); !errors.Is(s.Err, q.ctx.Err()) || drops != 1 {
		t.Errorf("%v, dropped %d times", s.Err, drops)
	}
}
