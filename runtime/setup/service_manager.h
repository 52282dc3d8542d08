// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages to systemd from a program that a unit of Type=notify has started (sd_notify(3)).  A
// program that was started otherwise sends none.
//
// Threads: one.

#include <cstdint>
#include <string>

namespace crane::setup {

class ServiceManager {
 public:
  // Takes the manager's words out of the environment: what this program starts is no service, and
  // a group that lasts keeps its environment for another start.
  ServiceManager();
  // For this process, which begins again by exec.
  void put_back() const;

  // This process is a service of it.
  bool manages() const noexcept { return !socket_.empty(); }

  // What the program does, a line for people (`systemctl status`); the same one is sent once.
  void status(const std::string& status);
  // The same, and that it is up.
  void ready(const std::string& status);
  void stopping() const;

  // How often the manager wants to hear alive() (half of WatchdogSec), nanoseconds; 0: never.
  std::int64_t watchdog_ns() const noexcept;
  void alive() const;

 private:
  void tell(const std::string& text) const;

  std::string socket_, watchdog_us_;  // as in the environment
  std::string status_;                // the last one
  bool ready_ = false;
};

// This process's; the first call must come before anything reads or passes on the environment.
ServiceManager& service_manager();

}  // namespace crane::setup
