// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/scrubber.hpp>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <limits>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include <millrace/loader/detail/verify/verify_core.hpp>

namespace millrace::loader {

/// Returns the smallest limit on the read rate among all verifiers.
/// @pre the mutex is held
MILLRACE_INLINE std::uint64_t scrubber::rate() const {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const job& j : jobs_) least = std::min(least, j.core->options().scrub_bytes_per_second);
  return least;
}

MILLRACE_INLINE void scrubber::run(const std::stop_token& stop) {
  // These calls may fail. In that case, only the limit on the read rate protects other processes.
  constexpr int io_class_idle = 3 << 13;
  (void)::syscall(SYS_ioprio_set, 1, 0, io_class_idle);
  (void)::setpriority(PRIO_PROCESS, static_cast<::id_t>(::syscall(SYS_gettid)), 19);

  auto due = clock::now();
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    // This is a copy, because `step` runs without the lock and the list may change in the meantime.
    std::optional<job> mine;
    for (std::size_t i = 0; i < jobs_.size() && !mine; ++i) {
      const job& j = jobs_[next_++ % jobs_.size()];
      if (j.has_work()) mine = j;
    }
    if (!mine) {
      wake_.wait(lock, stop, [&] { return std::ranges::any_of(jobs_, &job::has_work); });
      continue;
    }
    const std::uint64_t pace = rate();
    lock.unlock();
    std::uint64_t bytes = error_bytes;
    try {
      bytes = step(*mine);
    } catch (...) {  // perhaps out of memory: the next block may succeed
      mine->failed = true;
    }
    lock.lock();
    for (job& j : jobs_) {
      if (j.core == mine->core) j = *mine;
    }
    mine.reset();  // reset before the wait below, so that the copy does not keep files open
    if (bytes == 0) continue;
    const std::chrono::duration<double> cost(static_cast<double>(bytes) /
                                             static_cast<double>(pace));
    // After a delay, the thread does not read faster to catch up.
    due = std::max(due, clock::now()) + std::chrono::duration_cast<clock::duration>(cost);
    wake_.wait_until(lock, stop, due, [] { return false; });
  }
}

/// Checks one block. Returns the number of bytes read, or `error_bytes` after an error, so that the
/// speed limit also applies to errors. Returns 0 if there is nothing to do.
MILLRACE_INLINE std::uint64_t scrubber::step(job& j) {
  detail::verify_core& core = *j.core;
  if (const auto w = core.next_wish()) {
    return scrub(core, w->file, core[w->file].bin, w->block, w->sample).bytes;
  }
  if (j.done) {
    core.set_forgotten(false);
    j.done = false;
    j.failed = false;
    j.file = 0;
    j.block = 0;
  }
  const auto parts = static_cast<std::uint64_t>(core.options().scrub_parts);
  const auto part = static_cast<std::uint64_t>(core.options().scrub_part);
  for (; j.file < core.size(); ++j.file, j.block = 0) {
    auto& source = core[j.file];
    try {
      core.open(source);
    } catch (const std::exception& e) {
      const std::size_t file = j.file++;
      j.block = 0;
      j.failed = true;
      tell(core, file, dataset::sidecar_paths(source.prefix).sum, -1, e);
      return error_bytes;
    }
    if (core.is_unknown(source)) continue;
    const std::uint64_t of_idx = source.idx ? source.idx->states().size() : 0;
    while (j.block < of_idx + source.bin.states().size()) {
      const std::uint64_t place = j.block++;
      checked_file& in = place < of_idx ? *source.idx : source.bin;
      const std::uint64_t block = place < of_idx ? place : place - of_idx;
      // Checks blocks that this process served, even if they are in another process's part.
      if ((j.file + place) % parts != part && !in.states().served(block)) continue;
      const outcome o = scrub(core, j.file, in, block, -1);
      j.failed = j.failed || o.failed;
      if (!o.opened) j.block = place < of_idx ? of_idx : of_idx + source.bin.states().size();
      if (o.bytes > 0) return o.bytes;
    }
  }
  j.done = true;
  if (!core.forgotten() && !j.failed) core.set_scrubbed_all();
  return 0;
}

/// Claims and checks a block, and settles it. Returns 0 bytes if the block cannot be claimed.
MILLRACE_INLINE scrubber::outcome scrubber::scrub(detail::verify_core& core, std::size_t file,
                                                  checked_file& in, std::uint64_t block,
                                                  std::int64_t sample) {
  if (!in.states().claim(block, true)) {
    // Another thread is checking the block, and may still leave it to the scrubber.
    if (in.states()[block] == block_state::checking) core.set_forgotten(true);
    return {};
  }
  open_files::held_descriptor held;
  bool failed = false;
  try {
    held = in.open();
  } catch (const std::exception& e) {
    (void)in.states().settle(block, block_state::unseen);
    tell(core, file, in.path(), static_cast<std::int64_t>(block), e);
    return {.bytes = error_bytes, .failed = true, .opened = false};
  }
  try {
    core.check_claimed(file, in, block, sample, held->fd, true);
  } catch (const std::exception& e) {
    tell(core, file, in.path(), static_cast<std::int64_t>(block), e);
    failed = true;
  }
  return {.bytes = in.last_byte(block) - checked_file::first_byte(block), .failed = failed};
}

/// Records an error in the report. The error does not end the run: a thread that needs the data
/// will meet the same error.
MILLRACE_INLINE void scrubber::tell(detail::verify_core& core, std::size_t file,
                                    const std::filesystem::path& path, std::int64_t block,
                                    const std::exception& e) noexcept try {
  finding found{.kind = finding_kind::unreadable,
                .file = static_cast<std::int64_t>(file),
                .path = path,
                .of_bin = path == core[file].bin.path(),
                .block = block,
                .what = e.what(),
                .by_scrubber = true};
  if (block >= 0) found.first_byte = checked_file::first_byte(static_cast<std::uint64_t>(block));
  core.add(std::move(found));
} catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the report
}

}  // namespace millrace::loader
