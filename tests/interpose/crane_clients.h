// SPDX-License-Identifier: Apache-2.0
#pragma once
// Clients for crane-solo, played from a script: the entries that a proxy would propose for them,
// one line each time the replica waits. At the end the server's effects on them are printed.
//
//   connect NAME PORT        data NAME TEXT (with \n, \r)      zeros NAME COUNT
//   shutdown NAME            reset NAME                        take NAME BYTES (of its output)
//   pass MS                  lets virtual time pass
//   accept NAME              a connection that the server opens; without a line it is refused
//   resolve ADDRESS[,ADDRESS...]  answers the server's next name query; "resolve" alone:
//                            EAI_NONAME; a query without a line fails with EAI_AGAIN
//   fifo PATH                a FIFO of the host, made before the server begins; it stays
//   intrude PATH             a process outside connects to a unix socket of the server
//   # comment

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "dmt/sequence/entry.h"
#include "dmt/sequence/output.h"

namespace crane::solo {

struct Client {
  std::uint64_t conn = 0;
  std::uint64_t taken = 0;
  std::string got;
  std::string events;
};

class Clients {
 public:
  using Push = std::function<std::uint64_t(EntryType, const void*, std::uint32_t)>;

  ~Clients() {
    for (const std::string& fifo : fifos_) ::unlink(fifo.c_str());
  }

  bool load(const std::string& path) {
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("fifo ", 0) == 0) {
        fifos_.push_back(line.substr(5));
        if (::mkfifo(fifos_.back().c_str(), 0600) != 0 && errno != EEXIST) return false;
      } else if (!line.empty() && line[0] != '#') {
        lines_.push_back(line);
      }
    }
    return in.eof();
  }

  // Plays the next line. False if there is none, or if it waits for the server to listen. `pass_ns`
  // is set if the line lets time pass.
  bool play(const Push& push, std::int64_t& pass_ns) {
    pass_ns = 0;
    if (next_ >= lines_.size()) return false;
    std::istringstream line(lines_[next_]);
    std::string word, name;
    line >> word >> name;
    if (word == "pass") {
      pass_ns = std::stoll(name) * 1'000'000;
      ++next_;
      return true;
    }
    if (word == "intrude") {
      if (!connect_to_unix(name)) return false;
      ++next_;
      return true;
    }
    if (word == "accept" && asked_.empty()) return false;
    if (word == "resolve") {
      if (names_.empty()) return false;
      ++next_;
      resolve(name.empty() ? EAI_NONAME : 0, name, push);
      return true;
    }
    Client& c = clients_[name];
    std::string rest;
    std::getline(line >> std::ws, rest);
    if (word == "connect" && listening_.count(std::stoi(rest)) == 0) return false;
    ++next_;
    if (word == "accept") c.conn = answer(0, push);
    if (word == "connect") connect(c, std::stoi(rest), push);
    if (word == "data") send(c, unescape(rest), push);
    if (word == "zeros") send(c, std::string(std::stoul(rest), '0'), push);
    const ConnBody conn{ConnId{c.conn}};
    if (word == "shutdown") push(EntryType::kShutdown, &conn, sizeof conn);
    if (word == "reset") push(EntryType::kReset, &conn, sizeof conn);
    if (word == "take") {
      c.taken += std::stoull(rest);
      const WindowBody body{ConnId{c.conn}, c.taken};
      push(EntryType::kWindow, &body, sizeof body);
    }
    return true;
  }

  // Called when there is nothing else to do: refuses a connection that the server opens. False:
  // there is none.
  bool refuse(const Push& push) {
    if (!names_.empty()) {
      resolve(EAI_AGAIN, "", push);
      return true;
    }
    if (asked_.empty()) return false;
    answer(ECONNREFUSED, push);
    return true;
  }

  void output(const std::byte* record, std::size_t size) {
    OutputHeader h;
    std::memcpy(&h, record, sizeof h);
    if (h.type == OutputType::kConnect) asked_.push_back(h.conn);
    if (h.type == OutputType::kResolve) names_.push_back(h.conn);
    if (h.type == OutputType::kClose) std::erase(asked_, h.conn);
    if (h.type == OutputType::kListen) listening_[static_cast<int>(h.conn)] = true;
    if (h.type == OutputType::kUnlisten) listening_.erase(static_cast<int>(h.conn));
    for (auto& [name, c] : clients_) {
      if (c.conn != h.conn || c.conn == 0) continue;
      if (h.type == OutputType::kBytes) {
        c.got.append(reinterpret_cast<const char*>(record) + sizeof h, size - sizeof h);
      }
      if (h.type == OutputType::kShutdown) c.events += " fin";
      if (h.type == OutputType::kClose) c.events += h.argument != 0 ? " rst" : " close";
      if (h.type == OutputType::kRefused) c.events += " refused";
    }
  }

  // Long outputs are printed only as a length.
  void report() const {
    for (const auto& [name, c] : clients_) {
      std::string text;
      for (const char ch : c.got) {
        if (ch == '\n') {
          text += "\\n";
        } else if (ch == '\r') {
          text += "\\r";
        } else {
          text += ch;
        }
      }
      if (c.got.size() > 200) {
        text = std::to_string(c.got.size()) + " bytes, CRC " +
               std::to_string(crc32c(c.got.data(), c.got.size()));
      }
      std::printf("client %s got [%s]%s\n", name.c_str(), text.c_str(), c.events.c_str());
    }
  }

 private:
  // As a process outside the group; the connection stays open.
  static bool connect_to_unix(const std::string& path) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) {
      return ::send(fd, "outside", 7, MSG_NOSIGNAL) == 7;
    }
    ::close(fd);
    return false;
  }

  void resolve(int error, const std::string& addresses, const Push& push) {
    ResolvedBody body{};
    body.number = names_.front();
    names_.erase(names_.begin());
    body.error = error;
    std::istringstream words(addresses);
    for (std::string ip; std::getline(words, ip, ',') && body.count < kNameAddressesMax;) {
      VirtualAddress& a = body.addresses[body.count++];
      a.family = ip.find(':') == std::string::npos ? AF_INET : AF_INET6;
      inet_pton(a.family, ip.c_str(), a.ip);
    }
    std::strcpy(body.name, "canonical.example");
    push(EntryType::kResolved, &body, sizeof body);
  }

  std::uint64_t answer(int error, const Push& push) {
    ConnectedBody body{};
    body.conn = ConnId{asked_.front()};
    asked_.erase(asked_.begin());
    body.error = error;
    body.local.family = 2;
    body.local.port = 50000;
    const std::uint8_t from[4] = {192, 0, 2, 9};
    std::memcpy(body.local.ip, from, 4);
    push(EntryType::kConnected, &body, sizeof body);
    return value(body.conn);
  }

  void connect(Client& c, int port, const Push& push) {
    ConnectBody body{};
    body.port = static_cast<std::uint16_t>(port);
    body.peer.family = body.local.family = 2;
    body.peer.port = static_cast<std::uint16_t>(40000 + clients_.size());
    body.local.port = body.port;
    const std::uint8_t from[4] = {192, 0, 2, 7}, to[4] = {192, 0, 2, 1};
    std::memcpy(body.peer.ip, from, 4);
    std::memcpy(body.local.ip, to, 4);
    c.conn = push(EntryType::kConnect, &body, sizeof body);
  }

  void send(const Client& c, const std::string& text, const Push& push) {
    for (std::size_t at = 0; at < text.size(); at += kDataBytesMax) {
      const std::string part = text.substr(at, kDataBytesMax);
      std::vector<char> body(sizeof(DataBody) + part.size());
      const DataBody head{ConnId{c.conn}};
      std::memcpy(body.data(), &head, sizeof head);
      std::memcpy(body.data() + sizeof head, part.data(), part.size());
      push(EntryType::kData, body.data(), static_cast<std::uint32_t>(body.size()));
    }
  }

  static std::string unescape(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) {
        ++i;
        out += text[i] == 'n' ? '\n' : text[i] == 'r' ? '\r' : text[i];
      } else {
        out += text[i];
      }
    }
    return out;
  }

  std::vector<std::string> lines_, fifos_;
  std::size_t next_ = 0;
  std::map<std::string, Client> clients_;
  std::map<int, bool> listening_;
  std::vector<std::uint64_t> asked_;  // connections that the server opens, unanswered
  std::vector<std::uint64_t> names_;  // unanswered name queries of the server
};

}  // namespace crane::solo
