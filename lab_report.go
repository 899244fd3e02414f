// The report: a judgement on the client by what it has sent.
//
// Each rule looks through the requests in the order of their arrival. Where a rule asks how long a client waited, the
// longer of two times counts, the machine's and the hub's: a test that turns the hub's clock has let the client wait,
// and so has one that stops it and sleeps. What a fault kept from the client is not held against it.

package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"authhub/internal/jwt"
	"authhub/internal/reply"
)

const (
	maxRepeats   = 3
	repeatWindow = 5 * time.Second
	reactionTime = time.Second // in which still comes what a client had begun before it heard
)

// finding is one thing that the client should not have done, and the requests that show it.
type finding struct {
	Rule     string  `json:"rule"`
	Sentence string  `json:"sentence"`
	Session  *string `json:"session"`
	Seqs     []int   `json:"seqs"`
}

func (b *bench) showReport(w http.ResponseWriter, _ *http.Request) error {
	l := &b.requests
	l.mu.Lock()
	all, overwritten := l.allLocked(), l.overwritten
	findings := judge(all)
	l.mu.Unlock()

	return reply.WriteJSON(w, http.StatusOK, struct {
		Findings    []finding `json:"findings"`
		Requests    int       `json:"requests"`
		Overwritten int       `json:"overwritten"`
	}{findings, len(all), overwritten})
}

// judge returns what all rules find, in the order of the requests. What a client does with a token that was ordered with
// something wrong is not its doing; with a sound one it did not get the other one of the pair, so that it is not judged
// by when it refreshes.
func judge(all []*seenRequest) []finding {
	findings := []finding{}
	for _, rule := range []func([]*seenRequest) []finding{repeatedFailure, retryAfterIgnored, tokenInTheAddress} {
		findings = append(findings, rule(all)...)
	}
	sound := withoutSessions(all, defectPrefix)
	for _, rule := range []func([]*seenRequest) []finding{twoRefreshes, spentRefreshToken, tokenAfterLogout, wrongTokenType} {
		findings = append(findings, rule(sound)...)
	}
	own := withoutSessions(sound, orderedPrefix)
	for _, rule := range []func([]*seenRequest) []finding{refreshWithoutNeed, noRefreshAfterExpiry} {
		findings = append(findings, rule(own)...)
	}
	slices.SortFunc(findings, func(a, b finding) int { return cmp.Or(slices.Compare(a.Seqs, b.Seqs), cmp.Compare(a.Rule, b.Rule)) })
	return findings
}

// withoutSessions returns the requests but for those of sessions whose id begins like that.
func withoutSessions(all []*seenRequest, prefix string) []*seenRequest {
	return slices.DeleteFunc(slices.Clone(all), func(r *seenRequest) bool { return strings.HasPrefix(r.session, prefix) })
}

// found makes a finding of these requests, the first of which names the session.
func found(rule, sentence string, shown ...*seenRequest) finding {
	f := finding{Rule: rule, Sentence: sentence, Session: known(shown[0].session)}
	for _, r := range shown {
		f.Seqs = append(f.Seqs, r.seq)
	}
	return f
}

// spellSeqs lists requests by their numbers.
func spellSeqs(shown []*seenRequest) string {
	var b strings.Builder
	for i, r := range shown {
		switch {
		case i > 0 && i == len(shown)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, r.seq)
	}
	return b.String()
}

// generation is a pair of tokens: that of a session, after so many rotations.
type generation struct {
	session string
	number  int
}

// pair returns which pair the token of r is of; false without a token that this hub has issued.
func (r *seenRequest) pair() (generation, bool) {
	if r.token == nil || r.token.Generation == nil {
		return generation{}, false
	}
	return generation{r.session, *r.token.Generation}, true
}

// isRefresh reports whether r exchanges, or tries to exchange, a refresh token of this hub.
func (r *seenRequest) isRefresh() bool {
	_, ok := r.pair()
	return ok && r.operation == "refresh" && *r.token.Kind == jwt.Refresh.String()
}

// twoRefreshes: one expiry, one refresh. Several with one token count as long as the successor pair is not in use and
// has not expired itself: from then on the client knows it, and a further one is a spent token's use and no more. A
// refresh of the new pair as soon as it is there counts as well.
func twoRefreshes(all []*seenRequest) (findings []finding) {
	refreshes := make(map[generation][]*seenRequest)
	var order []generation
	used := make(map[generation]bool)
	for _, r := range all {
		g, ok := r.pair()
		if !ok {
			continue
		}
		used[g] = true
		if !r.isRefresh() || used[generation{g.session, g.number + 1}] || r.isRetryOf(refreshes[g]) || r.isOfALaterExpiry(refreshes[g]) {
			continue
		}
		if refreshes[g] == nil {
			order = append(order, g)
		}
		refreshes[g] = append(refreshes[g], r)
	}
	for _, g := range order {
		if shown := refreshes[g]; len(shown) > 1 {
			findings = append(findings, found("two_refreshes", fmt.Sprintf("Requests %s sent the same refresh token for the same expiry. "+
				"Let one request refresh and have all others wait for its result.", spellSeqs(shown)), shown...))
		}
	}
	return append(findings, refreshedAtOnce(all)...)
}

// refreshedAtOnce: of the two refreshes for one expiry the second came with the new token.
func refreshedAtOnce(all []*seenRequest) (findings []finding) {
	got := make(map[generation]*seenRequest) // by the pair that a refresh gave for an expiry
	for _, r := range all {
		if g, _ := r.pair(); r.isRefresh() && r.status == http.StatusOK && !r.early && !r.lost && !r.injected {
			got[generation{g.session, g.number + 1}] = r
		}
	}
	for _, r := range earlyRefreshes(all) {
		g, _ := r.pair()
		if first := got[g]; first != nil && first.endedFor(r) <= repeatWindow {
			findings = append(findings, found("two_refreshes", fmt.Sprintf("Requests %d and %d refreshed one after the other for the same expiry. "+
				"Let one request refresh and have all others wait for its result.", first.seq, r.seq), first, r))
		}
	}
	return findings
}

// isOfALaterExpiry reports whether the pair that the first of these refreshes gave had expired as well when r came.
func (r *seenRequest) isOfALaterExpiry(refreshes []*seenRequest) bool {
	if len(refreshes) == 0 {
		return false
	}
	first := refreshes[0]
	return first.answered && first.lifetime > 0 && first.endedFor(r) >= first.lifetime
}

// isRetryOf reports whether r came after one of these had failed, as far as the client could see.
func (r *seenRequest) isRetryOf(refreshes []*seenRequest) bool {
	return slices.ContainsFunc(refreshes, func(before *seenRequest) bool {
		return before.answered && before.ended < r.begun && (before.lost || before.injected || before.status != http.StatusOK)
	})
}

// spentRefreshToken: a refresh token was sent although the answer with its successor had been given. Where that answer
// was lost on the way the client could not know; where the two were under way together, twoRefreshes says so.
func spentRefreshToken(all []*seenRequest) (findings []finding) {
	exchanged := make(map[generation]*seenRequest)
	for _, r := range all {
		if g, _ := r.pair(); r.isRefresh() && r.status == http.StatusOK && !r.injected && exchanged[g] == nil {
			exchanged[g] = r
		}
	}
	for _, r := range all {
		g, _ := r.pair()
		first := exchanged[g]
		if !r.isRefresh() || r.token.State != "spent" || first == nil || first.lost || r.begun < first.ended {
			continue
		}
		findings = append(findings, found("spent_refresh_token", fmt.Sprintf("Request %d sent a refresh token that request %d had exchanged already. "+
			"Store the new refresh token from each refresh answer and forget the old one.", r.seq, first.seq), first, r))
	}
	return findings
}

// tokenAfterLogout: a session's token was used after its logout or, if it was another session's that ended it as well,
// after a 401 had said so, but for one refresh and what was on its way.
func tokenAfterLogout(all []*seenRequest) (findings []finding) {
	logouts := make(map[string]*seenRequest)    // by session
	everywhere := make(map[string]*seenRequest) // by user
	refused := make(map[string]*seenRequest)    // by session
	born := make(map[string]int)                // by session
	for _, r := range all {
		if r.token == nil && r.session != "" {
			born[r.session] = r.ended // by login or register
		}
		if r.operation == "logout" && r.status == http.StatusNoContent && !r.lost {
			if logouts[r.session] == nil {
				logouts[r.session] = r
			}
			if r.everywhere {
				everywhere[r.user] = r
			}
			continue
		}
		if r.token == nil || r.operation == "logout" {
			continue
		}
		logout := logouts[r.session]
		if ended := everywhere[r.user]; logout == nil && r.token.State == "revoked" && ended != nil && ended.ended > born[r.session] {
			first := refused[r.session]
			told := r.status == http.StatusUnauthorized && !r.lost
			switch {
			case first == nil || r.isRefresh() && !first.isRefresh(): // many clients try a refresh on any 401, and again until they hear
				if told {
					refused[r.session] = r
				}
			case first.endedFor(r) >= reactionTime:
				logout = ended
			}
		}
		if logout != nil && r.session != "" && r.begun > logout.ended {
			findings = append(findings, found("token_after_logout", fmt.Sprintf("Request %d used a token after request %d had logged out. "+
				"Forget both tokens on logout and cancel what is still to be sent.", r.seq, logout.seq), logout, r))
		}
	}
	return findings
}

func wrongTokenType(all []*seenRequest) (findings []finding) {
	for _, r := range all {
		if r.token == nil || r.token.State != "wrong_type" || r.operation != "me" && r.operation != "refresh" && r.code != "token_wrong_type" {
			continue
		}
		sentence := "Request %d sent the refresh token where the access token belongs. Only the refresh operation takes the refresh token."
		if r.operation == "refresh" {
			sentence = "Request %d sent the access token to refresh. Refresh with the refresh token."
		}
		findings = append(findings, found("wrong_token_type", fmt.Sprintf(sentence, r.seq), r))
	}
	return findings
}

// refreshWithoutNeed: a refresh while the access token has more than half of its life before it, unless a request
// with that token had been refused.
func refreshWithoutNeed(all []*seenRequest) (findings []finding) {
	for _, r := range earlyRefreshes(all) {
		findings = append(findings, found("refresh_without_need", fmt.Sprintf("Request %d refreshed although more than half of the access token's "+
			"lifetime (expires_in) was left. Refresh shortly before it ends, or on a 401.", r.seq), r))
	}
	return findings
}

// earlyRefreshes returns the refreshes that refreshWithoutNeed speaks of.
func earlyRefreshes(all []*seenRequest) (early []*seenRequest) {
	refused := make(map[generation]bool)
	given := make(map[generation]*seenRequest) // by the pair that the answer had in it
	for _, r := range all {
		g, ok := r.pair()
		if !ok && r.session != "" && r.status < 300 {
			given[generation{r.session, 0}] = r
		}
		switch {
		case !ok:
		case r.status == http.StatusUnauthorized && !r.isRefresh():
			refused[g] = true
		case r.isRefresh() && r.early && !refused[g] && (given[g] == nil || given[g].endedFor(r) < r.lifetime/2):
			early = append(early, r)
		}
		if r.isRefresh() && r.status == http.StatusOK {
			given[generation{g.session, g.number + 1}] = r
		}
	}
	return early
}

// repeatedFailure: the same request, failed, and sent again more than 3 times within 5 s. Those under way at once are
// no repetition, and neither are those that met the end of an access token before, or just after, its pair was
// exchanged: a page that asks for much at once hears of it as often.
func repeatedFailure(all []*seenRequest) (findings []finding) {
	exchanged := lastExchanges(all)
	failures := make(map[uint64][]*seenRequest)
	for _, r := range all {
		g, ok := r.pair()
		handled := ok && !r.isRefresh() && r.status == http.StatusUnauthorized && exchanged[g] != nil &&
			(!exchanged[g].answered || exchanged[g].endedFor(r) < reactionTime)
		if !r.lost && r.status < 400 || handled {
			continue
		}
		before := failures[r.identity]
		if len(before) == 0 || r.begun > before[len(before)-1].ended {
			failures[r.identity] = append(before, r)
		}
	}
	for _, same := range failures {
		for len(same) > maxRepeats+1 {
			n := burst(same)
			if n > maxRepeats+1 {
				findings = append(findings, found("repeated_failure", fmt.Sprintf("Request %d (%s) failed and was sent again unchanged %d times within 5 seconds. "+
					"Stop after a few tries, and wait longer before each.", same[0].seq, same[0].operation, n-1), same[:n]...))
				same = same[n:]
			} else {
				same = same[1:]
			}
		}
	}
	return findings
}

// lastExchanges returns, by pair, the last refresh with its token to be answered, or one that is not yet.
func lastExchanges(all []*seenRequest) map[generation]*seenRequest {
	last := make(map[generation]*seenRequest)
	for _, r := range all {
		if g, _ := r.pair(); r.isRefresh() && (last[g] == nil || last[g].answered && (!r.answered || r.ended > last[g].ended)) {
			last[g] = r
		}
	}
	return last
}

// exchangedPairs returns, by session, the number of the latest pair whose refresh token was sent, counted from 1.
func exchangedPairs(all []*seenRequest) map[string]int {
	latest := make(map[string]int)
	for _, r := range all {
		if g, _ := r.pair(); r.isRefresh() {
			latest[g.session] = max(latest[g.session], g.number+1)
		}
	}
	return latest
}

// burst returns how many of the requests lie in the window that the first one opens.
func burst(same []*seenRequest) int {
	n := 1
	for n < len(same) && waited(same[0].at, same[0].real, same[n]) <= repeatWindow {
		n++
	}
	return n
}

// waited returns how long a client waited from that time, by the hub's and by the machine's clock, until it sent r.
func waited(at, real time.Time, r *seenRequest) time.Duration {
	return max(r.at.Sub(at), r.real.Sub(real))
}

// endedFor returns how long before r was sent the answer to before had ended.
func (before *seenRequest) endedFor(r *seenRequest) time.Duration {
	return waited(before.endedAt, before.endedReal, r)
}

// retryAfterIgnored: the same operation at the same path, of the same session or else the same in everything, sooner
// than an answer had asked for.
func retryAfterIgnored(all []*seenRequest) (findings []finding) {
	type key struct {
		operation, method, path, session string
		identity                         uint64
	}
	told := make(map[key]*seenRequest)
	for _, r := range all {
		k := key{r.operation, r.method, r.path, r.session, 0}
		if r.token == nil {
			k.session, k.identity = "", r.identity
		}
		before := told[k]
		if before != nil && r.begun > before.ended && before.endedFor(r) < before.retryAfter {
			findings = append(findings, found("retry_after_ignored", fmt.Sprintf("Request %d came %s after the answer to request %d, which had asked "+
				"for %s (Retry-After). Wait that long before the next try.", r.seq,
				before.endedFor(r).Round(time.Millisecond), before.seq, before.retryAfter.Round(time.Millisecond)), before, r))
		}
		delete(told, k)
		if r.status >= 400 && r.retryAfter > 0 {
			told[k] = r
		}
	}
	return findings
}

func tokenInTheAddress(all []*seenRequest) (findings []finding) {
	for _, r := range all {
		if r.inAddress {
			findings = append(findings, found("token_in_address", fmt.Sprintf("Request %d had a token in its address, where it ends in logs and histories. "+
				"Send it as Authorization: Bearer TOKEN.", r.seq), r))
		}
	}
	return findings
}

// noRefreshAfterExpiry: an access token was refused as expired, and the client neither exchanged the refresh token
// that belongs to it nor logged in or out. Where that had expired as well, the client may know, and need not try.
func noRefreshAfterExpiry(all []*seenRequest) (findings []finding) {
	refreshed := exchangedPairs(all)
	expired := make(map[generation][]*seenRequest)
	for _, r := range all {
		g, ok := r.pair()
		switch {
		case r.operation == "login" || r.operation == "register" || r.operation == "refresh" && !ok:
			clear(expired) // the client has taken care of it in its own way
		case r.operation == "logout" || r.isRefresh() && r.status == http.StatusOK: // with an older token, too, where that is allowed
			maps.DeleteFunc(expired, func(of generation, _ []*seenRequest) bool { return of.session == r.session })
		case ok && !r.lost && !r.over && r.code == "token_expired" && *r.token.Kind == jwt.Access.String() && refreshed[g.session] <= g.number:
			expired[g] = append(expired[g], r)
		}
	}
	for _, shown := range expired {
		findings = append(findings, found("no_refresh_after_expiry", fmt.Sprintf("The answer to request %d was token_expired, and no refresh followed. "+
			"Exchange the refresh token and send the request again with the new access token.", shown[0].seq), shown...))
	}
	return findings
}
