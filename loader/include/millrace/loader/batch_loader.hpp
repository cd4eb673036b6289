// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/token_windows.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/options.hpp>
#include <millrace/loader/sampler.hpp>

namespace millrace::loader {

/// Serves one rank its micro-batches in dataset order, made ahead on a thread of its own.
///
/// A sample is a window of `dataset::token_windows`; which samples make which micro-batch is
/// `sampler`'s word alone. So equal (dataset, options) give equal batches, and any run can be
/// taken up again from its `consumed_samples`, with another number of ranks too.
/// Use from one thread; the destructor stops and joins the other.
///
///   millrace::dataset::indexed_dataset data("out/web_text_document");
///   millrace::loader::batch_loader loader(data, {.batch_size = 8, .seq_len = 4096});
///   while (auto batch = loader.next()) train(batch->tokens(), batch->labels());
class batch_loader {
 public:
  /// @param dataset  must outlive the loader, but not the batches
  /// @throws config_error  an option is out of range; the message names it and its range. Or the
  ///                       dataset has less than one window, or holds no integers.
  /// @throws std::system_error  no thread can be started.
  batch_loader(const dataset::indexed_dataset& dataset, const loader_options& options);
  batch_loader(const dataset::indexed_dataset&&, const loader_options&) = delete;
  batch_loader(const batch_loader&) = delete;
  batch_loader& operator=(const batch_loader&) = delete;
  ~batch_loader() { ring_->close(); }

  /// The next micro-batch, or nothing after the last whole one of all ranks.
  ///
  /// @throws config_error  there is one, but the caller holds look_ahead + 2 batches, which is
  ///                       every slot: one must be destroyed first. The loader goes on then.
  /// @throws error  what the other thread met while it made this batch: once, the loader is
  ///                finished then.
  std::optional<batch> next();

  /// Samples served so far, over all ranks, counted from the start of the data: what a checkpoint
  /// keeps, and `loader_options::consumed_samples` takes up again. It counts a batch when next()
  /// gives it, not when it is destroyed, and takes every rank to be at the same micro-batch.
  std::int64_t consumed_samples() const noexcept { return sampler_.consumed_before(served_); }

  /// Micro-batches that this loader serves in all; may be 0.
  std::int64_t micro_batches() const noexcept { return sampler_.micro_batches(); }

 private:
  std::shared_ptr<batch::slots> make_ring() const;
  void fill_slots() noexcept;
  void fill(detail::batch_slot& slot, std::int64_t micro_batch) const;

  loader_options options_;
  dataset::token_windows windows_;
  sampler sampler_;
  std::shared_ptr<batch::slots> ring_;
  std::int64_t served_ = 0;
  std::jthread filler_;  // last, so that it is joined before anything it uses goes
};

// ---------------------------------------------------------------------------------------------

inline batch_loader::batch_loader(const dataset::indexed_dataset& dataset,
                                  const loader_options& options)
    : options_(check(options)),
      windows_(dataset, options.seq_len),
      sampler_(windows_.count(), options),
      ring_(make_ring()),
      filler_([this] { fill_slots(); }) {}

// Beside those that are looked ahead, a slot for the caller and one for the filler to work on. No
// more than there are micro-batches: so no option asks for more memory than tokens and labels of
// the whole dataset take. Zeroed here: the first touch of each page is paid before training starts,
// and by the caller's thread, so that the pages lie on the NUMA node that will read them.
inline std::shared_ptr<batch::slots> batch_loader::make_ring() const {
  const auto elements =
      static_cast<std::size_t>(options_.batch_size) * static_cast<std::size_t>(options_.seq_len);
  const auto slots = static_cast<std::size_t>(std::min(options_.look_ahead + 2, micro_batches()));
  return std::make_shared<batch::slots>(slots, [elements] {
    return detail::batch_slot{.tokens = std::vector<std::int64_t>(elements),
                              .labels = std::vector<std::int64_t>(elements)};
  });
}

inline std::optional<batch> batch_loader::next() {
  // First, since a caller may hold all there are of a short run.
  if (served_ == micro_batches()) return std::nullopt;
  // Nobody else takes, so once this is false it stays false, and take() cannot wait for ever.
  if (ring_->all_held()) {
    throw config_error("all " + std::to_string(ring_->size()) +
                       " batches of the ring are held (look_ahead is " +
                       std::to_string(options_.look_ahead) +
                       "): destroy one before the next, or raise look_ahead");
  }
  detail::batch_slot* slot = ring_->take();
  if (slot == nullptr) return std::nullopt;
  ++served_;
  return batch(ring_, slot);
}

inline void batch_loader::fill_slots() noexcept {
  std::exception_ptr failure;
  try {
    for (std::int64_t m = 0; m < micro_batches(); ++m) {
      detail::batch_slot* slot = ring_->acquire_free();
      if (slot == nullptr) return;
      fill(*slot, m);
      ring_->publish(slot);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  ring_->finish(std::move(failure));
}

inline void batch_loader::fill(detail::batch_slot& slot, std::int64_t micro_batch) const {
  slot.micro_batch = micro_batch;
  slot.first_sample = sampler_.first_sample(micro_batch);
  const std::int64_t length = options_.seq_len;
  for (std::int64_t row = 0; row < options_.batch_size; ++row) {
    const dataset::token_view window = windows_[slot.first_sample + row];
    const auto at = static_cast<std::size_t>(row * length);
    const auto size = static_cast<std::size_t>(length);
    window.subview(0, length).copy_to(std::span(slot.tokens).subspan(at, size));
    window.subview(1, length).copy_to(std::span(slot.labels).subspan(at, size));
  }
}

}  // namespace millrace::loader
