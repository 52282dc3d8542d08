// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/http_users.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>
#include <string_view>

#include "runtime/setup/suggest.h"

namespace crane::setup {
namespace {

constexpr std::size_t kFileMax = 256 * 1024;
constexpr std::size_t kNameMax = 32;
constexpr std::size_t kSaltMax = 16;
constexpr std::size_t kHashLength = 86;
constexpr const char* kUsers = "the users of HTTP";

bool only(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [more](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           more.find(c) != std::string_view::npos;
  });
}

// Removes the text up to the first `separator` from `rest`, and returns it without the separator.
std::string_view cut(std::string_view& rest, char separator) {
  const auto at = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return part;
}

// What is wrong with `hash`, or nullptr.
const char* mistake_of(std::string_view hash) {
  constexpr std::string_view kRounds = "rounds=";
  if (!hash.starts_with("$6$")) return "its hash is not one of SHA-512 ($6$)";
  hash.remove_prefix(3);
  if (hash.starts_with(kRounds)) {
    const std::string_view number = cut(hash, '$').substr(kRounds.size());
    std::uint32_t rounds = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), rounds);
    if (read.ec != std::errc{} || read.ptr != number.data() + number.size()) {
      return "its hash has no number of rounds";
    }
    if (rounds > kHashRoundsMost) return "its hash has more than 10000 rounds";
  }
  const std::string_view salt = cut(hash, '$');
  const bool whole =
      salt.size() <= kSaltMax && hash.size() == kHashLength && only(salt, "./") && only(hash, "./");
  return whole ? nullptr : "its hash is not whole";
}

struct Mistake {
  std::string cause, remedy;  // an empty cause: none
};

Mistake read_user(std::string_view line, HttpUser& user) {
  user.name = cut(line, ':');
  if (user.name.empty() || user.name.size() > kNameMax || !only(user.name, "-_")) {
    return {"\"" + user.name + "\" is not a name",
            "use up to 32 letters, digits, '-' and '_', as in ada:read:HASH"};
  }
  const std::string role(cut(line, ':'));
  if (role != "read" && role != "operator") {
    const std::string meant = nearest(role, {"read", "operator"});
    return {"the role \"" + role + "\" of " + user.name + " is not known",
            (meant.empty() ? "" : "did you mean " + meant + "? ") +
                std::string("use read or operator, as in ada:read:HASH")};
  }
  user.role = role == "operator" ? HttpRole::kOperator : HttpRole::kRead;
  user.hash = line;
  if (const char* wrong = mistake_of(line); wrong != nullptr) {
    return {user.name + ": " + wrong, "make one with: openssl passwd -6"};
  }
  return {};
}

}  // namespace

Outcome unusable_file(const std::string& what, const std::string& path, const std::string& cause,
                      const std::string& remedy) {
  return failure(Status::kHttpFiles, "cannot use " + what, path, cause, remedy);
}

Outcome parse_http_users(const std::string& text, const std::string& path,
                         std::vector<HttpUser>& users) {
  users.clear();
  std::istringstream in(text);
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    line.erase(0, line.find_first_not_of(" \t"));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty() || line[0] == '#') continue;
    HttpUser user;
    Mistake wrong = read_user(line, user);
    const bool twice = std::any_of(users.begin(), users.end(),
                                   [&](const HttpUser& other) { return other.name == user.name; });
    if (wrong.cause.empty() && twice) {
      wrong = {user.name + " is there twice", "remove one of the lines"};
    }
    if (wrong.cause.empty() && users.size() == kHttpUsersMost) {
      wrong = {"there are more than 64 users", "remove some"};
    }
    if (!wrong.cause.empty()) {
      return unusable_file(kUsers, path + ":" + std::to_string(number), wrong.cause, wrong.remedy);
    }
    users.push_back(std::move(user));
  }
  if (!users.empty()) return Done{};
  return unusable_file(kUsers, path, "it names no user", "add a line as ada:read:HASH");
}

Outcome read_private_file(const std::string& what, const std::string& path, std::string& text) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return unusable_file(what, path, strerror(errno), "make it, or name another file");
  struct stat info {};
  fstat(fd, &info);
  text.resize(kFileMax + 1);
  const ssize_t got = S_ISREG(info.st_mode) ? read(fd, text.data(), text.size()) : 0;
  const int why = errno;
  close(fd);
  if (!S_ISREG(info.st_mode)) return unusable_file(what, path, "not a file", "name another file");
  if (got < 0) return unusable_file(what, path, strerror(why), "make it readable");
  text.resize(static_cast<std::size_t>(got));
  if (text.size() > kFileMax)
    return unusable_file(what, path, "larger than 256 KiB", "name another");
  if ((info.st_mode & 027) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", info.st_mode & 07777U);
    return unusable_file(
        what, path,
        std::string("others may read it, or its group may write to it (mode ") + mode + ")",
        "chmod 600 it; if it was open to others for long, make a new one");
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return unusable_file(what, path, "it belongs to another user",
                         "chown it to root or to the user that runs the group");
  }
  return Done{};
}

Outcome read_http_users(const std::string& path, std::vector<HttpUser>& users) {
  std::string text;
  if (auto p = read_private_file(kUsers, path, text); !p) return p;
  return parse_http_users(text, path, users);
}

}  // namespace crane::setup
