package judge

import "fmt"

// spentRefreshToken: a refresh token was sent again after the expiry for which it had been exchanged was over. The
// client has not stored the new one. The exchange is shown, too.
//
// Nothing is spent where the client did not get the new pair, and under grace within its time.
func (c *trial) spentRefreshToken(x *expiry) {
	byToken := make(map[int][]*Exchange)
	var order []int
	for _, r := range x.late {
		g := r.Token.Generation
		if x.exchanged[g] == nil || x.forgiven(r) {
			continue
		}
		if byToken[g] == nil {
			order = append(order, g)
		}
		byToken[g] = append(byToken[g], r)
		c.told[r] = true
	}
	for _, g := range order {
		first := x.exchanged[g]
		c.find("spent_refresh_token", fmt.Sprintf("%s sent a refresh token that request %d had exchanged already. "+
			"Store the new refresh token from each refresh answer and forget the old one.", requests(byToken[g]), first.Seq),
			append([]*Exchange{first}, byToken[g]...)...)
	}
}
