// SPDX-License-Identifier: Apache-2.0
#pragma once
// The node of a proxy under test.

#include <string>
#include <string_view>

#include "proxy/clients/proxy.h"

namespace crane::proxy {

struct FakeHost final : ProxyHost {
  void woke() override { ++events; }
  bool allows(const VirtualAddress&) override { return may_connect; }
  HostPath find_socket(std::string_view path) override {
    constexpr std::string_view kBound = "/host/";
    return {directory, std::string(path.substr(kBound.size()))};
  }

  int events = 0;
  bool may_connect = true;
  std::string directory;  // the directory that the server sees as /host
};

}  // namespace crane::proxy
