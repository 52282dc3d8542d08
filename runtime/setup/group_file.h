// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one TOML file that describes a group to every host.  crane-node reads it.  The file is the
// same on all hosts.  ASCII only.
//
//   [group]     name, secret_file                both required
//               fabric = "tcp"                   or "verbs", "shm"; default tcp
//               device = "rxe0"                  verbs; default: the one that has the address
//               fence = "deregister"             verbs, how a write permission is revoked; or
//                                                "reset" (of queue pairs), or "flags" (of their
//                                                access), only with
//               fence_flags_devices = ["mlx5"]   names or drivers of devices where that is a fence
//               huge_pages = "auto"              verbs: the log's memory is on huge pages if
//                                                possible; or "require", or "never"
//               durability = "memory"            or "disk"; default memory
//               members = 3                      replicas 0, 1, .. that vote from the beginning;
//                                                default all; others are for crane-ctl member add
//               ring_mb = 128                    memory for the log, per replica: a power of two
//                                                from 16 to 1024; default 128
//               lag_ms = 250                     clients wait while a majority's servers are
//                                                further behind the leader's than this; 0: never
//               state_dir = "/run/crane"         logs, control.sock, stores
//               listen = "address"               where the node accepts the others' links; or
//                                                "any": at all addresses of this host, if `address`
//                                                leads to this host but is not its own (tcp only)
//               checkpoint_every_s = 60          interval of a follower's checkpoints, if clients
//                                                did something; 0: not by the clock
//               checkpoint_log_mb = 64           log growth for one; 0: not for that
//               restart_checkpoints = false      if CRIU refuses the server, Crane may end it on
//                                                all replicas at once and start it again on its
//                                                files, which are kept; clients are disconnected
//               restart_every_s = 0              interval of that, if clients did something; 0:
//                                                only for crane-ctl checkpoint now --tier restart
//   [[replica]] address, port                    a table per replica, in the order of numbers
//               clients = "192.0.2.1"            where clients reach it; default: address
//               cpu = 0                          for the server's threads; default: not bound
//               cpus = "2-5,8"                   for the whole replica; default: of numa_node
//               numa_node = 0                    node of the preferred memory; default: any
//               http = "9100"                    like [http] listen, only for this replica
//   [server]    command = ["redis-server", "--port", "7000"]
//               spins = false                    threads wait in loops without calls
//               branch_counter = false           slices also end at counts of branches
//               detach = ["fsync"]               operations for which no thread waits, in
//                                                addition to the profile's
//               soft_barriers = ["f:8:5000"]     callers of f wait for each other; precede the
//                                                profile's; like --soft-barrier
//               profile, mode, admission, quantum, n_clock, w_timeout_us, env = { NAME = "value" },
//               container = true, working_directory = "/", record = "/var/tmp/x"
//               binds = ["/srv:ro"]              directories of the host that the server sees,
//                                                like --bind; with several replicas read-only
//               shared_binds = ["/srv"]          writable ones, like --bind-shared
//               data = ["/srv/db"]               directories of the server's data, like --data;
//                                                needs durability = "disk"
//               strict = false                   true: a call past libcrane.so ends the group
//   [clients]   on_follower = "forward"          or "refuse"; default forward
//               publish = ["8080:80"]            this host's port : the server's
//               listen = "any"                   or "clients": only the replica's `clients`
//               virtual_ip = "192.0.2.9/24"      moves with the lead, on `interface`; IPv4
//               interface = "eth0"
//   [http]      listen = "9100"                  metrics, health and a page, on 127.0.0.1, or at
//                                                an address: "10.0.0.1:9100"; default: none
//               certificate = "/etc/crane/http.crt"  with key = "/etc/crane/http.key": TLS
//               users = "/etc/crane/users"       who may use it (http_users.h)
//               open = true                      everyone may read, also without TLS
//   [hooks]     role_change = "/usr/local/bin/moved"
//
// Threads: plain values.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/setup/messages.h"
#include "runtime/setup/option_table.h"
#include "runtime/setup/preflight.h"

namespace crane::setup {

inline constexpr int kProcessorMost = 1023;
inline constexpr int kNumaNodeMost = 1023;

struct HostReplica {
  std::string address;
  std::uint16_t port = 0;
  std::string clients = {};
  int cpu = -1;
  std::vector<int> cpus = {};  // ascending
  std::string http = {};
  int numa_node = -1;
};

struct GroupFile : NodeOptions {
  std::string name, secret_file, fabric = "tcp", device;
  std::string fence = "deregister";
  std::vector<std::string> fence_flags_devices;
  std::string huge_pages = "auto";
  std::string state_dir;  // empty: default_directory()
  bool links_listen_any = false;
  std::uint8_t members = 0;  // 0: all
  std::uint32_t ring_mb = 128;
  std::vector<HostReplica> replicas;

  std::vector<std::string> command;
  std::string profile, mode = "serial", working_directory = "/";
  std::vector<std::string> env;  // "NAME=value"
  std::vector<std::string> detach;
  std::vector<std::string> soft_barriers;  // FUNCTION:COUNT:TIMEOUT_US
  std::vector<std::string> binds, shared_binds, data;

  bool forward = true;
  bool listen_any = true;
  Ports publish;
  std::string virtual_ip, interface;
  std::string http;  // empty: no HTTP
  std::string role_change;
};

// "2-5,8" <-> {2, 3, 4, 5, 8}, the kernel's form of lists.  parse_cpus() returns false if the text
// is not a list or has a number above kProcessorMost.
bool parse_cpus(const std::string& text, std::vector<int>& cpus);
std::string cpus_text(const std::vector<int>& cpus);
// Errors: kGroupFile; the message names the file, the line and the key.
Outcome read_group_file(const std::string& path, GroupFile& file);
Outcome parse_group_file(const std::string& text, const std::string& path, GroupFile& file);
// The inverse of parse_group_file().
std::string to_toml(const GroupFile& file);

}  // namespace crane::setup
