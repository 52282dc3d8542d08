// SPDX-License-Identifier: Apache-2.0
#include "proxy/clients/names.h"

#include <spdlog/spdlog.h>

#include <cstring>

#include "proxy/clients/encode.h"

namespace crane::proxy {
namespace {

std::string name_of(const NameRequest& request) {
  if (request.question == NameQuestion::kName) {
    const std::string with_port = text(request.address);
    return "of " + with_port.substr(0, with_port.rfind(':'));
  }
  return {request.name, strnlen(request.name, sizeof request.name)};
}

}  // namespace

void Names::log_name(const NameRequest& request) {
  if (named_.size() >= kNamedMost || !named_.insert(name_of(request)).second) return;
  spdlog::info("the server asks for the name {}", name_of(request));
  if (named_.size() == kNamedMost) {
    spdlog::info("the server asks for more than {} names; the log lists no more", kNamedMost);
  }
}

void Names::asked(std::uint64_t number, const NameRequest& request) {
  if (!resolver_) return;
  last_asked_ = number;
  log_name(request);
  const bool was_ahead = ahead_.erase(number) > 0;
  if (was_ahead) return;
  pending_[number] = request;
  if (leading_) resolver_->ask(number, request);
}

void Names::committed(const ResolvedBody& body) {
  if (!resolver_ || pending_.erase(body.number) > 0) return;
  // A second RESOLVED, by another leader; or this replica's server has yet to ask.
  if (body.number > last_asked_) ahead_.insert(body.number);
}

void Names::lead(bool leading) {
  if (leading == leading_ || !resolver_) return;
  leading_ = leading;
  if (!leading) return resolver_->forget_all();
  for (const auto& [number, request] : pending_) resolver_->ask(number, request);
}

}  // namespace crane::proxy
