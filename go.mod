module authhub

go 1.25
