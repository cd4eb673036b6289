// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/loader/detail/io/file_map.hpp>
#include <millrace/loader/detail/io/file_stamp.hpp>
#include <millrace/loader/detail/io/file_system.hpp>
#include <millrace/loader/detail/io/open_file_limits.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/memory/one_per_process.hpp>

namespace millrace::loader {

/// A table of file descriptors and memory mappings (maps) that all readers of a process share.
/// Files are opened when they are first read. To make room, the table closes the least recently
/// used files.
///
/// A file is identified by the device, inode, size and modification time that it had when it was
/// first opened. If a file is replaced by a rename, readers get the old file as long as it is open.
/// If the table reopens a path and finds a different file, it throws an error. So it never returns
/// bytes of a different file.
///
/// If a call fails because of a limit (EMFILE, ENFILE, ENOMEM; for mmap also EPERM and EAGAIN), the
/// table closes the least recently used file or map and repeats the call. If a map is still
/// refused, this is not an error: the file is read with pread instead.
///
/// All members may be called from any thread. A returned descriptor or map stays open until its
/// holder releases it, even if the table closes the file or is destroyed. Hold it no longer than
/// one read takes.
class MILLRACE_EXPORT open_files : public std::enable_shared_from_this<open_files> {
 public:
  class file;

  /// An open file and the kind of file system that it is on.
  struct descriptor {
    io::unique_fd fd;
    file_system_kind kind = file_system_kind::local;
    counted alive;
  };
  using held_descriptor = std::shared_ptr<const descriptor>;

  /// A mapped part of a file, and the file's descriptor, which is used to query the size.
  struct map {
    file_map bytes;
    held_descriptor of;
    counted alive;
  };
  using held_map = std::shared_ptr<const map>;

  /// Counts a descriptor that a reader opens outside the table as one of the table's open files.
  struct lent {
    counted file;
    counted one_of_lent;
  };

  /// A map, or the reason why this part of the file has no map.
  struct map_result {
    held_map got;
    bool made = false;  ///< true if the map is new, so the kernel has no advice for it yet
    std::string why_not;
  };

  explicit open_files(const open_file_limits& limits = {}) { set_limits(limits); }

  /// The table that readers share by default. It is destroyed when its last user releases it.
  static std::shared_ptr<open_files> of_process() { return one_per_process<open_files>(); }

  /// Sets limits that take effect when the next file is opened or mapped.
  void set_limits(const open_file_limits& limits);
  open_file_limits limits() const {
    const std::lock_guard lock(mutex_);
    return limits_;
  }
  open_file_usage usage() const;

  /// Registers a file to be read, without opening it. Readers that attach the same file share the
  /// result, unless the file was replaced between the calls.
  std::shared_ptr<file> attach(const data_file& what);

  /// Returns the descriptor of a file. Opens the file if it is not open.
  /// @throws io_error  the file cannot be opened, is not a regular file, is shorter than its
  ///                   `bytes` (ENODATA), or was replaced since its first open or since its index
  ///                   was read (ESTALE)
  held_descriptor open(file& f);

  /// Returns the map that contains byte `offset` of a file, and creates it if necessary. Each map
  /// covers one part of the file, of `open_file_limits::map_bytes` bytes.
  /// @throws io_error  as `open`
  map_result map_at(file& f, std::uint64_t offset);

  /// Returns the map that contains byte `offset` of a file; null if this map does not exist.
  held_map map_if_there(const file& f, std::uint64_t offset) const;

  /// Closes a file so that its next use reopens it, for example after ESTALE.
  void close(file& f);

  /// Reserves room for a descriptor that a reader opens outside the table. Closes another file if
  /// necessary. The room is reserved until the result is destroyed.
  lent lend();

  /// True if readers may open one more descriptor outside the table. Descriptors outside the table
  /// may use at most half of the limit on open files. Each reader may open its first such
  /// descriptor without asking.
  bool may_lend() const {
    const std::lock_guard lock(mutex_);
    return *live_lent_ < limits_.files / 2;
  }

 private:
  using map_key = std::pair<file*, std::size_t>;  // a file, and the index of one of its parts
  struct file_part {
    held_map map;                     // null: not mapped
    std::list<map_key>::iterator at;  // in used_maps_, if mapped
    std::uint64_t last_use = 0;       // value of clock_
  };

  static bool is_limit(int code) noexcept {
    return code == EMFILE || code == ENFILE || code == ENOMEM || code == EPERM || code == EAGAIN;
  }
  static std::string key_of(const data_file& what) {
    const io::file_identity identity = what.identity.value_or(io::file_identity{});
    return std::to_string(what.bytes) + ' ' + std::to_string(identity.device) + ' ' +
           std::to_string(identity.inode) + ' ' + what.path.string();
  }
  void detach(file& f) noexcept;
  held_descriptor opened(file& f);
  io::unique_fd open_evicting(const file& f);
  file_stamp checked(const file& f, const io::unique_fd& fd);
  bool close_least_used(std::int64_t most);
  void forget_map(file_part& part) noexcept;
  bool unmap_least_used(std::vector<held_map>& unmapped, std::vector<held_descriptor>& closed);
  std::optional<map_result> known_map(file& f, std::size_t place);
  std::string no_room_for_map(file& f, std::size_t bytes);
  bool make_room_for_map();
  map_result refused_map(file& f, int code);

  mutable std::mutex mutex_;
  open_file_limits limits_;
  std::int64_t most_maps_ = 0;  // limits_.maps; reduced when the kernel refuses a map
  std::unordered_map<std::string, std::weak_ptr<file>> files_;
  std::list<file*> used_files_;  // most recently used first
  std::list<map_key> used_maps_;
  std::uint64_t mapped_bytes_ = 0;  // total size of the maps in used_maps_
  std::uint64_t clock_ = 0;         // counts uses of maps
  std::int64_t attached_ = 0;
  // Shared with the descriptors and maps that the table returned, because they may outlive it.
  const counted::counter live_files_ = std::make_shared<std::atomic<std::int64_t>>(0);
  const counted::counter live_lent_ = std::make_shared<std::atomic<std::int64_t>>(0);
  const counted::counter live_maps_ = std::make_shared<std::atomic<std::int64_t>>(0);
  open_file_usage usage_;
};

/// A file of the table. Only the table accesses its private members.
class MILLRACE_EXPORT open_files::file {
 public:
  const std::filesystem::path& path() const noexcept { return what_.path; }
  /// Size of the file in bytes, according to the index of the dataset.
  std::uint64_t bytes() const noexcept { return what_.bytes; }

 private:
  friend class open_files;
  file(data_file what, std::string key) : what_(std::move(what)), key_(std::move(key)) {}

  const data_file what_;
  const std::string key_;     // key in files_; kept because `detach` must not allocate
  bool is_attached_ = false;  // whether attached_ counts this file
  std::mutex opening_;        // locked before the table's mutex
  std::optional<file_stamp> first_;
  held_descriptor fd_;
  std::list<file*>::iterator at_;  // in used_files_, if fd_ is set
  std::vector<file_part> parts_;
  std::uint64_t map_bytes_ = 0;      // size of each part; the last part may be smaller
  std::uint64_t no_map_before_ = 0;  // no new map is created before clock_ has this value
  std::string why_no_map_;
};

}  // namespace millrace::loader
