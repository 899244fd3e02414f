module authhub.example

go 1.25

require authhub v0.0.0

replace authhub => ../.. // in your project: the path of a clone
