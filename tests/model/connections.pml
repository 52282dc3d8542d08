/* SPDX-License-Identifier: Apache-2.0
 *
 * One client's connection while the leader changes (proxy/clients/README.md): 3 nodes of one host,
 * BYTES bytes of the client, VIEWS leaders.  The server answers each byte with one.
 * run_model.py checks it, and that every mutant (-D) is caught.
 *
 * One atomic step is one system call or one step of a node.  A node that is never chosen again is
 * stopped; one that was deposed may not know it, and goes on as if it led: it may take the socket
 * over only then, with the log of its own view (WRITER-2).  Consensus is what
 * takeover.pml shows: the leader of the newest view commits, and what an earlier one has proposed
 * in vain is committed by the next one or never.
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

/* The kernel's socket: what the client has sent, and what all nodes have taken and put. */
byte sent, taken, put;
/* The log: the client's bytes in their order, which the next one must follow. */
byte logged;
/* The connection table: who may use the socket. */
byte writer = NONE;
byte newest;                    /* the view of the last who asked for that */

byte view, leader = NONE;       /* of the newest view */
byte proposed = 0;              /* by the leader: the number of one byte, from 1; 0: none */
bool dead[N];
bool leads[N];                  /* as the node believes */
byte reign[N];                  /* in which view */
byte start[N];                  /* what the log had when that began */
bool serves[N];                 /* it has taken the socket over */
byte seen[N];                   /* of the log; its server has answered that much */
byte undropped[N];              /* committed, and not taken by this node yet */
byte next[N];                   /* the position it writes next */
byte kept[N];                   /* of the output, from here on */

byte n, o;

/* What it held is of no more use; one value of it keeps the states few. */
inline die(m) {
  dead[m] = true;
  leads[m] = false; serves[m] = false;
  reign[m] = 0; start[m] = 0; seen[m] = 0; undropped[m] = 0; next[m] = 0; kept[m] = 0
}

/* `known`: of the log, to this node. */
inline take_over(m, known) {
  newest = reign[m];
#ifndef NO_KILL
  if
  :: writer != NONE && writer != m -> die(writer)  /* it did not stop by itself */
  :: else
  fi;
#endif
  writer = m;
  assert(taken <= known);       /* CONN-4 */
  assert(put <= seen[m]);       /* START is behind all that an earlier server has answered */
  assert(put >= kept[m]);       /* the bytes to go on with are here */
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

/* The next leader: its log has the proposal of the last one, or nobody's ever will. */
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
       /* One that leads once more has first heard that it was deposed. */
       :: !dead[n] && n != leader && !leads[n] -> elect(n)
       :: else
       fi }

  :: atomic {
       select(n : 0 .. N - 1);
       if
       :: dead[n] -> skip
       /* It is killed; it hears that it is deposed; it hears what was committed. */
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
       /* The leader said how far it is. */
       :: !dead[n] && !leads[n] && kept[n] < put -> kept[n] = put
       /* It leads: its server has come to its START. */
       :: !dead[n] && n == leader && !serves[n] && seen[n] == logged && proposed == 0 ->
            take_over(n, logged)
       /* As it believes. */
       :: !dead[n] && leads[n] && n != leader && !serves[n] && seen[n] == start[n] &&
            MAY_ASK(n) -> take_over(n, start[n])
       /* It serves, or believes that. */
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
