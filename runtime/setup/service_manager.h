// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages to systemd from a program that was started by a unit of Type=notify (sd_notify(3)).  A
// program that was started in another way sends none.
//
// Threads: one.

#include <cstdint>
#include <string>

namespace crane::setup {

class ServiceManager {
 public:
  // Removes the manager's variables from the environment, because the programs that this one starts
  // are not services, and a lasting group keeps its environment for the next start.
  ServiceManager();
  // Puts the variables back before this process starts again with exec.
  void put_back() const;

  // Whether this process is a service of systemd.
  bool manages() const noexcept { return !socket_.empty(); }

  // Sends a line for people (`systemctl status`) about the program's state, if it has changed.
  void status(const std::string& status);
  // Like status(), and reports that the program is up.
  void ready(const std::string& status);
  void stopping() const;

  // The interval at which the manager expects alive() (half of WatchdogSec), in ns; 0: never.
  std::int64_t watchdog_ns() const noexcept;
  void alive() const;

 private:
  void notify(const std::string& text) const;

  std::string socket_, watchdog_us_;  // values from the environment
  std::string status_;                // the last status line
  bool ready_ = false;
};

// The object of this process.  REQUIRES: the first call comes before any other code reads or passes
// on the environment.
ServiceManager& service_manager();

}  // namespace crane::setup
