// SPDX-License-Identifier: Apache-2.0
// The server's output: what is put into which socket, and when.
#include "proxy/replica/clients/clients.h"

namespace crane::proxy {

void Clients::output(const OutputHeader& header, Pieces pieces, bool last) {
  Client* client = clients_.find(header.conn);
  if (client == nullptr) return;
  // No other leader will need what it writes.
  if (!leading_ && slots_ == nullptr && !client->moves()) {
    if (header.type == OutputType::kClose) forget(*client);
    return;
  }
  if (header.type == OutputType::kConsumed) {
    client->consumed(header.argument);
    return read_client(*client);
  }
  const std::size_t queued_before = client->queued();
  const bool done = write_out(*client, header, pieces, last);
  write_done(*client, queued_before, done);
}

// False: an event is wanted when the socket takes more.
bool Clients::write_out(Client& client, const OutputHeader& header, Pieces pieces, bool last) {
  switch (header.type) {
    case OutputType::kBytes:
      for (const std::span<const std::byte> piece : pieces) counters_.bytes_out += piece.size();
      if (header.marks.urgent) return write_urgent(client, header, pieces);
      if (!holds_output_of(client)) return client.write(header.argument, pieces, batch_, last);
      client.keep(header.argument, pieces);
      return true;
    case OutputType::kShutdown:
      return client.shut_down(batch_);
    case OutputType::kClose:
      return client.close(header.argument != 0, batch_);
    case OutputType::kRefused:
      ++counters_.refused;
      return client.close(true, batch_);
    default:
      return client.queued() == 0;
  }
}

bool Clients::write_urgent(Client& client, const OutputHeader& header, Pieces pieces) {
  if (!holds_output_of(client)) return client.write_urgent(header.argument, pieces, batch_);
  client.keep_urgent(header.argument, pieces);
  return true;
}

void Clients::writable(Client& client) {
  if (holds_output_of(client)) return client.watch_writing(false);
  const std::size_t queued_before = client.queued();
  const bool done = client.flush(batch_);
  write_done(client, queued_before, done);
}

void Clients::write_done(Client& client, std::size_t queued_before, bool done) {
  const bool drops = !leading_ && mutant_ == ClientMutant::kDropOutput;
  if (drops) client.put_by_other(client.put() + client.queued());
  queued_ += client.queued();
  queued_ -= queued_before;
  if (!leading_) {
    if (client.server_closed() && slots_ != nullptr) closed_.push_back(value(client.conn));
    return trim(client);
  }
  if (client.fd() < 0) {
    if (client.finished()) forget(client);
    return;
  }
  if (slots_ != nullptr) publish_put(client);
  if (moves_ != nullptr) moves_->written(client);
  client.watch_writing(!done && !holds_output_of(client));
  if (queued_ > options_.queued_bytes_max) reset_slowest();
}

void Clients::publish_put(const Client& client) {
  const bool early = mutant_ == ClientMutant::kReportEarly;
  act(client_actions::SetPut{client.slot, client.put() + (early ? client.queued() : 0)});
}

// Drops the output that the leader has put into the socket.
void Clients::trim(Client& client) {
  if (slots_ == nullptr || client.queued() < client.look_at + options_.tail_look) return;
  const QueueChange change(*this, client);
  if (const auto put = slots_->put_of(client.slot, client.id)) client.put_by_other(*put);
  client.look_at = client.queued();
}

void Clients::reset_slowest() {
  Client& client = clients_.slowest();
  act(client_actions::LogSlowClient{client.queued()});
  ++counters_.reset_slow;
  const std::size_t queued_before = client.queued();
  client.reset(batch_, true);
  write_done(client, queued_before, true);
}

// Leadership is not lost yet: RESETs end the server's sides, if they can be proposed at all.
void Clients::reset_all() {
  clients_.for_each([this](Client& client) {
    if (client.fd() < 0 || client.moves()) return;  // another leader may have those by now
    ++counters_.reset_leader;
    const std::size_t queued_before = client.queued();
    client.reset(batch_, true);
    write_done(client, queued_before, true);
  });
}

}  // namespace crane::proxy
