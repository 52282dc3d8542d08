// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/secret.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "dmt/base/assert.h"

namespace crane::setup {
namespace {

constexpr std::size_t kSecretBytesMax = 64 * 1024;
using Digest = std::array<std::byte, 32>;

Digest derive(const std::string& secret, const char* label, const std::string& group) {
  // No name contains the byte after the label, so different pairs (label, group) have different
  // texts.
  const std::string text = std::string("crane ") + label + '\0' + group;
  Digest out{};
  unsigned size = 0;
  CRANE_ASSERT(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                    reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                    reinterpret_cast<unsigned char*>(out.data()), &size) != nullptr);
  CRANE_ASSERT(size == out.size());
  return out;
}

Outcome unusable(const std::string& path, const std::string& cause, const std::string& todo) {
  return failure(Status::kSecret, "cannot use the secret file", path, cause, todo);
}

Outcome check_owner(const struct stat& info, const std::string& path) {
  if (!S_ISREG(info.st_mode)) {
    return unusable(path, "not a file", "make one with crane-ctl secret new FILE");
  }
  if ((info.st_mode & 077) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", info.st_mode & 07777U);
    return unusable(path, std::string("others may read or write it (mode ") + mode + ")",
                    "chmod 600 it; if it was open to others for long, make a new one");
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return unusable(path, "it belongs to another user", "chown it to the user that runs the group");
  }
  return Done{};
}

}  // namespace

GroupKeys derive_keys(const std::string& secret, const std::string& group) {
  GroupKeys keys;
  keys.links = derive(secret, "links", group);
  const Digest random = derive(secret, "virtual randomness", group);
  std::memcpy(keys.random.data(), random.data(), sizeof keys.random);
  const Digest id = derive(secret, "log id", group);
  std::memcpy(&keys.log_id, id.data(), sizeof keys.log_id);
  keys.log_id |= 1;
  return keys;
}

Outcome read_secret(const std::string& path, const std::string& group, GroupKeys& keys) {
  std::string text;
  if (auto p = read_secret_text(path, text); !p) return p;
  keys = derive_keys(text, group);
  return Done{};
}

Outcome read_secret_text(const std::string& path, std::string& text) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return unusable(path, strerror(errno),
                    "make one with crane-ctl secret new FILE and copy it to every host");
  }
  struct stat info {};
  fstat(fd, &info);
  text.assign(kSecretBytesMax + 1, '\0');
  const Outcome owner = check_owner(info, path);
  const ssize_t got = owner.ok() ? read(fd, text.data(), text.size()) : 0;
  close(fd);
  if (!owner) return owner;
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  if (text.size() > kSecretBytesMax) {
    return unusable(path, "it is larger than 64 KiB", "name the right file");
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() < kSecretBytesMin) {
    return unusable(path,
                    "it holds " + std::to_string(text.size()) + " bytes, " +
                        std::to_string(kSecretBytesMin) + " are needed",
                    "make one with crane-ctl secret new FILE");
  }
  return Done{};
}

std::string random_secret_text() {
  std::array<unsigned char, kSecretBytesMin> bytes{};
  // getrandom() always returns this few bytes at once, even if a signal comes.
  CRANE_ASSERT(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  std::string text;
  for (const unsigned char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Outcome make_secret(const std::string& path) { return write_secret(path, random_secret_text()); }

Outcome write_secret(const std::string& path, const std::string& secret) {
  const std::string text = secret + '\n';
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    const bool there = errno == EEXIST;
    return unusable(path, strerror(errno),
                    there ? "remove it first if no group uses it any more" : "use another path");
  }
  const bool written =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  const int why = errno;
  close(fd);
  if (written) return Done{};
  unlink(path.c_str());
  return unusable(path, strerror(why), "free space there, or use another path");
}

}  // namespace crane::setup
