// SPDX-License-Identifier: Apache-2.0
#include "tests/linear/workload.h"

#include <fmt/format.h>

#include <charconv>

namespace crane::linear {
namespace {

constexpr const char* kLetters = "rcl";

bool number(const std::string& text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Action draw(Model model, std::uint64_t random) {
  const auto percent = random % 100;
  switch (model) {
    case Model::kRegister:
      return percent < 50 ? Action::kSet : Action::kGet;
    case Model::kCounter:
      return percent < 60 ? Action::kIncr : Action::kGet;
    case Model::kList:
      break;
  }
  return percent < 60 ? Action::kPush : Action::kRange;
}

}  // namespace

Workload::Workload(const WorkloadOptions& options) : options_(options), random_(options.seed) {
  for (const Model model : {Model::kRegister, Model::kCounter, Model::kList}) {
    for (unsigned i = 0; i < options.keys; ++i) slots_.push_back({model, i, 0, 0});
  }
}

std::string Workload::key_of(const Slot& slot, unsigned generation) const {
  return fmt::format("{}{}.{}.{}", kLetters[static_cast<std::size_t>(slot.model)], options_.prefix,
                     slot.number, generation);
}

Request Workload::next() {
  Slot& slot = slots_[random_() % slots_.size()];
  const unsigned most = slot.model == Model::kList ? options_.list_operations : options_.operations;
  if (slot.used == most) {
    ++slot.generation;
    slot.used = 0;
  }
  ++slot.used;
  Request r;
  r.key = key_of(slot, slot.generation);
  r.operation.action = draw(slot.model, random_());
  const bool writes = r.operation.action == Action::kSet || r.operation.action == Action::kPush;
  if (writes) r.operation.argument = ++value_;
  return r;
}

std::vector<Request> Workload::closing_reads() const {
  std::vector<Request> all;
  for (const Slot& slot : slots_) {
    for (unsigned g = 0; g <= slot.generation; ++g) {
      Request r;
      r.key = key_of(slot, g);
      r.operation.action = slot.model == Model::kList ? Action::kRange : Action::kGet;
      all.push_back(std::move(r));
    }
  }
  return all;
}

void write_request(std::string& to, const Request& request) {
  const std::string argument = std::to_string(request.operation.argument);
  switch (request.operation.action) {
    case Action::kSet:
      return write_command(to, {"SET", request.key, argument});
    case Action::kGet:
      return write_command(to, {"GET", request.key});
    case Action::kIncr:
      return write_command(to, {"INCR", request.key});
    case Action::kPush:
      return write_command(to, {"RPUSH", request.key, argument});
    case Action::kRange:
      return write_command(to, {"LRANGE", request.key, "0", "-1"});
  }
}

bool take_reply(const Reply& reply, Operation& op) {
  if (reply.kind == Reply::Kind::kError) {
    op.refused = true;
    return true;
  }
  switch (op.action) {
    case Action::kSet:
      return reply.kind == Reply::Kind::kStatus && reply.text == "OK";
    case Action::kGet:
      op.result = kNil;
      return reply.kind == Reply::Kind::kAbsent ||
             (reply.kind == Reply::Kind::kText && number(reply.text, op.result));
    case Action::kIncr:
    case Action::kPush:
      op.result = reply.integer;
      return reply.kind == Reply::Kind::kInteger;
    case Action::kRange:
      op.items.clear();
      if (reply.kind != Reply::Kind::kItems) return false;
      for (const std::string& item : reply.items) {
        if (!number(item, op.items.emplace_back())) return false;
      }
      return true;
  }
  return false;
}

}  // namespace crane::linear
