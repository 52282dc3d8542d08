// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/egress_gate.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

// After the kernel's headers, because it uses their types.
#include <libnetfilter_queue/libnetfilter_queue.h>

namespace crane::proxy {
namespace {

constexpr std::uint32_t kQueueLength = 65536;  // waiting packets; TCP retransmits those beyond
constexpr unsigned kSocketBytes = 8U << 20;
constexpr std::uint32_t kHeaderBytes = 120;  // both headers with all options
constexpr std::size_t kPacketsAtOnce = 32, kMessageBytes = 2048;
constexpr std::size_t kVerdictBytes = 64;  // at most, of one message
// Connections that begin and are never in the log would fill the memory.  If there are more than
// this, the oldest are forgotten.  A listener's backlog holds fewer.
constexpr std::size_t kBegunMost = 65536;

// Derived from the address, so that groups of one host have different queues.
std::uint16_t queue_of(std::uint32_t address) noexcept {
  const std::uint32_t mixed = address * 2654435761U;
  return static_cast<std::uint16_t>(1U + (mixed >> 16U) % 65000U);
}

// 0, or the exit status of the program.
int run(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int fd : {0, 1, 2}) {
    ::posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return error;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

int change_rule(const char* how, const std::string& address, std::uint16_t queue) {
  return run({"iptables", "-w", how, "OUTPUT", "-s", address, "-p", "tcp", "-j", "NFQUEUE",
              "--queue-num", std::to_string(queue)});
}

int change_filter_rule(const char* how, const std::string& address, std::uint16_t queue) {
  return run({"iptables", "-w", how, "OUTPUT", "-s", address, "-p", "tcp", "-m", "bpf",
              "--object-pinned", EgressFilter::path_of(queue), "-j", "ACCEPT"});
}

bool is_behind(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace

struct EgressGate::Packet {
  std::uint32_t client;  // network byte order, as all addresses in this file
  std::uint16_t client_port, port;
  std::uint32_t sequence, acknowledges;
  bool syn, rst, ack;
};

// Packets that the kernel has queued, received by one call.
struct EgressGate::Inbox {
  Inbox() {
    for (std::size_t i = 0; i < kPacketsAtOnce; ++i) {
      parts[i] = {bytes[i].data(), bytes[i].size()};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
  }
  std::array<std::array<char, kMessageBytes>, kPacketsAtOnce> bytes;
  std::array<iovec, kPacketsAtOnce> parts{};
  std::array<mmsghdr, kPacketsAtOnce> messages{};
};

Result<std::unique_ptr<EgressGate>> EgressGate::open(event_base* base, const std::string& address) {
  in_addr parsed{};
  if (::inet_pton(AF_INET, address.c_str(), &parsed) != 1) {
    return Error{Code::kBadArgument, 0, "is no IPv4 address"};
  }
  const std::uint16_t number = queue_of(parsed.s_addr);
  std::unique_ptr<EgressGate> gate(new EgressGate);
  gate->address_ = address;
  gate->number_ = number;
  gate->inbox_ = std::make_unique<Inbox>();
  gate->handle_ = ::nfq_open();
  if (gate->handle_ == nullptr) return system_error("open the kernel's packet queues");
  gate->queue_ = ::nfq_create_queue(gate->handle_, number, &EgressGate::on_packet, gate.get());
  if (gate->queue_ == nullptr ||
      ::nfq_set_mode(gate->queue_, NFQNL_COPY_PACKET, kHeaderBytes) != 0 ||
      ::nfq_set_queue_flags(gate->queue_, NFQA_CFG_F_GSO, NFQA_CFG_F_GSO) != 0 ||
      ::nfq_set_queue_maxlen(gate->queue_, kQueueLength) != 0) {
    return system_error("take the packet queue of the address");
  }
  const int fd = ::nfq_fd(gate->handle_);
  (void)::nfnl_rcvbufsiz(::nfq_nfnlh(gate->handle_), kSocketBytes);
  const int on = 1;
  (void)::setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof on);
  // The rule comes last: from now on this process decides what leaves.
  if (change_rule("-C", address, number) != 0 && change_rule("-I", address, number) != 0) {
    return Error{Code::kUnsupported, 0,
                 "iptables cannot make a rule for NFQUEUE: is it installed, and is the node root?"};
  }
  // Sockets that a killed process has left would send their last packets for minutes, and prevent
  // this host from making them again.  The packets that the kernel sends at their end are dropped.
  (void)run({"ss", "-K", "-H", "-n", "-t", "src", address});
  gate->open_filter();
  gate->event_ = ::event_new(base, fd, EV_READ | EV_PERSIST, on_readable, gate.get());
  ::event_add(gate->event_, nullptr);
  return gate;
}

// The gate also works without the filter, but costs more.
void EgressGate::open_filter() {
  (void)change_filter_rule("-D", address_, number_);  // left by a process that was killed
  auto filter = EgressFilter::open(number_);
  const bool made = filter.ok() && change_filter_rule("-I", address_, number_) == 0;
  if (made) {
    filter_ = std::move(filter).value();
    return;
  }
  spdlog::info(
      "each packet of {} passes through this node: {}", address_,
      filter.ok() ? "iptables cannot make a rule with the match bpf" : filter.error().message());
}

EgressGate::~EgressGate() {
  send_verdicts();
  if (event_ != nullptr) ::event_free(event_);
  if (removes_rule_ && filter_) (void)change_filter_rule("-D", address_, number_);
  if (removes_rule_) (void)change_rule("-D", address_, number_);
  if (queue_ != nullptr) (void)::nfq_destroy_queue(queue_);
  if (handle_ != nullptr) (void)::nfq_close(handle_);
}

std::uint64_t EgressGate::key(std::uint32_t client, std::uint16_t client_port, std::uint16_t port) {
  return EgressFilter::key(ntohl(client), port, client_port);
}

std::uint64_t EgressGate::key(const VirtualAddress& client, std::uint16_t port) {
  std::uint32_t ip = 0;
  std::memcpy(&ip, client.ip, sizeof ip);
  return key(ip, client.port, port);
}

bool EgressGate::is_ours(std::uint16_t port) const noexcept {
  // As long as no port is known, the server does not listen yet.  These packets are the kernel's,
  // about sockets of an earlier process of this host that end now.
  return ports_.empty() || std::find(ports_.begin(), ports_.end(), port) != ports_.end();
}

void EgressGate::on_readable(int, short, void* argument) {
  static_cast<EgressGate*>(argument)->decide_packets(false);
}

void EgressGate::flush() { decide_packets(true); }

void EgressGate::decide_packets(bool all) {
  int got = 0;
  do {
    got = ::recvmmsg(::nfq_fd(handle_), inbox_->messages.data(), kPacketsAtOnce, MSG_DONTWAIT,
                     nullptr);
    for (int i = 0; i < got; ++i) {
      const auto at = static_cast<std::size_t>(i);
      (void)::nfq_handle_packet(handle_, inbox_->bytes[at].data(),
                                static_cast<int>(inbox_->messages[at].msg_len));
    }
  } while (all && got > 0);
  send_verdicts();
}

int EgressGate::on_packet(nfq_q_handle*, nfgenmsg*, nfq_data* data, void* argument) {
  auto& gate = *static_cast<EgressGate*>(argument);
  const nfqnl_msg_packet_hdr* const head = ::nfq_get_msg_packet_hdr(data);
  if (head == nullptr) return 0;
  const std::uint32_t id = ntohl(head->packet_id);
  unsigned char* bytes = nullptr;
  const int size = ::nfq_get_payload(data, &bytes);
  iphdr ip;
  tcphdr tcp;
  if (size < static_cast<int>(sizeof ip)) {
    gate.drop(id);
    return 0;
  }
  std::memcpy(&ip, bytes, sizeof ip);
  const int at = ip.ihl * 4;
  if (ip.protocol != IPPROTO_TCP || size < at + static_cast<int>(sizeof tcp)) {
    gate.drop(id);  // a fragment, which TCP does not send
    return 0;
  }
  std::memcpy(&tcp, bytes + at, sizeof tcp);
  gate.decide(id, {ip.daddr, ntohs(tcp.dest), ntohs(tcp.source), ntohl(tcp.seq), ntohl(tcp.ack_seq),
                   tcp.syn != 0, tcp.rst != 0, tcp.ack != 0});
  return 0;
}

// The kernel answers a client that connects.
void EgressGate::begin(std::uint64_t its, const Packet& packet) {
  Flow& flow = flows_[its];
  if (flow.filtered) filter_->forget(its);
  drop_waiting(flow);  // those of an earlier connection
  flow = Flow{};
  flow.next = packet.acknowledges;
  flow.handshake = {packet.sequence + 1, packet.acknowledges};
  begun_.push_back(its);
  if (begun_.size() <= kBegunMost) return;
  const auto oldest = flows_.find(begun_.front());
  begun_.pop_front();
  if (oldest == flows_.end() || oldest->second.known) return;
  drop_waiting(oldest->second);
  flows_.erase(oldest);
}

void EgressGate::decide(std::uint32_t id, const Packet& packet) {
  if (!is_ours(packet.port)) return pass(id);
  if (state_ == State::kClosed) return drop(id);  // GATE-2
  if (packet.rst && state_ == State::kTakesOver) return drop(id);
  if (filter_ && state_ == State::kOpen) filter_->fresh();
  const std::uint64_t its = key(packet.client, packet.client_port, packet.port);
  if (packet.syn && packet.ack) begin(its, packet);
  const auto found = flows_.find(its);
  if (found == flows_.end()) return pass(id);  // the connection has ended, or there was none
  if (state_ == State::kSilenced) return drop(id);
  Flow& flow = found->second;
  // A reset without an acknowledgement answers a packet that found no socket, because this host's
  // socket for the connection was made only after it.
  if (packet.rst) return packet.ack ? pass(id) : drop(id);
  if (!packet.ack || !is_behind(packet.acknowledges, flow.next)) return pass(id);
  ++counters_.held;
  flow.waiting.push_back({id, packet.acknowledges});  // GATE-1
}

std::optional<Handshake> EgressGate::handshake_of(const VirtualAddress& client,
                                                  std::uint16_t port) const {
  const auto found = flows_.find(key(client, port));
  return found == flows_.end() ? std::nullopt : found->second.handshake;
}

void EgressGate::allow(const VirtualAddress& client, std::uint16_t port, std::uint32_t next) {
  const std::uint64_t its = key(client, port);
  Flow& flow = flows_[its];
  flow.next = next;
  flow.known = true;
  if (!std::exchange(flow.changed, true)) changed_.push_back(its);
}

void EgressGate::forget(const VirtualAddress& client, std::uint16_t port) {
  const auto found = flows_.find(key(client, port));
  if (found == flows_.end()) return;
  for (const Waiting& packet : found->second.waiting) pass(packet.id);
  if (found->second.filtered) filter_->forget(found->first);
  flows_.erase(found);
}

void EgressGate::resume_reading() {
  for (const std::uint64_t its : changed_) {
    const auto found = flows_.find(its);
    if (found == flows_.end()) continue;
    Flow& flow = found->second;
    if (!std::exchange(flow.changed, false)) continue;
    if (filter_) filter_->allow(its, flow.next);
    flow.filtered = filter_ != nullptr;
    std::erase_if(flow.waiting, [&](const Waiting& packet) {
      if (is_behind(packet.acknowledges, flow.next)) return false;
      pass(packet.id);
      return true;
    });
  }
  if (filter_ && state_ == State::kOpen && !changed_.empty()) filter_->fresh();
  changed_.clear();
  send_verdicts();
}

void EgressGate::take_over() noexcept {
  state_ = State::kTakesOver;
  if (filter_) filter_->close();
}

void EgressGate::go_on() {
  flush();
  state_ = State::kOpen;
}

void EgressGate::silence(bool on) noexcept {
  state_ = on ? State::kSilenced : State::kOpen;
  if (filter_ && on) filter_->close();
  if (on) drop_waiting();
}

void EgressGate::close() noexcept {
  state_ = State::kClosed;
  if (filter_) filter_->close();
  drop_waiting();
  for (const auto& [its, flow] : flows_) {
    if (flow.filtered) filter_->forget(its);
  }
  flows_.clear();
  begun_.clear();
}

void EgressGate::drop_waiting() noexcept {
  for (auto& [its, flow] : flows_) drop_waiting(flow);
  send_verdicts();
}

void EgressGate::drop_waiting(Flow& flow) noexcept {
  for (const Waiting& packet : flow.waiting) drop(packet.id);
  flow.waiting.clear();
}

void EgressGate::pass(std::uint32_t id) noexcept {
  ++counters_.passed;
  add_verdict(id, NF_ACCEPT);
}

void EgressGate::drop(std::uint32_t id) noexcept {
  ++counters_.dropped;
  add_verdict(id, NF_DROP);
}

void EgressGate::add_verdict(std::uint32_t id, int verdict) noexcept {
  if (verdict_bytes_ + kVerdictBytes > verdicts_.size()) send_verdicts();
  nlmsghdr* const message =
      ::nfq_nlmsg_put(verdicts_.data() + verdict_bytes_, NFQNL_MSG_VERDICT, number_);
  ::nfq_nlmsg_verdict_put(message, static_cast<int>(id), verdict);
  verdict_bytes_ += NLMSG_ALIGN(message->nlmsg_len);
}

void EgressGate::send_verdicts() noexcept {
  if (verdict_bytes_ == 0) return;
  (void)::send(::nfq_fd(handle_), verdicts_.data(), verdict_bytes_, 0);
  verdict_bytes_ = 0;
}

}  // namespace crane::proxy
