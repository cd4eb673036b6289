// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "run/pipeline.hpp"

/// Stops runs of the preprocessing pipeline at random places and resumes them.
namespace millrace::test {

/// Sets a flag when the `count`-th text is encoded, on whichever thread that happens. Encodes like
/// the tokenizer that it wraps, which must outlive it.
class stop_at_text final : public tokenizer::tokenizer {
 public:
  stop_at_text(const tokenizer& base, std::int64_t count, std::atomic<int>& stop)
      : base_(base), left_(count), stop_(stop) {}

  std::unique_ptr<millrace::tokenizer::encoder> make_encoder(
      std::size_t cache_bytes) const override {
    return std::make_unique<encoder>(*this, base_.make_encoder(cache_bytes));
  }
  std::int64_t vocab_size() const noexcept override { return base_.vocab_size(); }
  std::optional<std::int32_t> eod() const noexcept override { return base_.eod(); }
  std::string decode(std::span<const std::int64_t> ids) const override { return base_.decode(ids); }
  std::size_t last_cut(std::string_view text) const override { return base_.last_cut(text); }
  bool parts_in_order() const noexcept override { return base_.parts_in_order(); }
  std::string fingerprint() const override { return base_.fingerprint(); }

 private:
  class encoder final : public millrace::tokenizer::encoder {
   public:
    encoder(const stop_at_text& owner, std::unique_ptr<millrace::tokenizer::encoder> base)
        : owner_(owner), base_(std::move(base)) {}

    std::optional<millrace::tokenizer::encode_fault> encode(
        std::string_view text, millrace::tokenizer::id_buffer& ids) override {
      owner_.count();
      return base_->encode(text, ids);
    }
    std::optional<millrace::tokenizer::encode_fault> encode_part(
        const millrace::tokenizer::text_part& part, millrace::tokenizer::id_buffer& ids) override {
      owner_.count();
      return base_->encode_part(part, ids);
    }
    std::optional<millrace::tokenizer::encode_fault> encode_part_with_offsets(
        const millrace::tokenizer::text_part& part, millrace::tokenizer::id_buffer& ids,
        std::vector<millrace::tokenizer::byte_span>& spans) override {
      owner_.count();
      return base_->encode_part_with_offsets(part, ids, spans);
    }

   private:
    const stop_at_text& owner_;
    std::unique_ptr<millrace::tokenizer::encoder> base_;
  };

  void count() const {
    if (--left_ == 0) stop_ = 1;
  }

  const tokenizer& base_;
  mutable std::atomic<std::int64_t> left_;
  std::atomic<int>& stop_;
};

/// Repeats a run until it completes, with a random number of workers and random sizes of blocks.
/// Stops the first `most_stops` runs, in turn at a random text, which a run reaches however fast
/// the machine is, and after a random time, which can be in any phase.
///
/// @param outer  one number is drawn from it, so what the caller draws next does not depend on time
/// @param after_stop  called after each stop, if it is given
/// @return number of runs that stopped before they were complete
inline int run_in_pieces(const tokenizer::tokenizer& tokenizer, preprocess::run_options options,
                         std::mt19937_64& outer, int most_stops,
                         const std::function<void()>& after_stop = nullptr) {
  std::mt19937_64 random(outer());
  preprocess::progress quiet(preprocess::progress::style::silent, 1, 0);
  for (int stops = 0;; ++stops) {
    options.workers = 1 + static_cast<int>(random() % 4);
    options.limits.block_bytes = 1 + random() % 3000;
    std::atomic<int> stop = 0;
    options.stop = &stop;
    std::int64_t stop_at = 0;
    std::jthread stopper;
    if (stops < most_stops) {
      options.checkpoint_period = std::chrono::milliseconds(random() % 2);
      if (stops % 2 == 0) {
        stop_at = 1 + static_cast<std::int64_t>(random() % 20);
      } else {
        stopper = std::jthread([&stop, wait = std::chrono::microseconds(random() % 8000)] {
          std::this_thread::sleep_for(wait);
          stop = 1;
        });
      }
    }
    try {
      (void)preprocess::run(stop_at_text(tokenizer, stop_at, stop), options, quiet);
      return stops;
    } catch (const preprocess::stopped&) {
      options.resume = true;
      if (after_stop) after_stop();
    }
  }
}

}  // namespace millrace::test
