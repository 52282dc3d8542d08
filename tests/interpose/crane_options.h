// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command line of crane-solo.
//
// usage: crane_solo [--lib PATH] [--parallel] [--hash] [--perturb SEED] [--signal N [--after MS]]
//        [--clients SCRIPT] [--strict] [--unhooked] [--check-ins] [--stalls]
//        [--detach-sync]
//        [--restores] [--dump INDEX:PATH] [--resume DIRECTORY:COMMAND [--unannounced]]
//        [--barriers FUNCTION:COUNT:TIMEOUT_US,..] [--slices US:FILE|US:counter|US:steps]
//        -- PROGRAM ARGS
// --barriers: at the end, the state of each, on standard output
// --restores: before each entry the replica becomes quiescent, and is notified of a restore
// --dump: once, quiescent after entry INDEX: writes "PID DIRECTORY" to the FIFO PATH.ask, and
//         holds the replica until PATH.answer contains +: the answering process saves the process
//         tree and the segment's directory
// --resume: instead of starting PROGRAM: COMMAND restores the saved tree, and lasts as long as it
// --unannounced: .. and no thread is notified
// --unhooked: at the end, the calls that bypassed the library, on standard output
// --check-ins: .. and how often processes checked in
// --slices: in serial mode, time slices of US at the tick points of FILE
//           (proxy/ticks/point_file.h);
//           or at counts of branches that the program counts (branches.h), with interrupts whose
//           delay SEED chooses, and which sometimes come early;
//           or at counts of instructions of any program, which is single-stepped all the time;
//           at the end "slices N, REFUSED of POINTS points refused" on standard error
// exit status: the program's; 128 + signal; 90 stuck, 91 fenced, 92 wrong usage or set-up,
//        93 stopped by --strict

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "dmt/base/branch_event.h"
#include "dmt/sequence/entry.h"

namespace crane::solo {

constexpr int kStuck = 90, kFenced = 91, kUsage = 92, kStrict = 93;

struct Options {
  std::string library;
  bool parallel = false, hash = false, strict = false, unhooked = false, check_ins = false;
  bool stalls = false;       // a stalled thread gives way
  bool detach_sync = false;  // fsync leaves the schedule
  bool restores = false;
  std::uint64_t dump_index = 0;
  std::string dump, resume_directory, resume;
  bool announced = true;
  std::uint64_t perturb = 0;
  int signal = 0;          // sent once, as an operator's, when the program waits after `after`
  std::int64_t after = 0;  // virtual time in ms
  std::vector<std::string> soft_barriers, socket_directories;
  std::uint64_t slice_us = 0;
  std::uint32_t branch_event = 0;
  std::vector<TickPoint> tick_points;
  std::string clients;  // script of crane_clients.h
  std::vector<char*> command;
};

[[noreturn]] inline void die(const char* what) {
  std::fprintf(stderr, "crane_solo: %s: %s\n", what, std::strerror(errno));
  std::exit(kUsage);
}

inline void read_slices(const std::string& words, Options& o) {
  o.slice_us = std::strtoull(words.c_str(), nullptr, 10);
  const std::string by = words.substr(words.find(':') + 1);
  o.branch_event = by == "counter" ? kSimulatedEvent : by == "steps" ? kSteppedEvent : 0;
  if (o.slice_us != 0 && o.branch_event != 0) return;
  std::ifstream file(by);
  TickPoint p{};
  while (file >> std::hex >> p.build >> p.offset >> std::dec >> p.bytes >> p.dead_flags >>
         p.weight_ps) {
    o.tick_points.push_back(p);
  }
  if (o.slice_us == 0 || !file.eof()) {
    errno = EINVAL;
    die("--slices");
  }
}

inline Options parse(int argc, char** argv) {
  Options o;
  int i = 1;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string a = argv[i];
    if (a == "--parallel") {
      o.parallel = true;
    } else if (a == "--detach-sync") {
      o.detach_sync = true;
    } else if (a == "--stalls") {
      o.stalls = true;
    } else if (a == "--restores") {
      o.restores = true;
    } else if (a == "--unannounced") {
      o.announced = false;
    } else if (a == "--dump" && i + 1 < argc) {
      o.dump_index = std::strtoull(argv[++i], nullptr, 0);
      o.dump = std::string(argv[i]).substr(std::string(argv[i]).find(':') + 1);
    } else if (a == "--resume" && i + 1 < argc) {
      const std::string both = argv[++i];
      o.resume_directory = both.substr(0, both.find(':'));
      o.resume = both.substr(both.find(':') + 1);
    } else if (a == "--hash") {
      o.hash = true;
    } else if (a == "--strict") {
      o.strict = true;
    } else if (a == "--unhooked") {
      o.unhooked = true;
    } else if (a == "--check-ins") {
      o.check_ins = true;
    } else if (a == "--lib" && i + 1 < argc) {
      o.library = argv[++i];
    } else if (a == "--perturb" && i + 1 < argc) {
      o.perturb = std::strtoull(argv[++i], nullptr, 0);
    } else if (a == "--signal" && i + 1 < argc) {
      o.signal = std::atoi(argv[++i]);
    } else if (a == "--clients" && i + 1 < argc) {
      o.clients = argv[++i];
    } else if (a == "--barriers" && i + 1 < argc) {
      std::istringstream words(argv[++i]);
      for (std::string word; std::getline(words, word, ',');) o.soft_barriers.push_back(word);
    } else if (a == "--slices" && i + 1 < argc) {
      read_slices(argv[++i], o);
    } else if (a == "--sockets-in" && i + 1 < argc) {
      o.socket_directories.emplace_back(argv[++i]);
    } else if (a == "--after" && i + 1 < argc) {
      o.after = std::atoll(argv[++i]);
    } else {
      errno = EINVAL;
      die(argv[i]);
    }
  }
  for (++i; i < argc; ++i) o.command.push_back(argv[i]);
  if (o.command.empty() && o.resume.empty()) {
    errno = EINVAL;
    die("no program");
  }
  o.command.push_back(nullptr);
  if (o.library.empty()) {
    // In <out>, whether this program is <out>/crane-solo or <out>/interpose/crane_solo.
    char self[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    std::string path(self, n > 0 ? static_cast<std::size_t>(n) : 0);
    do {
      path.resize(path.rfind('/'));
      o.library = path + "/libcrane.so";
    } while (access(o.library.c_str(), R_OK) != 0 && path.rfind('/') != 0);
  }
  return o;
}

}  // namespace crane::solo
