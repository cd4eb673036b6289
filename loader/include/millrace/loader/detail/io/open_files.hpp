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

/// One table of descriptors and of maps for all readers of a process: files are opened when they
/// are first read, and the ones not used for the longest time are closed for others.
///
/// A file is known by device, inode, size and time of modification as they were when it was first
/// opened. One that is replaced by a rename stays the old one as long as it is open; opened again
/// as another file, it is an error, and never other bytes.
///
/// Where a limit is hit (EMFILE, ENFILE, ENOMEM; EPERM and EAGAIN of mmap), the least used file is
/// closed and the call repeated. A map that is refused even so is no error: it is read instead.
///
/// All members may be called from any thread. What is handed out stays open until it is let go of,
/// whatever the table does, and may outlive it; hold it no longer than one read takes.
class MILLRACE_EXPORT open_files : public std::enable_shared_from_this<open_files> {
 public:
  class file;

  /// An open file, and where it lies.
  struct descriptor {
    io::unique_fd fd;
    file_system_kind kind = file_system_kind::local;
    counted alive;
  };
  using held_descriptor = std::shared_ptr<const descriptor>;

  /// A mapped part of a file, and the descriptor by which its size may be asked.
  struct map {
    file_map bytes;
    held_descriptor of;
    counted alive;
  };
  using held_map = std::shared_ptr<const map>;

  /// A descriptor that a reader has opened for itself, counted as one of the table's.
  struct lent {
    counted file;
    counted one_of_lent;
  };

  /// A map, or why there is none. `made` says that it is a new one, which has had no advice.
  struct map_result {
    held_map got;
    bool made = false;
    std::string why_not;
  };

  explicit open_files(const open_file_limits& limits = {}) { set_limits(limits); }

  /// The one that readers share if they are given none. It lives as long as one of them.
  static std::shared_ptr<open_files> of_process() { return one_per_process<open_files>(); }

  /// Takes effect when something is opened next.
  void set_limits(const open_file_limits& limits);
  open_file_limits limits() const {
    const std::lock_guard lock(mutex_);
    return limits_;
  }
  open_file_usage usage() const;

  /// A file that will be read; it is not opened yet. Readers that attach the same one share it,
  /// unless it was replaced in between.
  std::shared_ptr<file> attach(const data_file& what);

  /// @throws io_error  it cannot be opened, is not a regular file, is shorter than it should be
  ///                   (ENODATA), or is another one than at first (ESTALE).
  held_descriptor open(file& f);

  /// The map that has byte `offset` of a file; see `map_bytes`.
  /// @throws io_error  as for `open`
  map_result map_at(file& f, std::uint64_t offset);

  /// The same if somebody has made it, else null: for who would not have made one.
  held_map map_if_there(const file& f, std::uint64_t offset) const;

  /// Closes a file, to have it opened anew: e.g. after ESTALE.
  void close(file& f);

  /// For a descriptor that a reader has beside the table's own, as long as this lives: another file
  /// is closed for it.
  lent lend();

  /// Whether readers may have one more of them: half of all that may be open. The first one of a
  /// reader is never too many.
  bool may_lend() const {
    const std::lock_guard lock(mutex_);
    return *live_lent_ < limits_.files / 2;
  }

 private:
  using map_key = std::pair<file*, std::size_t>;  // a file, and which part of it
  struct file_part {
    held_map map;                     // or none
    std::list<map_key>::iterator at;  // of used_maps_, where there is a map
    std::uint64_t last_use = 0;       // on the clock
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
  std::int64_t most_maps_ = 0;  // less than the limit once the kernel has refused one
  std::unordered_map<std::string, std::weak_ptr<file>> files_;
  std::list<file*> used_files_;  // the last one used first
  std::list<map_key> used_maps_;
  std::uint64_t mapped_bytes_ = 0;  // of used_maps_
  std::uint64_t clock_ = 0;         // uses of maps
  std::int64_t attached_ = 0;
  // Of what was handed out, too: it may be let go of when the table is no more.
  const counted::counter live_files_ = std::make_shared<std::atomic<std::int64_t>>(0);
  const counted::counter live_lent_ = std::make_shared<std::atomic<std::int64_t>>(0);
  const counted::counter live_maps_ = std::make_shared<std::atomic<std::int64_t>>(0);
  open_file_usage usage_;
};

/// A file of the table; its contents are the table's own.
class MILLRACE_EXPORT open_files::file {
 public:
  const std::filesystem::path& path() const noexcept { return what_.path; }
  /// That it has by its index.
  std::uint64_t bytes() const noexcept { return what_.bytes; }

 private:
  friend class open_files;
  file(data_file what, std::string key) : what_(std::move(what)), key_(std::move(key)) {}

  const data_file what_;
  const std::string key_;     // of files_; kept, as `detach` must not allocate
  bool is_attached_ = false;  // counted in attached_
  std::mutex opening_;        // taken before the table's
  std::optional<file_stamp> first_;
  held_descriptor fd_;
  std::list<file*>::iterator at_;  // of used_files_, where fd_ is set
  std::vector<file_part> parts_;
  std::uint64_t map_bytes_ = 0;      // of each part but the last
  std::uint64_t no_map_before_ = 0;  // on the table's clock
  std::string why_no_map_;
};

}  // namespace millrace::loader
