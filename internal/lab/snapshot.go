// Snapshots: the whole state of a bench as JSON, and back.
//
// The seeds are not in it: they are the hub's own and always there. Neither are the request record, the failed logins
// and the record of the latest run; putting a snapshot back empties them, as reset does.

package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"authhub/internal/account"
	"authhub/internal/dialect"
	"authhub/internal/lab/fault"
	"authhub/internal/lab/strict"
	"authhub/internal/reply"
	"authhub/internal/request"
	"authhub/internal/results"
)

const (
	snapshotVersion  = 1
	maxSnapshot      = 64 << 20 // bytes of JSON
	maxSnapshotFiles = 40 << 20 // bytes of the three files
)

// state is what reset and snapshots put in the place of what there is. The zero value is the seeds alone.
type state struct {
	clock     clockSetting
	policy    policy
	lifetimes lifetimes
	dialect   *dialect.Dialect // nil: none
	faults    []*fault.Fault
	users     []account.UserRecord
	sessions  []account.Session
	modified  time.Time
	files     *[results.Count][]byte // nil: none is available
}

// snapshot is the form of a state in JSON.
type snapshot struct {
	Version   int                  `json:"version"`
	Time      snapshotTime         `json:"time"`
	Policy    policyView           `json:"policy"`
	Lifetimes *lifetimesView       `json:"lifetimes,omitempty"` // that a test has set
	Dialect   json.RawMessage      `json:"dialect,omitempty"`   // a description
	Faults    []json.RawMessage    `json:"faults"`              // those not spent, as if ordered anew
	Users     []account.UserRecord `json:"users"`
	Sessions  []account.Session    `json:"sessions"`
	Files     *snapshotFiles       `json:"files"`
}

// snapshotTime is either of its members.
type snapshotTime struct {
	OffsetMS int64      `json:"offset_ms,omitempty"`
	FrozenAt *time.Time `json:"frozen_at,omitempty"`
}

// snapshotFiles is the three files, when all are available.
type snapshotFiles struct {
	Modified time.Time `json:"modified"`
	Barrier  []byte    `json:"barrier"`
	Impact   []byte    `json:"impact"`
	Alerts   []byte    `json:"alertesph"`
}

func (b *bench) takeSnapshot(w http.ResponseWriter, _ *http.Request) error {
	b.changing.Lock()
	defer b.changing.Unlock()
	h := b.hub.Load()
	s := snapshot{Version: snapshotVersion, Policy: b.policy.Load().view(), Faults: b.faults.Orders()}
	if setting := b.clock.setting.Load(); setting.frozen {
		s.Time.FrozenAt = &setting.at
	} else {
		s.Time.OffsetMS = setting.offset.Milliseconds()
	}
	if set := *b.ordered.Load(); set != (lifetimes{}) {
		s.Lifetimes = viewSet(set)
	}
	if d := b.dialect.Load(); d != nil {
		s.Dialect = d.Description()
	}
	s.Users, s.Sessions = h.Store.Contents()
	var err error
	if s.Files, err = takeFiles(h.Folder); err != nil {
		return err
	}
	return reply.WriteJSON(w, http.StatusOK, s)
}

// takeFiles returns the three files if all are available, else nil. Errors: a 507 if they are too large;
// results.ErrBroken.
func takeFiles(f *results.Folder) (*snapshotFiles, error) {
	contents, modified, err := f.Contents(maxSnapshotFiles)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, results.ErrTooLarge) {
		return nil, reply.Fail(http.StatusInsufficientStorage, "snapshot_too_large",
			fmt.Sprintf("The three files have more than %d bytes, too many for a snapshot.", maxSnapshotFiles))
	}
	if err != nil {
		return nil, err
	}
	return &snapshotFiles{modified, contents[results.Barrier], contents[results.Impact], contents[results.Alerts]}, nil
}

// publish brings the files to what the state says.
func (s *state) publish(f *results.Folder) error {
	if s.files == nil {
		return f.Clear()
	}
	return f.Publish(func(file results.File, w io.Writer) error {
		_, err := w.Write(s.files[file])
		return err
	}, s.modified)
}

func (b *bench) putSnapshot(w http.ResponseWriter, r *http.Request) error {
	body, err := request.ReadRawJSON(w, r, maxSnapshot)
	if err != nil {
		return err
	}

	var given snapshot
	if err := decodeStrict(body, &given); err != nil {
		return err
	}
	b.changing.Lock()
	defer b.changing.Unlock()
	s, err := given.state(b)
	if err != nil {
		return err
	}

	if err := b.replace(r.Context(), s); err != nil {
		return err
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}

// decodeStrict reads one JSON value and nothing else, without unknown members, into v.
func decodeStrict(body []byte, v any) error {
	if !utf8.Valid(body) {
		return unreadable("The body is not valid UTF-8.")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	err := decoder.Decode(v)
	var wrongType *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		if _, err := decoder.Token(); err != io.EOF {
			return unreadable("Something follows the JSON object.")
		}
		return nil
	case errors.As(err, &wrongType) && wrongType.Field != "":
		return reply.Invalid(wrongType.Field, "must not be "+wrongType.Value)
	case errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || wrongType != nil:
		return unreadable("The body is not a JSON object.")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok { // encoding/json has no type for this error
		return reply.Invalid(strings.Trim(name, `"`), "is not a known member")
	}
	return reply.Invalid("snapshot", "has a value of the wrong form: "+err.Error())
}

func unreadable(detail string) error {
	return reply.Fail(http.StatusBadRequest, "malformed_body", detail)
}

// state checks everything that a snapshot says. It changes nothing.
func (s *snapshot) state(b *bench) (*state, error) {
	in := new(strict.Form)
	checked := &state{users: s.Users, sessions: s.Sessions}
	if s.Version != snapshotVersion {
		in.Fault("version", fmt.Sprintf("must be %d", snapshotVersion))
	}
	checked.clock = s.Time.setting(b.clock.real(), in)
	set := strict.New(s.Policy.members())
	checked.policy = readPolicy(set)
	in.Adopt("policy", set)
	if s.Lifetimes != nil {
		set := strict.New(s.Lifetimes.members())
		checked.lifetimes = readLifetimes(set, lifetimes{})
		in.Adopt("lifetimes", set)
	}
	if s.Dialect != nil {
		checked.dialect = readDialect(s.Dialect, &in.Form)
	}
	checked.faults = readFaults(s.Faults, in)
	b.hub.Load().Store.Check(s.Users, s.Sessions, in.Fault)
	if s.Files != nil {
		checked.modified, checked.files = s.Files.Modified, &[results.Count][]byte{s.Files.Barrier, s.Files.Impact, s.Files.Alerts}
		if !canTell(s.Files.Modified) {
			in.Fault("files.modified", "must be in the years 1970 to 2199")
		}
	}
	return checked, in.Err()
}

// readFaults reads the faults of a snapshot.
func readFaults(orders []json.RawMessage, in *strict.Form) (faults []*fault.Fault) {
	if len(orders) > fault.MaxFaults {
		in.Fault("faults", fmt.Sprintf("must be at most %d", fault.MaxFaults))
	}
	for i, order := range orders {
		place := fmt.Sprintf("faults.%d", i)
		var members map[string]any
		if decodeStrict(order, &members) != nil || members == nil {
			in.Fault(place, "must be an object")
		}
		f := strict.New(members)
		f.Only(fault.Names...)
		faults = append(faults, fault.Read(f, operationNames))
		in.Adopt(place, f)
	}
	return faults
}

func (t snapshotTime) setting(real time.Time, in *strict.Form) clockSetting {
	if t.FrozenAt != nil {
		if !canTell(*t.FrozenAt) || t.OffsetMS != 0 {
			in.Fault("time.frozen_at", "must be in the years 1970 to 2199, and alone")
		}
		return clockSetting{frozen: true, at: *t.FrozenAt}
	}
	offset := time.Duration(t.OffsetMS) * time.Millisecond
	if offset.Milliseconds() != t.OffsetMS || !canTell(real.Add(offset)) {
		in.Fault("time.offset_ms", "leads out of the years 1970 to 2199")
	}
	return clockSetting{offset: offset}
}

// canTell reports whether t is within what a hub can tell, the years 1970 to 2199.
func canTell(t time.Time) bool { return !t.Before(earliestTime) && t.Before(latestTime) }
