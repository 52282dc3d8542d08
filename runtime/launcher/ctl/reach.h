// SPDX-License-Identifier: Apache-2.0
#pragma once
// How crane-ctl's requests reach the nodes of a group: through the control sockets of this machine,
// over links to other hosts, or both.  Commands do not notice the difference.
//
// Threads: plain functions.

#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/launcher/control_client.h"

namespace crane::launcher {

struct Request;

class Reach {
 public:
  struct Answer {
    Reply reply = Reply::kAbsent;
    std::string text;  // if reply is kAnswer
    bool here = true;  // the replica's directory is on this machine
  };

  virtual ~Reach() = default;
  // The replicas that can be asked, whether or not they answer.
  virtual std::set<int> replicas() const = 0;
  // Sends the request to these replicas and waits for all answers, at most some seconds.
  // REQUIRES: `asked` is part of replicas().
  virtual std::map<int, Answer> ask(const std::set<int>& asked, const std::string& what) const = 0;
};

// With the operator's context: links to all nodes.  Otherwise the nodes of this machine and, if
// crane-run --hosts left a context here, links to the others.
std::unique_ptr<Reach> reach_of(const Request& request, const std::string& group);

}  // namespace crane::launcher
