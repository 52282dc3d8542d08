// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup/group_file.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#define TOML_EXCEPTIONS 0
// A typing error like [[[name]]] violates an assertion of toml++ before toml++ reports an error.
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include "dmt/base/ipv4_prefix.h"
#include "dmt/base/join.h"
#include "dmt/base/read_text.h"
#include "runtime/setup/address.h"
#include "runtime/setup/bind.h"
#include "runtime/setup/http.h"
#include "runtime/setup/http_access.h"
#include "runtime/setup/outbound.h"
#include "runtime/setup/profile.h"
#include "runtime/setup/soft_barrier.h"
#include "runtime/setup/suggest.h"

namespace crane::setup {
namespace {

constexpr std::size_t kReplicasMost = 9;

// One table of the file: reads the known keys, and reports the first mistake.
class Section {
 public:
  Section(const toml::table& table, std::string name, const std::string& path, Outcome& problem)
      : table_(table), name_(std::move(name)), path_(path), problem_(problem) {}

  const toml::node* find(const char* key) {
    known_.insert(key);
    return table_.get(key);
  }

  void wrong(const toml::node* node, const std::string& key, const std::string& cause,
             const std::string& todo) {
    if (!problem_) return;
    const toml::node& at = node != nullptr ? *node : table_;
    const auto line = at.source().begin.line;
    problem_ = failure(Status::kGroupFile, "cannot use the group's file",
                       line > 0 ? path_ + ":" + std::to_string(line) : path_,
                       name_ + (key.empty() ? "" : " " + key) + " " + cause, todo);
  }

  // `needed`: an absent or empty value is a mistake.
  void get(const char* key, std::string& value, bool needed = false) {
    const toml::node* node = find(key);
    if (node == nullptr) {
      if (needed) missing(key);
      return;
    }
    const auto text = node->value_exact<std::string>();
    if (!text || (needed && text->empty())) {
      wrong(node, key, "is not a text", "write it in quotes");
    } else {
      value = *text;
    }
  }

  void get(const char* key, std::string& value, const std::vector<std::string>& allowed) {
    get(key, value);
    if (find(key) == nullptr) return;
    if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
    wrong(find(key), key, "is \"" + value + "\"", "use one of: " + joined(allowed));
  }

  void get(const char* key, bool& value) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const auto given = node->value_exact<bool>();
    if (!given) return wrong(node, key, "is neither true nor false", "write true or false");
    value = *given;
  }

  template <typename Number>
  void get_number(const char* key, Number& value, std::int64_t least, std::int64_t most,
                  bool needed = false) {
    const toml::node* node = find(key);
    if (node == nullptr) {
      if (needed) missing(key);
      return;
    }
    const auto given = node->value_exact<std::int64_t>();
    if (!given || *given < least || *given > most) {
      return wrong(node, key, "is not a number in range",
                   "use " + std::to_string(least) + " to " + std::to_string(most));
    }
    value = static_cast<Number>(*given);
  }

  void get(const char* key, std::vector<std::string>& values) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    if (array == nullptr) return wrong(node, key, "is not a list", "write [\"a\", \"b\"]");
    for (const toml::node& element : *array) {
      const auto text = element.value_exact<std::string>();
      if (!text) return wrong(&element, key, "contains other values than texts", "quote each");
      values.push_back(*text);
    }
  }

  // The rows of option_table.def that belong to this table.
  void get_options(OptionRow::Section section, NodeOptions& options) {
    for (const OptionRow& row : option_rows()) {
      if (row.section != section) continue;
      std::visit([&](auto field) { get_option(row, options.*field); }, row.field);
    }
  }

  // The list may contain only `names`.
  void only(const char* key, const std::vector<std::string>& values,
            const std::vector<std::string>& names) {
    for (const auto& value : values) {
      if (std::find(names.begin(), names.end(), value) != names.end()) continue;
      wrong(find(key), key, "contains \"" + value + "\"", "use only: " + joined(names));
    }
  }

  void finish() {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (known_.count(name) != 0) continue;
      const std::string meant = nearest(name, {known_.begin(), known_.end()});
      wrong(&node, name, "is not known",
            (meant.empty() ? "" : "did you mean " + meant + "? ") + "see GROUP_FILE.md");
    }
  }

 private:
  // The key may be mistyped; finish() would report that too late.
  void missing(const std::string& key) {
    std::vector<std::string> others;
    for (const auto& [other, node] : table_) others.emplace_back(other.str());
    const std::string typed = nearest(key, others);
    wrong(table_.get(typed), key, "is missing",
          typed.empty() ? "add it" : "add it, or correct " + typed);
  }
  void get_option(const OptionRow& row, std::uint32_t& value) {
    get_number(row.file_key(), value, 0, row.limits.most);
  }
  void get_option(const OptionRow& row, bool& value) { get(row.file_key(), value); }
  template <typename Choice>
  void get_option(const OptionRow& row, Choice& value) {
    std::string text = choice_text(row, value);
    if (row.limits.choices.empty()) {
      get(row.file_key(), text);
    } else {
      get(row.file_key(), text, row.limits.choices);
    }
    set_choice(row, text, value);
  }

  const toml::table& table_;
  const std::string name_;
  const std::string& path_;
  Outcome& problem_;
  std::set<std::string> known_;
};

void get_address(Section& s, const char* key, std::string& value, bool needed) {
  s.get(key, value, needed);
  if (!value.empty() && !is_ip(value)) {
    s.wrong(s.find(key), key, "is not an IP address",
            "write it as 192.0.2.1; names are not looked up");
  }
}

// A port of the loopback address, or an address with a port.
void get_http(Section& s, const char* key, std::string& value) {
  s.get(key, value);
  if (value.empty() || parse_http(value)) return;
  s.wrong(s.find(key), key, "is \"" + value + "\"", "write it as \"9100\" or \"10.0.0.1:9100\"");
}

void read_rdma(Section& s, GroupFile& f) {
  s.get("fence", f.fence, {"deregister", "reset", "flags"});
  s.get("fence_flags_devices", f.fence_flags_devices);
  s.get("huge_pages", f.huge_pages, {"auto", "require", "never"});
  for (const char* key : {"fence", "huge_pages"}) {
    if (s.find(key) == nullptr || f.fabric == "verbs") continue;
    s.wrong(s.find(key), key, "is only for RDMA, but fabric is \"" + f.fabric + "\"",
            "leave it out, or set fabric = \"verbs\"");
  }
  if (f.fence == "flags" && f.fence_flags_devices.empty()) {
    s.wrong(s.find("fence"), "fence",
            "is \"flags\", but no device is named on which they are a fence",
            "use \"deregister\", or name devices in fence_flags_devices = [\"mlx5\"]");
  }
}

void read_group(Section s, GroupFile& f) {
  s.get("name", f.name, true);
  s.get("secret_file", f.secret_file, true);
  s.get("fabric", f.fabric, {"tcp", "verbs", "shm"});
  s.get("device", f.device);
  read_rdma(s, f);
  s.get_options(OptionRow::Section::kGroup, f);
  s.get_number("members", f.members, 1, kReplicasMost);
  s.get_number("ring_mb", f.ring_mb, 16, 1024);
  if (!std::has_single_bit(f.ring_mb)) {
    s.wrong(s.find("ring_mb"), "ring_mb", "is not a power of two", "use 16, 32, 64, ... 1024");
  }
  s.get("state_dir", f.state_dir);
  std::string listen = "address";
  s.get("listen", listen, {"address", "any"});
  f.links_listen_any = listen == "any";
  if (f.links_listen_any && f.fabric != "tcp") {
    s.wrong(s.find("listen"), "listen", "is \"any\", but fabric is \"" + f.fabric + "\"",
            "leave it out, or set fabric = \"tcp\"");
  }
  if (f.restart_every_s != 0 && !f.restart_checkpoints) {
    s.wrong(s.find("restart_every_s"), "restart_every_s", "needs restart_checkpoints = true",
            "set both, or leave it out");
  }
  if (!f.name.empty() && !good_group_name(f.name)) {
    s.wrong(s.find("name"), "name", "is not a name for a group",
            "use up to 32 letters, digits, '-', '_' and '.'");
  }
  for (const char* key : {"secret_file", "state_dir"}) {
    const std::string& path = key[1] == 'e' ? f.secret_file : f.state_dir;
    if (!path.empty() && path[0] != '/') {
      s.wrong(s.find(key), key, "is not an absolute path", "begin it with /");
    }
  }
  s.finish();
}

void read_replica(Section s, bool endpoints, HostReplica& r) {
  get_address(s, "address", r.address, true);
  s.get_number("port", r.port, 1, 65535, endpoints);
  get_address(s, "clients", r.clients, false);
  s.get_number("cpu", r.cpu, 0, kProcessorMost);
  s.get_number("numa_node", r.numa_node, 0, kNumaNodeMost);
  get_http(s, "http", r.http);
  std::string cpus;
  s.get("cpus", cpus);
  if (s.find("cpus") != nullptr && !parse_cpus(cpus, r.cpus)) {
    s.wrong(s.find("cpus"), "cpus", "is \"" + cpus + "\"", "write a list as \"0-3,8\"");
  }
  if (r.clients.empty()) r.clients = r.address;
  s.finish();
}

void read_server(Section s, GroupFile& f) {
  s.get("command", f.command);
  if (f.command.empty()) {
    s.wrong(s.find("command"), "command", "is missing", "write command = [\"program\", \"word\"]");
  }
  s.get("profile", f.profile);
  s.get("mode", f.mode, {"serial", "parallel"});
  s.get_options(OptionRow::Section::kServer, f);
  s.get("detach", f.detach);
  s.only("detach", f.detach, detach_names());
  if (!check_outbound(f.outbound)) {
    s.wrong(s.find("outbound"), "outbound", "is not any, none, or addresses with ports",
            "write \"10.0.0.1:80,[2001:db8::1]:80\"");
  }
  if (!check_resolver(f.resolver)) {
    s.wrong(s.find("resolver"), "resolver", "is not an address", "write \"10.0.0.1:53\"");
  }
  s.get("soft_barriers", f.soft_barriers);
  if (const Outcome p = check_soft_barriers(f.soft_barriers); !p) {
    s.wrong(s.find("soft_barriers"), "soft_barriers", "is not a list of up to 4 points",
            "write it as [\"function:8:5000\"]");
  }
  s.get("binds", f.binds);
  s.get("shared_binds", f.shared_binds);
  s.get("data", f.data);
  if (!f.data.empty() && (f.durability != "disk" || !f.container)) {
    s.wrong(s.find("data"), "data",
            f.container ? "needs a log on disk if the nodes run without crane-run"
                        : "needs a container",
            f.container ? "set [group] durability = \"disk\"" : "leave out container = false");
  }
  for (const auto& one : f.data) {
    if (one.size() > 1 && one[0] == '/' && one.find("/../") == std::string::npos) continue;
    s.wrong(s.find("data"), "data", "\"" + one + "\" is not the absolute path of a directory",
            "begin it with /");
  }
  s.get("working_directory", f.working_directory);
  if (const toml::node* env = s.find("env"); env != nullptr) {
    if (env->as_table() == nullptr) {
      s.wrong(env, "env", "is not a table", "write env = { NAME = \"value\" }");
    } else {
      for (const auto& [key, node] : *env->as_table()) {
        const auto text = node.value_exact<std::string>();
        if (!text) s.wrong(&node, "env", "contains other values than texts", "quote each value");
        f.env.push_back(std::string(key.str()) + "=" + text.value_or(""));
      }
    }
  }
  s.finish();
}

void read_clients(Section s, GroupFile& f) {
  std::string follower = "forward", listen = "any";
  s.get("on_follower", follower, {"forward", "refuse"});
  s.get("listen", listen, {"any", "clients"});
  s.get("virtual_ip", f.virtual_ip);
  s.get("interface", f.interface);
  f.forward = follower == "forward";
  f.listen_any = listen == "any";
  if (!f.virtual_ip.empty() && !parse_ipv4_prefix(f.virtual_ip)) {
    s.wrong(s.find("virtual_ip"), "virtual_ip", "is not an IPv4 address with a prefix length",
            "write it as 192.0.2.9/24");
  }
  if (!f.virtual_ip.empty() && !f.listen_any) {
    s.wrong(s.find("virtual_ip"), "virtual_ip", "needs listen = \"any\"",
            "leave listen out, because the address comes and goes");
  }
  const auto moves = parse_ipv4_prefix(f.virtual_ip);
  if (moves && std::any_of(f.replicas.begin(), f.replicas.end(), [&moves](const auto& replica) {
        return replica.address == moves->address || replica.clients == moves->address;
      })) {
    s.wrong(s.find("virtual_ip"), "virtual_ip", "is the address of a replica's host itself",
            "choose an address that no host has");
  }
  if (f.virtual_ip.empty() != f.interface.empty()) {
    s.wrong(s.find("virtual_ip"), "virtual_ip and interface", "belong together", "set both");
  }
  std::vector<std::string> publish;
  s.get("publish", publish);
  for (const auto& text : publish) {
    if (const char* wrong = add_publish(text, f.publish); wrong != nullptr) {
      s.wrong(s.find("publish"), "publish", "\"" + text + "\": " + wrong,
              "write it as 8080:80 (this host's port:the server's), each port once");
    }
  }
  s.finish();
}

// REQUIRES: the replicas are read, because each may have an address of its own.
void read_http(Section s, GroupFile& f) {
  get_http(s, "listen", f.http);
  s.get_options(OptionRow::Section::kHttp, f);
  std::vector<std::string> listen{f.http};
  for (const HostReplica& replica : f.replicas) listen.push_back(replica.http);
  if (const auto wrong = http_problem(listen, f, HttpForm::kFile)) {
    s.wrong(s.find(wrong->key.c_str()), wrong->key, "is \"" + wrong->object + "\": " + wrong->cause,
            wrong->advice);
  }
  s.finish();
}

void read_hooks(Section s, GroupFile& f) {
  s.get("role_change", f.role_change);
  if (!f.role_change.empty() && f.role_change[0] != '/') {
    s.wrong(s.find("role_change"), "role_change", "is not an absolute path", "begin it with /");
  }
  s.finish();
}

void read_replicas(Section& top, const std::string& path, GroupFile& f, Outcome& problem) {
  const toml::node* node = top.find("replica");
  const toml::array* array = node == nullptr ? nullptr : node->as_array();
  if (array == nullptr || !array->is_array_of_tables()) {
    return top.wrong(node, "[[replica]]", "is missing", "add one table per replica");
  }
  for (const toml::node& element : *array) {
    const std::string name = "[[replica]] " + std::to_string(f.replicas.size());
    f.replicas.emplace_back();
    read_replica(Section(*element.as_table(), name, path, problem), f.fabric != "shm",
                 f.replicas.back());
    const HostReplica& last = f.replicas.back();
    const auto same = [&last](const HostReplica& other) {
      return &other != &last && other.address == last.address && other.port == last.port;
    };
    const auto other = std::find_if(f.replicas.begin(), f.replicas.end(), same);
    if (f.fabric != "shm" && last.port != 0 && other != f.replicas.end()) {
      Section(*element.as_table(), name, path, problem)
          .wrong(element.as_table()->get("port"), "port",
                 "is that of replica " + std::to_string(other - f.replicas.begin()) +
                     " at the same address",
                 "give each replica of a host its own port");
    }
  }
  if (f.members > f.replicas.size()) {
    top.wrong(nullptr, "[group] members", "is more than the number of replicas",
              "leave it out, or add [[replica]] tables");
  }
  const std::size_t voters = f.members != 0 ? f.members : f.replicas.size();
  if (voters % 2 == 0 || f.replicas.size() > kReplicasMost) {
    top.wrong(
        node, "[[replica]]", "is present " + std::to_string(f.replicas.size()) + " times",
        "a group begins with an odd number of voters ([group] members) of at most 9 replicas");
  }
}

// The first line with a control character or a character beyond ASCII; 0 if there is none.  For
// many characters beyond ASCII the behaviour of toml++ 3.3 is undefined.
std::size_t line_beyond_ascii(const std::string& text) {
  const auto odd = std::find_if(text.begin(), text.end(), [](char letter) {
    const auto c = static_cast<unsigned char>(letter);
    return (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c >= 0x7f;
  });
  if (odd == text.end()) return 0;
  return static_cast<std::size_t>(1 + std::count(text.begin(), odd, '\n'));
}

}  // namespace

Outcome parse_group_file(const std::string& text, const std::string& path, GroupFile& f) {
  if (const std::size_t line = line_beyond_ascii(text); line != 0) {
    return failure(Status::kGroupFile, "cannot use the group's file",
                   path + ":" + std::to_string(line),
                   "a character beyond ASCII, or a control character",
                   "write it within a text as \\u and four hexadecimal digits");
  }
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return failure(Status::kGroupFile, "cannot use the group's file",
                   path + ":" + std::to_string(parsed.error().source().begin.line),
                   std::string(parsed.error().description()), "correct that line");
  }
  Outcome found = Done{};
  Section top(parsed.table(), "the file:", path, found);
  const toml::table nothing;
  const auto table = [&](const char* key) -> const toml::table& {
    const toml::node* node = top.find(key);
    if (node != nullptr && !node->is_table())
      top.wrong(node, key, "is not a table", "write [table]");
    return node != nullptr && node->is_table() ? *node->as_table() : nothing;
  };
  read_group(Section(table("group"), "[group]", path, found), f);
  read_replicas(top, path, f, found);
  read_server(Section(table("server"), "[server]", path, found), f);
  read_clients(Section(table("clients"), "[clients]", path, found), f);
  read_http(Section(table("http"), "[http]", path, found), f);
  read_hooks(Section(table("hooks"), "[hooks]", path, found), f);
  if (found.ok()) {
    found = check_binds(f.binds, static_cast<int>(f.replicas.size()), Status::kGroupFile,
                        path + ": [server] binds");
  }
  top.finish();
  return found;
}

Outcome read_group_file(const std::string& path, GroupFile& file) {
  std::ifstream in(path, std::ios::binary);
  const std::string text = rest_of(in);
  if (!in.is_open() || in.bad()) {  // a directory can be opened, too
    return failure(Status::kGroupFile, "cannot read the group's file", path, strerror(errno),
                   "name another file with --config");
  }
  return parse_group_file(text, path, file);
}

namespace {

toml::table table_of(const std::vector<std::string>& variables) {
  toml::table table;
  for (const auto& variable : variables) {
    const auto cut = variable.find('=');
    table.insert(variable.substr(0, cut), variable.substr(cut + 1));
  }
  return table;
}

// Inserts the option, unless its value is empty (0, false or no text) and that is the default.
template <typename Value>
void insert_option(const OptionRow& row, const Value& value, const Value& initial,
                   toml::table& table) {
  if (value == initial && initial == Value{}) return;
  if constexpr (std::is_arithmetic_v<Value>) {
    table.insert(row.file_key(), value);
  } else {
    table.insert(row.file_key(), choice_text(row, value));
  }
}

void insert_options(OptionRow::Section section, const NodeOptions& options, toml::table& table) {
  const NodeOptions initial;
  for (const OptionRow& row : option_rows()) {
    if (row.section != section) continue;
    std::visit([&](auto f) { insert_option(row, options.*f, initial.*f, table); }, row.field);
  }
}

toml::table table_of(const HostReplica& r) {
  toml::table one{{"address", r.address}, {"port", r.port}, {"clients", r.clients}};
  if (r.port == 0) one.erase("port");
  if (r.cpu >= 0) one.insert("cpu", r.cpu);
  if (!r.cpus.empty()) one.insert("cpus", cpus_text(r.cpus));
  if (r.numa_node >= 0) one.insert("numa_node", r.numa_node);
  if (!r.http.empty()) one.insert("http", r.http);
  return one;
}

}  // namespace

std::string to_toml(const GroupFile& f) {
  const auto list = [](const std::vector<std::string>& words) {
    toml::array array;
    for (const auto& word : words) array.push_back(word);
    return array;
  };
  toml::table group{{"name", f.name},
                    {"secret_file", f.secret_file},
                    {"fabric", f.fabric},
                    {"ring_mb", f.ring_mb}};
  insert_options(OptionRow::Section::kGroup, f, group);
  if (!f.device.empty()) group.insert("device", f.device);
  if (f.fence != "deregister") group.insert("fence", f.fence);
  if (f.huge_pages != "auto") group.insert("huge_pages", f.huge_pages);
  if (!f.fence_flags_devices.empty()) {
    group.insert("fence_flags_devices", list(f.fence_flags_devices));
  }
  if (f.members != 0) group.insert("members", f.members);
  if (!f.state_dir.empty()) group.insert("state_dir", f.state_dir);
  if (f.links_listen_any) group.insert("listen", "any");
  toml::array replicas;
  for (const auto& r : f.replicas) replicas.push_back(table_of(r));
  toml::table server{{"command", list(f.command)}, {"working_directory", f.working_directory}};
  insert_options(OptionRow::Section::kServer, f, server);
  if (!f.profile.empty()) server.insert("profile", f.profile);
  if (f.mode != "serial") server.insert("mode", f.mode);
  if (!f.detach.empty()) server.insert("detach", list(f.detach));
  if (!f.soft_barriers.empty()) server.insert("soft_barriers", list(f.soft_barriers));
  if (!f.binds.empty()) server.insert("binds", list(f.binds));
  if (!f.data.empty()) server.insert("data", list(f.data));
  if (!f.shared_binds.empty()) server.insert("shared_binds", list(f.shared_binds));
  if (!f.env.empty()) server.insert("env", table_of(f.env));
  std::vector<std::string> publish;
  for (const Published& port : f.publish) publish.push_back(text(port));
  toml::table clients{{"on_follower", f.forward ? "forward" : "refuse"},
                      {"listen", f.listen_any ? "any" : "clients"},
                      {"publish", list(publish)}};
  if (!f.virtual_ip.empty()) {
    clients.insert("virtual_ip", f.virtual_ip);
    clients.insert("interface", f.interface);
  }
  toml::table whole{{"group", std::move(group)},
                    {"replica", std::move(replicas)},
                    {"server", std::move(server)},
                    {"clients", std::move(clients)}};
  toml::table http;
  if (!f.http.empty()) http.insert("listen", f.http);
  insert_options(OptionRow::Section::kHttp, f, http);
  if (!http.empty()) whole.insert("http", std::move(http));
  if (!f.role_change.empty()) {
    whole.insert("hooks", toml::table{{"role_change", f.role_change}});
  }
  std::ostringstream text;
  text << whole << "\n";
  return text.str();
}

bool parse_cpus(const std::string& text, std::vector<int>& cpus) {
  std::set<int> all;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    int first = -1;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc{} || first < 0) return false;
    int last = first;
    if (read.ptr != end && *read.ptr == '-') {
      read = std::from_chars(read.ptr + 1, end, last);
      if (read.ec != std::errc{}) return false;
    }
    if (last < first || last > kProcessorMost) return false;
    for (int cpu = first; cpu <= last; ++cpu) all.insert(cpu);
    if (read.ptr == end) break;
    if (*read.ptr != ',') return false;
    at = read.ptr + 1;
  }
  cpus.assign(all.begin(), all.end());
  return true;
}

std::string cpus_text(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0, next = 0; i < cpus.size(); i = next) {
    for (next = i + 1; next < cpus.size() && cpus[next] == cpus[next - 1] + 1;) ++next;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (next - i > 1) text += "-" + std::to_string(cpus[next - 1]);
  }
  return text;
}

}  // namespace crane::setup
