// turns.go owns the slots in which hashes run. When all slots are taken, the hubs take turns, and within a hub the
// login that came first goes first.

package passwd

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	hashWait = 20 * time.Second // how long a login waits for its turn

	// maxWaiting is how many logins hash or wait at once. Hubs that wait share these places, and each has at least
	// minWaiting.
	maxWaiting = 1_000
	minWaiting = 8
)

// slots are shared by the hubs of a process.
type slots struct {
	mu    sync.Mutex
	free  int
	lines []*line // of the hubs with waiting logins, in the order of their turns
}

// line holds the logins of one hub that hash or wait.
type line struct {
	running int
	waiting []chan struct{} // oldest first; closed when that login has a slot
}

// take returns when the calling login has a slot. l is its hub's line. Errors: ErrBusy, context errors.
func (s *slots) take(ctx context.Context, l *line) error {
	turn, err := s.enter(ctx, l)
	if turn == nil || err != nil {
		return err
	}
	patience := time.NewTimer(hashWait)
	defer patience.Stop()
	select {
	case <-turn:
		return nil
	case <-patience.C:
		err = ErrBusy
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.leave(l, turn)
	return err
}

// enter takes a free slot and returns nil, or takes a place in the line and returns what is closed when its turn has
// come.
func (s *slots) enter(ctx context.Context, l *line) (turn chan struct{}, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free > 0 {
		s.free--
		l.running++
		return nil, nil
	}
	waitingHubs := len(s.lines)
	if len(l.waiting) == 0 {
		waitingHubs++
	}
	if l.running+len(l.waiting) >= max(minWaiting, maxWaiting/waitingHubs) {
		return nil, ErrBusy
	}
	if len(l.waiting) == 0 {
		s.lines = append(s.lines, l)
	}
	turn = make(chan struct{})
	l.waiting = append(l.waiting, turn)
	return turn, nil
}

// leave gives up the place in the line, or the slot if the turn has come meanwhile.
func (s *slots) leave(l *line, turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(l.waiting, turn)
	if at < 0 {
		s.releaseLocked(l)
		return
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
	if len(l.waiting) == 0 {
		s.lines = slices.DeleteFunc(s.lines, func(other *line) bool { return other == l })
	}
}

// release passes the slot of a login of l to the next login that waits.
func (s *slots) release(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked(l)
}

func (s *slots) releaseLocked(l *line) {
	l.running--
	if len(s.lines) == 0 {
		s.free++
		return
	}
	next := s.lines[0]
	s.lines = s.lines[1:]
	close(next.waiting[0])
	next.waiting = next.waiting[1:]
	next.running++
	if len(next.waiting) > 0 {
		s.lines = append(s.lines, next)
	}
}

func (s *slots) count(l *line) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.running + len(l.waiting)
}
