module authhub.example/oauth2

go 1.26.0

require (
	authhub v0.0.0
	golang.org/x/oauth2 v0.37.0
)

replace authhub => ../../.. // in your project: the path of a clone
