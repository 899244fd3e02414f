// check.go checks whether users and sessions from elsewhere keep the rules of the store.

package account

import (
	"errors"
	"fmt"
	"time"

	"authhub/internal/passwd"
)

// Check checks whether a store with the seeds of s can take users and sessions as they are, in the place of what it
// has. It calls fault for each thing that is wrong, with its place, such as users.3.
func (s *Embedded) Check(users []UserRecord, sessions []Session, fault func(place, detail string)) {
	seeds := s.Seeds()
	if len(users)+len(seeds) > MaxUsers {
		fault("users", fmt.Sprintf("must be at most %d", MaxUsers))
	}
	probe, _ := NewMemory(seeds)
	for i := range users {
		if err := users[i].check(probe); err != nil {
			fault(fmt.Sprintf("users.%d", i), err.Error())
		}
	}
	ids := make(map[string]bool, len(sessions))
	of := make(map[string]int)
	for i, s := range sessions {
		of[s.User]++
		if err := s.check(); err != nil {
			fault(fmt.Sprintf("sessions.%d", i), err.Error())
		} else if probe.users[s.User] == nil || of[s.User] > MaxSessionsPerUser || ids[s.ID] {
			fault(fmt.Sprintf("sessions.%d", i), fmt.Sprintf("must have an id of its own and be of one of users or of the seeds, with at most %d sessions a user", MaxSessionsPerUser))
		}
		ids[s.ID] = true
	}
}

// check checks a user by the rules of register and, if it keeps them, adds it to probe.
func (r *UserRecord) check(probe *Embedded) error {
	seed := probe.seeds[r.ID]
	if r.Gone && seed != nil && probe.users[r.ID] == seed {
		probe.removeUser(r.ID)
		return nil
	}
	u, err := r.User(seed)
	switch {
	case r.Gone:
		return errors.New("must have the id of a seed to be gone")
	case err != nil:
		return err
	case u.Credential.Costly():
		return passwd.ErrTooManyRounds
	case !isWordID(r.ID) || probe.users[r.ID] != seed || probe.gone[r.ID]:
		return errors.New("must have an id of its own")
	case FaultOf("username", r.Username)+FaultOf("email", r.Email)+FaultOf("name", r.Name) != "":
		return errors.New("must have username, email and name as register takes them")
	case r.Role != "user" && r.Role != "admin" || !inRange(r.Created):
		return errors.New(`must have the role "user" or "admin", and created in the years 1970 to 2199`)
	}
	if err := probe.freeFor(u); err != nil {
		return err
	}
	probe.addUser(u)
	return nil
}

func (s *Session) check() error {
	switch {
	case !isWordID(s.ID):
		return errors.New("must have an id")
	case !inRange(s.Created) || !inRange(s.Issued):
		return errors.New("must have created and issued in the years 1970 to 2199")
	case s.AccessTTL <= 0 || s.AccessTTL > MaxTTL.Milliseconds() || s.RefreshTTL <= 0 || s.RefreshTTL > MaxTTL.Milliseconds():
		return errors.New("must have access_ttl and refresh_ttl above 0 and of at most ten years")
	case s.Behind < 0 || s.Behind > s.Generation:
		return errors.New("must have behind from 0 to gen")
	case s.Skipped < 0 || s.Skipped > s.Generation:
		return errors.New("must have skipped from 0 to gen")
	case s.Generation < 0 || s.Generation >= 1<<30 || s.AccessFrom < 0 || s.AccessFrom > s.Generation+1 || s.RefreshFrom < 0 || s.RefreshFrom > s.Generation+1:
		return errors.New("must have generations from 0 on")
	}
	return nil
}

// isWordID reports whether s may stand in a token as it is: 1 to 64 bytes of what ids are made of.
func isWordID(s string) bool { return isWord(s, 1, maxWord, "._@+-") }

// inRange reports whether ms, in milliseconds since the Unix epoch, is in the years 1970 to 2199.
func inRange(ms int64) bool {
	return ms >= 0 && ms < time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
}
