// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/tar_format.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <charconv>
#include <cstdio>
#include <cstring>

namespace crane::checkpoint::tar {
namespace {

// The plain header: octal numbers and texts at fixed positions.
struct Field {
  std::size_t at, size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12};
constexpr Field kTime{136, 12}, kSum{148, 8}, kKind{156, 1}, kTarget{157, 100}, kMagic{257, 8};
constexpr Field kMajor{329, 8}, kMinor{337, 8};
constexpr char kUstar[] = "ustar\00000";
constexpr char kAttribute[] = "SCHILY.xattr.", kLinkNumber[] = "crane link ";
constexpr char kLink = '1';
constexpr std::pair<char, std::uint32_t> kTypes[] = {
    {'0', S_IFREG}, {'2', S_IFLNK}, {'3', S_IFCHR}, {'4', S_IFBLK}, {'5', S_IFDIR}, {'6', S_IFIFO}};
constexpr std::int64_t kBillion = 1'000'000'000;

std::uint64_t limit_of(Field field) { return std::uint64_t{1} << (3 * (field.size - 1)); }

void put_number(std::string& block, Field field, std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%0*llo", static_cast<int>(field.size - 1),
                static_cast<unsigned long long>(number));
  block.replace(field.at, field.size - 1, text);
}

void put_text(std::string& block, Field field, const std::string& text) {
  const std::size_t size = std::min(text.size(), field.size);
  block.replace(field.at, size, text, 0, size);
}

std::uint32_t sum_of(const char* block) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kSum.at && i < kSum.at + kSum.size;
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

std::string block_of(char kind, const std::string& name, std::uint64_t size) {
  std::string block(kBlock, '\0');
  put_text(block, kName, name);
  put_number(block, kMode, 0600);
  put_number(block, kUid, 0);
  put_number(block, kGid, 0);
  put_number(block, kSize, size < limit_of(kSize) ? size : 0);
  put_number(block, kTime, 0);
  block[kKind.at] = kind;
  block.replace(kMagic.at, kMagic.size, kUstar, kMagic.size);
  return block;
}

void seal(std::string& block) {
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum_of(block.data()));
  block.replace(kSum.at, 8, std::string(text, 7) + " ");
}

char kind_of(const Member& member) {
  if (member.is_link) return kLink;
  for (const auto& [kind, type] : kTypes) {
    if ((member.inode.mode & S_IFMT) == type) return kind;
  }
  return '0';
}

std::uint32_t type_of(char kind) {
  for (const auto& [one, type] : kTypes) {
    if (one == kind) return type;
  }
  return S_IFREG;
}

// "LENGTH KEY=VALUE\n"; the length includes its own digits.
void put_record(std::string& records, const std::string& key, const std::string& value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) {
    length = std::to_string(length).size() + rest;
  }
  records += std::to_string(length) + " " + key + "=" + value + "\n";
}

std::string time_text(std::int64_t seconds, std::uint32_t ns) {
  const bool before = seconds < 0;
  if (before && ns > 0) {
    ++seconds;
    ns = static_cast<std::uint32_t>(kBillion - ns);
  }
  char text[40];
  std::snprintf(text, sizeof text, "%s%lld.%09u", before ? "-" : "",
                static_cast<long long>(before ? -seconds : seconds), ns);
  return text;
}

// Escapes the characters that end a key, as GNU tar does.
std::string key_of(const std::string& attribute) {
  std::string key = kAttribute;
  for (const char c : attribute) key += c == '%' ? "%25" : c == '=' ? "%3D" : std::string(1, c);
  return key;
}

std::string attribute_of(const std::string& key) {
  std::string name;
  for (std::size_t i = std::strlen(kAttribute); i < key.size(); ++i) {
    const std::string code = key.substr(i, 3);
    if (code == "%25" || code == "%3D") {
      name += code == "%25" ? '%' : '=';
      i += 2;
    } else {
      name += key[i];
    }
  }
  return name;
}

std::string records_of(const Member& member) {
  const Inode& inode = member.inode;
  std::string records;
  put_record(records, "mtime", time_text(inode.mtime_s, inode.mtime_ns));
  const std::string& target = member.is_link ? member.first : inode.target;
  const std::string path = member.path + (S_ISDIR(inode.mode) ? "/" : "");
  if (path.size() > kName.size) put_record(records, "path", path);
  if (target.size() > kTarget.size) put_record(records, "linkpath", target);
  if (inode.uid >= limit_of(kUid)) put_record(records, "uid", std::to_string(inode.uid));
  if (inode.gid >= limit_of(kGid)) put_record(records, "gid", std::to_string(inode.gid));
  if (inode.size >= limit_of(kSize)) put_record(records, "size", std::to_string(inode.size));
  if (inode.link != 0) put_record(records, "comment", kLinkNumber + std::to_string(inode.link));
  for (const auto& [name, value] : inode.attributes) put_record(records, key_of(name), value);
  return records;
}

template <typename Integer>
bool read_decimal(const std::string& text, Integer& number) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end && !text.empty();
}

bool read_time(std::string text, Inode& inode) {
  const bool before = !text.empty() && text[0] == '-';
  if (before) text.erase(0, 1);
  const std::size_t dot = text.find('.');
  std::string part = dot == std::string::npos ? "" : text.substr(dot + 1);
  if (part.size() > 9) return false;
  part.append(9 - part.size(), '0');
  std::uint32_t ns = 0;
  std::int64_t seconds = 0;
  if (!read_decimal(text.substr(0, dot), seconds) || seconds < 0 || !read_decimal(part, ns)) {
    return false;
  }
  inode.mtime_s = before ? -seconds - (ns > 0 ? 1 : 0) : seconds;
  inode.mtime_ns = before && ns > 0 ? static_cast<std::uint32_t>(kBillion - ns) : ns;
  return true;
}

bool get_number(const char* block, Field field, std::uint64_t& number) {
  const char* at = block + field.at;
  const char* end = at + field.size;
  const auto read = std::from_chars(at, end, number, 8);
  return read.ec == std::errc() && (read.ptr == end || *read.ptr == '\0' || *read.ptr == ' ');
}

std::string get_text(const char* block, Field field) {
  return {block + field.at, strnlen(block + field.at, field.size)};
}

bool apply_one(const std::string& key, const std::string& value, Header& header) {
  Member& m = header.member;
  const bool text_is_clean = value.find('\0') == std::string::npos;
  if (key == "path") return text_is_clean && !(m.path = value).empty();
  if (key == "linkpath") {
    (m.is_link ? m.first : m.inode.target) = value;
    return text_is_clean;
  }
  if (key == "mtime") return read_time(value, m.inode);
  if (key == "uid") return read_decimal(value, m.inode.uid);
  if (key == "gid") return read_decimal(value, m.inode.gid);
  if (key == "size") return read_decimal(value, header.size);
  if (key == "comment" && value.rfind(kLinkNumber, 0) == 0) {
    return read_decimal(value.substr(std::strlen(kLinkNumber)), m.inode.link);
  }
  if (key.rfind(kAttribute, 0) != 0) return false;
  m.inode.attributes.emplace_back(attribute_of(key), value);
  const std::string& name = m.inode.attributes.back().first;
  return !name.empty() && name.find('\0') == std::string::npos;
}

}  // namespace

std::string encode(const Member& member) {
  const Inode& inode = member.inode;
  const std::string records = records_of(member);
  std::string pax = block_of('x', "PaxHeaders/" + member.path, records.size());
  seal(pax);
  pax += records;
  pax.resize(pax.size() + padding_of(pax.size()));

  const bool is_file = S_ISREG(inode.mode) && !member.is_link;
  std::string block = block_of(kind_of(member), member.path + (S_ISDIR(inode.mode) ? "/" : ""),
                               is_file ? inode.size : 0);
  put_text(block, kTarget, member.is_link ? member.first : inode.target);
  put_number(block, kMode, inode.mode & 07777);
  if (inode.uid < limit_of(kUid)) put_number(block, kUid, inode.uid);
  if (inode.gid < limit_of(kGid)) put_number(block, kGid, inode.gid);
  const auto time = static_cast<std::uint64_t>(inode.mtime_s);
  if (inode.mtime_s >= 0 && time < limit_of(kTime)) put_number(block, kTime, time);
  put_number(block, kMajor, major(inode.device));
  put_number(block, kMinor, minor(inode.device));
  seal(block);
  return pax + block;
}

std::optional<Header> decode(const char* block) {
  Header header;
  std::uint64_t sum = 0, mode = 0, uid = 0, gid = 0, time = 0, high = 0, low = 0;
  const bool whole = get_number(block, kSum, sum) && sum == sum_of(block) &&
                     get_number(block, kMode, mode) && get_number(block, kUid, uid) &&
                     get_number(block, kGid, gid) && get_number(block, kSize, header.size) &&
                     get_number(block, kTime, time) &&
                     std::memcmp(block + kMagic.at, kUstar, kMagic.size) == 0;
  if (!whole) return std::nullopt;
  header.kind = block[kKind.at];
  if (header.kind != 'x' && (header.kind < '0' || header.kind > '6')) return std::nullopt;
  Member& m = header.member;
  m.is_link = header.kind == kLink;
  m.path = get_text(block, kName);
  (m.is_link ? m.first : m.inode.target) = get_text(block, kTarget);
  m.inode.mode = type_of(header.kind) | (static_cast<std::uint32_t>(mode) & 07777);
  m.inode.uid = static_cast<std::uint32_t>(uid);
  m.inode.gid = static_cast<std::uint32_t>(gid);
  m.inode.mtime_s = static_cast<std::int64_t>(time);
  const bool is_device = header.kind == '3' || header.kind == '4';
  if (is_device && (!get_number(block, kMajor, high) || !get_number(block, kMinor, low))) {
    return std::nullopt;
  }
  if (is_device) {
    m.inode.device = makedev(static_cast<unsigned>(high), static_cast<unsigned>(low));
  }
  return header;
}

bool apply(const std::string& records, Header& header) {
  for (std::size_t at = 0; at < records.size();) {
    std::size_t length = 0;
    const char* begin = records.data() + at;
    const auto read = std::from_chars(begin, records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(read.ptr - begin);
    if (read.ec != std::errc() || length < digits + 4 || length > records.size() - at) return false;
    const std::string record = records.substr(at, length);
    const std::size_t equals = record.find('=');
    if (record[digits] != ' ' || equals == std::string::npos || record.back() != '\n') return false;
    const std::string value = record.substr(equals + 1, length - equals - 2);
    if (!apply_one(record.substr(digits + 1, equals - digits - 1), value, header)) return false;
    at += length;
  }
  return true;
}

}  // namespace crane::checkpoint::tar
