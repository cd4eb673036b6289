// SPDX-License-Identifier: Apache-2.0
#include "uring_reader.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/detail/io/ahead_reads.hpp>
#include <millrace/loader/detail/io/direct_plan.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/read_outcome.hpp>
#include <millrace/loader/detail/io/reader_log.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>
#include <millrace/loader/detail/io/reader_report.hpp>
#include <millrace/loader/detail/io/uring_options.hpp>
#include <millrace/loader/detail/io/uring_probe.hpp>

#include "uring_files.hpp"
#include "uring_ring.hpp"

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE std::string why_not_granted(int code) {
  std::string said = std::generic_category().message(code);
  struct ::rlimit most {};
  switch (code) {
    case EEXIST:
      return "another thread has used this reader before";
    case EINVAL:
    case EOPNOTSUPP:
      return said + " (the kernel is older than 6.1)";
    case ENOMEM:
      if (::getrlimit(RLIMIT_MEMLOCK, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return said;
      return said + " (at most " + std::to_string(most.rlim_cur / 1024) +
             " KiB may be locked: ulimit -l)";
    default:
      return said;
  }
}

}  // namespace detail

MILLRACE_INLINE uring_reader::uring_reader(const std::vector<data_file>& files,
                                           reader_options options, uring_options ring)
    : options_(std::move(options)),
      limits_(detail::checked(std::move(ring))),
      table_(options_.files ? options_.files : open_files::of_process()),
      plain_(files, options_),
      files_(files, table_, static_cast<std::size_t>(limits_.most_files), log_),
      ahead_(limits_.slot_bytes),
      ahead_plan_(limits_.slot_bytes),
      plan_(limits_.slot_bytes) {}

// Ensures that there is a ring that this thread may use. Returns false if no ring can be created.
MILLRACE_INLINE bool uring_reader::has_ring() {
  if (ring_ && ring_->is_mine()) return true;
  if (no_ring_.load(std::memory_order_relaxed)) return false;
  const bool first = ring_ == nullptr;
  const auto slots = static_cast<std::size_t>(limits_.slots);
  const auto depth = static_cast<std::size_t>(limits_.depth);
  // Allocates first, so that an exception leaves all members unchanged. With a new ring but no
  // operations, a wait would never end.
  std::vector<operation> operations(slots + depth);
  std::vector<std::size_t> free_slots;
  std::vector<std::size_t> free_straight;
  free_slots.reserve(slots);
  free_straight.reserve(depth);
  for (std::size_t i = slots; i-- > 0;) free_slots.push_back(i);
  for (std::size_t i = slots + depth; i-- > slots;) free_straight.push_back(i);
  retired_.reserve(retired_.size() + 2);  // the current ring and the new one
  auto made =
      std::make_unique<uring_ring>(static_cast<unsigned>(limits_.depth), slots * limits_.slot_bytes,
                                   static_cast<unsigned>(limits_.most_files), first);
  if (!made->valid()) log_.note("io_uring", false, why_no_ring(made->error()));

  // Only the thread that created the current ring receives its results, and that thread may have
  // ended.
  retire_ring();
  if (!made->valid()) {
    no_ring_ = true;
    return false;
  }
  ring_ = std::move(made);
  operations_ = std::move(operations);
  free_slots_ = std::move(free_slots);
  free_straight_ = std::move(free_straight);
  in_flight_ = 0;
  demand_in_flight_ = 0;
  try {
    note_ring();
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): for the report alone
  }
  return true;
}

// Retires the ring. Data that was read ahead is lost with it.
MILLRACE_INLINE void uring_reader::retire_ring() noexcept {
  if (!ring_) return;
  ahead_.clear();
  files_.close_direct();
  retired_.push_back(std::move(ring_));
}

MILLRACE_INLINE void uring_reader::note_ring() {
  const uring_ring::grants& granted = ring_->granted();
  const auto note = [&](const char* asked, int code, const std::string& why) {
    log_.note(asked, code == 0, code == 0 ? why : detail::why_not_granted(code));
  };
  note("SINGLE_ISSUER and DEFER_TASKRUN", granted.single_issuer, "one thread reads");
  note("registered buffers", granted.buffers, "memory is pinned once, not at each read");
  note("registered files", granted.files, "a file is looked up once, not at each read");
}

// Queues the unread rest of an operation for the next submit. Returns false if its file cannot be
// opened or the queue cannot be submitted.
MILLRACE_INLINE bool uring_reader::start(std::size_t token) {
  operation& op = operations_[token];
  const std::size_t place = files_.place_of(op.file, *ring_);
  if (place == uring_files::none) return false;
  const std::uint64_t done = op.progress.done;
  const auto left = static_cast<std::uint32_t>(op.progress.bytes - done);
  while (!ring_->read(files_.fd_at(place), static_cast<unsigned>(place), op.to + done, left,
                      op.begin + done, token)) {
    if (ring_->submit(0) != 0) return false;
  }
  return true;
}

// Returns the initial progress of a read.
MILLRACE_INLINE read_progress uring_reader::progress_of(std::uint64_t bytes, std::uint64_t need,
                                                        const direct_alignment& unit) noexcept {
  return {.bytes = bytes, .need = need, .alignment = unit.offset, .memory_alignment = unit.memory};
}

// Starts announced reads while slots are free.
MILLRACE_INLINE void uring_reader::pump() {
  const std::size_t most = static_cast<std::size_t>(limits_.depth) * 7 / 8;
  bool started = false;
  for (;;) {
    const ahead_reads::place next = ahead_.next_queued();
    if (next == ahead_.none() || in_flight_ >= most) break;
    if (free_slots_.size() <= kept_for_gather) {
      const auto old = ahead_.stale(gathers_, static_cast<std::uint64_t>(limits_.slots));
      if (old == ahead_.none()) break;
      release(old);
      continue;
    }
    const std::size_t slot = free_slots_.back();
    const auto& [key, entry] = *next;
    operation& op = operations_[slot];
    const direct_alignment unit = files_.alignment_of(key.file);
    const std::uint64_t need = entry.end - key.begin;
    op = {key.file,
          key.begin,
          ring_->memory() + slot * limits_.slot_bytes,
          progress_of((need + unit.offset - 1) / unit.offset * unit.offset, need, unit),
          next,
          none};
    if (!ahead_.start(next, slot)) break;  // no memory: the read remains queued
    if (!start(slot)) {
      ahead_.erase(next);  // gather will report the error
      continue;
    }
    free_slots_.pop_back();
    ++in_flight_;
    started = true;
  }
  most_in_flight_ = std::max(most_in_flight_.load(), in_flight_);
  if (started) (void)ring_->submit(0);
}

// Waits until at least one read in flight completes. Returns 0 or an errno.
MILLRACE_INLINE int uring_reader::wait() {
  const int code = ring_->submit(in_flight_ > 0 ? 1 : 0);
  const unsigned taken = ring_->take_results([&](std::uint64_t token, std::int64_t result) {
    take(static_cast<std::size_t>(token), result);
  });
  if (code == 0 || taken > 0) vain_waits_ = 0;
  // These errors are transient: the kernel lacks memory, or room for results. Taking results has
  // just freed some of that room.
  const bool may_pass = code == EAGAIN || code == EBUSY || code == ENOMEM;
  if (!may_pass || vain_waits_ >= most_vain_waits) return code;
  if (taken > 0) return 0;
  ++vain_waits_;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return 0;
}

MILLRACE_INLINE void uring_reader::take(std::size_t token, std::int64_t result) {
  operation& op = operations_[token];
  if (limits_.alter_result) {
    const std::uint64_t left = op.progress.bytes - op.progress.done;
    result = limits_.alter_result(result, {op.to + op.progress.done, left});
  }
  if (result > 0) log_.add_read(static_cast<std::uint64_t>(result));
  read_outcome outcome = take_result(op.progress, result);
  if (outcome == read_outcome::resume || outcome == read_outcome::repeat) {
    if (outcome == read_outcome::repeat) log_.add_retry();
    if (start(token)) return;
    outcome = read_outcome::hand_over;
  }
  if (outcome == read_outcome::demote) {
    try {
      files_.demote(op.file, "read: " + std::generic_category().message(static_cast<int>(-result)));
    } catch (...) {  // NOLINT(bugprone-empty-catch): out of memory, for the report only
    }
  }
  --in_flight_;
  const bool ok = outcome == read_outcome::complete;
  if (op.extent == none) {
    end_ahead(op, ok);
  } else {
    end_demand(token, op, ok);
  }
}

MILLRACE_INLINE void uring_reader::end_ahead(operation& op, bool ok) noexcept {
  op.ahead->second.now = ok ? ahead_reads::state::ready : ahead_reads::state::failed;
  if (!ok && op.ahead->second.pinned == 0) release(op.ahead);
}

MILLRACE_INLINE void uring_reader::end_demand(std::size_t token, operation& op, bool ok) {
  --demand_in_flight_;
  const extent& e = plan_.extents()[op.extent];
  for (const read_request& piece : plan_.pieces_of(e)) {
    if (!ok) {
      handed_over_.push_back(piece);
    } else if (e.straight == nullptr) {
      std::memcpy(piece.to, op.to + (piece.from.offset - e.begin), piece.from.bytes);
    }
  }
  (e.straight == nullptr ? free_slots_ : free_straight_).push_back(token);
}

MILLRACE_INLINE void uring_reader::release(ahead_reads::place p) {
  if (p->second.now != ahead_reads::state::queued) free_slots_.push_back(p->second.slot);
  ahead_.erase(p);
}

MILLRACE_INLINE void uring_reader::prefetch(std::span<const file_range> ranges) noexcept try {
  if (!has_ring()) return plain_.prefetch(ranges);
  wanted_.clear();
  plain_ahead_.clear();
  for (const file_range& range : ranges) {
    if (range.bytes == 0) continue;
    if (!files_.is_direct(range.file, *ring_)) {
      plain_ahead_.push_back(range);
      continue;
    }
    ahead_.walk(
        range, [](ahead_reads::place p, auto, auto) { ++p->second.expected; },
        [&](std::uint64_t begin, std::uint64_t end) {
          wanted_.push_back({{range.file, begin, end - begin}, nullptr});
        });
  }
  if (!plain_ahead_.empty()) plain_.prefetch(plain_ahead_);
  ahead_plan_.make(wanted_, [&](std::int64_t file) { return files_.alignment_of(file); });
  for (const extent& e : ahead_plan_.extents()) {
    if (ahead_.queued() >= most_queued) break;
    // Announces whole blocks, because another range may begin in the last block. The end of the
    // file limits that block.
    ahead_.add({e.file, e.begin}, std::min(e.end, files_[e.file].bytes()),
               static_cast<std::int64_t>(e.pieces), gathers_);
  }
  pump();
} catch (...) {  // NOLINT(bugprone-empty-catch): gather reads what is missing
}

MILLRACE_INLINE void uring_reader::gather(std::span<const read_request> requests) {
  std::uint64_t bytes = 0;
  for (const read_request& r : requests) {
    assert(r.from.bytes <= files_[r.from.file].bytes() &&
           r.from.offset <= files_[r.from.file].bytes() - r.from.bytes);
    bytes += r.from.bytes;
  }
  if (!has_ring()) {
    plain_.gather(requests);
    log_.add_gather(requests.size(), bytes);
    return;
  }
  ++gathers_;
  claims_.clear();
  claims_taken_ = 0;
  handed_over_.clear();
  next_extent_ = 0;
  try {
    split(requests);
    start_demand();
    if (!by_plain_.empty()) plain_.gather(by_plain_);
    finish_demand();
    take_claims();
    if (!handed_over_.empty()) {
      for (std::size_t i = 0; i < handed_over_.size(); ++i) log_.add_retry();
      plain_.gather(handed_over_);
    }
  } catch (const lost_ring& lost) {
    give_up_ring(lost.code);
    plain_.gather(requests);
    log_.add_gather(requests.size(), bytes);
    return;
  } catch (...) {
    abandon();
    throw;
  }
  pump();
  log_.add_gather(requests.size(), bytes);
}

// Divides the requests into three groups: data that is already read ahead or being read, data to
// read now, and data that the ring does not read.
MILLRACE_INLINE void uring_reader::split(std::span<const read_request> requests) {
  wanted_.clear();
  by_plain_.clear();
  for (const read_request& r : requests) {
    if (r.from.bytes == 0) continue;
    if (!files_.is_direct(r.from.file, *ring_)) {
      by_plain_.push_back(r);
      continue;
    }
    const auto part = [&](std::uint64_t begin, std::uint64_t end) {
      return read_request{{r.from.file, begin, end - begin}, r.to + (begin - r.from.offset)};
    };
    ahead_.walk(
        r.from,
        [&](ahead_reads::place p, std::uint64_t begin, std::uint64_t end) {
          if (p->second.now == ahead_reads::state::queued) {
            wanted_.push_back(part(begin, end));  // too late to read ahead
            if (--p->second.expected <= 0) ahead_.erase(p);
            return;
          }
          claims_.push_back({p, part(begin, end)});
          ++p->second.pinned;
        },
        [&](std::uint64_t begin, std::uint64_t end) { wanted_.push_back(part(begin, end)); });
  }
  plan_.make(wanted_, [&](std::int64_t file) { return files_.alignment_of(file); });
  // Reserves memory now, so that taking results cannot fail later.
  handed_over_.reserve(plan_.pieces() + claims_.size());
}

// Starts reading extents while there are free slots and the ring has room.
MILLRACE_INLINE void uring_reader::start_demand() {
  const std::span<const extent> extents = plan_.extents();
  for (; next_extent_ < extents.size(); ++next_extent_) {
    const extent& e = extents[next_extent_];
    auto& free = e.straight == nullptr ? free_slots_ : free_straight_;
    if (free.empty() || in_flight_ >= static_cast<std::size_t>(limits_.depth)) break;
    const std::size_t token = free.back();
    std::byte* const to =
        e.straight != nullptr ? e.straight : ring_->memory() + token * limits_.slot_bytes;
    operations_[token] = {
        e.file,
        e.begin,
        to,
        progress_of(e.end - e.begin, e.need_end - e.begin, files_.alignment_of(e.file)),
        ahead_.none(),
        next_extent_};
    if (!start(token)) {
      const auto pieces = plan_.pieces_of(e);
      handed_over_.insert(handed_over_.end(), pieces.begin(), pieces.end());
      continue;
    }
    free.pop_back();
    ++in_flight_;
    ++demand_in_flight_;
  }
  most_in_flight_ = std::max(most_in_flight_.load(), in_flight_);
  (void)ring_->submit(0);
}

MILLRACE_INLINE void uring_reader::finish_demand() {
  while (demand_in_flight_ > 0 || next_extent_ < plan_.extents().size()) {
    if (const int code = wait(); code != 0) throw lost_ring{code};
    start_demand();
  }
}

MILLRACE_INLINE void uring_reader::take_claims() {
  for (; claims_taken_ < claims_.size(); ++claims_taken_) {
    const auto& [from, piece] = claims_[claims_taken_];
    ahead_reads::entry& entry = from->second;
    while (entry.now == ahead_reads::state::reading) {
      if (const int code = wait(); code != 0) throw lost_ring{code};
      // Other reads may complete before this one. Meanwhile, announced reads start in slots that
      // become free.
      if (entry.now == ahead_reads::state::reading) pump();
    }
    if (entry.now == ahead_reads::state::ready) {
      const std::byte* const at = ring_->memory() + entry.slot * limits_.slot_bytes;
      std::memcpy(piece.to, at + (piece.from.offset - from->first.begin), piece.from.bytes);
    } else {
      handed_over_.push_back(piece);
      entry.expected = 0;
    }
    --entry.expected;
    if (--entry.pinned == 0 && entry.expected <= 0) release(from);
  }
}

// Cleans up after an error. After that, no read writes into request memory and no read-ahead data
// is pinned.
MILLRACE_INLINE void uring_reader::abandon() noexcept try {
  next_extent_ = plan_.extents().size();
  while (demand_in_flight_ > 0) {
    if (const int code = wait(); code != 0) return give_up_ring(code);
  }
  for (; claims_taken_ < claims_.size(); ++claims_taken_) {
    const ahead_reads::place from = claims_[claims_taken_].from;
    --from->second.expected;
    if (--from->second.pinned == 0 && from->second.now == ahead_reads::state::failed) release(from);
  }
} catch (...) {  // NOLINT(bugprone-empty-catch): an error is being thrown already
}

// Abandons the ring. From then on, pread reads everything. The kernel will not run reads that it
// has not accepted. For accepted reads into request memory, this function waits as long as
// necessary: only their results show that the memory belongs to the caller again.
MILLRACE_INLINE void uring_reader::give_up_ring(int code) {
  const auto slots = static_cast<std::size_t>(limits_.slots);
  std::size_t under_way = in_flight_ - std::min<std::size_t>(in_flight_, ring_->unsubmitted());
  std::size_t straight = static_cast<std::size_t>(limits_.depth) - free_straight_.size();
  while (straight > 0 && under_way > 0) {
    if (ring_->wait() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    (void)ring_->take_results([&](std::uint64_t token, std::int64_t) {
      --under_way;
      if (token >= slots) --straight;
    });
  }
  no_ring_ = true;
  retire_ring();
  try {
    log_.note("io_uring", false,
              "io_uring_enter: " + std::generic_category().message(code) +
                  ": millrace abandoned the ring and uses pread from then on");
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): for the report alone
  }
}

MILLRACE_INLINE reader_report uring_reader::report() const {
  const bool reads = !no_ring_ && !files_.all_plain();
  reader_report report = detail::begin_report(options_, "io_uring", reads ? "io_uring" : "pread");
  log_.fill(report, *table_);
  if (!reads) {
    report.why += no_ring_ ? "; no ring was available, or it stopped working"
                           : "; no file supports direct reads";
  }
  if (const std::size_t most = most_in_flight_; most > 0) {
    report.grants.push_back({std::to_string(limits_.depth) + " reads in flight",
                             std::to_string(most),
                             "the largest number of reads that were requested at once"});
  }
  detail::add_fallback(report, plain_.report());
  return report;
}

}  // namespace millrace::loader
