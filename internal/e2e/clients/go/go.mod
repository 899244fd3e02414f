module authhub-clients

go 1.26.0

require (
	github.com/go-resty/resty/v2 v2.17.2
	golang.org/x/oauth2 v0.37.0
)

require golang.org/x/net v0.43.0 // indirect
