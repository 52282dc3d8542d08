// SPDX-License-Identifier: Apache-2.0
#pragma once
// The requests of the load client: random operations on a few keys of each model. After some
// operations a key is replaced by a fresh one, so that each key's history stays short enough to
// check.

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/linear/history.h"
#include "tests/linear/resp.h"

namespace crane::linear {

struct WorkloadOptions {
  std::uint64_t seed = 1;
  std::string prefix;         // follows the model's letter in every key
  unsigned keys = 4;          // of each model at a time
  unsigned operations = 150;  // on a register or counter
  unsigned list_operations = 60;
};

struct Request {
  std::string key;
  Operation operation;  // action and argument
};

class Workload {
 public:
  explicit Workload(const WorkloadOptions& options);

  // Values of set and push are never used twice.
  Request next();
  // Reads each key that was ever used once more, to find values that got lost.
  std::vector<Request> closing_reads() const;

 private:
  struct Slot {
    Model model{};
    unsigned number = 0;
    unsigned generation = 0;
    unsigned used = 0;
  };
  std::string key_of(const Slot& slot, unsigned generation) const;

  const WorkloadOptions options_;
  std::mt19937_64 random_;
  std::vector<Slot> slots_;
  std::int64_t value_ = 0;
};

// The command for redis.
void write_request(std::string& to, const Request& request);
// Puts the reply into the operation. Returns false if the reply does not fit the operation. An
// error makes it `refused`.
bool take_reply(const Reply& reply, Operation& operation);

}  // namespace crane::linear
