// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/port_questions.h"

namespace crane::node {

void PortQuestions::recover() {
  for (std::uint32_t file = 1; file <= w_.scheduler.files_used; ++file) {
    const dmt::FileRecord& f = w_.files[file];
    if (f.kind != dmt::FileKind::kSocket || f.listener.question == 0) continue;
    wanted(f.listener.bound.port, f.listener.question);
  }
}

void PortQuestions::ask_again() {
  std::erase_if(reign_questions_, [](const auto& question) { return !question.second; });
}

void PortQuestions::step(bool leads) {
  if (waiting_.empty()) return;
  if (!leads) reign_questions_.clear();
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto [question, port] = *next;
    const std::uint32_t file = socket_of(question);
    if (file == 0) {
      reign_questions_.erase(question);
      next = waiting_.erase(next);
      continue;
    }
    ++next;
    if (!leads) continue;
    // PORT-1
    if (const auto asked = reign_questions_.find(question);
        asked != reign_questions_.end() && asked->second)
      continue;
    const std::optional<int> error = find_out(port, question);
    if (error && actions_.propose({question, file, *error})) reign_questions_[question] = true;
  }
}

// The server runs meanwhile: a record that changes under our eyes has no such number.
std::uint32_t PortQuestions::socket_of(std::uint64_t question) const noexcept {
  const std::uint32_t used = __atomic_load_n(&w_.scheduler.files_used, __ATOMIC_ACQUIRE);
  for (std::uint32_t file = 1; file <= used; ++file) {
    const dmt::FileRecord& f = w_.files[file];
    if (__atomic_load_n(&f.kind, __ATOMIC_RELAXED) != dmt::FileKind::kSocket) continue;
    if (__atomic_load_n(&f.listener.question, __ATOMIC_RELAXED) == question) return file;
  }
  return 0;
}

std::optional<int> PortQuestions::find_out(std::uint16_t port, std::uint64_t question) {
  if (actions_.has(port)) return 0;
  if (reign_questions_.try_emplace(question, false).second) {
    settled_.erase(port);
    const std::optional<int> error = actions_.open(port);
    if (error) settled_[port] = *error;  // also for a proposal that has to wait
  }
  const auto found = settled_.find(port);
  if (found == settled_.end()) return std::nullopt;
  return found->second;
}

}  // namespace crane::node
