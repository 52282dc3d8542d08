// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/clients/port_questions.h"

namespace crane::replica {

using namespace ports;

void PortQuestions::on(const AskAgain&) {
  for (auto& [number, question] : waiting_) {
    if (question.state == State::kAsked) question.state = State::kNew;
  }
}

void PortQuestions::on(const Tick& tick) {
  for (const OpenQuestion& seen : tick.seen) {
    const auto found = waiting_.find(seen.question);
    if (found == waiting_.end()) continue;
    if (seen.file == 0) {
      waiting_.erase(found);
      continue;
    }
    Question& question = found->second;
    question.file = seen.file;
    if (tick.leads) {
      look(seen.question, question, seen.has);
    } else {
      question.state = State::kNew;
    }
  }
}

void PortQuestions::look(std::uint64_t number, Question& question, bool has) {
  if (question.state == State::kAnswered) return;  // PORT-1
  if (has) {
    actions_.emplace_back(Propose{{number, question.file, 0}});
  } else if (question.state == State::kNew) {
    question.state = State::kAsked;
    settled_.erase(question.place);
    actions_.emplace_back(Open{number, question.place});
  } else if (const auto found = settled_.find(question.place); found != settled_.end()) {
    actions_.emplace_back(Propose{{number, question.file, found->second}});
  }
}

void PortQuestions::on(const Opened& opened) {
  const auto found = waiting_.find(opened.question);
  if (found == waiting_.end() || !opened.error) return;
  settled_[found->second.place] = *opened.error;  // also for a proposal that has to wait
  actions_.emplace_back(Propose{{opened.question, found->second.file, *opened.error}});
}

void PortQuestions::on(const Proposed& proposed) {
  const auto found = waiting_.find(proposed.question);
  if (found != waiting_.end() && proposed.ok) found->second.state = State::kAnswered;
}

}  // namespace crane::replica
