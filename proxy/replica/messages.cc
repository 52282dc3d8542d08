// SPDX-License-Identifier: Apache-2.0
#include "proxy/replica/messages.h"

#include <cstring>

namespace crane::replica {
namespace {

template <typename M>
bool read_one(const MessageHead& head, std::span<const std::byte> body,
              std::optional<Message>& message) noexcept {
  using Its = MessageRow<M>;
  const bool fits = head.type == Its::kType && head.version == Its::kVersion &&
                    head.size == sizeof(M) && body.size() == sizeof(M);
  if (!fits) return false;
  M read;
  std::memcpy(static_cast<void*>(&read), body.data(), sizeof read);
  message = read;
  return true;
}

template <typename... M>
std::optional<Message> read_any(const MessageHead& head, std::span<const std::byte> body,
                                const std::variant<M...>*) noexcept {
  constexpr std::uint8_t kTypes[] = {MessageRow<M>::kType...};
  static_assert([&] {
    for (std::size_t i = 0; i < sizeof...(M); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (kTypes[i] == kTypes[j]) return false;
      }
    }
    return true;
  }());
  std::optional<Message> message;
  (void)(read_one<M>(head, body, message) || ...);
  return message;
}

}  // namespace

std::optional<Message> read_message(std::span<const std::byte> bytes) noexcept {
  MessageHead head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  return read_any(head, bytes.subspan(sizeof head), static_cast<const Message*>(nullptr));
}

}  // namespace crane::replica
