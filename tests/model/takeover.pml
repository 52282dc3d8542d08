/* SPDX-License-Identifier: Apache-2.0
 *
 * Permission switch and takeover of the consensus core (consensus/core/README.md) for 3 replicas, VIEWS
 * views and SLOTS log positions.  run_model.py checks the model, and that every mutant (-D) is
 * caught.
 *
 * One atomic step is one step of one replica, or one WRITE that lands.  A WRITE is in flight once
 * its entry is in its leader's log.  It may land at any later time, also after its leader was
 * deposed, as long as its key is valid.  A replica that is never chosen again has crashed or is
 * stopped.  An entry is committed as soon as the core could count it, which is the earliest and
 * hence the strictest moment.  At any moment a WRITE may also land in half and never complete: the
 * slot then holds nothing that a reader accepts as an entry (its CRC is wrong).
 */
#ifndef VIEWS
#define VIEWS 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#define N 3
#define BASE 5 /* at most the views and "none", so that an entry fits into a byte */

/* An entry: its stamp, its predecessor's stamp, and the view in which it was first proposed.  The
 * last differs from the first only in the RESTAMP mutant.  0 is an empty or torn slot. */
#define ENTRY(stamp, pred, origin) ((stamp) + BASE * (pred) + BASE * BASE * (origin))
#define STAMP(e) ((e) % BASE)
#define PRED(e) (((e) / BASE) % BASE)
#define ORIGIN(e) ((e) / (BASE * BASE))

#define RING(r, i) ring[(r) * SLOTS + (i)]
#define LOG(v, i) log[(v) * SLOTS + (i)]
#define OF(v, r) [(v) * N + (r)]

#define UNCLAIMED N
#define ASKING 0
#define LEADING 1
#define GIVEN_UP 2

byte ring[N * SLOTS];
byte promised[N];            /* P1: only grows */
byte key[N];                 /* the only view whose WRITEs land here (P3); 0: none */
byte owner[VIEWS + 1];
byte phase[VIEWS + 1];
byte log[(VIEWS + 1) * SLOTS]; /* the leader's log in that view, which its WRITEs carry */
byte length[VIEWS + 1];
byte start[VIEWS + 1];       /* the position of its START */
bool granted[(VIEWS + 1) * N];
byte last_stamp[(VIEWS + 1) * N]; /* from the grant: the stamp of the last entry ... */
byte last_end[(VIEWS + 1) * N];   /* ... and the number of entries */
byte sent[(VIEWS + 1) * N];       /* number of completed entries */
byte committed[SLOTS];       /* ghost: the origin of the entry committed there */
byte committed_in[SLOTS];    /* ghost: the lowest view that committed it */
bool begun;

#if defined(SKIP_FENCE)
#define PERMITTED(v, r) granted OF(v, r)
#elif defined(REUSE_KEY) /* U6: a key for the owner instead of a fresh one for each grant */
#define PERMITTED(v, r) (granted OF(v, r) && key[r] && owner[key[r]] == owner[v])
#else
#define PERMITTED(v, r) (key[r] == v)
#endif

#ifdef FORGET_PROMISE
#define MAY_PROMISE(r, v) (promised[r] != v && !granted OF(v, r))
#else
#define MAY_PROMISE(r, v) (promised[r] < v)
#endif

#ifdef ADOPT_LONGEST
#define BETTER(v, a, b) (last_end OF(v, a) > last_end OF(v, b))
#else
#define BETTER(v, a, b)               \
  (last_stamp OF(v, a) > last_stamp OF(v, b) || \
   (last_stamp OF(v, a) == last_stamp OF(v, b) && last_end OF(v, a) > last_end OF(v, b)))
#endif

/* Temporaries; 0 between steps. */
byte r, v, n, m, s, w, source;

/* Finds the log of `rep`, up to the first entry that does not follow: n entries, last stamp s. */
inline scan(rep) {
  n = 0;
  s = 0;
  do
  :: n < SLOTS && STAMP(RING(rep, n)) != 0 && PRED(RING(rep, n)) == s ->
     s = STAMP(RING(rep, n));
     n++
  :: else -> break
  od
}

/* Everything below `end` is committed in view `v`. */
inline commit(end) {
  n = 0;
  do
  :: n < end ->
     /* AGREEMENT: there are never two entries at one index. */
     assert(committed[n] == 0 || committed[n] == ORIGIN(LOG(v, n)));
     committed[n] = ORIGIN(LOG(v, n));
#ifdef WITNESS /* not a mutant: shows that the last view commits after an entry of the first view */
     assert(n == 0 || committed[0] != 1 || committed[n] != VIEWS);
#endif
     if
     :: committed_in[n] == 0 || committed_in[n] > v -> committed_in[n] = v
     :: else
     fi;
     /* COMPLETENESS, for leaders that exist already. */
     w = v + 1;
     do
     :: w <= VIEWS ->
        assert(phase[w] != LEADING || ORIGIN(LOG(w, n)) == committed[n]);
        w++
     :: else -> break
     od;
     n++
  :: else -> break
  od
}

/* C2: the leader and one follower are a majority; the START of the view must be counted, too. */
inline count(end) {
  if
#ifdef COUNT_OLD_VIEWS
  :: promised[owner[v]] == v -> commit(end)
#else
  :: promised[owner[v]] == v && end > start[v] -> commit(end)
#endif
  :: else
  fi
}

inline append(origin, pred) {
  LOG(v, length[v]) = ENTRY(v, pred, origin);
  RING(owner[v], length[v]) = LOG(v, length[v]);
  length[v]++;
#ifdef COUNT_MINORITY
  count(length[v])
#endif
}

/* C4: finds the first entry in which follower r differs; WRITEs begin there. */
inline match() {
#if defined(COUNT_GAP)
  sent OF(v, r) = start[v];
#elif defined(REWRITE)
  sent OF(v, r) = 0;
#else
  scan(r);
  m = 0;
  do
  :: m < n && m < length[v] && RING(r, m) == LOG(v, m) -> m++
  :: else -> break
  od;
  sent OF(v, r) = m;
#endif
  count(sent OF(v, r))
}

inline remember_scan() {
  scan(r);
  last_end OF(v, r) = n;
  last_stamp OF(v, r) = s
}

/* Chooses the replica whose log the candidate takes; N if the log cannot be read any more, because
 * another leader writes it now. */
inline choose_source() {
  source = owner[v];
#ifndef KEEP_OWN_LOG
  r = 0;
  do
  :: r < N ->
     if
     :: granted OF(v, r) && BETTER(v, r, source) -> source = r
     :: else
     fi;
     r++
  :: else -> break
  od;
#endif
  m = last_end OF(v, source);
  scan(source);
  if
  :: n < m || (m > 0 && STAMP(RING(source, m - 1)) != last_stamp OF(v, source)) -> source = N
  :: else
  fi
}

/* Takes the first `m` entries with their original stamps. */
inline take() {
  n = 0;
  do
  :: n < m ->
#ifdef RESTAMP
     LOG(v, n) = ENTRY(v, (n == 0 -> 0 : v), ORIGIN(RING(source, n)));
#else
     LOG(v, n) = RING(source, n);
#endif
     n++
  :: else -> break
  od;
  n = 0;
  do
  :: n < m -> RING(owner[v], n) = LOG(v, n); n++
  :: else -> break
  od;
  length[v] = m
}

inline forget_grants() {
  r = 0;
  do
  :: r < N -> last_end OF(v, r) = 0; last_stamp OF(v, r) = 0; r++
  :: else -> break
  od
}

inline lead() {
  take();
  phase[v] = LEADING;
  /* COMPLETENESS: this leader's log has all that earlier views committed. */
  n = 0;
  do
  :: n < SLOTS ->
     assert(committed[n] == 0 || committed_in[n] > v ||
            (n < length[v] && ORIGIN(LOG(v, n)) == committed[n]));
     n++
  :: else -> break
  od;
  if
  :: m == SLOTS -> phase[v] = GIVEN_UP /* no room for START */
  :: else ->
     start[v] = m;
     append(v, (m == 0 -> 0 : STAMP(LOG(v, m - 1))));
     r = 0;
     do
     :: r < N ->
        if
        :: r != owner[v] && PERMITTED(v, r) -> match()
        :: else
        fi;
        r++
     :: else -> break
     od
  fi;
  forget_grants()
}

/* Fence, scan, grant.  No WRITE of an older key lands between fence and scan, so it is one step. */
inline settle() {
#if !defined(SKIP_FENCE) && !defined(REUSE_KEY)
  /* The value is never used again; resetting it means fewer states. */
  sent OF(key[r], r) = 0;
  if
  :: key[r] && phase[key[r]] != ASKING && owner[key[r]] != r -> granted OF(key[r], r) = false
  :: else
  fi;
#endif
  key[r] = v;
  granted OF(v, r) = true;
#ifndef SCAN_BEFORE_FENCE
  if
  :: phase[v] == ASKING -> remember_scan()
  :: else
  fi;
#endif
  if
  :: phase[v] == LEADING && r != owner[v] -> match()
  :: else
  fi
}

#define ENOUGH(v) (granted OF(v, 0) + granted OF(v, 1) + granted OF(v, 2) >= 2)
#define ACTS(v) (promised[owner[v]] == v && key[owner[v]] == v && granted OF(v, owner[v]))
#define IN_FLIGHT(v, r)                                                               \
  (phase[v] == LEADING && r != owner[v] && granted OF(v, r) && PERMITTED(v, r) && \
   sent OF(v, r) < length[v])

active proctype world() {
  d_step {
    v = 1;
    do
    :: v <= VIEWS -> owner[v] = UNCLAIMED; v++
    :: else -> break
    od;
    v = 0
  }
  do
  :: atomic {
       if
       :: r = 0
       :: r = 1
       :: r = 2
       fi;
       v = 1;
       do
       :: v < VIEWS -> v++
       :: break
       od;
       if
       /* A candidate takes its own view.  The first is replica 0, because replicas are alike. */
       :: owner[v] == UNCLAIMED && promised[r] < v && (begun || r == 0) -> d_step {
            begun = true;
            owner[v] = r;
            promised[r] = v;
#ifdef SCAN_BEFORE_FENCE
            remember_scan();
            skip
#endif
          }
       /* The promise, requested by a candidate that has settled its own ring. */
       :: owner[v] != UNCLAIMED && r != owner[v] && granted OF(v, owner[v]) &&
          phase[v] != GIVEN_UP && MAY_PROMISE(r, v) -> d_step {
            promised[r] = v;
#ifdef SCAN_BEFORE_FENCE
            if
            :: phase[v] == ASKING -> remember_scan()
            :: else
            fi;
            skip
#endif
          }
       :: promised[r] == v && key[r] != v && !granted OF(v, r) -> d_step { settle(); skip }
       :: owner[v] == r && phase[v] == ASKING && ACTS(v) && ENOUGH(v) -> d_step {
            choose_source();
            if
            :: source < N -> lead()
            :: else
            fi;
            skip
          }
       /* It is deposed or gives up while it adopts. */
       :: owner[v] == r && phase[v] == ASKING && ACTS(v) && ENOUGH(v) -> d_step {
            choose_source();
            if
            :: source < N && source != owner[v] && m > 1 ->
               m = 1;
               take();
               LOG(v, 0) = 0;
               length[v] = 0;
               phase[v] = GIVEN_UP;
               forget_grants()
            :: else
            fi;
            skip
          }
       :: owner[v] == r && phase[v] == LEADING && ACTS(v) && length[v] < SLOTS -> d_step {
            append(v, STAMP(LOG(v, length[v] - 1)));
            skip
          }
       /* A WRITE lands, ... */
       :: IN_FLIGHT(v, r) -> d_step {
            RING(r, sent OF(v, r)) = LOG(v, sent OF(v, r));
            sent OF(v, r)++;
            count(sent OF(v, r));
            skip
          }
       /* ... or half of it lands. */
       :: IN_FLIGHT(v, r) && RING(r, sent OF(v, r)) != 0 -> d_step {
#ifdef SKIP_CRC /* U11: the header is new, the payload is an older one */
            RING(r, sent OF(v, r)) =
                ENTRY(STAMP(LOG(v, sent OF(v, r))), PRED(LOG(v, sent OF(v, r))),
                      ORIGIN(RING(r, sent OF(v, r))));
            skip
#else
            RING(r, sent OF(v, r)) = 0
#endif
          }
       :: else
       fi;
       r = 0; v = 0; n = 0; m = 0; s = 0; w = 0; source = 0
     }
  od
}
