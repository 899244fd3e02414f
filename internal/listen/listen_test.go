package listen

import (
	"net"
	"net/http"
	"testing"
	"time"
)

func TestWhoeverOutlastsTheGraceIsCutOff(t *testing.T) {
	t.Parallel()
	arrived, stuck := make(chan struct{}), make(chan struct{})
	defer close(stuck)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(arrived); <-stuck })}
	go server.Serve(listener)
	ended := make(chan error, 1)
	go func() {
		_, err := http.Get("http://" + listener.Addr().String())
		ended <- err
	}()
	<-arrived
	shutDown(server, 10*time.Millisecond)
	if err := <-ended; err == nil {
		t.Error("the request was answered")
	}
}
