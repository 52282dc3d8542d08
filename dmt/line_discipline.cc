// SPDX-License-Identifier: Apache-2.0
#include "dmt/line_discipline.h"

#include <termios.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "dmt/base/assert.h"

namespace crane::dmt {
namespace {

constexpr std::uint8_t kDisabled = _POSIX_VDISABLE;
constexpr std::uint8_t kEraseOne = '\b';
constexpr std::uint32_t kTab = 8;

bool input_has(const TerminalModes& m, tcflag_t bits) noexcept { return (m.input & bits) != 0; }
bool output_has(const TerminalModes& m, tcflag_t bits) noexcept { return (m.output & bits) != 0; }
bool local_has(const TerminalModes& m, tcflag_t bits) noexcept { return (m.local & bits) != 0; }

bool is_control(std::uint8_t c) noexcept { return c < 0x20 || c == 0x7f; }
bool is_latin_letter(std::uint8_t c) noexcept { return c >= 0xc0 && c != 0xd7 && c != 0xf7; }
bool is_word(std::uint8_t c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         is_latin_letter(c);
}
std::uint8_t lower(std::uint8_t c) noexcept {
  const bool is_upper = (c >= 'A' && c <= 'Z') || (is_latin_letter(c) && c < 0xdf);
  return is_upper ? static_cast<std::uint8_t>(c + 0x20) : c;
}
// As Linux: 0xdf and 0xff count as lower case, although the result is not their upper case.
std::uint8_t upper(std::uint8_t c) noexcept {
  const bool is_lower = (c >= 'a' && c <= 'z') || (is_latin_letter(c) && c >= 0xdf);
  return is_lower ? static_cast<std::uint8_t>(c - 0x20) : c;
}

// Whether the byte continues a multi-byte character.
bool continues(const TerminalModes& m, std::uint8_t c) noexcept {
  return input_has(m, IUTF8) && (c & 0xc0) == 0x80;
}

// Processes one input byte.
class Receiver {
 public:
  Receiver(LineState& l, const TerminalModes& m, const OutputSink& echo) noexcept
      : l_(l), m_(m), echo_(echo) {}

  int receive(std::uint8_t c) noexcept;
  void show(std::uint8_t c) noexcept {
    if (echoes()) echo_visible(stripped(c));
  }

 private:
  bool is(std::uint8_t c, std::size_t which) const noexcept {
    return m_.characters[which] != kDisabled && m_.characters[which] == c;
  }
  bool echoes() const noexcept { return local_has(m_, ECHO); }
  bool extends() const noexcept { return local_has(m_, IEXTEN); }
  std::uint8_t& at(std::uint32_t count) noexcept { return l_.bytes[count % kLineBytes]; }

  std::uint8_t stripped(std::uint8_t c) const noexcept {
    if (input_has(m_, ISTRIP)) c &= 0x7f;
    return input_has(m_, IUCLC) && extends() ? lower(c) : c;
  }
  void keep(std::uint8_t c) noexcept { at(l_.head++) = c; }
  void keep_marked(std::uint8_t c) noexcept;
  void end_line(std::uint8_t c) noexcept;

  void echo_processed(std::uint8_t c) noexcept { post_process(l_, m_, c, echo_); }
  void echo_plain(std::uint8_t c) noexcept { echo_.put(echo_.context, c); }
  void echo_visible(std::uint8_t c) noexcept;
  void echo_input(std::uint8_t c) noexcept;
  void finish_erasing() noexcept;
  void erase_on_screen(std::uint8_t c) noexcept;
  void erase_tab() noexcept;

  int signal_of(std::uint8_t c) const noexcept;
  bool controls_flow(std::uint8_t c) noexcept;
  bool translate(std::uint8_t& c) const noexcept;
  bool edit(std::uint8_t c) noexcept;
  void erase(std::uint8_t c) noexcept;
  bool kill_unseen(std::uint8_t c) noexcept;
  bool erase_character(bool of_word, bool single, bool& seen_word) noexcept;
  void reprint(std::uint8_t c) noexcept;

  LineState& l_;
  const TerminalModes& m_;
  const OutputSink& echo_;
};

// With PARMRK, 0xff is stored twice.
void Receiver::keep_marked(std::uint8_t c) noexcept {
  if (c == 0xff && input_has(m_, PARMRK)) keep(c);
  keep(c);
}

void Receiver::end_line(std::uint8_t c) noexcept {
  const std::uint32_t place = l_.head % kLineBytes;
  l_.ends[place / 64] |= 1ull << (place % 64);
  keep(c);
  l_.ready = l_.head;
}

void Receiver::echo_visible(std::uint8_t c) noexcept {
  if (c == 0xff) {  // this byte alone is echoed unchanged
    echo_plain(c);
    ++l_.column;
    return;
  }
  if (!local_has(m_, ECHOCTL) || !is_control(c) || c == '\t') return echo_processed(c);
  echo_plain('^');
  echo_plain(static_cast<std::uint8_t>(c ^ 0x40));
  l_.column += 2;
}

void Receiver::echo_input(std::uint8_t c) noexcept {
  if (!echoes()) return;
  if (l_.ready == l_.head) l_.line_column = l_.column;
  echo_visible(c);
}

void Receiver::finish_erasing() noexcept {
  if (!l_.erasing) return;
  l_.erasing = false;
  echo_processed('/');
}

// Moves back to where the tab began: counts the columns between it and the previous tab.
void Receiver::erase_tab() noexcept {
  std::uint32_t columns = 0;
  bool after_tab = false;
  for (std::uint32_t i = l_.head; i != l_.ready && !after_tab;) {
    const std::uint8_t c = at(--i);
    if (c == '\t') {
      after_tab = true;
    } else if (is_control(c)) {
      columns += local_has(m_, ECHOCTL) ? 2 : 0;
    } else if (!continues(m_, c)) {
      ++columns;
    }
  }
  if (!after_tab) columns += l_.line_column;
  for (std::uint32_t left = kTab - columns % kTab; left > 0; --left) {
    echo_plain(kEraseOne);
    if (l_.column > 0) --l_.column;
  }
}

void Receiver::erase_on_screen(std::uint8_t c) noexcept {
  if (c == '\t') return erase_tab();
  const bool is_pair = is_control(c) && local_has(m_, ECHOCTL);
  if (is_control(c) && !is_pair) return;
  for (int i = is_pair ? 2 : 1; i > 0; --i) {
    echo_processed(kEraseOne);
    echo_processed(' ');
    echo_processed(kEraseOne);
  }
}

// Kills the line.  If the modes cannot erase on the screen, it only echoes the kill character.
bool Receiver::kill_unseen(std::uint8_t c) noexcept {
  constexpr tcflag_t kAll = ECHOK | ECHOKE | ECHOE;
  if (echoes() && (m_.local & kAll) == kAll) return false;
  l_.head = l_.ready;
  if (!echoes()) return true;
  finish_erasing();
  echo_visible(c);
  if (local_has(m_, ECHOK)) echo_processed('\n');
  return true;
}

// Erases the character before the head.  Returns false if erasing stops there.
bool Receiver::erase_character(bool of_word, bool single, bool& seen_word) noexcept {
  std::uint32_t first = l_.head;
  std::uint8_t c;
  do {
    c = at(--first);
  } while (continues(m_, c) && first != l_.ready);
  if (continues(m_, c)) return false;  // an incomplete character
  if (of_word && !is_word(c) && seen_word) return false;
  seen_word = seen_word || is_word(c);
  const std::uint32_t end = l_.head;
  l_.head = first;
  if (!echoes()) return true;
  if (local_has(m_, ECHOPRT)) {
    if (!l_.erasing) echo_processed('\\');
    l_.erasing = true;
    echo_visible(c);
    for (std::uint32_t i = first + 1; i != end; ++i) {
      echo_processed(at(i));
      if (l_.column > 0) --l_.column;
    }
  } else if (single && !local_has(m_, ECHOE)) {
    echo_visible(m_.characters[VERASE]);
  } else {
    erase_on_screen(c);
  }
  return true;
}

void Receiver::erase(std::uint8_t c) noexcept {
  if (l_.head == l_.ready) return;
  const bool single = is(c, VERASE);
  const bool of_word = !single && is(c, VWERASE) && extends();
  if (!single && !of_word && kill_unseen(c)) return;
  bool seen_word = false;
  while (l_.head != l_.ready && erase_character(of_word, single, seen_word) && !single) {
  }
  if (l_.head == l_.ready && echoes()) finish_erasing();
}

void Receiver::reprint(std::uint8_t c) noexcept {
  finish_erasing();
  echo_visible(c);
  echo_processed('\n');
  for (std::uint32_t i = l_.ready; i != l_.head; ++i) echo_visible(at(i));
}

int Receiver::signal_of(std::uint8_t c) const noexcept {
  if (!local_has(m_, ISIG)) return 0;
  return is(c, VINTR) ? SIGINT : is(c, VQUIT) ? SIGQUIT : is(c, VSUSP) ? SIGTSTP : 0;
}

bool Receiver::controls_flow(std::uint8_t c) noexcept {
  if (!input_has(m_, IXON) || (!is(c, VSTART) && !is(c, VSTOP))) return false;
  l_.stopped = !is(c, VSTART);
  return true;
}

// Returns false if the byte is ignored.
bool Receiver::translate(std::uint8_t& c) const noexcept {
  if (c == '\r') {
    if (input_has(m_, IGNCR)) return false;
    if (input_has(m_, ICRNL)) c = '\n';
  } else if (c == '\n' && input_has(m_, INLCR)) {
    c = '\r';
  }
  return true;
}

// Handles the bytes of canonical mode.  Returns false if the byte belongs to the line.
bool Receiver::edit(std::uint8_t c) noexcept {
  if (is(c, VERASE) || is(c, VKILL) || (is(c, VWERASE) && extends())) {
    erase(c);
  } else if (is(c, VLNEXT) && extends()) {
    l_.literal_next = true;
    if (echoes()) finish_erasing();
    if (echoes() && local_has(m_, ECHOCTL)) {
      echo_processed('^');
      echo_processed(kEraseOne);
    }
  } else if (is(c, VREPRINT) && echoes() && extends()) {
    reprint(c);
  } else if (c == '\n') {
    if (echoes() || local_has(m_, ECHONL)) echo_processed(c);
    end_line(c);
  } else if (is(c, VEOF)) {
    end_line(kDisabled);
  } else if (is(c, VEOL) || (is(c, VEOL2) && extends())) {
    echo_input(c);
    if (c == 0xff && input_has(m_, PARMRK)) keep(c);
    end_line(c);
  } else {
    return false;
  }
  return true;
}

int Receiver::receive(std::uint8_t c) noexcept {
  c = stripped(c);
  if (local_has(m_, EXTPROC)) {
    keep(c);
    return 0;
  }
  if (l_.literal_next) {
    l_.literal_next = false;
    if (echoes()) finish_erasing();
    echo_input(c);
    keep_marked(c);
    return 0;
  }
  if (controls_flow(c)) return 0;
  if (const int signo = signal_of(c); signo != 0) {
    if (input_has(m_, IXON)) l_.stopped = false;
    return signo;
  }
  if (input_has(m_, IXON) && input_has(m_, IXANY)) l_.stopped = false;
  const bool was_return = c == '\r';
  if (!translate(c)) return 0;
  if (is_canonical(m_) && edit(c)) return 0;
  if (echoes()) finish_erasing();
  if (was_return && c == '\n') {
    if (echoes()) echo_processed(c);
  } else {
    echo_input(c);
  }
  keep_marked(c);
  return 0;
}

bool is_end(const LineState& l, std::uint32_t count) noexcept {
  const std::uint32_t place = count % kLineBytes;
  return (l.ends[place / 64] >> (place % 64) & 1) != 0;
}

void clear_end(LineState& l, std::uint32_t count) noexcept {
  const std::uint32_t place = count % kLineBytes;
  l.ends[place / 64] &= ~(1ull << (place % 64));
}

std::size_t take_line(LineState& l, std::uint8_t* to, std::size_t n) noexcept {
  std::size_t done = 0;
  while (l.tail != l.ready) {
    const std::uint8_t c = l.bytes[l.tail % kLineBytes];
    const bool ends = is_end(l, l.tail);
    const bool is_byte = !ends || c != kDisabled || l.pushed;
    // A read that fills its buffer also consumes an end of file; otherwise the next one would find
    // it.
    if (done == n && is_byte) break;
    clear_end(l, l.tail);
    if (is_byte) to[done++] = c;
    ++l.tail;
    if (!ends) continue;
    l.pushed = false;
    break;
  }
  return done;
}

}  // namespace

TerminalModes usual_modes() noexcept {
  TerminalModes m{};
  m.input = ICRNL | IXON;
  m.output = OPOST | ONLCR;
  m.control = B38400 | CS8 | CREAD;
  m.local = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN;
  struct Usual {
    std::size_t which;
    std::uint8_t character;
  };
  constexpr Usual kUsual[] = {{VINTR, 3},  {VQUIT, 28},    {VERASE, 127},  {VKILL, 21},
                              {VEOF, 4},   {VMIN, 1},      {VSTART, 17},   {VSTOP, 19},
                              {VSUSP, 26}, {VREPRINT, 18}, {VDISCARD, 15}, {VWERASE, 23},
                              {VLNEXT, 22}};
  for (const Usual& usual : kUsual) m.characters[usual.which] = usual.character;
  return m;
}

bool is_canonical(const TerminalModes& m) noexcept { return local_has(m, ICANON); }

std::uint32_t room_for_input(const LineState& l, const TerminalModes& m) noexcept {
  std::uint32_t room = kLineBytes - (l.head - l.tail);
  if (input_has(m, PARMRK)) room = (room + 2) / 3;
  if (room > 1) return room - 1;
  // A full line without an end still accepts a byte that edits or ends it.
  return is_canonical(m) && l.ready == l.tail ? 1 : 0;
}

int receive(LineState& l, const TerminalModes& m, std::uint8_t byte,
            const OutputSink& echo) noexcept {
  const std::uint32_t needed = input_has(m, PARMRK) ? 2 : 1;
  while (l.head - l.tail + needed > kLineBytes) --l.head;  // drops the end of a line that overflows
  const int signo = Receiver(l, m, echo).receive(byte);
  CRANE_ASSERT(l.head - l.tail <= kLineBytes && l.ready - l.tail <= l.head - l.tail);  // LINE-1
  return signo;
}

void echo_signal_byte(LineState& l, const TerminalModes& m, std::uint8_t byte,
                      const OutputSink& echo) noexcept {
  Receiver(l, m, echo).show(byte);
}

bool has_input(const LineState& l, const TerminalModes& m, std::uint32_t least) noexcept {
  if (is_canonical(m) && !local_has(m, EXTPROC)) return l.ready != l.tail;
  return l.head - l.tail >= std::max<std::uint32_t>(least, 1);
}

std::uint32_t unread_bytes(const LineState& l, const TerminalModes& m) noexcept {
  if (!is_canonical(m)) return l.head - l.tail;
  std::uint32_t count = 0;
  for (std::uint32_t i = l.tail; i != l.ready; ++i) {
    const bool is_end_of_file = is_end(l, i) && l.bytes[i % kLineBytes] == kDisabled;
    count += is_end_of_file ? 0 : 1;
  }
  return count;
}

std::size_t take_input(LineState& l, const TerminalModes& m, std::uint8_t* to,
                       std::size_t n) noexcept {
  if (is_canonical(m) && !local_has(m, EXTPROC)) return take_line(l, to, n);
  const std::uint32_t before = l.ready - l.tail;
  std::size_t done = 0;
  for (; done < n && l.tail != l.head; ++l.tail) to[done++] = l.bytes[l.tail % kLineBytes];
  if (done > before) l.ready = l.tail;
  return done;
}

void flush_input(LineState& l) noexcept {
  l.head = l.ready = l.tail = 0;
  l.literal_next = l.erasing = l.pushed = false;
  std::memset(l.ends, 0, sizeof l.ends);
}

void post_process(LineState& l, const TerminalModes& m, std::uint8_t c,
                  const OutputSink& out) noexcept {
  if (!output_has(m, OPOST)) return out.put(out.context, c);
  switch (c) {
    case '\n':
      if (output_has(m, ONLRET | ONLCR)) l.column = 0;
      l.line_column = l.column;
      if (output_has(m, ONLCR)) out.put(out.context, '\r');
      break;
    case '\r':
      if (output_has(m, ONOCR) && l.column == 0) return;
      if (output_has(m, OCRNL)) c = '\n';
      if (c == '\r' || output_has(m, ONLRET)) l.line_column = l.column = 0;
      break;
    case '\t': {
      const std::uint32_t spaces = kTab - l.column % kTab;
      l.column += spaces;
      if ((m.output & TABDLY) != XTABS) break;
      for (std::uint32_t i = 0; i < spaces; ++i) out.put(out.context, ' ');
      return;
    }
    case '\b':
      if (l.column > 0) --l.column;
      break;
    default:
      if (is_control(c)) break;
      if (output_has(m, OLCUC)) c = upper(c);
      if (!continues(m, c)) ++l.column;
      break;
  }
  out.put(out.context, c);
}

void note_modes(LineState& l, const TerminalModes& before, const TerminalModes& now) noexcept {
  if (((before.local ^ now.local) & (ICANON | EXTPROC)) != 0) {
    std::memset(l.ends, 0, sizeof l.ends);
    l.erasing = l.literal_next = false;
    l.pushed = is_canonical(now) && l.head != l.tail;
    l.ready = l.pushed ? l.head : l.tail;
    if (l.pushed) {
      const std::uint32_t last = (l.head - 1) % kLineBytes;
      l.ends[last / 64] |= 1ull << (last % 64);
    }
  }
  if (!input_has(now, IXON) && input_has(before, IXON)) l.stopped = false;
}

}  // namespace crane::dmt
