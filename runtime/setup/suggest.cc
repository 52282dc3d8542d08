// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/suggest.h"

#include "dmt/base/join.h"

#include <algorithm>
#include <numeric>

namespace crane::setup {
namespace {

// The number of letters to insert, remove, replace, or exchange with their neighbour.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1)});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before = row;
    std::swap(row, next);
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& one : known) {
    const bool begun = word.size() >= 2 && one.compare(0, word.size(), word) == 0;
    const std::size_t far = begun ? 1 : distance(word, one);
    if (far >= least) continue;
    best = one;
    least = far;
  }
  return best;
}

std::string unknown_command(const std::string& word, const std::vector<std::string>& known) {
  std::string text = "unknown command '" + word + "'";
  if (const std::string meant = nearest(word, known); !meant.empty()) {
    return text + "; did you mean '" + meant + "'?";
  }
  return text + "; there are: " + joined(known);
}

}  // namespace crane::setup
