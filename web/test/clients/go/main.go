// A client that oapi-codegen has made from openapi.json (hub/hub.go) logs in, refreshes, and reads the impact.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"client/hub"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "oapi-codegen's client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, base string) error {
	c, err := hub.NewClientWithResponses(base)
	if err != nil {
		return err
	}
	name := "demo"
	login, err := c.LoginWithResponse(ctx, hub.Credentials{Username: &name, Password: "demo-password"})
	if err != nil || login.JSON200 == nil {
		return fmt.Errorf("login: %v %s", err, login.Status())
	}
	session := login.JSON200
	me, err := c.MeWithResponse(ctx, func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+session.AccessToken)
		return nil
	})
	if err != nil || me.JSON200 == nil || me.JSON200.Username != name {
		return fmt.Errorf("me: %v %s", err, me.Status())
	}
	for _, want := range []int{200, 401} { // the second time the token is spent
		refresh, err := c.RefreshWithResponse(ctx, hub.RefreshRequest{RefreshToken: &session.RefreshToken})
		if err != nil || refresh.StatusCode() != want {
			return fmt.Errorf("refresh: %v %s", err, refresh.Status())
		}
	}
	if run, err := c.StartRunWithBodyWithResponse(ctx, nil, "", nil); err != nil || run.JSON200 == nil {
		return fmt.Errorf("run: %v %s", err, run.Status())
	}
	impact, err := c.ImpactFileWithResponse(ctx, nil)
	if err != nil || impact.JSON200 == nil || len(impact.JSON200.Stations) == 0 {
		return fmt.Errorf("impact: %v %s", err, impact.Status())
	}
	fmt.Printf("oapi-codegen: logged in as %s, %d stations\n", me.JSON200.Username, len(impact.JSON200.Stations))
	return nil
}
