// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/bind.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace crane::setup {
namespace {

constexpr const char kReadOnly[] = ":ro";

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

Bind parse_bind(const std::string& word) {
  Bind bind;
  std::string rest = word;
  if (ends_with(rest, kReadOnly)) {
    bind.read_only = true;
    rest.resize(rest.size() - (sizeof kReadOnly - 1));
  }
  const auto colon = rest.find(':');
  std::error_code unreadable;
  const std::string source = rest.substr(0, colon);
  bind.source = std::filesystem::absolute(source, unreadable).string();
  if (unreadable) bind.source = source;
  bind.target = colon == std::string::npos ? bind.source : rest.substr(colon + 1);
  return bind;
}

std::string text_of(const Bind& bind) {
  return bind.source + ":" + bind.target + (bind.read_only ? kReadOnly : "");
}

Outcome check_binds(const std::vector<std::string>& words, int replicas, Status status,
                    const std::string& option) {
  for (const auto& word : words) {
    const Bind bind = parse_bind(word);
    if (bind.target.empty() || bind.target[0] != '/' || bind.target == "/") {
      return failure(status, option, word, "its target is not the absolute path of a directory",
                     "write it as DIR, SOURCE:TARGET, or either with :ro at the end");
    }
    if (bind.read_only || replicas < 2) continue;
    return failure(status, option, word,
                   std::to_string(replicas) +
                       " replicas would write to the same directory and damage its files",
                   "--data " + bind.source + " gives each replica its own copy, which lasts; " +
                       word +
                       ":ro lets the server only read it; --bind-shared is for a server "
                       "that never writes there, or whose replicas may write to one file");
  }
  return Done{};
}

Outcome check_bind_sources(const std::vector<std::string>& words, const std::string& option) {
  for (const auto& word : words) {
    const Bind bind = parse_bind(word);
    if (access(bind.source.c_str(), F_OK) == 0) continue;
    return failure(Status::kDirectory, option, bind.source, strerror(errno),
                   "name a directory of this machine, or create it");
  }
  return Done{};
}

}  // namespace crane::setup
