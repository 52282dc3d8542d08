// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command line of crane-run.
//
// Threads: plain values.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/setup/group_file.h"
#include "runtime/setup/host_list.h"
#include "runtime/setup/messages.h"
#include "runtime/setup/option_table.h"
#include "runtime/setup/preflight.h"

namespace crane::launcher {

using setup::detail;
using setup::failure;
using setup::say;
using setup::Status;
using setup::status_of;

// crane-run --hosts: one replica per host, started through a remote shell.
struct HostsOptions {
  std::vector<setup::HostWord> hosts;  // empty: all replicas on this machine
  std::string fabric = "tcp";
  std::string on_follower = "forward";
  std::string virtual_ip, interface;  // ADDRESS/BITS that moves with the lead, and where; or none
  // Asks nothing; a host that does not answer any more is noticed within 40 s.
  std::string rsh = "ssh -T -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10";
  std::string remote_path;  // of crane-run there; empty: as here
  std::string secret_file;  // empty: a new secret
  bool stop = false;        // end such a group instead of starting one
};

// crane-run doctor.
struct DoctorOptions {
  bool typed = false;
  std::string dir, output = "table";
  int replicas = 3;
  std::uint32_t ring_mb = 128;
  std::vector<std::uint16_t> ports;
};

// The options that nodes are told (runtime/setup/option_table.def), and those of crane-run alone.
struct Options : setup::NodeOptions {
  int replicas = 3;
  int spares = 0;            // places for replicas that come later
  std::string analysis;      // valgrind's tool for an analysis replica; empty: there is none
  std::string analysis_dir;  // of its report and spool
  std::uint32_t analysis_spool_mb = 4096;
  std::uint32_t ring_mb = 0;  // of the log in memory, per replica; 0: the default
  std::string name;           // default: the program's base name
  std::string profile;        // empty: by the program's name
  setup::Ports publish;
  std::string mode = "serial";             // or parallel
  std::vector<std::string> detach;         // and the profile's
  std::vector<std::string> soft_barriers;  // FUNCTION:COUNT:TIMEOUT_US, before the profile's
  std::string dir;                         // empty: /run/crane or $XDG_RUNTIME_DIR/crane
  std::vector<std::string> binds;          // read-only where there are several replicas
  std::vector<std::string> shared_binds;   // whoever writes there
  std::vector<std::string> data;           // directories of the server that last
  std::string http;                        // where replica 0 answers HTTP; empty: none does
  bool pin = true;
  std::uint64_t perturb = 0;
  bool trace = false;
  std::int64_t test_only_return_ms = 1'000;  // the first pause before a lost replica's return
  int test_only_flip = -1;                   // the replica whose output is made wrong
  bool verbose = false;
  HostsOptions remote;
  DoctorOptions doctor;
  std::vector<std::string> program;  // name and arguments, as typed
  std::vector<std::string> words;    // all of the command line behind crane-run, as typed
  bool stop = false;                 // end the group of this name instead of starting one
  bool dry_run = false;              // say what would be done
  bool force_new_group = false;      // whatever is left of one of this name is given up

  setup::GroupPlace place() const {
    return {
        name, dir, places(), record, lasts(), on_disk(), ring_mb != 0 ? ring_mb : setup::kRingMb};
  }
  bool on_disk() const { return durability == "disk"; }
  // Whether something of the group is there again at its next start.
  bool lasts() const { return on_disk() || !data.empty(); }
  int places() const { return replicas + spares + (analysis.empty() ? 0 : 1); }
  // The last place; -1: there is none.
  int analysis_place() const { return analysis.empty() ? -1 : replicas + spares; }
};

enum class Parsed { kRun, kShown, kProblem };

// kShown: --help or --version was asked for and printed. kProblem: `problem` says what.
Parsed parse_options(int argc, const char* const* argv, Options& options, Outcome& problem);

}  // namespace crane::launcher
