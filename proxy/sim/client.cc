// SPDX-License-Identifier: Apache-2.0
#include "proxy/sim/client.h"

#include <algorithm>

namespace crane::proxy::sim {

SimClient::SimClient(unsigned number, Random& r, std::uint64_t most) : number_(number) {
  begins_ns_ = r.between(20'000'000, 400'000'000);
  pace_ns_ = r.chance(200) ? r.between(5'000'000, 15'000'000) : r.between(500'000, 4'000'000);
  to_send_ = r.chance(350) ? r.below(10) + 1 : r.between(100, most);
  aborts_at_ = r.chance(100) ? r.between(1, to_send_) : 0;
  half_at_ = r.chance(150) ? r.between(1, to_send_) : 0;
  quits_ = r.chance(to_send_ <= 10 ? 700 : 300);
  sends_large_ = r.chance(400);
  receives_most_ = r.chance(300) ? r.between(100, 400) : r.between(400, 4000);
}

std::string SimClient::step(Kernel& kernel, Random& random) {
  if (done_) return "";
  if (socket_ == nullptr) {
    socket_ = &kernel.connect(number_);
    if (random.chance(500)) return "";
  }
  if (random.chance(600)) send(kernel, random);
  return done_ ? "" : receive(kernel, random);
}

// One in three clients sends urgent bytes, in one of four writes.
bool SimClient::sends_urgent() const { return number_ % 3 == 0 && sent_.size() * 7 % 4 == 0; }

void SimClient::send(Kernel& kernel, Random& random) {
  if (fin_ || socket_->reset()) return;
  const std::uint64_t most = sends_large_ ? 1500 : 120;
  const std::uint64_t end = aborts_at_ != 0 ? aborts_at_ : to_send_;
  const std::uint64_t n =
      std::min({random.between(1, most), end - sent_.size(), kernel.send_room(*socket_)});
  std::string part;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t at = sent_.size() + part.size();
    char byte = static_cast<char>('a' + random.below(26));
    if (half_at_ != 0 && at + 1 == half_at_) byte = kHalf;
    if (quits_ && at + 1 == to_send_) byte = kQuit;
    part += byte;
    const bool answered = half_at_ == 0 || at < half_at_;
    if (answered) expected_ += answer(number_, at, byte);
  }
  sent_ += part;
  socket_->received += part;
  if (n > 0 && sends_urgent()) {
    socket_->mark = *marks_.insert(sent_.size()).first;
    socket_->mark_shown = false;
  }
  if (sent_.size() == end) {
    if (aborts_at_ != 0 && random.chance(300)) {
      socket_->reset_by_client = done_ = true;
    } else if (aborts_at_ == 0 && !quits_ && random.chance(600)) {
      socket_->fin_received = fin_ = true;
    }
    done_ = done_ || (ended_ && (fin_ || quits_));
  }
  kernel.changed();
}

std::string SimClient::receive(Kernel& kernel, Random& random) {
  SimSocket& s = *socket_;
  const std::uint64_t n =
      std::min<std::uint64_t>(s.put.size() - s.acked, random.below(receives_most_));
  for (std::uint64_t i = 0; i < n; ++i) {
    if (received_ < expected_.size() && s.put[s.acked] == expected_[received_]) {
      ++received_;
      ++s.acked;
      continue;
    }
    return "STREAM: " + text() + " received another byte than the server has written";
  }
  if (n > 0) kernel.changed();
  if (s.reset_here) return lost_ ? "" : "RESET: " + text() + " is reset";
  if (s.acked < s.put.size() || !s.fin_put || ended_) return "";
  ended_ = true;
  s.fin_acked = true;
  const bool half = half_at_ != 0 && sent_.size() >= half_at_;
  const bool quit = quits_ && sent_.size() == to_send_;
  if ((!fin_ && !half && !quit) || received_ != expected_.size()) {
    return "FIN: " + text() + " received the end too early";
  }
  done_ = fin_ || quit;
  kernel.changed();
  return "";
}

std::string SimClient::text() const {
  return "client " + std::to_string(number_) + ", which has sent " + std::to_string(sent_.size()) +
         " bytes of " + std::to_string(to_send_) + (fin_ ? " and FIN" : "") + " and received " +
         std::to_string(received_) + " of " + std::to_string(expected_.size()) + ",";
}

}  // namespace crane::proxy::sim
