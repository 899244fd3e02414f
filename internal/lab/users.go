// The users of a bench, and how a test makes, changes and deletes them.

package lab

import (
	"context"
	"errors"
	"net/http"
	"time"

	"authhub/internal/account"
	"authhub/internal/lab/strict"
	"authhub/internal/passwd"
	"authhub/internal/reply"
)

// userView is a user as the lab shows it.
type userView struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Email    string `json:"email"`
	Name     string `json:"name"`
	Role     string `json:"role"`
	Created  string `json:"created_at"`
	Disabled bool   `json:"disabled"`
}

func viewUser(u *account.User) userView {
	return userView{u.ID, u.Username, u.Email, u.Name, u.Role, reply.FormatTime(time.UnixMilli(u.Created)), u.Disabled}
}

func (b *bench) listUsers(w http.ResponseWriter, _ *http.Request) error {
	views := []userView{}
	for _, u := range b.hub.Load().Store.Users() {
		views = append(views, viewUser(u))
	}
	return reply.WriteJSON(w, http.StatusOK, map[string]any{"users": views})
}

func (b *bench) showUser(w http.ResponseWriter, r *http.Request) error {
	u := b.hub.Load().Store.UserByLogin(r.PathValue("username"))
	if u == nil {
		return noUser()
	}
	return reply.WriteJSON(w, http.StatusOK, viewUser(u))
}

func noUser() error {
	return reply.Fail(http.StatusNotFound, "not_found", "No user has this name. GET /lab/users lists the users.")
}

// userOrder is what a body says of a user.
type userOrder struct {
	*strict.Form
	credential *passwd.Credential // nil: no password is given
}

// putUser makes the user of that name, or changes it, at once.
func (b *bench) putUser(w http.ResponseWriter, r *http.Request) error {
	in, err := strict.Read(w, r, false, "disabled", "role", "name", "email", "password")
	if err != nil {
		return err
	}
	order, err := b.readUser(r.Context(), in)
	if err != nil {
		return err
	}

	h, status := b.hub.Load(), http.StatusOK
	var made *account.User
	err = h.Store.PutUser(r.Context(), r.PathValue("username"), func(old *account.User) (*account.User, error) {
		u := account.User{ID: b.lab.NewID(), Username: r.PathValue("username"), Role: "user", Created: h.Now().UnixMilli()}
		if old != nil {
			u = account.User{ID: old.ID, Username: old.Username, Email: old.Email, Name: old.Name, Role: old.Role, Created: old.Created,
				Disabled: old.Disabled, Credential: old.Credential}
		} else {
			status = http.StatusCreated
			order.checkNew(u.Username)
		}
		order.apply(&u)
		made = &u
		return made, order.Err()
	})
	if err != nil {
		return err
	}

	return reply.WriteJSON(w, status, viewUser(made))
}

// readUser checks what a body says of a user, and hashes its password.
func (b *bench) readUser(ctx context.Context, in *strict.Form) (*userOrder, error) {
	in.Truth("disabled", false)
	in.OneOf("role", "user", "admin")
	for _, field := range []string{"email", "name", "password"} {
		if fault := account.FaultOf(field, in.Text(field)); fault != "" && in.Has(field) {
			in.Fault(field, fault)
		}
	}
	order := &userOrder{Form: in}
	if err := in.Err(); err != nil || !in.Has("password") {
		return order, err
	}
	credential, err := b.lab.Hash(ctx, in.Text("password"))
	order.credential = &credential
	return order, err
}

// checkNew notes what is missing for a new user of this name.
func (o *userOrder) checkNew(username string) {
	if fault := account.FaultOf("username", username); fault != "" {
		o.Fault("username", fault)
	}
	if o.credential == nil {
		o.Fault("password", "is required for a new user")
	}
}

// apply writes what the body says to u. What it leaves out stays.
func (o *userOrder) apply(u *account.User) {
	u.Disabled = o.Truth("disabled", u.Disabled)
	if o.Has("role") {
		u.Role = o.Text("role")
	}
	if o.Has("name") {
		u.Name = o.Text("name")
	}
	if o.Has("email") {
		u.Email = o.Text("email")
	}
	if o.credential != nil {
		u.Credential = *o.credential
	}
}

func (b *bench) deleteUser(w http.ResponseWriter, r *http.Request) error {
	err := b.hub.Load().Store.DeleteUser(r.Context(), r.PathValue("username"))
	if errors.Is(err, account.ErrNoUser) {
		return noUser()
	}
	if err != nil {
		return err
	}

	w.WriteHeader(http.StatusNoContent)
	return nil
}
