// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/content.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

namespace crane::checkpoint {
namespace {

constexpr char kOverlay[] = "trusted.overlay.";

// The sink gets leave() for it.
bool gets_leave(const Inode& inode) { return S_ISDIR(inode.mode) || S_ISREG(inode.mode); }

}  // namespace

// --- the digest ---------------------------------------------------------------------------------

void ContentDigest::Free::operator()(evp_md_ctx_st* context) const noexcept {
  EVP_MD_CTX_free(context);
}

ContentDigest::ContentDigest() : context_(EVP_MD_CTX_new()) {
  CRANE_ASSERT(context_ != nullptr &&
               EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

ContentDigest::~ContentDigest() = default;

void ContentDigest::update(const void* bytes, std::size_t size) {
  CRANE_ASSERT(EVP_DigestUpdate(context_.get(), bytes, size) == 1);
}

void ContentDigest::update(const std::string& text) {
  update_number(static_cast<std::uint64_t>(text.size()));
  update(text.data(), text.size());
}

Outcome ContentDigest::inode(const std::string& name, const Inode& inode) {
  const std::string path = open_.empty() ? name : open_.back() + "/" + name;
  update("i", 1);
  update(name);
  for (const std::uint32_t number : {inode.mode, inode.uid, inode.gid, inode.mtime_ns}) {
    update_number(number);
  }
  update_number(inode.mtime_s);
  update_number(inode.device);
  update_number(inode.size);
  update(inode.target);
  update_number(static_cast<std::uint64_t>(inode.attributes.size()));
  for (const auto& [attribute, value] : inode.attributes) {
    update(attribute);
    update(value);
  }
  if (inode.link != 0) links_[inode.link] = path;
  if (gets_leave(inode)) open_.push_back(path);
  if (!S_ISDIR(inode.mode)) ++files_;
  bytes_ += inode.size;
  return Done{};
}

void ContentDigest::flush() {
  if (at_ == 0) return;
  if (!is_zero(block_)) {
    update("d", 1);
    update_number(at_);
    update(block_.data(), block_.size());
  }
  at_ = 0;
}

Outcome ContentDigest::data(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::uint64_t number = offset / kBlock + 1;
    const std::size_t within = offset % kBlock;
    const std::size_t size = std::min(kBlock - within, bytes.size());
    if (number != at_) {
      flush();
      block_.fill(std::byte{});
      at_ = number;
    }
    std::memcpy(block_.data() + within, bytes.data(), size);
    bytes = bytes.subspan(size);
    offset += size;
  }
  return Done{};
}

Outcome ContentDigest::leave() {
  flush();
  open_.pop_back();
  update("u", 1);
  return Done{};
}

Outcome ContentDigest::link(const std::string& name, std::uint32_t number) {
  update("l", 1);
  update(name);
  update(links_[number]);
  ++files_;
  return Done{};
}

std::string ContentDigest::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  CRANE_ASSERT(EVP_DigestFinal_ex(context_.get(), digest, &size) == 1);
  return fmt::format("{:02x}", fmt::join(digest, digest + size, ""));
}

// --- some directories ---------------------------------------------------------------------------

std::string SelectedDirectories::path_of(const std::string& name) const {
  return open_.empty() ? "" : open_.back() + "/" + name;
}

Outcome SelectedDirectories::inode(const std::string& name, const Inode& inode) {
  const bool is_whiteout = S_ISCHR(inode.mode) && inode.device == 0;
  if (S_ISSOCK(inode.mode) || is_whiteout) {
    if (inode.link != 0) links_[inode.link] = 0;  // an overlay's whiteouts are links of one file
    if (S_ISSOCK(inode.mode) && inside_ > 0) ++sockets_;
    return Done{};
  }
  const std::string path = path_of(name);
  const bool begins = inside_ == 0 && S_ISDIR(inode.mode) &&
                      std::find(paths_.begin(), paths_.end(), path) != paths_.end();
  Outcome passed = Done{};
  if (begins) {
    found_.push_back(path);
    passed = pass(path.substr(1), inode);
  } else if (inside_ > 0) {
    passed = pass(name, inode);
  }
  if (gets_leave(inode)) {
    open_.push_back(path);
    if (begins || inside_ > 0) ++inside_;
  }
  return passed;
}

Outcome SelectedDirectories::pass(const std::string& name, const Inode& inode) {
  Inode clean = inode;
  std::erase_if(clean.attributes,
                [](const auto& attribute) { return attribute.first.rfind(kOverlay, 0) == 0; });
  if (inode.link != 0) {
    clean.link = links_[inode.link] = ++last_link_;
  }
  return sink_.inode(name, clean);
}

Outcome SelectedDirectories::data(std::uint64_t offset, std::span<const std::byte> bytes) {
  return inside_ > 0 ? sink_.data(offset, bytes) : Outcome(Done{});
}

Outcome SelectedDirectories::leave() {
  open_.pop_back();
  if (inside_ == 0) return Done{};
  --inside_;
  return sink_.leave();
}

Outcome SelectedDirectories::link(const std::string& name, std::uint32_t number) {
  if (inside_ == 0) return Done{};
  const auto first = links_.find(number);
  if (first != links_.end() && first->second == 0) return Done{};
  if (first != links_.end()) return sink_.link(name, first->second);
  return failure(Code::kUnsupported, "select",
                 path_of(name) +
                     " is a hard link to a file outside of --data; remove the link, "
                     "or name the other file's directory as well");
}

// --- numbers for names --------------------------------------------------------------------------

Outcome NumberedTrees::inode(const std::string& name, const Inode& inode) {
  const bool top = depth_ == 0;
  if (gets_leave(inode)) ++depth_;
  if (!top) return sink_.inode(name, inode);
  const auto at = std::find(names_.begin(), names_.end(), name);
  if (at == names_.end()) {
    return failure(Code::kDamaged, "read an archive",
                   path_ + " is damaged (it contains " + name +
                       ", which its head does not list); use another copy of it");
  }
  return sink_.inode(std::to_string(at - names_.begin()), inode);
}

Outcome NumberedTrees::leave() {
  --depth_;
  return sink_.leave();
}

}  // namespace crane::checkpoint
