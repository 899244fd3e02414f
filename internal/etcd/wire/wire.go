// Package wire has the messages of etcd's JSON gateway that the client sends and the fake gateway of the tests reads.
//
// They are the protobuf messages of etcd's api/etcdserverpb/rpc.proto and api/mvccpb/kv.proto in the JSON form of
// protobuf: bytes are base64, 64-bit integers are strings, and a member with its zero value is left out.
package wire

// The addresses of the operations, all of them POST.
const (
	TxnPath          = "/v3/kv/txn"
	GrantPath        = "/v3/lease/grant"
	RevokePath       = "/v3/lease/revoke"
	KeepAlivePath    = "/v3/lease/keepalive"
	AuthenticatePath = "/v3/auth/authenticate"
	StatusPath       = "/v3/maintenance/status"
)

// The codes of gRPC (google.golang.org/grpc/codes) that the client tells apart.
const (
	CodeInvalidArgument    = 3
	CodeDeadlineExceeded   = 4
	CodeNotFound           = 5
	CodePermissionDenied   = 7
	CodeResourceExhausted  = 8
	CodeFailedPrecondition = 9
	CodeUnavailable        = 14
	CodeUnauthenticated    = 16
)

// Error is the body of every answer but 200.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// KeyValue is one key with the revisions of the store at which it was made and last changed.
type KeyValue struct {
	Key            []byte `json:"key,omitempty"`
	CreateRevision int64  `json:"create_revision,omitempty,string"`
	ModRevision    int64  `json:"mod_revision,omitempty,string"`
	Version        int64  `json:"version,omitempty,string"`
	Value          []byte `json:"value,omitempty"`
	Lease          int64  `json:"lease,omitempty,string"`
}

// Range is the keys in [Key, RangeEnd), or Key alone, to be read or deleted; only the first two members count in a
// deletion. It is etcd's RangeRequest and DeleteRangeRequest.
type Range struct {
	Key            []byte `json:"key"`
	RangeEnd       []byte `json:"range_end,omitempty"`
	Limit          int64  `json:"limit,omitempty,string"`
	SortOrder      string `json:"sort_order,omitempty"`  // ASCEND
	SortTarget     string `json:"sort_target,omitempty"` // CREATE
	KeysOnly       bool   `json:"keys_only,omitempty"`
	CountOnly      bool   `json:"count_only,omitempty"`
	MinModRevision int64  `json:"min_mod_revision,omitempty,string"` // older keys count, but are not in the answer
}

// Found has the keys that were read, and counts those in the range or those that were deleted. It is etcd's
// RangeResponse and DeleteRangeResponse.
type Found struct {
	KVs     []KeyValue `json:"kvs,omitempty"`
	Count   int64      `json:"count,omitempty,string"`
	Deleted int64      `json:"deleted,omitempty,string"`
}

// PutRequest sets a key.
type PutRequest struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value,omitempty"`
	Lease int64  `json:"lease,omitempty,string"`
}

// Compare is one condition of a transaction on Key's revision named by Target: MOD or CREATE.
type Compare struct {
	Result         string `json:"result"` // EQUAL or GREATER
	Target         string `json:"target"`
	Key            []byte `json:"key"`
	CreateRevision *int64 `json:"create_revision,omitempty,string"`
	ModRevision    *int64 `json:"mod_revision,omitempty,string"`
}

// RequestOp is one operation of a transaction; one member is set.
type RequestOp struct {
	Range  *Range      `json:"request_range,omitempty"`
	Put    *PutRequest `json:"request_put,omitempty"`
	Delete *Range      `json:"request_delete_range,omitempty"`
}

// ResponseOp is what came of the operation in the same place.
type ResponseOp struct {
	Range  *Found    `json:"response_range,omitempty"`
	Put    *struct{} `json:"response_put,omitempty"`
	Delete *Found    `json:"response_delete_range,omitempty"`
}

// TxnRequest does Success if all of Compare hold, else Failure, as one step.
type TxnRequest struct {
	Compare []Compare   `json:"compare,omitempty"`
	Success []RequestOp `json:"success,omitempty"`
	Failure []RequestOp `json:"failure,omitempty"`
}

// TxnResponse has the answers of the operations that were done, and the revision of the state in which they were done.
type TxnResponse struct {
	Header struct {
		Revision int64 `json:"revision,omitempty,string"`
	} `json:"header"`
	Succeeded bool         `json:"succeeded,omitempty"`
	Responses []ResponseOp `json:"responses,omitempty"`
}

// Lease is the request and the answer of granting, revoking and keeping a lease alive. TTL is in seconds; in the
// answer to a lease that is kept alive, 0 says that there is no such lease.
type Lease struct {
	ID  int64 `json:"ID,omitempty,string"`
	TTL int64 `json:"TTL,omitempty,string"`
}

// Authenticate asks for a token, and Token is it.
type Authenticate struct {
	Name     string `json:"name,omitempty"`
	Password string `json:"password,omitempty"`
	Token    string `json:"token,omitempty"`
}

// Status is what one node says of itself. Leader is 0 when it knows none; Errors has its alarms.
type Status struct {
	Version string   `json:"version,omitempty"`
	Leader  uint64   `json:"leader,omitempty,string"`
	Errors  []string `json:"errors,omitempty"`
}
