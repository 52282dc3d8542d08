// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/replicas/model_proxy.h"

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/clients/encode.h"
#include "proxy/sim/replicas/world.h"

namespace crane::replica::sim {
namespace {

using proxy::sim::ClientShell;

constexpr std::size_t kTailLook = 64;  // for small worlds

std::uint32_t digest(std::span<const std::byte> body) {
  const std::string_view text(reinterpret_cast<const char*>(body.data()), body.size());
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(text));
}

ClientShell::Rules rules_of(const ModelClients& clients) {
  ClientShell::Rules rules;
  rules.options.connection = clients.options();
  rules.options.tail_look = kTailLook;
  return rules;
}

}  // namespace

ModelProxy::ModelProxy(ReplicaWorld& world, proxy::sim::Process process, std::uint64_t behind,
                       const proxy::sim::EchoServer* at)
    : world_(world),
      process_(process),
      server_(at != nullptr ? *at : proxy::sim::EchoServer(world.clients().options().send_buffer)),
      shell_(rules_of(world.clients()), world.clients().kernel(), process, world.clients().slots(),
             world.clients().random()) {
  const bool forgets = world.settings().mutant == Mutant::kForgetClients;
  shell_.restore(forgets ? proxy::sim::EchoServer(0) : server_, behind);
}

void ModelProxy::end() {
  ended_ = true;
  world_.clients().kernel().died(process_);
}

void ModelProxy::run() {
  while (!ended_ && shell_.next()) {
    if (!world_.passes_point(process_.first)) return;
  }
}

// --- the log and the server ----------------------------------------------------------------------

void ModelProxy::committed(std::uint64_t index) {
  const LogEntry& entry = world_.log().entry(index);
  if (entry.kind == LogEntry::Kind::kStart) {
    StartBody body{};
    body.resets = world_.settings().hosts ? Resets::kAll : Resets::kNone;
    shell_.clients().committed(EntryType::kStart, Index{index}, proxy::bytes_of(body));
  } else if (entry.kind == LogEntry::Kind::kClient) {
    shell_.clients().committed(entry.type, Index{index}, *entry.body);
  }
  run();
}

void ModelProxy::ran(std::uint64_t index) {
  const LogEntry& entry = world_.log().entry(index);
  if (entry.kind == LogEntry::Kind::kStart && world_.settings().hosts) return end_all(index);
  if (entry.kind != LogEntry::Kind::kClient) return;
  server_.admit(entry.type, Index{index}, *entry.body,
                [&](const OutputHeader& header, std::span<const std::byte> bytes) {
                  put_out(index, header, bytes);
                });
}

// Another server replaces this one (ServerRestart::close_all() in proxy/host), or the new leader
// resets all clients.
void ModelProxy::end_all(std::uint64_t index) {
  server_.reset_all([&](const OutputHeader& header, std::span<const std::byte> bytes) {
    world_.clients().ended(header.conn);
    put_out(index, header, bytes);
  });
}

void ModelProxy::put_out(std::uint64_t index, const OutputHeader& header,
                         std::span<const std::byte> bytes) {
  if (header.type == OutputType::kClose) world_.clients().closed(header.conn, index);
  shell_.clients().output(header, proxy::Pieces(&bytes, 1), false);
}

// --- one moment ----------------------------------------------------------------------------------

void ModelProxy::follow() {
  if (leading()) shell_.clients().follow();
  shell_.close_if_released();
  shell_.clients().prune();
  run();
}

void ModelProxy::lead() {
  shell_.take_over();
  run();
  if (ended_) return;
  const std::uint64_t adopted = shell_.clients().counters().last_adopted;
  world_.adopted(adopted);
  world_.trace_line("replica %u takes clients: %llu go on", process_.first,
                    static_cast<unsigned long long>(adopted));
  for (const auto& [conn, open] : server_.connections()) {
    shell_.clients().reset_unless_known(ConnId{conn});
  }
}

void ModelProxy::serve(bool admits) {
  run();  // actions that the server's output caused
  if (!ended_ && !leading()) lead();
  while (!ended_ && admits && shell_.accept().done) run();
  for (const int fd : shell_.watched()) {
    if (!ended_ && shell_.ring(fd).done) run();
  }
  if (!ended_) propose();
  if (!ended_) shell_.clients().resume_reading();
  run();
}

void ModelProxy::propose() {
  const auto one = [this](EntryType type, GrantTurns,
                          std::span<const std::byte> body) -> crane::Result<Index> {
    if (!world_.takes_inputs(process_.first)) {
      return failure(Code::kBusy, "propose", "inputs wait");
    }
    LogEntry entry{LogEntry::Kind::kClient, {}, digest(body)};
    entry.type = type;
    entry.body = std::make_shared<const std::vector<std::byte>>(body.begin(), body.end());
    const std::uint64_t at = world_.log().propose(process_.first, std::move(entry));
    if (at == 0) return failure(Code::kBusy, "propose", "the log is full");
    return Index{at};
  };
  if (!shell_.clients().batch().empty()) (void)shell_.clients().propose(1, one);
}

}  // namespace crane::replica::sim
