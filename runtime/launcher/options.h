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
using setup::print_message;
using setup::Status;
using setup::status_of;

// crane-run --hosts: one replica per host, started through a remote shell.
struct HostsOptions {
  std::vector<setup::HostWord> hosts;  // empty: all replicas on this machine
  std::string fabric = "tcp";
  std::string on_follower = "forward";
  std::string virtual_ip, interface;  // ADDRESS/BITS that moves with the lead, its device; or empty
  // ssh without prompts; it notices within 40 s that a host no longer answers.
  std::string rsh = "ssh -T -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10";
  std::string remote_path;  // path of crane-run on the hosts; empty: as on this machine
  std::string secret_file;  // empty: a new secret
  bool stop = false;        // stop the group instead of starting one
};

// crane-run doctor.
struct DoctorOptions {
  bool typed = false;
  std::string dir, output = "table";
  int replicas = 3;
  std::uint32_t ring_mb = 128;
  std::vector<std::uint16_t> ports;
};

// The options that nodes get (runtime/setup/option_table.def), and those of crane-run only.
struct Options : setup::NodeOptions {
  int replicas = 3;
  int spares = 0;            // places for later replicas
  std::string analysis;      // valgrind's tool for an analysis replica; empty: none
  std::string analysis_dir;  // directory of its report and spool
  std::uint32_t analysis_spool_mb = 4096;
  std::uint32_t ring_mb = 0;  // size of the log in memory, per replica; 0: the default
  std::string name;           // default: the program's base name
  std::string profile;        // empty: chosen by the program's name
  setup::Ports publish;
  std::string mode = "serial";             // or parallel
  std::vector<std::string> detach;         // in addition to the profile's
  std::vector<std::string> soft_barriers;  // FUNCTION:COUNT:TIMEOUT_US, before the profile's
  std::string dir;                         // empty: /run/crane or $XDG_RUNTIME_DIR/crane
  std::vector<std::string> binds;          // read-only if there are several replicas
  std::vector<std::string> shared_binds;   // all replicas may write to them
  std::vector<std::string> data;           // lasting directories of the server
  std::string http;                        // HTTP address of replica 0; empty: no HTTP
  bool pin = true;
  std::uint64_t perturb = 0;
  bool trace = false;
  std::int64_t test_only_return_ms = 1'000;  // first pause before a lost replica starts again
  int test_only_flip = -1;                   // the replica with falsified output
  bool quiet = false, verbose = false;
  HostsOptions remote;
  DoctorOptions doctor;
  std::vector<std::string> program;  // name and arguments, as typed
  std::vector<std::string> words;    // the command line after crane-run, as typed
  bool stop = false;                 // stop the group of this name instead of starting one
  bool background = false;           // return when the group serves, and leave it running
  bool dry_run = false;              // print the plan only
  bool force_new_group = false;      // give up what an earlier group of this name left

  setup::GroupPlace place() const {
    return {
        name, dir, places(), record, lasts(), on_disk(), ring_mb != 0 ? ring_mb : setup::kRingMb};
  }
  bool on_disk() const { return durability == "disk"; }
  // Whether the group keeps data for its next start.
  bool lasts() const { return on_disk() || !data.empty(); }
  int places() const { return replicas + spares + (analysis.empty() ? 0 : 1); }
  // The place of the analysis replica, which is the last one; -1: none.
  int analysis_place() const { return analysis.empty() ? -1 : replicas + spares; }
};

enum class Parsed { kRun, kShown, kProblem };

// kShown: --help or --version was printed. kProblem: `problem` describes the mistake.
Parsed parse_options(int argc, const char* const* argv, Options& options, Outcome& problem);

}  // namespace crane::launcher
