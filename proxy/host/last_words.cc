// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/last_words.h"

#include <fstream>

namespace crane::node {

std::string last_words(const Config& config) {
  std::ifstream log(config.replica_shm_dir() + "/runtime.log");
  std::string line, last;
  while (std::getline(log, line)) last = line.empty() ? last : line;
  return last.empty() ? "" : " (its last line: " + last + ")";
}

}  // namespace crane::node
