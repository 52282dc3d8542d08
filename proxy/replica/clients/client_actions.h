// SPDX-License-Identifier: Apache-2.0
#pragma once
// The actions that a shell executes for Clients (clients.h), in the given order, apart from the
// calls of SocketCalls.
//
// The descriptor of a Watch, WatchWriting or Unwatch is open until its Close is carried out.

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "dmt/base/ids.h"
#include "proxy/replica/clients/client_socket.h"

namespace crane::proxy {

struct Client;

namespace client_actions {

// The socket's events go to Clients::readable(), and to writable() while WatchWriting is on.
struct Watch {
  int fd = -1;
  Client* client = nullptr;
};
struct WatchWriting {
  int fd = -1;
  bool on = false;
};
struct Unwatch {
  int fd = -1;
};
struct Close {
  ClientSocket socket;
};

// Whether clients that connect to that port of the server are accepted, or wait.
struct Accept {
  std::uint16_t port = 0;
  bool on = false;
};
// Whether clients can connect to that port, or the kernel refuses them.
struct Listen {
  std::uint16_t port = 0;
  bool on = false;
};

// Clients::dialed() follows, unless EndDial comes before it.
struct Dial {
  ConnId conn{};
};
struct EndDial {
  ConnId conn{};
};

// Writes to the host's connection table (ConnectionSlots).
struct SetPut {
  std::uint32_t slot = 0;
  std::uint64_t put = 0;
};
struct SetLogged {
  std::uint32_t slot = 0;
  SocketId socket{};
};
struct Release {
  std::uint32_t slot = 0;
};
struct KeepOnly {
  std::vector<std::uint32_t> slots;
};

// The client moves to another host: its socket is closed without a sign to it.  Clients::left()
// follows.
struct CloseSilently {
  Client* client = nullptr;
};
// A client that takes its output too slowly was reset; `bytes` were waiting for it.
struct LogSlowClient {
  std::size_t bytes = 0;
};

}  // namespace client_actions

using ClientAction =
    std::variant<client_actions::Watch, client_actions::WatchWriting, client_actions::Unwatch,
                 client_actions::Close, client_actions::Accept, client_actions::Listen,
                 client_actions::Dial, client_actions::EndDial, client_actions::SetPut,
                 client_actions::SetLogged, client_actions::Release, client_actions::KeepOnly,
                 client_actions::CloseSilently, client_actions::LogSlowClient>;
using ClientActionList = std::vector<ClientAction>;

}  // namespace crane::proxy
