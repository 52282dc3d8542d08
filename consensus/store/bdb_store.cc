// SPDX-License-Identifier: Apache-2.0
#include "consensus/store/bdb_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "dmt/base/assert.h"
#include "dmt/base/crc.h"
#include "dmt/base/fault_point.h"
#include "dmt/base/log.h"

namespace crane::consensus::store {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMagic = 0x6372'616e'6573'746fU;
constexpr std::uint32_t kVersion = 1;
// A loss of power could tear larger pages; Berkeley DB cannot mend those.
constexpr std::uint32_t kPageBytes = 4096;
constexpr int kMessagesMax = 3;
constexpr std::uint64_t kRoomBytes = 1U << 20;  // less counts as a full disk

// One of two slots of the file `high`, written alternately.
struct High {
  std::uint64_t magic = kMagic;
  Identity identity;
  std::uint64_t sequence = 0;
  Viewstamp last{};
  View promise{};
  std::uint64_t crc = 0;  // CRC32C over the rest
};
constexpr off_t kSlotBytes = 512;

template <typename T>
std::uint32_t crc_of(const T& value) {
  return crc32c(&value, offsetof(T, crc));
}

DBT dbt(const void* data, std::size_t size) {
  DBT t;
  std::memset(&t, 0, sizeof t);
  t.data = const_cast<void*>(data);
  t.size = static_cast<u_int32_t>(size);
  return t;
}

struct Key {  // big-endian: the B-tree sorts by index
  explicit Key(std::uint64_t index) : bytes(__builtin_bswap64(index)) {}
  DBT get() const { return dbt(&bytes, sizeof bytes); }
  std::uint64_t bytes;
};

std::string segment_name(std::uint64_t first) {
  char text[40];
  std::snprintf(text, sizeof text, "entries-%016llx.db", static_cast<unsigned long long>(first));
  return text;
}

// Logs Berkeley DB's message; after an error it repeats itself for every page.
void log_message(const DB_ENV* env, const char*, const char* text) {
  int& left = *static_cast<int*>(env->app_private);
  if (left > 0) Message() << "store: " << text << (--left == 0 ? " (no more of these)" : "");
}

Outcome sync_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error("open the store's directory");
  const bool done = ::fsync(fd) == 0;
  const Error why = system_error("sync the store's directory");
  ::close(fd);
  if (!done) return why;
  return Done{};
}

bool resource_is_missing(int code) {
  return code == ENOSPC || code == EDQUOT || code == EACCES || code == EPERM || code == EROFS ||
         code == ENOMEM || code == EMFILE || code == ENFILE;
}

}  // namespace

struct BdbStore::Meta {
  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t zero = 0;
  Identity identity;
  std::uint64_t sequence = 0;
  View promise{};
  core::Cursor first;
  core::Cursor last;
  core::Cursor commit;
  std::uint64_t crc = 0;
};

// --- opening ------------------------------------------------------------------------------------

Result<std::unique_ptr<BdbStore>> BdbStore::open(const BdbOptions& options) {
  std::unique_ptr<BdbStore> store(new BdbStore(options));
  if (const Outcome o = store->open_files(); !o) return o.error();
  if (const Outcome o = store->recover(); !o) return o.error();
  return store;
}

BdbStore::~BdbStore() {
  close();
  if (high_fd_ >= 0) ::close(high_fd_);
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

Outcome BdbStore::open_files() {
  std::error_code why;
  fs::create_directories(options_.directory, why);
  if (why) return Error{Code::kSystem, why.value(), "make the store's directory"};
  lock_fd_ = ::open(path("lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) return system_error("open the store's lock");
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) != 0) {
    return Error{Code::kBusy, errno, "another process has the store open"};
  }
  return Done{};
}

// Finds out what the files contain.
Outcome BdbStore::recover() {
  std::error_code ignored;
  std::uint64_t sequence = 0;
  Identity identity;
  Index last{};
  if (read_high(sequence, identity, last) && sequence == 0) return Done{};  // reset() began it
  if (!fs::exists(env_path(), ignored)) {
    if (high_fd_ >= 0) damaged("its files are missing");
    return Done{};
  }
  int code = open_env(false);
  if (code == 0) code = open_db("meta.db", false, &meta_);
  if (code == 0) code = open_segments();
  if (code == 0) code = read_meta();
  if (resource_is_missing(code)) return failed(code, "open the store");
  if (code != 0) damaged(std::string("it cannot be opened: ") + db_strerror(code));
  if (state_.damage.empty()) check_entries();
  return Done{};
}

int BdbStore::open_env(bool create) {
  int code = ::db_env_create(&env_, 0);
  if (code != 0) return code;
  messages_left_ = kMessagesMax;
  env_->app_private = &messages_left_;
  env_->set_errcall(env_, log_message);
  env_->set_cachesize(env_, 0, options_.cache_bytes, 1);
  env_->set_lg_bsize(env_, std::min<std::uint32_t>(1U << 20, options_.log_file_bytes / 4));
  env_->set_lg_max(env_, options_.log_file_bytes);
  env_->log_set_config(env_, DB_LOG_AUTO_REMOVE, 1);
  // One thread: no locks.  Regions in the heap: a killed process leaves none that could interfere.
  const u_int32_t flags = DB_INIT_TXN | DB_INIT_LOG | DB_INIT_MPOOL | DB_PRIVATE | DB_CREATE;
  code = env_->open(env_, env_path().c_str(), flags | (create ? 0U : DB_RECOVER), 0600);
  if (code == 0) unchecked_bytes_ = 0;
  return code;
}

int BdbStore::open_db(const std::string& file, bool create, DB** db) {
  int code = ::db_create(db, env_, 0);
  if (code != 0) return code;
  (*db)->set_pagesize(*db, kPageBytes);
  (*db)->set_flags(*db, DB_CHKSUM);
  const u_int32_t flags = DB_AUTO_COMMIT | (create ? DB_CREATE : 0U);
  code = (*db)->open(*db, nullptr, file.c_str(), nullptr, DB_BTREE, flags, 0600);
  if (code != 0) {
    (*db)->close(*db, DB_NOSYNC);
    *db = nullptr;
  }
  return code;
}

int BdbStore::open_segments() {
  std::error_code why;
  for (const auto& file : fs::directory_iterator(env_path(), why)) {
    unsigned long long first = 0;
    const std::string name = file.path().filename();
    if (std::sscanf(name.c_str(), "entries-%16llx.db", &first) != 1) continue;
    segments_.push_back({first, nullptr});
  }
  if (why) return why.value();
  std::sort(segments_.begin(), segments_.end(),
            [](const Segment& a, const Segment& b) { return a.first < b.first; });
  for (Segment& s : segments_) {
    if (const int code = open_db(segment_name(s.first), false, &s.db); code != 0) return code;
  }
  if (!segments_.empty()) {
    const std::string last = env_path() + "/" + segment_name(segments_.back().first);
    segment_used_ = fs::file_size(last, why);
    if (why) return why.value();
  }
  return 0;
}

int BdbStore::read_meta() {
  const DBT key = dbt("meta", 4);
  Meta meta;
  DBT data = dbt(&meta, 0);
  data.ulen = sizeof meta;
  data.flags = DB_DBT_USERMEM;
  DBT k = key;
  const int code = meta_->get(meta_, nullptr, &k, &data, 0);
  if (code != 0) return code;
  if (data.size != sizeof meta || meta.magic != kMagic || meta.crc != crc_of(meta)) {
    damaged("its head does not match its checksum");
    return 0;
  }
  if (meta.version != kVersion) {
    damaged("it has version " + std::to_string(meta.version));
    return 0;
  }
  state_.identity = meta.identity;
  state_.promise = meta.promise;
  state_.first = meta.first;
  state_.last = meta.last;
  state_.commit = meta.commit;
  sequence_ = meta.sequence;
  check_high(meta);
  return 0;
}

// Reads the newer of the two slots of the high mark; false if none is complete.
bool BdbStore::read_high(std::uint64_t& sequence, Identity& identity, Index& last) {
  if (high_fd_ < 0) high_fd_ = ::open(path("high").c_str(), O_RDWR | O_CLOEXEC);
  bool found = false;
  for (off_t slot = 0; slot < 2 && high_fd_ >= 0; ++slot) {
    High high;
    if (::pread(high_fd_, &high, sizeof high, slot * kSlotBytes) != sizeof high) continue;
    if (high.magic != kMagic || high.crc != crc_of(high)) continue;
    if (found && high.sequence <= sequence) continue;
    found = true;
    sequence = high.sequence;
    identity = high.identity;
    last = high.last.index;
  }
  return found;
}

// STORE-T4: a store that holds less than was reported as done is damaged, not short.
void BdbStore::check_high(const Meta& meta) {
  std::uint64_t sequence = 0;
  Identity identity;
  Index last{};
  if (!read_high(sequence, identity, last) || identity != meta.identity) {
    damaged("its high mark is missing or unreadable");
  } else if (sequence > meta.sequence) {
    damaged("it ends at transaction " + std::to_string(meta.sequence) + ", entry " +
            std::to_string(value(meta.last.last.index)) + ", but transaction " +
            std::to_string(sequence) + ", entry " + std::to_string(value(last)) + " was stored");
  }
}

void BdbStore::check_entries() {
  core::Cursor at = state_.first;
  core::EntryHeader h;
  while (at.last.index < state_.last.last.index) {
    const std::uint64_t index = value(at.last.index) + 1;
    const int code = get(index, buffer_, ~std::size_t{0});
    if (code != 0 || !core::valid_entry(at, state_.identity.log_id, buffer_, h)) {
      return damaged("entry " + std::to_string(index) +
                     (code == 0 ? std::string(" does not match its checksum")
                                : std::string(" cannot be read: ") + db_strerror(code)));
    }
    at = core::LogRing::after(h);
  }
  if (at != state_.last) damaged("its end differs from its head");
}

void BdbStore::damaged(const std::string& what) {
  if (state_.damage.empty()) state_.damage = what;
}

void BdbStore::close() {
  for (Segment& s : segments_) {
    if (s.db != nullptr) s.db->close(s.db, 0);
  }
  segments_.clear();
  if (meta_ != nullptr) meta_->close(meta_, 0);
  meta_ = nullptr;
  if (env_ != nullptr) env_->close(env_, 0);
  env_ = nullptr;
}

// --- resetting ----------------------------------------------------------------------------------

Outcome BdbStore::set_aside() {
  std::error_code why;
  if (!fs::exists(env_path(), why)) return Done{};
  if (state_.damage.empty()) {
    fs::remove_all(env_path(), why);
  } else {
    int number = 1;
    while (fs::exists(path("damaged-" + std::to_string(number)), why)) ++number;
    fs::rename(env_path(), path("damaged-" + std::to_string(number)), why);
  }
  if (why) return Error{Code::kSystem, why.value(), "set the old store aside"};
  return Done{};
}

// Until the new store is complete, only the high mark records what existed: transaction 0 is a
// store that was never used, an empty file one that was discarded.
Outcome BdbStore::begin_reset(const Identity& identity) {
  const bool unused = state_.damage.empty() && state_.identity.incarnation == 0;
  close();
  if (high_fd_ >= 0) ::close(high_fd_);
  high_fd_ = ::open(path("high").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (high_fd_ < 0 || ::ftruncate(high_fd_, 0) != 0) {
    return system_error("write the store's high mark");
  }
  sequence_ = 0;
  if (unused) {
    state_.identity = identity;
    if (const Outcome o = write_high(); !o) return o;
  }
  high_dirty_ = true;
  if (const Outcome o = idle(); !o) return o;
  return sync_directory(options_.directory);
}

Outcome BdbStore::reset_at(const Identity& identity, const core::Cursor& begin, View promise) {
  if (const Outcome o = begin_reset(identity); !o) return o;
  if (const Outcome o = set_aside(); !o) return o;
  std::error_code why;
  fs::create_directory(env_path(), why);
  if (why) return Error{Code::kSystem, why.value(), "make the store's directory"};
  state_ = {};
  state_.identity = identity;
  state_.promise = promise;
  state_.first = state_.last = state_.commit = begin;
  int code = open_env(true);
  if (code == 0) code = open_db("meta.db", true, &meta_);
  if (code == 0) code = add_segment(value(begin.last.index) + 1);
  if (code == 0) code = commit(nullptr, state_);
  if (code != 0) return failed(code, "make the store");
  if (const Outcome o = sync_directory(env_path()); !o) return o;
  if (const Outcome o = write_high(); !o) return o;
  if (const Outcome o = idle(); !o) return o;
  return sync_directory(options_.directory);
}

// --- transactions -------------------------------------------------------------------------------

// Returns the error for the user; from now on the store is unusable (STORE-T5).
Outcome BdbStore::failed(int code, const char* what) {
  broken_ = true;
  struct statvfs room {};
  const bool full = ::statvfs(options_.directory.c_str(), &room) == 0 &&
                    room.f_bavail * room.f_frsize < kRoomBytes;
  if (code == ENOSPC || code == EDQUOT || (full && code == DB_RUNRECOVERY)) {
    return Error{Code::kFull, ENOSPC, what};
  }
  if (code == EACCES || code == EPERM || code == EROFS) return Error{Code::kDenied, code, what};
  if (code == DB_RUNRECOVERY) return Error{Code::kDamaged, 0, what};
  return Error{Code::kSystem, code > 0 ? code : 0, what};
}

int BdbStore::put_meta(DB_TXN* txn, const State& state) {
  Meta meta;
  meta.identity = state.identity;
  meta.sequence = sequence_ + 1;
  meta.promise = state.promise;
  meta.first = state.first;
  meta.last = state.last;
  meta.commit = state.commit;
  meta.crc = crc_of(meta);
  DBT key = dbt("meta", 4);
  DBT data = dbt(&meta, sizeof meta);
  return meta_->put(meta_, txn, &key, &data, 0);
}

// Writes the new state with the transaction and syncs it.
int BdbStore::commit(DB_TXN* txn, const State& state) {
  const int begun = txn != nullptr ? 0 : env_->txn_begin(env_, nullptr, &txn, 0);
  if (begun != 0) return begun;
  if (const int code = put_meta(txn, state); code != 0) {
    txn->abort(txn);
    return code;
  }
  if (const int code = txn->commit(txn, DB_TXN_SYNC); code != 0) return code;
  state_ = state;
  ++sequence_;
  return 0;
}

Outcome BdbStore::write_high() {
  High high;
  high.identity = state_.identity;
  high.sequence = sequence_;
  high.last = state_.last.last;
  high.promise = state_.promise;
  high.crc = crc_of(high);
  const off_t slot = static_cast<off_t>(sequence_ % 2) * kSlotBytes;
  if (::pwrite(high_fd_, &high, sizeof high, slot) != sizeof high) {
    return errno == ENOSPC ? Error{Code::kFull, ENOSPC, "write the store's high mark"}
                           : system_error("write the store's high mark");
  }
  high_dirty_ = true;
  return Done{};
}

Outcome BdbStore::idle() {
  if (high_dirty_ && ::fdatasync(high_fd_) != 0) return system_error("sync the store's high mark");
  high_dirty_ = false;
  return Done{};
}

Outcome BdbStore::promise(View view) {
  State state = state_;
  state.promise = view;
  if (broken_) return failed(DB_RUNRECOVERY, "store a promise after an error");
  if (const int code = commit(nullptr, state); code != 0) return failed(code, "store a promise");
  return write_high();
}

Result<core::Cursor> BdbStore::append(const core::Cursor& from, std::span<const std::byte> bytes,
                                      const core::Cursor& commit_at) {
  CRANE_ASSERT(from.last.index >= state_.first.last.index);
  CRANE_ASSERT(from.last.index <= state_.last.last.index);  // STORE-T2
  if (broken_) return failed(DB_RUNRECOVERY, "store entries after an error").error();
  DB_TXN* txn = nullptr;
  int code = 0;
  if (segment_used_ >= options_.segment_bytes && from.last.index == state_.last.last.index) {
    code = add_segment(value(from.last.index) + 1);
  }
  if (code == 0) code = env_->txn_begin(env_, nullptr, &txn, 0);
  if (code != 0) return failed(code, "begin to store entries").error();
  State state = state_;
  core::Cursor at = from;
  std::size_t used = 0;
  core::EntryHeader h;
  while (code == 0 && core::valid_entry(at, state.identity.log_id, bytes.subspan(used), h)) {
    const std::size_t size = core::kHeaderBytes + h.length;
    bool same = false;
    if (h.index <= value(state.last.last.index)) {
      const auto held = header(Index{h.index});
      if (!held) code = DB_RUNRECOVERY;
      same = held && held.value().view == h.view;
    }
    if (code == 0 && !same) code = put_entry(txn, h, bytes.subspan(used, size));
    at = core::LogRing::after(h);
    if (!same) state.last = at;  // STORE-T3: entries above are overwritten first
    used = std::min<std::size_t>(used + core::entry_bytes(h.length), bytes.size());
  }
  const core::Cursor known = commit_at.last.index > at.last.index ? at : commit_at;
  if (known.last.index > state.commit.last.index) state.commit = known;
  if (code == 0) {
    code = commit(txn, state);
  } else {
    txn->abort(txn);
  }
  if (code != 0) return failed(code, "store entries").error();
  unchecked_bytes_ += used + kPageBytes;
  if (const Outcome o = write_high(); !o) return o.error();
  return at;
}

int BdbStore::put_entry(DB_TXN* txn, const core::EntryHeader& h, std::span<const std::byte> bytes) {
  const Key key(h.index);
  DBT k = key.get();
  DBT data = dbt(bytes.data(), bytes.size());
  segment_used_ += bytes.size() + sizeof key.bytes;
  Segment* const s = segment_of(h.index);
  return s->db->put(s->db, txn, &k, &data, 0);
}

// --- segments -----------------------------------------------------------------------------------

BdbStore::Segment* BdbStore::segment_of(std::uint64_t index) {
  const auto behind =
      std::upper_bound(segments_.begin(), segments_.end(), index,
                       [](std::uint64_t i, const Segment& s) { return i < s.first; });
  CRANE_ASSERT(behind != segments_.begin());
  return &*(behind - 1);
}

int BdbStore::add_segment(std::uint64_t first) {
  Segment s{first, nullptr};
  if (!segments_.empty() && segments_.back().first >= first) return 0;  // it exists, empty
  if (const int code = open_db(segment_name(first), true, &s.db); code != 0) return code;
  segments_.push_back(s);
  segment_used_ = 0;
  return 0;
}

Outcome BdbStore::drop_below(Index index) {
  State state = state_;
  std::size_t removed = 0;
  int code = broken_ ? DB_RUNRECOVERY : 0;
  if (code == 0 && segment_used_ >= options_.cut_bytes && value(index) > segments_.back().first) {
    code = add_segment(value(state.last.last.index) + 1);
    fault_point("truncate.cut");
  }
  if (code != 0) return failed(code, "drop a segment of the store");
  while (removed + 1 < segments_.size() && segments_[removed + 1].first <= value(index)) ++removed;
  if (removed == 0) return Done{};
  const Index first{segments_[removed].first - 1};
  CRANE_ASSERT(first <= state.commit.last.index);
  if (first > state.first.last.index) {  // else a killed process left these files
    const auto before = header(first);
    if (!before) return before.error();
    state.first = core::LogRing::after(before.value());
  }
  if (code = commit(nullptr, state); code != 0) return failed(code, "drop a segment of the store");
  if (const Outcome o = write_high(); !o) return o;
  fault_point("truncate.dropping");
  // Remove files only after the transaction: a process killed while a transaction removes files
  // leaves a store that cannot be opened.  The next call removes what is left.
  for (std::size_t i = 0; i < removed && code == 0; ++i) {
    segments_[i].db->close(segments_[i].db, 0);
    segments_[i].db = nullptr;
    code = env_->dbremove(env_, nullptr, segment_name(segments_[i].first).c_str(), nullptr,
                          DB_AUTO_COMMIT);
    fault_point("truncate.dropped");
  }
  if (code != 0) return failed(code, "remove a segment of the store");
  segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(removed));
  cut_ = true;
  return Done{};
}

// --- reading ------------------------------------------------------------------------------------

// Reads the first bytes_max bytes of entry `index`.
int BdbStore::get(std::uint64_t index, std::vector<std::byte>& bytes, std::size_t bytes_max) {
  if (segments_.empty() || index < segments_.front().first) return DB_NOTFOUND;
  const Key key(index);
  DBT k = key.get();
  DBT data = dbt(nullptr, 0);
  data.flags = DB_DBT_USERMEM;
  if (bytes_max != ~std::size_t{0}) {
    data.flags |= DB_DBT_PARTIAL;
    data.dlen = static_cast<u_int32_t>(bytes_max);
  }
  DB* const db = segment_of(index)->db;
  bytes.resize(std::max<std::size_t>(bytes.capacity(), 512));
  for (;;) {
    data.data = bytes.data();
    data.ulen = static_cast<u_int32_t>(bytes.size());
    const int code = db->get(db, nullptr, &k, &data, 0);
    if (code != DB_BUFFER_SMALL) {
      bytes.resize(code == 0 ? data.size : 0);
      return code;
    }
    bytes.resize(data.size);
  }
}

Result<Index> BdbStore::read(Index from, std::size_t bytes_max, std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  if (from <= state_.first.last.index || from > state_.last.last.index) {
    return Error{Code::kNotFound, 0, "read from the store"};
  }
  while (from <= state_.last.last.index) {
    const int code = get(value(from), buffer_, ~std::size_t{0});
    core::EntryHeader h;
    if (code == 0 && buffer_.size() >= core::kHeaderBytes) {
      std::memcpy(static_cast<void*>(&h), buffer_.data(), sizeof h);
    }
    const core::Cursor at{h.pos, {View{h.prev_view}, Index{value(from) - 1}}};
    if (code != 0 || !core::valid_entry(at, state_.identity.log_id, buffer_, h)) {
      return Error{Code::kDamaged, 0, "read from the store"};
    }
    const std::size_t size = core::entry_bytes(h.length);
    if (out.size() > begin && out.size() + size > begin + bytes_max) break;
    out.insert(out.end(), buffer_.begin(), buffer_.end());
    out.resize(out.size() + size - buffer_.size());
    from = next(from);
  }
  return from;
}

Result<core::EntryHeader> BdbStore::header(Index index) {
  if (index <= state_.first.last.index || index > state_.last.last.index) {
    return Error{Code::kNotFound, 0, "read from the store"};
  }
  const int code = get(value(index), buffer_, core::kHeaderBytes);
  if (code != 0 || buffer_.size() != core::kHeaderBytes) {
    return Error{Code::kDamaged, 0, "read from the store"};
  }
  core::EntryHeader h;
  std::memcpy(static_cast<void*>(&h), buffer_.data(), sizeof h);
  return h;
}

}  // namespace crane::consensus::store
