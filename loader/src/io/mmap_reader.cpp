// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/mmap_reader.hpp>

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/detail/io/io_threads.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/reader_log.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>
#include <millrace/loader/detail/io/sigbus_guard.hpp>

namespace millrace::loader {

MILLRACE_INLINE mmap_reader::mmap_reader(std::vector<data_file> files, reader_options options)
    : options_(std::move(options)),
      table_(options_.files ? options_.files : open_files::of_process()),
      threads_(options_.threads ? options_.threads : io_threads::of_process()),
      advisor_(files, options_, threads_),
      unmapped_(files, [&] {
        reader_options same = options_;
        same.files = table_;
        same.threads = threads_;
        return same;
      }()) {
  files_.reserve(files.size());
  for (const data_file& file : files) files_.push_back(table_->attach(file));
}

MILLRACE_INLINE open_files::map_result mmap_reader::map_for(std::int64_t file,
                                                            std::uint64_t offset) {
  auto result = table_->map_at(file_of(file), offset);
  if (result.made) advisor_.advise(file, result.got);
  if (result.made || !result.got) {
    advisor_.log().note("mmap", result.got != nullptr,
                        result.got ? "bytes in memory are copied without a call" : result.why_not);
  }
  return result;
}

MILLRACE_INLINE void mmap_reader::prefetch(std::span<const file_range> ranges) noexcept try {
  coalesce(ranges, read_plan::most_gap, ahead_);
  ahead_unmapped_.clear();
  int refused = 0;  // the errno
  bool asked = false;
  for (file_range range : ahead_) {
    if (advisor_.is_in_memory(range.file)) continue;
    while (range.bytes > 0) {
      const auto map = map_for(range.file, range.offset).got;
      if (!map) {
        ahead_unmapped_.push_back(range);
        break;
      }
      const std::uint64_t at = range.offset - map->bytes.offset();
      const std::uint64_t here = std::min(range.bytes, map->bytes.bytes() - at);
      const std::uint64_t begin = at / page_bytes() * page_bytes();
      asked = true;
      if (::madvise(map->bytes.data() + begin, at + here - begin, MADV_WILLNEED) != 0) {
        refused = errno;
      }
      range.offset += here;
      range.bytes -= here;
    }
  }
  if (asked) {
    advisor_.log().note(
        "MADV_WILLNEED", refused == 0,
        refused == 0 ? "the order of reads is known" : std::generic_category().message(refused));
  }
  if (!ahead_unmapped_.empty()) unmapped_.prefetch(ahead_unmapped_);
} catch (...) {  // NOLINT(bugprone-empty-catch): gather meets the same error and reports it
}

MILLRACE_INLINE void mmap_reader::gather(std::span<const read_request> requests) {
  read_plan::sort(requests, order_);
  std::uint64_t bytes = 0;
  for (const read_request& r : requests) {
    assert(r.from.bytes <= file_of(r.from.file).bytes() &&
           r.from.offset <= file_of(r.from.file).bytes() - r.from.bytes);
    bytes += r.from.bytes;
  }
  const auto most = static_cast<std::size_t>(std::clamp(options_.gather_threads, 1, 64));
  const std::size_t shares = bytes < shared_from ? 1 : std::min(most, order_.size());
  // Divides the requests into tasks with about equal numbers of bytes.
  begins_.assign(1, 0);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < order_.size() && begins_.size() < shares; ++i) {
    if (seen >= bytes / shares * begins_.size() && i > begins_.back()) begins_.push_back(i);
    seen += requests[order_[i]].from.bytes;
  }
  const std::size_t tasks = begins_.size();
  begins_.push_back(order_.size());
  workers_.resize(std::max(workers_.size(), tasks));
  threads_->for_each(tasks, options_.gather_threads, [&](std::size_t task) {
    copy(requests, std::span(order_).subspan(begins_[task], begins_[task + 1] - begins_[task]),
         workers_[task]);
  });
  for (std::size_t i = 0; i < tasks; ++i) {
    if (!workers_[i].unread.empty()) unmapped_.gather(workers_[i].unread);
  }
  advisor_.log().add_gather(requests.size(), bytes);
}

// Copies from one map after the other, so that the thread holds only one map at a time.
MILLRACE_INLINE void mmap_reader::copy(std::span<const read_request> requests,
                                       std::span<const std::uint32_t> order, worker& with) {
  with.unread.clear();
  open_files::held_map map;
  std::int64_t file = -1;
  const auto finish = [&] {
    if (map) copy_from(*map, file, with);
    with.pieces.clear();
    map = nullptr;
  };
  with.pieces.clear();
  for (const std::uint32_t i : order) {
    file_range from = requests[i].from;
    std::byte* to = requests[i].to;
    while (from.bytes > 0) {
      if (!map || from.file != file || from.offset < map->bytes.offset() ||
          from.offset - map->bytes.offset() >= map->bytes.bytes()) {
        finish();
        file = from.file;
        try {
          map = map_for(file, from.offset).got;
        } catch (const io_error& e) {
          map = nullptr;  // pread retries transient errors and reports all others
          if (retry_policy::may_pass(e.code(), kind_of(e.path()))) advisor_.log().add_retry();
        }
      }
      if (!map) {
        with.unread.push_back({from, to});
        break;
      }
      const std::uint64_t at = from.offset - map->bytes.offset();
      const std::uint64_t here = std::min(from.bytes, map->bytes.bytes() - at);
      with.pieces.push_back({map->bytes.data() + at, to, here});
      from.offset += here;
      from.bytes -= here;
      to += here;
    }
  }
  finish();
}

MILLRACE_INLINE void mmap_reader::copy_from(const open_files::map& map, std::int64_t file,
                                            worker& with) {
  const std::byte* const begin = map.bytes.data();
  std::span<const copy_piece> left = with.pieces;
  std::uint64_t bytes = 0;
  bool ends_in_zero = false;
  while (!left.empty()) {
    const std::size_t copied = copy_pieces(left, begin, begin + map.bytes.bytes());
    for (const copy_piece& piece : left.first(copied)) {
      bytes += piece.bytes;
      ends_in_zero = ends_in_zero || piece.to[piece.bytes - 1] == std::byte{};
    }
    if (copied == left.size()) break;
    advisor_.log().note(
        "pages of mapped files", false,
        file_of(file).path().string() + ": SIGBUS, so it was read again with pread");
    with.unread.push_back(request_of(left[copied], map, file));
    left = left.subspan(copied + 1);
  }
  advisor_.log().add_read(bytes);
  if (ends_in_zero) check_size(map, file, with);
}

MILLRACE_INLINE void mmap_reader::check_size(const open_files::map& map, std::int64_t file,
                                             const worker& with) const {
  const open_files::file& f = file_of(file);
  struct ::stat status {};
  if (::fstat(map.of->fd.get(), &status) != 0) throw io_error(f.path(), "fstat", errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size >= f.bytes()) return;
  for (const copy_piece& piece : with.pieces) {
    const file_range range = request_of(piece, map, file).from;
    if (range.offset + range.bytes > size) pread_reader::throw_short(f, size);
  }
}

MILLRACE_INLINE read_request mmap_reader::request_of(const copy_piece& piece,
                                                     const open_files::map& map,
                                                     std::int64_t file) noexcept {
  const auto at = static_cast<std::uint64_t>(piece.from - map.bytes.data());
  return {{file, map.bytes.offset() + at, piece.bytes}, piece.to};
}

MILLRACE_INLINE reader_report mmap_reader::report() const {
  reader_report report = detail::begin_report(options_, "mmap", "mmap");
  const bool displaced = detail::sigbus_guard_displaced();
  report.grants.push_back(
      {"SIGBUS guard", detail::has_sigbus_guard && !displaced ? "yes" : "no",
       !detail::has_sigbus_guard ? "built without: the kernel is asked before each copy instead"
       : displaced
           ? "another SIGBUS handler was installed later: unless it forwards signals that are not "
             "its own, or restores the handler before it and raises the signal again, as Python's "
             "faulthandler does, a lost page ends the process"
           : "a lost page is reported as an error of its file, and does not end the process"});
  advisor_.log().fill(report, *table_);
  detail::add_fallback(report, unmapped_.report());
  return report;
}

}  // namespace millrace::loader
