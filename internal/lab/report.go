// The report: a judgement on the client by what it has sent (internal/lab/judge).

package lab

import (
	"context"
	"net/http"
	"time"

	"authhub/internal/lab/judge"
	"authhub/internal/lab/record"
	"authhub/internal/lab/strict"
	"authhub/internal/reply"
)

// patience is how long a report waits at most for what is still open.
const patience = 2 * time.Second

// findingView is a finding or a note as clients see it.
type findingView struct {
	Rule     string  `json:"rule"`
	Sentence string  `json:"sentence"`
	Session  *string `json:"session"`
	Seqs     []int   `json:"seqs"`
}

func viewFindings(findings []judge.Finding) []findingView {
	views := make([]findingView, len(findings))
	for i, f := range findings {
		views[i] = findingView{f.Rule, f.Sentence, record.Known(f.Session), f.Seqs}
	}
	return views
}

// showReport answers with the verdict once it does not depend on what the client may still do in time.
func (b *bench) showReport(w http.ResponseWriter, r *http.Request) error {
	in, err := strict.ReadQuery(r, nil, "within")
	if err != nil {
		return err
	}
	within := in.Span("within", time.Millisecond, patience)
	if !in.Has("within") {
		within = patience
	}
	if err := in.Err(); err != nil {
		return err
	}

	verdict, requests, overwritten := b.settledVerdict(r, within)

	return reply.WriteJSON(w, http.StatusOK, struct {
		Findings    []findingView `json:"findings"`
		Notes       []findingView `json:"notes"`
		Requests    int           `json:"requests"`
		Overwritten int           `json:"overwritten"`
	}{viewFindings(verdict.Findings), viewFindings(verdict.Notes), requests, overwritten})
}

// settledVerdict judges the record when nothing about it is open any more, and after that time at the latest.
func (b *bench) settledVerdict(r *http.Request, within time.Duration) (verdict judge.Verdict, requests, overwritten int) {
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	for {
		last := ctx.Err() != nil || b.ctx.Err() != nil
		verdict, requests, overwritten, changed := b.verdict()
		if verdict.Open == 0 || last {
			return verdict, requests, overwritten
		}
		open := time.NewTimer(verdict.Open)
		select {
		case <-changed:
		case <-open.C:
		case <-ctx.Done():
		case <-b.ctx.Done():
		}
		open.Stop()
	}
}

// verdict judges the record as it stands. changed is closed when that is no longer how it stands.
func (b *bench) verdict() (v judge.Verdict, requests, overwritten int, changed <-chan struct{}) {
	record, ended, overwritten, changed := b.requests.Exchanges()
	return judge.Judge(record, judge.Mark{Hub: b.clock.now(), Machine: time.Now()}, ended), len(record), overwritten, changed
}
