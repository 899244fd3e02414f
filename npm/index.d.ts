/** A duration as Go writes it: "90s", "16m", "168h", "-1h". */
export type Duration = string;

export type Operation = 'register' | 'login' | 'me' | 'refresh' | 'logout' | 'introspect' | 'listing' | 'file' | 'run' | 'other';

export interface StartOptions {
  /** Path of the binary. Default: what binary() returns. */
  binary?: string;
  /** More flags, for example ["-users", "accounts.json"]. */
  args?: string[];
  /** The hub's log on standard error. Default: "off". */
  log?: 'text' | 'json' | 'off';
  /** How long to wait until the hub answers, in milliseconds. Default: 10,000. */
  startTimeout?: number;
}

/**
 * Starts a hub with a lab on a free port and resolves once it answers. It keeps nothing on disk. It ends with close(),
 * and also when this process ends, even by a crash.
 */
export function startHub(options?: StartOptions): Promise<Hub>;

/** Returns a hub that runs already. key is its AUTHHUB_LAB_KEY; default: the environment variable of that name. */
export function connectHub(url: string, options?: { key?: string }): Hub;

/** Returns the path of the binary: the one that AUTHHUB names, or that of the package of this platform. */
export function binary(): string;

export interface Hub {
  /** The base address, without a slash at the end. */
  readonly url: string;
  /** The lab at the root of the hub. */
  readonly lab: Lab;
  /** Returns a namespace: a separate hub for one test. Default name: a random one. */
  namespace(name?: string): Namespace;
  /** Lists the namespaces, the one with the latest request first. */
  namespaces(): Promise<NamespaceEntry[]>;
  /** Stops the hub and waits for its end. A hub of connectHub goes on. */
  close(): Promise<void>;
}

export interface NamespaceEntry {
  name: string;
  created_at: string;
  last_request_at: string | null;
  requests: number;
  /** How many findings its report has. */
  findings: number;
  page: string;
}

export interface Namespace {
  readonly name: string;
  /** What a client takes for the base address of its back end, without a slash at the end. */
  readonly url: string;
  /** The page that shows what happened in the namespace. */
  readonly page: string;
  readonly lab: Lab;
  delete(): Promise<void>;
}

export interface Clock { now: string; real: string; offset_ms: number; frozen: boolean }

export interface ClockChange { advance?: Duration; at?: string; frozen?: boolean }

export interface LiveSession { id: string; user: string; created: string; generation: number; [member: string]: unknown }

export interface Fault {
  operation: Operation | '*';
  session?: string;
  /** How many requests pass first. */
  skip?: number;
  /** How many requests are hit; 0 means until the fault is deleted. Default: 1. */
  times?: number;
  delay?: Duration;
  /** Keeps requests until so many are waiting, then lets them go together. */
  hold?: number;
  within?: Duration;
  status?: number;
  headers?: Record<string, string>;
  body?: unknown;
  /** "before": nothing is done. "after": the work is done and the answer is lost. */
  drop?: 'before' | 'after';
  malformed?: true;
  /** How many bytes of the body get through. */
  truncate?: number;
}

export type QueuedFault = Fault & { id: string; hits: number; left: number | null; waiting: number };

export interface RequestFilter { operation?: Operation; session?: string; user?: string; status?: number; after?: number }

export interface RecordedRequest {
  seq: number;
  at: string;
  operation: Operation;
  method: string;
  path: string;
  /** null while the request is held, and when no answer reached the client. */
  status: number | null;
  code: string | null;
  duration_ms: number | null;
  user: string | null;
  session: string | null;
  token: { kind: 'access' | 'refresh'; generation: number; state: string } | null;
  fault: string | null;
}

export interface Expectation extends RequestFilter {
  count: { exactly: number } | { at_least: number } | { at_most: number };
  /** At most "30s". Default: "5s". */
  within?: Duration;
}

export interface Finding { rule: string; sentence: string; session: string | null; seqs: number[] }

export interface Report { findings: Finding[]; notes?: Finding[]; requests: number; overwritten: number }

export interface TokenOrder {
  user: string;
  kind?: 'access' | 'refresh';
  defect?: 'none' | 'expired' | 'not_yet_valid' | 'wrong_key' | 'alg_none' | 'wrong_type' | 'truncated' | 'tampered' | 'revoked';
  claims?: Record<string, unknown>;
}

export interface Dialect { name: string; operations: { op: string; on: string; [member: string]: unknown }[]; [member: string]: unknown }

export interface User { id: string; username: string; email: string; name: string; role: 'user' | 'admin'; created_at: string; disabled: boolean }

export interface UserChanges { password?: string; email?: string; name?: string; role?: 'user' | 'admin'; disabled?: boolean }

export interface RefreshPolicy { reuse?: 'strict' | 'grace' | 'allow'; grace?: Duration; rotation?: boolean }

/** The test controls of a hub or a namespace. A refused request rejects with the status, code and detail of the answer. */
export interface Lab {
  readonly url: string;
  state(): Promise<Record<string, unknown>>;
  /** Back to the accounts of the start: no sessions, no faults, real time, an empty record. */
  reset(): Promise<void>;
  snapshot(): Promise<unknown>;
  restore(snapshot: unknown): Promise<void>;
  clock(change: ClockChange): Promise<Clock>;
  /** Lets time pass: clock({ advance }). */
  advance(duration: Duration): Promise<Clock>;
  /** Sets the lifetimes of the tokens of new sessions, such as { access: "2s", refresh: "1h" }. */
  lifetimes(lifetimes: { access?: Duration; refresh?: Duration }): Promise<unknown>;
  users(): Promise<User[]>;
  /** Makes a user (with a password), or changes one, at once and for live sessions too. */
  putUser(username: string, changes: UserChanges): Promise<User>;
  /** Deletes a user and its sessions. */
  deleteUser(username: string): Promise<void>;
  refreshPolicy(policy: RefreshPolicy): Promise<RefreshPolicy>;
  /** The description of the API that the hub speaks besides its own. Rejects with the code no_dialect if there is none. */
  dialect(): Promise<Dialect>;
  /** Takes the name of a built-in dialect ("supabase") or a description: docs/dialects.md. */
  setDialect(dialect: string | Dialect): Promise<Dialect>;
  deleteDialect(): Promise<void>;
  sessions(): Promise<LiveSession[]>;
  /** Makes the tokens of this kind that the session has so far expire now. */
  expire(session: string, token?: 'access' | 'refresh'): Promise<unknown>;
  revoke(session: string): Promise<void>;
  mintToken(order: TokenOrder): Promise<{ token: string; session: string; [member: string]: unknown }>;
  fault(fault: Fault): Promise<QueuedFault>;
  faults(): Promise<QueuedFault[]>;
  /** Deletes one fault, or all of them. */
  deleteFaults(id?: string): Promise<void>;
  requests(filter?: RequestFilter): Promise<RecordedRequest[]>;
  /** Resolves to the matching requests, or rejects with expected, found and nearest when the statement doesn't hold. */
  expect(expectation: Expectation): Promise<RecordedRequest[]>;
  report(): Promise<Report>;
  /** The findings of the report as "rule: sentence". Empty for a correct client. */
  findings(): Promise<string[]>;
  /** The requests and the findings as text: what to print when a test fails. */
  summary(): Promise<string>;
  /** Sends a request to the lab, for example request("PUT", "/clock", { advance: "16m" }). */
  request(method: string, path: string, body?: unknown): Promise<any>;
}
