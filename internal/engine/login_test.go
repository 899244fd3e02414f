// Logging in at etcd, and TLS on the way there.

package engine_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"authhub/internal/engine/enginetest"
	"authhub/internal/etcd/etcdtest"
	"authhub/internal/testkit"
)

// administer sends an administrator's request to a node, with a token or none.
func administer(t *testing.T, node, path, token string, request any) (answer struct{ Token string }) {
	t.Helper()
	body, _ := json.Marshal(request)
	r, err := http.NewRequest("POST", node+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", token)
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	json.NewDecoder(response.Body).Decode(&answer)
	if response.StatusCode != 200 {
		t.Fatalf("%s: %s", path, response.Status)
	}
	return answer
}

// TestUserOfEtcdWithFewRights: a user who may use the keys under one path is enough, and a node that has forgotten all
// tokens is no outage.
func TestUserOfEtcdWithFewRights(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	cluster := enginetest.Start(t, 1)
	node := cluster.Node(0)
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, user := range []string{"root", "hub"} {
		administer(t, node, "/v3/auth/role/add", "", object{"name": user})
		administer(t, node, "/v3/auth/user/add", "", object{"name": user, "password": "s3cret/" + user})
		administer(t, node, "/v3/auth/user/grant", "", object{"user": user, "role": user})
	}
	administer(t, node, "/v3/auth/role/grant", "", object{"name": "hub",
		"perm": object{"permType": "READWRITE", "key": b64("/authhub/"), "range_end": b64("/authhub0")}})
	administer(t, node, "/v3/auth/enable", "", object{})

	store := strings.Replace(node, "//", "//hub:s3cret%2Fhub@", 1)
	h := startQuickHub(t, "-store", store, "-dir", t.TempDir())
	pair := h.login("demo", "demo-password").want(t, 200, "")
	cluster.Kill(0) // the tokens that it has given are lost
	cluster.Restart(0)
	h.me(pair.Access).want(t, 200, "")
	h.refresh(pair.Refresh).want(t, 200, "")
	ask("POST", h.base+runPath, "", "").want(t, 200, "")
	if health := ask("GET", h.base+"/healthz", "", ""); !strings.Contains(string(health.Body), `"missing":[]`) {
		t.Errorf("%d %s", health.Status, health.Body)
	}
	h.kill()
	if strings.Contains(h.log(), "s3cret") {
		t.Errorf("a password in the log:\n%s", h.log())
	}
	if status, said := failStart(t, []string{testSecret}, "-store", store+"/elsewhere", "-dir", t.TempDir()); status != 1 || !strings.Contains(said, "permission denied") {
		t.Errorf("a path that the user has no right to: %d %s", status, said)
	}
}

// TestTLS: SSL_CERT_FILE says whom to trust, and nobody else is trusted.
func TestTLS(t *testing.T) {
	t.Parallel()
	target, err := url.Parse(etcdtest.New(t, 1).Address())
	if err != nil {
		t.Fatal(err)
	}
	tls := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(target))
	tls.Config.ErrorLog = log.New(t.Output(), "", 0)
	tls.StartTLS()
	defer tls.Close()
	trusted := testkit.WriteFile(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw})))

	h := &hub{t: t, args: []string{"-store", tls.URL, "-dir", t.TempDir()}, addr: "127.0.0.1:0", env: []string{"SSL_CERT_FILE=" + trusted}}
	if err := h.start(); err != nil {
		t.Fatalf("%v\n%s", err, h.log())
	}
	t.Cleanup(h.kill)
	h.login("demo", "demo-password").want(t, 200, "")
	if status, said := failStart(t, []string{testSecret}, "-store", tls.URL, "-dir", t.TempDir()); status != 1 || !strings.Contains(said, "certificate") {
		t.Errorf("a certificate of nobody known: %d %s", status, said)
	}
}
