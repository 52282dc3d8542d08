/* SPDX-License-Identifier: Apache-2.0
 *
 * One client's connection while the leader changes (proxy/clients/README.md): 3 nodes of one host,
 * BYTES bytes of the client, VIEWS leaders.  The server answers each byte with one byte.
 * run_model.py checks the model, and that every mutant (-D) is caught.
 *
 * One atomic step is one system call or one step of a node.  A node that is never chosen again is
 * stopped.  A deposed node may not know that it is deposed, and continues as if it led: it may take
 * the socket over only then, with the log of its own view (WRITER-2).  Consensus behaves as in
 * takeover.pml: the leader of the newest view commits; a proposal of an earlier leader is committed
 * by the next leader or never.
 */
#ifndef BYTES
#define BYTES 3
#endif
#ifndef VIEWS
#define VIEWS 3
#endif
#define N 3
#define NONE N
#ifdef ANY_VIEW
#define MAY_ASK(m) true
#else
#define MAY_ASK(m) (newest <= reign[m])
#endif

/* The kernel's socket: bytes that the client has sent, and that all nodes have taken and put. */
byte sent, taken, put;
/* The log: the number of the client's bytes in it; the next entry must follow them. */
byte logged;
/* The connection table: the node that may use the socket. */
byte writer = NONE;
byte newest;                    /* the view of the last request for that */

byte view, leader = NONE;       /* of the newest view */
byte proposed = 0;              /* by the leader: the number of one byte, from 1; 0: none */
bool dead[N];
bool leads[N];                  /* as the node believes */
byte reign[N];                  /* in which view */
byte start[N];                  /* the size of the log at the begin of that view */
bool serves[N];                 /* it has taken the socket over */
byte seen[N];                   /* bytes of the log that its server has answered */
byte undropped[N];              /* bytes committed, but not yet taken by this node */
byte next[N];                   /* the position it writes next */
byte kept[N];                   /* the first byte of the output that it keeps */

byte n, o;

/* Resets the state of a dead node: one value keeps the number of states low. */
inline die(m) {
  dead[m] = true;
  leads[m] = false; serves[m] = false;
  reign[m] = 0; start[m] = 0; seen[m] = 0; undropped[m] = 0; next[m] = 0; kept[m] = 0
}

/* `known`: the part of the log that this node knows. */
inline take_over(m, known) {
  newest = reign[m];
#ifndef NO_KILL
  if
  :: writer != NONE && writer != m -> die(writer)  /* it did not stop voluntarily */
  :: else
  fi;
#endif
  writer = m;
  assert(taken <= known);       /* CONN-4 */
  assert(put <= seen[m]);       /* START follows all answers of earlier servers */
  assert(put >= kept[m]);       /* this node has the bytes to continue with */
  undropped[m] = known - taken;
  next[m] = put;
#ifdef TAKEN_ONE_OFF
  if :: undropped[m] > 0 -> undropped[m]-- :: else fi;
#endif
#ifdef PUT_ONE_OFF
  if :: next[m] > 0 -> next[m]-- :: else fi;
#endif
  serves[m] = true
}

/* The next leader: its log has the last leader's proposal, or no log will ever have it. */
inline elect(m) {
  if
  :: proposed != 0 -> assert(proposed == logged + 1); logged++
  :: true
  fi;
  proposed = 0;
  view++;
  leader = m;
  leads[m] = true;
  reign[m] = view;
  start[m] = logged
}

active proctype world() {
  do
  :: atomic { sent < BYTES -> sent++ }

  :: atomic { view < VIEWS ->
       select(n : 0 .. N - 1);
       if
       /* A node that leads again has learned before that it was deposed. */
       :: !dead[n] && n != leader && !leads[n] -> elect(n)
       :: else
       fi }

  :: atomic {
       select(n : 0 .. N - 1);
       if
       :: dead[n] -> skip
       /* It is killed; it learns that it is deposed; it learns what was committed. */
       :: !dead[n] && view > 0 && n == leader && view < VIEWS -> die(n)
       :: !dead[n] && leads[n] && n != leader ->
            leads[n] = false; serves[n] = false; undropped[n] = 0;
            reign[n] = 0; start[n] = 0;
            if :: writer == n -> writer = NONE :: else fi
       :: !dead[n] && seen[n] < logged && !serves[n] &&
            (!leads[n] || n == leader || seen[n] < start[n]) -> seen[n]++
#ifdef DROP_AT_ONCE
            ; kept[n] = seen[n]
#endif
       /* The leader has reported its position. */
       :: !dead[n] && !leads[n] && kept[n] < put -> kept[n] = put
       /* It leads: its server has reached its START. */
       :: !dead[n] && n == leader && !serves[n] && seen[n] == logged && proposed == 0 ->
            take_over(n, logged)
       /* It believes that it leads. */
       :: !dead[n] && leads[n] && n != leader && !serves[n] && seen[n] == start[n] &&
            MAY_ASK(n) -> take_over(n, start[n])
       /* It serves, or believes that it serves. */
       :: !dead[n] && serves[n] && n == leader && proposed == 0 && taken + undropped[n] < sent ->
            proposed = taken + undropped[n] + 1
#ifdef CONSUME_EARLY
            ; taken++
#endif
       :: !dead[n] && serves[n] && n == leader && proposed != 0 ->
            assert(proposed == logged + 1); /* each byte once, in order */
            logged++; seen[n] = logged; proposed = 0
#ifndef CONSUME_EARLY
            ; undropped[n]++
#endif
       :: !dead[n] && serves[n] && undropped[n] > 0 -> taken++; undropped[n]--;
            assert(taken <= logged)
       :: !dead[n] && serves[n] && next[n] < seen[n] ->
            assert(next[n] == put);         /* each byte once, in order: CONN-5 */
            put++; next[n]++
       :: else
       fi }
  od
}
