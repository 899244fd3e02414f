package judge

// wrongTokenType: the refresh token was sent where the access token belongs, or the access token to refresh.
// Operations that ask for no token don't mind; logout takes both.
func (c *trial) wrongTokenType(s *session) {
	var shown []*Exchange
	toRefresh := 0
	for _, e := range s.exchanges {
		if e.Token != nil && e.Token.State == "wrong_type" && (e.Operation == "me" || e.Operation == "refresh" || e.Code == "token_wrong_type") {
			shown = append(shown, e)
			if e.Operation == "refresh" {
				toRefresh++
			}
		}
	}
	sentence := " sent the refresh token where the access token belongs. Only the refresh operation takes the refresh token."
	switch {
	case toRefresh == len(shown):
		sentence = " sent the access token to refresh. Refresh with the refresh token."
	case toRefresh > 0:
		sentence = " sent each token where the other belongs."
	}
	c.find("wrong_token_type", requests(shown)+sentence, shown...)
}
