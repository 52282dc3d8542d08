// SPDX-License-Identifier: Apache-2.0
#include "eval/latency/protocol.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace latency {
namespace {

std::string key_of(const Request& r) { return "key:" + std::to_string(r.key); }
std::string value_of(const Request& r) {
  return std::string(kValueBytes, static_cast<char>('a' + r.key % 26));
}

std::string shortened(std::string_view bytes) { return std::string(bytes.substr(0, 100)); }

// The answer must be exactly this; more bytes may follow.
std::size_t expect(std::string_view wanted, std::string_view bytes) {
  const std::size_t common = std::min(wanted.size(), bytes.size());
  if (wanted.substr(0, common) != bytes.substr(0, common)) {
    throw WrongAnswer("'" + shortened(bytes) + "' instead of '" + shortened(wanted) + "'");
  }
  return bytes.size() < wanted.size() ? 0 : wanted.size();
}

class Memcached : public Protocol {
 public:
  std::string text_of(const Request& r) const override {
    if (!r.writes) return "get " + key_of(r) + "\r\n";
    return "set " + key_of(r) + " 0 0 " + std::to_string(kValueBytes) + "\r\n" + value_of(r) +
           "\r\n";
  }
  std::size_t answer_in(const Request& r, std::string_view bytes) const override {
    if (r.writes) return expect("STORED\r\n", bytes);
    return expect("VALUE " + key_of(r) + " 0 " + std::to_string(kValueBytes) + "\r\n" +
                      value_of(r) + "\r\nEND\r\n",
                  bytes);
  }
};

class Redis : public Protocol {
 public:
  std::string text_of(const Request& r) const override {
    if (!r.writes) return "*2\r\n$3\r\nGET\r\n" + bulk(key_of(r));
    return "*3\r\n$3\r\nSET\r\n" + bulk(key_of(r)) + bulk(value_of(r));
  }
  std::size_t answer_in(const Request& r, std::string_view bytes) const override {
    return expect(r.writes ? "+OK\r\n" : bulk(value_of(r)), bytes);
  }

 private:
  static std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  }
};

class Http : public Protocol {
 public:
  explicit Http(std::string path) : path_(std::move(path)) {}

  std::string text_of(const Request&) const override {
    return "GET " + path_ + " HTTP/1.1\r\nHost: crane.test\r\n\r\n";
  }
  std::size_t answer_in(const Request&, std::string_view bytes) const override {
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == std::string_view::npos) return 0;
    const std::string_view head = bytes.substr(0, end + 2);
    if (head.substr(0, 13) != "HTTP/1.1 200 ") throw WrongAnswer(shortened(head));
    const std::string length = field(head, "content-length");
    std::size_t body = 0;
    const auto [last, error] = std::from_chars(length.data(), length.data() + length.size(), body);
    if (error != std::errc{} || last != length.data() + length.size() || length.empty()) {
      throw WrongAnswer("an answer without Content-Length: " + shortened(head));
    }
    const std::size_t whole = end + 4 + body;
    return bytes.size() < whole ? 0 : whole;
  }
  bool is_last(std::string_view answer) const override {
    return field(answer.substr(0, answer.find("\r\n\r\n") + 2), "connection") == "close";
  }
  bool has_keys() const override { return false; }

 private:
  // The value of a header line; header names are case-insensitive.
  static std::string field(std::string_view head, std::string_view name) {
    for (std::size_t at = head.find("\r\n"); at + 2 < head.size();) {
      const std::size_t begin = at + 2, end = head.find("\r\n", begin);
      const std::string_view line = head.substr(begin, end - begin);
      const std::size_t colon = line.find(':');
      if (colon == name.size() &&
          std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) {
            return a == std::tolower(static_cast<unsigned char>(b));
          })) {
        return std::string(
            line.substr(std::min(line.find_first_not_of(' ', colon + 1), line.size())));
      }
      at = end;
    }
    return "";
  }

  const std::string path_;
};

}  // namespace

std::unique_ptr<Protocol> protocol_named(const std::string& name, const std::string& path) {
  if (name == "memcached") return std::make_unique<Memcached>();
  if (name == "redis") return std::make_unique<Redis>();
  if (name == "http") return std::make_unique<Http>(path);
  return nullptr;
}

Request request_of(std::uint64_t i) {
  return {.writes = i % (kReadsPerWrite + 1) == 0, .key = static_cast<std::uint32_t>(i % kKeys)};
}

}  // namespace latency
