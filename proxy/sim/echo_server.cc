// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/echo_server.h"

#include <algorithm>
#include <utility>

#include "proxy/clients/encode.h"

namespace crane::proxy::sim {

std::string answer(unsigned client, std::uint64_t at, char byte) {
  return {byte, static_cast<char>('0' + (at * 7 + client * 13) % 71)};
}

void EchoServer::admit(EntryType type, Index index, std::span<const std::byte> body,
                       const Emit& emit) {
  if (type == EntryType::kConnect) {
    Open open;
    if (read_body(body, open.opened)) connections_[value(index)] = open;
    return;
  }
  DataBody about{};
  const bool of_connection = type == EntryType::kData || type == EntryType::kShutdown ||
                             type == EntryType::kReset || type == EntryType::kWindow;
  if (!of_connection || !read_body(body, about)) return;
  const auto found = connections_.find(value(connection_of(about)));
  if (found == connections_.end()) return;
  Open& open = found->second;
  WindowBody window;
  if (type == EntryType::kData) {
    const auto bytes = body.subspan(sizeof(DataBody));
    open.input.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    open.progress.received += bytes.size();
  } else if (type == EntryType::kShutdown) {
    open.progress.fin_received = true;
  } else if (type == EntryType::kReset) {
    open.progress.reset = true;
  } else if (read_body(body, window)) {
    open.progress.window = std::max(open.progress.window, window.total);
  }
  if (!work(found->first, open, emit)) connections_.erase(found);
}

void EchoServer::reset_all(const Emit& emit) {
  for (auto& [conn, open] : std::exchange(connections_, {})) {
    open.progress.reset = true;
    (void)work(conn, open, emit);
  }
}

// False: the connection is closed.
bool EchoServer::work(std::uint64_t conn, Open& open, const Emit& emit) const {
  ConnectionProgress& p = open.progress;
  const auto put_out = [&](OutputType type, std::uint64_t argument, const std::string& bytes) {
    emit(OutputHeader{type, {}, conn, argument, 0}, std::as_bytes(std::span(bytes)));
  };
  std::string out;
  std::size_t used = 0;
  bool closes = p.reset;
  bool halves = false;
  while (!closes && used < open.input.size()) {
    const std::string more = answer(open.opened.peer.port, p.consumed, open.input[used]);
    const bool answers = !p.shut_write && !halves;
    if (answers && p.written + out.size() + more.size() > p.window + send_buffer_) break;
    if (answers) out += more;
    halves = halves || open.input[used] == kHalf;
    closes = open.input[used] == kQuit;
    ++used;
    ++p.consumed;
  }
  open.input.erase(0, used);
  closes = closes || (p.fin_received && open.input.empty());
  const std::uint64_t at = p.written;
  p.written += out.size();
  if (used > 0) put_out(OutputType::kConsumed, p.consumed, "");
  if (!out.empty()) put_out(OutputType::kBytes, at, out);
  if (halves && !p.shut_write) {
    p.shut_write = true;
    if (!closes) put_out(OutputType::kShutdown, 0, "");
  }
  if (closes) put_out(OutputType::kClose, 0, "");
  return !closes;
}

}  // namespace crane::proxy::sim
