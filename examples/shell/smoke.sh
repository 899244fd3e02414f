#!/usr/bin/env bash
# The life of a session against a hub of its own, with curl: log in, let the token expire without waiting, refresh,
# make the hub fail, ask it what was really sent, and have it judge that.
#
#   ./smoke.sh           with the hub built beforehand: (cd ../.. && go build), or AUTHHUB=/path/to/authhub
#
# bash (3.2 and newer) and curl. The hub ends with this script, even if it is killed: the hub's standard input is a pipe
# whose other end is descriptor 9 here.
set -euo pipefail
cd "$(dirname "$0")"

line=$(mktemp -u) && mkfifo "$line"
exec 9> >(exec "${AUTHHUB:-../../authhub}" -addr 127.0.0.1:0 -ephemeral -lab -log off -exit-with-stdin > "$line")
read -r hub < "$line" || { echo "the hub does not start"; exit 1; }
rm "$line"

auth=$hub/api/authentication lab=$hub/lab

# call METHOD URL [CURL ARGUMENTS]: sends it and sets status and body.
call() {
  body=$(curl -sS -X "$1" "$2" -w '\n%{http_code}' "${@:3}" 9>&-)
  status=${body##*$'\n'} body=${body%$'\n'*}
}
# json DATA: the curl arguments that send it.
json() { data=(-H 'Content-Type: application/json' -d "$1"); }
# member NAME: the first member of that name in body, a string.
member() { printf '%s' "$body" | sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/"; }
# expect WHAT GLOB: fails the script unless WHAT matches.
expect() {
  # shellcheck disable=SC2053
  [[ $1 == $2 ]] && return
  echo "line ${BASH_LINENO[0]}: expected $2, got $1 with $body" >&2
  call GET "$lab/requests"
  echo "The hub received: $body" >&2
  exit 1
}

call POST "$auth/login" -d username=demo -d password=demo-password
expect "$status" 200
access=$(member access_token) refresh=$(member refresh_token)

json '{"advance":"16m"}'
call PUT "$lab/clock" "${data[@]}"
expect "$status" 200
call GET "$auth/me" -H "Authorization: Bearer $access"
expect "$status $(member code)" '401 token_expired'

call POST "$auth/refresh" -d "refresh_token=$refresh"
expect "$status" 200
access=$(member access_token)
call GET "$auth/me" -H "Authorization: Bearer $access"
expect "$status $(member username)" '200 demo'

json '{"operation":"me","status":503,"headers":{"Retry-After":"1"}}'
call POST "$lab/faults" "${data[@]}"
expect "$status" 201
call GET "$auth/me" -H "Authorization: Bearer $access" --retry 1 # curl knows Retry-After
expect "$status" 200

json '{"operation":"me","status":200,"count":{"exactly":2},"within":"100ms"}'
call POST "$lab/expect" "${data[@]}"
expect "$status" 200
call GET "$lab/report"
expect "$body" '{"findings":\[\],*'

# What the report is there for: a refresh token that has been exchanged is sent at the next expiry as well.
json '{"advance":"16m"}'
call PUT "$lab/clock" "${data[@]}"
expect "$status" 200
call POST "$auth/refresh" -d "refresh_token=$refresh"
expect "$status $(member code)" '401 token_reused'
call GET "$lab/report"
expect "$body" '*"rule":"spent_refresh_token"*'

echo "ok"
