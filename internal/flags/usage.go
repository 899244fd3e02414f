package flags

// Usage is the answer to -help.
const Usage = `authhub: a test hub for authentication, and a file service for pH barrier runs

Usage:
  authhub [flags]          run the hub
  authhub -check URL       exit 0 if the hub at URL is ready, 1 if not
  authhub -tour            play the story of a hub and print it; with -base-url, against a running one
  authhub -store ADDRESSES -import DIR   move the users and sessions of a hub's folder into that etcd
  authhub -version

Flags:
  -addr HOST:PORT      address to listen on (127.0.0.1:8080; port 0 picks a free one)
  -dir DIR             folder for secret, journal and files (authhub-data)
  -ephemeral           keep everything in memory and a temporary folder, gone at exit
  -store ADDRESSES     etcd that keeps users and sessions for many hubs: http://n1:2379,http://n2:2379/authhub
  -readings FILE       CSV of pH readings, read afresh at every run (embedded ones)
  -users FILE          JSON array of accounts in place of the demo accounts
  -access-ttl DURATION   lifetime of access tokens (15m)
  -refresh-ttl DURATION  lifetime of refresh tokens (168h)
  -protect GROUPS      ask for an access token on: files, run, or files,run
  -cors ORIGINS        origins, separated by commas, whose pages may use the hub besides loopback ones; * for all
  -base-url URL        address that clients know the hub by (the one it listens on)
  -lab                 offer the lab for tests: namespaces, clock, faults, request record, report under /lab and /ns
  -dialect NAME|FILE   speak another API besides the hub's own: a built-in dialect, or the description in a file
  -print-dialect NAME  print the description of a built-in dialect, to be copied and changed
  -run                 produce the three files at start, before the hub answers
  -ready-file FILE     write the base URL to FILE, by atomic rename, once the hub listens; gone when it stops
  -exit-with-stdin     stop when standard input ends
  -log FORMAT          text, json or off (text)
  -log-level LEVEL     debug, info, warn or error (info); requests of the page, /lab and /healthz are at debug

Environment:
  AUTHHUB_ADDR and so on   the flags in capitals, with _ for - (AUTHHUB_LAB=true); a flag wins
  AUTHHUB_SECRET       at least 32 bytes to derive the signing keys from, in place of DIR/secret
  AUTHHUB_LAB_KEY      key that lab requests carry as Authorization: Bearer KEY; required with -lab on an address that
                       is not loopback

Standard output carries one line, the base URL. Exit status: 0 after a signal, 2 for misuse, 1 otherwise.

Examples:
  authhub
  authhub -addr 127.0.0.1:0 -ephemeral -exit-with-stdin
  authhub -readings plant.csv -run -protect files,run
  authhub -tour -base-url http://127.0.0.1:8080
`
