// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <utility>

#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {
namespace {

// In the order of the enumeration.
constexpr std::array<std::pair<const char*, const char*>, kMutants> kNames{{
    {"none", ""},
    {"hold-forever", "TAKE-1: a dump that is given up keeps the log"},
    {"dump-early", "TAKE-2: the server is dumped before it has reached the place"},
    {"restart-anywhere", "LACK-1: a replica restarts at any checkpoint"},
    {"retry-unusable", "LACK-2: a replica restarts at one that could not be unpacked"},
    {"lacking-serves", "ASK-1: a replica that lacks entries counts as able to take checkpoints"},
    {"ask-absent", "ASK-2: an absent replica is asked for a checkpoint"},
    {"forget-waiting", "the leader requests no checkpoint for replicas that wait for one"},
    {"never-look", "VOTES-1: a replica without a server looks for no checkpoint"},
    {"restart-at-once", "VOTES-1: a replica without a server restarts whatever the others do"},
    {"never-vote-only", "VOTES-1: a replica whose log begins too late ends"},
    {"never-full", "KEEP-1: inputs do not wait for a checkpoint"},
    {"keep-old-place", "KEEP-1: a newer checkpoint makes no room"},
    {"forget-failure", "SCHEDULE-1: no other checkpoint follows one that failed"},
    {"caught-up-at-once", "CATCHUP-1: a replica has caught up as soon as it begins"},
    {"overtake-always", "OVERTAKE-1: every newer checkpoint is worth a restart"},
    {"keep-lead", "LAG-1: a leader whose server lags keeps leading"},
    {"goal-moves", "CATCHUP-1: what is committed meanwhile must be run as well"},
    {"store-is-ready", "CATCHUP-1: a replica that runs its store's log again has caught up"},
    {"say-ready", "VERDICT-2: a recovering replica reports that it could lead and serve"},
    {"trust-all", "START-3: a checkpoint after which replicas differed is as good as another"},
    {"keep-refusal", "TIER-1: another replica's dump does not end a refusal"},
    {"leave-full", "a node that finds no room on its disk leaves its group"},
    {"survive-crash", "D18: a server that an input crashed counts as killed"},
    {"no-rollback", "UPGRADE-2: a server that does not listen in time stays"},
    {"serve-early", "LEAD-2: a leader takes clients before its server has run its START"},
    {"forget-clients", "a replica that begins at a checkpoint knows none of its connections"},
}};

}  // namespace

const char* name(Mutant mutant) { return kNames[static_cast<std::size_t>(mutant)].first; }
const char* rule(Mutant mutant) { return kNames[static_cast<std::size_t>(mutant)].second; }

}  // namespace crane::replica::sim
