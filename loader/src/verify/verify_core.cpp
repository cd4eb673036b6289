// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/verify_core.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/verify/checked_file.hpp>
#include <millrace/loader/detail/verify/stored_sums.hpp>
#include <millrace/loader/detail/verify/verify_options.hpp>
#include <millrace/loader/detail/verify/verify_report.hpp>

namespace millrace::loader::detail {

MILLRACE_INLINE std::filesystem::path prefix_of_bin(std::filesystem::path path) {
  if (path.extension() != ".bin") return {};
  return path.replace_extension();
}

MILLRACE_INLINE std::optional<formats::dtype> ids_of(formats::dtype type) {
  const bool real = type == formats::dtype::float32 || type == formats::dtype::float64;
  return real ? std::nullopt : std::optional(type);
}

MILLRACE_INLINE verify_core::source::source(std::shared_ptr<open_files> table,
                                            const verified_file& what)
    : prefix(prefix_of_bin(what.file.path)), bin(std::move(table), what.file, ids_of(what.type)) {}

MILLRACE_INLINE verify_core::verify_core(const std::vector<verified_file>& files,
                                         verify_options options, std::shared_ptr<open_files> table)
    : options_(std::move(options)), table_(std::move(table)) {
  sources_.reserve(files.size());
  for (const verified_file& file : files) {
    sources_.push_back(std::make_unique<source>(table_, file));
  }
}

MILLRACE_INLINE void verify_core::open(source& s) {
  if (s.opened.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(s.opening);
  if (s.opened.load(std::memory_order_relaxed)) return;
  std::unique_ptr<const stored_sums> sums;
  if (!s.prefix.empty()) sums = stored_sums::find(s.prefix);
  if (sums) {
    if (sums->view().bin_bytes != s.bin.size_bytes()) {
      throw format_error(sums->path(), 16,
                         "the checksums are of a .bin of " +
                             std::to_string(sums->view().bin_bytes) + " bytes, but that of the " +
                             ".idx has " + std::to_string(s.bin.size_bytes()) +
                             ": they belong to another dataset; remove them, or create them again");
    }
    std::filesystem::path idx = s.prefix;
    s.idx = std::make_unique<checked_file>(table_, data_file{idx += ".idx", sums->view().idx_bytes},
                                           std::nullopt);
  } else {
    const std::lock_guard counting(mutex_);
    if (without_sum_ == 0) first_without_sum_ = s.bin.path().string();
    ++without_sum_;
  }
  s.sums = std::move(sums);
  s.opened.store(true, std::memory_order_release);
}

MILLRACE_INLINE void verify_core::check_claimed(std::size_t file, checked_file& in,
                                                std::uint64_t block, std::int64_t sample,
                                                const io::unique_fd& fd, bool by_scrubber) {
  source& s = *sources_[file];
  const bool of_bin = &in == &s.bin;
  std::optional<std::uint32_t> expected;
  if (s.sums) {
    const auto& sums = s.sums->view();
    const auto at = static_cast<std::size_t>(block);
    expected = of_bin ? sums.bin_blocks[at] : sums.idx_blocks[at];
  }
  const std::uint64_t begin = thread_cpu_ns();
  std::optional<checked_file::problem> problem;
  try {
    // Uses a map only for a block in memory. Through a map, pages that are not in memory are read
    // one by one.
    const auto map = by_scrubber ? nullptr : in.mapped(block);
    problem = in.check(fd, map.get(), block, expected, options_.vocab_size,
                       thread_buffer(by_scrubber ? formats::sum_block_bytes : piece_bytes),
                       by_scrubber ? io::page_cache::pass_through : io::page_cache::keep);
  } catch (...) {
    (void)in.states().settle(block, block_state::unseen);
    throw;
  }
  (by_scrubber ? scrub_ns_ : touch_ns_) += thread_cpu_ns() - begin;
  ++(by_scrubber ? scrubbed_ : touched_);
  if (!problem) {
    (void)in.states().settle(block, block_state::good);
    return;
  }
  finding found;
  // `copy` is filled in advance: later, an allocation might fail, and a bad block that was served
  // would go unreported.
  finding copy;
  try {
    found = {.kind = problem->is_token ? finding_kind::token : finding_kind::checksum,
             .file = static_cast<std::int64_t>(file),
             .path = in.path(),
             .of_bin = of_bin,
             .block = static_cast<std::int64_t>(block),
             .first_byte = checked_file::first_byte(block),
             .last_byte = in.last_byte(block),
             .at_byte = problem->at_byte,
             .what = std::move(problem->what),
             .sample = sample,
             .served = in.states().served(block),
             .by_scrubber = by_scrubber};
    copy = found;
    // Records the finding before the state becomes `bad`, so that a thread that sees this state
    // finds the reason.
    const std::lock_guard lock(mutex_);
    if (of_bin) bad_blocks_.insert_or_assign({file, block}, found);
  } catch (...) {  // out of memory: settle the block, so that no thread waits for it forever
    (void)in.states().settle(block, block_state::unseen);
    throw;
  }
  ++bad_;
  found.served = in.states().settle(block, block_state::bad);
  // An invalid token need not end the run here: when a sample is served, all its tokens are
  // checked.
  if (found.served && found.kind == finding_kind::checksum &&
      options_.bad_blocks == bad_block_policy::fail) {
    const std::lock_guard lock(mutex_);
    copy.served = true;
    if (!served_bad_) served_bad_ = std::move(copy);
    any_served_bad_.store(true, std::memory_order_release);
  }
  add(std::move(found));
}

MILLRACE_INLINE void verify_core::leave(const wish& w) {
  ++left_;
  const std::lock_guard lock(mutex_);
  if (wishes_.size() == most_wishes) {
    wishes_.pop_front();  // the scrubber's next pass finds that block
    forgotten_ = true;
  }
  wishes_.push_back(w);
}

MILLRACE_INLINE std::optional<verify_core::wish> verify_core::next_wish() {
  const std::lock_guard lock(mutex_);
  if (wishes_.empty()) return std::nullopt;
  const wish w = wishes_.front();
  wishes_.pop_front();
  return w;
}

MILLRACE_INLINE void verify_core::add(finding what) {
  const std::lock_guard lock(mutex_);
  // The scrubber retries unreadable blocks, but each such block is reported only once.
  const bool known = what.kind == finding_kind::unreadable &&
                     std::ranges::any_of(findings_, [&](const finding& f) {
                       return f.kind == what.kind && f.path == what.path && f.block == what.block;
                     });
  if (known) return;
  ++found_;
  if (findings_.size() < verify_report::most_findings) findings_.push_back(std::move(what));
}

MILLRACE_INLINE finding verify_core::of_block(std::size_t file, std::uint64_t block) const {
  const std::lock_guard lock(mutex_);
  return bad_blocks_.at({file, block});
}

MILLRACE_INLINE std::optional<finding> verify_core::served_bad() const {
  if (!any_served_bad_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return served_bad_;
}

MILLRACE_INLINE verify_report verify_core::report() const {
  verify_report report;
  report.mode = options_.mode;
  report.files = static_cast<std::int64_t>(sources_.size());
  report.touched = touched_;
  report.scrubbed = scrubbed_;
  report.left = left_;
  report.bad = bad_;
  report.touch_cpu_ns = touch_ns_;
  report.scrub_cpu_ns = scrub_ns_;
  report.scrubbed_all = scrubbed_all_;
  for (const auto& s : sources_) {
    report.blocks += static_cast<std::int64_t>(s->bin.states().size());
  }
  const std::lock_guard lock(mutex_);
  report.files_without_sum = without_sum_;
  report.without_sum = first_without_sum_;
  report.found = found_;
  report.findings = findings_;
  return report;
}

}  // namespace millrace::loader::detail
