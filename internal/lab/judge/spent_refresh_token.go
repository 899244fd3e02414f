package judge

import (
	"fmt"
	"strconv"
)

// spentRefreshToken: a refresh token was sent again after the expiry for which it had been exchanged was over. The
// client has not stored the new one. The exchange is shown, too.
//
// Nothing is spent where the client did not get the new pair, and under grace within its time.
func (c *trial) spentRefreshToken(x *expiry) {
	var byToken groups
	for _, r := range x.late {
		if g := r.Token.Generation; x.exchanged[g] != nil && !x.forgiven(r) {
			byToken.add(strconv.Itoa(g), r)
			c.told[r] = true
		}
	}
	for _, shown := range byToken.each {
		first := x.exchanged[shown[0].Token.Generation]
		c.find("spent_refresh_token", fmt.Sprintf("%s sent a refresh token that request %d had exchanged already. "+
			"Store the new refresh token from each refresh answer and forget the old one.", requests(shown), first.Seq),
			append(shown, first)...)
	}
}
