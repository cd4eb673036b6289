// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/large_array.hpp>
#include <millrace/dataset/detail/megatron/numpy_random.hpp>
#include <millrace/dataset/detail/megatron/sample_rows.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>

namespace millrace::dataset {

/// The three indices of a GPTDataset, with the same elements and types as Megatron's.
struct gpt_index {
  /// [document_entries]: sequence indices in shuffled order, each once per epoch.
  large_array<std::int32_t> document;
  /// [samples + 1, 2]: where each sample begins, as an index into `document` and a token offset in
  /// the sequence of that entry.
  std::variant<large_array<std::int32_t>, large_array<std::int64_t>> sample;
  /// [samples]: the indices of the samples, in the order in which they are served.
  std::variant<large_array<std::uint32_t>, large_array<std::int64_t>> shuffle;
};

/// The default for the callback `settled` of `build_gpt_index`; does nothing. The callback receives
/// parts of the document index as they become final, with the index of each part's first entry. All
/// calls come from one thread, which need not be the caller's thread. The order of the parts is
/// unspecified.
struct ignore_documents {
  void operator()(std::int64_t, std::span<const std::int32_t>) const noexcept {}
};

/// Builds the indices of `plan`, with numpy's shuffles.
///
/// The shuffle itself is sequential. With 2 threads, the second thread processes the entries that
/// are final: it fills the sample index and calls `settled`. Needs no memory besides the indices.
///
/// @param lengths  lengths of all sequences of the `.idx`; the lengths of plan.sequences must not
///                 be negative. The build reads the lengths in shuffled order. So for many millions
///                 of sequences, passing a `large_copy` of them makes the build a sixth faster
/// @param threads  1 or 2
/// @param whose    the name to use in error messages
/// @throws config_error    see `sample_rows::finish`
/// @throws std::bad_alloc  out of memory
/// @throws                 what `settled` throws
template <class Settled = ignore_documents>
gpt_index build_gpt_index(const gpt_plan& plan, formats::unaligned_span<std::int32_t> lengths,
                          const std::string& whose, int threads = 1, Settled&& settled = {});

/// Returns the sum of the lengths of `sequences`.
///
/// @param lengths_offset  byte offset of the lengths in their file, for the message
/// @throws format_error  a length is negative.
MILLRACE_EXPORT std::int64_t count_tokens(formats::unaligned_span<std::int32_t> lengths,
                                          sequence_range sequences, std::uint64_t lengths_offset);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Shuffles the document index. Fills the sample index as entries of the document index become
/// final.
template <class Entry, class Settled>
class document_shuffle {
 public:
  document_shuffle(const gpt_plan& plan, formats::unaligned_span<std::int32_t> lengths,
                   std::span<std::int32_t> documents, std::span<Entry> rows, Settled& settled)
      : plan_(plan), documents_(documents), rows_(plan, lengths, rows), settled_(settled) {
    const std::int64_t last = plan.separate_last_epoch ? plan.sequences.size() : 0;
    ends_[0] = static_cast<std::int64_t>(documents.size()) - last;
    ends_[1] = static_cast<std::int64_t>(documents.size());
  }

  void run_alone(numpy_random& random) {
    fill(0, documents_.size());
    // Not while the shuffle goes on: the lengths would fight with it for the processor's caches.
    shuffle(random, [](std::int64_t) {});
    follow(static_cast<std::int64_t>(documents_.size()));
  }

  /// Shuffles on this thread, while a second thread fills the sample index. May return while the
  /// second thread is still working; `finish` waits for it.
  void run_followed(numpy_random& random) {
    const std::size_t half = documents_.size() / 2;
    follower_ = std::jthread([this, half] {
      fill(0, half);
      filled_.store(true);
      filled_.notify_one();  // filled_ still exists, even if run_followed has returned
      follow_to_the_end();
    });
    fill(half, documents_.size());
    filled_.wait(false);
    shuffle(random, [this](std::int64_t done) { publish(done); });
    publish(static_cast<std::int64_t>(documents_.size()));
  }

  void finish(const std::string& whose) {
    if (follower_.joinable()) follower_.join();
    if (failure_) std::rethrow_exception(failure_);
    rows_.finish(documents_.empty() ? 0 : documents_.back(), whose);
  }

 private:
  // The entries are shuffled in one part, or in two parts if the last epoch is separate. The second
  // part is shuffled after the first. In each part, entries become final from the end to the start,
  // so the number of final entries shows which entries are final. This number is reported every
  // `step` entries.
  static constexpr std::int64_t step = 1 << 14;

  void fill(std::size_t first, std::size_t last) noexcept {
    const auto size = static_cast<std::size_t>(plan_.sequences.size());
    const auto start = static_cast<std::int32_t>(plan_.sequences.first);
    while (first < last) {
      const std::size_t in_epoch = first % size;
      const std::size_t n = std::min(size - in_epoch, last - first);
      const auto part = documents_.subspan(first, n);
      std::iota(part.begin(), part.end(), start + static_cast<std::int32_t>(in_epoch));
      first += n;
    }
  }

  template <class Done>
  void shuffle(numpy_random& random, Done&& done) {
    std::int64_t told = 0;
    const auto run = [&](std::int64_t first, std::int64_t last) {
      const auto part = documents_.subspan(static_cast<std::size_t>(first),
                                           static_cast<std::size_t>(last - first));
      random.shuffle(part, [&](std::size_t i) {
        const std::int64_t count = last - static_cast<std::int64_t>(i);
        if (count - told < step) return;
        told = count;
        done(count);
      });
    };
    run(0, ends_[0]);
    if (plan_.separate_last_epoch) run(ends_[0], ends_[1]);
  }

  /// Processes the first `count` final entries, in the order in which they became final.
  void follow(std::int64_t count) {
    while (followed_ < count) {
      const bool second = followed_ >= ends_[0];
      const std::int64_t start =
          second ? ends_[0] : 0;  // start of the part; also the count of final entries before it
      const std::int64_t end = second ? ends_[1] : ends_[0];
      if (followed_ == start) {
        rows_.start(second || !plan_.separate_last_epoch ? plan_.tokens()
                                                         : plan_.tokens() - plan_.tokens_per_epoch);
      }
      const std::int64_t n = std::min({count, end, followed_ + step}) - followed_;
      const std::int64_t first = end - (followed_ - start) - n;
      const std::span<const std::int32_t> part =
          documents_.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n));
      rows_.put(first, part);
      settled_(first, part);
      followed_ += n;
    }
  }

  void publish(std::int64_t done) noexcept {
    published_.store(done, std::memory_order_release);
    published_.notify_one();
  }

  void follow_to_the_end() noexcept {
    try {
      const auto all = static_cast<std::int64_t>(documents_.size());
      for (std::int64_t seen = 0; seen < all;) {
        published_.wait(seen, std::memory_order_acquire);
        seen = published_.load(std::memory_order_acquire);
        follow(seen);
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  const gpt_plan& plan_;
  std::span<std::int32_t> documents_;
  sample_rows<Entry> rows_;
  Settled& settled_;
  std::int64_t ends_[2];
  std::int64_t followed_ = 0;
  std::atomic<bool> filled_ = false;
  std::atomic<std::int64_t> published_ = 0;
  std::exception_ptr failure_;
  // Declared last, so that it is joined before the other members are destroyed.
  std::jthread follower_;
};

template <class T>
large_array<T> shuffled_samples(const gpt_plan& plan, numpy_random& random) {
  large_array<T> array(static_cast<std::size_t>(plan.samples));
  const std::span<T> all = array.numbers();
  std::iota(all.begin(), all.end(), T{0});
  const auto before = static_cast<std::size_t>(
      plan.separate_last_epoch ? plan.samples_before_last_epoch : plan.samples);
  random.shuffle(all.first(before));
  random.shuffle(all.subspan(before));
  return array;
}

template <class Entry, class Settled>
gpt_index build_gpt_index_of(const gpt_plan& plan, formats::unaligned_span<std::int32_t> lengths,
                             const std::string& whose, int threads, Settled& settled) {
  gpt_index index;
  index.document = large_array<std::int32_t>(static_cast<std::size_t>(plan.document_entries()));
  large_array<Entry> rows(2 * (static_cast<std::size_t>(plan.samples) + 1));
  numpy_random random(plan.random_seed);
  {
    document_shuffle<Entry, Settled> documents(plan, lengths, index.document.numbers(),
                                               rows.numbers(), settled);
    if (threads > 1) {
      documents.run_followed(random);
    } else {
      documents.run_alone(random);
    }
    if (plan.wide_shuffle_index) {
      index.shuffle = shuffled_samples<std::int64_t>(plan, random);
    } else {
      index.shuffle = shuffled_samples<std::uint32_t>(plan, random);
    }
    documents.finish(whose);
  }
  index.sample = std::move(rows);
  return index;
}

}  // namespace detail

template <class Settled>
gpt_index build_gpt_index(const gpt_plan& plan, formats::unaligned_span<std::int32_t> lengths,
                          const std::string& whose, int threads, Settled&& settled) {
  if (plan.wide_sample_index) {
    return detail::build_gpt_index_of<std::int64_t>(plan, lengths, whose, threads, settled);
  }
  return detail::build_gpt_index_of<std::int32_t>(plan, lengths, whose, threads, settled);
}

}  // namespace millrace::dataset
