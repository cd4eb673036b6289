// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/open_files.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/loader/detail/io/file_map.hpp>
#include <millrace/loader/detail/io/file_stamp.hpp>
#include <millrace/loader/detail/io/file_system.hpp>
#include <millrace/loader/detail/io/open_file_limits.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::loader {

MILLRACE_INLINE void open_files::set_limits(const open_file_limits& limits) {
  const std::lock_guard lock(mutex_);
  limits_ = filled_in(limits);
  most_maps_ = limits_.maps;
}

MILLRACE_INLINE open_file_usage open_files::usage() const {
  const std::lock_guard lock(mutex_);
  open_file_usage now = usage_;
  now.files = *live_files_;
  now.maps = *live_maps_;
  return now;
}

MILLRACE_INLINE std::shared_ptr<open_files::file> open_files::attach(const data_file& what) {
  const std::string key = key_of(what);
  std::shared_ptr<file> known;
  std::optional<file_stamp> first;
  {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(key);
    if (found != files_.end()) known = found->second.lock();
    if (known) first = known->first_;
  }
  if (known) {
    // The file was opened before, and may have been replaced since then. If so, a new reader gets
    // the new file.
    struct ::stat status {};
    const bool same =
        !first || (::stat(what.path.c_str(), &status) == 0 && file_stamp(status) == *first);
    if (same) return known;
  }
  std::shared_ptr<file> made(new file(what, key), [table = shared_from_this()](file* f) {
    table->detach(*f);
    delete f;  // NOLINT: as std::shared_ptr itself would
  });
  const std::lock_guard lock(mutex_);
  const std::uint64_t step = limits_.map_bytes;
  made->map_bytes_ = step;
  made->parts_.resize(static_cast<std::size_t>(what.bytes / step + (what.bytes % step != 0)));
  files_[key] = made;
  ++attached_;
  made->is_attached_ = true;
  return made;
}

MILLRACE_INLINE void open_files::detach(file& f) noexcept {
  held_descriptor closed;  // this and `unmapped` are released after the lock
  std::vector<file_part> unmapped;
  const std::lock_guard lock(mutex_);
  if (f.is_attached_) --attached_;
  const auto found = files_.find(f.key_);
  if (found != files_.end() && found->second.expired()) files_.erase(found);
  if (f.fd_) used_files_.erase(f.at_);
  closed = std::move(f.fd_);
  for (auto& part : f.parts_) {
    if (part.map) forget_map(part);
  }
  unmapped = std::move(f.parts_);
}

// Only removes the map from the list. The caller releases the map after it has unlocked the mutex.
MILLRACE_INLINE void open_files::forget_map(file_part& part) noexcept {
  mapped_bytes_ -= part.map->bytes.bytes();
  used_maps_.erase(part.at);
}

MILLRACE_INLINE open_files::held_descriptor open_files::open(file& f) {
  {
    const std::lock_guard lock(mutex_);
    if (f.fd_) {
      used_files_.splice(used_files_.begin(), used_files_, f.at_);
      return f.fd_;
    }
  }
  // This lock makes two threads that need the file open it only once.
  const std::lock_guard opening(f.opening_);
  return opened(f);
}

MILLRACE_INLINE open_files::held_descriptor open_files::opened(file& f) {
  {
    const std::lock_guard lock(mutex_);
    if (f.fd_) return f.fd_;
  }
  (void)close_least_used(limits().files - 1);
  io::unique_fd fd = open_evicting(f);
  const file_stamp found = checked(f, fd);
  const file_system_kind kind = kind_of(fd);
  auto made =
      std::make_shared<const descriptor>(descriptor{std::move(fd), kind, counted(live_files_)});
  const std::lock_guard lock(mutex_);
  f.at_ = used_files_.insert(used_files_.begin(), &f);  // first, because it may throw
  f.fd_ = made;
  if (!f.first_) f.first_ = found;
  ++usage_.opens;
  usage_.most_files = std::max<std::int64_t>(usage_.most_files, *live_files_);
  return made;
}

// Opens a file. Closes as many other files as necessary.
MILLRACE_INLINE io::unique_fd open_files::open_evicting(const file& f) {
  for (;;) {
    // O_NONBLOCK prevents a FIFO from blocking here; `checked` refuses it later.
    io::unique_fd fd(io::uninterrupted(
        [&] { return ::open(f.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
    if (fd) return fd;
    const int code = errno;
    if (code != EMFILE && code != ENFILE && code != ENOMEM) throw io_error(f.path(), "open", code);
    {
      const std::lock_guard lock(mutex_);
      ++usage_.refusals;
    }
    if (!close_least_used(*live_files_ - 1)) {
      throw io_error(f.path(), "open", code, std::nullopt,
                     "there is no file left to close instead; raise the limit (ulimit -n), or "
                     "close other files of the process");
    }
  }
}

// Closes unused files until only `most` files are left, beginning with the least recently used
// file. Maps also hold descriptors. A map is released only if no other file can be closed.
MILLRACE_INLINE bool open_files::close_least_used(std::int64_t most) {
  std::vector<held_descriptor> closed;
  std::vector<held_map> unmapped;
  {
    const std::lock_guard lock(mutex_);
    std::int64_t left = *live_files_;
    for (auto at = used_files_.end(); left > most && at != used_files_.begin();) {
      --at;
      file& f = **at;
      if (f.fd_.use_count() > 1) continue;  // in use by a read or by a map
      closed.push_back(std::move(f.fd_));
      f.fd_ = nullptr;
      at = used_files_.erase(at);
      --left;
    }
    while (left > most && unmap_least_used(unmapped, closed)) --left;
  }
  return !closed.empty() || !unmapped.empty();
}

// Removes the least recently used map from the table.
MILLRACE_INLINE bool open_files::unmap_least_used(std::vector<held_map>& unmapped,
                                                  std::vector<held_descriptor>& closed) {
  for (auto at = used_maps_.end(); at != used_maps_.begin();) {
    --at;
    file& f = *at->first;
    file_part& part = f.parts_[at->second];
    if (part.map.use_count() > 1) continue;  // a thread is copying from it
    // Also closes the map's descriptor, unless another part of the file uses that descriptor.
    const bool closes = f.fd_ && f.fd_.use_count() <= 2;
    unmapped.push_back(part.map);  // first, because these calls may throw
    if (closes) closed.push_back(f.fd_);
    forget_map(part);
    part.map = nullptr;
    if (closes) {
      used_files_.erase(f.at_);
      f.fd_ = nullptr;
    }
    return true;
  }
  return false;
}

// Checks that this is the same file as before. Returns its current stamp.
MILLRACE_INLINE file_stamp open_files::checked(const file& f, const io::unique_fd& fd) {
  const std::uint64_t size = io::regular_file_size(fd, f.path());
  struct ::stat status {};
  if (::fstat(fd.get(), &status) != 0) throw io_error(f.path(), "fstat", errno);
  const std::lock_guard lock(mutex_);
  check_same(f.what_, size, f.first_, file_stamp(status));
  return file_stamp(status);
}

MILLRACE_INLINE void open_files::close(file& f) {
  held_descriptor closed;
  std::vector<held_map> unmapped;
  const std::lock_guard lock(mutex_);
  for (auto& part : f.parts_) {
    if (!part.map) continue;
    unmapped.push_back(part.map);
    forget_map(part);
    part.map = nullptr;
  }
  if (!f.fd_) return;
  used_files_.erase(f.at_);
  closed = std::move(f.fd_);
  f.fd_ = nullptr;
}

MILLRACE_INLINE open_files::lent open_files::lend() {
  (void)close_least_used(limits().files - 1);
  lent one{counted(live_files_), counted(live_lent_)};
  const std::lock_guard lock(mutex_);
  usage_.most_files = std::max<std::int64_t>(usage_.most_files, *live_files_);
  return one;
}

// Returns a result if no system call is needed: the existing map, or a null map if no map may be
// created now.
MILLRACE_INLINE std::optional<open_files::map_result> open_files::known_map(file& f,
                                                                            std::size_t place) {
  const std::lock_guard lock(mutex_);
  ++clock_;
  file_part& part = f.parts_[place];
  if (part.map) {
    part.last_use = clock_;
    used_maps_.splice(used_maps_.begin(), used_maps_, part.at);
    return map_result{part.map, false, {}};
  }
  if (clock_ < f.no_map_before_) return map_result{nullptr, false, f.why_no_map_};
  return std::nullopt;
}

MILLRACE_INLINE open_files::held_map open_files::map_if_there(const file& f,
                                                              std::uint64_t offset) const {
  const std::lock_guard lock(mutex_);
  return f.parts_[static_cast<std::size_t>(offset / f.map_bytes_)].map;
}

MILLRACE_INLINE open_files::map_result open_files::map_at(file& f, std::uint64_t offset) {
  const auto place = static_cast<std::size_t>(offset / f.map_bytes_);
  if (auto known = known_map(f, place)) return *known;
  const std::lock_guard opening(f.opening_);
  if (auto known = known_map(f, place)) return *known;  // created while this thread waited
  const std::uint64_t begin = place * f.map_bytes_;
  const auto bytes = static_cast<std::size_t>(std::min(f.map_bytes_, f.bytes() - begin));
  if (std::string why = no_room_for_map(f, bytes); !why.empty()) return {nullptr, false, why};

  const held_descriptor of = opened(f);
  file_map mapped(of->fd, begin, bytes);
  if (!mapped.valid()) {
    if (!is_limit(mapped.error()) || !make_room_for_map()) return refused_map(f, mapped.error());
    mapped = file_map(of->fd, begin, bytes);
    if (!mapped.valid()) return refused_map(f, mapped.error());
  }
  auto made = std::make_shared<const map>(map{std::move(mapped), of, counted(live_maps_)});
  const std::lock_guard lock(mutex_);
  file_part& part = f.parts_[place];
  part.at = used_maps_.insert(used_maps_.begin(), {&f, place});  // first, because it may throw
  part.map = made;
  part.last_use = clock_;
  ++usage_.mmaps;
  usage_.most_maps = std::max<std::int64_t>(usage_.most_maps, *live_maps_);
  mapped_bytes_ += bytes;
  return {made, true, {}};
}

// Makes room by dropping maps that have been idle for a long time. Keeps maps that are used in
// rotation, because creating maps in rotation costs more than reading.
MILLRACE_INLINE std::string open_files::no_room_for_map(file& f, std::size_t bytes) {
  std::vector<held_map> unmapped;
  std::vector<held_descriptor> closed;
  const std::lock_guard lock(mutex_);
  const auto is_full = [&] {
    return std::ssize(used_maps_) >= most_maps_ ||
           (!used_maps_.empty() &&
            bytes > limits_.mapped_bytes - std::min(limits_.mapped_bytes, mapped_bytes_));
  };
  while (is_full()) {
    const map_key least = used_maps_.back();
    const std::uint64_t idle = clock_ - least.first->parts_[least.second].last_use;
    const auto turns = static_cast<std::uint64_t>(attached_) * 8;
    if (idle > turns && unmap_least_used(unmapped, closed)) continue;
    f.no_map_before_ = clock_ + turns / 8;
    f.why_no_map_ = "all " + std::to_string(used_maps_.size()) +
                    " allowed maps are in use, so the file is read instead";
    return f.why_no_map_;
  }
  return {};
}

MILLRACE_INLINE bool open_files::make_room_for_map() {
  std::vector<held_map> unmapped;
  std::vector<held_descriptor> closed;
  const std::lock_guard lock(mutex_);
  ++usage_.refusals;
  // the kernel allows no more maps than exist now
  most_maps_ = std::max<std::int64_t>(std::ssize(used_maps_), 1);
  return unmap_least_used(unmapped, closed);
}

MILLRACE_INLINE open_files::map_result open_files::refused_map(file& f, int code) {
  const std::lock_guard lock(mutex_);
  if (is_limit(code)) most_maps_ = std::max<std::int64_t>(std::ssize(used_maps_), 1);
  f.no_map_before_ = is_limit(code) ? clock_ + 100'000 : ~std::uint64_t{0};
  f.why_no_map_ = f.path().string() + ": mmap: " + std::generic_category().message(code) +
                  ", with " + std::to_string(used_maps_.size()) + " maps: it is read instead";
  return {nullptr, false, f.why_no_map_};
}

}  // namespace millrace::loader
