// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sinks for tree events (tree.h): a digest, a selection of a server's directories, and a sink that
// feeds two others.
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

// SHA-256 of trees: names, kinds, owners, modes, times, attributes, bytes and hard links.  Holes
// and the sizes of the pieces make no difference.
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
  // Returns the digest in hexadecimal.  It must be the last call.
  std::string finish();
  std::uint64_t files() const noexcept { return files_; }  // without directories
  std::uint64_t bytes() const noexcept { return bytes_; }  // of regular files, with holes

 private:
  static constexpr std::size_t kBlock = 4096;
  void update(const void* bytes, std::size_t size);
  void update(const std::string& text);
  template <typename Integer>
  void update_number(Integer number) {
    update(&number, sizeof number);
  }
  void flush();

  struct Free {
    void operator()(evp_md_ctx_st* context) const noexcept;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
  std::vector<std::string> open_;               // paths
  std::map<std::uint32_t, std::string> links_;  // number -> path
  std::array<std::byte, kBlock> block_{};       // the current block of a file
  std::uint64_t at_ = 0;                        // number of that block, from 1; 0: none
  std::uint64_t files_ = 0, bytes_ = 0;
};

// Selects, from the server's changed files (an overlay's upper directory), the trees below some
// directories that are complete there (base.h).  The sink gets them as a user sees them: without
// the overlay's attributes and without sockets.  Each becomes one tree, named by its path without
// the leading slash.
class SelectedDirectories final : public TreeSink {
 public:
  SelectedDirectories(std::vector<std::string> paths, TreeSink& sink)
      : paths_(std::move(paths)), sink_(sink) {}

  Outcome inode(const std::string& name, const Inode& inode) override;
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override;
  Outcome leave() override;
  // kUnsupported: the file's first name is outside the selection.
  Outcome link(const std::string& name, std::uint32_t number) override;
  // The selected directories that exist.
  const std::vector<std::string>& found() const noexcept { return found_; }
  std::uint64_t sockets() const noexcept { return sockets_; }  // omitted sockets

 private:
  std::string path_of(const std::string& name) const;
  Outcome pass(const std::string& name, const Inode& inode);

  const std::vector<std::string> paths_;
  TreeSink& sink_;
  std::vector<std::string>
      open_;                // paths as the server sees them; the first is the upper directory
  std::size_t inside_ = 0;  // how many of open_ are in a selected directory, including it
  std::map<std::uint32_t, std::uint32_t> links_;  // number in the source -> in the sink; 0: omitted
  std::uint32_t last_link_ = 0;
  std::vector<std::string> found_;
  std::uint64_t sockets_ = 0;
};

// Passes every event to both sinks.
class TeeSink final : public TreeSink {
 public:
  TeeSink(TreeSink& one, TreeSink& other) : one_(one), other_(other) {}
  Outcome inode(const std::string& name, const Inode& inode) override {
    const auto passed = one_.inode(name, inode);
    return passed ? other_.inode(name, inode) : passed;
  }
  Outcome data(std::uint64_t offset, std::span<const std::byte> bytes) override {
    const auto passed = one_.data(offset, bytes);
    return passed ? other_.data(offset, bytes) : passed;
  }
  Outcome leave() override {
    const auto passed = one_.leave();
    return passed ? other_.leave() : passed;
  }
  Outcome link(const std::string& name, std::uint32_t number) override {
    const auto passed = one_.link(name, number);
    return passed ? other_.link(name, number) : passed;
  }

 private:
  TreeSink& one_;
  TreeSink& other_;
};

// Renames trees: a tree in `names` gets its position there, as text. kDamaged: a tree that is not
// in `names`.
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
