// SPDX-License-Identifier: Apache-2.0
#include "proxy/host/http/request.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace crane::node {
namespace {

constexpr std::string_view kWhite = " \t";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kWhite);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhite) - first + 1);
}

std::string lower(std::string_view text) {
  std::string all(text);
  std::transform(all.begin(), all.end(), all.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return all;
}

// Removes the next line from `rest`, and returns it without its end.  REQUIRES: there is one.
std::string_view next_line(std::string_view& rest) {
  const auto end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The size of the head with its empty line; 0: it is not complete.
std::size_t size_of_head(std::string_view bytes) {
  for (std::size_t at = bytes.find('\n'); at != std::string_view::npos;
       at = bytes.find('\n', at + 1)) {
    const std::string_view after = bytes.substr(at + 1);
    if (after.starts_with('\n')) return at + 2;
    if (after.starts_with("\r\n")) return at + 3;
  }
  return 0;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < ' ' && c != '\t') || byte == 0x7f;
}

// All of these return 200, or the status of a refusal.
int read_method(std::string_view word, HttpRequest& request) {
  constexpr std::string_view kNames[] = {"GET", "HEAD", "OPTIONS", "POST"};
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), word);
  if (found == std::end(kNames)) return 405;
  request.method = static_cast<HttpMethod>(found - std::begin(kNames));
  return 200;
}

int read_target(std::string_view target, HttpRequest& request) {
  // A proxy may send the whole address.
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
  }
  target = target.substr(0, target.find('#'));
  const auto question = std::min(target.find('?'), target.size());
  if (question < target.size()) request.query = target.substr(question + 1);
  request.path = target.substr(0, question);
  if (request.path.empty() || request.path == "*") request.path = "/";
  return request.path[0] == '/' ? 200 : 400;
}

int read_first_line(std::string_view line, HttpRequest& request) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return 400;
  const std::string_view version = line.substr(last + 1);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!version.starts_with("HTTP/")) return 400;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return 505;
  request.keeps_open = version == "HTTP/1.1";
  if (target.empty() || target.find_first_of(kWhite) != std::string_view::npos) return 400;
  if (const int status = read_method(line.substr(0, first), request); status != 200) return status;
  return read_target(target, request);
}

int read_size(std::string_view value, HttpRequest& request) {
  const char* const end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, request.body_bytes);
  if (read.ec == std::errc::result_out_of_range) return 413;
  if (read.ec != std::errc{} || read.ptr != end) return 400;
  return request.body_bytes > kHttpBodyMax ? 413 : 200;
}

struct Seen {
  bool size = false, authorization = false;
};

int read_header(std::string_view line, HttpRequest& request, Seen& seen) {
  const auto colon = line.find(':');
  // A line that continues the previous one, or a name with a space, is read differently by others.
  if (colon == std::string_view::npos || colon == 0) return 400;
  if (line.substr(0, colon).find_first_of(kWhite) != std::string_view::npos) return 400;
  const std::string name = lower(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "content-length") {
    if (std::exchange(seen.size, true)) return 400;
    return read_size(value, request);
  }
  if (name == "transfer-encoding") return 411;
  if (name == "authorization") {
    if (std::exchange(seen.authorization, true)) return 400;
    request.authorization = value;
  } else if (name == "content-type") {
    request.content_type = lower(trimmed(value.substr(0, value.find(';'))));
  } else if (name == "origin") {
    request.origin = lower(value);
  } else if (name == "host") {
    request.host = lower(value);
  } else if (name == "expect") {
    if (lower(value) != "100-continue") return 417;
    request.expects_continue = true;
  } else if (name == "connection") {
    const std::string words = lower(value);
    if (words.find("close") != std::string::npos) request.keeps_open = false;
    if (words.find("keep-alive") != std::string::npos) request.keeps_open = true;
  }
  return 200;
}

int read_lines(std::string_view rest, HttpRequest& request) {
  if (std::any_of(rest.begin(), rest.end(),
                  [](char c) { return is_control(c) && c != '\r' && c != '\n'; })) {
    return 400;
  }
  const auto has_return = [](std::string_view line) {
    return line.find('\r') != std::string_view::npos;
  };
  const std::string_view first = next_line(rest);
  if (has_return(first)) return 400;
  if (const int status = read_first_line(first, request); status != 200) return status;
  Seen seen;
  for (std::string_view line = next_line(rest); !line.empty(); line = next_line(rest)) {
    if (has_return(line)) return 400;
    if (const int status = read_header(line, request, seen); status != 200) return status;
  }
  return 200;
}

}  // namespace

HttpHead parse_head(std::string_view bytes) {
  HttpHead head;
  bytes = bytes.substr(0, kHttpHeadMax);
  head.bytes = size_of_head(bytes);
  if (head.bytes != 0) {
    head.status = read_lines(bytes.substr(0, head.bytes), head.request);
  } else if (bytes.size() == kHttpHeadMax) {
    head.status = 431;
  }
  return head;
}

}  // namespace crane::node
