// SPDX-License-Identifier: Apache-2.0
#include "runtime/launcher/ctl/reach.h"

#include <future>
#include <utility>

#include "runtime/launcher/context_file.h"
#include "runtime/launcher/ctl/context.h"
#include "runtime/launcher/ctl/ctl.h"
#include "runtime/launcher/ctl/operator_link.h"
#include "runtime/setup/secret.h"

namespace crane::launcher {
namespace {

constexpr int kAskTimeoutMs = 2'000;

class SocketReach final : public Reach {
 public:
  SocketReach(const std::string& dir, const std::string& group) {
    bool denied = false;
    sockets_ = find_replicas(dir, group, denied);
  }
  std::set<int> replicas() const override {
    std::set<int> all;
    for (const auto& [replica, socket] : sockets_) all.insert(replica);
    return all;
  }
  std::map<int, Answer> ask(const std::set<int>& asked, const std::string& what) const override {
    // At the same time: the answers are to be of one moment, also if one replica is stopped.
    std::map<int, std::future<Answer>> asking;
    for (const int replica : asked) {
      asking[replica] = std::async([&socket = sockets_.at(replica), &what] {
        Answer answer;
        answer.reply = ask_node(socket, what, kAskTimeoutMs, answer.text);
        return answer;
      });
    }
    std::map<int, Answer> answers;
    for (auto& [replica, answer] : asking) answers[replica] = answer.get();
    return answers;
  }

 private:
  std::map<int, std::string> sockets_;
};

class LinkReach final : public Reach {
 public:
  LinkReach(std::shared_ptr<const Context> context, const std::string& group)
      : context_(std::move(context)), secret_(setup::derive_keys(context_->secret, group).links) {}
  std::set<int> replicas() const override {
    std::set<int> all;
    for (const auto& [replica, place] : context_->places) all.insert(replica);
    return all;
  }
  std::map<int, Answer> ask(const std::set<int>& asked, const std::string& what) const override {
    std::map<int, std::optional<consensus::SocketAddress>> places;
    for (const int replica : asked) places[replica] = context_->places.at(replica);
    std::map<int, Answer> answers;
    for (auto& [replica, reply] : ask_over_links(secret_, places, what)) {
      answers[replica] = {reply.reply, std::move(reply.text), false};
    }
    return answers;
  }

 private:
  std::shared_ptr<const Context> context_;
  consensus::GroupSecret secret_;
};

// Sockets where a replica is here, links to the others.
class BothReach final : public Reach {
 public:
  BothReach(std::unique_ptr<Reach> sockets, std::unique_ptr<Reach> links)
      : sockets_(std::move(sockets)), links_(std::move(links)), here_(sockets_->replicas()) {}
  std::set<int> replicas() const override {
    std::set<int> all = links_->replicas();
    all.insert(here_.begin(), here_.end());
    return all;
  }
  std::map<int, Answer> ask(const std::set<int>& asked, const std::string& what) const override {
    std::set<int> near, far;
    for (const int replica : asked) (here_.count(replica) != 0 ? near : far).insert(replica);
    std::map<int, Answer> answers = sockets_->ask(near, what);
    if (!far.empty()) answers.merge(links_->ask(far, what));
    return answers;
  }

 private:
  std::unique_ptr<Reach> sockets_, links_;
  std::set<int> here_;
};

}  // namespace

std::unique_ptr<Reach> reach_of(const Request& request, const std::string& group) {
  if (request.context) return std::make_unique<LinkReach>(request.context, group);
  const std::string dir = request.dir_of(group);
  auto sockets = std::make_unique<SocketReach>(dir, group);
  if (!has_context(dir, group)) return sockets;
  auto context = std::make_shared<Context>();
  // choose_groups() has reported a context that cannot be read.
  if (!context_of_file(context_path(dir, group), *context)) return sockets;
  return std::make_unique<BothReach>(std::move(sockets),
                                     std::make_unique<LinkReach>(std::move(context), group));
}

}  // namespace crane::launcher
