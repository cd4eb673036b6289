// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/map_advisor.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>

#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>
#include <millrace/loader/detail/io/sigbus_guard.hpp>
#include <millrace/loader/detail/memory/available_memory.hpp>

namespace millrace::loader {

MILLRACE_INLINE void map_advisor::choose(std::span<const data_file> files,
                                         const reader_options& options) {
  in_memory_ = std::make_shared<memory_flags>(files.size());
  for (const data_file& file : files) bytes_.push_back(file.bytes);
  if (options.advice != map_advice::by_memory) {
    advice_.assign(files.size(), options.advice);
    why_ = options.advice_why.empty() ? "requested by name" : options.advice_why;
    why_random_ = why_;
    return;
  }
  std::uint64_t left = options.resident_bytes;
  why_ = "files that fit into the " + std::to_string(left >> 20) + " MiB of resident_bytes";
  if (left == 0) {
    const auto room = available_memory();
    left = room ? room->bytes / 2 : 0;
    why_ = "files that fit into " + std::to_string(left >> 20) +
           " MiB, half of what is available (" + (room ? room->by : "unknown") + ")";
  }
  why_ += ", in their order";
  why_random_ = "not among the " + why_;
  for (const data_file& file : files) {
    const bool fits = file.bytes <= left;
    if (fits) left -= file.bytes;
    advice_.push_back(fits ? map_advice::resident : map_advice::random);
  }
}

MILLRACE_INLINE void map_advisor::ask(const open_files::held_map& map, int advice, const char* name,
                                      const std::string& why) {
  const bool granted = ::madvise(map->bytes.data(), map->bytes.bytes(), advice) == 0;
  log_->note(name, granted, granted ? why : std::generic_category().message(errno));
}

MILLRACE_INLINE void map_advisor::advise(std::int64_t file,
                                         const open_files::held_map& map) noexcept try {
  switch (of(file)) {
    case map_advice::resident:
      ask(map, MADV_HUGEPAGE, "MADV_HUGEPAGE, where files will be resident", why_);
      if (populate_ && threads_->most() > 0) {
        const auto i = static_cast<std::size_t>(file);
        const bool whole = map->bytes.bytes() == bytes_[i];
        threads_->when_idle(populate{threads_.get(), map, stop_, log_, in_memory_, i, whole, 0});
      }
      break;
    case map_advice::random:
      ask(map, MADV_RANDOM, "MADV_RANDOM, where they will not", why_random_);
      break;
    case map_advice::by_memory:
    case map_advice::none:
      break;
  }
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): a hint
}

MILLRACE_INLINE void map_advisor::populate::operator()() noexcept try {
  if (*stop) return;
  const auto held = map.lock();
  if (!held) return;  // the map was removed to make room for other maps
  const std::size_t bytes = std::min(piece, held->bytes.bytes() - done);
  const char* const what = "MADV_POPULATE_READ, in the background";
  if (::madvise(held->bytes.data() + done, bytes, MADV_POPULATE_READ) != 0) {
    const int code = errno;
    if (code == EINTR || code == EAGAIN) {
      threads->when_idle(*this);
      return;
    }
    log->note(what, false, std::generic_category().message(code));
    return;
  }
  done += bytes;
  if (done < held->bytes.bytes()) {
    threads->when_idle(*this);
    return;
  }
  log->note(what, true, "so that resident files are in memory before they are needed");
  // Marks the file as in memory only if this map covers all of it.
  if (whole) in_memory->flags[file].store(true, std::memory_order_relaxed);
} catch (...) {  // NOLINT(bugprone-empty-catch): out of memory; the file is read when needed
}

}  // namespace millrace::loader
