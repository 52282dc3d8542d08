// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/ledger.h"

#include <algorithm>

#include "proxy/clients/encode.h"

namespace crane::proxy::sim {
namespace {

template <typename Lines, typename Matches>
auto* first_of(Lines& lines, Matches&& matches) {
  const auto found = std::find_if(lines.begin(), lines.end(), matches);
  return found == lines.end() ? nullptr : &*found;
}

}  // namespace

std::string Ledger::add(std::uint64_t index, EntryType type, std::span<const std::byte> body) {
  if (type == EntryType::kStart) return "";
  const std::string where = " at entry " + std::to_string(index);
  ConnectBody connect;
  if (type == EntryType::kConnect && read_body(body, connect)) {
    const unsigned client = connect.peer.port;
    if (of(connect.socket) != nullptr) {
      return "INPUT: client " + std::to_string(client) + " connects twice" + where;
    }
    lines_.push_back({index, connect.socket, client, 0, 0, 0});
    return "";
  }
  DataBody about{};
  Line* line = nullptr;
  if (read_body(body, about)) {
    line =
        first_of(lines_, [&](const Line& one) { return one.conn == value(connection_of(about)); });
  }
  if (line == nullptr) return "INPUT: no client has this connection" + where;
  const SimClient& client = clients_[line->client - 1];
  if (type == EntryType::kData) {
    return add_bytes(*line, body.subspan(sizeof(DataBody)), is_urgent(about));
  }
  if (type == EntryType::kShutdown && !client.aborted() &&
      (!client.fin_sent() || line->committed != client.sent().size())) {
    return "INPUT: the end is too early for " + client.text() + where;
  }
  if (type == EntryType::kReset && !client.done()) {
    return "RESET: the log contains a reset of " + client.text() + where;
  }
  return "";
}

std::string Ledger::add_bytes(Line& line, std::span<const std::byte> bytes, bool ends_urgent) {
  const SimClient& client = clients_[line.client - 1];
  const std::string part(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::uint64_t at = line.committed;
  line.committed += part.size();
  if (ends_urgent && client.marks().count(line.committed) == 0) {
    return "MARK: byte " + std::to_string(line.committed) + " is not urgent of " + client.text();
  }
  if (ends_urgent) line.mark = line.committed;
  if (line.committed <= client.sent().size() && client.sent().compare(at, part.size(), part) == 0) {
    return "";
  }
  return "INPUT: the log has other bytes from " + std::to_string(at) + " on of " + client.text();
}

void Ledger::closed(std::uint64_t conn, std::uint64_t index) {
  Line* line = first_of(lines_, [conn](const Line& one) { return one.conn == conn; });
  if (line != nullptr && line->closed_at == 0) line->closed_at = index;
}

const Ledger::Line* Ledger::of(SocketId socket) const {
  return first_of(lines_, [socket](const Line& one) { return one.socket == socket; });
}

const Ledger::Line* Ledger::of_connection(std::uint64_t conn) const {
  return first_of(lines_, [conn](const Line& one) { return one.conn == conn; });
}

std::string Ledger::at_end() const {
  for (const SimClient& client : clients_) {
    if (!client.done()) return "STUCK: " + client.text() + " is not done";
    if (client.lost() || !client.complete()) continue;
    const Line* line =
        first_of(lines_, [&client](const Line& one) { return one.client == client.number(); });
    if (line == nullptr || line->committed != client.sent().size()) {
      return "INPUT: the log lacks bytes of " + client.text();
    }
    if (!client.marks().empty() && line->mark != *client.marks().rbegin()) {
      return "MARK: the log lacks the last mark of " + client.text();
    }
  }
  return "";
}

}  // namespace crane::proxy::sim
