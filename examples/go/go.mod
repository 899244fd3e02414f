module authhub.example

go 1.25
