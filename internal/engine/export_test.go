// What tests look at inside.

package engine

// Waiting returns how many reads wait for a transaction.
func (s *Store) Waiting() int {
	s.reads.mu.Lock()
	defer s.reads.mu.Unlock()
	return len(s.reads.waiting)
}
