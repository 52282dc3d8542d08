// SPDX-License-Identifier: Apache-2.0
// Recordings of outputs: crane-diff can read any file, whole, torn or damaged.

#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "dmt/base/assert.h"
#include "dmt/base/crc.h"
#include "proxy/record/output_compare.h"
#include "proxy/record/output_record.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace crane;
using namespace crane::proxy;

constexpr std::size_t kHeaderBytes = 32;
constexpr std::size_t kRecordBytes = 24;

// Corrects the checksums of the header and of `records` records.
void mend(std::string& file, unsigned records) {
  if (file.size() < kHeaderBytes) return;
  const std::uint32_t header = crc32c(file.data(), 20);
  std::memcpy(file.data() + 20, &header, sizeof header);
  std::size_t at = kHeaderBytes;
  for (; records > 0 && at + kRecordBytes <= file.size(); --records) {
    std::uint32_t body = 0;
    std::memcpy(&body, file.data() + at + 4, sizeof body);
    body = static_cast<std::uint32_t>(body % (file.size() - at - kRecordBytes + 1));
    std::memcpy(file.data() + at + 4, &body, sizeof body);
    const std::uint32_t crc = crc32c(file.data() + at + 4, kRecordBytes - 4 + body);
    std::memcpy(file.data() + at, &crc, sizeof crc);
    at += kRecordBytes + body;
  }
}

Result<Recording> read(const std::string& file) {
  const int fd = ::memfd_create("recording", MFD_CLOEXEC);
  CRANE_ASSERT(fd >= 0);
  CRANE_ASSERT(::write(fd, file.data(), file.size()) == static_cast<ssize_t>(file.size()));
  auto recording = Recording::open("/proc/self/fd/" + std::to_string(fd));
  ::close(fd);
  return recording;
}

}  // namespace

namespace crane::fuzz {

std::vector<std::string> seeds() {
  const std::string directory =
      std::filesystem::temp_directory_path() / ("crane-fuzz-" + std::to_string(::getpid()));
  std::vector<std::string> out;
  for (std::uint8_t replica = 0; replica < 2; ++replica) {
    auto recorder = OutputRecorder::open(directory, replica);
    CRANE_ASSERT(recorder.ok());
    OutputRecorder& r = *recorder.value();
    for (std::uint64_t conn = 3; conn < 6; ++conn) {
      r.connected(ConnId{conn}, 80, "192.0.2.1:1234");
      r.bytes(ConnId{conn}, std::as_bytes(std::span("HTTP/1.1 200 OK", 15)));
      r.closed(ConnId{conn}, replica == 0 ? "closed" : "reset");
    }
    if (replica == 0) r.finish();
    recorder.value().reset();
    std::ifstream in(directory + "/replica-" + std::to_string(replica) + ".out", std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    out.push_back(std::string(1, '\0') + file);
    out.push_back(std::string(1, '\7') + file);
  }
  std::filesystem::remove_all(directory);
  return out;
}

}  // namespace crane::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string other = crane::fuzz::seeds()[0].substr(1);
  crane::fuzz::Input input(data, size);
  const auto mends = input.take<std::uint8_t>();
  std::string file(reinterpret_cast<const char*>(input.rest().data()), input.rest().size());
  if (mends != 0) mend(file, mends % 16);
  auto first = read(file);
  if (!first.ok()) return 0;
  auto second = read(other);
  CRANE_ASSERT(second.ok());
  std::vector<Recording> all;
  all.push_back(std::move(first).value());
  all.push_back(std::move(second).value());
  for (const bool prefix : {false, true}) {
    CompareOptions options;
    options.prefix = prefix;
    (void)compare(all, options);
  }
  for (const auto& [conn, c] : all[0].connections()) {
    CRANE_ASSERT(bytes_at(c, c.size / 2, 8).size() <= 8);
  }
  return 0;
}
