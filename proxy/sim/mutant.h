// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rules of connections that are removed, one at a time, to show that the checks notice it.

namespace crane::proxy::sim {

enum class Mutant : int {
  kNone,
  kConsumeEarly,   // CONN-4: a byte leaves the socket when it is read, not when it is committed
  kWriteEarly,     // WRITER-1: the next writer does not wait for the end of the previous one
  kAnyView,        // WRITER-2: a leader that does not know that it is deposed gets the right
  kDropOutput,     // CONN-5: a follower keeps no output
  kTakenOneMore,   // CONN-4: a new leader counts one byte too many as taken
  kTakenOneLess,   // CONN-4: .. one too few
  kPutOneMore,     // CONN-5: a new leader counts one byte too many as put
  kPutOneLess,     // CONN-5: .. one too few
  kResetIsFin,     // CONN-4: a socket that a client has reset counts as ended by both sides
  kReportEarly,    // the table contains what was written, not what was put
  kLoseUnclaimed,  // a client that was accepted and not proposed is forgotten
  kNotLogged,      // no replica records that a connection is in the log
  kNoKeeper,       // sockets die with their process
  kServeDeposed,   // CLIENT-2: a deposed leader gives up the right to write, and continues
  kForgetEnd,      // a FIN that arrived with bytes is not looked for after them
  kReleaseEarly,   // TABLE-1: a slot is free before its connection's socket is closed
  kMarkOnce,  // CONN-4: the mark of an urgent byte goes when it is read, not when it is committed
};
inline constexpr int kMutants = static_cast<int>(Mutant::kMarkOnce) + 1;
const char* name(Mutant mutant);

}  // namespace crane::proxy::sim
