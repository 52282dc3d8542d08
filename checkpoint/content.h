// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sinks for what passes by (tree.h): a digest of it, some directories of a server's files, both at
// once.
//
// Threads: one object, one thread.

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/tree.h"

struct evp_md_ctx_st;

namespace crane::checkpoint {

// SHA-256 of trees: names, kinds, owners, modes, times, attributes, bytes, and which names are of
// one file.  Where holes are, and how the bytes were cut into pieces, makes no difference.
class ContentDigest final : public TreeSink {
 public:
  ContentDigest();
  ~ContentDigest() override;
  ContentDigest(const ContentDigest&) = delete;
  ContentDigest& operator=(const ContentDigest&) = delete;

  Outcome inode(const std::string& name, const Inode& inode) override;
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override;
  Outcome leave() override;
  Outcome link(const std::string& name, std::uint32_t number) override;
  // Hexadecimal; nothing follows.
  std::string finish();
  std::uint64_t files() const noexcept { return files_; }  // all but directories
  std::uint64_t bytes() const noexcept { return bytes_; }  // of regular files, holes included

 private:
  static constexpr std::size_t kBlock = 4096;
  void count(const void* bytes, std::size_t size);
  void count(const std::string& text);
  template <typename Integer>
  void count_number(Integer number) {
    count(&number, sizeof number);
  }
  void flush();

  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
  std::vector<std::string> open_;               // paths
  std::map<std::uint32_t, std::string> links_;  // number -> path
  std::array<std::byte, kBlock> block_{};       // the part of a file that is being counted
  std::uint64_t at_ = 0;                        // its number, from 1; 0: none
  std::uint64_t files_ = 0, bytes_ = 0;
};

// Of a server's changed files, an overlay's upper directory, those below some directories that are
// whole there (base.h), as a user of them sees them: without what the overlay notes, and without
// sockets.  Each is told as one tree, named by its path without the slash at the beginning.
class SelectedDirectories final : public TreeSink {
 public:
  SelectedDirectories(std::vector<std::string> paths, TreeSink& sink)
      : paths_(std::move(paths)), sink_(sink) {}

  Outcome inode(const std::string& name, const Inode& inode) override;
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override;
  Outcome leave() override;
  // kUnsupported: its first name is outside.
  Outcome link(const std::string& name, std::uint32_t number) override;
  // Those that were there.
  const std::vector<std::string>& found() const noexcept { return found_; }
  std::uint64_t sockets() const noexcept { return sockets_; }  // left out

 private:
  std::string path_of(const std::string& name) const;
  Outcome pass(const std::string& name, const Inode& inode);

  const std::vector<std::string> paths_;
  TreeSink& sink_;
  std::vector<std::string>
      open_;                // paths as the server sees them; the first is the upper directory
  std::size_t inside_ = 0;  // how many of them are in a selected one, that one included
  std::map<std::uint32_t, std::uint32_t> links_;  // theirs -> as told; 0: left out
  std::uint32_t last_link_ = 0;
  std::vector<std::string> found_;
  std::uint64_t sockets_ = 0;
};

// Tells both.
class Both final : public TreeSink {
 public:
  Both(TreeSink& one, TreeSink& other) : one_(one), other_(other) {}
  Outcome inode(const std::string& name, const Inode& inode) override {
    const auto told = one_.inode(name, inode);
    return told ? other_.inode(name, inode) : told;
  }
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override {
    const auto told = one_.data(offset, bytes);
    return told ? other_.data(offset, bytes) : told;
  }
  Outcome leave() override {
    const auto told = one_.leave();
    return told ? other_.leave() : told;
  }
  Outcome link(const std::string& name, std::uint32_t number) override {
    const auto told = one_.link(name, number);
    return told ? other_.link(name, number) : told;
  }

 private:
  TreeSink& one_;
  TreeSink& other_;
};

// Gives trees other names: those in `names` their number there, in text.  kDamaged: another tree.
class NumberedTrees final : public TreeSink {
 public:
  NumberedTrees(std::vector<std::string> names, std::string path, TreeSink& sink)
      : names_(std::move(names)), path_(std::move(path)), sink_(sink) {}
  Outcome inode(const std::string& name, const Inode& inode) override;
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return sink_.data(offset, bytes);
  }
  Outcome leave() override;
  Outcome link(const std::string& name, std::uint32_t number) override {
    return sink_.link(name, number);
  }

 private:
  const std::vector<std::string> names_;
  const std::string path_;  // of the archive, for messages
  TreeSink& sink_;
  std::size_t depth_ = 0;
};

}  // namespace crane::checkpoint
