// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/control.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

#include <nlohmann/json.hpp>

namespace crane::node {
namespace {

using Kind = control::Outbox::Kind;
using Sent = control::Outbox::Sent;

Kind kind_of(const std::string& type) {
  for (const char* last : {"exit", "fatal", "removed", "drained"}) {
    if (type == last) return Kind::kLast;
  }
  return Kind::kUsual;
}

// Of two waiting messages with the same key, the newer one replaces the older.
std::string key_of(const nlohmann::json& message) {
  std::string key;
  for (const char* name : {"t", "port", "bind", "replica"}) {
    const auto found = message.find(name);
    if (found != message.end()) key += found->dump() + " ";
  }
  return key;
}

}  // namespace

std::optional<control::Message> parse_command(const std::string& json) {
  control::Parsed parsed = control::parse(control::Channel::kRunToNode, json);
  if (!parsed.message)
    spdlog::warn("cannot use the message {} of crane-run: {}", json, parsed.refusal.message);
  return std::move(parsed.message);
}

std::string accepted(const std::string& message) {
  return control::line_of(control::accepted(message));
}

std::string refused(const std::string& error, const std::string& message) {
  return control::line_of(control::refused(error, message));
}

Control::~Control() {
  if (fd_ >= 0) ::close(fd_);
}

void Control::replace(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  outbox_.start(fd);
}

void Control::send(const nlohmann::json& message, int passed) {
  const std::string type = control::text_in(message, "t");
  // Text that is not UTF-8 (a path, a server's message) must not end the node.
  std::string text = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (outbox_.send(kind_of(type), key_of(message), std::move(text), passed) == Sent::kFailed) {
    spdlog::error("cannot send \"{}\" to crane-run: {}", type, system_error("send").message());
  }
}

void Control::flush() {
  while (outbox_.flush() == Sent::kFailed) {
    spdlog::error("cannot send a message that waited for crane-run: {}",
                  system_error("send").message());
  }
}

}  // namespace crane::node
