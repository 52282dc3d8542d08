// SPDX-License-Identifier: Apache-2.0
// A fuzzing engine for compilers without one: runs the seeds, then mutations of them, all derived
// from one number. No coverage guides it, unlike `make fuzz`.
//
// fuzz-FORMAT [--runs N] [--seed S]   runs the seeds and N mutations; prints how to replay a crash
// fuzz-FORMAT --hex HEX               runs one input
// fuzz-FORMAT --write-seeds DIR       writes the seeds as files, for libFuzzer

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "consensus/sim/world.h"
#include "tests/fuzz/fuzz.h"

// Defined by asan's runtime if it is linked.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using crane::consensus::sim::Random;

constexpr std::size_t kInputMax = 8192;
constexpr double kSecondsMax = 8;  // a slow build stops early; the output has the count

std::string under_way;

void print_input() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string line = "the input, to replay: --hex ";
  for (const char c : under_way) {
    line += kDigits[static_cast<unsigned char>(c) >> 4];
    line += kDigits[static_cast<unsigned char>(c) & 15];
  }
  line += '\n';
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

void on_signal(int number) {
  print_input();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void run(const std::string& input) {
  under_way = input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

void mutate(std::string& s, Random& r, const std::string& other) {
  static constexpr std::uint64_t kNumbers[] = {
      0, 1, 7, 8, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, ~0ULL, 1ULL << 63};
  if (s.empty()) s.push_back('\0');
  const std::size_t at = r.below(s.size());
  switch (r.below(8)) {
    case 0:
      s[at] = static_cast<char>(s[at] ^ (1 << r.below(8)));
      break;
    case 1:
      s[at] = static_cast<char>(r.next());
      break;
    case 2: {
      const std::uint64_t number = kNumbers[r.below(std::size(kNumbers))] + r.below(3) - 1;
      const std::size_t size = std::size_t{1} << r.below(4);
      for (std::size_t i = 0; i < size && at + i < s.size(); ++i) {
        s[at + i] = static_cast<char>(number >> (8 * i));
      }
      break;
    }
    case 3:
      s.erase(at, r.between(1, 16));
      break;
    case 4:
      s.insert(at, s.substr(r.below(s.size()), r.below(64)));
      break;
    case 5:
      s.resize(at);
      break;
    case 6:
      s = s.substr(0, at) + other.substr(r.below(other.size() + 1));
      break;
    default:
      for (std::size_t i = 0; i < 8 && at + i < s.size(); ++i) {
        s[at + i] = static_cast<char>(r.next());
      }
  }
  if (s.size() > kInputMax) s.resize(kInputMax);
}

int write_seeds(const std::string& directory) {
  int number = 0;
  for (const std::string& seed : crane::fuzz::seeds()) {
    std::ofstream(directory + "/seed-" + std::to_string(number++), std::ios::binary) << seed;
  }
  return 0;
}

int run_hex(const std::string& hex) {
  std::string input;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    input += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  run(input);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t runs = 20'000;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--write-seeds") return write_seeds(argv[i + 1]);
    if (option == "--hex") return run_hex(argv[i + 1]);
    if (option == "--runs") runs = std::strtoull(argv[i + 1], nullptr, 10);
    if (option == "--seed") seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(number, on_signal);
  }
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(print_input);
  std::vector<std::string> corpus = crane::fuzz::seeds();
  for (const std::string& s : corpus) run(s);
  Random r(seed);
  const auto begin = std::chrono::steady_clock::now();
  double seconds = 0;
  std::uint64_t done = 0;
  for (; done < runs && seconds < kSecondsMax; ++done) {
    std::string input = corpus[r.below(corpus.size())];
    for (std::uint64_t n = r.between(1, 6); n > 0; --n) {
      mutate(input, r, corpus[r.below(corpus.size())]);
    }
    run(input);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::printf("%s: %zu seeds and %llu mutations from seed %llu, no finding\n", argv[0],
              corpus.size(), static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(seed));
}
