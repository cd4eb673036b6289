// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/io/open_files.hpp>
#include <millrace/loader/io/range_reader.hpp>
#include <millrace/loader/verify/checked_file.hpp>
#include <millrace/loader/verify/finding.hpp>
#include <millrace/loader/verify/stored_sums.hpp>
#include <millrace/loader/verify/verify_options.hpp>
#include <millrace/loader/verify/verify_report.hpp>

namespace millrace::loader {

/// A data file, and what its tokens are.
struct verified_file {
  data_file file;
  formats::dtype type = formats::dtype::uint16;
};

namespace detail {

/// What `data_verifier` and the scrubber share: the files, what is known of their blocks, and what
/// was found. Any thread.
class verify_core {
 public:
  /// A dataset: its `.bin`, and from when its `.sum` was read on its `.idx`.
  struct source {
    source(std::shared_ptr<open_files> table, const verified_file& what);

    std::filesystem::path prefix;  ///< empty: the file is no `.bin`
    checked_file bin;
    std::unique_ptr<checked_file> idx;
    std::unique_ptr<const stored_sums> sums;
    std::mutex opening;
    std::atomic<bool> opened{false};  ///< `idx` and `sums` are as they stay
  };

  /// A block of a `.bin` that a sample needs now, or soon (-1).
  struct wish {
    std::size_t file = 0;
    std::uint64_t block = 0;
    std::int64_t sample = -1;
  };

  verify_core(const std::vector<verified_file>& files, verify_options options,
              std::shared_ptr<open_files> table = open_files::of_process());

  const verify_options& options() const noexcept { return options_; }
  std::size_t size() const noexcept { return sources_.size(); }
  source& operator[](std::size_t file) noexcept { return *sources_[file]; }

  /// Reads the `.sum` if nobody has.
  /// @throws format_error, io_error  it is none, is of another `.bin`, or cannot be read
  void open(source& s);

  /// Whether there is nothing to hold the blocks of a source against. Only once it is open.
  bool is_unknown(const source& s) const noexcept {
    return s.sums == nullptr && options_.vocab_size == 0;
  }

  /// Checks a block that the caller has claimed, and settles it.
  /// @throws io_error  it cannot be read; it is unseen again
  void check_claimed(std::size_t file, checked_file& in, std::uint64_t block, std::int64_t sample,
                     const io::unique_fd& fd, bool by_scrubber);

  /// Claims nothing and looks at nothing: the block waits for the scrubber.
  void leave(const wish& w);
  std::optional<wish> next_wish();
  bool has_wishes() const {
    const std::lock_guard lock(mutex_);
    return !wishes_.empty();
  }
  /// Whether a block that waits may have been passed by: then one more pass finds it.
  bool forgotten() const noexcept { return forgotten_; }
  void set_forgotten(bool value) noexcept { forgotten_ = value; }

  void add(finding what);
  /// What is wrong with a bad block of a `.bin`.
  finding of_block(std::size_t file, std::uint64_t block) const;
  /// A block that was served and then found to be bad, where that ends the run.
  std::optional<finding> served_bad() const;

  void set_scrubbed_all() noexcept { scrubbed_all_ = true; }
  bool scrubbed_all() const noexcept { return scrubbed_all_; }
  verify_report report() const;

 private:
  static constexpr std::size_t most_wishes = 4096;
  static constexpr std::size_t piece_bytes = std::size_t{128} << 10;  // stays in a second cache

  verify_options options_;
  std::shared_ptr<open_files> table_;
  std::vector<std::unique_ptr<source>> sources_;

  std::atomic<std::int64_t> touched_{0};
  std::atomic<std::int64_t> scrubbed_{0};
  std::atomic<std::int64_t> left_{0};
  std::atomic<std::int64_t> bad_{0};
  std::atomic<std::uint64_t> touch_ns_{0};
  std::atomic<std::uint64_t> scrub_ns_{0};
  std::atomic<bool> scrubbed_all_{false};
  std::atomic<bool> forgotten_{false};
  std::atomic<bool> any_served_bad_{false};

  mutable std::mutex mutex_;  // of all below
  std::deque<wish> wishes_;
  std::vector<finding> findings_;
  std::int64_t found_ = 0;
  std::map<std::pair<std::size_t, std::uint64_t>, finding> bad_blocks_;  // of `.bin` files
  std::optional<finding> served_bad_;
  std::int64_t without_sum_ = 0;
  std::string first_without_sum_;
};

/// Nanoseconds of processor time that this thread has had.
inline std::uint64_t thread_cpu_ns() noexcept {
  ::timespec now{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// Of this thread, for pieces of blocks; kept, as fresh memory would have to be cleared each time.
inline std::span<std::byte> thread_buffer(std::size_t size_bytes) {
  thread_local std::vector<std::byte> buffer;
  if (buffer.size() < size_bytes) buffer.resize(size_bytes);
  return std::span(buffer).first(size_bytes);
}

// ---------------------------------------------------------------------------------------------

inline std::filesystem::path prefix_of_bin(std::filesystem::path path) {
  if (path.extension() != ".bin") return {};
  return path.replace_extension();
}

inline std::optional<formats::dtype> ids_of(formats::dtype type) {
  const bool real = type == formats::dtype::float32 || type == formats::dtype::float64;
  return real ? std::nullopt : std::optional(type);
}

inline verify_core::source::source(std::shared_ptr<open_files> table, const verified_file& what)
    : prefix(prefix_of_bin(what.file.path)), bin(std::move(table), what.file, ids_of(what.type)) {}

inline verify_core::verify_core(const std::vector<verified_file>& files, verify_options options,
                                std::shared_ptr<open_files> table)
    : options_(std::move(options)), table_(std::move(table)) {
  sources_.reserve(files.size());
  for (const verified_file& file : files) {
    sources_.push_back(std::make_unique<source>(table_, file));
  }
}

inline void verify_core::open(source& s) {
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
                             ": they are of another dataset; remove them, or make them anew");
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

inline void verify_core::check_claimed(std::size_t file, checked_file& in, std::uint64_t block,
                                       std::int64_t sample, const io::unique_fd& fd,
                                       bool by_scrubber) {
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
    // Only where it is in memory: a page of a map that is not would be read on its own.
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
  finding copy;  // made here, so that a block that was served is told whatever memory is left
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
    // Known before it is seen to be bad, so that whoever sees that can say why.
    const std::lock_guard lock(mutex_);
    if (of_bin) bad_blocks_.insert_or_assign({file, block}, found);
  } catch (...) {  // out of memory: nobody is left waiting for it
    (void)in.states().settle(block, block_state::unseen);
    throw;
  }
  ++bad_;
  found.served = in.states().settle(block, block_state::bad);
  // Of tokens, every sample was looked at when it was served.
  if (found.served && found.kind == finding_kind::checksum &&
      options_.bad_blocks == bad_block_policy::fail) {
    const std::lock_guard lock(mutex_);
    copy.served = true;
    if (!served_bad_) served_bad_ = std::move(copy);
    any_served_bad_.store(true, std::memory_order_release);
  }
  add(std::move(found));
}

inline void verify_core::leave(const wish& w) {
  ++left_;
  const std::lock_guard lock(mutex_);
  if (wishes_.size() == most_wishes) {
    wishes_.pop_front();  // the scrubber comes to it in the end
    forgotten_ = true;
  }
  wishes_.push_back(w);
}

inline std::optional<verify_core::wish> verify_core::next_wish() {
  const std::lock_guard lock(mutex_);
  if (wishes_.empty()) return std::nullopt;
  const wish w = wishes_.front();
  wishes_.pop_front();
  return w;
}

inline void verify_core::add(finding what) {
  const std::lock_guard lock(mutex_);
  // Tried again and again, and told once.
  const bool known = what.kind == finding_kind::unreadable &&
                     std::ranges::any_of(findings_, [&](const finding& f) {
                       return f.kind == what.kind && f.path == what.path && f.block == what.block;
                     });
  if (known) return;
  ++found_;
  if (findings_.size() < verify_report::most_findings) findings_.push_back(std::move(what));
}

inline finding verify_core::of_block(std::size_t file, std::uint64_t block) const {
  const std::lock_guard lock(mutex_);
  return bad_blocks_.at({file, block});
}

inline std::optional<finding> verify_core::served_bad() const {
  if (!any_served_bad_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return served_bad_;
}

inline verify_report verify_core::report() const {
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

}  // namespace detail
}  // namespace millrace::loader
