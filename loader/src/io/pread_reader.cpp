// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/pread_reader.hpp>

#include <fcntl.h>
#include <sys/uio.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/detail/io/io_threads.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/read_plan.hpp>
#include <millrace/loader/detail/io/reader_log.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>
#include <millrace/loader/detail/io/reader_report.hpp>
#include <millrace/loader/detail/io/retry_policy.hpp>

namespace millrace::loader {

MILLRACE_INLINE pread_reader::pread_reader(const std::vector<data_file>& files,
                                           reader_options options)
    : options_(std::move(options)),
      table_(options_.files ? options_.files : open_files::of_process()),
      threads_(options_.threads ? options_.threads : io_threads::of_process()) {
  files_.reserve(files.size());
  for (const data_file& file : files) files_.push_back(table_->attach(file));
}

MILLRACE_INLINE void pread_reader::prefetch(std::span<const file_range> ranges) noexcept try {
  coalesce(ranges, read_plan::most_gap, ahead_);
  if (ahead_.empty()) return;
  current_file current;
  int refused = 0;  // the errno
  for (const file_range& range : ahead_) {
    open_files::file& f = file_of(range.file);
    if (current.file != &f) current = {&f, table_->open(f)};
    const int code = ::posix_fadvise(current.held->fd.get(), static_cast<::off_t>(range.offset),
                                     static_cast<::off_t>(range.bytes), POSIX_FADV_WILLNEED);
    if (code != 0) refused = code;
  }
  log_.note(
      "POSIX_FADV_WILLNEED", refused == 0,
      refused == 0 ? "the order of reads is known" : std::generic_category().message(refused));
} catch (...) {  // NOLINT(bugprone-empty-catch): gather meets the same error and reports it
}

MILLRACE_INLINE void pread_reader::gather(std::span<const read_request> requests) {
  plan_.make(requests);
  std::uint64_t bytes = 0;
  for (const read_request& r : requests) {
    assert(r.from.bytes <= file_of(r.from.file).bytes() &&
           r.from.offset <= file_of(r.from.file).bytes() - r.from.bytes);
    bytes += r.from.bytes;
  }
  const bool alone = threads_->most() == 0 || options_.gather_threads <= 1;
  if (bytes >= shared_from || alone) {
    read_all(plan_.reads());
  } else {
    cold_.clear();
    current_file current;
    for (planned_read& r : plan_.reads()) {
      const bool try_it = only_cached_works_.load(std::memory_order_relaxed);
      if (!try_it || !read(r, plan_.parts_of(r), true, current)) cold_.push_back(r);
    }
    current = {};
    read_all(cold_);
  }
  log_.add_gather(requests.size(), bytes);
}

// Divides the reads into about four tasks per thread, of similar size in bytes. So one slow read
// does not delay all other reads.
MILLRACE_INLINE void pread_reader::read_all(std::span<planned_read> reads) {
  if (reads.empty()) return;
  std::uint64_t bytes = 0;
  for (const planned_read& r : reads) bytes += r.bytes;
  const auto threads = static_cast<std::uint64_t>(std::max(options_.gather_threads, 1));
  const std::uint64_t share = threads == 1 ? bytes : bytes / (4 * threads);
  std::vector<std::size_t> begins{0};
  std::uint64_t in_task = 0;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (in_task >= share && in_task > 0) {
      begins.push_back(i);
      in_task = 0;
    }
    in_task += reads[i].bytes;
  }
  begins.push_back(reads.size());

  std::atomic<bool> failed{false};
  threads_->for_each(begins.size() - 1, options_.gather_threads, [&](std::size_t task) {
    current_file current;
    for (std::size_t i = begins[task]; i < begins[task + 1]; ++i) {
      if (failed.load(std::memory_order_relaxed)) return;  // the gather has failed already
      try {
        (void)read(reads[i], plan_.parts_of(reads[i]), false, current);
      } catch (...) {
        failed = true;
        throw;
      }
    }
  });
}

MILLRACE_INLINE const open_files::held_descriptor& pread_reader::hold(current_file& current,
                                                                      open_files::file& f) {
  if (current.file == &f && current.held) return current.held;
  current = {};
  retries attempts(options_.retry);
  for (;;) {
    try {
      current = {&f, table_->open(f)};
      return current.held;
    } catch (const io_error& e) {
      if (std::string_view(e.call()) != "open") throw;  // it is the wrong file, which is permanent
      if (!attempts.again(e.code(), kind_of(f.path()))) throw;
      log_.add_retry();
    }
  }
}

// Reads all of `rest`. If `only_cached` is set, reads only what is in memory. Returns false if
// bytes remain to be read; `rest` then describes these bytes.
MILLRACE_INLINE bool pread_reader::read(planned_read& rest, std::span<::iovec> parts,
                                        bool only_cached, current_file& current) {
  open_files::file& f = file_of(rest.file);
  retries attempts(options_.retry);
  while (rest.bytes > 0) {
    const open_files::held_descriptor held = hold(current, f);
    const ::ssize_t n = io::uninterrupted([&] {
      return ::preadv2(held->fd.get(), parts.data(), static_cast<int>(parts.size()),
                       static_cast<::off_t>(rest.offset), only_cached ? RWF_NOWAIT : 0);
    });
    if (n > 0) {
      log_.add_read(static_cast<std::uint64_t>(n));
      parts = advance(rest, parts, static_cast<std::uint64_t>(n));
      continue;
    }
    const int code = n < 0 ? errno : 0;
    if (only_cached) {
      // If RWF_NOWAIT is not supported, later reads do not use it. After any other result, even the
      // end of the file, the caller repeats the read without RWF_NOWAIT.
      if (code == EOPNOTSUPP || code == EINVAL) {
        only_cached_works_.store(false, std::memory_order_relaxed);
        log_.note("RWF_NOWAIT", false,
                  f.path().string() + ": " + std::generic_category().message(code) +
                      "; other threads read what is in memory, too");
      }
      return false;
    }
    if (n == 0) throw_short(f, rest.offset);
    if (!attempts.again(code, held->kind)) {
      throw io_error(f.path(), "read", code, rest.offset,
                     attempts.done() == 0
                         ? std::string()
                         : "given up after " + std::to_string(attempts.done() + 1) + " attempts");
    }
    log_.add_retry();
    if (code == ESTALE) {
      current = {};
      table_->close(f);
    }
  }
  return true;
}

MILLRACE_INLINE std::span<::iovec> pread_reader::advance(planned_read& rest,
                                                         std::span<::iovec> parts,
                                                         std::uint64_t n) {
  rest.offset += n;
  rest.bytes -= n;
  while (!parts.empty() && n >= parts.front().iov_len) {
    n -= parts.front().iov_len;
    parts = parts.subspan(1);
    ++rest.first_part;
    --rest.parts;
  }
  if (n > 0) {
    parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + n;
    parts.front().iov_len -= n;
  }
  return parts;
}

MILLRACE_INLINE void pread_reader::throw_short(const open_files::file& f, std::uint64_t end) {
  throw io_error(
      f.path(), "read", ENODATA, end,
      "it ends there or earlier, but should have " + std::to_string(f.bytes()) +
          " bytes according to its index; it was truncated while it was in use: restore it");
}

MILLRACE_INLINE reader_report pread_reader::report() const {
  reader_report report = detail::begin_report(options_, "pread", "pread");
  log_.fill(report, *table_);
  return report;
}

}  // namespace millrace::loader
