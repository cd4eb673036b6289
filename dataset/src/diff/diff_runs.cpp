// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/diff.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/error.hpp>

#include "../share_blocks.hpp"

namespace millrace::dataset {

namespace detail {

/// Numbers the datasets of two runs, so that equal datasets have equal numbers.
class numbered_sources {
 public:
  numbered_sources(const run& a, const run& b, int workers) : workers_(workers) {
    for (const auto& [order, numbers] : {std::pair(&a, &in_a_), std::pair(&b, &in_b_)}) {
      for (std::int64_t s = 0; s < order->source_count(); ++s) {
        numbers->push_back(number_of(order->prefix(s)));
      }
    }
  }

  const std::vector<std::int64_t>& in_a() const noexcept { return in_a_; }
  const std::vector<std::int64_t>& in_b() const noexcept { return in_b_; }

 private:
  std::int64_t number_of(const std::filesystem::path& prefix) {
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (known_[i] == prefix) return static_cast<std::int64_t>(i);
    }
    std::size_t i = 0;
    while (i < known_.size() && !same(known_[i], prefix)) ++i;
    // A path that is another name of a known dataset is not added: at most a few are compared
    // twice.
    if (i == known_.size()) known_.push_back(prefix);
    return static_cast<std::int64_t>(i);
  }

  bool same(std::filesystem::path x, std::filesystem::path y) const {
    std::error_code ignored;
    const auto with = [](std::filesystem::path prefix, const char* suffix) {
      return prefix += suffix;
    };
    if (std::filesystem::equivalent(with(x, ".idx"), with(y, ".idx"), ignored)) return true;
    const indexed_dataset a(std::move(x), {.check = check_level::full});
    const indexed_dataset b(std::move(y), {.check = check_level::full});
    if (a.token_count() != b.token_count() || a.document_count() != b.document_count() ||
        a.sequence_count() != b.sequence_count() || is_real(a) != is_real(b)) {
      return false;
    }
    return diff_datasets(a, b, {.workers = workers_, .most_listed = 0, .progress = {}}).same();
  }

  static bool is_real(const indexed_dataset& data) noexcept {
    return data.type() == formats::dtype::float32 || data.type() == formats::dtype::float64;
  }

  int workers_;
  std::vector<std::filesystem::path> known_;
  std::vector<std::int64_t> in_a_;
  std::vector<std::int64_t> in_b_;
};

/// What a sample consists of.
struct sample_content {
  std::int64_t dataset = 0;
  std::int64_t padding = 0;
  std::vector<piece> pieces;

  void read(const run& order, std::int64_t position, const std::vector<std::int64_t>& numbers) {
    const source_sample sample = order.at(position);
    dataset = numbers[static_cast<std::size_t>(sample.source)];
    padding = order.pieces(sample, pieces);
    std::erase_if(pieces, [](const piece& each) { return each.tokens == 0; });
  }

  auto key() const noexcept { return std::tie(dataset, padding, pieces); }
  friend bool operator==(const sample_content& x, const sample_content& y) {
    return x.key() == y.key();
  }
  friend bool operator<(const sample_content& x, const sample_content& y) {
    if (std::tie(x.dataset, x.padding) != std::tie(y.dataset, y.padding)) {
      return std::tie(x.dataset, x.padding) < std::tie(y.dataset, y.padding);
    }
    return std::ranges::lexicographical_compare(x.pieces, y.pieces, {}, as_tuple, as_tuple);
  }

 private:
  static std::tuple<std::int64_t, std::int64_t, std::int64_t> as_tuple(const piece& p) noexcept {
    return {p.sequence, p.first, p.tokens};
  }
};

/// A list of numbers as ranges. Counts all of them and keeps the first.
class range_list {
 public:
  explicit range_list(std::int64_t most) : most_(most) {}

  /// @pre the numbers ascend
  void add(std::int64_t number) {
    ++numbers_;
    if (last_ == number && ranges_ > 0) {
      last_ = number + 1;
      if (ranges_ == std::ssize(first_)) first_.back().last = last_;
      return;
    }
    last_ = number + 1;
    if (ranges_++ < most_) first_.push_back({number, number + 1});
  }

  std::int64_t numbers() const noexcept { return numbers_; }
  std::int64_t ranges() const noexcept { return ranges_; }
  std::vector<position_range> take() { return std::move(first_); }

 private:
  std::int64_t most_;
  std::int64_t numbers_ = 0;
  std::int64_t ranges_ = 0;
  std::int64_t last_ = 0;  // end of the last range
  std::vector<position_range> first_;
};

/// One comparison of two runs.
class run_comparison {
 public:
  run_comparison(const diffed_run& a, const diffed_run& b, const diff_options& options)
      : a_(a),
        b_(b),
        options_(options),
        same_order_(a.order.description() == b.order.description()),
        sources_(a.order, b.order, options.workers) {}

  run_difference run() {
    run_difference found;
    const std::int64_t end_a = std::min(a_.end, a_.ranks.end_sample());
    const std::int64_t end_b = std::min(b_.end, b_.ranks.end_sample());
    found.first = std::max(a_.ranks.first_sample(), b_.ranks.first_sample());
    found.end = std::min(end_a, end_b);
    if (found.end <= found.first) {
      throw config_error("the runs have no sample in common: one serves samples " +
                         std::to_string(a_.ranks.first_sample()) + " to " +
                         std::to_string(end_a - 1) + ", the other " +
                         std::to_string(b_.ranks.first_sample()) + " to " +
                         std::to_string(end_b - 1));
    }
    found.only_in_a = std::max<std::int64_t>(0, end_a - found.end);
    found.only_in_b = std::max<std::int64_t>(0, end_b - found.end);
    compare_samples(found);
    compare_steps(found);
    return found;
  }

 private:
  static constexpr std::int64_t word_bits = 64;

  bool differs(const run_difference& found, std::int64_t sample) const noexcept {
    const std::int64_t at = sample - found.first;
    return (differs_[static_cast<std::size_t>(at / word_bits)] >> (at % word_bits) & 1U) != 0;
  }

  void compare_samples(run_difference& found) {
    const std::int64_t all = found.end - found.first;
    differs_.assign(static_cast<std::size_t>((all + word_bits - 1) / word_bits), 0);
    // Whole words, so that no two threads write to the same one.
    const std::int64_t block =
        (std::clamp<std::int64_t>(options_.block, 1, 1 << 14) + word_bits - 1) / word_bits *
        word_bits;
    std::vector<bool> ranks_a(static_cast<std::size_t>(a_.ranks.options().world_size));
    std::vector<bool> ranks_b(static_cast<std::size_t>(b_.ranks.options().world_size));
    std::mutex mutex;
    std::int64_t done = 0;
    share_blocks(static_cast<std::uint64_t>((all + block - 1) / block), options_.workers, [&] {
      return [&, x = sample_content(), y = sample_content(), differing_a = ranks_a,
              differing_b = ranks_b](std::uint64_t number) mutable {
        const std::int64_t begin = static_cast<std::int64_t>(number) * block;
        const std::int64_t end = std::min(begin + block, all);
        std::int64_t other_rank = 0;
        for (std::int64_t at = begin; at < end; ++at) {
          const std::int64_t sample = found.first + at;
          const std::int64_t rank_a = a_.ranks.slot_of(sample).rank;
          const std::int64_t rank_b = b_.ranks.slot_of(sample).rank;
          if (equal(sample, x, y)) {
            other_rank += rank_a == rank_b ? 0 : 1;
            continue;
          }
          differs_[static_cast<std::size_t>(at / word_bits)] |= std::uint64_t{1}
                                                                << (at % word_bits);
          differing_a[static_cast<std::size_t>(rank_a)] = true;
          differing_b[static_cast<std::size_t>(rank_b)] = true;
        }
        const std::scoped_lock lock(mutex);
        found.served_by_other_rank += other_rank;
        add(differing_a, ranks_a);
        add(differing_b, ranks_b);
        if (options_.progress) options_.progress(done += end - begin);
      };
    });
    range_list ranges(options_.most_listed);
    for (std::int64_t at = 0; at < all; ++at) {
      if (at % word_bits == 0 && differs_[static_cast<std::size_t>(at / word_bits)] == 0) {
        at += word_bits - 1;
        continue;
      }
      if (differs(found, found.first + at)) ranges.add(found.first + at);
    }
    found.samples = ranges.numbers();
    found.sample_ranges = ranges.ranges();
    found.first_ranges = ranges.take();
    found.ranks_in_a = numbers_of(ranks_a);
    found.ranks_in_b = numbers_of(ranks_b);
  }

  static void add(const std::vector<bool>& more, std::vector<bool>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (more[i]) all[i] = true;
    }
  }
  static std::vector<std::int64_t> numbers_of(const std::vector<bool>& set) {
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (set[i]) numbers.push_back(static_cast<std::int64_t>(i));
    }
    return numbers;
  }

  bool equal(std::int64_t sample, sample_content& x, sample_content& y) const {
    const std::int64_t at_a = a_.ranks.position_of(sample);
    const std::int64_t at_b = b_.ranks.position_of(sample);
    if (same_order_) {
      if (at_a == at_b) return true;
      const source_sample k = a_.order.at(at_a);
      if (k == b_.order.at(at_b)) return true;
    }
    x.read(a_.order, at_a, sources_.in_a());
    y.read(b_.order, at_b, sources_.in_b());
    return x == y;
  }

  /// Samples [first, end) of a step that both runs describe.
  struct step_samples {
    std::int64_t first = 0;
    std::int64_t end = 0;

    friend bool operator==(const step_samples&, const step_samples&) = default;
  };
  static step_samples samples_of(const sampler& ranks, std::int64_t step,
                                 const run_difference& found) {
    return {std::clamp(ranks.first_sample_of(step), found.first, found.end),
            std::clamp(ranks.first_sample_of(step + 1), found.first, found.end)};
  }

  void compare_steps(run_difference& found) {
    const auto step_of = [](const sampler& ranks, std::int64_t sample) {
      return ranks.slot_of(sample).step;
    };
    found.first_step = std::min(step_of(a_.ranks, found.first), step_of(b_.ranks, found.first));
    found.end_step =
        1 + std::max(step_of(a_.ranks, found.end - 1), step_of(b_.ranks, found.end - 1));
    range_list ranges(options_.most_listed);
    for (std::int64_t step = found.first_step; step < found.end_step; ++step) {
      const step_samples in_a = samples_of(a_.ranks, step, found);
      const step_samples in_b = samples_of(b_.ranks, step, found);
      bool is_same = in_a == in_b;
      if (is_same) {
        for (std::int64_t n = in_a.first; n < in_a.end && is_same; ++n)
          is_same = !differs(found, n);
      }
      if (is_same) continue;
      ranges.add(step);
      if (in_a.end - in_a.first == in_b.end - in_b.first && same_samples(in_a, in_b)) {
        ++found.reordered;
      }
    }
    found.steps = ranges.numbers();
    found.step_ranges = ranges.ranges();
    found.first_step_ranges = ranges.take();
  }

  /// True if two steps of the same size consist of the same samples, in any order.
  bool same_samples(const step_samples& in_a, const step_samples& in_b) const {
    std::vector<sample_content> x;
    std::vector<sample_content> y;
    for (std::int64_t i = 0; i < in_a.end - in_a.first; ++i) {
      x.emplace_back().read(a_.order, a_.ranks.position_of(in_a.first + i), sources_.in_a());
      y.emplace_back().read(b_.order, b_.ranks.position_of(in_b.first + i), sources_.in_b());
    }
    std::ranges::sort(x, [](const auto& p, const auto& q) { return p < q; });
    std::ranges::sort(y, [](const auto& p, const auto& q) { return p < q; });
    return x == y;
  }

  const diffed_run& a_;
  const diffed_run& b_;
  const diff_options& options_;
  bool same_order_;  // equal (source, k) are equal samples
  numbered_sources sources_;
  std::vector<std::uint64_t> differs_;  // a bit per sample, from `found.first` on
};

}  // namespace detail

MILLRACE_INLINE run_difference diff_runs(const diffed_run& a, const diffed_run& b,
                                         const diff_options& options) {
  return detail::run_comparison(a, b, options).run();
}

}  // namespace millrace::dataset
